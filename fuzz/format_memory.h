// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes rows in the formats of quantize.h from a fuzzer's bytes.

#ifndef SWITCHYARD_FUZZ_FORMAT_MEMORY_H_
#define SWITCHYARD_FUZZ_FORMAT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/call.h"
#include "testing/formats.h"
#include "testing/reference_rows.h"

namespace switchyard::fuzz {

using testing_support::Format;
using testing_support::FormatRows;
using testing_support::kFormats;

// Two formats. Rows in `from` can be converted to `to`.
struct Conversion {
  explicit Conversion(Bytes& bytes)
      : from(kFormats[bytes.Below(std::size(kFormats))]),
        to(bytes.Flag() ? from : kFormats[bytes.Below(std::size(kFormats))]) {
    if (!from.IsSource() && !from.CopiesTo(to, 1)) from = kFormats[0];
  }
  size_t Cols(size_t cols) const { return to.Cols(cols); }

  Format from, to;
};

// Reads floats from `bytes` and quantises them to the format. Then replaces up
// to 7 bytes of the codes, up to 7 of the scales and up to 7 of the sums by any
// bytes.
inline FormatRows ReadRows(Bytes& bytes, const Format& format, size_t rows,
                           size_t cols) {
  FormatRows values =
      reference::Quantize(bytes.Floats(rows * cols), rows, cols, format);
  for (std::vector<uint8_t>* part :
       {&values.codes, &values.scales, &values.sums}) {
    for (size_t n = bytes.Below(8); n > 0 && !part->empty(); --n) {
      const size_t at = bytes.Below(part->size());
      (*part)[at] = bytes.Byte();
    }
  }
  return values;
}

// Rows, their scales and their sums. Each of these parts is a Memory.
class FormatMemory {
 public:
  FormatMemory(Bytes& bytes, const Format& format, size_t rows, size_t cols)
      : format_(format) {
    view_ = testing_support::MapRows(
        format, rows, cols, [&](Type type, size_t n, size_t columns) {
          return parts_.emplace_back(bytes, type, n, columns).view();
        });
  }
  FormatMemory(Bytes& bytes, const FormatRows& values)
      : FormatMemory(bytes, values.format, values.rows, values.cols) {
    testing_support::Store(values, view_);
    for (Memory& part : parts_) part.Keep();
  }

  const AnyRows& view() const { return view_; }
  FormatRows Values() const { return FormatRows(format_, view_); }

  void CheckUntouched(const char* name) const {
    for (const Memory& part : parts_) part.CheckUntouched(name);
  }

 private:
  Format format_;
  std::deque<Memory> parts_;
  AnyRows view_;
};

// Checks that `memory` holds the reference's rows. If `copied`, all
// bytes of codes and scales have to be equal. If rows have no columns, a call
// writes nothing, not even scales.
inline void CheckRows(const FormatMemory& memory, const FormatRows& right,
                      bool copied) {
  if (right.cols == 0) return memory.CheckUntouched("rows");
  const FormatRows actual = memory.Values();
  FUZZ_CHECK(actual.Words() == right.Words(), "rows");
  if (!copied) return;
  FUZZ_CHECK(actual.codes == right.codes, "copied rows");
  FUZZ_CHECK(actual.scales == right.scales, "copied scales");
}

}  // namespace switchyard::fuzz

#endif  // SWITCHYARD_FUZZ_FORMAT_MEMORY_H_
