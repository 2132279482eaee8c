// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The calls of GatherRows and ScatterRows: see call.h.

#ifndef SWITCHYARD_SRC_CALLS_GATHER_H_
#define SWITCHYARD_SRC_CALLS_GATHER_H_

#include "src/calls/call.h"
#include "src/view_checks.h"
#include "switchyard/gather.h"

namespace switchyard::calls {

struct GatherSizes {
  size_t num_tokens, hidden, n, top_k;
};
struct GatherCall
    : CallBase<GatherInputs, GatherOutputs, GatherOptions, GatherSizes> {
  static constexpr const char* kName = "GatherRows";
  static constexpr Size<Sizes> kSizes[] = {{"num_tokens", &Sizes::num_tokens},
                                           {"hidden", &Sizes::hidden},
                                           {"n", &Sizes::n},
                                           {"top_k", &Sizes::top_k}};
  static Sizes Measure(const Inputs& in, const Outputs&, const Options&) {
    return {in.tokens.rows, in.tokens.cols, in.pairs.size, in.topk_ids.cols};
  }
#define FIELD(f) SWITCHYARD_FIELD_OF(GatherInputs, swy_gather_inputs, f)
  static constexpr Argument kInputs[] = {
      {FIELD(tokens), kAnyRows, {{"[num_tokens, hidden]"}}},
      {FIELD(pairs), kSpan, {{"n"}}},
      {FIELD(topk_ids), kIds, {{"[num_tokens, top_k]"}}},
      {FIELD(row_index), kI32, {{"[num_tokens, top_k]"}}, kOptional}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(GatherOutputs, swy_gather_outputs, f)
  static constexpr Argument kOutputs[] = {
      {FIELD(rows), kAnyRows, {{"[n, hidden]"}}},
      {FIELD(report), {}, {}, kOptional}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(GatherOptions, swy_gather_options, f)
  static constexpr Option kOptions[] = {
      {FIELD(allow_invalid), kAnyValue, true}};
#undef FIELD
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) { return c.sizes.top_k != 0; },
       "topk_ids: top_k (cols) is 0"},
      {[](const Args& c) {
         return internal::SameFormat(c.in.tokens, c.out.rows) ||
                internal::IsReadable(c.in.tokens);
       },
       "tokens: nothing converts from its format"}};
};

struct ScatterSizes {
  size_t num_rows, hidden, tokens, top_k;
};
struct ScatterCall
    : CallBase<ScatterInputs, ScatterOutputs, ScatterOptions, ScatterSizes> {
  static constexpr const char* kName = "ScatterRows";
  static constexpr Size<Sizes> kSizes[] = {{"num_rows", &Sizes::num_rows},
                                           {"hidden", &Sizes::hidden},
                                           {"tokens", &Sizes::tokens},
                                           {"top_k", &Sizes::top_k}};
  static Sizes Measure(const Inputs& in, const Outputs&, const Options&) {
    return {in.packed.rows, in.packed.cols, in.row_index.rows,
            in.row_index.cols};
  }
#define FIELD(f) SWITCHYARD_FIELD_OF(ScatterInputs, swy_scatter_inputs, f)
  static constexpr Argument kInputs[] = {
      {FIELD(packed), kAnyRows, {{"[num_rows, hidden]"}}},
      {FIELD(row_index), kI32, {{"[tokens, top_k]"}}}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(ScatterOutputs, swy_scatter_outputs, f)
  static constexpr Argument kOutputs[] = {
      {FIELD(rows), kAnyRows, {{"[tokens * top_k, hidden]"}}},
      {FIELD(report), {}, {}, kOptional}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(ScatterOptions, swy_scatter_options, f)
  static constexpr Option kOptions[] = {
      {FIELD(allow_skipped), kAnyValue, true}};
#undef FIELD
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) {
         return internal::SameFormat(c.in.packed, c.out.rows) ||
                internal::IsReadable(c.in.packed);
       },
       "packed: nothing converts from its format"}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_GATHER_H_
