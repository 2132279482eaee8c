// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests whole blocks that are read from checkpoints in Hugging Face's format.
// In every dtype, the results are compared with numpy's results in float64.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "checkpoint.h"
#include "gtest/gtest.h"
#include "layer_weights.h"
#include "model_config.h"
#include "moe_block.h"
#include "programs/json.h"
#include "reference_check.h"
#include "states.h"
#include "switchyard/executor.h"
#include "switchyard/views.h"
#include "tests/moe_layer_files.h"
#include "tests/target_test.h"

namespace moe_layer::testing_support {
namespace {

using switchyard::AnyMatrix;
using switchyard::ConstAnyMatrix;
using switchyard::Executor;
using switchyard::testing_support::MakeExecutor;
using switchyard::testing_support::Pool;

// A family that is in no table of the program. make_checkpoints.py makes a
// checkpoint of it.
constexpr FamilyLayer Renamed() {
  FamilyLayer layer;
  layer.num_layers = "n_layer";
  layer.hidden = "width";
  layer.intermediate = "ffn";
  layer.roots = {"block."};
  layer.prefix = "{root}{layer}.";
  layer.last_norm = "end.norm";
  return layer.Set(kNorm, "norm")
      .Set(kNextNorm, "norm")
      .Router("router")
      .Experts({"w", {"1.{expert}", "3.{expert}", "2.{expert}"}});
}

constexpr Dtype kF32 = kDtypes[1];

LayerWeights Load(const std::string& name, std::optional<size_t> layer,
                  const Dtype& dtype = kF32) {
  auto checkpoint = std::make_shared<Checkpoint>(CheckpointPath(name));
  static constexpr FamilyLayer renamed = Renamed();
  const ModelConfig config =
      name == "renamed"
          ? ModelConfig(checkpoint->ConfigPath(), checkpoint->config(),
                        "mixtral", renamed)
          : ModelConfig(checkpoint->ConfigPath(), checkpoint->config());
  return LoadLayer(PlanLayer(checkpoint, config, config.SelectLayer(layer)),
                   dtype, switchyard::SerialExecutor());
}

// A block that has run, and its inputs.
struct Ran {
  Ran(const LayerWeights& weights, const std::vector<float>& states,
      Executor& executor)
      : tokens(states.size() / weights.shape.hidden),
        hidden_rows(ConvertRows(
            ConstAnyMatrix(states.data(), tokens, weights.shape.hidden),
            weights.dtype.rows, switchyard::SerialExecutor())),
        normed_rows(weights.dtype.rows, tokens, weights.shape.hidden),
        hidden(hidden_rows.rows()),
        normed(normed_rows.rows()),
        block(weights, tokens, executor) {
    InputNorm(weights, hidden, normed, switchyard::SerialExecutor());
    block.Run(hidden, normed);
  }

