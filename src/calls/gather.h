// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The tables of GatherRows and ScatterRows. See call.h.

#ifndef SWITCHYARD_SRC_CALLS_GATHER_H_
#define SWITCHYARD_SRC_CALLS_GATHER_H_

#include "src/base/view_checks.h"
#include "src/calls/call.h"
#include "switchyard/gather.h"

namespace switchyard::calls {

struct GatherSizes {
  size_t num_tokens, hidden, n, top_k;
};
struct GatherCall
    : CallBase<GatherInputs, GatherOutputs, GatherOptions, GatherSizes,
               swy_gather_inputs, swy_gather_outputs, swy_gather_options> {
  static constexpr const char* kName = "GatherRows";
  static constexpr Size<Sizes> kSizes[] = {{"num_tokens", &Sizes::num_tokens},
                                           {"hidden", &Sizes::hidden},
                                           {"n", &Sizes::n},
                                           {"top_k", &Sizes::top_k}};
  static Sizes Measure(const Inputs& in, const Outputs&, const Options&) {
    return {in.tokens.rows, in.tokens.cols, in.pairs.size, in.topk_ids.cols};
  }
  static constexpr Argument kInputs[] = {
      {INPUT(tokens), kAnyRows, {{"[num_tokens, hidden]"}}},
      {INPUT(pairs), kSpan, {{"n"}}},
      {INPUT(topk_ids), kIds, {{"[num_tokens, top_k]"}}},
      {INPUT(row_index), kI32, {{"[num_tokens, top_k]"}}, kOptional}};
  static constexpr Argument kOutputs[] = {
      {OUTPUT(rows), kAnyRows, {{"[n, hidden]"}}},
      {OUTPUT(report), {}, {}, kOptional}};
  static constexpr Option kOptions[] = {
      {OPTION(allow_invalid), kAnyValue, true}};
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) { return c.sizes.top_k != 0; },
       "topk_ids: top_k (cols) is 0"},
      {[](const Args& c) {
         return internal::SameFormat(c.in.tokens, c.out.rows) ||
                internal::IsReadable(c.in.tokens);
       },
       "tokens: no kernel converts from its format"}};
};

struct ScatterSizes {
  size_t num_rows, hidden, tokens, top_k;
};
struct ScatterCall
    : CallBase<ScatterInputs, ScatterOutputs, ScatterOptions, ScatterSizes,
               swy_scatter_inputs, swy_scatter_outputs, swy_scatter_options> {
  static constexpr const char* kName = "ScatterRows";
  static constexpr Size<Sizes> kSizes[] = {{"num_rows", &Sizes::num_rows},
                                           {"hidden", &Sizes::hidden},
                                           {"tokens", &Sizes::tokens},
                                           {"top_k", &Sizes::top_k}};
  static Sizes Measure(const Inputs& in, const Outputs&, const Options&) {
    return {in.packed.rows, in.packed.cols, in.row_index.rows,
            in.row_index.cols};
  }
  static constexpr Argument kInputs[] = {
      {INPUT(packed), kAnyRows, {{"[num_rows, hidden]"}}},
      {INPUT(row_index), kI32, {{"[tokens, top_k]"}}}};
  static constexpr Argument kOutputs[] = {
      {OUTPUT(rows), kAnyRows, {{"[tokens * top_k, hidden]"}}},
      {OUTPUT(report), {}, {}, kOptional}};
  static constexpr Option kOptions[] = {
      {OPTION(allow_skipped), kAnyValue, true}};
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) {
         return internal::SameFormat(c.in.packed, c.out.rows) ||
                internal::IsReadable(c.in.packed);
       },
       "packed: no kernel converts from its format"}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_GATHER_H_
