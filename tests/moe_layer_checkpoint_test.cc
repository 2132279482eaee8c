// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Whole blocks from checkpoints in the real format, against numpy's float64,
// and the 16-bit floats in them.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint.h"
#include "gtest/gtest.h"
#include "layer_weights.h"
#include "model_config.h"
#include "moe_block.h"
#include "reference_check.h"
#include "switchyard/executor.h"
#include "switchyard/views.h"
#include "testing/inputs.h"
#include "tests/moe_layer_files.h"
#include "tests/target_test.h"

namespace moe_layer::testing_support {
namespace {

using switchyard::Executor;
using switchyard::Matrix;
using switchyard::testing_support::Bits;
using switchyard::testing_support::kInf;
using switchyard::testing_support::MakeExecutor;
using switchyard::testing_support::Pool;

// A family that is in no table; make_checkpoints.py makes a checkpoint of it.
Family Renamed() {
  Family family;
  family.model_type = "renamed";
  family.keys.num_layers = "n_layer";
  family.keys.hidden = "width";
  family.keys.intermediate = "ffn";
  family.keys.num_experts = "n_expert";
  family.keys.top_k = "n_used";
  family.keys.norm_eps = "eps";
  family.keys.renormalize = nullptr;
  family.renormalize = true;
  family.keys.dense_layers = nullptr;
  family.keys.sparse_step = nullptr;
  family.names.norm = "block.{layer}.norm";
  family.names.last_norm = "end.norm";
  family.names.router = "block.{layer}.router";
  family.names.gate = "block.{layer}.w1.{expert}";
  family.names.up = "block.{layer}.w3.{expert}";
  family.names.down = "block.{layer}.w2.{expert}";
  return family;
}

LayerWeights Load(const std::string& name, std::optional<size_t> layer) {
  auto checkpoint = std::make_shared<Checkpoint>(CheckpointPath(name));
  static const Family renamed = Renamed();
  const ModelConfig config =
      name == "renamed"
          ? ModelConfig(checkpoint->ConfigPath(), checkpoint->config(), renamed)
          : ModelConfig(checkpoint->ConfigPath(), checkpoint->config());
  return LayerLoader(checkpoint, config, config.SelectLayer(layer))
      .Load(switchyard::SerialExecutor());
}

// A block and what it was run on.
struct Ran {
  Ran(const LayerWeights& weights, const std::vector<float>& states,
      Executor& executor)
      : tokens(states.size() / weights.shape.hidden),
        hidden(states.data(), tokens, weights.shape.hidden),
        normed_data(states.size()),
        normed(normed_data.data(), tokens, weights.shape.hidden),
        block(weights, tokens, executor) {
    InputNorm(weights, hidden, normed, switchyard::SerialExecutor());
    block.Run(hidden, normed);
  }

