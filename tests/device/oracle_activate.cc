// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The built-in SiLU-mul kernels and the seeds', on the same rows.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "testing/inputs.h"
#include "testing/reference.h"
#include "tests/device/oracle_case.h"
#include "tests/device/seed_silu_mul.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

enum class Kernel { kStacked, kBatched };
constexpr Kernel kBoth[] = {Kernel::kStacked, Kernel::kBatched};

struct SiluCase {
  Kernel kernel;
  size_t rows, cols;
  std::vector<float> gate, up;
};

std::string Wrong(const SiluCase& c, const Ran& ran) {
  if (!ran.error.empty()) return ran.error;
  const std::vector<float> out = ran.Floats(2);
  for (size_t i = 0; i < out.size(); ++i) {
    const double right = reference::Silu(c.gate[i]) * c.up[i];
    if (!(std::fabs(out[i] - right) <= 1e-6 * std::fabs(right))) {
      return Text("out[", i / c.cols, ", ", i % c.cols, "] is ", Number(out[i]),
                  ", not ", right);
    }
  }
  return "";
}

// In units of 2^-24: SiLU is within 2.5 ulp here (5), of which the seed has
// those of exp, a sum and a quotient (2 + 1 + 1); and either's product (1).
constexpr double kBound = (5.0 + 4.0 + 2.0) * 0x1p-24;
std::string Differ(const Ran& a, const Ran& b) {
  const std::vector<float> x = a.Floats(2), y = b.Floats(2);
  for (size_t i = 0; i < x.size(); ++i) {
    const double value = x[i];
    const std::string apart =
        Apart("out", i, y[i], value, kBound * std::fabs(value) + 0x1p-149);
    if (!apart.empty()) return apart;
  }
  return "";
}

OracleWork MakeWork(const SiluCase& c) {
  OracleWork w;
  w.shape = Text("[", c.rows, ", ", c.cols, "]");
  w.wrong = [c](const Ran& ran) { return Wrong(c, ran); };
  w.differ = Differ;
  const int32_t rows = static_cast<int32_t>(c.rows);
  const int32_t cols = static_cast<int32_t>(c.cols);
  if (c.kernel == Kernel::kStacked) {
    w.SetSeed("silu_mul_stacked_f32", seeds::SiluMulStacked{}, 3,
              SiluMulStackedParams{cols, rows});
  } else {
    w.SetSeed("silu_mul_batched_f32", seeds::SiluMulBatched{}, 3,
              SiluMulBatchedParams{rows, cols});
  }
  w.threads = 256;
  // Some reach beyond the matrix.
  w.grid = Size((c.cols + 255) / 256 + c.cols % 2, c.rows + c.cols % 3, 1);
  w.In(0, c.gate);
  w.In(1, c.up);
  w.Out(2, c.rows * c.cols);
  return w;
}

// Gates above -80: below, the seed's formula leaves its last digits in the
// overflow of exp.
OracleWork RandomWork(Kernel kernel, uint64_t seed) {
  Random random(seed);
  const size_t rows = 1 + random.Below(9);
  const size_t cols = 1 + random.Below(random.Below(4) == 0 ? 1100 : 300);
  const float most = random.Below(3) == 0 ? 80.0f : 9.0f;
  SiluCase c = {kernel, rows, cols, {}, {}};
  c.gate = random.Uniforms(rows * cols, -most, most);
  c.up = random.Uniforms(rows * cols, -3.0f, 3.0f);
  return MakeWork(c);
}

OracleWork FixedWork(Kernel kernel) {
  Random random(300);
  SiluCase c = {kernel, 2, 300, {}, {}};
  c.gate = random.Uniforms(600, -9.0f, 9.0f);
  c.up = random.Uniforms(600, -3.0f, 3.0f);
  return MakeWork(c);
}
const bool kAdded = AddOracles(kBoth, RandomWork, FixedWork);

}  // namespace
}  // namespace switchyard::testing_support
