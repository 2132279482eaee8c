// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/gather.h"

#include <atomic>

#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/gather.h"

namespace switchyard {

Status GatherRows(Matrix<const float> tokens, Span<const int32_t> pairs,
                  size_t top_k, Matrix<float> out, Executor& executor,
                  size_t* invalid) noexcept {
  SWITCHYARD_CHECK_ISA();
  SWITCHYARD_CHECK_MATRIX("GatherRows", "tokens", tokens);
  SWITCHYARD_CHECK_SPAN("GatherRows", "pairs", pairs);
  SWITCHYARD_CHECK_MATRIX("GatherRows", "out", out);
  SWITCHYARD_CHECK(top_k != 0, "GatherRows: top_k: is 0");
  SWITCHYARD_CHECK(out.rows == pairs.size,
                   "GatherRows: out: rows differ from pairs' size");
  SWITCHYARD_CHECK(out.cols == tokens.cols,
                   "GatherRows: out: cols differ from tokens'");
  SWITCHYARD_CHECK(!internal::MayOverlap(out, tokens),
                   "GatherRows: out: overlaps tokens");
  SWITCHYARD_CHECK(!internal::MayOverlap(out, pairs),
                   "GatherRows: out: overlaps pairs");

  std::atomic<size_t> count{0};
  if (out.rows != 0 && out.cols != 0) {
    const double row_ns = 0.15 * static_cast<double>(out.cols);
    const Status status =
        internal::RunRows(executor, out.rows, row_ns, simd::GatherRows,
                          {tokens, pairs.data, top_k, out, &count});
    if (!status.ok()) return status;
  }
  if (invalid != nullptr) *invalid = count.load(std::memory_order_relaxed);
  return Status();
}

}  // namespace switchyard
