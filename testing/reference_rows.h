// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Conversions of rows once more, element by element from the definitions of the
// formats: the bits of every ISA.

#ifndef SWITCHYARD_TESTING_REFERENCE_ROWS_H_
#define SWITCHYARD_TESTING_REFERENCE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "testing/formats.h"

namespace switchyard::reference {

using testing_support::Format;
using testing_support::FormatRows;

// A binary float of fewer bits than f32, with denormals: code (e << m) + n
// stands for (2^m + n) * 2^(e - 1 + min_exponent - m), or where e is 0 for
// n * 2^(min_exponent - m).
struct SmallFloat {
  int mantissa_bits;
  int min_exponent;
  uint32_t sign;     // the bit
  uint32_t largest;  // the code of the largest number
  bool infinity;     // the code behind it; the others are NaNs
  bool saturates;    // when encoding
  uint32_t nan;      // the one that is encoded to

  // To nearest, ties to even.
  uint32_t Encode(double x) const;
  float Decode(uint32_t bits) const;
};
constexpr SmallFloat kBF16 = {7, -126, 0x8000, 0x7F7F, true, false, 0x7FC0};
constexpr SmallFloat kF16 = {10, -14, 0x8000, 0x7BFF, true, false, 0x7E00};
constexpr SmallFloat kF8E4M3 = {3, -6, 0x80, 0x7E, false, true, 0x7F};
constexpr SmallFloat kF8E5M2 = {2, -14, 0x80, 0x7B, true, true, 0x7F};

// `rows`, of a format that is a source, as f32.
std::vector<float> Dequantize(const FormatRows& rows);
// Quantises f32 values [rows, cols].
FormatRows Quantize(const std::vector<float>& values, size_t rows, size_t cols,
                    const Format& to);
// Quantises rows of any source, or copies those of the same format.
FormatRows Quantize(const FormatRows& rows, const Format& to);

// rows[i] for each i, and for one that is no row of `rows` zeros.
FormatRows Pick(const FormatRows& rows, const std::vector<int64_t>& indices);

}  // namespace switchyard::reference

#endif  // SWITCHYARD_TESTING_REFERENCE_ROWS_H_
