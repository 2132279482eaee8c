// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Times recipes of RouteTopK() that route_bench.cc does not time: other scores,
// biases and groups. Each recipe runs beside the library's softmax of the same
// rows, and beside the same recipe in plain C++.

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "bench/bench.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "switchyard/presets.h"
#include "switchyard/route.h"
#include "testing/route_scores.h"

namespace switchyard::bench {
namespace {

constexpr size_t kSlots = 256;  // as in route_bench.cc
constexpr size_t kManyTokens = 512;

struct Recipe {
  const char* name;
  RouteOptions options;
  bool bias;
};

// The results of a recipe for a row of logits, in double precision.
struct Exact {
  std::vector<double> scores, keys;
  std::vector<int32_t> order;  // ids in the order of keys, the best first
  // The sum of the last kept group minus the sum of the first dropped group.
  double group_gap = HUGE_VAL;

  Exact(const Recipe& recipe, const float* row, const float* bias, size_t n)
      : scores(row, row + n) {
    const RouteOptions& o = recipe.options;
    const double max = *std::max_element(scores.begin(), scores.end());
    double sum = 0.0;
    for (const double x : scores) sum += std::exp(x - max);
    for (double& s : scores) {
      s = testing_support::ExactScore(o.score, s, max, sum);
    }
    keys = scores;
    for (size_t e = 0; e < n && recipe.bias; ++e) keys[e] += double{bias[e]};
    if (o.num_expert_group > 1) DropGroups(o);
    order.resize(n);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int32_t a, int32_t b) { return KeyOf(a) > KeyOf(b); });
  }

  double KeyOf(int32_t id) const { return keys[static_cast<size_t>(id)]; }

  void DropGroups(const RouteOptions& o) {
    const size_t size = keys.size() / o.num_expert_group;
    std::vector<double> sums;
    for (size_t at = 0; at < keys.size(); at += size) {
      const auto begin = keys.begin() + static_cast<std::ptrdiff_t>(at);
      std::vector<double> group(begin, begin + static_cast<ptrdiff_t>(size));
      std::sort(group.begin(), group.end(), std::greater<>());
      sums.push_back(group[0] + group[1]);
    }
    std::vector<double> best = sums;
    std::sort(best.begin(), best.end(), std::greater<>());
    for (size_t e = 0; e < keys.size(); ++e) {
      if (sums[e / size] < best[o.topk_group - 1]) keys[e] = -HUGE_VAL;
    }
    group_gap = best[o.topk_group - 1] - best[o.topk_group];
  }

  // True if two of the best n keys are so close that f32 may not tell them
  // apart.
  bool IsClose(size_t n) const {
    if (group_gap < 4e-6) return true;
    for (size_t i = 0; i < std::min(n, order.size() - 1); ++i) {
      const double key = KeyOf(order[i]);
      if (key - KeyOf(order[i + 1]) < 2e-6 * std::fabs(key)) return true;
    }
    return false;
  }

  std::vector<double> Weights(const RouteOptions& o, size_t top_k) const {
    std::vector<double> weights;
    for (size_t i = 0; i < top_k; ++i) {
      const double score = scores[static_cast<size_t>(order[i])];
      const bool exp = o.weight_of == WeightOf::kSoftmaxOfSelected;
      weights.push_back(exp ? std::exp(score) : score);
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& w : weights) w *= double{o.routed_scaling_factor} / sum;
    return weights;
  }
};

struct Data {
  const Recipe recipe;
  size_t tokens, experts, top_k;
  Aligned<float> bias, logits;  // [experts], [slots * tokens, experts]
  Aligned<int32_t> ids = Aligned<int32_t>(tokens * top_k);
  Aligned<float> weights = Aligned<float>(tokens * top_k);

  Data(const Recipe& like, const RouterShape& shape, size_t t)
      : recipe(like),
        tokens(t),
        experts(shape.experts),
        top_k(shape.top_k),
        bias(Floats(experts, 2, 0.25f)),
        logits((t == 1 ? kSlots : t) * experts) {
    size_t drawn = 0;
    for (size_t r = 0; r < rows(); ++r) {
      float* const row = &logits[r * experts];
      do {
        for (size_t e = 0; e < experts; ++e) {
          row[e] = testing_support::Uniform(1, drawn++, 4.0f);
        }
      } while (ExactOf(r).IsClose(top_k));
    }
  }

