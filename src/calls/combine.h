// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The table of Combine. See call.h.

#ifndef SWITCHYARD_SRC_CALLS_COMBINE_H_
#define SWITCHYARD_SRC_CALLS_COMBINE_H_

#include <cmath>

#include "src/base/view_checks.h"
#include "src/calls/call.h"
#include "switchyard/combine.h"

namespace switchyard::calls {

struct CombineSizes {
  size_t tokens, hidden, top_k, num_rows, num_shared;
};
struct CombineCall
    : CallBase<CombineInputs, CombineOutputs, CombineOptions, CombineSizes,
               swy_combine_inputs, swy_combine_outputs, swy_combine_options> {
  static constexpr const char* kName = "Combine";
  static constexpr Size<Sizes> kSizes[] = {{"tokens", &Sizes::tokens},
                                           {"hidden", &Sizes::hidden},
                                           {"top_k", &Sizes::top_k},
                                           {"num_rows", &Sizes::num_rows},
                                           {"num_shared", &Sizes::num_shared}};
  static Sizes Measure(const Inputs& in, const Outputs& out, const Options&) {
    const bool has_out =
        internal::Given(out.out) || !internal::Given(out.normed);
    return {has_out ? out.out.rows : out.normed.rows,
            has_out ? out.out.cols : out.normed.cols, in.topk_weights.cols,
            in.rows.rows, in.shared.num_shared};
  }

  enum Group : uint8_t { kNoGroup, kRouted, kShared, kIdentity, kNorm };
  static constexpr When kIsInTokenOrder =
      SWITCHYARD_WHEN(kInputs, CombineInputs, row_index.token_order, true);
  static constexpr When kHasRowIndex =
      SWITCHYARD_WHEN(kInputs, CombineInputs, row_index.token_order, false);
  static constexpr When kIsOneShared =
      SWITCHYARD_WHEN(kInputs, CombineInputs, shared.num_shared, 1);
  static constexpr When kIsGated =
      SWITCHYARD_WHEN(kInputs, CombineInputs, shared.kind, SharedGate::kLogit,
                      SharedGate::kScalar);
  static constexpr Shape kPerToken = {"[tokens, 1] or [1, tokens]"};
  static constexpr Shape kVector = {"[1, hidden]"};
  static constexpr Argument kInputs[] = {
      {INPUT(topk_weights), kFloats, {{"[tokens, top_k]"}}, kNeeded, kRouted},
      {INPUT(rows),
       kAnyRows,
       {{"[tokens * top_k, hidden]", kIsInTokenOrder}, {"[num_rows, hidden]"}},
       kNeeded,
       kRouted},
      {INPUT(row_index),
       kI32,
       {{"[tokens, top_k]"}},
       kOptional,
       kRouted,
       kHasRowIndex},
      {INPUT(shared.num_shared),
       {},
       {{"[num_shared, 1]", {}, "is not that of shared.rows"}},
       kOptional},
      {INPUT(shared.rows),
       kFloats,
       {{"[tokens, hidden]", kIsOneShared}, {"[tokens * num_shared, hidden]"}},
       kNeeded,
       kShared,
       {},
       "out normed"},
      {INPUT(shared.kind)},
      {INPUT(shared.gate),
       kFloats,
       {{kPerToken.words, kIsOneShared}, {"[tokens, num_shared]"}},
       kNeeded,
       kShared,
       kIsGated},
      {INPUT(identity.rows),
       kFloats,
       {{"[tokens, hidden]"}},
       kRareGroup,
       kIdentity},
      {INPUT(identity.weight), kFloats, {kPerToken}, kRareGroup, kIdentity},
      {INPUT(residual),
       kFloats,
       {{"[tokens, hidden]"}},
       kOptional,
       0,
       {},
       "out normed"},
      {INPUT(norm_weight), kFloats, {kVector}, kNeeded, kNorm},
      {INPUT(norms.routed), kFloats, {kVector}, kRare},
      {INPUT(norms.shared), kFloats, {kVector}, kRare},
      {INPUT(norms.block), kFloats, {kVector}, kRare},
      {INPUT(vectors.block_bias), kFloats, {kVector}, kRare},
      {INPUT(vectors.block_scale), kFloats, {kVector}, kRare},
      {INPUT(vectors.residual_bias), kFloats, {kVector}, kRare},
      {INPUT(vectors.residual_scale), kFloats, {kVector}, kRare}};
  static constexpr Argument kOutputs[] = {
      {OUTPUT(out), kFloats, {{"[tokens, hidden]"}}, kOptional},
      {OUTPUT(normed), kAnyRows, {{"[tokens, hidden]"}}, kNeeded, kNorm},
      {OUTPUT(report), {}, {}, kOptional}};

  static constexpr Range kEps = UpTo(HUGE_VALF, " is negative or NaN");
  static constexpr Option kOptions[] = {
      {OPTION(eps), kEps, true},
      {OPTION(allow_skipped), kAnyValue, true},
      {OPTION(round_like_unfused), kAnyValue, true},
      {OPTION(norm),
       OneOf<NormKind>(" is not a NormKind for normed",
                       Values(NormKind::kWeight, NormKind::kWeightInF32,
                              NormKind::kPlusOne)),
       true},
      {OPTION(block_norm), OneOf<NormKind>(" is not a known NormKind"), true},
      {OPTION(block_eps), kEps, true},
      {OPTION(scales.routed), kFinite, true},
      {OPTION(scales.block), kFinite, true},
      {OPTION(scales.residual), kFinite, true},
      {OPTION(scales.out), kFinite, true},
      {OPTION(needs_other_norm)}};

  static bool IsRouted(const Args& c) { return c.sizes.top_k != 0; }
  static bool HasShared(const Args& c) {
    return internal::Given(c.in.shared.rows) ||
           internal::Given(c.in.shared.gate);
  }
  static constexpr auto kFirst = Rule<Args>::kBeforeShapes;
  static constexpr auto kSpecial = Rule<Args>::kSpecial;
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) {
         return internal::IsFloat(c.in.rows.type) ||
                (internal::IsReadable(c.in.rows) && c.in.rows.scales.cols == 1);
       },
       "rows: has to be f32, bf16 or f16, or codes with f32 scales [num_rows, "
       "1]",
       kFirst},
      {[](const Args& c) {
         return (c.sizes.hidden | c.sizes.tokens) != 0 ||
                internal::Given(c.in.norm_weight) || c.in.rows.cols == 0;
       },
       "out: neither out nor normed is given", kFirst},
      {[](const Args& c) {
         return c.in.row_index.token_order || internal::Given(c.in.row_index) ||
                c.sizes.tokens == 0 || !IsRouted(c);
       },
       "row_index: neither row_index nor RowIndex::kTokenOrder is given",
       kFirst},
      {[](const Args& c) {
         return IsRouted(c) || !internal::Given(c.in.topk_weights);
       },
       "topk_weights: top_k (cols) is 0", kFirst},
      {[](const Args& c) {
         return IsRouted(c) || internal::Given(c.in.rows) || HasShared(c) ||
                internal::Given(c.in.residual) ||
                internal::Given(c.in.identity.rows);
       },
       "rows: none of rows, shared.rows, identity.rows and residual is given",
       kFirst},
      {[](const Args& c) {
         size_t rows;
         return !HasShared(c) ||
                (c.sizes.num_shared != 0 &&
                 !__builtin_mul_overflow(c.sizes.tokens, c.sizes.num_shared,
                                         &rows));
       },
       "shared.num_shared: is 0 or too large", kFirst},
      {[](const Args& c) {
         return !HasShared(c) || NameOf(c.in.shared.kind) != nullptr;
       },
       "shared.kind: is not a known SharedGate", kFirst},
      {[](const Args& c) {
         return c.in.shared.kind == SharedGate::kNone || c.sizes.tokens == 0 ||
                !internal::Given(c.in.shared.rows) ||
                internal::Given(c.in.shared.gate);
       },
       "shared.gate: not given, but shared.kind needs it", kFirst},
      {[](const Args& c) {
         return c.in.shared.kind != SharedGate::kNone ||
                !internal::Given(c.in.shared.gate);
       },
       "shared.gate: given with SharedGate::kNone"},
      {[](const Args& c) {
         return !internal::Given(c.in.norms.routed) || IsRouted(c) ||
                internal::Given(c.in.identity.rows);
       },
       "norms.routed: given without rows", kSpecial},
      {[](const Args& c) {
         return !internal::Given(c.in.norms.shared) ||
                internal::Given(c.in.shared.rows);
       },
       "norms.shared: given without shared.rows", kSpecial},
      {[](const Args& c) {
         return !internal::Given(c.in.vectors.residual_bias) ||
                internal::Given(c.in.residual);
       },
       "vectors.residual_bias: given without residual", kSpecial},
      {[](const Args& c) {
         return !internal::Given(c.in.vectors.residual_scale) ||
                internal::Given(c.in.residual);
       },
       "vectors.residual_scale: given without residual", kSpecial},
      {[](const Args& c) {
         return !c.options.needs_other_norm || !internal::Given(c.out.normed);
       },
       "normed: given, but this preset's next layer begins with a norm that "
       "Combine does not have (options.needs_other_norm)",
       kSpecial}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_COMBINE_H_
