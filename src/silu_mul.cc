// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/silu_mul.h"

#include <cstddef>
#include <cstdint>

#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/silu_mul.h"

namespace switchyard {
namespace {

// The shapes are equal and checked: their bytes fit the address space.
bool Streams(const Matrix<const float>& gate, const Matrix<const float>& up,
             const Matrix<float>& out, const SiluMulOptions& options) {
  const bool in_place = out.data == gate.data || out.data == up.data;
  if (in_place || options.stores == SiluMulStores::kCached) return false;
  // Streaming stores need whole vectors at multiples of their size.
  if (reinterpret_cast<uintptr_t>(out.data) % sizeof(float) != 0) return false;
  return options.stores == SiluMulStores::kStreaming ||
         out.rows * out.cols > kSiluMulStreamingBytes / (3 * sizeof(float));
}

}  // namespace

Status SiluMul(Matrix<const float> gate, Matrix<const float> up,
               Matrix<float> out, const SiluMulOptions& options,
               Executor& executor) noexcept {
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
  SWITCHYARD_CHECK(options.stores == SiluMulStores::kAuto ||
                       options.stores == SiluMulStores::kCached ||
                       options.stores == SiluMulStores::kStreaming,
                   "SiluMul: options.stores: not a SiluMulStores");
  if (out.cols == 0) return Status();

  const double row_ns = 0.3 * static_cast<double>(out.cols);
  return internal::RunRows(executor, out.rows, row_ns, simd::SiluMulRows,
                           {gate, up, out, Streams(gate, up, out, options)});
}

}  // namespace switchyard