  size_t rows() const { return logits.size() / experts; }
  Exact ExactOf(size_t row) const {
    return {recipe, &logits[row * experts], bias.data(), experts};
  }
  RouteInputs Plain(size_t slot) const {
    return {{logits.data() + slot * tokens * experts, tokens, experts}};
  }
  RouteInputs In(size_t slot) const {
    RouteInputs in = Plain(slot);
    if (recipe.bias) in.correction_bias = {bias.data(), 1, experts};
    return in;
  }
  RouteOutputs Out() {
    return {{ids.data(), tokens, top_k}, {weights.data(), tokens, top_k}};
  }
  Status Call(size_t slot, Executor& executor) {
    return RouteTopK(In(slot), Out(), recipe.options, executor);
  }

  std::vector<Output> Wanted() {
    std::vector<Output> outputs = {Output(ids), Output(weights)};
    for (size_t r = 0; r < rows(); ++r) {
      const Exact exact = ExactOf(r);
      outputs[0].AddExact(std::vector<int32_t>(
          exact.order.begin(),
          exact.order.begin() + static_cast<std::ptrdiff_t>(top_k)));
      Append(exact.Weights(recipe.options, top_k), &outputs[1].floats);
    }
    return outputs;
  }
};

// Adds the library's softmax of the same rows, to compare its time with the
// recipe's time.
void AddSoftmax(Case<Data>& contest) {
  for (const Isa& isa : MainIsas()) {
    contest.Add({std::string(isa.name) + ":softmax", {}, isa.name, isa.fma},
                [](Data& d) {
                  return [&d](size_t slot) {
                    Check(RouteTopK(d.Plain(slot), d.Out()));
                  };
                });
  }
}

void Add(const Recipe& recipe, const RouterShape& shape, size_t tokens) {
  const double units = static_cast<double>(tokens);
  const size_t bytes = shape.experts * sizeof(float) + 8 * shape.top_k;
  const Facts facts = {std::string("route_") + recipe.name + "/" +
                           RouterText(shape.experts, shape.top_k, tokens),
                       shape.model,
                       "row",
                       units,
                       units * static_cast<double>(bytes),
                       tokens == 1 ? kSlots : 1};
  Case<Data> contest(
      facts, [=] { return std::make_unique<Data>(recipe, shape, tokens); });
  contest.AddOurs(MainIsas(), {0, 1});
  AddSoftmax(contest);
  contest.Add({"plain", {0, 1}}, [](Data& d) {
    return [&d](size_t slot) {
      plain::RouteTopK(d.In(slot), d.Out(), d.recipe.options);
    };
  });
}

Recipe MakeRecipe(const char* name, const char* family) {
  Preset preset;
  Check(FindPreset(family, &preset));
  preset.route.needs_config = false;  // times the family's defaults
  preset.route.needs_correction_bias = false;
  return {name, preset.route, preset.correction_bias};
}

const Registration registration([] {
  Recipe sigmoid = MakeRecipe("sigmoid", "minimax_m2");
  sigmoid.bias = false;
  const Recipe biased = MakeRecipe("sigmoid_bias", "kimi_k2");
  const Recipe grouped = MakeRecipe("grouped", "deepseek_v3");
  const Recipe softmax_bias = MakeRecipe("softmax_bias", "ernie4_5_moe");
  const Recipe sqrt_softplus = MakeRecipe("sqrt_softplus", "deepseek_v4");
  const Recipe selected = MakeRecipe("selected", "gpt_oss");
  const RouterShape shapes[] = {{"Qwen3-30B-A3B's size", 128, 8},
                                {"DeepSeek-V3's size", 256, 8},
                                {"Kimi K2's size", 384, 8},
                                {"Qwen3-Next's size", 512, 10},
                                {"Kimi K3's size", 896, 16}};
  for (const size_t tokens : {size_t{1}, kManyTokens}) {
    for (const Recipe& recipe :
         {sigmoid, biased, softmax_bias, sqrt_softplus, selected}) {
      for (const RouterShape& shape : shapes) Add(recipe, shape, tokens);
    }
    for (const size_t experts : {128u, 256u, 512u}) {
      Add(grouped, {"DeepSeek-V3", experts, 8}, tokens);
    }
    for (const Recipe& recipe : {sigmoid, biased, grouped}) {
      Add(recipe, {"more than a batch", 16384, 8}, tokens == 1 ? 1 : 64);
    }
  }
});

}  // namespace
}  // namespace switchyard::bench
