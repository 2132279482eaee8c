// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/bench.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "programs/arguments.h"
#include "programs/machine.h"
#include "programs/program.h"
#include "programs/statistics.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "tools/cli/isas.h"
#include "tools/cli/measurement.h"
#include "tools/cli/rounds.h"
#include "tools/cli/shapes.h"
#include "tools/cli/verify.h"

namespace swy {
namespace {

using program::InputError;
using program::Plural;

// Enough for a test of whether two runs differ; each takes part in the whole
// run's ups and downs for a twentieth of it.
constexpr size_t kRepetitions = 20;

// In the order given, each once.
template <class T>
std::vector<T> Unique(const std::vector<T>& values) {
  std::vector<T> unique;
  for (const T& value : values) {
    if (std::find(unique.begin(), unique.end(), value) == unique.end()) {
      unique.push_back(value);
    }
  }
  return unique;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

bool AsksForModel(const BenchOptions& options) {
  return !options.tokens.empty() || options.experts.has_value() ||
         options.top_k.has_value() || options.hidden.has_value() ||
         options.intermediate.has_value();
}

Model ModelOf(const BenchOptions& options) {
  Model model;
  model.type = DataTypes().at(options.dtype);
  model.experts = options.experts.value_or(model.experts);
  model.top_k = options.top_k.value_or(std::min(model.top_k, model.experts));
  model.hidden = options.hidden.value_or(model.hidden);
  model.intermediate = options.intermediate.value_or(model.intermediate);
  if (model.top_k > model.experts) {
    throw InputError("--top-k " + std::to_string(model.top_k) + ": there are " +
                     std::to_string(model.experts) + " experts");
  }
  const Model known;
  if (model.experts != known.experts || model.top_k != known.top_k ||
      model.hidden != known.hidden ||
      model.intermediate != known.intermediate) {
    model.name.clear();
  }
  return model;
}

std::vector<std::string> KernelsOf(const BenchOptions& options) {
  return options.kernels.empty() ? Kernels() : Unique(options.kernels);
}

std::vector<Shape> ShapesOf(const BenchOptions& options) {
  const std::vector<std::string> kernels = KernelsOf(options);
  std::vector<Shape> shapes;
  if (!AsksForModel(options)) {
    for (const Shape& shape : DefaultShapes(DataTypes().at(options.dtype))) {
      if (std::count(kernels.begin(), kernels.end(), shape.kernel) != 0) {
        shapes.push_back(shape);
      }
    }
    return shapes;
  }
  const Model model = ModelOf(options);
  const std::vector<size_t> tokens = options.tokens.empty()
                                         ? std::vector<size_t>{1, 512}
                                         : Unique(options.tokens);
  for (const std::string& kernel : kernels) {
    for (const size_t count : tokens) {
      if (count > size_t{INT32_MAX} / model.top_k) {
        throw InputError("--tokens " + std::to_string(count) + ": times " +
                         std::to_string(model.top_k) +
                         " experts is more than 2^31 - 1 pairs");
      }
      shapes.push_back(ShapeOf(kernel, model, count));
      program::RequireMemory(shapes.back().memory,
                             kernel + " " + shapes.back().name);
    }
  }
  return shapes;
}

std::vector<Crew> CrewsOf(const BenchOptions& options) {
  std::vector<Crew> crews;
  for (const size_t threads : Unique(options.threads)) {
    if (threads == 1) {
      crews.push_back(
          {1, {&switchyard::SerialExecutor(), [](switchyard::Executor*) {}}});
      continue;
    }
    crews.push_back({threads, program::MakePool(threads)});
    const size_t has = crews.back().executor->Concurrency();
    if (has != threads) {
      throw InputError("--threads " + std::to_string(threads) +
                       ": this machine has " + std::to_string(has));
    }
  }
  return crews;
}

// Neighbouring rounds together, as many in each repetition.
std::vector<Repetition> RepetitionsOf(const Rounds& rounds) {
  const size_t count = rounds.seconds.size();
  const size_t repetitions = std::min(kRepetitions, count);
  const auto median = [](const std::vector<double>& all, size_t begin,
                         size_t end) {
    return 1e9 * program::Median(std::vector<double>(
                     all.begin() + static_cast<std::ptrdiff_t>(begin),
                     all.begin() + static_cast<std::ptrdiff_t>(end)));
  };
  std::vector<Repetition> result;
  for (size_t i = 0; i < repetitions; ++i) {
    const size_t begin = i * count / repetitions;
    const size_t end = (i + 1) * count / repetitions;
    result.push_back({median(rounds.seconds, begin, end),
                      median(rounds.cpu_seconds, begin, end),
                      (end - begin) * rounds.repeat});
  }
  return result;
}

// Asked of the code itself: a cap that was lost would give a figure the wrong
// name.
void RequireLastIsa(const std::string& isa) {
  if (switchyard::LastIsa()->name == isa) return;
  throw std::runtime_error("asked for " + isa + ", ran " +
                           switchyard::LastIsa()->name);
}

Measured Measure(const Shape& shape, const std::vector<std::string>& isas,
                 const std::vector<Crew>& crews, double seconds) {
  const std::function<void(switchyard::Executor&)> call = shape.make();
  std::vector<Timed> timed;
  Measured measured = {shape, {}};
  for (const std::string& isa : isas) {
    for (const Crew& crew : crews) {
      const auto cap = [&isa] { Check(switchyard::CapIsa(isa.c_str())); };
      cap();
      call(*crew.executor);
      RequireLastIsa(isa);
      timed.push_back({Repeat([&call, &crew] { call(*crew.executor); }), cap});
      std::string contender = isa;  // as switchyard_bench calls it
      if (!shape.types.empty()) contender += "@" + shape.types;
      if (crew.threads != 1) contender += ":" + std::to_string(crew.threads);
      measured.measurements.push_back({contender, crew.threads, {}});
    }
  }
  const std::vector<Rounds> all = TimeRounds(timed, seconds);
  for (size_t i = 0; i < all.size(); ++i) {
    measured.measurements[i].repetitions = RepetitionsOf(all[i]);
  }
  return measured;
}

void PrintIntroduction(const BenchOptions& options, size_t shapes,
                       const std::vector<std::string>& isas, size_t cases) {
  const size_t cores = std::thread::hardware_concurrency();
  std::string machine =
      program::CpuModel() + ", " + std::to_string(cores) + " cores";
  const std::string caches = program::DataCaches();
  if (!caches.empty()) machine += " (" + caches + ")";
  std::printf("%s\n", Shortened(machine, kColumns).c_str());
  const std::vector<double> load = program::LoadAverage();
  if (!load.empty() && load[0] > 0.5 * static_cast<double>(cores)) {
    std::printf("load average %.2f: others run as well, expect noise\n",
                load[0]);
  }
  const std::string verified =
      "verified: the bits of " + std::to_string(cases) + " cases on ";
  std::printf("%s\n", Shortened(verified + Joined(isas), kColumns).c_str());
  std::printf(
      "%zu shape%s, about %.3g s each; medians and quartiles of up to %zu "
      "repetitions\n\n%s",
      shapes, Plural(shapes), options.seconds, kRepetitions,
      TextHead().c_str());
  program::FlushOutput();
}

}  // namespace

CLI::App* AddBench(CLI::App& app, BenchOptions& options) {
  CLI::App* const bench = app.add_subcommand(
      "bench", "Time the kernels, at the shapes of your model");
  constexpr int kMost = 1'000'000;
  const auto counts = [bench](const char* name, std::vector<size_t>& values,
                              int most, const char* what) {
    bench->add_option(name, values, what)
        ->check(CLI::Range(1, most).description(""))
        ->type_name("N");
  };
  const auto size = [bench](const char* name, std::optional<size_t>& value,
                            const char* what) {
    bench->add_option(name, value, what)
        ->check(CLI::Range(1, kMost).description(""))
        ->type_name("N");
  };
  bench->add_option("--kernel", options.kernels, Joined(Kernels()))
      ->check(CLI::IsMember(Kernels()).description(""))
      ->type_name("NAME");
  counts("--tokens", options.tokens, kMost, "Batches, each of so many tokens");
  size("--experts", options.experts, "Of the model");
  size("--top-k", options.top_k, "Experts of a token");
  size("--hidden", options.hidden, "Width of the hidden states");
  size("--intermediate", options.intermediate, "Width of an expert");
  std::vector<std::string> dtypes;
  for (const auto& [name, type] : DataTypes()) dtypes.push_back(name);
  bench
      ->add_option("--dtype", options.dtype,
                   "Type of rows and logits: " + Joined(dtypes))
      ->capture_default_str()
      ->check(CLI::IsMember(dtypes).description(""))
      ->type_name("NAME");
  counts("--threads", options.threads, 1024, "On so many threads (default: 1)");
  bench->add_option("--isa", options.isas, "Only these (default: all)")
      ->type_name("NAME");
  bench->add_option("--seconds", options.seconds, "To spend on each shape")
      ->capture_default_str()
      ->check(program::Within(0, 3600))
      ->type_name("S");
  AddFormat(*bench, options.format);
  bench
      ->add_option("--json", options.json,
                   "Write Google Benchmark's JSON, for swy compare")
      ->type_name("FILE");
  bench->footer(
      "Options of the model default to Qwen3-30B-A3B's, tokens to 1 and 512; "
      "without\nany of them a short matrix of shapes is timed. Lists: --tokens "
      "1 512.\nExample: swy bench --experts 160 --top-k 6 --hidden 5120 "
      "--intermediate 1536\n  --tokens 1 512 --threads 1 8 --json old.json");
  return bench;
}

int Bench(const BenchOptions& options) {
  if (!options.json.empty()) program::RequireWritable("--json", options.json);
  const std::vector<Shape> shapes = ShapesOf(options);
  const std::vector<Crew> crews = CrewsOf(options);
  const std::vector<std::string> isas =
      options.isas.empty() ? RunnableIsaNames() : Unique(options.isas);
  const size_t cases = RequireReleasedBits(KernelsOf(options), isas, crews);

  const bool text = options.format == Format::kText;
  if (text) PrintIntroduction(options, shapes.size(), isas, cases);
  std::vector<Measured> all;
  for (const Shape& shape : shapes) {
    all.push_back(Measure(shape, isas, crews, options.seconds));
    if (!text) continue;
    std::fputs(Text(all.back()).c_str(), stdout);
    program::FlushOutput();
  }
  Check(switchyard::CapIsa(nullptr));
  if (!text) std::fputs(Table(options.format, all).c_str(), stdout);
  if (!options.json.empty()) {
    program::WriteFile("--json", options.json, Json(all));
  }
  return 0;
}

}  // namespace swy
