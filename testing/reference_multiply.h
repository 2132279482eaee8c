// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// expert_weights.h by its definitions, one weight at a time: products, packed
// bytes, q4_0 of floats. And random weights and rows of every format.

#ifndef SWITCHYARD_TESTING_REFERENCE_MULTIPLY_H_
#define SWITCHYARD_TESTING_REFERENCE_MULTIPLY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "switchyard/expert_weights.h"
#include "switchyard/views.h"
#include "testing/formats.h"

namespace switchyard::testing_support {

// Stored weights with their memory.
struct WeightBytes {
  WeightFormat format = WeightFormat::kQ8_0;
  size_t num_experts = 0, rows = 0, cols = 0;
  std::vector<uint8_t> data;
  std::vector<float> scales;  // kInt8

  ExpertWeights View() const;
};

// Any codes. Scales are f16 of any size or, if not `any`, from 1/64 to 4.
WeightBytes RandomWeights(WeightFormat format, size_t num_experts, size_t rows,
                          size_t cols, uint32_t seed, bool any);
// Rows that products read: any codes, and scales as above. `format` is i8 with
// f32 scales, or q8_0.
FormatRows RandomOperands(const Format& format, size_t rows, size_t cols,
                          uint32_t seed, bool any);

// The product of all rows and `count` columns from `first` on, and how far an
// ISA without FMA may be from each.
struct NaiveProduct {
  std::vector<float> values, bounds;
};
NaiveProduct MultiplyNaively(const ExpertWeights& stored, size_t expert,
                             const ConstAnyRows& rows, size_t first,
                             size_t count);

// One expert's bytes as WeightLayout::kPacked says.
std::vector<uint8_t> PackNaively(const ExpertWeights& stored, size_t expert);

// [rows, cols] of one expert's packed weights: code times scale, rounded to
// f32.
std::vector<float> DequantizePacked(const ExpertWeights& packed, size_t expert);

// GGML's block_q4_0 of [rows, cols] floats, row by row.
std::vector<uint8_t> QuantizeQ4_0Naively(const std::vector<float>& floats);

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_REFERENCE_MULTIPLY_H_
