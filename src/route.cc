// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/route.h"

#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/route.h"

namespace switchyard {
namespace {

// ns a row, fitted to one AVX2 core: within 1.8x for E = 8 to 1024, k to 32.
double RowNs(size_t experts, size_t top_k, bool renormalize) {
  const double e = static_cast<double>(experts);
  const double k = static_cast<double>(top_k);
  const double sum_all = renormalize ? 0.0 : 0.45 * e;
  if (top_k <= 32) return 20.0 + 0.3 * e + 0.25 * k * k + sum_all;
  return (300.0 + 3.0 * e) * (k / 32.0) + sum_all;
}

}  // namespace

Status RouteTopK(Matrix<const float> logits, const RouteOptions& options,
                 Matrix<int32_t> ids, Matrix<float> weights,
                 Executor& executor) noexcept {
  SWITCHYARD_CHECK_ISA();
  SWITCHYARD_CHECK_MATRIX("RouteTopK", "logits", logits);
  SWITCHYARD_CHECK_MATRIX("RouteTopK", "ids", ids);
  SWITCHYARD_CHECK_MATRIX("RouteTopK", "weights", weights);
  SWITCHYARD_CHECK(ids.rows == logits.rows,
                   "RouteTopK: ids: rows differ from logits'");
  SWITCHYARD_CHECK(weights.rows == logits.rows,
                   "RouteTopK: weights: rows differ from logits'");
  SWITCHYARD_CHECK(weights.cols == ids.cols,
                   "RouteTopK: weights: cols differ from ids'");
  SWITCHYARD_CHECK(logits.cols <= INT32_MAX,
                   "RouteTopK: logits: more than 2^31 - 1 experts");
  SWITCHYARD_CHECK(ids.cols >= 1, "RouteTopK: ids: top_k (cols) is zero");
  SWITCHYARD_CHECK(ids.cols <= logits.cols,
                   "RouteTopK: ids: top_k (cols) exceeds the experts");
  SWITCHYARD_CHECK(options.clamp >= 0.0f && options.clamp <= 1.0f,
                   "RouteTopK: options: clamp is not in [0, 1]");
  SWITCHYARD_CHECK(!internal::MayOverlap(ids, logits),
                   "RouteTopK: ids: overlaps logits");
  SWITCHYARD_CHECK(!internal::MayOverlap(weights, logits),
                   "RouteTopK: weights: overlaps logits");
  SWITCHYARD_CHECK(!internal::MayOverlap(weights, ids),
                   "RouteTopK: weights: overlaps ids");

  return internal::RunRows(
      executor, logits.rows, RowNs(logits.cols, ids.cols, options.renormalize),
      simd::RouteRows,
      {logits, ids, weights, options.renormalize, options.clamp});
}

}  // namespace switchyard
