// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/route.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "testing/inputs.h"
#include "tests/device/built_in_test.h"

namespace switchyard {
namespace testing_support {
namespace {

struct RouteShape {
  size_t tokens, experts, top_k;
};

// Beyond the seeds' limits too: top_k above 32 and 64, experts that are no
// power of two; the last is where the clamp of the renormalisation matters.
constexpr RouteShape kShapes[] = {
    {1, 1, 1},   {3, 16, 4},    {5, 60, 4},    {7, 60, 33},
    {4, 100, 3}, {6, 128, 128}, {9, 257, 100}, {2, 65536, 1},
};

std::vector<float> Logits(const RouteShape& s) {
  Random random(s.experts);
  std::vector<float> logits =
      random.Uniforms(s.tokens * s.experts, -9.0f, 9.0f);
  if (s.experts > 1000) std::fill(logits.begin(), logits.end(), 1.0f);
  if (s.tokens >= 4) {
    float* const row = &logits[2 * s.experts];
    row[s.experts / 2] = kNaN;
    row[s.experts] = kInf;  // of the next row
    std::fill_n(&logits[s.experts], s.experts, -kInf);
  }
  return logits;
}

struct Routed {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

Routed Plain(const RouteShape& s, const std::vector<float>& logits,
             bool renormalize) {
  Routed r = {std::vector<int32_t>(s.tokens * s.top_k),
              std::vector<float>(s.tokens * s.top_k)};
  RouteOptions options;
  options.renormalize = renormalize;
  const Status status = RouteTopK({{logits.data(), s.tokens, s.experts}},
                                  {{r.ids.data(), s.tokens, s.top_k},
                                   {r.weights.data(), s.tokens, s.top_k}},
                                  options);
  EXPECT_TRUE(status.ok()) << status.message();
  return r;
}

enum class Kernel { kRouter, kRouterAsIs, kSoftmaxTopk };

class DeviceRouteTest : public BuiltInTest {
 protected:
  // Threads per threadgroup.
  static size_t Width(Kernel kernel, const RouteShape& s) {
    return kernel == Kernel::kSoftmaxTopk ? std::min<size_t>(s.experts, 128)
                                          : 32;
  }

  std::string RunRoute(Kernel kernel, const RouteShape& s,
                       const DeviceArray<float>& logits,
                       const DeviceArray<int32_t>& ids,
                       const DeviceArray<float>& weights, How how,
                       device::Size threads) {
    const size_t width = Width(kernel, s);
    if (kernel == Kernel::kSoftmaxTopk) {
      const device::MoeSoftmaxTopkParams params = {
          static_cast<uint32_t>(s.tokens), static_cast<uint32_t>(s.experts),
          static_cast<uint32_t>(s.top_k), kNaN};
      return Run({"moe_softmax_topk_f32",
                  width,
                  0,
                  {logits.At(1), ids.At(2), weights.At(3)}},
                 params, how, threads);
    }
    device::MoeRouterTopkSoftmaxParams params = {
        static_cast<int32_t>(s.experts), static_cast<int32_t>(s.top_k), 0};
    // Anything but 0 is true.
    if (kernel == Kernel::kRouter) params.norm_topk_prob = 1 << s.tokens;
    return Run({"moe_router_topk_softmax_f32",
                width,
                3,
                {logits.At(0), ids.At(1), weights.At(2)},
                // What the seed asks for.
                how.params_written ? 580u : 0u},
               params, how, threads);
  }

