// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// No call raises SIGFPE in a thread that has unmasked every floating-point
// exception, and none leaves that thread's environment changed.

#include <cfenv>
#include <functional>
#include <limits>

#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/quantize.h"
#include "switchyard/route.h"
#include "tests/call_errors.h"
#include "tests/row_types.h"
#include "tests/rows_case.h"

namespace switchyard::testing_support {
namespace {

class FpTrapsTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(FpTrapsTest);

// A trap ends the process: the status is all there is to look at.
Status Trapping(const std::function<Status()>& call) {
  std::fenv_t saved;
  std::feholdexcept(&saved);
  feenableexcept(FE_ALL_EXCEPT);
  const Status status = call();
  EXPECT_EQ(fegetexcept(), FE_ALL_EXCEPT);
  std::fesetenv(&saved);
  return status;
}

// Sizes whose cost does not divide evenly, and values that raise everything:
// NaN of both kinds, infinities, denormals, overflow. Of each type.
TEST_P(FpTrapsTest, EveryFunctionOnAnyValues) {
  const size_t tokens = 301, experts = 97, top_k = 7, hidden = 333;
  const size_t pairs = tokens * top_k;
  std::vector<int32_t> ids(pairs), counts(experts), offsets(experts + 1),
      order(pairs), index(pairs), table(experts * pairs);
  std::vector<int32_t> scratch(BucketScratchSize(pairs, experts, executor()));
  const ConstAnyMatrix topk_ids(ids.data(), tokens, top_k);
  for (const Type type : kFloatTypes) {
    SCOPED_TRACE(type);
    Random random(31);
    const auto any = [&](size_t n) { return Stored(type, random.AnyBits(n)); };
    const auto none = [&](size_t n) {
      return Stored(type, std::vector<float>(n));
    };
    Stored logits = any(tokens * experts), hiddens = any(tokens * hidden),
           residual = any(tokens * hidden), weight = any(hidden),
           up = any(pairs * hidden);
    Stored weights = none(pairs), rows = none(pairs * hidden),
           acted = none(pairs * hidden), out = none(tokens * hidden),
           normed = none(tokens * hidden);
    for (const bool renormalize : {true, false}) {
      ASSERT_OK(Trapping([&] {
        return RouteTopK(
            {logits.View(tokens, experts)},
            {{ids.data(), tokens, top_k}, weights.View(tokens, top_k)},
            {renormalize, 0.3f}, executor());
      }));
    }
    ASSERT_OK(Trapping([&] {
      return BucketPacked(
          {topk_ids, scratch},
          {counts, offsets, order, {index.data(), tokens, top_k}}, {},
          executor());
    }));
    ASSERT_OK(Trapping([&] {
      return BucketStrided({topk_ids, scratch}, {counts, table, pairs, true},
                           {}, executor());
    }));
    ASSERT_OK(Trapping([&] {
      return GatherRows({hiddens.View(tokens, hidden), order, topk_ids},
                        {rows.View(pairs, hidden)}, {}, executor());
    }));
    ASSERT_OK(Trapping([&] {
      return Activate({rows.View(pairs, hidden), up.View(pairs, hidden)},
                      {acted.View(pairs, hidden)}, {}, executor());
    }));
    ASSERT_OK(Trapping([&] {
      return Combine({acted.View(pairs, hidden),
                      weights.View(tokens, top_k),
                      {index.data(), tokens, top_k},
                      residual.View(tokens, hidden),
                      weight.View(1, hidden)},
                     {out.View(tokens, hidden), normed.View(tokens, hidden)},
                     {}, executor());
    }));
    // From f32 to each: overflow, and underflow to denormals.
    Stored wide(Type::kF32, random.AnyBits(pairs * hidden));
    ASSERT_OK(Trapping([&] {
      return Activate({wide.View(pairs, hidden), wide.View(pairs, hidden)},
                      {acted.View(pairs, hidden)}, {}, executor());
    }));
  }
  Stored wide(Type::kF32, Random(32).AnyBits(tokens * 512));
  for (const Format& format : kFormats) {
    SCOPED_TRACE(format.name);
    const GuardedRows rows(format, tokens, 512, 0, 0);
    ASSERT_OK(Trapping([&] {
      return Quantize({wide.View(tokens, 512)}, {rows.view()}, {}, executor());
    }));
    ASSERT_OK(Trapping([&] {
      return Activate({wide.View(tokens, 512), wide.View(tokens, 512)},
                      {rows.view()}, {}, executor());
    }));
  }
}

// A check that refuses a NaN must not compare it.
TEST(FpTraps, NaNOptionsAreRefused) {
  const std::vector<float> logits(8), weight(8);
  std::vector<float> weights(2), out(8), normed(8);
  std::vector<int32_t> ids(2);
  const float signalling = std::numeric_limits<float>::signaling_NaN();
  for (const float nan : {kNaN, -kNaN, signalling}) {
    ExpectError(Trapping([&] {
                  return RouteTopK({logits}, {ids, weights}, {true, nan});
                }),
                "RouteTopK: options: clamp is not in [0, 1]");
    ExpectError(Trapping([&] {
                  return Combine({logits,
                                  {logits.data(), 1, 1},
                                  RowIndex::kTokenOrder,
                                  {},
                                  weight},
                                 {out, normed}, {nan});
                }),
                "Combine: options: eps is negative or NaN");
  }
}

}  // namespace
}  // namespace switchyard::testing_support
