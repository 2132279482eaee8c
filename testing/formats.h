// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tables of formats from quantize.h, and rows of any format as bytes. Tests,
// fuzzers and the corpus use this file for converted rows.

#ifndef SWITCHYARD_TESTING_FORMATS_H_
#define SWITCHYARD_TESTING_FORMATS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "switchyard/types.h"
#include "switchyard/views.h"
#include "testing/inputs.h"

namespace switchyard::testing_support {

constexpr size_t kWholeRow = SIZE_MAX;

struct Format {
  const char* name;
  Type type;
  size_t group = 0;  // the number of columns for each scale; 0: no scales
  Type scales = Type::kF32;
  bool sums = false;

  size_t NumScales(size_t cols) const {
    if (group == 0) return 0;
    return group == kWholeRow ? 1 : (cols + group - 1) / group;
  }
  // Rounds `cols` up to whole blocks of the format.
  size_t Cols(size_t cols) const {
    const size_t block = BlockOf(type);
    return (cols + block - 1) / block * block;
  }
  // True if rows of the format can be converted to other formats. Other rows
  // can only be copied.
  bool IsSource() const { return BlockOf(type) == 1 && scales != Type::kE8M0; }
  // True if Quantize() copies the codes and scales of rows with `cols`
  // columns to the format `to`. Quantize() may drop sums while it copies. If
  // only `to` has sums, Quantize() does not copy the codes, but computes them
  // again. A group that is at least as long as the row counts as a whole row.
  bool CopiesTo(const Format& to, size_t cols) const {
    return type == to.type && scales == to.scales &&
           NumScales(cols) == to.NumScales(cols) && (sums || !to.sums);
  }
};

constexpr Format kFormats[] = {
    {"f32", Type::kF32},
    {"bf16", Type::kBF16},
    {"f16", Type::kF16},
    {"i8", Type::kI8, kWholeRow},
    {"i8 sums", Type::kI8, kWholeRow, Type::kF32, true},
    {"i8 of 32", Type::kI8, 32},
    {"i8 of 64 sums", Type::kI8, 64, Type::kF32, true},
    {"i8 of 128", Type::kI8, 128},
    {"u8", Type::kU8, kWholeRow},
    {"u8 sums", Type::kU8, kWholeRow, Type::kF32, true},
    {"u8 of 32 sums", Type::kU8, 32, Type::kF32, true},
    {"u8 of 64", Type::kU8, 64},
    {"u8 of 128 sums", Type::kU8, 128, Type::kF32, true},
    {"f8e4m3", Type::kF8E4M3, kWholeRow},
    {"f8e4m3 of 32", Type::kF8E4M3, 32},
    {"f8e4m3 of 64", Type::kF8E4M3, 64},
    {"f8e4m3 of 128", Type::kF8E4M3, 128},
    {"f8e5m2", Type::kF8E5M2, kWholeRow},
    {"f8e5m2 of 32", Type::kF8E5M2, 32},
    {"f8e5m2 of 64", Type::kF8E5M2, 64},
    {"f8e5m2 of 128", Type::kF8E5M2, 128},
    {"mxfp8 e4m3", Type::kF8E4M3, 32, Type::kE8M0},
    {"mxfp8 e5m2", Type::kF8E5M2, 32, Type::kE8M0},
    {"q8_0", Type::kQ8_0},
    {"q8_1", Type::kQ8_1},
    {"q8_k", Type::kQ8_K},
};
constexpr Format kF32Rows = kFormats[0];

// Returns `bits` with all NaNs of `type` replaced by the same bits, for
// digests and comparisons.
inline uint32_t CanonicalBits(Type type, uint32_t bits) {
  switch (type) {
    case Type::kF32:
      return CanonicalBits(FromBits(bits));
    case Type::kBF16:
      return (bits & 0x7FFF) > 0x7F80 ? 0x7FC0 : bits;
    case Type::kF16:
      return (bits & 0x7FFF) > 0x7C00 ? 0x7E00 : bits;
    default:
      return bits;
  }
}

// Contiguous rows of a format, as bytes.
struct FormatRows {
  Format format;
  size_t rows, cols;
  std::vector<uint8_t> codes, scales, sums;

