// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The call of MakeWorkList: see call.h.

#ifndef SWITCHYARD_SRC_CALLS_WORK_LIST_H_
#define SWITCHYARD_SRC_CALLS_WORK_LIST_H_

#include "src/calls/bucket.h"
#include "src/calls/call.h"
#include "switchyard/work_list.h"

namespace switchyard::calls {

struct WorkListSizes {
  size_t num_experts;
};
struct WorkListCall : CallBase<WorkListInputs, WorkListOutputs, WorkListOptions,
                               WorkListSizes, swy_work_list_inputs,
                               swy_work_list_outputs, swy_work_list_options> {
  static constexpr const char* kName = "MakeWorkList";
  static constexpr bool kRunsKernel = false;
  static constexpr Size<Sizes> kSizes[] = {
      {"num_experts", &Sizes::num_experts}};
  static Sizes Measure(const Inputs& in, const Outputs&, const Options&) {
    return {in.tokens_per_expert.size};
  }
  static constexpr Argument kInputs[] = {
      {INPUT(tokens_per_expert), kSpan, {{"num_experts"}}, kOptional},
      {INPUT(offsets), kSpan, {{"num_experts + 1"}}, kOptional}};
  static constexpr Argument kOutputs[] = {{OUTPUT(tiles), kSpan, {}, kOptional},
                                          {OUTPUT(report), {}, {}, kOptional}};
  static constexpr Option kOptions[] = {{OPTION(workers), kNotZero, true},
                                        {OPTION(tile_rows), kNotZero, true},
                                        {OPTION(min_rows), kAnyValue, true},
                                        {OPTION(tile_cost), kAnyValue, true},
                                        {OPTION(row_cost), kAnyValue, true}};
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) { return c.sizes.num_experts <= kMaxInt32; },
       "tokens_per_expert: more than 2^31 - 1 experts",
       Rule<Args>::kBeforeShapes},
      {[](const Args& c) {
         return c.in.offsets.size == 0 ||
                c.in.offsets.size == c.sizes.num_experts + 1 ||
                internal::Given(c.in.tokens_per_expert);
       },
       "tokens_per_expert: not given, with offsets",
       Rule<Args>::kBeforeShapes}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_WORK_LIST_H_
