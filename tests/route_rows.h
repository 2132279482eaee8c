// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What the tests of RouteTopK share: a call on vectors, and the comparison of
// its rows with the reference.

#ifndef SWITCHYARD_TESTS_ROUTE_ROWS_H_
#define SWITCHYARD_TESTS_ROUTE_ROWS_H_

#include <cmath>

#include "switchyard/isa.h"
#include "switchyard/route.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {

struct Routed {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};
inline void ExpectSame(const Routed& actual, const Routed& expected) {
  ASSERT_EQ(actual.ids, expected.ids);
  ASSERT_EQ(CanonicalBits(actual.weights), CanonicalBits(expected.weights));
}

// Ids of any type as int32: all of an int64 counts.
template <class Id>
std::vector<int32_t> Narrow(const std::vector<Id>& ids) {
  const std::vector<int32_t> narrow(ids.begin(), ids.end());
  EXPECT_EQ(std::vector<Id>(narrow.begin(), narrow.end()), ids);
  return narrow;
}

template <class Id = int32_t>
Routed RouteOf(const std::vector<float>& logits, size_t rows, size_t top_k,
               const RouteOptions& options = {},
               Executor& executor = SerialExecutor()) {
  std::vector<Id> ids(rows * top_k, Id(7));
  std::vector<float> weights(rows * top_k, -7.0f);
  EXPECT_OK(
      RouteTopK({{logits.data(), rows, logits.size() / rows}},
                {{ids.data(), rows, top_k}, {weights.data(), rows, top_k}},
                options, executor));
  return {Narrow(ids), weights};
}

// How far weight j may be from the exact one, relatively, in units of 2^-24.
// The difference to the maximum x is rounded (|x|), and exp is within 1.5 ulp
// (3; a few more without FMA). The terms of the divisor have the same errors;
// the mean of their |x|, weighted with the terms, is at most the logarithm of
// their number. Then its additions, the clamp's product and the division.
inline double WeightBound(double x, size_t experts, size_t top_k, bool all,
                          bool fma) {
  const double exp = fma ? 3.0 : 6.0;
  const size_t terms = all ? experts : top_k;
  const size_t adds = all ? std::max(top_k, experts / 32 + 6) : top_k;
  return std::fabs(x) + 2.0 * exp + std::log(static_cast<double>(terms)) +
         static_cast<double>(adds) + 2.0;
}

// One row: ids exactly, weights within the bound.
inline void ExpectRow(const std::vector<float>& logits, size_t top_k,
                      const RouteOptions& options, const int32_t* ids,
                      const float* weights) {
  const double clamp = static_cast<double>(options.clamp);
  const reference::Route exact =
      reference::RouteRow(logits, top_k, options.renormalize, clamp);
  ASSERT_EQ(std::vector<int32_t>(ids, ids + top_k), exact.ids);
  const bool all =
      !options.renormalize ||
      clamp * static_cast<double>(logits.size()) > static_cast<double>(top_k);
  const auto logit = [&](size_t slot) {
    return static_cast<double>(logits[static_cast<size_t>(exact.ids[slot])]);
  };
  for (size_t j = 0; j < top_k; ++j) {
    SCOPED_TRACE(testing::Message()
                 << "experts " << logits.size() << " top_k " << top_k
                 << " slot " << j << " expert " << ids[j]);
    if (std::isnan(exact.weights[j])) {
      ASSERT_EQ(Bits(weights[j]), 0x7FC00000u);
      continue;
    }
    if (logit(j) == logit(0)) {
      ASSERT_EQ(Bits(weights[j]), Bits(weights[0]));
    }
    if (std::isinf(logit(j)) && logit(j) < 0.0) {
      ASSERT_EQ(Bits(weights[j]), 0u);
      continue;
    }
    const double x = std::isinf(logit(0)) ? 0.0 : logit(j) - logit(0);
    if (x <= -87.4) {  // exp is zero there, not denormal
      ASSERT_EQ(Bits(weights[j]), 0u);
      continue;
    }
    const double bound =
        0x1p-24 * WeightBound(x, logits.size(), top_k, all, ActiveIsa().fma);
    // Where exp may have been flushed, and where the quotient is denormal.
    const double flush = x < -87.3 ? 0x1p-126 : 0x1p-149;
    ASSERT_NEAR(static_cast<double>(weights[j]), exact.weights[j],
                exact.weights[j] * bound + flush);
  }
}

inline void ExpectRows(const std::vector<float>& logits, size_t top_k,
                       const RouteOptions& options, const Routed& routed) {
  const size_t rows = routed.ids.size() / top_k;
  const size_t experts = logits.size() / rows;
  for (size_t r = 0; r < rows; ++r) {
    const float* row = logits.data() + r * experts;
    ExpectRow(std::vector<float>(row, row + experts), top_k, options,
              &routed.ids[r * top_k], &routed.weights[r * top_k]);
    if (testing::Test::HasFatalFailure()) {
      ADD_FAILURE() << "row " << r;
      return;
    }
  }
}

// The same for a call between guard pages, whose views start anywhere and have
// the given gaps between their rows.
struct Gaps {
  size_t logits, ids, weights;
};
template <class Id = int32_t>
void CheckGuarded(const std::vector<float>& logits, size_t rows, size_t top_k,
                  const RouteOptions& options, size_t slack, const Gaps& gaps) {
  const size_t experts = logits.size() / rows;
  const Guarded<float> in(rows, experts, experts + gaps.logits, slack, logits);
  const Guarded<Id> ids(rows, top_k, top_k + gaps.ids, (slack + 1) % 4);
  const Guarded<float> weights(rows, top_k, top_k + gaps.weights,
                               (slack + 2) % 4);
  ASSERT_OK(RouteTopK({in.view()}, {ids.view(), weights.view()}, options));
  in.ExpectIntact("logits");
  ids.ExpectIntact("topk_ids");
  weights.ExpectIntact("topk_weights");
  ASSERT_EQ(CanonicalBits(in.Values()), CanonicalBits(logits));
  const Routed routed = {Narrow(ids.Values()), weights.Values()};
  ExpectRows(logits, top_k, options, routed);
  ExpectSame(routed, RouteOf(logits, rows, top_k, options));
}

inline void CheckRoute(const std::vector<float>& logits, size_t rows,
                       size_t top_k, const RouteOptions& options = {}) {
  ExpectRows(logits, top_k, options, RouteOf(logits, rows, top_k, options));
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_ROUTE_ROWS_H_
