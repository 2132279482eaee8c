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

#include "layer_weights.h"
#include "moe_block.h"
#include "programs/arguments.h"
#include "programs/machine.h"
#include "programs/program.h"
#include "reference_check.h"
#include "report.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "switchyard/views.h"

namespace moe_layer {
namespace {

using program::BytesText;
using program::InputError;
using program::PeakMemory;
using program::RequireMemory;

using switchyard::Executor;
using switchyard::Matrix;

constexpr size_t kCheckedTokens = 16;
constexpr int kCheckFailed = 1;

struct Options : program::ThreadOptions {
  std::string checkpoint;  // empty: a generated layer
  std::optional<size_t> layer;
  size_t tokens = 512;
  size_t repeat = 5;
  std::optional<size_t> top_k;  // the model's
  std::string json;             // empty: none
};

// Nullopt if only help was asked for, which is then printed.
std::optional<Options> ParseOptions(int argc, const char* const* argv) {
  Options options;
  CLI::App app(
      "Runs one Mixture-of-Experts block on Switchyard's kernels and oneDNN's "
      "GEMMs,\nchecks it against double precision and shows where the time "
      "goes.",
      "moe_layer");
  app.add_option("--checkpoint,checkpoint", options.checkpoint,
                 "Hugging Face folder (default: a generated layer)")
      ->type_name("DIR");
  app.add_option("--layer", options.layer,
                 "Layer of it (default: the first with experts)")
      ->check(CLI::Range(0, INT32_MAX).description(""))
      ->type_name("N");
  app.add_option("--tokens", options.tokens, "Tokens in the batch")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("T");
  program::AddThreadOptions(app, options);
  app.add_option("--repeat", options.repeat,
                 "Timed runs, of which the median is shown")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000))
      ->type_name("R");
  app.add_option("--top-k", options.top_k,
                 "Experts per token (default: the model's)")
      ->check(CLI::Range(1, INT32_MAX).description(""))
      ->type_name("K");
  app.add_option("--json", options.json, "Write all of it as JSON")
      ->type_name("FILE");
  app.footer(
      "The JSON has context (machine, versions), isa, threads, "
      "peak_memory_bytes,\nlayer, tokens, runs, seconds (of the median run), "
      "fastest_seconds,\nslowest_seconds, between_gemms_seconds, "
      "stages (stage, seconds, bytes, flops),\ntokens_per_expert and check "
      "(tokens, steps, "
      "block: what, largest_error,\nbound_there, error_over_bound, holds; "
      "failure: empty if all is well).");
  if (!program::Parse(app, argc, argv)) return std::nullopt;
  if (options.layer.has_value() && options.checkpoint.empty()) {
    throw InputError("--layer: needs --checkpoint");
  }
  return options;
}

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
  const std::shared_ptr<Executor> pool = program::MakeExecutor(options);
  if (!options.json.empty()) program::RequireWritable("--json", options.json);
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
  program::FlushOutput();

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
  const Timing timing = TimingOf(runs);
  PrintTimes(timing, tokens);

  std::printf("Ran on %s. At most %s of memory.\n", switchyard::LastIsa()->name,
              BytesText(PeakMemory()).c_str());
  const switchyard::Span<const int32_t> load =
      block.results().buckets.tokens_per_expert;
  std::printf("\nPairs of each expert, busiest first\n%s",
              LoadChart(load, TerminalTakesUtf8()).c_str());

  const CheckReport check = CheckAgainstDouble(
      layer, hidden, normed, block.results(), kCheckedTokens, executor);
  PrintCheck(check);
  if (!options.json.empty()) {
    program::FlushOutput();
    program::WriteFile(
        "--json", options.json,
        ReportJson({layer, tokens, threads, timing, load, check}));
  }
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
  return program::RunMain("moe_layer", 2, [=] {
    const auto options = moe_layer::ParseOptions(argc, argv);
    return options.has_value() ? moe_layer::Run(*options) : 0;
  });
}
