// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A decode token and a prefill of one MoE layer, chained as an engine for Apple
// Silicon does it. Exit codes: 0; 1 if the device fails or one of its buffers
// differs from the plain API's; 2 for wrong input.

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine.h"
#include "host_chain.h"
#include "layer.h"
#include "programs/arguments.h"
#include "programs/machine.h"
#include "programs/program.h"
#include "report.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"

namespace metal_chain {
namespace {

using program::Plural;
using switchyard::Executor;

constexpr int kFailed = 1;

struct Options : program::ThreadOptions {
  bool full = false;
  size_t tokens = 512;  // of the prefill
  std::string trace;    // empty: none
  std::string json;     // empty: none
  std::vector<std::string> shaders;
};

// The bound of sums in another order, relative to the largest in the row.
constexpr float kShaderBound = 1e-5f;

// Nullopt if only help was asked for, which is then printed.
std::optional<Options> ParseOptions(int argc, const char* const* argv) {
  Options options;
  CLI::App app(
      "Runs one Mixture-of-Experts layer as an engine for Apple Silicon chains "
      "it:\na decode token and a prefill, each in one command buffer. Checks "
      "every buffer\nagainst the plain API and shows when each dispatch ran.",
      "metal_chain");
  app.add_flag("--full", options.full,
               "A layer of Qwen3-30B-A3B: 2.25 GiB of weights");
  app.add_option("--tokens", options.tokens, "Tokens of the prefill")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  program::AddThreadOptions(app, options);
  app.add_option("--trace", options.trace,
                 "Write the timelines for ui.perfetto.dev")
      ->type_name("FILE");
  app.add_option("--json", options.json, "Write all of it as JSON")
      ->type_name("FILE");
  app.add_option("--shaders", options.shaders,
                 "Kernels of .metal files for those built in")
      ->check(CLI::ExistingFile.description(""))
      ->type_name("FILE");
  app.footer(
      "The JSON has context (machine, versions), isa, threads, "
      "peak_memory_bytes,\nlayer, and chains (decode, prefill), each with "
      "tokens, seconds, dispatches\n(kernel, threadgroups, start_seconds, "
      "seconds), buffers, bytes and differences\n(empty if all is well).");
  if (!program::Parse(app, argc, argv)) return std::nullopt;
  return options;
}

void PrintLayer(const Layer& layer) {
  const Shape& shape = layer.shape;
  std::printf(
      "%zu experts, top %zu, hidden %zu, intermediate %zu: %.1f MiB of weights "
      "in f32\n",
      shape.experts, shape.top_k, shape.hidden, shape.intermediate,
      static_cast<double>(layer.num_floats) * 0x1p-18);
}

void PrintRun(const char* title, const Chain& chain) {
  std::printf("\n%s, %zu token%s: one command buffer, %zu dispatches\n%s",
              title, chain.tokens, Plural(chain.tokens),
              chain.run.dispatches.size(), TimelineText(chain.run).c_str());
}

bool PrintComparison(const Comparison& comparison, float bound) {
  if (comparison.differences.empty()) {
    std::printf("equal: %zu buffers, %.1f KiB, have the plain API's %s\n",
                comparison.buffers,
                static_cast<double>(comparison.bytes) / 1024,
                bound == 0 ? "bits" : "values to 1e-5");
    return true;
  }
  for (const std::string& difference : comparison.differences) {
    std::printf("differs: %s\n", difference.c_str());
  }
  return false;
}

int Run(const Options& options) {
  const std::shared_ptr<Executor> executor = program::MakeExecutor(options);
  if (!options.trace.empty())
    program::RequireWritable("--trace", options.trace);
  if (!options.json.empty()) program::RequireWritable("--json", options.json);
  program::RequireTwoFiles("--json", options.json, "--trace", options.trace);
  const Layer layer =
      GenerateLayer(options.full ? kFullShape : kSmallShape, *executor);
  const HiddenStates token = GenerateHidden(1, layer.shape, *executor);
  const HiddenStates prompt =
      GenerateHidden(options.tokens, layer.shape, *executor);
  const Engine engine(layer, executor, options.shaders);
  PrintLayer(layer);
  program::FlushOutput();

  for (const std::string& kernel : engine.shader_kernels()) {
    std::printf("%s is a shader's\n", kernel.c_str());
  }
  const float bound = engine.shader_kernels().empty() ? 0 : kShaderBound;
  const Activations decode = engine.NewActivations(token);
  const Activations prefill = engine.NewActivations(prompt);
  // Warm pages, caches and threads first.
  (void)engine.RunPrefill(prompt, prefill);
  (void)engine.RunDecode(token, decode);
  Chain decoded = {"decode", token.tokens, engine.RunDecode(token, decode), {}};
  Chain prefilled = {
      "prefill", prompt.tokens, engine.RunPrefill(prompt, prefill), {}};

  PrintRun("Decode", decoded);
  decoded.comparison = CompareActivations(
      layer.shape, decode, DecodeOnHost(layer, token, *executor), bound);
  const bool decode_equal = PrintComparison(decoded.comparison, bound);
  PrintRun("Prefill", prefilled);
  program::FlushOutput();
  prefilled.comparison = CompareActivations(
      layer.shape, prefill, PrefillOnHost(layer, prompt, *executor), bound);
  const bool prefill_equal = PrintComparison(prefilled.comparison, bound);

  const size_t threads = executor->Concurrency();
  std::printf(
      "\nRan on %s with %zu thread%s. At most %s of memory.\n",
      switchyard::LastIsa()->name, threads, Plural(threads),
      program::BytesText(static_cast<double>(program::PeakMemory())).c_str());
  if (!options.json.empty()) {
    program::FlushOutput();
    program::WriteFile("--json", options.json,
                       ReportJson(layer, threads, {decoded, prefilled}));
  }
  if (!decode_equal || !prefill_equal) {
    std::fflush(stdout);
    std::fprintf(stderr,
                 "metal_chain: the device differs from the plain API\n");
    return kFailed;
  }
  if (!options.trace.empty()) {
    program::WriteFile("--trace", options.trace,
                       TraceJson({decoded, prefilled}));
    std::printf("Trace in %s: open it in ui.perfetto.dev.\n",
                options.trace.c_str());
  }
  return 0;
}

}  // namespace
}  // namespace metal_chain

int main(int argc, char** argv) {
  return program::RunMain("metal_chain", metal_chain::kFailed, [=] {
    const auto options = metal_chain::ParseOptions(argc, argv);
    return options.has_value() ? metal_chain::Run(*options) : 0;
  });
}
