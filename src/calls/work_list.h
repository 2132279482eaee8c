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
                               WorkListSizes> {
  static constexpr const char* kName = "MakeWorkList";
  static constexpr bool kRunsKernel = false;
  static constexpr Size<Sizes> kSizes[] = {
      {"num_experts", &Sizes::num_experts}};
  static Sizes Measure(const Inputs& in, const Outputs&, const Options&) {
    return {in.tokens_per_expert.size};
  }
#define FIELD(f) SWITCHYARD_FIELD_OF(WorkListInputs, swy_work_list_inputs, f)
  static constexpr Argument kInputs[] = {
      {FIELD(tokens_per_expert), kSpan, {{"num_experts"}}, kOptional},
      {FIELD(offsets), kSpan, {{"num_experts + 1"}}, kOptional}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(WorkListOutputs, swy_work_list_outputs, f)
  static constexpr Argument kOutputs[] = {{FIELD(tiles), kSpan, {}, kOptional},
                                          {FIELD(report), {}, {}, kOptional}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(WorkListOptions, swy_work_list_options, f)
  static constexpr Option kOptions[] = {{FIELD(workers), kNotZero, true},
                                        {FIELD(tile_rows), kNotZero, true},
                                        {FIELD(min_rows), kAnyValue, true},
                                        {FIELD(tile_cost), kAnyValue, true},
                                        {FIELD(row_cost), kAnyValue, true}};
#undef FIELD
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
