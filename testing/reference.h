// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The kernels once more, naively and in double precision: what tests and
// benchmarks compare with. Written from the definitions; of the library, only
// the public headers' structs are used.

#ifndef SWITCHYARD_TESTING_REFERENCE_H_
#define SWITCHYARD_TESTING_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "switchyard/route.h"

namespace switchyard::reference {

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

// The error in the library's answer for that row, empty if there is none:
// ids are to be exact, weights within a bound that depends on the ISA.
std::string WrongRoute(const std::vector<float>& logits,
                       const RouteOptions& options,
                       const std::vector<int32_t>& ids,
                       const std::vector<float>& weights, bool fma);

struct Buckets {
  std::vector<int32_t> tokens_per_expert;
  std::vector<int32_t> offsets;    // [num_experts + 1]
  std::vector<int32_t> pairs;      // ascending in each expert
  std::vector<int32_t> row_index;  // by pair, -1: dropped
  size_t max_rows = 0;
  size_t dropped = 0;
};
// `topk_ids` by pair, contiguous.
Buckets Bucket(const std::vector<int32_t>& topk_ids, size_t num_experts);

}  // namespace switchyard::reference

#endif  // SWITCHYARD_TESTING_REFERENCE_H_
