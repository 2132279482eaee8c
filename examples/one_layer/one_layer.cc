// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes one Mixture-of-Experts layer, from logits to output. Compares the
// output with the output of a plain loop over tokens and experts in double
// precision.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "switchyard/layer.h"
#include "switchyard/presets.h"
#include "switchyard/route.h"

using namespace switchyard;  // NOLINT(build/namespaces)

// Small sizes: in Qwen3-30B-A3B, kHidden is 2048 and kInner is 768.
constexpr size_t kTokens = 64, kHidden = 128, kInner = 48;
constexpr size_t kExperts = 128, kTopK = 8;

void Check(const Status& status) {
  if (status.ok()) return;
  std::string what = status.message();
  if (*status.details() != '\0') what.append(": ").append(status.details());
  throw std::runtime_error(what);
}

std::vector<float> Random(size_t size, float range) {
  static std::mt19937 rng;
  std::uniform_real_distribution<float> uniform(-range, range);
  std::vector<float> values(size);
  for (float& value : values) value = uniform(rng);
  return values;
}

double Dot(const float* a, const float* b, size_t size) {
  double sum = 0;
  for (size_t i = 0; i < size; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

// Computes y[r, c] = sum over i of x[r, i] * w[c, i]. Put your GEMM here.
void Gemm(const ConstAnyMatrix& x, const float* w, const AnyMatrix& y) {
  for (size_t r = 0; r < y.rows; ++r) {
    for (size_t c = 0; c < y.cols; ++c) {
      y.Row<float>(r)[c] =
          static_cast<float>(Dot(x.Row<float>(r), w + c * x.cols, x.cols));
    }
  }
}

// Random hidden states, and random weights in the shapes of a checkpoint.
struct Layer {
  std::vector<float> hidden = Random(kTokens * kHidden, 1);
  std::vector<float> router = Random(kExperts * kHidden, 0.3f);
  std::vector<float> gate_up = Random(kExperts * 2 * kInner * kHidden, 0.15f);
  std::vector<float> down = Random(kExperts * kHidden * kInner, 0.25f);
};

// Runs the layer on the calling thread. Every call of the library also takes an
// Executor as the last argument, to run on several threads.
std::vector<float> Run(const Layer& layer, const Preset& preset) {
  // Select each token's experts and their weights.
  std::vector<float> logits(kTokens * kExperts), weights(kTokens * kTopK);
  std::vector<int32_t> ids(kTokens * kTopK);
  const ConstAnyMatrix hidden(layer.hidden.data(), kTokens, kHidden);
  const AnyMatrix topk_ids(ids.data(), kTokens, kTopK);
  const AnyMatrix topk_weights(weights.data(), kTokens, kTopK);
  Gemm(hidden, layer.router.data(), {logits.data(), kTokens, kExperts});
  Check(RouteTopK({{logits.data(), kTokens, kExperts}},
                  {topk_ids, topk_weights}, preset.route));

  // Sort the tokens by expert, and cut the experts' products into tiles.
  ExpertsPlanOptions shape;
  shape.num_experts = kExperts;
  shape.hidden = kHidden;
  shape.intermediate = kInner;
  std::vector<int32_t> memory(ExpertsPlanSize(kTokens, kTopK, shape));
  ExpertsPlan plan;
  Check(PlanExperts({topk_ids}, {memory, &plan}, shape));

  // Run each expert on its tokens. Add the weighted sum of each token's
  // experts to the residual.
  std::vector<float> out(kTokens * kHidden);
  ExpertsOptions options;
  options.activate = preset.activate;
  options.combine = preset.combine;
  std::vector<int32_t> scratch(ExpertsScratchSize(plan, options, 1));
  ExpertsInputs inputs;
  inputs.plan = &plan;
  inputs.hidden = hidden;
  inputs.combine.topk_weights = topk_weights;
  inputs.combine.residual = hidden;
  inputs.scratch = scratch;
  const auto multiply = [&layer](const ExpertTile& tile) {
    const bool is_down = tile.product == ExpertProduct::kDown;
    const size_t columns = is_down ? kHidden : 2 * kInner;
    const size_t first =
        static_cast<size_t>(tile.expert) * columns + tile.first_column;
    Gemm(tile.rows,
         &(is_down ? layer.down : layer.gate_up)[first * tile.rows.cols],
         tile.out);
    return Status();
  };
  Check(
      RunExperts(inputs, {{out.data(), kTokens, kHidden}}, options, multiply));
  return out;
}

// Computes a token's output row by the definition. The weights are the largest
// kTopK probabilities of a softmax over the experts, divided by their sum.
// SiLU(gate) * up is between the two products.
std::vector<double> Naive(const Layer& layer, const float* x) {
  std::vector<std::pair<double, size_t>> best;  // logit, expert
  for (size_t e = 0; e < kExperts; ++e) {
    best.emplace_back(Dot(x, &layer.router[e * kHidden], kHidden), e);
  }
  std::sort(best.rbegin(), best.rend());
  double sum = 0;
  for (size_t s = 0; s < kTopK; ++s) sum += std::exp(best[s].first);
  std::vector<double> out(x, x + kHidden);
  for (size_t s = 0; s < kTopK; ++s) {
    const auto [logit, e] = best[s];
    std::vector<float> inner(kInner);
    for (size_t i = 0; i < kInner; ++i) {
      const float* const w = &layer.gate_up[(e * 2 * kInner + i) * kHidden];
      const double gate = Dot(x, w, kHidden);
      const double up = Dot(x, w + kInner * kHidden, kHidden);
      inner[i] = static_cast<float>(gate / (1 + std::exp(-gate)) * up);
    }
    for (size_t h = 0; h < kHidden; ++h) {
      const float* const w = &layer.down[(e * kHidden + h) * kInner];
      out[h] += std::exp(logit) / sum * Dot(inner.data(), w, kInner);
    }
  }
  return out;
}

int main() try {
  Preset preset;
  // Sets the fields of config.json. A program that reads the file calls
  // SetField() for each field.
  ModelConfig config;
  config.num_experts = kExperts;
  config.num_experts_per_tok = kTopK;
  config.norm_topk_prob = true;
  config.rms_norm_eps = 1e-6f;
  Check(FindPreset("qwen3_moe", &preset));
  Check(ApplyConfig(config, &preset));

  const Layer layer;
  const std::vector<float> out = Run(layer, preset);
  double worst = 0, largest = 0;
  for (size_t t = 0; t < kTokens; ++t) {
    const std::vector<double> row = Naive(layer, &layer.hidden[t * kHidden]);
    for (size_t h = 0; h < kHidden; ++h) {
      worst = std::max(worst, std::fabs(double{out[t * kHidden + h]} - row[h]));
      largest = std::max(largest, std::fabs(row[h]));
    }
  }
  std::printf("largest difference %.2g of values up to %.2g\n", worst, largest);
  return worst < 1e-5 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "one_layer: %s\n", error.what());
  return 1;
}
