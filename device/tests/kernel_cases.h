// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes a valid dispatch of each built-in kernel from the library's tables.
// Tests change this dispatch to cause errors.

#ifndef SWITCHYARD_DEVICE_TESTS_KERNEL_CASES_H_
#define SWITCHYARD_DEVICE_TESTS_KERNEL_CASES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "device/src/builtin/built_in.h"
#include "device/tests/raw_bytes.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"

namespace switchyard::testing_support {

struct Arg {
  const char* name;
  size_t index;
  size_t rows, cols;
  bool read, written;
  Type type;

  size_t Element() const { return SizeOf(type); }
  size_t Bytes() const { return Element() * rows * cols; }
  // Returns `bytes` bytes of equal elements: `value` if the type is a
  // floating-point type, otherwise 1.
  RawBytes Numbers(float value, size_t bytes) const {
    const size_t count = bytes / Element();
    if (type == Type::kI32 || type == Type::kU32) {
      return Recast<unsigned char>(std::vector<int32_t>(count, 1));
    }
    return ToBytes(type, std::vector<float>(count, value));
  }
};

struct KernelCase {
  const BuiltIn* kernel;
  std::vector<int32_t> params;  // the words of the parameter struct
  std::vector<Arg> args;
  Size grid;
  size_t width;  // the number of threads per threadgroup

  // The default dimensions are in descending order, because the library's
  // tables list experts before top_k, and row_stride before pairs. The case
  // is valid only if experts >= top_k and row_stride >= pairs.
  explicit KernelCase(const BuiltIn& k,
                      std::vector<int32_t> dimensions = {5, 4, 3, 2, 1})
      : kernel(&k), params(k.params.bytes / 4) {
    size_t factors[kFactors] = {};
    factors[kOne] = 1;
    factors[kThree] = factors[kGridWidth] = 3;
    factors[kUnlimited] = SIZE_MAX;
    for (size_t i = 0; i < kMaxDimensions; ++i) {
      const Dimension& d = k.dimensions[i];
      if (d.name == nullptr) break;
      params[Word(d)] = d.kind == Dimension::kFlag ? std::min(1, dimensions[i])
                                                   : dimensions[i];
      factors[i] = static_cast<size_t>(params[Word(d)]);
    }
    const auto product = [&](const Extent& e) {
      return factors[e.factors[0]] * factors[e.factors[1]];
    };
    for (const Argument& a : k.arguments) {
      if (a.name == nullptr) break;
      args.push_back({a.name, a.index, product(a.rows), product(a.cols),
                      a.usage != Usage::kWrite, a.usage != Usage::kRead,
                      a.type});
    }
    const size_t rows = factors[k.grid.rows], cols = factors[k.grid.cols];
    grid = OverRows() ? Size(rows, 1, 1) : Size((cols + 255) / 256, rows, 1);
    width = std::min<size_t>(k.grid.threads, factors[k.grid.threads_at_most]);
  }

  const char* name() const { return kernel->name; }
  bool OverRows() const { return kernel->grid.kind == Grid::kRows; }
  bool OfOneRow() const { return kernel->grid.rows == kOne; }
  static size_t Word(const Dimension& d) { return d.offset / 4; }
};
inline std::ostream& operator<<(std::ostream& os, const KernelCase& c) {
  return os << c.name();
}

inline const std::vector<KernelCase>& KernelCases() {
  static const std::vector<KernelCase> cases = [] {
    std::vector<KernelCase> all;
    for (const BuiltInTable& table : BuiltInTables()) {
      for (size_t i = 0; i < table.size; ++i) all.emplace_back(table.data[i]);
    }
    return all;
  }();
  return cases;
}

inline std::string KernelName(const testing::TestParamInfo<KernelCase>& test) {
  return test.param.name();
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_DEVICE_TESTS_KERNEL_CASES_H_
