// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Built-in kernels as tables: their bindings, their grid, and a call of the
// plain API. driver.cc runs all of them by these tables; the tests use them,
// too.

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

// A type of stored rows and its suffix in kernel names.
struct RowType {
  Type type;
  const char* suffix;
};
constexpr RowType kRowTypes[] = {
    {Type::kF32, "_f32"},
    {Type::kF16, "_f16"},
    {Type::kBF16, "_bf16"},
};

// A stem and the suffix of a row type, in one string.
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

// A field of the parameter struct.
struct Dimension {
  enum Kind : uint8_t {
    kSigned,  // 0 to 2^31 - 1
    // 0 to 2^31 - 1, because products of larger values wrap on Metal.
    kUnsigned,
    kPositive,  // like kUnsigned, but not 0
    kFlag,      // any bits; true if not 0
  };
  const char* name = nullptr;  // null: an unused entry
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

// A size in a shape is an index into BuiltIn::dimensions, or one of these
// constants.
constexpr size_t kMaxDimensions = 5;
constexpr uint8_t kOne = kMaxDimensions;
// The size of an indirect dispatch's arguments.
constexpr uint8_t kThree = kOne + 1;
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
  const char* name = nullptr;  // null: an unused entry
  Type type = Type::kF32;
  Extent rows = kOne;
  Extent cols = kOne;
  Usage usage = Usage::kRead;
  uint8_t only_with = kOne;  // if this factor is 0, the argument is left out
};
constexpr size_t kMaxArguments = 6;

// The part of the shapes that a grid covers. `rows` and `cols` are factors
// that the grid limits, in every argument that uses them.
struct Grid {
  enum Kind : uint8_t {
    kRows,   // x: one threadgroup per row
    kTiles,  // x: one thread per column, y: one threadgroup per row
  };
  Kind kind = kRows;
  // kOne: one threadgroup, because more would race on Metal.
  uint8_t rows = kOne;
  uint8_t cols = kOne;
  uint16_t threads = 256;                // per threadgroup
  uint8_t threads_at_most = kUnlimited;  // a smaller factor reduces `threads`
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
  // Calls the plain API. The returned status and calls of
  // operands.running.Fail() become the dispatch's error.
  Status (*call)(const Operands& operands);
};

// The kernels of kernels_over(type) for each of kRowTypes, in one array.
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

// A dispatch of a built-in kernel after all checks. The arguments are cut to
// the part that the grid covers.
struct Operands {
  RunningDispatch& running;
  unsigned char params[kMaxParamsBytes];
  size_t factors[kFactors];  // cut to the grid
  AnyMatrix views[kMaxArguments];

  // The i-th of BuiltIn::arguments; its data is null if it was left out.
  const AnyMatrix& operator[](size_t i) const { return views[i]; }
  template <class P>
  P Params() const {
    P p;
    std::memcpy(&p, params, sizeof(p));
    return p;
  }
};

// Each <stem>.cc has a table of kernels, returned by its function
// <stem>_kernels. CMakeLists.txt passes the list of stems to driver.cc.
using BuiltInTable = Span<const BuiltIn>;
Span<const BuiltInTable> BuiltInTables();

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_BUILTIN_BUILT_IN_H_
