// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Helpers for RouteTopK()'s tests: a call on vectors, and a comparison of its
// rows with the reference.

#ifndef SWITCHYARD_TESTS_ROUTE_ROWS_H_
#define SWITCHYARD_TESTS_ROUTE_ROWS_H_

#include "switchyard/isa.h"
#include "switchyard/route.h"
#include "tests/call_errors.h"
#include "tests/row_types.h"

namespace switchyard::testing_support {

struct Routed {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};
inline void ExpectSame(const Routed& actual, const Routed& expected) {
  ASSERT_EQ(actual.ids, expected.ids);
  ASSERT_EQ(CanonicalBits(actual.weights), CanonicalBits(expected.weights));
}

// Returns ids as int32. Fails if an id does not fit.
template <class Id>
std::vector<int32_t> Narrow(const std::vector<Id>& ids) {
  const std::vector<int32_t> narrow(ids.begin(), ids.end());
  EXPECT_EQ(std::vector<Id>(narrow.begin(), narrow.end()), ids);
  return narrow;
}

// Routes logits in types.in to weights in types.out.
template <class Id = int32_t>
Routed TypedRoute(const InOut& types, const std::vector<float>& logits,
                  size_t rows, size_t top_k, const RouteOptions& options = {},
                  Executor& executor = SerialExecutor()) {
  std::vector<Id> ids(rows * top_k, Id(7));
  Stored in(types.in, logits);
  Stored weights(types.out, std::vector<float>(rows * top_k, -7.0f));
  EXPECT_OK(RouteTopK({in.View(rows, logits.size() / rows)},
                      {{ids.data(), rows, top_k}, weights.View(rows, top_k)},
                      options, executor));
  return {Narrow(ids), weights.Values()};
}
// Returns the results of the f32 kernel, with weights rounded to types.out.
inline Routed ExpectedRoute(const InOut& types,
                            const std::vector<float>& logits, size_t rows,
                            size_t top_k, const RouteOptions& options = {}) {
  Routed routed =
      TypedRoute(kF32s, Rounded(types.in, logits), rows, top_k, options);
  routed.weights = Rounded(types.out, routed.weights);
  return routed;
}
// For few logits returns all pairs of types. For many logits returns one
// pair, which depends on the shape.
inline std::vector<InOut> SomeInOut(size_t logits, size_t top_k) {
  const std::vector<InOut> all = EveryInOut();
  if (logits <= 64) return all;
  return {all[(logits + logits / 8 + top_k) % all.size()]};
}

// Routes with the f32 kernel, and checks that other types give the same
// results, rounded.
template <class Id = int32_t>
Routed RouteOf(const std::vector<float>& logits, size_t rows, size_t top_k,
               const RouteOptions& options = {},
               Executor& executor = SerialExecutor()) {
  for (const InOut& types : SomeInOut(logits.size(), top_k)) {
    SCOPED_TRACE(types);
    ExpectSame(TypedRoute<Id>(types, logits, rows, top_k, options, executor),
               ExpectedRoute(types, logits, rows, top_k, options));
  }
  return TypedRoute<Id>(kF32s, logits, rows, top_k, options, executor);
}

// Checks one row. The ids have to be exact, and the weights within the bound.
inline void ExpectRow(const std::vector<float>& logits, size_t top_k,
                      const RouteOptions& options, const int32_t* ids,
                      const float* weights) {
  const std::vector<int32_t> row_ids(ids, ids + top_k);
  const std::vector<float> row_weights(weights, weights + top_k);
  ASSERT_EQ(reference::WrongRoute(logits, options, row_ids, row_weights,
                                  ActiveIsa().fma),
            "")
      << "experts " << logits.size() << " top_k " << top_k;
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

// The gaps between the rows of each view, in elements. CheckGuarded() checks a
// call with all views between guard pages. The views start at any element.
struct Gaps {
  size_t logits, ids, weights;
};
template <class Id = int32_t>
void CheckGuarded(const std::vector<float>& logits, size_t rows, size_t top_k,
                  const RouteOptions& options, size_t slack, const Gaps& gaps) {
  const size_t experts = logits.size() / rows;
  ExpectRows(logits, top_k, options,
             TypedRoute(kF32s, logits, rows, top_k, options));
  std::vector<InOut> every = SomeInOut(logits.size(), top_k + slack);
  every.push_back(kF32s);
  for (const InOut& types : every) {
    SCOPED_TRACE(types);
    const GuardedValues in(types.in, rows, experts, experts + gaps.logits,
                           slack, logits);
    const Guarded<Id> ids(rows, top_k, top_k + gaps.ids, (slack + 1) % 4);
    const GuardedValues weights(types.out, rows, top_k, top_k + gaps.weights,
                                (slack + 2) % 4);
    ASSERT_OK(RouteTopK({in.view()}, {ids.view(), weights.view()}, options));
    in.ExpectIntact("logits");
    ids.ExpectIntact("topk_ids");
    weights.ExpectIntact("topk_weights");
    ASSERT_EQ(CanonicalBits(in.Values()),
              CanonicalBits(Rounded(types.in, logits)));
    ExpectSame({Narrow(ids.Values()), weights.Values()},
               ExpectedRoute(types, logits, rows, top_k, options));
  }
}

inline void CheckRoute(const std::vector<float>& logits, size_t rows,
                       size_t top_k, const RouteOptions& options = {}) {
  ExpectRows(logits, top_k, options, RouteOf(logits, rows, top_k, options));
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_ROUTE_ROWS_H_
