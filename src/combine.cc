// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/combine.h"

#include <atomic>

#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/combine.h"

namespace switchyard {
namespace {

using internal::ApartFrom;
using internal::MayOverlap;
using internal::SameView;

// Both functions' inputs against an output of [tokens, hidden]. `out` may be
// one of the views that are read element by element as it is written.
Status CheckInputs(const CombineInputs& in, Matrix<float> out) {
  SWITCHYARD_CHECK_ISA();
  SWITCHYARD_CHECK_MATRIX("combine", "rows", in.rows);
  SWITCHYARD_CHECK_MATRIX("combine", "weights", in.weights);
  SWITCHYARD_CHECK_MATRIX("combine", "shared.rows", in.shared.rows);
  SWITCHYARD_CHECK_SPAN("combine", "shared.gate", in.shared.gate);
  SWITCHYARD_CHECK_MATRIX("combine", "residual", in.residual);
  SWITCHYARD_CHECK_MATRIX("combine", "out", out);
  SWITCHYARD_CHECK(in.weights.rows == out.rows,
                   "combine: weights: rows differ from out's");
  SWITCHYARD_CHECK(in.weights.cols != 0, "combine: weights: top_k is 0");
  SWITCHYARD_CHECK(in.rows.cols == out.cols,
                   "combine: rows: cols differ from out's");
  if (in.row_index.data == nullptr) {
    SWITCHYARD_CHECK(in.row_index.rows == 0,
                     "combine: row_index: data is null");
    size_t pairs = 0;
    SWITCHYARD_CHECK(
        !__builtin_mul_overflow(out.rows, in.weights.cols, &pairs) &&
            in.rows.rows == pairs,
        "combine: rows: not tokens * top_k without a row_index");
  } else {
    SWITCHYARD_CHECK_MATRIX("combine", "row_index", in.row_index);
    SWITCHYARD_CHECK(in.row_index.rows == out.rows,
                     "combine: row_index: rows differ from out's");
    SWITCHYARD_CHECK(in.row_index.cols == in.weights.cols,
                     "combine: row_index: cols differ from weights'");
  }
  if (in.shared.rows.data != nullptr) {
    SWITCHYARD_CHECK(in.shared.rows.rows == out.rows,
                     "combine: shared.rows: rows differ from out's");
    SWITCHYARD_CHECK(in.shared.rows.cols == out.cols,
                     "combine: shared.rows: cols differ from out's");
    SWITCHYARD_CHECK(in.shared.kind == SharedGate::kLogit ||
                         in.shared.kind == SharedGate::kScalar ||
                         in.shared.kind == SharedGate::kNone,
                     "combine: shared.kind: not a SharedGate");
    SWITCHYARD_CHECK(
        in.shared.gate.size ==
            (in.shared.kind == SharedGate::kNone ? 0 : out.rows),
        "combine: shared.gate: size is not out's rows (0 for kNone)");
  } else {
    SWITCHYARD_CHECK(in.shared.gate.size == 0,
                     "combine: shared.gate: given without shared.rows");
  }
  if (in.residual.data != nullptr) {
    SWITCHYARD_CHECK(in.residual.rows == out.rows,
                     "combine: residual: rows differ from out's");
    SWITCHYARD_CHECK(in.residual.cols == out.cols,
                     "combine: residual: cols differ from out's");
  }
  if (!ApartFrom(out, in.rows, in.weights, in.row_index, in.shared.gate)) {
    SWITCHYARD_CHECK(!MayOverlap(out, in.rows), "combine: out: overlaps rows");
    SWITCHYARD_CHECK(!MayOverlap(out, in.weights),
                     "combine: out: overlaps weights");
    SWITCHYARD_CHECK(!MayOverlap(out, in.row_index),
                     "combine: out: overlaps row_index");
    SWITCHYARD_CHECK(!MayOverlap(out, in.shared.gate),
                     "combine: out: overlaps shared.gate");
  }
  SWITCHYARD_CHECK(
      SameView(out, in.shared.rows) || !MayOverlap(out, in.shared.rows),
      "combine: out: overlaps shared.rows without being the same view");
  SWITCHYARD_CHECK(
      SameView(out, in.residual) || !MayOverlap(out, in.residual),
      "combine: out: overlaps residual without being the same view");
  return Status();
}

// `normed` against everything: no overlap at all.
Status CheckNorm(const CombineInputs& in, Span<const float> norm_weight,
                 float eps, Matrix<float> out, Matrix<float> normed) {
  SWITCHYARD_CHECK_SPAN("combine", "norm_weight", norm_weight);
  SWITCHYARD_CHECK_MATRIX("combine", "normed", normed);
  SWITCHYARD_CHECK(norm_weight.size == out.cols,
                   "combine: norm_weight: size is not out's cols");
  SWITCHYARD_CHECK(eps >= 0.0f, "combine: eps: negative or NaN");
  SWITCHYARD_CHECK(normed.rows == out.rows,
                   "combine: normed: rows differ from out's");
  SWITCHYARD_CHECK(normed.cols == out.cols,
                   "combine: normed: cols differ from out's");
  SWITCHYARD_CHECK(!MayOverlap(out, norm_weight),
                   "combine: out: overlaps norm_weight");
  if (ApartFrom(normed, out, in.rows, in.weights, in.row_index, in.shared.rows,
                in.shared.gate, in.residual, norm_weight)) {
    return Status();
  }
  SWITCHYARD_CHECK(!MayOverlap(normed, out), "combine: normed: overlaps out");
  SWITCHYARD_CHECK(!MayOverlap(normed, in.rows),
                   "combine: normed: overlaps rows");
  SWITCHYARD_CHECK(!MayOverlap(normed, in.weights),
                   "combine: normed: overlaps weights");
  SWITCHYARD_CHECK(!MayOverlap(normed, in.row_index),
                   "combine: normed: overlaps row_index");
  SWITCHYARD_CHECK(!MayOverlap(normed, in.shared.rows),
                   "combine: normed: overlaps shared.rows");
  SWITCHYARD_CHECK(!MayOverlap(normed, in.shared.gate),
                   "combine: normed: overlaps shared.gate");
  SWITCHYARD_CHECK(!MayOverlap(normed, in.residual),
                   "combine: normed: overlaps residual");
  SWITCHYARD_CHECK(!MayOverlap(normed, norm_weight),
                   "combine: normed: overlaps norm_weight");
  return Status();
}

Status RunCombine(simd::CombineArgs args,
                  void (*rows)(const simd::CombineArgs&, size_t, size_t),
                  Executor& executor, size_t* skipped) {
  std::atomic<size_t> count{0};
  args.skipped = &count;
  if (args.out.cols != 0) {
    // 0.06 ns an element and term: 0.7 us for H = 2048 and top_k = 8 in cache.
    const double row_ns = 0.06 * static_cast<double>(args.out.cols) *
                          static_cast<double>(args.inputs.weights.cols + 2);
    const Status status =
        internal::RunRows(executor, args.out.rows, row_ns, rows, args);
    if (!status.ok()) return status;
  }
  if (skipped != nullptr) *skipped = count.load(std::memory_order_relaxed);
  return Status();
}

}  // namespace

Status WeightedSum(const CombineInputs& inputs, Matrix<float> out,
                   Executor& executor, size_t* skipped) noexcept {
  const Status status = CheckInputs(inputs, out);
  if (!status.ok()) return status;
  return RunCombine({inputs, out, nullptr, nullptr, 0.0f, {}},
                    simd::WeightedSumRows, executor, skipped);
}

Status WeightedSumRmsNorm(const CombineInputs& inputs,
                          Span<const float> norm_weight, float eps,
                          Matrix<float> out, Matrix<float> normed,
                          Executor& executor, size_t* skipped) noexcept {
  Status status = CheckInputs(inputs, out);
  if (!status.ok()) return status;
  status = CheckNorm(inputs, norm_weight, eps, out, normed);
  if (!status.ok()) return status;
  return RunCombine({inputs, out, nullptr, norm_weight.data, eps, normed},
                    simd::WeightedSumRmsNormRows, executor, skipped);
}

}  // namespace switchyard
