// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_BASE_ROW_FORMAT_H_
#define SWITCHYARD_SRC_BASE_ROW_FORMAT_H_

#include <cstddef>

#include "switchyard/views.h"

namespace switchyard::internal {

// Returns the number of columns that share a scale in a row of `cols` columns
// with `scales` scales: all columns, or 32, 64 or 128. Returns 0 if none of
// these numbers fits.
constexpr size_t GroupOf(size_t cols, size_t scales) {
  if (scales == 1) return cols;
  for (size_t group = 32; group <= 128; group *= 2) {
    if ((cols + group - 1) / group == scales) return group;
  }
  return 0;
}

inline unsigned char* RowAt(const AnyMatrix& m, size_t row) {
  return static_cast<unsigned char*>(m.data) + BytesOf(m.type, row * m.stride);
}
inline const unsigned char* RowAt(const ConstAnyMatrix& m, size_t row) {
  return static_cast<const unsigned char*>(m.data) +
         BytesOf(m.type, row * m.stride);
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BASE_ROW_FORMAT_H_
