// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs one Mixture-of-Experts block end to end. Exit codes: 0; 1 if a result is
// further from double precision than rounding explains; 2 for wrong input.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint.h"
#include "common/program.h"
#include "generated_layer.h"
#include "hidden_states.h"
#include "layer_weights.h"
#include "memory_limit.h"
#include "model_config.h"
#include "moe_block.h"
#include "options.h"
#include "reference_check.h"
#include "report.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "switchyard/views.h"

namespace moe_layer {
namespace {

using example::InputError;

using switchyard::Executor;
using switchyard::Matrix;

constexpr size_t kCheckedTokens = 16;
constexpr int kCheckFailed = 1;

// Nullptr without a checkpoint: the layer is to be generated.
std::unique_ptr<LayerLoader> OpenLayer(const Options& options) {
  if (options.checkpoint.empty()) return nullptr;
  auto checkpoint = std::make_shared<Checkpoint>(options.checkpoint);
  const ModelConfig config(checkpoint->ConfigPath(), checkpoint->config());
  return std::make_unique<LayerLoader>(checkpoint, config,
                                       config.SelectLayer(options.layer));
}

// Everything that can be judged before a long step begins.
void CheckBatch(const MoeShape& shape, size_t tokens, size_t threads) {
  const std::string option = "--tokens " + std::to_string(tokens);
  if (tokens > size_t{INT32_MAX} / shape.top_k) {
    throw InputError(option + ": times " + std::to_string(shape.top_k) +
                     " experts is more than 2^31 - 1 pairs");
  }
  // The block's buffers, the hidden states, their norm and a copy.
  RequireMemory(MoeBlock::MemoryNeeded(shape, tokens, threads) +
                    12.0 * static_cast<double>(tokens) *
                        static_cast<double>(shape.hidden),
                option);
}

int Run(const Options& options) {
  const std::shared_ptr<Executor> pool = example::MakeExecutor(options);
  Executor& executor = *pool;
  const size_t threads = executor.Concurrency();

  const std::unique_ptr<LayerLoader> loader = OpenLayer(options);
  MoeShape shape = loader != nullptr ? loader->shape() : DefaultShape();
  const size_t tokens = options.tokens;
  shape.top_k = options.top_k.value_or(shape.top_k);
  if (shape.top_k > shape.num_experts) {
    throw InputError("--top-k " + std::to_string(shape.top_k) +
                     ": the layer has " + std::to_string(shape.num_experts) +
                     " experts");
  }
  CheckBatch(shape, tokens, threads);
  LayerWeights layer = loader != nullptr ? loader->Load(executor)
                                         : GenerateLayer(shape, executor);
  layer.shape.top_k = shape.top_k;
  PrintLayer(layer, tokens, threads);

  const FloatBuffer hidden_states =
      GenerateHidden(tokens, shape.hidden, executor);
  const FloatBuffer normed_states(tokens * shape.hidden);
  const Matrix<const float> hidden(hidden_states.data(), tokens, shape.hidden);
  const Matrix<float> normed(normed_states.data(), tokens, shape.hidden);
  InputNorm(layer, hidden, normed, executor);

  MoeBlock block(layer, tokens, executor);
  block.Run(hidden, normed);  // warms up caches, pages and threads
  std::vector<StageProfile> runs;
  for (size_t i = 0; i < options.repeat; ++i) {
    block.Run(hidden, normed);
    runs.push_back(block.profile());
  }
  PrintTimes(runs, tokens);

  std::printf("Ran on %s. At most %s of memory.\n", switchyard::LastIsa()->name,
              BytesText(PeakMemory()).c_str());
  std::printf(
      "\nPairs of each expert, busiest first\n%s",
      LoadChart(block.results().buckets.tokens_per_expert, TerminalTakesUtf8())
          .c_str());

  const CheckReport check = CheckAgainstDouble(
      layer, hidden, normed, block.results(), kCheckedTokens, executor);
  PrintCheck(check);
  if (!check.failure.empty()) {
    std::fflush(stdout);
    std::fprintf(stderr, "moe_layer: wrong result: %s\n",
                 check.failure.c_str());
    return kCheckFailed;
  }
  std::printf("Every result is within its bound.\n");
  return 0;
}

}  // namespace
}  // namespace moe_layer

int main(int argc, char** argv) {
  return example::RunMain("moe_layer", 2, [=] {
    const auto options = moe_layer::ParseOptions(argc, argv);
    return options.has_value() ? moe_layer::Run(*options) : 0;
  });
}
