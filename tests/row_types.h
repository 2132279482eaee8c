// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Helpers that repeat the tests of the f32 kernels on rows of every type. A
// kernel reads bf16 and f16 exactly, computes in f32 and rounds its results
// once. So on every ISA its result has the bits of the rounded f32 result.

#ifndef SWITCHYARD_TESTS_ROW_TYPES_H_
#define SWITCHYARD_TESTS_ROW_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

#include "src/calls/names.h"
#include "switchyard/views.h"
#include "testing/floats.h"
#include "testing/guarded_buffer.h"

namespace switchyard {

inline std::ostream& operator<<(std::ostream& os, Type type) {
  return os << calls::NameOf(type);
}

namespace testing_support {

constexpr Type kFloatTypes[] = {Type::kF32, Type::kBF16, Type::kF16};

// The types of a call's inputs and outputs.
struct InOut {
  Type in, out;
};
inline std::ostream& operator<<(std::ostream& os, const InOut& types) {
  return os << types.in << " to " << types.out;
}
constexpr InOut kF32s = {Type::kF32, Type::kF32};
inline std::vector<InOut> EveryInOut() {
  std::vector<InOut> all;
  for (const Type in : kFloatTypes) {
    for (const Type out : kFloatTypes) all.push_back({in, out});
  }
  return all;
}

// Guarded memory for rows of `type`. Sizes and slack are numbers of values.
class GuardedValues {
 public:
  GuardedValues(Type type, size_t rows, size_t cols, size_t stride = 0,
                size_t slack = 0, const std::vector<float>& values = {})
      : type_(type),
        rows_(rows),
        cols_(cols),
        stride_(stride == 0 ? cols : stride),
        memory_(rows, BytesOf(type, cols), BytesOf(type, stride_),
                slack / BlockOf(type) * SizeOf(type)) {
    for (size_t i = 0; i < values.size(); ++i) {
      RoundAt(type, values[i], view().Row<float>(0), Place(i));
    }
  }

  AnyMatrix view() const {
    return {static_cast<void*>(memory_.data()), type_, rows_, cols_, stride_};
  }
  // Returns the values. `type` must not be a block type.
  std::vector<float> Values() const {
    std::vector<float> values(rows_ * cols_);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = WidenAt(type_, memory_.data(), Place(i));
    }
    return values;
  }
  std::vector<unsigned char> Bytes() const { return memory_.Values(); }

  void ExpectIntact(const char* name) const { memory_.ExpectIntact(name); }
  void ExpectUntouched(const char* name) const {
    memory_.ExpectUntouched(name);
  }

 private:
  size_t Place(size_t i) const { return i / cols_ * stride_ + i % cols_; }

  const Type type_;
  const size_t rows_, cols_, stride_;
  const Guarded<unsigned char> memory_;
};

}  // namespace testing_support
}  // namespace switchyard

#endif  // SWITCHYARD_TESTS_ROW_TYPES_H_
