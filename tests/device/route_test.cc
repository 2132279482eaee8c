// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/route.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "testing/inputs.h"
#include "tests/device/built_in_test.h"

namespace switchyard::testing_support {
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

std::vector<float> Logits(const RouteShape& s, Type type = Type::kF32) {
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
  RoundEach(type, &logits);
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

// A job whose logits are numbers of the type.
Job RouteJob(Kernel kernel, const RouteShape& s,
             const std::vector<float>& logits,
             const RowType& type = kRowTypes[0]) {
  const Routed plain = Plain(s, logits, kernel != Kernel::kRouterAsIs);
  Job job = {
      std::string("moe_router_topk_softmax") + type.suffix,
      // Anything but 0 is true.
      Words<MoeRouterTopkSoftmaxParams>(
          {{static_cast<int32_t>(s.experts), static_cast<int32_t>(s.top_k),
            kernel == Kernel::kRouter ? 1 << s.tokens : 0}}),
      {In(logits).As(type.type), Out(plain.ids), Out(plain.weights)}};
  job.rows = s.tokens;
  job.threads = 32;
  job.local_memory = 580;  // what the seed asks for
  if (kernel == Kernel::kSoftmaxTopk) {
    job.kernel = std::string("moe_softmax_topk") + type.suffix;
    job.params = Words<MoeSoftmaxTopkParams>(
        {{static_cast<uint32_t>(s.tokens), static_cast<uint32_t>(s.experts),
          static_cast<uint32_t>(s.top_k), kNaN}});
    job.threads = std::min<size_t>(s.experts, 128);
    job.local_memory = 0;
  }
  return job;
}

using DeviceRouteTest = BuiltInTest;
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(DeviceRouteTest);

TEST_P(DeviceRouteTest, RouterEqualsThePlainApi) {
  for (const RowType& type : kRowTypes) {
    for (const RouteShape& s : kShapes) {
      const std::vector<float> logits = Logits(s, type.type);
      ExpectPlain(RouteJob(Kernel::kRouter, s, logits, type));
      ExpectPlain(RouteJob(Kernel::kRouterAsIs, s, logits, type));
    }
  }
}

TEST_P(DeviceRouteTest, SoftmaxTopkEqualsThePlainApi) {
  for (const RowType& type : kRowTypes) {
    for (const RouteShape& s : kShapes) {
      ExpectPlain(
          RouteJob(Kernel::kSoftmaxTopk, s, Logits(s, type.type), type));
    }
    // No tokens.
    ExpectPlain(RouteJob(Kernel::kSoftmaxTopk, {0, 60, 4}, {}, type));
  }
}

TEST_P(DeviceRouteTest, EveryThreadOfTheDevicesExecutor) {
  const RouteShape s = {8191, 60, 4};  // well over seven grains of 30 us
  executor().Rendezvous();
  ExpectWhole(RouteJob(Kernel::kRouterAsIs, s, Logits(s)));
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
}

}  // namespace
}  // namespace switchyard::testing_support
