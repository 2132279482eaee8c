// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs one Mixture-of-Experts block end to end. Exit codes: 0 for success; 1 if
// a result differs from its double-precision value by more than rounding
// explains; 2 for wrong input.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "layer_weights.h"
#include "moe_block.h"
#include "plain_block.h"
#include "programs/arguments.h"
#include "programs/machine.h"
#include "programs/program.h"
#include "read_bandwidth.h"
#include "reference_check.h"
#include "report.h"
#include "states.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "switchyard/views.h"

namespace moe_layer {
namespace {

using program::BytesText;
using program::InputError;
using program::PeakMemory;
using program::RequireMemory;

using switchyard::AnyMatrix;
using switchyard::Executor;

constexpr size_t kCheckedTokens = 16;
constexpr int kCheckFailed = 1;

struct Options : program::ThreadOptions {
  std::string checkpoint;  // if empty, the layer is generated
  std::optional<size_t> layer;
  std::string dtype = kDtypes[0].name;
  size_t tokens = 512;
  size_t repeat = 5;
  std::optional<size_t> top_k;  // if empty, the model's top_k
  std::string json;             // if empty, no JSON is written
  // Files of hidden states. If `input` is empty, the program generates states;
  // if `output` is empty, it does not write the results.
  std::string input, output;
  bool compare = false;
};

const Dtype& FindDtype(const std::string& name) {
  return *std::find_if(std::begin(kDtypes), std::end(kDtypes),
                       [&](const Dtype& d) { return d.name == name; });
}

// Returns the options, or nullopt after it has printed the help.
std::optional<Options> ParseOptions(int argc, const char* const* argv) {
  Options options;
  CLI::App app(
      "Runs one Mixture-of-Experts block on Switchyard's kernels and oneDNN's "
      "GEMMs,\nchecks it against double precision and shows where the time "
      "goes.",
      "moe_layer");
  CLI::Option* checkpoint =
      app.add_option("--checkpoint,checkpoint", options.checkpoint,
                     "Hugging Face folder (default: a generated layer)");
  checkpoint->type_name("DIR");
  app.add_option("--layer", options.layer,
                 "Layer number (default: the first with experts)")
      ->check(CLI::Range(0, INT32_MAX).description(""))
      ->type_name("N");
  std::vector<std::string> dtypes;
  for (const Dtype& dtype : kDtypes) dtypes.emplace_back(dtype.name);
  app.add_option("--dtype", options.dtype,
                 "Type of rows and weights, or of experts")
      ->capture_default_str()
      ->check(CLI::IsMember(dtypes))
      ->type_name("TYPE");
  CLI::Option* tokens =
      app.add_option("--tokens", options.tokens, "Tokens in the batch");
  tokens->capture_default_str()
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("T");
  program::AddThreadOptions(app, options);
  app.add_option("--repeat", options.repeat,
                 "Number of timed runs; the median is shown")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000))
      ->type_name("R");
  app.add_option("--top-k", options.top_k,
                 "Experts per token (default: the model's)")
      ->check(CLI::Range(1, INT32_MAX).description(""))
      ->type_name("K");
  app.add_option("--input", options.input,
                 "Hidden states, rows of f32 (default: generated)")
      ->excludes(tokens)
      ->type_name("FILE");
  app.add_option("--output", options.output,
                 "Write the hidden states after the block")
      ->type_name("FILE");
  app.add_option("--json", options.json, "Write the report as JSON")
      ->type_name("FILE");
  app.add_flag("--compare", options.compare,
               "Also time plain loops around the same GEMMs")
      ->excludes(checkpoint);
  app.footer(
      "The JSON has context (machine, versions), isa, threads, "
      "peak_memory_bytes,\nlayer (dtype, weight_bytes and the sizes), tokens, "
      "runs, seconds (of the median\nrun), fastest_seconds, slowest_seconds, "
      "between_gemms_seconds,\nweight_bytes_read, read_bandwidth, "
      "weight_read_share, stages (stage, seconds,\nbytes, flops, GEMMs' "
      "kernel), tokens_per_expert, check (tokens, steps,\nblock: what, "
      "largest_error, bound_there, error_over_bound, holds; failure:\nempty "
      "if all is well) and, with --compare, plain_loops_seconds "
      "(median) and,\nof each round, round_seconds and "
      "plain_loops_round_seconds.");
  if (!program::Parse(app, argc, argv)) return std::nullopt;
  if (options.layer.has_value() && options.checkpoint.empty()) {
    throw InputError("--layer: needs --checkpoint");
  }
  if (options.compare && FindDtype(options.dtype).weights.has_value()) {
    throw InputError("--compare: not with --dtype " + options.dtype);
  }
  return options;
}

LayerPlan OpenLayer(const Options& options) {
  if (options.checkpoint.empty()) return PlanGeneratedLayer(DefaultShape());
  auto checkpoint = std::make_shared<Checkpoint>(options.checkpoint);
  const ModelConfig config(checkpoint->ConfigPath(), checkpoint->config());
  return PlanLayer(checkpoint, config, config.SelectLayer(options.layer));
}

