// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes rows of the formats of quantize.h for the corpus.

#ifndef SWITCHYARD_TOOLS_CORPUS_FORMAT_ROWS_H_
#define SWITCHYARD_TOOLS_CORPUS_FORMAT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "testing/formats.h"
#include "tools/corpus/corpus.h"

namespace switchyard::corpus {

using testing_support::Format;
using testing_support::FormatRows;
using testing_support::kFormats;

// Rows in their own memory, not aligned to vectors. After each row there is a
// gap of `gap` elements. A block counts as one element.
class FormatMemory {
 public:
  FormatMemory(const Format& format, size_t rows, size_t cols, size_t gap)
      : format_(format) {
    view_ = testing_support::MapRows(
        format, rows, cols, [&](Type type, size_t n, size_t columns) {
          const size_t stride = columns + gap * BlockOf(type);
          std::vector<uint8_t>& part =
              parts_.emplace_back(SizeOf(type) + n * BytesOf(type, stride));
          void* const data = part.data() + SizeOf(type);
          return AnyMatrix(data, type, n, columns, stride);
        });
  }

  const AnyRows& view() const { return view_; }
  void AddTo(Digest& digest) const {
    for (const uint32_t word : FormatRows(format_, view_).Words()) {
      digest.Add(word);
    }
  }

 private:
  Format format_;
  std::deque<std::vector<uint8_t>> parts_;
  AnyRows view_;
};

// Returns the bits of an element. Rows take turns: they have numbers around
// 1, numbers from 2^-14 to 4, and any bits.
inline uint32_t AnyElement(Type type, uint32_t seed, size_t row, size_t i) {
  const uint32_t hash = Hash(seed, i);
  const float plain = Uniform(seed, i, 16.0f);
  switch (type) {
    case Type::kF32:
    case Type::kBF16: {
      const uint32_t bits = row % 3 == 0   ? testing_support::Bits(plain)
                            : row % 3 == 1 ? (hash & 0x87FFFFFF) + 0x38800000
                                           : hash;
      return type == Type::kF32 ? bits : bits >> 16;
    }
    case Type::kF16:  // no infinities and NaNs, or any bits
      return (row % 3 == 2 ? hash : hash & 0xBFFF) & 0xFFFF;
    default:
      return hash;
  }
}

inline void FillMatrix(const AnyMatrix& m, uint32_t seed) {
  const size_t size = SizeOf(m.type);
  for (size_t r = 0; r < m.rows; ++r) {
    for (size_t c = 0; c < m.cols / BlockOf(m.type); ++c) {
      uint8_t* const to = static_cast<uint8_t*>(m.RowRange(r, r + 1).data);
      for (size_t word = 0; word * 4 < size; ++word) {
        const uint32_t bits = AnyElement(
            m.type, seed + static_cast<uint32_t>(word), r, r * m.cols + c);
        std::memcpy(to + c * size + word * 4, &bits,
                    size - word * 4 < 4 ? size - word * 4 : 4);
      }
    }
  }
}

// Fills rows with numbers that can be converted, or with blocks of any bytes.
inline void Fill(const AnyRows& rows, uint32_t seed) {
  FillMatrix(rows, seed);
  FillMatrix(rows.scales, seed + 1);
  FillMatrix(rows.sums, seed + 2);
}

}  // namespace switchyard::corpus

#endif  // SWITCHYARD_TOOLS_CORPUS_FORMAT_ROWS_H_
