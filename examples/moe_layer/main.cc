// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs one Mixture-of-Experts block end to end. Exit codes: 0; 1 if a result is
// further from double precision than rounding explains; 2 for wrong input.

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint.h"
#include "generated_layer.h"
#include "hidden_states.h"
#include "input_error.h"
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

using switchyard::Executor;
using switchyard::Matrix;

constexpr size_t kCheckedTokens = 16;
constexpr int kCheckFailed = 1;
constexpr int kWrongInput = 2;

void UseIsa(const std::string& name) {
  if (name.empty() || switchyard::CapIsa(name.c_str()).ok()) return;
  std::string choices;
  const auto isas = switchyard::RunnableIsas();
  for (size_t i = 0; i < isas.size; ++i) {
    choices += (i == 0 ? "" : ", ") + std::string(isas.data[i].name);
  }
  throw InputError("--isa " + name + ": not available here; there are " +
                   choices);
}

// Owns nothing where one thread is enough.
struct Pool {
  std::unique_ptr<Executor> owned;
  Executor& executor() const {
    return owned == nullptr ? switchyard::SerialExecutor() : *owned;
  }
};

Pool MakePool(std::optional<size_t> threads) {
  if (threads == size_t{1}) return {};
  Pool pool{switchyard::MakeTbbExecutor(
      threads.has_value() ? static_cast<int>(*threads) : -1)};
  if (pool.owned == nullptr && threads.has_value()) {
    throw InputError("--threads " + std::to_string(*threads) +
                     ": no thread pool: out of memory, or built without TBB");
  }
  return pool;
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
  UseIsa(options.isa);
  const Pool pool = MakePool(options.threads);
  Executor& executor = pool.executor();
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
      LoadChart(block.results().buckets.tpe, TerminalTakesUtf8()).c_str());

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

// Names in files may hold anything; an error stays one line of them.
void PrintError(const char* what) {
  constexpr size_t kLongest = 600;
  std::string line = what;
  if (line.size() > kLongest) line = line.substr(0, kLongest) + " ...";
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  std::fflush(stdout);
  std::fprintf(stderr, "moe_layer: %s\n", line.c_str());
}

int Main(int argc, const char* const* argv) {
  try {
    const std::optional<Options> options = ParseOptions(argc, argv);
    return options.has_value() ? Run(*options) : 0;
  } catch (const std::bad_alloc&) {
    PrintError("out of memory");
  } catch (const std::exception& error) {
    PrintError(error.what());
  }
  return kWrongInput;
}

}  // namespace
}  // namespace moe_layer

int main(int argc, char** argv) { return moe_layer::Main(argc, argv); }
