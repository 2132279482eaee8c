// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests forms of routing for which RouteTopK() has no option. docs/models.md
// lists the calls with which an engine computes these forms. Each test
// follows the formula of the family's code in double precision.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "switchyard/bucket.h"
#include "switchyard/route.h"
#include "testing/inputs.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Returns the indices of the `count` largest keys. Of equal keys, the one with
// the smaller index comes first.
std::vector<int32_t> Largest(const std::vector<double>& keys, size_t count) {
  std::vector<int32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)];
  });
  order.resize(count);
  return order;
}

struct Routed {
  Routed(size_t rows, size_t top_k)
      : k(top_k), ids(rows * top_k), weights(rows * top_k) {}
  RouteOutputs Outputs() {
    const size_t rows = ids.size() / k;
    return {{ids.data(), rows, k}, {weights.data(), rows, k}};
  }
  std::vector<int32_t> IdsOf(size_t row) const {
    const auto begin = ids.begin() + static_cast<ptrdiff_t>(row * k);
    return {begin, begin + static_cast<ptrdiff_t>(k)};
  }
  const size_t k;
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

// Expects `ids` in a row, and as weights the sigmoids of their logits,
// divided by the sum of these sigmoids.
void ExpectSigmoidShares(const Routed& routed, size_t row, const float* logits,
                         const std::vector<int32_t>& ids) {
  EXPECT_EQ(routed.IdsOf(row), ids) << "row " << row;
  double sum = 0;
  for (const int32_t id : ids) sum += Sigmoid(logits[id]);
  for (size_t j = 0; j < ids.size(); ++j) {
    EXPECT_NEAR(routed.weights[row * routed.k + j],
                Sigmoid(logits[ids[j]]) / sum, 1e-6)
        << "row " << row;
  }
}

RouteOptions SigmoidShares() {
  RouteOptions options;
  options.score = Score::kSigmoid;
  options.divisor = Divisor::kSum;
  return options;
}

class RouteFamiliesTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(RouteFamiliesTest);

// MAGI-2: the logits are [heads, tokens, experts], and each head has a bias.
// Head 1 excludes all experts but two. Even there no expert is selected
// twice.
TEST_P(RouteFamiliesTest, HeadsAreRowsWithABiasOfTheirOwn) {
  constexpr size_t kHeads = 3, kTokens = 7, kExperts = 17, kTopK = 4;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto logits =
        random.Uniforms(kHeads * kTokens * kExperts, -4.0f, 4.0f);
    auto bias = random.Uniforms(kHeads * kExperts, -0.5f, 0.5f);
    for (size_t e = 2; e < kExperts; ++e) bias[kExperts + e] = -kInfinity;
    std::vector<int32_t> head_of_row(kHeads * kTokens);
    for (size_t r = 0; r < head_of_row.size(); ++r) {
      head_of_row[r] = static_cast<int32_t>(r / kTokens);
    }
    Routed routed(kHeads * kTokens, kTopK);
    RouteInputs in = {{logits.data(), kHeads * kTokens, kExperts}};
    in.correction_bias = {bias.data(), kHeads, kExperts};
    in.bias_index = {head_of_row.data(), kHeads * kTokens, 1};
    ASSERT_OK(RouteTopK(in, routed.Outputs(), SigmoidShares()));
    for (size_t r = 0; r < kHeads * kTokens; ++r) {
      std::vector<double> keys(kExperts);
      for (size_t e = 0; e < kExperts; ++e) {
        keys[e] = Sigmoid(logits[r * kExperts + e]) +
                  bias[r / kTokens * kExperts + e];
      }
      ExpectSigmoidShares(routed, r, &logits[r * kExperts],
                          Largest(keys, kTopK));
    }
  }
}

