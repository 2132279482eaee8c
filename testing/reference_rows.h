// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Converts rows element by element, as the formats are defined. Every ISA has
// to give the same bits.

#ifndef SWITCHYARD_TESTING_REFERENCE_ROWS_H_
#define SWITCHYARD_TESTING_REFERENCE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "testing/floats.h"
#include "testing/formats.h"

namespace switchyard::reference {

using testing_support::Format;
using testing_support::FormatRows;

// Converts `rows` to f32. IsSource() must be true for their format.
std::vector<float> Dequantize(const FormatRows& rows);
// Quantises f32 values [rows, cols].
FormatRows Quantize(const std::vector<float>& values, size_t rows, size_t cols,
                    const Format& to);
// Quantises rows of any source format, or copies rows of the same format.
FormatRows Quantize(const FormatRows& rows, const Format& to);

// Gathers rows[indices[i]]; an index outside of `rows` gives a row of zeros.
FormatRows Pick(const FormatRows& rows, const std::vector<int64_t>& indices);

}  // namespace switchyard::reference

#endif  // SWITCHYARD_TESTING_REFERENCE_ROWS_H_
