// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Small layers with quantised weights, and the bits of each step's results.
// conformance/README.md explains their text form.

#ifndef SWITCHYARD_PROGRAMS_CONFORMANCE_LAYERS_H_
#define SWITCHYARD_PROGRAMS_CONFORMANCE_LAYERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "testing/formats.h"
#include "testing/reference_multiply.h"

namespace switchyard::conformance {

// A pair is a token and one of its selected experts. Pair p belongs to token
// p / top_k.
struct Layer {
  static constexpr size_t kTokens = 5, kTopK = 2, kPairs = kTokens * kTopK;
  static constexpr size_t kExperts = 8, kHidden = 64, kIntermediate = 32;

  explicit Layer(WeightFormat format);

  std::string name;            // the weight format, such as "int8"
  std::vector<float> hidden;   // [tokens, hidden]
  std::vector<int32_t> ids;    // [tokens, top_k]
  std::vector<float> weights;  // [tokens, top_k]
  // gate and up are [experts, intermediate, hidden], down is [experts, hidden,
  // intermediate].
  testing_support::WeightBytes gate, up, down;

  // The results of the layer's steps, in the order of the computation.
  testing_support::FormatRows hidden_codes;     // [tokens, hidden]
  std::vector<float> gate_product, up_product;  // [pairs, intermediate]
  std::vector<float> activated;                 // [pairs, intermediate]
  testing_support::FormatRows activated_codes;  // [pairs, intermediate]
  std::vector<float> down_product;              // [pairs, hidden]
  std::vector<float> output;                    // [tokens, hidden]
};

// Returns a layer with int8 weights, one with q4_0 and one with mxfp4, computed
// by the library's kernels on the active ISA. Throws program::InputError if
// that ISA has no fused multiply-add, because its results have other bits.
std::vector<Layer> MakeLayers();

std::string Write(const Layer& layer);

}  // namespace switchyard::conformance

#endif  // SWITCHYARD_PROGRAMS_CONFORMANCE_LAYERS_H_
