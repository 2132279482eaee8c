// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// expert_weights.h by its definitions, one weight at a time: products, packed
// bytes, weights of floats. And random weights and rows of every format.

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

// A random scale: any bits, or finite and from 1/64 to 4 in size.
Float16 RandomScale(uint32_t seed, size_t i, bool any);
float RandomFloatScale(uint32_t seed, size_t i, bool any);

// Any codes. Scales are any or, if not `any`, from 1/64 to 4.
WeightBytes RandomWeights(WeightFormat format, size_t num_experts, size_t rows,
                          size_t cols, uint32_t seed, bool any);
// Formats of rows that products read.
constexpr Format kProductRows[] = {
    {"i8", Type::kI8, kWholeRow}, {"i8 of 32", Type::kI8, 32},
    {"i8 of 64", Type::kI8, 64},  {"i8 of 128", Type::kI8, 128},
    {"q8_0", Type::kQ8_0},        {"q8_k", Type::kQ8_K},
    {"f32", Type::kF32},          {"bf16", Type::kBF16},
    {"f16", Type::kF16}};
bool Takes(WeightFormat format, const Format& rows);
// OperandsOf() that format.
Format ProductRowsOf(WeightFormat format);
// Columns are a multiple of it: of a block of weights and of rows; 1 for int8.
size_t ColumnsStep(WeightFormat format, const Format& rows);

// Rows that products read: any codes, and scales as above. `format` is one of
// kProductRows.
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

// Stored weights of floats: any format but kInt8 and kQ8_0, which are
// Quantize()'s.
std::vector<uint8_t> QuantizeWeightsNaively(WeightFormat format,
                                            const std::vector<float>& floats);

// One weight of a stored row, by the format's definition.
struct StoredFormat {
  WeightFormat format;
  size_t block;     // columns
  size_t bytes;     // of a block
  size_t codes_at;  // bytes before its codes
  size_t codes;     // bytes of codes

  // The integer that is multiplied.
  int Code(const uint8_t* row, size_t k) const;
  // Or the float.
  float Float(const uint8_t* row, size_t k) const;
  // The integers of the part that column k lies in: its scale (1 if the format
  // has none), and its minimum.
  int Factor(const uint8_t* row, size_t k) const;
  int Min(const uint8_t* row, size_t k) const;
  // The scales of k's block, for the product of integers; not of kInt8.
  float Scale(const uint8_t* row, size_t k) const;
  float MinScale(const uint8_t* row, size_t k) const;
  const uint8_t* Row(const ExpertWeights& w, size_t expert, size_t row) const;
};
StoredFormat StoredFormatOf(WeightFormat format);
bool IsFloatFormat(WeightFormat format);
Type FloatTypeOf(WeightFormat format);
// Rows may end within a block.
bool HasAnyColumns(WeightFormat format);

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_REFERENCE_MULTIPLY_H_
