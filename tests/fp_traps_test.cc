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
#include "switchyard/route.h"
#include "tests/call_errors.h"

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
// NaN of both kinds, infinities, denormals, overflow.
TEST_P(FpTrapsTest, EveryFunctionOnAnyValues) {
  const size_t tokens = 301, experts = 97, top_k = 7, hidden = 333;
  const size_t pairs = tokens * top_k;
  Random random(31);
  const auto any = [&](size_t n) { return random.AnyBits(n); };
  const std::vector<float> logits = any(tokens * experts),
                           hiddens = any(tokens * hidden),
                           residual = any(tokens * hidden),
                           weight = any(hidden);
  std::vector<float> weights(pairs), rows(pairs * hidden),
      acted(pairs * hidden), out(tokens * hidden), normed(tokens * hidden);
  std::vector<int32_t> ids(pairs), counts(experts), offsets(experts + 1),
      order(pairs), index(pairs), table(experts * pairs);
  std::vector<int32_t> scratch(BucketScratchSize(pairs, experts, executor()));
  const ConstAnyMatrix topk_ids(ids.data(), tokens, top_k);
  for (const bool renormalize : {true, false}) {
    ASSERT_OK(Trapping([&] {
      return RouteTopK(
          {{logits.data(), tokens, experts}},
          {{ids.data(), tokens, top_k}, {weights.data(), tokens, top_k}},
          {renormalize, 0.3f}, executor());
    }));
  }
  ASSERT_OK(Trapping([&] {
    return BucketPacked({topk_ids, scratch},
                        {counts, offsets, order, {index.data(), tokens, top_k}},
                        {}, executor());
  }));
  ASSERT_OK(Trapping([&] {
    return BucketStrided({topk_ids, scratch}, {counts, table, pairs, true}, {},
                         executor());
  }));
  ASSERT_OK(Trapping([&] {
    return GatherRows({{hiddens.data(), tokens, hidden}, order, topk_ids},
                      {{rows.data(), pairs, hidden}}, {}, executor());
  }));
  const std::vector<float> up = any(pairs * hidden);
  ASSERT_OK(Trapping([&] {
    return Activate({{rows.data(), pairs, hidden}, {up.data(), pairs, hidden}},
                    {{acted.data(), pairs, hidden}}, {}, executor());
  }));
  ASSERT_OK(Trapping([&] {
    return Combine(
        {{acted.data(), pairs, hidden},
         {weights.data(), tokens, top_k},
         {index.data(), tokens, top_k},
         {residual.data(), tokens, hidden},
         weight},
        {{out.data(), tokens, hidden}, {normed.data(), tokens, hidden}}, {},
        executor());
  }));
}

// What refuses a NaN must not compare it.
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