  // Makes rows of zeros.
  FormatRows(const Format& format_in, size_t rows_in, size_t cols_in)
      : format(format_in),
        rows(rows_in),
        cols(cols_in),
        codes(rows * BytesOf(format.type, cols)),
        scales(rows * BytesOf(format.scales, format.NumScales(cols))),
        sums(format.sums ? rows * 4 : 0) {}
  // Copies the rows of a view.
  FormatRows(const Format& format_in, const ConstAnyRows& view)
      : FormatRows(format_in, view.rows, view.cols) {
    Copy(view, codes.data());
    if (!scales.empty()) Copy(view.scales, scales.data());
    if (!sums.empty()) Copy(view.sums, sums.data());
  }

  size_t RowBytes(const std::vector<uint8_t>& bytes) const {
    return rows == 0 ? 0 : bytes.size() / rows;
  }

  // Returns all elements as words, with canonical NaNs.
  std::vector<uint32_t> Words() const {
    std::vector<uint32_t> words;
    const auto append = [&words](Type type, const uint8_t* from, size_t bytes) {
      const size_t size = SizeOf(type);
      for (size_t i = 0; i < bytes; i += size) {
        uint32_t bits = 0;
        std::memcpy(&bits, from + i, size);
        words.push_back(CanonicalBits(type, bits));
      }
    };
    // The type of the floats at the start of a block, and the number of bytes
    // that they take.
    struct Front {
      Type type;
      size_t bytes;
    };
    const Front front = format.type == Type::kQ8_0   ? Front{Type::kF16, 2}
                        : format.type == Type::kQ8_1 ? Front{Type::kF16, 4}
                        : format.type == Type::kQ8_K
                            ? Front{Type::kF32, 4}
                            : Front{format.type, SizeOf(format.type)};
    for (size_t i = 0; i < codes.size(); i += SizeOf(format.type)) {
      append(front.type, &codes[i], front.bytes);
      append(Type::kU8, &codes[i] + front.bytes,
             SizeOf(format.type) - front.bytes);
    }
    append(format.scales, scales.data(), scales.size());
    append(Type::kI32, sums.data(), sums.size());
    return words;
  }

 private:
  static void Copy(const ConstAnyMatrix& from, uint8_t* to) {
    const size_t bytes = BytesOf(from.type, from.cols);
    for (size_t r = 0; r < from.rows && bytes != 0; ++r, to += bytes) {
      std::memcpy(to, from.RowRange(r, r + 1).data, bytes);
    }
  }
};

// Makes a view of rows of `format`. For the codes, the scales and the sums of
// the rows, the function calls map(type, rows, cols), which returns their
// memory.
template <class Map>
AnyRows MapRows(const Format& format, size_t rows, size_t cols,
                const Map& map) {
  AnyRows view(map(format.type, rows, cols));
  if (format.group != 0) {
    view.scales = map(format.scales, rows, format.NumScales(cols));
  }
  if (format.sums) view.sums = map(Type::kI32, rows, size_t{1});
  return view;
}

// Copies `rows` to the memory of `view`, which has the same shape.
inline void Store(const FormatRows& rows, const AnyRows& view) {
  const auto copy = [](const std::vector<uint8_t>& from, const AnyMatrix& to) {
    const size_t bytes = BytesOf(to.type, to.cols);
    for (size_t r = 0; r < to.rows && bytes != 0; ++r) {
      std::memcpy(to.RowRange(r, r + 1).data, &from[r * bytes], bytes);
    }
  };
  copy(rows.codes, view);
  if (!rows.scales.empty()) copy(rows.scales, view.scales);
  if (!rows.sums.empty()) copy(rows.sums, view.sums);
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_FORMATS_H_