  size_t tokens;
  Matrix<const float> hidden;
  std::vector<float> normed_data;
  Matrix<float> normed;
  MoeBlock block;
};

void ExpectClose(Matrix<const float> got, const double* want,
                 const char* what) {
  for (size_t t = 0; t < got.rows; ++t) {
    for (size_t h = 0; h < got.cols; ++h) {
      const double exact = want[t * got.cols + h];
      ASSERT_NEAR(static_cast<double>(got.Row(t)[h]), exact,
                  1e-5 * (1 + std::fabs(exact)))
          << what << ", token " << t << ", column " << h;
    }
  }
}

using Case = std::pair<std::string, size_t>;

class Checkpoints : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    MoeLayerFamilies, Checkpoints,
    testing::Values(Case{"qwen3_moe", 1}, Case{"qwen3_moe", 2},
                    Case{"qwen2_moe", 0}, Case{"qwen2_moe", 1},
                    Case{"renamed", 0}),
    [](const auto& test) {
      return test.param.first + "_layer" + std::to_string(test.param.second);
    });

TEST_P(Checkpoints, ComputesWhatNumpyDoes) {
  const auto [name, layer] = GetParam();
  const LayerWeights weights = Load(name, layer);
  const std::string folder = CheckpointPath(name);
  const auto states = ReadNumbers<float>(folder + "/hidden.f32");
  const auto expected = ReadNumbers<double>(folder + "/expected_" +
                                            std::to_string(layer) + ".f64");
  ASSERT_EQ(expected.size(), 2 * states.size());
  ASSERT_FALSE(states.empty());

  Ran ran(weights, states, switchyard::SerialExecutor());
  const BlockResults& results = ran.block.results();
  ExpectClose(results.out, expected.data(), "out");
  ExpectClose(results.next_normed, expected.data() + states.size(), "normed");

  const CheckReport check =
      CheckAgainstDouble(weights, ran.hidden, ran.normed, results, SIZE_MAX,
                         switchyard::SerialExecutor());
  EXPECT_EQ(check.tokens, ran.tokens);
  EXPECT_EQ(check.failure, "");
}

// It holds because no GEMM is cut by the number of threads.
TEST_P(Checkpoints, SameBitsOnAnyNumberOfThreads) {
  const auto [name, layer] = GetParam();
  const LayerWeights weights = Load(name, layer);
  const auto states = ReadNumbers<float>(CheckpointPath(name) + "/hidden.f32");
  Ran serial(weights, states, switchyard::SerialExecutor());
  const BlockResults& want = serial.block.results();
  for (const Pool pool : {Pool::kTbb2, Pool::kShuffle}) {
    const auto executor = MakeExecutor(pool);
    executor->Rendezvous();
    Ran ran(weights, states, *executor);
    EXPECT_EQ(executor->DistinctThreads(), executor->ExpectedThreads());
    const BlockResults& got = ran.block.results();
    for (const auto part :
         {&BlockResults::logits, &BlockResults::weights,
          &BlockResults::expert_rows, &BlockResults::shared_rows,
          &BlockResults::out, &BlockResults::next_normed}) {
      const Matrix<const float> a = got.*part, b = want.*part;
      if (b.data == nullptr) continue;  // no shared expert
      EXPECT_EQ(std::memcmp(a.data, b.data, a.rows * a.cols * sizeof(float)),
                0);
    }
  }
}

// The table's rows are the time that passed: no less, no more.
TEST(MoeLayerCheckpointFiles, StagesAddUpToTheTimeThatPassed) {
  const LayerWeights weights = Load("qwen2_moe", 0);
  const auto states =
      ReadNumbers<float>(CheckpointPath("qwen2_moe") + "/hidden.f32");
  for (const Pool pool : {Pool::kSerial, Pool::kTbb2}) {
    const auto executor = MakeExecutor(pool);
    Ran ran(weights, states, *executor);
    double best = 0;  // the clock readings outside may wait for the CPU
    for (int i = 0; i < 20; ++i) {
      const auto start = std::chrono::steady_clock::now();
      ran.block.Run(ran.hidden, ran.normed);
      const std::chrono::duration<double> passed =
          std::chrono::steady_clock::now() - start;
      const StageProfile& profile = ran.block.profile();
      for (const StageCost& cost : profile.stages) EXPECT_GE(cost.seconds, 0);
      EXPECT_LE(profile.TotalSeconds(), passed.count());
      best = std::max(best, profile.TotalSeconds() / passed.count());
    }
    EXPECT_GE(best, 0.95);
  }
}

TEST(MoeLayerCheckpointFiles, ReadsShapeAndRecipe) {
  const LayerWeights qwen3 = Load("qwen3_moe", 1);
  EXPECT_EQ(qwen3.shape.hidden, 72u);
  EXPECT_EQ(qwen3.shape.intermediate, 40u);
  EXPECT_EQ(qwen3.shape.num_experts, 12u);
  EXPECT_EQ(qwen3.shape.top_k, 3u);
  EXPECT_EQ(qwen3.shape.shared_intermediate, 0u);
  EXPECT_TRUE(qwen3.shape.renormalize);
  EXPECT_EQ(qwen3.shape.norm_eps, 1e-6f);
  const LayerWeights qwen2 = Load("qwen2_moe", 1);
  EXPECT_EQ(qwen2.shape.shared_intermediate, 56u);
  EXPECT_FALSE(qwen2.shape.renormalize);
}

TEST(MoeLayerCheckpointFiles, PicksTheFirstLayerWithExperts) {
  EXPECT_EQ(Load("qwen3_moe", std::nullopt).title, "qwen3_moe, layer 1 of 3");
  EXPECT_EQ(Load("qwen2_moe", std::nullopt).title, "qwen2_moe, layer 0 of 2");
}

TEST(MoeLayerCheckpointFiles, UsesAlignedF32InPlaceAndCopiesTheRest) {
  const LayerWeights weights = Load("renamed", 0);
  // Every other tensor is in the file whose data starts on an odd byte.
  size_t owned = 0;
  const auto count = [&](const float* data, size_t size) {
    const float* begin = weights.storage.data();
    if (data >= begin && data < begin + weights.storage.size()) owned += size;
  };
  const MoeShape& shape = weights.shape;
  count(weights.norm, shape.hidden);
  count(weights.next_norm, shape.hidden);
  count(weights.router, shape.num_experts * shape.hidden);
  for (const ExpertWeights& expert : weights.experts) {
    for (const float* data : {expert.gate, expert.up, expert.down}) {
      count(data, shape.intermediate * shape.hidden);
    }
  }
  EXPECT_EQ(owned, shape.hidden + 18 * shape.intermediate * shape.hidden);
  EXPECT_EQ(weights.num_floats,
            14 * shape.hidden + 36 * shape.intermediate * shape.hidden);
}

// All 2^16 values, starting on an odd byte.
std::vector<float> ConvertAll(void (*convert)(const uint8_t*, size_t, float*)) {
  std::vector<uint8_t> source(1 + 2 * 65536);
  for (uint32_t i = 0; i < 65536; ++i) {
    source[1 + 2 * i] = static_cast<uint8_t>(i & 0xFF);
    source[2 + 2 * i] = static_cast<uint8_t>(i >> 8);
  }
  std::vector<float> out(65536);
  convert(source.data() + 1, out.size(), out.data());
  return out;
}

TEST(MoeLayerHalfFloat, EveryF16IsExact) {
  const std::vector<float> out =
      ConvertAll([](auto... args) { ConvertF16(args...); });
  for (uint32_t i = 0; i < 65536; ++i) {
    const int exponent = static_cast<int>((i >> 10) & 31);
    const auto mantissa = static_cast<double>(i & 1023);
    const float sign = (i >> 15) != 0 ? -1.0f : 1.0f;
    if (exponent == 31 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(out[i])) << i;
      EXPECT_EQ(Bits(out[i]),
                (i & 0x8000u) << 16 | 0x7F800000u | (i & 1023u) << 13)
          << i;
      continue;
    }
    const double magnitude = exponent == 31 ? double{kInf}
                             : exponent == 0
                                 ? std::ldexp(mantissa, -24)
                                 : std::ldexp(1024 + mantissa, exponent - 25);
    EXPECT_EQ(Bits(out[i]), Bits(sign * static_cast<float>(magnitude))) << i;
  }
}

TEST(MoeLayerHalfFloat, EveryBf16IsTheUpperHalfOfAFloat) {
  const std::vector<float> out =
      ConvertAll([](auto... args) { ConvertBf16(args...); });
  for (uint32_t i = 0; i < 65536; ++i) EXPECT_EQ(Bits(out[i]), i << 16) << i;
}

TEST(MoeLayerHalfFloat, EveryLengthStopsAtItsEnd) {
  const std::vector<uint8_t> source(2 * 40, 0x3C);
  for (size_t count = 0; count <= 40; ++count) {
    std::vector<float> out(41, -7.0f);
    ConvertF16(source.data(), count, out.data());
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(out[i], i < count ? 0x1.0fp0f : -7.0f);
    }
  }
}

}  // namespace
}  // namespace moe_layer::testing_support
