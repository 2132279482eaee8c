// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A random combine problem.

#ifndef SWITCHYARD_TESTS_COMBINE_CASE_H_
#define SWITCHYARD_TESTS_COMBINE_CASE_H_

#include "switchyard/combine.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {

struct CombineShape {
  size_t tokens = 1;
  size_t top_k = 1;
  size_t hidden = 1;
  bool row_index = false;
  bool shared = false;
  SharedGate kind = SharedGate::kScalar;
  bool residual = false;
};

inline CombineShape EveryPart(size_t tokens, size_t top_k, size_t hidden,
                              SharedGate kind = SharedGate::kScalar) {
  return {tokens, top_k, hidden, true, true, kind, true};
}

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
    CombineInputs in = {{rows.data(), s.tokens * s.top_k, s.hidden},
                        {weights.data(), s.tokens, s.top_k},
                        RowIndex::kTokenOrder};
    if (s.row_index) in.row_index = {index.data(), s.tokens, s.top_k};
    if (s.shared) {
      in.shared.rows = {shared.data(), s.tokens, s.hidden};
      if (s.kind != SharedGate::kNone) in.shared.gate = gate;
      in.shared.kind = s.kind;
    }
    if (s.residual) in.residual = {residual.data(), s.tokens, s.hidden};
    return in;
  }

  bool HasStaleRows() const {
    const auto num_rows = static_cast<int32_t>(index.size());
    return shape.row_index &&
           std::any_of(index.begin(), index.end(), [num_rows](int32_t row) {
             return row < -1 || row >= num_rows;
           });
  }

  CombineShape shape;
  std::vector<float> rows, weights, norm_weight, shared, gate, residual;
  std::vector<int32_t> index;
};

constexpr float kEps = 1e-6f;

// What a valid call gives, with `normed` or without.
struct CombineResult {
  std::vector<float> out, normed;
  size_t skipped = 0;
};

inline std::vector<uint32_t> CanonicalBits(const CombineResult& r) {
  std::vector<float> all = r.out;
  all.insert(all.end(), r.normed.begin(), r.normed.end());
  return CanonicalBits(all);
}

inline CombineResult Combine(const CombineCase& c, bool norm,
                             Executor& executor = SerialExecutor()) {
  const CombineShape& s = c.shape;
  CombineResult r;
  r.out.assign(s.tokens * s.hidden, kNaN);
  Report report = kUnwritten;
  CombineInputs in = c.Inputs();
  CombineOutputs out = {{r.out.data(), s.tokens, s.hidden}, {}, &report};
  if (norm) {
    r.normed.assign(r.out.size(), kNaN);
    in.norm_weight = c.norm_weight;
    out.normed = {r.normed.data(), s.tokens, s.hidden};
  }
  const bool stale = c.HasStaleRows();
  EXPECT_OK(switchyard::Combine(in, out, {kEps, stale}, executor));
  r.skipped = report.skipped;
  report.skipped = kUnwritten.skipped;
  EXPECT_EQ(report, kUnwritten);
  return r;
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_COMBINE_CASE_H_
