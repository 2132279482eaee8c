// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Describes the built-in kernels as tables: their bindings, their grids, and
// a function that calls the plain API. driver.cc runs all kernels with these
// tables, and the tests use them, too.

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

// An element type of rows, and its suffix in kernel names.
struct RowType {
  Type type;
  const char* suffix;
};
constexpr RowType kRowTypes[] = {
    {Type::kF32, "_f32"},
    {Type::kF16, "_f16"},
    {Type::kBF16, "_bf16"},
};

// A kernel's name in one string: the stem, which is the same for all row
// types, and the suffix of a row type.
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

// A field of the parameter struct, and the values that are valid for it.
struct Dimension {
  enum Kind : uint8_t {
    kSigned,  // from 0 to 2^31 - 1
    // From 0 to 2^31 - 1, because products of larger values overflow on
    // Metal.
    kUnsigned,
    kPositive,  // like kUnsigned, but 0 is invalid
    kFlag,      // any bits are valid; true if not 0
  };
  const char* name = nullptr;  // null if this entry of the array is not used
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

// The sizes in shapes are products of factors. Each factor is stored as an
// index: an index below kMaxDimensions selects a value of
// BuiltIn::dimensions, and each of the constants below selects another value.
constexpr size_t kMaxDimensions = 5;
constexpr uint8_t kOne = kMaxDimensions;
// Stands for 3, the number of arguments of an indirect dispatch.
constexpr uint8_t kThree = kOne + 1;
constexpr uint8_t kGridWidth = kThree + 1;  // the grid's width in threadgroups
constexpr uint8_t kUnlimited = kGridWidth + 1;  // stands for SIZE_MAX
constexpr size_t kFactors = kUnlimited + 1;

// A size that is the product of two factors.
struct Extent {
  uint8_t factors[2] = {kOne, kOne};
  constexpr Extent(uint8_t a, uint8_t b = kOne) : factors{a, b} {}
};

enum class Usage : uint8_t { kRead, kWrite, kReadWrite };

// A dense matrix that a kernel expects at a binding's index.
struct Argument {
  uint8_t index = 0;
  const char* name = nullptr;  // null if this entry of the array is not used
  Type type = Type::kF32;
  Extent rows = kOne;
  Extent cols = kOne;
  Usage usage = Usage::kRead;
  uint8_t only_with = kOne;  // the argument is left out if this factor is 0
};
constexpr size_t kMaxArguments = 6;

// Says which part of the shapes a grid covers. The grid limits the values of
// the factors `rows` and `cols`. These values limit the shape of each argument
// that uses the factors.
struct Grid {
  enum Kind : uint8_t {
    kRows,   // one threadgroup per row, in x
    kTiles,  // one thread per column in x, one threadgroup per row in y
  };
  Kind kind = kRows;
  // kOne allows only one threadgroup, because several would race on Metal.
  uint8_t rows = kOne;
  uint8_t cols = kOne;
  uint16_t threads = 256;  // the threads per threadgroup
  // The index of a factor. If the value of the factor is below `threads`, a
  // threadgroup has this many threads instead.
  uint8_t threads_at_most = kUnlimited;
};

// The index and size of the parameter struct's binding.
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
  // Calls the plain API. An error in the returned status becomes the
  // dispatch's error, and so does a message passed to
  // operands.running.Fail().
  Status (*call)(const Operands& operands);
};

// Calls kernels_over(type) for each type of kRowTypes, and returns all
// kernels in one array.
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

// A dispatch of a built-in kernel that has passed all checks. Its arguments
// are reduced to the part that the grid covers.
struct Operands {
  RunningDispatch& running;
  unsigned char params[kMaxParamsBytes];
  size_t factors[kFactors];  // the values of factors, limited by the grid
  AnyMatrix views[kMaxArguments];

  // Returns the i-th of BuiltIn::arguments. Its data is null if the argument
  // was left out.
  const AnyMatrix& operator[](size_t i) const { return views[i]; }
  template <class P>
  P Params() const {
    P p;
    std::memcpy(&p, params, sizeof(p));
    return p;
  }
};

// Each <stem>.cc has a table of kernels, which its function <stem>_kernels
// returns. CMakeLists.txt passes the list of stems to driver.cc.
using BuiltInTable = Span<const BuiltIn>;
Span<const BuiltInTable> BuiltInTables();

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_BUILTIN_BUILT_IN_H_