// LLaDA2.2: a block of tokens may use only kCapacity experts. An expert's key
// for the block is its largest key for any token of the block. The experts
// with the largest keys for the block are used. The last block is shorter.
TEST_P(RouteFamiliesTest, BlocksOfTokensShareAFewExperts) {
  constexpr size_t kTokens = 10, kBlock = 4, kBlocks = 3;
  constexpr size_t kExperts = 16, kCapacity = 6, kTopK = 3;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto logits = random.Uniforms(kTokens * kExperts, -4.0f, 4.0f);
    const auto bias = random.Uniforms(kExperts, -0.2f, 0.2f);
    std::vector<float> best(kBlocks * kExperts, -kInfinity);
    std::vector<int32_t> block_of_token(kTokens);
    for (size_t t = 0; t < kTokens; ++t) {
      block_of_token[t] = static_cast<int32_t>(t / kBlock);
      for (size_t e = 0; e < kExperts; ++e) {
        float& key = best[t / kBlock * kExperts + e];
        key = std::max(key, static_cast<float>(
                                Sigmoid(logits[t * kExperts + e]) + bias[e]));
      }
    }
    // The first call selects the block's experts.
    Routed kept(kBlocks, kCapacity);
    RouteOptions raw;
    raw.score = Score::kRaw;
    raw.renormalize = false;
    ASSERT_OK(
        RouteTopK({{best.data(), kBlocks, kExperts}}, kept.Outputs(), raw));
    // The second call selects each token's experts. A bias of -inf excludes
    // the experts that the first call did not select for the token's block.
    std::vector<float> block_bias(kBlocks * kExperts, -kInfinity);
    for (size_t b = 0; b < kBlocks; ++b) {
      for (const int32_t e : kept.IdsOf(b)) {
        const size_t expert = static_cast<size_t>(e);
        block_bias[b * kExperts + expert] = bias[expert];
      }
    }
    Routed routed(kTokens, kTopK);
    RouteInputs in = {{logits.data(), kTokens, kExperts}};
    in.correction_bias = {block_bias.data(), kBlocks, kExperts};
    in.bias_index = {block_of_token.data(), kTokens, 1};
    ASSERT_OK(RouteTopK(in, routed.Outputs(), SigmoidShares()));
    for (size_t t = 0; t < kTokens; ++t) {
      const float* block_best = &best[t / kBlock * kExperts];
      const auto allowed =
          Largest({block_best, block_best + kExperts}, kCapacity);
      std::vector<double> keys(kExperts, -1.0);
      for (const int32_t e : allowed) {
        const size_t expert = static_cast<size_t>(e);
        keys[expert] = Sigmoid(logits[t * kExperts + expert]) + bias[expert];
      }
      ExpectSigmoidShares(routed, t, &logits[t * kExperts],
                          Largest(keys, kTopK));
    }
  }
}

// Intern-S1-Pro: top_k / groups experts are selected in each group. The
// weights are the softmax over all experts, divided by the sum over the
// selected experts.
TEST_P(RouteFamiliesTest, EachGroupSelectsItsOwnExperts) {
  constexpr size_t kTokens = 9, kGroups = 4, kOfGroup = 6, kEach = 2;
  constexpr size_t kExperts = kGroups * kOfGroup, kTopK = kGroups * kEach;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    const auto logits = Random(seed).Uniforms(kTokens * kExperts, -4.0f, 4.0f);
    // A row of the first call is a group, because the logits are contiguous.
    Routed of_groups(kTokens * kGroups, kEach);
    ASSERT_OK(RouteTopK({{logits.data(), kTokens * kGroups, kOfGroup}},
                        of_groups.Outputs(), RouteOptions()));
    std::vector<int32_t> given = of_groups.ids;
    for (size_t i = 0; i < given.size(); ++i) {
      given[i] += static_cast<int32_t>(i / kEach % kGroups * kOfGroup);
    }
    Routed routed(kTokens, kTopK);
    RouteInputs in = {{logits.data(), kTokens, kExperts}};
    in.given_ids = {given.data(), kTokens, kTopK};
    ASSERT_OK(RouteTopK(in, routed.Outputs(), RouteOptions()));
    for (size_t t = 0; t < kTokens; ++t) {
      const float* row = &logits[t * kExperts];
      std::vector<int32_t> ids;
      double sum = 0;
      for (size_t g = 0; g < kGroups; ++g) {
        const float* group = row + g * kOfGroup;
        for (const int32_t e : Largest({group, group + kOfGroup}, kEach)) {
          ids.push_back(e + static_cast<int32_t>(g * kOfGroup));
          sum += std::exp(row[ids.back()]);
        }
      }
      EXPECT_EQ(routed.IdsOf(t), ids);
      for (size_t j = 0; j < kTopK; ++j) {
        EXPECT_NEAR(routed.weights[t * kTopK + j], std::exp(row[ids[j]]) / sum,
                    1e-6);
      }
    }
  }
}

