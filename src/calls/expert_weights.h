// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The table of PackWeights. See call.h.

#ifndef SWITCHYARD_SRC_CALLS_EXPERT_WEIGHTS_H_
#define SWITCHYARD_SRC_CALLS_EXPERT_WEIGHTS_H_

#include <array>

#include "src/base/view_checks.h"
#include "src/calls/call.h"
#include "switchyard/expert_weights.h"

namespace switchyard::calls {

struct PackWeightsSizes {
  size_t num_experts, rows, cols, stored_size, packed_size;
};
struct PackWeightsCall
    : CallBase<PackWeightsInputs, PackWeightsOutputs, PackWeightsOptions,
               PackWeightsSizes, swy_pack_weights_inputs,
               swy_pack_weights_outputs, swy_pack_weights_options> {
  static constexpr const char* kName = "PackWeights";
  static constexpr Size<Sizes> kSizes[] = {
      {"num_experts", &Sizes::num_experts},
      {"weights.rows", &Sizes::rows},
      {"weights.cols", &Sizes::cols},
      {"stored_size", &Sizes::stored_size},
      {"packed_size", &Sizes::packed_size}};
  static Sizes Measure(const Inputs& in, const Outputs& out, const Options&) {
    const ExpertWeights& w = in.weights;
    return {out.memory.rows, w.rows, w.cols, ExpertWeightsSize(w),
            PackedWeightsSize(w)};
  }
  static constexpr Types kF32Type = {SetOf(Type::kF32), "f32"};
  static constexpr Argument kInputs[] = {
      {INPUT(weights.format)},
      {INPUT(weights.layout)},
      {INPUT(weights.rows), {}, {}, kOptional},
      {INPUT(weights.cols), {}, {}, kOptional},
      {INPUT(weights.data),
       kU8,
       {{"[num_experts, stored_size]",
         {},
         "is not [num_experts, ExpertWeightsSize]"}},
       kOptional},
      {INPUT(weights.scales),
       kF32Type,
       {{"[num_experts, weights.rows]"}},
       kOptional},
      {INPUT(floats),
       kFloats,
       {{"[num_experts * weights.rows, weights.cols]"}},
       kOptional}};
  static constexpr Argument kOutputs[] = {
      {OUTPUT(memory),
       kU8,
       {{"[num_experts, packed_size]",
         {},
         "is not [num_experts, PackedWeightsSize]"}}}};
  static constexpr std::array<Option, 0> kOptions = {};
  static constexpr auto kFirst = Rule<Args>::kBeforeShapes;
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) { return NameOf(c.in.weights.format) != nullptr; },
       "weights.format: is not a known WeightFormat", kFirst},
      {[](const Args& c) {
         return c.in.weights.layout == WeightLayout::kStored;
       },
       "weights.layout: is not kStored", kFirst},
      {[](const Args& c) { return c.sizes.rows != 0; }, "weights.rows: is 0",
       kFirst},
      {[](const Args& c) {
         return c.sizes.stored_size != SIZE_MAX &&
                c.sizes.packed_size != SIZE_MAX;
       },
       "weights.cols: is 0, not a multiple of the format's block, above "
       "131071, or the size overflows because of weights.rows",
       kFirst},
      {[](const Args& c) {
         return internal::Given(c.in.weights.data) !=
                internal::Given(c.in.floats);
       },
       "weights.data: give either weights.data or floats", kFirst},
      {[](const Args& c) {
         return (c.in.weights.format == WeightFormat::kInt8 &&
                 internal::Given(c.in.weights.data)) ==
                internal::Given(c.in.weights.scales);
       },
       "weights.scales: only int8 data has scales, and needs them", kFirst}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_EXPERT_WEIGHTS_H_