// Checks the sizes and the memory that the run needs, before the long steps.
void CheckBatch(const MoeShape& shape, const Dtype& dtype, size_t tokens,
                size_t threads, const Options& options) {
  const std::string option = options.input.empty()
                                 ? "--tokens " + std::to_string(tokens)
                                 : "--input " + options.input;
  if (tokens > size_t{INT32_MAX} / shape.top_k) {
    throw InputError(option + ": times " + std::to_string(shape.top_k) +
                     " experts is more than 2^31 - 1 pairs");
  }
  // Adds up the buffers of the block, the buffers of the plain loops (at most
  // as large), the hidden states in f32 and in `dtype.rows`, their norm, and a
  // copy.
  const auto values =
      static_cast<double>(tokens) * static_cast<double>(shape.hidden);
  RequireMemory((options.compare ? 2 : 1) *
                        MoeBlock::MemoryNeeded(shape, dtype, tokens, threads) +
                    values * static_cast<double>(4 + 3 * SizeOf(dtype.rows)),
                option);
}

int Run(const Options& options) {
  const std::shared_ptr<Executor> pool = program::MakeExecutor(options);
  if (!options.json.empty()) program::RequireWritable("--json", options.json);
  if (!options.output.empty()) {
    program::RequireWritable("--output", options.output);
  }
  program::RequireTwoFiles("--json", options.json, "--output", options.output);
  Executor& executor = *pool;
  const size_t threads = executor.Concurrency();

  const Dtype& dtype = FindDtype(options.dtype);
  LayerPlan plan = OpenLayer(options);
  MoeShape& shape = plan.shape;
  const size_t tokens = options.input.empty()
                            ? options.tokens
                            : CountStates(options.input, shape.hidden);
  shape.top_k = options.top_k.value_or(shape.top_k);
  if (shape.top_k > shape.num_experts) {
    throw InputError("--top-k " + std::to_string(shape.top_k) +
                     ": the layer has " + std::to_string(shape.num_experts) +
                     " experts");
  }
  CheckBatch(shape, dtype, tokens, threads, options);
  const LayerWeights layer = LoadLayer(plan, dtype, executor);
  PrintLayer(layer, tokens, threads);
  program::FlushOutput();

  const RowBuffer states =
      options.input.empty()
          ? GenerateHidden(tokens, shape.hidden, dtype.rows, executor)
          : ReadStates(options.input, shape.hidden, dtype.rows, executor);
  const RowBuffer normed_states(dtype.rows, tokens, shape.hidden);
  const AnyMatrix& hidden = states.rows();
  const AnyMatrix& normed = normed_states.rows();
  InputNorm(layer, hidden, normed, executor);

  MoeBlock block(layer, tokens, executor);
  block.Run(hidden, normed);  // warms up caches, pages and threads
  std::optional<PlainBlock> plain;
  if (options.compare) plain.emplace(layer, tokens, executor);
  if (plain.has_value()) plain->Run(hidden, normed);
  std::vector<StageProfile> runs;
  std::vector<double> bandwidths, plain_seconds;
  std::mt19937 random;
  for (size_t i = 0; i < options.repeat; ++i) {
    const bool is_plain_first = random() % 2 == 0;
    for (const bool is_plain : {is_plain_first, !is_plain_first}) {
      if (is_plain && !plain.has_value()) continue;
      // Evicts the last run's weights from the caches, as a model's other
      // layers would.
      bandwidths.push_back(ReadBandwidth(layer.matrices, executor));
      const auto begin = std::chrono::steady_clock::now();
      if (is_plain) {
        plain->Run(hidden, normed);
        plain_seconds.push_back(std::chrono::duration<double>(
                                    std::chrono::steady_clock::now() - begin)
                                    .count());
      } else {
        block.Run(hidden, normed);
        runs.push_back(block.profile());
      }
    }
  }
  Timing timing = TimingOf(runs, bandwidths);
  PrintTimes(timing, KernelsOf(layer), tokens);
  if (plain.has_value()) {
    for (const StageProfile& run : runs) {
      timing.rounds.push_back(run.TotalSeconds());
    }
    timing.plain_rounds = plain_seconds;
    std::sort(plain_seconds.begin(), plain_seconds.end());
    timing.plain_loops = plain_seconds[(plain_seconds.size() - 1) / 2];
    std::fputs(PlainLoopsText(timing).c_str(), stdout);
    if (!plain->AgreesWith(block.results())) {
      throw std::runtime_error("plain loops and kernels differ");
    }
  }

  std::printf("Ran on %s. At most %s of memory.\n", switchyard::LastIsa()->name,
              BytesText(static_cast<double>(PeakMemory())).c_str());
  const switchyard::Span<const int32_t> load =
      block.results().buckets.tokens_per_expert;
  std::printf("\nPairs: %s", LoadText(load).c_str());

  const CheckReport check = CheckAgainstDouble(
      layer, hidden, normed, block.results(), kCheckedTokens, executor);
  PrintCheck(check, dtype.rows);
  if (!options.output.empty()) {
    program::WriteFile("--output", options.output,
                       StatesBytes(block.results().out, executor));
  }
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
