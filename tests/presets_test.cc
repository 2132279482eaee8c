// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/presets.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "testing/inputs.h"
#include "tests/call_errors.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

constexpr size_t kTokens = 5;

struct Routed {
  std::vector<int32_t> ids;
  std::vector<float> weights;
  std::vector<float> identity;
  bool operator==(const Routed& other) const {
    return ids == other.ids && weights == other.weights &&
           identity == other.identity;
  }
};

// kTokens random rows of what the preset takes, in its default configuration
// or, where it has none, in one.
class PresetCall {
 public:
  explicit PresetCall(const Preset& preset)
      : experts(preset.num_experts == 0 ? 64 : preset.num_experts),
        top_k(preset.top_k == 0 ? 6 : preset.top_k),
        columns(experts + (preset.route.shared_logits
                               ? preset.route.num_shared_experts
                               : 0)),
        slots(top_k + preset.route.num_shared_experts),
        preset_(preset) {
    Random random(7);
    logits = random.Uniforms(kTokens * columns, -4.0f, 4.0f);
    bias = random.Uniforms(experts, -0.01f, 0.01f);
    scale = random.Uniforms(experts, 0.5f, 1.5f);
  }

  Routed Run() const {
    Routed routed = {std::vector<int32_t>(kTokens * slots),
                     std::vector<float>(kTokens * slots),
                     std::vector<float>(kTokens)};
    RouteInputs in = {{logits.data(), kTokens, columns}};
    if (preset_.correction_bias) in.correction_bias = bias;
    if (preset_.expert_scale) in.expert_scale = scale;
    RouteOutputs out = {{routed.ids.data(), kTokens, slots},
                        {routed.weights.data(), kTokens, slots}};
    if (preset_.route.num_zero_experts > 0) {
      out.identity_weights = routed.identity;
    }
    EXPECT_OK(RouteTopK(in, out, preset_.route)) << preset_.family;
    return routed;
  }

  const size_t experts, top_k, columns, slots;
  std::vector<float> logits, bias, scale;

 private:
  const Preset preset_;
};

Preset Find(const std::string& family) {
  Preset preset;
  EXPECT_OK(FindPreset(family.c_str(), &preset)) << family;
  return preset;
}

TEST(Presets, AreInOrderAndFoundByName) {
  const Preset* last = nullptr;
  for (const Preset& preset : Presets()) {
    ASSERT_NE(preset.family, nullptr);
    if (last != nullptr) {
      EXPECT_LT(std::strcmp(last->family, preset.family), 0) << preset.family;
    }
    last = &preset;
    ASSERT_NE(preset.source, nullptr) << preset.family;
    EXPECT_GT(std::strlen(preset.source), 10u) << preset.family;
    EXPECT_STREQ(Find(preset.family).family, preset.family);
  }
  // 72 families without three that are not served, and those not in
  // transformers.
  EXPECT_GT(std::count_if(Presets().begin(), Presets().end(),
                          [](const Preset& p) {
                            return std::strstr(p.source, "modeling_") !=
                                   nullptr;
                          }),
            69);
}

TEST(Presets, UnknownNamesAreRefused) {
  Preset preset;
  preset.family = "untouched";
  for (const char* name :
       {"", "aaa", "deepseek", "deepseek_v3 ", "DEEPSEEK_V3", "zzz", "doge"}) {
    ExpectError(FindPreset(name, &preset),
                "FindPreset: family: is none of Presets()");
  }
  ExpectError(FindPreset(nullptr, &preset), "FindPreset: family: is null");
  ExpectError(FindPreset("mixtral", nullptr), "FindPreset: preset: is null");
  EXPECT_STREQ(preset.family, "untouched");
}

class PresetsTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(PresetsTest);