  size_t tokens;
  RowBuffer hidden_rows;
  RowBuffer normed_rows;
  AnyMatrix hidden;
  AnyMatrix normed;
  MoeBlock block;
};

std::vector<float> Floats(const AnyMatrix& m) {
  const RowBuffer rows =
      ConvertRows(m, switchyard::Type::kF32, switchyard::SerialExecutor());
  const auto* begin = rows.rows().Row<float>(0);
  return {begin, begin + m.rows * m.cols};
}

// `rms`: the root mean square of the error, divided by the root mean square
// of (expected - from). `largest`: the largest error, in units of 1 +
// |expected|.
struct Distance {
  double rms, largest;
};
Distance DistanceOf(const AnyMatrix& got, const double* want,
                    const std::vector<float>* from) {
  const std::vector<float> floats = Floats(got);
  Distance distance = {0, 0};
  double size = 0;
  for (size_t i = 0; i < floats.size(); ++i) {
    const double error = static_cast<double>(floats[i]) - want[i];
    const double part =
        want[i] - (from == nullptr ? 0 : static_cast<double>((*from)[i]));
    distance.rms += error * error;
    size += part * part;
    distance.largest =
        std::max(distance.largest, std::fabs(error) / (1 + std::fabs(want[i])));
  }
  distance.rms = std::sqrt(distance.rms / size);
  return distance;
}

using Case = std::tuple<std::pair<std::string, size_t>, Dtype>;

class Checkpoints : public testing::TestWithParam<Case> {
 protected:
  std::string name() const { return std::get<0>(GetParam()).first; }
  size_t layer() const { return std::get<0>(GetParam()).second; }
  const Dtype& dtype() const { return std::get<1>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(
    MoeLayerFamilies, Checkpoints,
    testing::Combine(
        testing::Values(std::pair("qwen3_moe", 1), std::pair("qwen3_moe", 2),
                        std::pair("qwen2_moe", 0), std::pair("qwen2_moe", 1),
                        std::pair("renamed", 0), std::pair("deepseek_v3", 1),
                        std::pair("deepseek_v4", 1), std::pair("gemma4", 1),
                        std::pair("gpt_oss", 1), std::pair("granitemoe", 1),
                        std::pair("llama4", 0), std::pair("longcat_flash", 1),
                        std::pair("qwen3_next", 1)),
        testing::ValuesIn(DtypesOfAnySize())),
    [](const auto& test) {
      const auto& of = std::get<0>(test.param);
      return of.first + "_layer" + std::to_string(of.second) + "_" +
             std::get<1>(test.param).name;
    });

TEST_P(Checkpoints, ComputesWhatNumpyDoes) {
  const LayerWeights weights = Load(name(), layer(), dtype());
  const std::string folder = CheckpointPath(name());
  const auto states = ReadNumbers<float>(folder + "/hidden.f32");
  const auto expected = ReadNumbers<double>(folder + "/expected_" +
                                            std::to_string(layer()) + ".f64");
  const bool has_norm = weights.vectors[kNextNorm].data != nullptr;
  ASSERT_EQ(expected.size(), (has_norm ? 2 : 1) * states.size());
  ASSERT_FALSE(states.empty());

  Ran ran(weights, states, switchyard::SerialExecutor());
  const BlockResults& results = ran.block.results();
  const Distance out = DistanceOf(results.out, expected.data(),
                                  weights.shape.residual ? &states : nullptr);
  const Distance normed =
      has_norm ? DistanceOf(results.next_normed,
                            expected.data() + states.size(), nullptr)
               : Distance();
  // Eight values are rounded on the way to a result: a weight, the input
  // norm, a logit, gate, up, their product, an expert's row and the sum. In
  // int8, three of these values are also rounded to codes. Rows have 40 or
  // more values, and the largest is below 4 standard deviations. So a code is
  // off by up to 4 / 254 of a standard deviation.
  const bool is_f32 = dtype().rows == switchyard::Type::kF32;
  const bool is_int8 = dtype().operands == switchyard::Type::kI8;
  const double rms = 8 * 0x1p-8 + (is_int8 ? 3 * 4 / 254.0 : 0);
  EXPECT_LE(out.rms, is_f32 ? 1e-5 : rms);
  EXPECT_LE(normed.rms, is_f32 ? 1e-5 : rms);
  if (is_f32) {
    EXPECT_LE(out.largest, 1e-5);
    EXPECT_LE(normed.largest, 1e-5);
  }

  const CheckReport check =
      CheckAgainstDouble(weights, ran.hidden, ran.normed, results, SIZE_MAX,
                         switchyard::SerialExecutor());
  EXPECT_EQ(check.tokens, ran.tokens);
  EXPECT_EQ(check.failure, "");
}

// The bits are equal, because the number of threads does not change how GEMMs
// are cut.
TEST_P(Checkpoints, SameBitsOnAnyNumberOfThreads) {
  const LayerWeights weights = Load(name(), layer(), dtype());
  const auto states =
      ReadNumbers<float>(CheckpointPath(name()) + "/hidden.f32");
  Ran serial(weights, states, switchyard::SerialExecutor());
  const BlockResults& want = serial.block.results();
  for (const Pool pool : {Pool::kTbb2, Pool::kShuffle}) {
    const auto executor = MakeExecutor(pool);
    // The threads can meet only if the first section has work for all of them.
    // A norm of few rows has too little work. On some machines a conversion
    // has too little work, too.
    const bool meet = weights.vectors[kRouterNorm].data == nullptr &&
                      dtype().rows == switchyard::Type::kF32 &&
                      dtype().operands == switchyard::Type::kF32;
    if (meet) executor->Rendezvous();
    Ran ran(weights, states, *executor);
    if (meet) {
      EXPECT_EQ(executor->DistinctThreads(), executor->ExpectedThreads());
    }
    const BlockResults& got = ran.block.results();
    for (const auto part : {&BlockResults::logits, &BlockResults::expert_rows,
                            &BlockResults::shared_rows, &BlockResults::out,
                            &BlockResults::next_normed}) {
      if ((want.*part).data == nullptr) continue;  // no shared expert
      size_t rows = (want.*part).rows;
      // Zero experts, which return their input, have no rows here.
      if (part == &BlockResults::expert_rows) {
        rows = static_cast<size_t>(
            want.buckets.offsets.data[want.buckets.offsets.size - 1]);
      }
      const std::vector<float> a = Floats((got.*part).RowRange(0, rows)),
                               b = Floats((want.*part).RowRange(0, rows));
      EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
    }
    EXPECT_EQ(Floats(got.weights), Floats(want.weights));
  }
}

// The times of the table's stages add up to the whole time.
TEST(MoeLayerCheckpointFiles, StagesAddUpToTheTimeThatPassed) {
  const LayerWeights weights = Load("qwen2_moe", 0);
  const auto states =
      ReadNumbers<float>(CheckpointPath("qwen2_moe") + "/hidden.f32");
  for (const Pool pool : {Pool::kSerial, Pool::kTbb2}) {
    const auto executor = MakeExecutor(pool);
    Ran ran(weights, states, *executor);
    double best = 0;  // of 20 runs, because a run may wait for the CPU
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
  EXPECT_TRUE(qwen3.shape.route.renormalize);
  EXPECT_EQ(qwen3.shape.norm_eps, 1e-6f);
  const LayerWeights qwen2 = Load("qwen2_moe", 1);
  EXPECT_EQ(qwen2.shape.shared_intermediate, 56u);
  EXPECT_FALSE(qwen2.shape.route.renormalize);
}

TEST(MoeLayerCheckpointFiles, PicksTheFirstLayerWithExperts) {
  EXPECT_EQ(Load("qwen3_moe", std::nullopt).title, "qwen3_moe, layer 1 of 3");
  EXPECT_EQ(Load("qwen2_moe", std::nullopt).title, "qwen2_moe, layer 0 of 2");
}

// Reads values, names and objects that occur in configurations on Hugging
// Face's hub.
TEST(MoeLayerConfigs, AreReadAsTheHubHasThem) {
  const auto read = [](const std::string& text) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
    return ModelConfig("config.json",
                       program::ParseJson(bytes, bytes + text.size(), "bad"));
  };
  // This is MiMo-V2-Flash with fewer layers.
  const std::string mimo = R"({"model_type": "mimo_v2_flash",
      "num_hidden_layers": 3, "hidden_size": 4096, "n_routed_experts": 256,
      "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
      "hidden_act": "silu", "layernorm_epsilon": 1e-05, "n_group": 1,
      "topk_group": 1, "norm_topk_prob": true, "n_shared_experts": null,
      "routed_scaling_factor": null, "scoring_func": "sigmoid",
      "topk_method": "noaux_tc", "time_step_limit": [0.0, Infinity],
      "unused": "NaN \" NaN", "moe_layer_freq": [0, 1, 1]})";
  const ModelConfig config = read(mimo);
  EXPECT_EQ(config.SelectLayer(std::nullopt), 1u);
  EXPECT_EQ(config.WhyNot(0), "is dense (moe_layer_freq has no 1 for it)");
  EXPECT_EQ(config.WhyNot(2), "");
  EXPECT_EQ(config.shape().norm_eps, 1e-5f);
  EXPECT_EQ(config.shape().num_experts, 256u);
  EXPECT_EQ(config.shape().route.routed_scaling_factor, 1.0f);

