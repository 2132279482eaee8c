// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A random combine problem, its exact answer in double precision, and its
// answer in the library's fixed evaluation order, which FMA ISAs must match to
// the bit.

#ifndef SWITCHYARD_TESTS_COMBINE_CASE_H_
#define SWITCHYARD_TESTS_COMBINE_CASE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/combine.h"
#include "testing/inputs.h"
#include "testing/reference.h"

namespace switchyard {
namespace testing_support {

struct CombineShape {
  size_t tokens = 1;
  size_t top_k = 1;
  size_t hidden = 1;
  bool row_index = false;
  bool shared = false;
  SharedGate kind = SharedGate::kScalar;
  bool residual = false;
};

class CombineCase {
 public:
  CombineCase(const CombineShape& s, uint64_t seed) : shape(s) {
    Random random(seed);
    const size_t pairs = s.tokens * s.top_k;
    rows = random.Uniforms(pairs * s.hidden, -2.0f, 2.0f);
    weights = random.Uniforms(pairs, -0.5f, 1.0f);
    norm_weight = random.Uniforms(s.hidden, 0.5f, 1.5f);
    for (size_t p = 0; p < pairs; ++p) index.push_back(static_cast<int32_t>(p));
    if (s.row_index) {
      for (size_t p = pairs; p > 1; --p) {
        std::swap(index[p - 1], index[random.Below(p)]);
      }
    }
    if (s.shared) {
      shared = random.Uniforms(s.tokens * s.hidden, -2.0f, 2.0f);
      if (s.kind != SharedGate::kNone) {
        gate = random.Uniforms(s.tokens, -3.0f, 3.0f);
      }
    }
    if (s.residual) {
      residual = random.Uniforms(s.tokens * s.hidden, -4.0f, 4.0f);
    }
  }

  CombineInputs Inputs() const {
    const CombineShape& s = shape;
    CombineInputs in;
    in.rows = {rows.data(), s.tokens * s.top_k, s.hidden};
    in.weights = {weights.data(), s.tokens, s.top_k};
    if (s.row_index) in.row_index = {index.data(), s.tokens, s.top_k};
    if (s.shared) {
      in.shared.rows = {shared.data(), s.tokens, s.hidden};
      in.shared.gate = gate;
      in.shared.kind = s.kind;
    }
    if (s.residual) in.residual = {residual.data(), s.tokens, s.hidden};
    return in;
  }

  // The exact sum of one element, and the magnitudes it is judged by.
  reference::Sum Exact(size_t t, size_t h) const {
    reference::Sum sum;
    for (size_t s = 0; s < shape.top_k; ++s) {
      const size_t p = t * shape.top_k + s;
      if (const float* row = RowOf(p)) {
        sum.Add(static_cast<double>(weights[p]) * static_cast<double>(row[h]));
      }
    }
    if (shape.shared) {
      double g = 1.0;
      if (shape.kind != SharedGate::kNone) g = static_cast<double>(gate[t]);
      if (shape.kind == SharedGate::kLogit) g = reference::Sigmoid(g);
      sum.Add(g * static_cast<double>(shared[t * shape.hidden + h]));
    }
    if (shape.residual) {
      sum.Add(static_cast<double>(residual[t * shape.hidden + h]));
    }
    return sum;
  }

  // The fixed order with real FMAs. Not for SharedGate::kLogit.
  float Fixed(size_t t, size_t h) const {
    float sum = 0.0f;
    for (size_t s = 0; s < shape.top_k; ++s) {
      const size_t p = t * shape.top_k + s;
      if (const float* row = RowOf(p)) sum = std::fma(weights[p], row[h], sum);
    }
    if (shape.shared) {
      const float g = shape.kind == SharedGate::kNone ? 1.0f : gate[t];
      sum = std::fma(g, shared[t * shape.hidden + h], sum);
    }
    if (shape.residual) sum = residual[t * shape.hidden + h] + sum;
    return sum;
  }

  // The row a pair reads, nullptr if it is skipped.
  const float* RowOf(size_t pair) const {
    const int32_t row = index[pair];
    if (row < 0 || static_cast<size_t>(row) >= index.size()) return nullptr;
    return rows.data() + static_cast<size_t>(row) * shape.hidden;
  }

  CombineShape shape;
  std::vector<float> rows, weights, norm_weight, shared, gate, residual;
  std::vector<int32_t> index;
};

// RMSNorm of one row in the fixed order: 32 lanes, folded 16, 8, 4, 2, 1.
inline std::vector<float> FixedRmsNorm(const std::vector<float>& row,
                                       const std::vector<float>& weight,
                                       float eps) {
  float lanes[32] = {};
  for (size_t i = 0; i < row.size(); ++i) {
    lanes[i % 32] = std::fma(row[i], row[i], lanes[i % 32]);
  }
  for (size_t half = 16; half != 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  }
  const float mean = lanes[0] / static_cast<float>(row.size());
  const float scale = 1.0f / std::sqrt(mean + eps);
  std::vector<float> normed;
  for (size_t i = 0; i < row.size(); ++i) {
    normed.push_back((row[i] * scale) * weight[i]);
  }
  return normed;
}

constexpr float kEps = 1e-6f;

// What a valid call gives; `norm` calls WeightedSumRmsNorm.
struct CombineResult {
  std::vector<float> out, normed;
  size_t skipped = 0;
};

inline CombineResult Combine(const CombineCase& c, bool norm,
                             Executor& executor = SerialExecutor()) {
  const CombineShape& s = c.shape;
  CombineResult r;
  r.out.assign(s.tokens * s.hidden, kNaN);
  const Matrix<float> out(r.out.data(), s.tokens, s.hidden);
  Status status;
  if (norm) {
    r.normed.assign(r.out.size(), kNaN);
    status = WeightedSumRmsNorm(c.Inputs(), c.norm_weight, kEps, out,
                                {r.normed.data(), s.tokens, s.hidden}, executor,
                                &r.skipped);
  } else {
    status = WeightedSum(c.Inputs(), out, executor, &r.skipped);
  }
  EXPECT_TRUE(status.ok()) << status.message();
  return r;
}

}  // namespace testing_support
}  // namespace switchyard

#endif  // SWITCHYARD_TESTS_COMBINE_CASE_H_
