// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Rows of any type, and the types on which engines run each kernel.

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

// The types of the rows that a kernel reads and writes, by their names in
// testing/formats.h.
struct Types {
  const char* in;
  const char* out;
};

// The types to time. The first entry is f32, with which the others are
// compared. All other arguments, the weights and the norm's weights, are f32.
// For the router, these are the types of the logits.
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
// Returns the types as they are in contenders' names: "bf16", "f32-bf16",
// "bf16-i8_128", or "" for f32.
std::string Text(const Types& types);

// True if `cols` columns are whole blocks of the output type.
bool Fit(const Types& types, size_t cols);
// True if the output type differs from the input type.
bool Converts(const Types& types);
// Returns the ISAs on which to time these types: all ISAs for f32, and the
// main ones for other types.
std::vector<Isa> IsasFor(const Types& types);

// Rows in a format of quantize.h. Each part starts on a cache line.
class Rows {
 public:
  Rows(const char* format, size_t rows, size_t cols);
  // Returns rows in a format that holds numbers: the numbers of Floats(),
  // rounded.
  static Rows Make(const char* format, size_t rows, size_t cols,
                   uint32_t stream);

  const Format& format() const { return format_; }
  // True if the format holds numbers, not codes or blocks.
  bool IsNumbers() const { return format_.IsSource() && format_.group == 0; }
  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }
  // Returns the bytes of a row, including scales and sums. CodeBytes() leaves
  // these out.
  size_t RowBytes() const;
  size_t CodeBytes() const { return BytesOf(format_.type, cols_); }

  ConstAnyRows In(size_t first, size_t count) const;
  ConstAnyRows In() const { return In(0, rows_); }
  AnyRows Out(size_t first, size_t count);
  AnyRows Out() { return Out(0, rows_); }
  // Returns the data, beginning with `row`.
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

  // Adds these rows to the expected outputs: codes, then scales, then sums,
  // for all slots. The rows have to equal `want`. If the format holds numbers
  // and `close` is not empty, other contenders only have to be close to
  // `close`. f32 rows are then compared only with `close`.
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

// Returns the indices of all outputs: first `before` outputs, then those of
// rows in `format`.
std::vector<size_t> AllOutputs(const char* format, size_t before = 0);

}  // namespace switchyard::bench

#endif  // SWITCHYARD_BENCH_ROWS_H_