  // The fields are read from the object two levels down, even if the
  // outermost object's model_type names a family, too. Two of the fields are
  // lists that have the same value for every layer.
  json inner = json::parse(R"({"model_type": "hunyuan_v1_moe",
      "num_hidden_layers": 2, "hidden_size": 64, "num_experts": [12, 12],
      "moe_topk": [3, 3], "intermediate_size": 40, "rms_norm_eps": 1e-05})");
  for (const char* type : {"unknown", "hunyuan_v1_moe"}) {
    const json outer = {{"model_type", type},
                        {"num_experts", 5},
                        {"thinker_config", {{"text_config", inner}}}};
    EXPECT_EQ(read(outer.dump()).shape().num_experts, 12u);
    EXPECT_EQ(read(outer.dump()).shape().top_k, 3u);
  }
  json numbered = json::parse(mimo.substr(0, mimo.find("\"time_step")) +
                              "\"moe_layer_freq\": 2}");
  numbered["model_type"] = "kimi_k2";
  numbered["routed_scaling_factor"] = 2.5;
  EXPECT_EQ(read(numbered.dump()).WhyNot(1), "is dense (moe_layer_freq is 2)");
  EXPECT_EQ(read(numbered.dump()).SelectLayer(std::nullopt), 0u);
  EXPECT_EQ(read(numbered.dump()).WhyNot(2), "");
}

TEST(MoeLayerCheckpointFiles, UsesAlignedF32InPlaceAndConvertsTheRest) {
  const LayerWeights weights = Load("renamed", 0);
  const auto is_owned = [&](const void* data) {
    const auto* at = static_cast<const std::byte*>(data);
    const std::byte* begin = weights.storage.data();
    return at >= begin && at < begin + weights.storage.size();
  };
  size_t owned = 0;
  for (const auto& matrix : weights.matrices) owned += is_owned(matrix.data);
  // In the file, the data of every second tensor begins at an odd byte.
  EXPECT_EQ(weights.matrices.size(), 37u);
  EXPECT_EQ(owned, 18u);
  const double matrix = 4 * 72 * 40;
  EXPECT_EQ(weights.Bytes(), 36 * matrix + 4 * 72 * (12 + 2));

  const LayerWeights packed = Load("renamed", 0, kDtypes[0]);
  const bool is_packed = !packed.router_gemm->TakesPlain();
  EXPECT_EQ(packed.matrices.size(), is_packed ? 25u : 37u);
  if (is_packed) {
    EXPECT_LE(packed.Bytes(), static_cast<double>(packed.storage.size()));
  }
}

// Weights of any stored type are read exactly, even if they begin at an odd
// byte.
TEST(MoeLayerWeights, AreReadFromAnyByte) {
  const std::pair<switchyard::Type, std::vector<uint8_t>> cases[] = {
      {switchyard::Type::kF32, {0, 0, 0, 0xC0, 0x3F}},
      {switchyard::Type::kBF16, {0, 0xC0, 0x3F}},
      {switchyard::Type::kF16, {0, 0x00, 0x3E}}};
  for (const auto& [type, bytes] : cases) {
    for (const size_t odd : {size_t{0}, size_t{1}}) {
      std::vector<uint8_t> stored(16);
      const auto at = stored.begin() + static_cast<std::ptrdiff_t>(odd);
      std::copy(bytes.begin() + 1, bytes.end(), at);
      WeightTensor tensor;
      tensor.shape = {1};
      tensor.stored = stored.data() + odd;
      tensor.type = type;
      float value = 0;
      tensor.Read(AnyMatrix(&value, 1, 1));
      EXPECT_EQ(value, 1.5f);
    }
  }
}

// The program reads a file's states and writes the block's results, which
// have to equal numpy's.
TEST(MoeLayerStates, ReadsAndWritesStates) {
  const std::string checkpoint = CheckpointPath("gpt_oss");
  const TempFolder folder;
  const Outcome outcome =
      RunProgram(checkpoint + " --layer 1 --dtype f32 --input " + checkpoint +
                 "/hidden.f32 --output '" + folder.File("out.f32") + "'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(outcome.Printed("batch    200 tokens"));
  const auto out = ReadNumbers<float>(folder.File("out.f32"));
  const auto want = ReadNumbers<double>(checkpoint + "/expected_1.f64");
  ASSERT_EQ(out.size(), size_t{200} * 64);
  for (size_t i = 0; i < out.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(out[i]), want[i],
                1e-5 * (1 + std::fabs(want[i])))
        << i;
  }
}

TEST(MoeLayerStates, StatesThatAreNoneAreRefused) {
  const TempFolder folder;
  const std::string path = folder.File("in.f32");
  const std::string run = CheckpointPath("qwen2_moe") + " --input '" + path;
  WriteFile(path, std::string(4 * 72 + 4, '\0'));
  const std::string line = "moe_layer: --input " + path + ": ";
  ExpectRefused(RunProgram(run + "'"),
                line + "292 bytes are no rows of 72 floats");
  WriteFile(path, "");
  ExpectRefused(RunProgram(run + "'"),
                line + "0 bytes are no rows of 72 floats");
  WriteFile(path,
            std::string(4 * 72 - 4, '\0') + std::string("\0\0\xC0\x7F", 4));
  const Outcome nan = RunProgram(run + "'");
  EXPECT_EQ(nan.exit_code, 2);
  const std::string last =
      line + "nan at [0, 71], but states have to be finite\n";
  ASSERT_GE(nan.err.size(), last.size());
  EXPECT_EQ(nan.err.substr(nan.err.size() - last.size()), last);
  ExpectRefused(RunProgram(CheckpointPath("qwen2_moe") + " --output /"),
                "moe_layer: --output /: Is a directory");
}

}  // namespace
}  // namespace moe_layer::testing_support
