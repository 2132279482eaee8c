// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// swy: what this machine runs, whether it computes the released bits, and how
// fast. Each command prints to stdout and returns the exit code.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "programs/arguments.h"
#include "programs/program.h"
#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "switchyard/route.h"
#include "testing/inputs.h"
#include "testing/rounds.h"
#include "tools/corpus/corpus.h"

namespace swy {
namespace {

using program::InputError;
using switchyard::Status;
using switchyard::corpus::Case;
using switchyard::corpus::Digests;
using switchyard::corpus::Expected;
using switchyard::testing_support::Hash;
using switchyard::testing_support::Uniform;

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

std::vector<std::string> RunnableIsaNames() {
  std::vector<std::string> names;
  for (const switchyard::Isa& isa : switchyard::RunnableIsas()) {
    names.push_back(isa.name);
  }
  return names;
}

// The compiled ISAs, best first: runnable ones, the active one.
int PrintIsas() {
  const std::vector<std::string> runnable = RunnableIsaNames();
  std::printf("%-10s %-4s %-9s\n", "compiled", "FMA", "this CPU");
  for (const switchyard::Isa& isa : switchyard::CompiledIsas()) {
    const bool runs =
        std::find(runnable.begin(), runnable.end(), isa.name) != runnable.end();
    const bool active = switchyard::ActiveIsa().name == std::string(isa.name);
    std::printf("%-10s %-4s %s%s\n", isa.name, isa.fma ? "yes" : "no",
                runs ? "runs" : "cannot", active ? ", active" : "");
  }
  return 0;
}

Digests Compute(const Case& c, switchyard::Executor& executor) {
  Digests digests;
  c.run(executor, digests);
  if (!digests.status.ok()) {
    throw std::runtime_error(c.name + ": " + digests.status.message());
  }
  return digests;
}

// "equal", or what of the case differs.
const char* Compare(const Case& c, const Digests& digests, bool fma) {
  const Expected* const expected = switchyard::corpus::Find(c.name);
  if (expected == nullptr) return "has no digest";
  if (digests.exact.value() != expected->exact) return "differs in integers";
  // Without FMA only the integers are promised.
  if (fma && digests.floats.value() != expected->floats) {
    return "differs in floats";
  }
  return "equal";
}

size_t CountDifferent(const std::vector<Case>& cases,
                      switchyard::Executor& executor, const char* threads) {
  const switchyard::Isa& isa = switchyard::ActiveIsa();
  size_t different = 0;
  for (const Case& c : cases) {
    const std::string result = Compare(c, Compute(c, executor), isa.fma);
    // Asked of the code itself: a cap that was lost would go unnoticed.
    if (switchyard::LastIsa()->name != std::string(isa.name)) {
      throw std::runtime_error(std::string("asked for ") + isa.name + ", ran " +
                               switchyard::LastIsa()->name);
    }
    if (result == "equal") continue;
    ++different;
    std::printf("%s, %s: \"%s\" %s\n", isa.name, threads, c.name.c_str(),
                result.c_str());
  }
  return different;
}

// Computes the corpus on each of `isas`, on one thread and, unless `threads` is
// 1, on a pool of as many (0: one per core), and compares it with the digests
// that the library was released with. 1 if any differs.
int Verify(const std::vector<std::string>& isas, size_t threads) {
  const std::vector<Case> cases = switchyard::corpus::Cases();
  std::shared_ptr<switchyard::Executor> pool;
  if (threads != 1) {
    pool = program::MakePool(threads == 0 ? std::nullopt
                                          : std::optional<size_t>(threads));
  }
  size_t different = 0;
  for (const std::string& name : isas) {
    Check(switchyard::CapIsa(name.c_str()));
    const switchyard::Isa& isa = switchyard::ActiveIsa();
    size_t here =
        CountDifferent(cases, switchyard::SerialExecutor(), "one thread");
    if (pool != nullptr) here += CountDifferent(cases, *pool, "a pool");
    std::printf("%-8s %zu cases, %s%s: %s\n", isa.name, cases.size(),
                isa.fma ? "every bit" : "integers (no FMA)",
                pool == nullptr ? ", one thread" : "",
                here == 0 ? "equal" : "DIFFERENT");
    program::FlushOutput();
    different += here;
  }
  Check(switchyard::CapIsa(nullptr));
  return different == 0 ? 0 : 1;
}

// The lines of digests.inc, from the active ISA.
int PrintDigests() {
  for (const Case& c : switchyard::corpus::Cases()) {
    const Digests digests = Compute(c, switchyard::SerialExecutor());
    std::printf("{\"%s\", 0x%016" PRIx64 "u, 0x%016" PRIx64 "u},\n",
                c.name.c_str(), digests.exact.value(), digests.floats.value());
  }
  return 0;
}

std::vector<float> Floats(size_t count, uint32_t stream) {
  std::vector<float> floats(count);
  for (size_t i = 0; i < count; ++i) floats[i] = Uniform(stream, i, 4.0f);
  return floats;
}

// One line of the matrix: a kernel at one shape, `units` of `unit` a call.
struct Line {
  std::string name;
  size_t units;
  const char* unit;
  std::function<void()> call;
};

Line Route(size_t tokens, size_t experts, size_t top_k) {
  std::vector<float> logits = Floats(tokens * experts, 1);
  std::vector<int32_t> ids(tokens * top_k);
  std::vector<float> weights(tokens * top_k);
  return {"route E=" + std::to_string(experts) + " k=" + std::to_string(top_k) +
              " T=" + std::to_string(tokens),
          tokens, "row", [=]() mutable {
            Check(switchyard::RouteTopK({{logits.data(), tokens, experts}},
                                        {{ids.data(), tokens, top_k},
                                         {weights.data(), tokens, top_k}}));
          }};
}

Line Bucket(size_t tokens, size_t experts, size_t top_k) {
  const size_t num_pairs = tokens * top_k;
  std::vector<int32_t> ids(num_pairs), tokens_per_expert(experts),
      offsets(experts + 1), pairs(num_pairs);
  for (size_t i = 0; i < num_pairs; ++i) {
    ids[i] = static_cast<int32_t>(Hash(2, i) % experts);
  }
  return {
      "bucket E=" + std::to_string(experts) + " T=" + std::to_string(tokens),
      num_pairs, "pair", [=]() mutable {
        Check(switchyard::BucketPacked({{ids.data(), tokens, top_k}},
                                       {tokens_per_expert, offsets, pairs}));
      }};
}

Line Activate(size_t rows, size_t cols) {
  std::vector<float> gate = Floats(rows * cols, 3);
  std::vector<float> up = Floats(rows * cols, 4);
  std::vector<float> out(rows * cols);
  return {"activate " + std::to_string(rows) + " x " + std::to_string(cols),
          rows, "row", [=]() mutable {
            Check(switchyard::Activate(
                {{gate.data(), rows, cols}, {up.data(), rows, cols}},
                {{out.data(), rows, cols}}));
          }};
}

Line Combine(size_t tokens, size_t top_k, size_t hidden) {
  std::vector<float> rows = Floats(tokens * top_k * hidden, 5);
  std::vector<float> weights = Floats(tokens * top_k, 6);
  std::vector<float> residual = Floats(tokens * hidden, 7);
  std::vector<float> norm_weight = Floats(hidden, 8);
  std::vector<float> out(tokens * hidden), normed(tokens * hidden);
  return {"combine+norm H=" + std::to_string(hidden) +
              " k=" + std::to_string(top_k) + " T=" + std::to_string(tokens),
          tokens, "row", [=]() mutable {
            Check(switchyard::Combine({{rows.data(), tokens * top_k, hidden},
                                       {weights.data(), tokens, top_k},
                                       switchyard::RowIndex::kTokenOrder,
                                       {residual.data(), tokens, hidden},
                                       norm_weight},
                                      {{out.data(), tokens, hidden},
                                       {normed.data(), tokens, hidden}}));
          }};
}

// Median nanoseconds per unit of each ISA, from rounds in random order.
std::vector<double> Time(const Line& line,
                         const std::vector<std::string>& isas) {
  namespace timing = switchyard::testing_support;
  std::vector<timing::Timed> contenders;
  for (const std::string& isa : isas) {
    contenders.push_back({timing::Repeat(std::cref(line.call)),
                          [&isa] { Check(switchyard::CapIsa(isa.c_str())); }});
  }
  std::vector<double> ns = timing::MedianSeconds(contenders, {201, 1.5});
  for (double& value : ns) value *= 1e9 / static_cast<double>(line.units);
  return ns;
}

// A short matrix of kernels and ISAs, each verified first.
int Bench(const std::vector<std::string>& isas) {
  if (Verify(isas, 1) != 0) return 1;
  std::printf("\nNanoseconds, one thread, medians\n%-32s %-5s", "", "per");
  for (const std::string& isa : isas) std::printf(" %9s", isa.c_str());
  std::printf("\n");
  for (const Line& line :
       {Route(1, 128, 8), Route(512, 128, 8), Route(512, 256, 8),
        Route(512, 512, 10), Bucket(1, 128, 8), Bucket(512, 128, 8),
        Activate(8, 768), Activate(64, 2048), Combine(1, 8, 2048),
        Combine(64, 8, 2048)}) {
    std::printf("%-32s %-5s", line.name.c_str(), line.unit);
    for (const double ns : Time(line, isas)) std::printf(" %9.2f", ns);
    std::printf("\n");
    program::FlushOutput();
  }
  Check(switchyard::CapIsa(nullptr));
  return 0;
}

// How many letters to change, add or take away to get from one to the other.
size_t Distance(const std::string& from, const std::string& to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] != to[j] ? 1 : 0);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// Throws InputError if there is no such command.
void RequireCommand(const CLI::App& app, const std::string& name) {
  std::string choices, guess;
  size_t nearest = std::min<size_t>(3, name.size());  // beyond, no help
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string& known = command->get_name();
    const size_t distance = Distance(name, known);
    if (distance == 0) return;
    if (distance < nearest) {
      nearest = distance;
      guess = "did you mean " + known + "? ";
    }
    choices += (choices.empty() ? "" : ", ") + known;
  }
  throw InputError("'" + name + "' is no command: " + guess + "there are " +
                   choices);
}

