// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TESTS_STORED_INPUT_H_
#define SWITCHYARD_TESTS_STORED_INPUT_H_

#include <cstddef>
#include <iterator>
#include <memory>
#include <vector>

#include "testing/inputs.h"
#include "tests/row_types.h"

namespace switchyard::testing_support {

// An input: as it is stored, and the same numbers in f32.
class StoredInput {
 public:
  StoredInput(Random& random, size_t rows, size_t cols, float low, float high,
              bool strange, Type type)
      : rows_(rows), cols_(cols) {
    values_ = random.Uniforms(rows * cols, low, high);
    constexpr float kStrange[] = {kNaN,  kInf,   -kInf,  -0.0f, kDenormal,
                                  3e38f, -3e38f, 1e-30f, 0.0f};
    for (float& x : values_) {
      if (strange && random.Below(16) == 0) {
        x = kStrange[random.Below(std::size(kStrange))];
      }
    }
    values_ = Rounded(type, values_);
    stored_ = std::make_unique<GuardedValues>(
        type, rows, cols, cols + random.Below(3), random.Below(4), values_);
  }
  AnyMatrix view() const { return stored_->view(); }
  ConstAnyMatrix f32() const { return {values_.data(), rows_, cols_}; }
  const GuardedValues& stored() const { return *stored_; }
  void ExpectUnchanged() const {
    stored_->ExpectIntact("input");
    EXPECT_EQ(CanonicalBits(stored_->Values()), CanonicalBits(values_));
  }

 private:
  size_t rows_, cols_;
  std::vector<float> values_;
  std::unique_ptr<GuardedValues> stored_;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_STORED_INPUT_H_
