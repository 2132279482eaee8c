// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Built-in kernels as data: what each binds, the grid it runs over, and a call
// of the plain API. driver.cc does the rest for all of them; the tests walk the
// same tables.

#ifndef SWITCHYARD_DEVICE_SRC_BUILTIN_BUILT_IN_H_
#define SWITCHYARD_DEVICE_SRC_BUILTIN_BUILT_IN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "device/src/core/running_dispatch.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard::device {

// A type of stored rows, and how the names of kernels say it.
struct RowType {
  Type type;
  const char* suffix;
};
constexpr RowType kRowTypes[] = {
    {Type::kF32, "_f32"},
    {Type::kF16, "_f16"},
    {Type::kBF16, "_bf16"},
};

// A stem and the suffix of a row type, in one text.
class KernelName {
 public:
  constexpr KernelName() = default;
  constexpr KernelName(const char* stem, Type rows) {
    size_t length = Append(0, stem);
    for (const RowType& row : kRowTypes) {
      if (row.type == rows) length = Append(length, row.suffix);
    }
  }
  constexpr operator const char*() const { return text_; }  // NOLINT

 private:
  constexpr size_t Append(size_t length, const char* text) {
    while (*text != '\0') text_[length++] = *text++;
    return length;
  }
  char text_[48] = {};
};

// A field of the parameter struct that the driver reads.
struct Dimension {
  enum Kind : uint8_t {
    kSigned,    // 0 to 2^31 - 1
    kUnsigned,  // the same: on Metal, products of larger ones wrap
    kPositive,  // as kUnsigned, and not 0
    kFlag,      // any bits; true if they are not 0
  };
  const char* name = nullptr;  // null: there is none
  uint8_t offset = 0;
  Kind kind = kSigned;
};
template <class T>
constexpr Dimension::Kind kKindOf =
    std::is_signed_v<T> ? Dimension::kSigned : Dimension::kUnsigned;
#define SWITCHYARD_DIMENSION(Params, field) \
  SWITCHYARD_DIMENSION_OF(Params, field, kKindOf<decltype(Params::field)>)
#define SWITCHYARD_DIMENSION_OF(Params, field, kind) \
  Dimension { #field, offsetof(Params, field), kind }

// A size in a shape is the place of a dimension in BuiltIn::dimensions, or one
// of these.
constexpr size_t kMaxDimensions = 5;
constexpr uint8_t kOne = kMaxDimensions;
constexpr uint8_t kThree = kOne + 1;  // of an indirect dispatch's arguments
constexpr uint8_t kGridWidth = kThree + 1;      // in threadgroups
constexpr uint8_t kUnlimited = kGridWidth + 1;  // SIZE_MAX
constexpr size_t kFactors = kUnlimited + 1;

// The product of two factors.
struct Extent {
  uint8_t factors[2] = {kOne, kOne};
  constexpr Extent(uint8_t a, uint8_t b = kOne) : factors{a, b} {}
};

enum class Usage : uint8_t { kRead, kWrite, kReadWrite };

// A dense matrix, bound at an index.
struct Argument {
  uint8_t index = 0;
  const char* name = nullptr;  // null: there is none
  Type type = Type::kF32;
  Extent rows = kOne;
  Extent cols = kOne;
  Usage usage = Usage::kRead;
  uint8_t only_with = kOne;  // left out if this is 0
};
constexpr size_t kMaxArguments = 6;

// Which part of the shapes a grid covers: `rows` and `cols` are cut off where
// it ends, in every argument that has them.
struct Grid {
  enum Kind : uint8_t {
    kRows,   // in x a threadgroup per row
    kTiles,  // in x a thread per column, in y a threadgroup per row
  };
  Kind kind = kRows;
  uint8_t rows = kOne;  // kOne: more than one threadgroup would race on Metal
  uint8_t cols = kOne;
  uint16_t threads = 256;                // per threadgroup
  uint8_t threads_at_most = kUnlimited;  // fewer of them if this is smaller
};

// The binding of the parameter struct.
struct ParamsBinding {
  uint8_t index;
  uint8_t bytes;
};
constexpr size_t kMaxParamsBytes = 32;
template <class Params>
constexpr ParamsBinding ParamsAt(uint8_t index) {
  static_assert(sizeof(Params) <= kMaxParamsBytes);
  return {index, sizeof(Params)};
}

struct Operands;

struct BuiltIn {
  KernelName name;
  ParamsBinding params;
  Dimension dimensions[kMaxDimensions];
  Argument arguments[kMaxArguments];
  Grid grid;
  // Calls the plain API. What it returns, and what it tells
  // operands.running.Fail(), is the dispatch's error.
  Status (*call)(const Operands& operands);
};

// kernels_over(type) for each of kRowTypes, one after the other.
template <size_t N>
constexpr auto OverEveryRowType(
    std::array<BuiltIn, N> (*kernels_over)(Type type)) {
  std::array<BuiltIn, N * std::size(kRowTypes)> all = {};
  size_t count = 0;
  for (const RowType& row : kRowTypes) {
    for (const BuiltIn& kernel : kernels_over(row.type)) all[count++] = kernel;
  }
  return all;
}

// A dispatch of a built-in kernel when all has been checked: its arguments, of
// which only the part that the grid covers is left.
struct Operands {
  RunningDispatch& running;
  unsigned char params[kMaxParamsBytes];
  size_t factors[kFactors];  // cut to the grid
  AnyMatrix views[kMaxArguments];

  // The i-th of BuiltIn::arguments; without data if it is left out.
  const AnyMatrix& operator[](size_t i) const { return views[i]; }
  template <class P>
  P Params() const {
    P p;
    std::memcpy(&p, params, sizeof(p));
    return p;
  }
};

// Each <stem>.cc has its kernels in one, which it returns from a function named
// <stem>_kernels: CMakeLists.txt tells driver.cc which there are.
using BuiltInTable = Span<const BuiltIn>;
Span<const BuiltInTable> BuiltInTables();

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_BUILTIN_BUILT_IN_H_
