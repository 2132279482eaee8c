// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/silu_mul.h"

#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/silu_mul.h"

namespace switchyard {

Status SiluMul(Matrix<const float> gate, Matrix<const float> up,
               Matrix<float> out, Executor& executor) noexcept {
  SWITCHYARD_CHECK_ISA();
  SWITCHYARD_CHECK_MATRIX("SiluMul", "gate", gate);
  SWITCHYARD_CHECK_MATRIX("SiluMul", "up", up);
  SWITCHYARD_CHECK_MATRIX("SiluMul", "out", out);
  SWITCHYARD_CHECK(up.rows == gate.rows,
                   "SiluMul: up: rows differ from gate's");
  SWITCHYARD_CHECK(up.cols == gate.cols,
                   "SiluMul: up: cols differ from gate's");
  SWITCHYARD_CHECK(out.rows == gate.rows,
                   "SiluMul: out: rows differ from gate's");
  SWITCHYARD_CHECK(out.cols == gate.cols,
                   "SiluMul: out: cols differ from gate's");
  SWITCHYARD_CHECK(
      internal::SameView(out, gate) || !internal::MayOverlap(out, gate),
      "SiluMul: out: overlaps gate without being the same view");
  SWITCHYARD_CHECK(
      internal::SameView(out, up) || !internal::MayOverlap(out, up),
      "SiluMul: out: overlaps up without being the same view");
  if (out.cols == 0) return Status();

  const double row_ns = 0.3 * static_cast<double>(out.cols);
  return internal::RunRows(executor, out.rows, row_ns, simd::SiluMulRows,
                           {gate, up, out});
}

}  // namespace switchyard
