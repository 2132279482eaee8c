// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The built-in weighted sums and the seeds', on the same rows.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "testing/inputs.h"
#include "testing/reference.h"
#include "tests/combine_case.h"
#include "tests/device/oracle_case.h"
#include "tests/device/seed_combine.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

enum class Kernel {
  kStacked,
  kResidualStacked,
  kBatched,
  kNormStacked,
  kNormBatched,
  kReduce,
};
constexpr Kernel kAll[] = {Kernel::kStacked,     Kernel::kResidualStacked,
                           Kernel::kBatched,     Kernel::kNormStacked,
                           Kernel::kNormBatched, Kernel::kReduce};

bool IsNorm(Kernel kernel) {
  return kernel == Kernel::kNormStacked || kernel == Kernel::kNormBatched;
}
bool IsStacked(Kernel kernel) {
  return kernel == Kernel::kStacked || kernel == Kernel::kResidualStacked ||
         kernel == Kernel::kNormStacked;
}
// The binding of the sums.
size_t Out(Kernel kernel) { return kernel == Kernel::kReduce ? 6 : 2; }
constexpr size_t kNormed = 4;

// The shape's flags, too, are the kernel's.
CombineShape ShapeOf(Kernel kernel, size_t tokens, size_t top_k, size_t hidden,
                     bool residual) {
  CombineShape s;
  s.tokens = IsStacked(kernel) ? 1 : tokens;
  s.top_k = top_k;
  s.hidden = hidden;
  s.shared = kernel == Kernel::kReduce;
  s.kind = SharedGate::kLogit;
  s.residual = kernel == Kernel::kResidualStacked || IsNorm(kernel) ||
               (kernel == Kernel::kReduce && residual);
  return s;
}

CombineCase RandomCase(Kernel kernel, uint64_t seed) {
  Random random(seed);
  const size_t hidden = 1 + random.Below(random.Below(4) == 0 ? 1500 : 300);
  const size_t top_k = 1 + random.Below(random.Below(4) == 0 ? 40 : 8);
  return CombineCase(
      ShapeOf(kernel, 1 + random.Below(4), top_k, hidden, random.Below(2) == 0),
      seed);
}

// One that shows and one that engines use.
float EpsOf(const CombineCase& c) {
  return c.shape.hidden % 2 == 0 ? 0.25f : kEps;
}

// Row t of the sums: exactly, and how far off each may be. Of a sum of n terms,
// (n + 2) * 2^-24 of their magnitudes; a shared expert's sigmoid, within 2.5
// ulp here and 2 there, adds 9 * 2^-24 of its term.
struct Row {
  std::vector<double> sums, bounds;
};
Row RowOf(const CombineCase& c, size_t t) {
  Row row;
  const std::vector<reference::Sum> sums = reference::Combine(c.Inputs(), t);
  for (size_t h = 0; h < c.shape.hidden; ++h) {
    const reference::Sum& sum = sums[h];
    double bound = static_cast<double>(sum.terms + 2) * sum.magnitude;
    if (c.shape.shared) {
      bound += 9.0 * reference::Sigmoid(c.gate[t]) *
               std::fabs(c.shared[t * c.shape.hidden + h]);
    }
    row.sums.push_back(sum.value);
    row.bounds.push_back(0x1p-24 * bound);
  }
  return row;
}

// The same of the normalised row, in which each sum's error appears twice: by
// itself, and in the mean of squares, half of whose relative error the scale
// has. That has besides, in units of 2^-24, the additions of squares (32 lanes
// here; 256 threads, their fold and 8 simdgroups there), and four roundings for
// the mean, eps, the root and the reciprocal on either side.
Row NormedRowOf(const CombineCase& c, const Row& row) {
  const double n = static_cast<double>(row.sums.size());
  double squares = 0.0, error = 0.0;
  for (size_t h = 0; h < row.sums.size(); ++h) {
    const double x = row.sums[h], d = row.bounds[h];
    squares += x * x;
    error += 2.0 * std::fabs(x) * d + d * d;
  }
  const double mean = squares / n + EpsOf(c);
  const double additions = n / 32.0 + 6.0 + n / 256.0 + 15.0;
  const double scale = 1.0 / std::sqrt(mean);
  const double scale_error =
      0.5 * error / n / mean + 0x1p-24 * (0.5 * additions + 8.0);
  Row normed;
  for (size_t h = 0; h < row.sums.size(); ++h) {
    const double weight = c.norm_weight[h];
    const double x = row.sums[h];
    normed.sums.push_back(x * scale * weight);
    // The third bound is for a product with either.
    normed.bounds.push_back(
        weight * scale *
        (row.bounds[h] + std::fabs(x) * (scale_error + 0x1p-24 * 4.0)));
  }
  return normed;
}