  // Every grid, on some shape.
  void ExpectPlain(Kernel kernel, const RouteShape& s) {
    SCOPED_TRACE(testing::Message() << s.experts << " experts, " << s.top_k);
    const std::vector<float> l = Logits(s);
    const Routed whole = Plain(s, l, kernel != Kernel::kRouterAsIs);
    const DeviceArray<float> logits(device(), l);
    // The router's grid is all it knows of the number of tokens.
    const bool cut_off = kernel == Kernel::kSoftmaxTopk;
    ForRowGrids(
        s.tokens, Width(kernel, s), cut_off,
        [&](How how, device::Size threads, size_t rows) {
          const size_t size = s.tokens * s.top_k;
          const DeviceArray<int32_t> ids(device(), size);
          const DeviceArray<float> weights(device(), size);
          const Routed before = {ids.Values(), weights.Values()};
          ASSERT_EQ(RunRoute(kernel, s, logits, ids, weights, how, threads),
                    "");
          const Covered covered = {rows, s.top_k};
          ExpectPart(ids, before.ids, whole.ids, s.top_k, covered, "ids");
          ExpectPart(weights, before.weights, whole.weights, s.top_k, covered,
                     "weights");
        });
  }
};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(DeviceRouteTest);

TEST_P(DeviceRouteTest, RouterEqualsThePlainApi) {
  for (const RouteShape& s : kShapes) {
    ExpectPlain(Kernel::kRouter, s);
    ExpectPlain(Kernel::kRouterAsIs, s);
  }
}

TEST_P(DeviceRouteTest, SoftmaxTopkEqualsThePlainApi) {
  for (const RouteShape& s : kShapes) ExpectPlain(Kernel::kSoftmaxTopk, s);
  ExpectPlain(Kernel::kSoftmaxTopk, {0, 60, 4});  // grids over no tokens
}

// Cases from the seed projects' public tests.
TEST_P(DeviceRouteTest, KnownAnswers) {
  const RouteShape s = {3, 16, 4};
  std::vector<float> l;
  for (int b = 0; b < 3; ++b) {
    for (int e = 0; e < 16; ++e) {
      l.push_back(std::sin(0.7f * static_cast<float>(b) +
                           0.13f * static_cast<float>(e)) +
                  0.05f * static_cast<float>(e));
    }
  }
  const float known[] = {.25781122f, .25528407f, .24868114f, .23822355f,
                         .25243434f, .25149554f, .24951813f, .24655199f,
                         .2522141f,  .25163895f, .24881358f, .24733333f};
  // The seeds order those whose probability underflows by index: 1, 0, 2, 3.
  const RouteShape underflow = {1, 8, 4};
  const DeviceArray<float> logits(device(), l),
      low(device(), {-200.0f, 0.0f, -150.0f, -300.0f, -120.0f, -110.0f, -105.0f,
                     -400.0f});
  for (const Kernel kernel : {Kernel::kRouter, Kernel::kSoftmaxTopk}) {
    const DeviceArray<int32_t> ids(device(), 12), low_ids(device(), 4);
    const DeviceArray<float> weights(device(), 12), low_weights(device(), 4);
    ASSERT_EQ(RunRoute(kernel, s, logits, ids, weights, kEveryHow[3],
                       device::Size(3 * Width(kernel, s), 1, 1)),
              "");
    EXPECT_EQ(ids.Values(), (std::vector<int32_t>{15, 14, 13, 12,  //
                                                  10, 9, 11, 8,    //
                                                  4, 5, 3, 6}));
    for (size_t i = 0; i < 12; ++i) {
      EXPECT_NEAR(weights.Values()[i], known[i], 1e-5f) << i;
    }
    ASSERT_EQ(
        RunRoute(kernel, underflow, low, low_ids, low_weights, kEveryHow[0],
                 device::Size(Width(kernel, underflow), 1, 1)),
        "");
    EXPECT_EQ(low_ids.Values(), (std::vector<int32_t>{1, 6, 5, 4}));
    EXPECT_EQ(low_weights.Values(), (std::vector<float>{1, 0, 0, 0}));
  }
}

TEST_P(DeviceRouteTest, EveryThreadOfTheDevicesExecutor) {
  // Well over seven grains of 30 us.
  const RouteShape s = {8191, 60, 4};
  const std::vector<float> l = Logits(s);
  const DeviceArray<float> logits(device(), l),
      weights(device(), s.tokens * s.top_k);
  const DeviceArray<int32_t> ids(device(), s.tokens * s.top_k);
  executor().Rendezvous();
  ASSERT_EQ(RunRoute(Kernel::kRouterAsIs, s, logits, ids, weights, kEveryHow[0],
                     device::Size(s.tokens * 32, 1, 1)),
            "");
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
  const Routed whole = Plain(s, l, false);
  EXPECT_EQ(ids.Values(), whole.ids);
  EXPECT_EQ(Words(weights.Values()), Words(whole.weights));
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