// GroveMoE: every two experts share a second, smaller expert. The weight of a
// selected expert is also the weight of its second expert.
TEST_P(RouteFamiliesTest, SecondExpertsHaveMappedIds) {
  constexpr size_t kTokens = 9, kExperts = 16, kTopK = 5;
  const auto logits = Random(3).Uniforms(kTokens * kExperts, -4.0f, 4.0f);
  Routed first(kTokens, kTopK), second(kTokens, kTopK);
  RouteInputs in = {{logits.data(), kTokens, kExperts}};
  ASSERT_OK(RouteTopK(in, first.Outputs(), RouteOptions()));
  std::vector<int32_t> pair_of(kExperts);
  for (size_t e = 0; e < kExperts; ++e) {
    pair_of[e] = static_cast<int32_t>(e / 2);
  }
  in.given_ids = {first.ids.data(), kTokens, kTopK};
  in.expert_map = {pair_of.data(), 1, kExperts};
  ASSERT_OK(RouteTopK(in, second.Outputs(), RouteOptions()));
  EXPECT_EQ(second.weights, first.weights);
  for (size_t i = 0; i < first.ids.size(); ++i) {
    EXPECT_EQ(second.ids[i], first.ids[i] / 2);
  }
}

// Some engines, such as ik_llama.cpp, leave out experts with a small weight. An
// engine can set the ids of these experts to -1. A second call then divides the
// other weights by their sum, and the buckets skip the empty slots.
TEST_P(RouteFamiliesTest, ExpertsBelowAThresholdAreDropped) {
  constexpr size_t kTokens = 32, kExperts = 16, kTopK = 4;
  constexpr float kShareOfLargest = 0.3f;
  const auto logits = Random(4).Uniforms(kTokens * kExperts, -4.0f, 4.0f);
  RouteInputs in = {{logits.data(), kTokens, kExperts}};
  RouteOptions options;
  options.renormalize = false;
  Routed routed(kTokens, kTopK);
  ASSERT_OK(RouteTopK(in, routed.Outputs(), options));
  const std::vector<float> undivided = routed.weights;
  size_t left = 0;
  for (size_t i = 0; i < routed.ids.size(); ++i) {
    const float largest = undivided[i / kTopK * kTopK];
    if (undivided[i] < kShareOfLargest * largest) routed.ids[i] = -1;
    left += routed.ids[i] >= 0;
  }
  ASSERT_GT(left, kTokens);
  ASSERT_LT(left, kTokens * kTopK);

  Report report;
  RouteOutputs out = routed.Outputs();
  out.report = &report;
  in.given_ids = {routed.ids.data(), kTokens, kTopK};
  options.renormalize = true;
  ASSERT_OK(RouteTopK(in, out, options));
  EXPECT_EQ(report.invalid_ids, kTokens * kTopK - left);
  for (size_t t = 0; t < kTokens; ++t) {
    double sum = 0;
    for (size_t i = t * kTopK; i < (t + 1) * kTopK; ++i) {
      if (routed.ids[i] >= 0) sum += undivided[i];
    }
    for (size_t i = t * kTopK; i < (t + 1) * kTopK; ++i) {
      EXPECT_NEAR(routed.weights[i],
                  routed.ids[i] < 0 ? 0.0 : undivided[i] / sum, 1e-6);
    }
  }

  std::vector<int32_t> counts(kExperts), offsets(kExperts + 1);
  std::vector<int32_t> pairs(kTokens * kTopK);
  BucketOptions dropped;
  dropped.allow_dropped = true;
  ASSERT_OK(BucketPacked({{routed.ids.data(), kTokens, kTopK}},
                         {counts, offsets, pairs}, dropped));
  EXPECT_EQ(offsets.back(), static_cast<int32_t>(left));
  for (size_t i = 0; i < left; ++i) {
    EXPECT_GE(routed.ids[static_cast<size_t>(pairs[i])], 0);
  }
}

// REAP prunes a checkpoint from 256 to 144 experts. RouteTopK() has to accept
// any number of experts.
TEST_P(RouteFamiliesTest, PrunedCheckpointsHaveAnyNumberOfExperts) {
  constexpr size_t kTokens = 5, kExperts = 144, kTopK = 8;
  Random random(5);
  const auto logits = random.Uniforms(kTokens * kExperts, -4.0f, 4.0f);
  const auto bias = random.Uniforms(kExperts, -0.2f, 0.2f);
  Routed routed(kTokens, kTopK);
  RouteInputs in = {{logits.data(), kTokens, kExperts}};
  in.correction_bias = {bias.data(), 1, kExperts};
  ASSERT_OK(RouteTopK(in, routed.Outputs(), SigmoidShares()));
  for (size_t t = 0; t < kTokens; ++t) {
    std::vector<double> keys(kExperts);
    for (size_t e = 0; e < kExperts; ++e) {
      keys[e] = Sigmoid(logits[t * kExperts + e]) + bias[e];
    }
    ExpectSigmoidShares(routed, t, &logits[t * kExperts], Largest(keys, kTopK));
  }
}

}  // namespace
}  // namespace switchyard::testing_support
