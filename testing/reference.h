// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Naive implementations in double precision. Tests and benchmarks compare the
// kernels with these functions, which are written from the definitions and
// use only the structs of the library's public headers.

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

// The result of softmax and top-k for one row, with the library's order and
// its rules for NaN and infinities. `clamp` has the meaning that it has in
// RouteOptions.
struct Route {
  std::vector<int32_t> ids;
  std::vector<double> weights;
};
Route RouteRow(const std::vector<float>& logits, size_t top_k, bool renormalize,
               double clamp);

// Checks the library's result for one row: the ids have to be exact, and the
// weights within a bound that depends on the ISA. Returns a description of
// the first error, or "".
std::string WrongRoute(const std::vector<float>& logits,
                       const RouteOptions& options,
                       const std::vector<int32_t>& ids,
                       const std::vector<float>& weights, bool fma);

struct Buckets {
  std::vector<int32_t> tokens_per_expert;
  std::vector<int32_t> offsets;    // [num_experts + 1]
  std::vector<int32_t> pairs;      // ascending for each expert
  std::vector<int32_t> row_index;  // for each pair; -1: dropped
  size_t max_rows = 0;
  size_t dropped = 0;
};
// Sorts pairs by expert. `topk_ids` has an id for each pair, without gaps.
Buckets Bucket(const std::vector<int32_t>& topk_ids, size_t num_experts);

}  // namespace switchyard::reference

#endif  // SWITCHYARD_TESTING_REFERENCE_H_
