// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Rows of any type, and the types of rows that engines use with each kernel.

#ifndef SWITCHYARD_BENCH_ROWS_H_
#define SWITCHYARD_BENCH_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/inputs.h"
#include "switchyard/views.h"
#include "testing/formats.h"

namespace switchyard::bench {

using testing_support::Format;

// The types of the rows that a kernel reads and writes. The names are from
// testing/formats.h.
struct Types {
  const char* in;
  const char* out;
};

// The types to time for each kernel. The first entry is f32, the baseline of
// the other entries. Arguments that are not rows, such as weights, are always
// f32. kRouteTypes has the types of the logits.
constexpr Types kRouteTypes[] = {
    {"f32", "f32"}, {"bf16", "bf16"}, {"f16", "f16"}};
constexpr Types kGatherTypes[] = {
    {"f32", "f32"}, {"bf16", "bf16"}, {"f32", "bf16"},
    {"bf16", "i8"}, {"bf16", "q8_0"}, {"bf16", "f8e4m3"},
    {"f32", "i8"},  {"f32", "q8_0"},  {"f32", "f8e4m3"},
};
constexpr Types kActivateTypes[] = {
    {"f32", "f32"},         {"bf16", "bf16"},
    {"f16", "f16"},         {"bf16", "i8"},
    {"bf16", "i8 of 128"},  {"bf16", "q8_0"},
    {"bf16", "q8_1"},       {"bf16", "q8_k"},
    {"bf16", "f8e4m3"},     {"bf16", "f8e4m3 of 128"},
    {"bf16", "mxfp8 e4m3"}, {"f32", "i8"},
    {"f32", "q8_0"},        {"f32", "f8e4m3"},
};
// For Combine: the type of the rows, the residual and their sum, and the type
// of the normed rows.
constexpr Types kCombineTypes[] = {
    {"f32", "f32"}, {"bf16", "bf16"}, {"f16", "f16"},
    {"f32", "i8"},  {"bf16", "i8"},   {"bf16", "f8e4m3"},
};

constexpr Types kF32 = {"f32", "f32"};
bool IsF32(const Types& types);
// Returns the types as contenders' names have them: "bf16", "f32-bf16",
// "bf16-i8_128", or "" for f32.
std::string Text(const Types& types);

// True if `cols` columns are whole blocks of the output type.
bool Fit(const Types& types, size_t cols);
// True if the output type differs from the input type.
bool Converts(const Types& types);
// Returns the ISAs on which to time these types: all ISAs for f32, and
// MainIsas() for other types.
std::vector<Isa> IsasFor(const Types& types);

// Rows in a format of quantize.h. Each part starts on a cache line.
class Rows {
 public:
  Rows(const char* format, size_t rows, size_t cols);
  // Returns rows with the numbers of Floats(), rounded to the format, which
  // must hold numbers.
  static Rows Make(const char* format, size_t rows, size_t cols,
                   uint32_t stream);

  const Format& format() const { return format_; }
  // True if the format holds numbers, not codes or blocks.
  bool IsNumbers() const { return format_.IsSource() && format_.group == 0; }
  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }
  // RowBytes() returns the number of bytes of a row, including scales and sums.
  // CodeBytes() leaves out scales and sums.
  size_t RowBytes() const;
  size_t CodeBytes() const { return BytesOf(format_.type, cols_); }

  ConstAnyRows In(size_t first, size_t count) const;
  ConstAnyRows In() const { return In(0, rows_); }
  AnyRows Out(size_t first, size_t count);
  AnyRows Out() { return Out(0, rows_); }
  // Returns a pointer to the start of row `row`.
  template <class T = void>
  T* Data(size_t row = 0) {
    return static_cast<T*>(Out(row, 0).data);
  }
  template <class T = void>
  const T* Data(size_t row = 0) const {
    return static_cast<const T*>(In(row, 0).data);
  }
  testing_support::FormatRows Bytes() const { return {format_, In()}; }
  // Returns the values as f32, which is exact.
  std::vector<float> Values(size_t first, size_t count) const;
  std::vector<float> Values() const { return Values(0, rows_); }

  // Appends these rows to the outputs: codes, then scales, then sums. `want`
  // has the expected rows of all slots. `close` has the expected values for
  // comparisons within a tolerance. If the format holds numbers and `close` is
  // not empty, contenders without same_bits, and all contenders with f32 rows,
  // are compared with `close` instead of `want`.
  void AddWanted(const testing_support::FormatRows& want,
                 const std::vector<double>& close,
                 std::vector<Output>* outputs);

 private:
  template <class Any, class Byte>
  Any View(Byte* codes, Byte* scales, Byte* sums, size_t first,
           size_t count) const;

  Format format_;
  size_t rows_, cols_;
  Aligned<uint8_t> codes_, scales_, sums_;
};

// Returns the indices of all outputs: first `before` other outputs, then the
// outputs that rows in `format` have.
std::vector<size_t> AllOutputs(const char* format, size_t before = 0);

}  // namespace switchyard::bench

#endif  // SWITCHYARD_BENCH_ROWS_H_