TEST_P(PresetsTest, EveryOneRoutes) {
  for (const Preset& preset : Presets()) {
    SCOPED_TRACE(preset.family);
    const PresetCall call(preset);
    const Routed routed = call.Run();
    for (size_t t = 0; t < kTokens; ++t) {
      const auto row =
          routed.ids.begin() + static_cast<ptrdiff_t>(t * call.slots);
      std::vector<int32_t> ids(row, row + static_cast<ptrdiff_t>(call.slots));
      std::sort(ids.begin(), ids.end());
      const auto real = std::lower_bound(ids.begin(), ids.end(), 0);
      EXPECT_EQ(std::adjacent_find(real, ids.end()), ids.end());
      EXPECT_LT(ids.back(), static_cast<int32_t>(call.columns));
      float sum = routed.identity[t];
      for (size_t j = 0; j < call.slots; ++j) {
        sum += routed.weights[t * call.slots + j];
      }
      EXPECT_GT(sum, 0.0f);
      // All but Inkling's shared experts are selected.
      if (preset.route.renormalize && !preset.expert_scale) {
        EXPECT_NEAR(sum, preset.route.routed_scaling_factor, 1e-5f);
      }
    }
  }
}

TEST_P(PresetsTest, CopiesRouteAsWhatTheyName) {
  size_t copies = 0;
  for (const Preset& preset : Presets()) {
    if (preset.same_as == nullptr) continue;
    SCOPED_TRACE(preset.family);
    ++copies;
    const Preset original = Find(preset.same_as);
    EXPECT_EQ(original.same_as, nullptr);
    EXPECT_EQ(preset.num_experts, original.num_experts);
    EXPECT_EQ(preset.top_k, original.top_k);
    EXPECT_EQ(PresetCall(preset).Run(), PresetCall(original).Run());
  }
  EXPECT_GT(copies, 20u);
}

// Logits of a row: of all experts, and of those that were selected.
struct RowLogits {
  std::vector<double> all, selected;
};
double SumOf(const std::vector<double>& logits, double (*f)(double)) {
  double sum = 0.0;
  for (const double x : logits) sum += f(x);
  return sum;
}
double Exp(double x) { return std::exp(x); }
double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double SqrtSoftplus(double x) { return std::sqrt(std::log1p(std::exp(x))); }

// One of each kind, by its formula, for whatever was selected.
TEST_P(PresetsTest, KnownRecipes) {
  using Weight = double (*)(const RowLogits&, double);
  const Weight softmax_of_selected = [](const RowLogits& row, double x) {
    return Exp(x) / SumOf(row.selected, Exp);
  };
  const Weight softmax = [](const RowLogits& row, double x) {
    return Exp(x) / SumOf(row.all, Exp);
  };
  const Weight sigmoid = [](const RowLogits&, double x) { return Sigmoid(x); };
  const Weight sigmoid_share = [](const RowLogits& row, double x) {
    return Sigmoid(x) / SumOf(row.selected, Sigmoid);
  };
  const Weight softplus_share = [](const RowLogits& row, double x) {
    return SqrtSoftplus(x) / SumOf(row.selected, SqrtSoftplus);
  };
  const struct {
    const char* family;
    double factor;
    Weight weight;
  } recipes[] = {{"mixtral", 1.0, softmax_of_selected},
                 {"ernie4_5_moe", 1.0, softmax_of_selected},
                 {"gpt_oss", 1.0, softmax_of_selected},
                 {"openai_privacy_filter", 0.25, softmax_of_selected},
                 {"olmoe", 1.0, softmax},
                 {"llama4", 1.0, sigmoid},
                 {"kolibri1", 1.0, sigmoid},
                 {"minimax_m2", 1.0, sigmoid_share},
                 {"deepseek_v3", 2.5, sigmoid_share},
                 {"deepseek_v4", 1.5, softplus_share}};
  for (const auto& recipe : recipes) {
    SCOPED_TRACE(recipe.family);
    const PresetCall call(Find(recipe.family));
    const Routed routed = call.Run();
    for (size_t t = 0; t < kTokens; ++t) {
      const float* logits = call.logits.data() + t * call.columns;
      RowLogits row = {{logits, logits + call.experts}, {}};
      const auto logit = [&](size_t slot) {
        return row.all[static_cast<size_t>(routed.ids[t * call.slots + slot])];
      };
      for (size_t j = 0; j < call.top_k; ++j) row.selected.push_back(logit(j));
      for (size_t j = 0; j < call.top_k; ++j) {
        const double want = recipe.factor * recipe.weight(row, logit(j));
        EXPECT_NEAR(routed.weights[t * call.slots + j], want, 1e-5 * want);
      }
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
