// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TESTING_DIGEST_H_
#define SWITCHYARD_TESTING_DIGEST_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/views.h"
#include "testing/inputs.h"

namespace switchyard::testing_support {

// FNV-1a over 32-bit words. After each word the hash is also shifted, which
// plain FNV-1a does not do.
class Digest {
 public:
  void Add(uint32_t word) {
    value_ = (value_ ^ word) * 0x100000001B3u;
    value_ ^= value_ >> 29;
  }
  // Counts every NaN as 0x7FC00000, because the library does not promise a
  // NaN's sign and payload.
  void Add(float value) { Add(CanonicalBits(value)); }
  void Add(int32_t value) { Add(static_cast<uint32_t>(value)); }
  // Adds the shape and the elements; a Span counts as one row.
  void Add(Matrix<const float> m) { AddMatrix(m); }
  void Add(Matrix<const int32_t> m) { AddMatrix(m); }
  void Add(Span<const float> s) { AddMatrix<float>({s.data, 1, s.size}); }
  void Add(Span<const int32_t> s) { AddMatrix<int32_t>({s.data, 1, s.size}); }

  uint64_t value() const { return value_; }

 private:
  template <class T>
  void AddMatrix(const Matrix<const T>& m) {
    Add(static_cast<uint32_t>(m.rows));
    Add(static_cast<uint32_t>(m.cols));
    for (size_t r = 0; r < m.rows; ++r) {
      for (size_t c = 0; c < m.cols; ++c) Add(m.Row(r)[c]);
    }
  }

  uint64_t value_ = 0xCBF29CE484222325u;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_DIGEST_H_
