// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Conversions of rows once more, element by element from the definitions of the
// formats: the bits of every ISA.

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
