// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// An engine that multiplies by the library's kernels, from a checkpoint's
// config.json to the residual stream. It has experts in q4_0, a shared expert,
// and the norm at the start of the next layer. engine.c does the same in C and
// prints the same number.

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "switchyard/expert_weights.h"
#include "switchyard/presets.h"

using namespace switchyard;  // NOLINT(build/namespaces)

void Check(const Status& s) {
  if (s.ok()) return;
  throw std::runtime_error(std::string(s.message()) + " " + s.details());
}
// Returns made-up numbers instead of a tensor of the checkpoint.
std::vector<float> Tensor(size_t size) {
  static size_t seed = 0;
  std::vector<float> x(size);
  for (size_t i = 0, first = ++seed * 104729; i < size; ++i)
    x[i] = float((i * 7919 + first) % 2000) / 8000.0f - 0.125f;
  return x;
}
// Quantises and packs a tensor. An engine can instead use a GGUF file's tensor
// in place.
std::vector<uint8_t> Load(size_t experts, size_t rows, size_t cols,
                          ExpertWeights* weights, Executor& pool) {
  const std::vector<float> floats = Tensor(experts * rows * cols);
  weights->format = WeightFormat::kQ4_0;
  weights->rows = rows, weights->cols = cols;
  const size_t size = PackedWeightsSize(*weights);
  if (size == SIZE_MAX)
    throw std::runtime_error(
        "config.json: a size is no multiple of 32, which q4_0 needs");
  std::vector<uint8_t> bytes(experts * size);
  Check(PackWeights({*weights, {floats.data(), experts * rows, cols}},
                    {{bytes.data(), experts, size}, weights}, {}, pool));
  return bytes;
}
struct Layer {
  std::vector<float> router;  // the last row is the shared expert's gate
  LayerWeights experts;
  std::vector<uint8_t> memory[6];
};

int main(int argc, char** argv) try {
  // Makes a pool, which lives as long as the engine. The result is null if the
  // library was built without TBB.
  const std::unique_ptr<Executor> tbb = MakeTbbExecutor();
  Executor& pool = tbb ? *tbb : SerialExecutor();
  std::ifstream file(argc == 2 ? argv[1] : "config.json");
  const auto json = nlohmann::json::parse(file);
  ModelConfig config;
  for (const auto& [key, x] : json.items()) {
    const char* const k = key.c_str();
    if (x.is_null()) Check(SetNull(k, &config));
    if (x.is_boolean()) Check(SetField(k, x == true, &config));
    if (x.is_number()) Check(SetField(k, double(x), &config));
    if (!x.is_string()) continue;
    Check(SetField(k, x.get_ref<const std::string&>().c_str(), &config));
  }
  Preset preset;
  Check(FindPreset(std::string(json.at("model_type")).c_str(), &preset));
  Check(ApplyConfig(config, &preset));

  ExpertsPlanOptions shape;
  const size_t E = shape.num_experts = preset.num_experts;
  const size_t H = shape.hidden = json.at("hidden_size");
  const size_t I = shape.intermediate = json.at("moe_intermediate_size");
  const size_t S = json.at("shared_expert_intermediate_size");
  shape.shared_intermediate = S, shape.workers = pool.Concurrency();
  SetCosts(WeightFormat::kQ4_0, &shape);
  ExpertsOptions options;
  options.activate = preset.activate, options.combine = preset.combine;
  options.activate.layout = GateUpLayout::kSplit;  // two tensors, as in a GGUF
  options.shared_activate = options.activate;
  options.operands = OperandsOf(WeightFormat::kQ4_0);
  std::vector<Layer> layers(json.at("num_hidden_layers").get<size_t>());
  for (Layer& l : layers) {
    l.router = Tensor((E + 1) * H);
    l.memory[0] = Load(E, I, H, &l.experts.gate, pool);
    l.memory[1] = Load(E, I, H, &l.experts.up, pool);
    l.memory[2] = Load(E, H, I, &l.experts.down, pool);
    l.memory[3] = Load(1, S, H, &l.experts.shared_gate, pool);
    l.memory[4] = Load(1, S, H, &l.experts.shared_up, pool);
    l.memory[5] = Load(1, H, S, &l.experts.shared_down, pool);
  }
  const std::vector<float> norms = Tensor((layers.size() + 1) * H);

  // Memory for prompts of up to 8 tokens, which all layers and steps share.
  const size_t most = 8, top_k = preset.top_k;
  std::vector<float> stream = Tensor(most * H), rows[2], scores, weights;
  rows[0].resize(most * H), rows[1].resize(most * H);
  scores.resize(most * (E + 1)), weights.resize(most * top_k);
  std::vector<int32_t> ids(most * top_k);
  std::vector<int32_t> memory(ExpertsPlanSize(most, top_k, shape));
  std::vector<int32_t> scratch(
      ExpertsScratchSize(most, top_k, shape, options, shape.workers));
  // Runs a prompt, and then a single token.
  for (const size_t tokens : {most, size_t{1}}) {
    const AnyMatrix residual(stream.data(), tokens, H);
    const AnyMatrix logits(scores.data(), tokens, E + 1);
    const AnyMatrix topk_ids(ids.data(), tokens, top_k);
    const AnyMatrix topk_weights(weights.data(), tokens, top_k);
    AnyMatrix x(rows[0].data(), tokens, H), next(rows[1].data(), tokens, H);
    CombineInputs norm = {{}, {}, RowIndex::kTokenOrder, residual};
    norm.norm_weight = {norms.data(), 1, H};
    Check(Combine(norm, {{}, x}, preset.combine, pool));
    // Runs only the MoE blocks, because this example has no attention.
    for (size_t l = 0; l < layers.size(); ++l) {
      for (size_t t = 0; t < tokens; ++t) {
        for (size_t e = 0; e <= E; ++e) {
          float sum = 0;
          for (size_t h = 0; h < H; ++h)
            sum += x.Row<float>(t)[h] * layers[l].router[e * H + h];
          logits.Row<float>(t)[e] = sum;
        }
      }
      Check(RouteTopK({logits.ColRange(0, E)}, {topk_ids, topk_weights},
                      preset.route, pool));
      ExpertsPlan plan;
      Check(PlanExperts({topk_ids}, {memory, &plan}, shape, pool));
      ExpertsInputs in;
      in.plan = &plan, in.hidden = x, in.scratch = scratch;
      in.combine.topk_weights = topk_weights, in.combine.residual = residual;
      in.combine.shared.gate = logits.ColRange(E, E + 1);
      in.combine.shared.kind = preset.form.shared_gate;
      in.combine.norm_weight = {&norms[(l + 1) * H], 1, H};
      Check(RunExperts(in, {residual, next}, options, layers[l].experts, pool));
      std::swap(x, next);
    }
  }
  double sum = 0;
  for (const float value : stream) sum += double(value);
  std::printf("%.6f\n", sum);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "engine: %s\n", error.what());
  return 1;
}
