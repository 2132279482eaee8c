// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The table of Activate. See call.h.

#ifndef SWITCHYARD_SRC_CALLS_ACTIVATE_H_
#define SWITCHYARD_SRC_CALLS_ACTIVATE_H_

#include <cmath>

#include "src/base/enumerators.h"
#include "src/base/view_checks.h"
#include "src/calls/call.h"
#include "switchyard/activate.h"

namespace switchyard::calls {

struct ActivateSizes {
  size_t rows, cols, gate_cols, num_experts;
};
struct ActivateCall : CallBase<ActivateInputs, ActivateOutputs, ActivateOptions,
                               ActivateSizes, swy_activate_inputs,
                               swy_activate_outputs, swy_activate_options> {
  static constexpr const char* kName = "Activate";
  static constexpr Size<Sizes> kSizes[] = {
      {"rows", &Sizes::rows},
      {"cols", &Sizes::cols},
      {"gate.cols", &Sizes::gate_cols},
      {"num_experts", &Sizes::num_experts}};
  static Sizes Measure(const Inputs& in, const Outputs& out, const Options&) {
    return {out.out.rows, out.out.cols, in.gate.cols,
            in.offsets.size != 0             ? in.offsets.size - 1
            : in.tokens_per_expert.size != 0 ? in.tokens_per_expert.size
                                             : 1};
  }
  static bool IsLaidOut(const Args& c, GateUpLayout layout) {
    return c.options.layout == layout;
  }
  static bool MayBeInPlace(const Args& c) {
    return !IsLaidOut(c, GateUpLayout::kInterleaved);
  }
  // `out` may be `gate`, `up`, or either half of a concatenated gate.
  static bool IsInPlace(const AnyRows& out, const ConstAnyMatrix& in,
                        const Args& c) {
    if (!IsLaidOut(c, GateUpLayout::kConcatenated)) {
      return internal::SameView(out, in);
    }
    const AnyMatrix& to = out;
    for (const size_t begin : {size_t{0}, c.sizes.cols}) {
      const ConstAnyMatrix half = in.ColRange(begin, begin + c.sizes.cols);
      if (!internal::SameView(to, half) && internal::MayOverlap(to, half)) {
        return false;
      }
    }
    return true;
  }

  static constexpr When kIsSplit =
      SWITCHYARD_WHEN(kOptions, ActivateOptions, layout, GateUpLayout::kSplit);
  static constexpr When kIsUngated = SWITCHYARD_WHEN(
      kOptions, ActivateOptions, layout, GateUpLayout::kUngated);
  static constexpr Argument kInputs[] = {
      {INPUT(gate),
       kFloats,
       {{"[rows, cols]", kIsSplit},
        {"[rows, cols]", kIsUngated},
        {"[rows, 2 * cols]"}},
       kNeeded,
       0,
       {},
       "out"},
      {INPUT(up), kFloats, {{"[rows, cols]"}}, kNeeded, 0, kIsSplit, "out"},
      {INPUT(gate_bias), kFloats, {{"[num_experts, gate.cols]"}}, kRare},
      {INPUT(up_bias), kFloats, {{"[num_experts, cols]"}}, kRare},
      {INPUT(row_scale), kFloats, {{"[rows, 1]"}}, kRare},
      {INPUT(offsets), kSpan, {{"num_experts + 1"}}, kRare},
      {INPUT(tokens_per_expert), kSpan, {{"num_experts"}}, kRare}};
  static constexpr Argument kOutputs[] = {
      {OUTPUT(out),
       kAnyRows,
       {{"[rows, cols]", kIsSplit},
        {"[rows, cols]", kIsUngated, "is not [rows, cols] of gate"},
        {"[rows, cols]",
         {},
         "is not [rows, cols] for gate of [rows, 2 * cols]"}}}};
  static constexpr Option kOptions[] = {
      {OPTION(activation), OneOf<Activation>(" is not a known Activation")},
      {OPTION(layout), OneOf<GateUpLayout>(" is not a known GateUpLayout"),
       true},
      {OPTION(stores), OneOf<ActivateStores>(" is not a known ActivateStores"),
       true},
      {OPTION(alpha), kPositive, true},
      {OPTION(beta), kPositive, true},
      {OPTION(linear_beta), kPositive, true},
      {OPTION(limit), UpTo(HUGE_VALF, " is negative or NaN")},
      {OPTION(limit_place),
       OneOf<ActivatePlace>(" is not a known ActivatePlace"), true},
      {OPTION(row_scale_place),
       OneOf<ActivatePlace>(" is not a known ActivatePlace"), true},
      {OPTION(round_like_unfused)}};

  static bool IsOfGate(const Args& c) {
    return internal::IsOfGate(c.options.activation);
  }
  static bool IsPacked(const Args& c) { return internal::Given(c.in.offsets); }
  static bool IsPadded(const Args& c) {
    return internal::Given(c.in.tokens_per_expert);
  }
  // True if there are biases of several experts, but neither offsets nor
  // tokens_per_expert, which say where each expert's rows are.
  static bool LacksOffsets(const Args& c, const ConstAnyMatrix& bias) {
    return internal::Given(bias) && bias.rows > 1 && !IsPacked(c) &&
           !IsPadded(c);
  }
  static bool IsCount(const Args& c, const ConstAnyMatrix& bias) {
    return internal::Given(bias) && IsPacked(c) &&
           bias.rows == c.in.offsets.size;
  }
  static constexpr auto kFirst = Rule<Args>::kBeforeShapes;
  static constexpr auto kSpecial = Rule<Args>::kSpecialBeforeShapes;
  static bool HasBothInGate(const Args& c) {
    return IsLaidOut(c, GateUpLayout::kConcatenated) ||
           IsLaidOut(c, GateUpLayout::kInterleaved);
  }
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) {
         const bool is_one = c.sizes.gate_cols == c.sizes.cols;
         return !HasBothInGate(c) || !internal::Given(c.in.gate) ||
                !internal::Given(c.out.out) ||
                (c.sizes.gate_cols % 2 == 0 && (!is_one || c.sizes.cols == 0));
       },
       "gate: is not [rows, 2 * cols]", kFirst},
      {[](const Args& c) {
         return !IsLaidOut(c, GateUpLayout::kSplit) ||
                internal::Given(c.in.up) || c.sizes.cols == 0 ||
                c.sizes.gate_cols != 2 * c.sizes.cols;
       },
       "up: not given, and gate has twice the columns of out: set "
       "options.layout to kConcatenated or kInterleaved",
       kFirst},
      {[](const Args& c) {
         return IsOfGate(c) || !IsLaidOut(c, GateUpLayout::kUngated);
       },
       "options: layout: kUngated has no up, which this activation needs",
       kSpecial},
      {[](const Args& c) {
         return IsOfGate(c) || c.options.limit_place == ActivatePlace::kBefore;
       },
       "options: limit_place: kAfter needs an activation that only multiplies "
       "by up",
       kSpecial},
      {[](const Args& c) {
         return !IsLaidOut(c, GateUpLayout::kUngated) ||
                !internal::Given(c.in.up);
       },
       "up: given with kUngated"},
      {[](const Args& c) {
         return !HasBothInGate(c) || !internal::Given(c.in.up);
       },
       "up: given, but gate already contains up"},
      {[](const Args& c) {
         return !IsLaidOut(c, GateUpLayout::kSplit) ||
                c.in.up.type == c.in.gate.type || !internal::Given(c.in.gate) ||
                !internal::Given(c.in.up);
       },
       "up: its type differs from gate's", kFirst},
      {[](const Args& c) { return !IsPacked(c) || !IsPadded(c); },
       "offsets: given together with tokens_per_expert", kSpecial},
      {[](const Args& c) {
         return (!IsPacked(c) || c.in.offsets.size >= 2) &&
                !IsCount(c, c.in.gate_bias) && !IsCount(c, c.in.up_bias);
       },
       "offsets: size is not num_experts + 1", kSpecial},
      {[](const Args& c) {
         const size_t counts = c.in.tokens_per_expert.size;
         return !IsPadded(c) || (counts != 0 && c.sizes.rows % counts == 0);
       },
       "tokens_per_expert: size does not divide the rows", kSpecial},
      {[](const Args& c) {
         return !LacksOffsets(c, c.in.gate_bias) &&
                !LacksOffsets(c, c.in.up_bias);
       },
       "offsets: biases of several experts need offsets or tokens_per_expert",
       kSpecial},
      {[](const Args& c) {
         return !internal::Given(c.in.up_bias) ||
                IsLaidOut(c, GateUpLayout::kSplit);
       },
       "up_bias: given without up", kSpecial}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_ACTIVATE_H_
