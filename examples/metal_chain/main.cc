// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A decode token and a prefill of one MoE layer, chained as an engine for Apple
// Silicon does it. Exit codes: 0; 1 if the device fails or one of its buffers
// differs from the plain API's; 2 for wrong input.

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine.h"
#include "host_chain.h"
#include "layer.h"
#include "programs/arguments.h"
#include "programs/program.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"

namespace metal_chain {
namespace {

using nlohmann::ordered_json;
using program::Plural;
using switchyard::Executor;

constexpr int kFailed = 1;

struct Options : program::ThreadOptions {
  bool full = false;
  size_t tokens = 512;  // of the prefill
  std::string trace;    // empty: none
};

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
  if (!program::Parse(app, argc, argv)) return std::nullopt;
  return options;
}

constexpr size_t kBarWidth = 20;

std::string GridText(const MTL::Size& grid) {
  std::string text = std::to_string(grid.width);
  if (grid.height != 1 || grid.depth != 1) {
    text += " x " + std::to_string(grid.height);
  }
  if (grid.depth != 1) text += " x " + std::to_string(grid.depth);
  return text;
}

// From where the dispatch started to where it ended, at least one column.
std::string Bar(const ChainRun& run, const MTL::DispatchTime& dispatch) {
  const double columns =
      static_cast<double>(kBarWidth) / std::max(run.end - run.start, 1e-9);
  const auto column = [&](double time) {
    const double at = std::floor((time - run.start) * columns);
    return static_cast<size_t>(
        std::clamp(at, 0.0, static_cast<double>(kBarWidth - 1)));
  };
  const size_t first = column(dispatch.start), last = column(dispatch.end);
  return std::string(first, ' ') + std::string(last - first + 1, '#');
}

std::string Line(const std::string& kernel, const std::string& grid,
                 const std::string& start, const std::string& duration,
                 const std::string& bar) {
  char text[160];
  std::snprintf(text, sizeof(text), "%-38s %-14s %10s %11s %s", kernel.c_str(),
                grid.c_str(), start.c_str(), duration.c_str(), bar.c_str());
  std::string line = text;
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Microseconds(double seconds) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.1f", seconds * 1e6);
  return text;
}

// Whole nanoseconds, so that an event's end is exactly where the next may
// start.
double Nanoseconds(double seconds) { return std::round(seconds * 1e9); }

ordered_json NameEvent(const char* what, int tid, const std::string& name) {
  return {{"name", what},
          {"ph", "M"},
          {"pid", 1},
          {"tid", tid},
          {"args", {{"name", name}}}};
}

// A line per dispatch, and the total; fits 100 columns.
std::string TimelineText(const ChainRun& run) {
  std::string text = Line("kernel", "grid", "start us", "duration us", "");
  for (const MTL::DispatchTime& dispatch : run.dispatches) {
    text +=
        Line(dispatch.kernel, GridText(dispatch.threadgroups),
             Microseconds(dispatch.start - run.start),
             Microseconds(dispatch.end - dispatch.start), Bar(run, dispatch));
  }
  return text + Line("total", "", "", Microseconds(run.end - run.start), "");
}

struct NamedRun {
  const char* name;
  const ChainRun& run;
};

// Trace-event JSON for ui.perfetto.dev and chrome://tracing, a thread per run.
// Microseconds since the start of the first.
std::string TraceJson(const std::vector<NamedRun>& runs) {
  ordered_json events = ordered_json::array();
  events.push_back(NameEvent("process_name", 0, "metal_chain"));
  for (size_t i = 0; i < runs.size(); ++i) {
    const int tid = static_cast<int>(i) + 1;
    events.push_back(NameEvent("thread_name", tid, runs[i].name));
    for (const MTL::DispatchTime& dispatch : runs[i].run.dispatches) {
      const double start = Nanoseconds(dispatch.start - runs[0].run.start);
      const double end = Nanoseconds(dispatch.end - runs[0].run.start);
      events.push_back({{"name", dispatch.kernel},
                        {"cat", "dispatch"},
                        {"ph", "X"},
                        {"ts", start / 1e3},
                        {"dur", (end - start) / 1e3},
                        {"pid", 1},
                        {"tid", tid},
                        {"args", {{"grid", GridText(dispatch.threadgroups)}}}});
    }
  }
  return ordered_json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump(
      1);
}

void PrintLayer(const Layer& layer) {
  const Shape& shape = layer.shape;
  std::printf(
      "%zu experts, top %zu, hidden %zu, intermediate %zu: %.1f MiB of weights "
      "in f32\n",
      shape.experts, shape.top_k, shape.hidden, shape.intermediate,
      static_cast<double>(layer.num_floats) * 0x1p-18);
}

void PrintRun(const char* name, size_t tokens, const ChainRun& run) {
  std::printf("\n%s, %zu token%s: one command buffer, %zu dispatches\n%s", name,
              tokens, Plural(tokens), run.dispatches.size(),
              TimelineText(run).c_str());
}

bool PrintComparison(const Comparison& comparison) {
  if (comparison.differences.empty()) {
    std::printf("equal: %zu buffers, %.1f KiB, have the plain API's bits\n",
                comparison.buffers,
                static_cast<double>(comparison.bytes) / 1024);
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
  const Layer layer =
      GenerateLayer(options.full ? kFullShape : kSmallShape, *executor);
  const HiddenStates token = GenerateHidden(1, layer.shape, *executor);
  const HiddenStates prompt =
      GenerateHidden(options.tokens, layer.shape, *executor);
  PrintLayer(layer);
  program::FlushOutput();

  const Engine engine(layer, executor);
  const Activations decode = engine.NewActivations(token);
  const Activations prefill = engine.NewActivations(prompt);
  // Warm pages, caches and threads first.
  (void)engine.RunPrefill(prompt, prefill);
  (void)engine.RunDecode(token, decode);
  const ChainRun decode_run = engine.RunDecode(token, decode);
  const ChainRun prefill_run = engine.RunPrefill(prompt, prefill);

  PrintRun("Decode", token.tokens, decode_run);
  const bool decode_equal = PrintComparison(CompareActivations(
      layer.shape, decode, DecodeOnHost(layer, token, *executor)));
  PrintRun("Prefill", prompt.tokens, prefill_run);
  program::FlushOutput();
  const bool prefill_equal = PrintComparison(CompareActivations(
      layer.shape, prefill, PrefillOnHost(layer, prompt, *executor)));

  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const size_t threads = executor->Concurrency();
  std::printf("\nRan on %s with %zu thread%s. At most %.1f MiB of memory.\n",
              switchyard::LastIsa()->name, threads, Plural(threads),
              static_cast<double>(usage.ru_maxrss) / 1024);
  if (!decode_equal || !prefill_equal) {
    std::fflush(stdout);
    std::fprintf(stderr,
                 "metal_chain: the device differs from the plain API\n");
    return kFailed;
  }
  if (!options.trace.empty()) {
    program::WriteFile(
        "--trace", options.trace,
        TraceJson({{"decode", decode_run}, {"prefill", prefill_run}}) + "\n");
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