// other(index, i) is what element i of that buffer is to be near to.
template <class Other>
std::string Far(Kernel kernel, const CombineCase& c, const Ran& ran,
                const Other& other) {
  const std::vector<float> out = ran.Floats(Out(kernel));
  std::vector<float> normed;
  if (IsNorm(kernel)) normed = ran.Floats(kNormed);
  for (size_t t = 0; t < c.shape.tokens; ++t) {
    const Row row = RowOf(c, t);
    Row normed_row;
    if (IsNorm(kernel)) normed_row = NormedRowOf(c, row);
    for (size_t h = 0; h < c.shape.hidden; ++h) {
      const size_t i = t * c.shape.hidden + h;
      std::string far = Apart(
          "sum", i, out[i], other(Out(kernel), i, row.sums[h]), row.bounds[h]);
      if (far.empty() && IsNorm(kernel)) {
        far =
            Apart("normed", i, normed[i], other(kNormed, i, normed_row.sums[h]),
                  normed_row.bounds[h]);
      }
      if (!far.empty()) return far;
    }
  }
  return "";
}

std::string Wrong(Kernel kernel, const CombineCase& c, const Ran& ran) {
  if (!ran.error.empty()) return ran.error;
  return Far(kernel, c, ran,
             [](size_t, size_t, double exact) { return exact; });
}

std::string Differ(Kernel kernel, const CombineCase& c, const Ran& a,
                   const Ran& b) {
  return Far(kernel, c, a, [&](size_t index, size_t i, double) {
    float value;
    std::memcpy(&value, &b.after.at(index)[i], sizeof(value));
    return value;
  });
}

OracleWork MakeWork(Kernel kernel, const CombineCase& c) {
  OracleWork w;
  const CombineShape& s = c.shape;
  w.shape =
      Text(s.tokens, " tokens, top ", s.top_k, ", ", s.hidden, " columns");
  w.wrong = [=](const Ran& ran) { return Wrong(kernel, c, ran); };
  w.differ = [=](const Ran& a, const Ran& b) {
    return Differ(kernel, c, a, b);
  };
  const int32_t tokens = static_cast<int32_t>(s.tokens);
  const int32_t top_k = static_cast<int32_t>(s.top_k);
  const int32_t hidden = static_cast<int32_t>(s.hidden);
  const size_t first = kernel == Kernel::kReduce ? 1 : 0;
  w.threads = 256;
  // Some grids reach beyond the matrix, where the kernel knows its rows.
  const size_t rows = s.tokens + (IsStacked(kernel) ? 0 : s.hidden % 3);
  w.grid = Size((s.hidden + 255) / 256 + s.hidden % 2, rows, 1);
  w.In(first, kernel == Kernel::kReduce ? c.weights : c.rows);
  w.In(first + 1, kernel == Kernel::kReduce ? c.rows : c.weights);
  if (s.residual && kernel != Kernel::kReduce) {
    w.InOut(Out(kernel), c.residual);
  } else {
    w.Out(Out(kernel), s.tokens * s.hidden);
  }
  if (IsNorm(kernel)) {
    w.grid = Size(rows, 1, 1);
    w.In(3, c.norm_weight);
    w.Out(kNormed, s.tokens * s.hidden);
  }
  switch (kernel) {
    case Kernel::kStacked:
      w.SetSeed("weighted_sum_stacked_f32", seeds::WeightedSumStacked{}, 3,
                WeightedSumStackedParams{hidden, top_k});
      break;
    case Kernel::kResidualStacked:
      w.SetSeed("weighted_sum_residual_stacked_f32",
                seeds::WeightedSumResidualStacked{}, 3,
                WeightedSumStackedParams{hidden, top_k});
      break;
    case Kernel::kBatched:
      w.SetSeed("weighted_sum_batched_f32", seeds::WeightedSumBatched{}, 3,
                WeightedSumBatchedParams{tokens, top_k, hidden});
      break;
    case Kernel::kNormStacked:
      w.SetSeed("weighted_sum_residual_norm_stacked_f32",
                seeds::WeightedSumResidualNormStacked{}, 5,
                WeightedSumResidualNormStackedParams{hidden, top_k, EpsOf(c)});
      break;
    case Kernel::kNormBatched:
      w.SetSeed("weighted_sum_residual_norm_batched_f32",
                seeds::WeightedSumResidualNormBatched{}, 5,
                WeightedSumResidualNormBatchedParams{tokens, top_k, hidden,
                                                     EpsOf(c)});
      break;
    case Kernel::kReduce:
      w.SetSeed(
          "moe_weighted_reduce_f32", seeds::WeightedReduce{}, 0,
          MoeWeightedReduceParams{static_cast<uint32_t>(s.tokens),
                                  static_cast<uint32_t>(s.top_k),
                                  static_cast<uint32_t>(s.hidden), s.residual});
      w.In(3, c.gate);
      w.In(4, c.shared);
      // Something has to be bound.
      w.In(5, s.residual ? c.residual : std::vector<float>(1, kNaN));
      break;
  }
  return w;
}

OracleWork RandomWork(Kernel kernel, uint64_t seed) {
  return MakeWork(kernel, RandomCase(kernel, seed));
}
OracleWork FixedWork(Kernel kernel) {
  return MakeWork(kernel, CombineCase(ShapeOf(kernel, 3, 4, 300, true), 300));
}
const bool kAdded = AddOracles(kAll, RandomWork, FixedWork);

}  // namespace
}  // namespace switchyard::testing_support
