// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Naive implementations of the definitions in expert_weights.h, which handle
// one weight at a time: products, packed bytes and quantisation. Also makes
// random weights and rows of every format.

#ifndef SWITCHYARD_TESTING_REFERENCE_MULTIPLY_H_
#define SWITCHYARD_TESTING_REFERENCE_MULTIPLY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "switchyard/expert_weights.h"
#include "switchyard/views.h"
#include "testing/formats.h"

namespace switchyard::testing_support {

// Stored weights and their memory.
struct WeightBytes {
  WeightFormat format = WeightFormat::kQ8_0;
  size_t num_experts = 0, rows = 0, cols = 0;
  std::vector<uint8_t> data;
  std::vector<float> scales;  // kInt8

  ExpertWeights View() const;
};

// Returns a random scale. If `any` is true, the scale may be any bit pattern.
// Otherwise it is finite, and its magnitude is from 1/64 to 4.
Float16 RandomScale(uint32_t seed, size_t i, bool any);
float RandomFloatScale(uint32_t seed, size_t i, bool any);

// Returns random weights, whose codes may be any bit patterns. If `any` is
// true, the scales may also be any bit patterns. Otherwise their magnitudes
// are from 1/64 to 4.
WeightBytes RandomWeights(WeightFormat format, size_t num_experts, size_t rows,
                          size_t cols, uint32_t seed, bool any);
// The formats of rows that products can read.
constexpr Format kProductRows[] = {
    {"i8", Type::kI8, kWholeRow}, {"i8 of 32", Type::kI8, 32},
    {"i8 of 64", Type::kI8, 64},  {"i8 of 128", Type::kI8, 128},
    {"q8_0", Type::kQ8_0},        {"q8_k", Type::kQ8_K},
    {"f32", Type::kF32},          {"bf16", Type::kBF16},
    {"f16", Type::kF16}};
bool Takes(WeightFormat format, const Format& rows);
// Returns the format that OperandsOf() returns for weights of `format`.
Format ProductRowsOf(WeightFormat format);
// Returns a common multiple of the block sizes of the weights and of the
// rows. The number of columns has to be a multiple of the result, which is 1
// for int8.
size_t ColumnsStep(WeightFormat format, const Format& rows);

// Returns rows for products. `format` is one of kProductRows. Codes are
// random numbers of at least `least`, and scales are as in RandomWeights().
// If no code is -128, some ISAs multiply bytes by faster code (ByteDot in
// src/simd/dot-inl.h).
FormatRows RandomOperands(const Format& format, size_t rows, size_t cols,
                          uint32_t seed, bool any, int8_t least = -128);

// Columns [first, first + count) of the product of all rows, and for each
// value the largest error that an ISA without FMA may make.
struct NaiveProduct {
  std::vector<float> values, bounds;
};
NaiveProduct MultiplyNaively(const ExpertWeights& stored, size_t expert,
                             const ConstAnyRows& rows, size_t first,
                             size_t count);

// Returns the bytes of one expert in the layout WeightLayout::kPacked.
std::vector<uint8_t> PackNaively(const ExpertWeights& stored, size_t expert);

// Decodes one expert's packed weights in f32 arithmetic, and returns them as
// [rows, cols].
std::vector<float> DequantizePacked(const ExpertWeights& packed, size_t expert);

// Quantises floats to stored weights of any format except kInt8 and kQ8_0,
// which Quantize() makes.
std::vector<uint8_t> QuantizeWeightsNaively(WeightFormat format,
                                            const std::vector<float>& floats);

// The layout of a format's blocks, and how to read one weight of a stored
// row.
struct StoredFormat {
  WeightFormat format;
  size_t block;     // the columns of a block
  size_t bytes;     // the bytes of a block
  size_t codes_at;  // the offset of the codes in a block, in bytes
  size_t codes;     // the bytes of a block's codes

  // Returns the integer of a weight. Only formats with codes have integers.
  int Code(const uint8_t* row, size_t k) const;
  // Returns a weight of a format of floats.
  float Float(const uint8_t* row, size_t k) const;
  // Return the integer scale (1 if the format has none) and the integer
  // minimum of the part of a block that contains column k.
  int Factor(const uint8_t* row, size_t k) const;
  int Min(const uint8_t* row, size_t k) const;
  // Return the scales of the block that contains column k. The integer
  // products are multiplied by these scales. kInt8 has no such scales.
  float Scale(const uint8_t* row, size_t k) const;
  float MinScale(const uint8_t* row, size_t k) const;
  const uint8_t* Row(const ExpertWeights& w, size_t expert, size_t row) const;
};
StoredFormat StoredFormatOf(WeightFormat format);
bool IsFloatFormat(WeightFormat format);
Type FloatTypeOf(WeightFormat format);
// True if rows may end within a block.
bool HasAnyColumns(WeightFormat format);

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_REFERENCE_MULTIPLY_H_