// Leaves the active ISA as it is where none is given: SWITCHYARD_ISA's.
void RequireIsas(const std::vector<std::string>& isas) {
  for (const std::string& name : isas) {
    program::UseIsa(name);
    Check(switchyard::CapIsa(nullptr));
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Switchyard on this machine.", "swy");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", "swy " SWITCHYARD_VERSION,
                       "Print the version and exit");
  app.footer(
      "SWITCHYARD_ISA=NAME in the environment caps the ISA of any "
      "program that uses\nSwitchyard.");
  CLI::App* const isa = app.add_subcommand(
      "isa", "List the ISAs compiled in, those this CPU runs, the active one");
  CLI::App* const verify = app.add_subcommand(
      "verify", "Check that this machine computes the released bits");
  CLI::App* const bench =
      app.add_subcommand("bench", "Time the kernels on every ISA, shortly");
  app.add_subcommand("help", "Explain swy, or the command that follows");
  std::vector<std::string> isas;
  for (CLI::App* const command : {verify, bench}) {
    command->add_option("--isa", isas, "Only this ISA; may be repeated")
        ->type_name("NAME");
  }
  bool print = false;
  CLI::Option* const print_option = verify->add_flag(
      "--print", print, "Print the active ISA's digests instead of comparing");
  size_t threads = 0;
  verify
      ->add_option("--threads", threads,
                   "Of the pool that is checked as well as one thread; 0: one "
                   "per core, 1: no pool")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  print_option->excludes("--isa")->excludes("--threads");

  // "help verify" is "verify --help". CLI11 says of a wrong command only that
  // one is missing.
  std::vector<const char*> arguments(argv, argv + argc);
  if (argc == 1) arguments.push_back("--help");
  if (std::string("help") == arguments[1]) {
    arguments.erase(arguments.begin() + 1);
    arguments.insert(arguments.begin() + std::min(argc - 1, 2), "--help");
  }
  if (arguments[1][0] != '-') RequireCommand(app, arguments[1]);
  if (!program::Parse(app, static_cast<int>(arguments.size()),
                      arguments.data())) {
    return 0;
  }
  if (app.get_subcommands().empty()) RequireCommand(app, arguments[1]);

  RequireIsas(isas);
  if (print && !switchyard::ActiveIsa().fma) {
    throw InputError(
        "--print: the active ISA has no FMA, its bits are its own");
  }
  if (isas.empty()) isas = RunnableIsaNames();
  if (isa->parsed()) return PrintIsas();
  if (bench->parsed()) return Bench(isas);
  return print ? PrintDigests() : Verify(isas, threads);
}

}  // namespace
}  // namespace swy

int main(int argc, char** argv) {
  return program::RunMain("swy", 2, [=] { return swy::Main(argc, argv); });
}
