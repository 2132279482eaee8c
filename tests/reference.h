// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The kernels once more, naively and in double precision: what the tests
// compare with. Written from the definitions, sharing nothing with src/.

#ifndef SWITCHYARD_TESTS_REFERENCE_H_
#define SWITCHYARD_TESTS_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace switchyard {
namespace reference {

double Sigmoid(double x);
double Silu(double x);  // -0 for x <= -87.33655, as the library defines it

// One row of softmax-top-k with the library's order and its rules for NaN and
// infinities. `clamp` as in RouteOptions.
struct Route {
  std::vector<int32_t> ids;
  std::vector<double> weights;
};
Route RouteRow(const std::vector<float>& logits, size_t top_k, bool renormalize,
               double clamp);

struct Buckets {
  std::vector<int32_t> tpe;
  std::vector<int32_t> offsets;    // [num_experts + 1]
  std::vector<int32_t> pairs;      // ascending in each expert
  std::vector<int32_t> row_index;  // by pair, -1: dropped
  int32_t max_tpe = 0;
  size_t dropped = 0;
};
// `selected` by pair, contiguous.
Buckets Bucket(const std::vector<int32_t>& selected, size_t num_experts);

// A sum and the sum of its terms' magnitudes, by which errors are judged.
struct Sum {
  double value = 0.0;
  double magnitude = 0.0;
  size_t terms = 0;
  void Add(double term);
};

}  // namespace reference
}  // namespace switchyard

#endif  // SWITCHYARD_TESTS_REFERENCE_H_
