// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/contest.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <thread>

#include "testing/digest.h"

namespace switchyard::bench {
namespace {

std::function<void()> Cap(const std::string& isa) {
  return [isa] { Check(CapIsa(isa.c_str())); };
}

void Poison(const Output& output) {
  std::memset(output.data, 0xFF, output.size * sizeof(int32_t));
}

// Compares one slot's output.
std::string Compare(const Output& output, size_t slot) {
  const auto wrong = [](size_t i, auto got, auto want) {
    return "[" + std::to_string(i) + "] is " + std::to_string(got) +
           " instead of " + std::to_string(want);
  };
  const size_t first = slot * output.size;
  for (size_t i = 0; i < output.size; ++i) {
    if (!output.ints.empty()) {
      const int32_t got = output.As<int32_t>().data[i];
      const int32_t want = output.ints[first + i];
      if (got != want) return wrong(i, got, want);
      continue;
    }
    const double got = output.As<float>().data[i];
    const double want = output.floats[first + i];
    // A NaN is within nothing.
    if (!(std::fabs(got - want) <=
          output.tolerance * std::max(1.0, std::fabs(want)))) {
      return wrong(i, got, want);
    }
  }
  return std::string();
}

Executor* TwoThreads() {
  static const std::unique_ptr<Executor> executor = MakeTbbExecutor(2);
  return executor.get();
}

Result Measure(const Contest& contest, const std::string& kernel,
               const std::string& shape) {
  std::vector<Timed> timed;
  for (const Contender& c : contest.contenders) timed.push_back(c.timed);
  const std::vector<double> seconds = MedianSeconds(timed, DefaultEffort());
  Result result = {kernel, shape, contest.model, contest.unit, {}};
  for (size_t i = 0; i < seconds.size(); ++i) {
    const Contender& c = contest.contenders[i];
    result.figures.push_back({c.name, c.kind, seconds[i],
                              c.units > 0.0 ? c.units : contest.units,
                              c.bytes > 0.0 ? c.bytes : contest.bytes});
  }
  return result;
}

std::string Label(const Result& result) {
  std::string label;
  for (const Figure& figure : result.figures) {
    char text[64];
    std::snprintf(text, sizeof(text), "%s%s %.3g", label.empty() ? "" : ", ",
                  figure.name.c_str(), figure.NsPerUnit());
    label += text;
  }
  return "ns per " + result.unit + ": " + label;
}

// Empty, or what is wrong with whose result.
std::string Verify(const Contest& contest) {
  if (contest.verify) {
    const std::string error = contest.verify();
    if (!error.empty()) return error;
  }
  const std::string* first_name = nullptr;
  uint64_t first_digest = 0;
  for (const Contender& contender : contest.contenders) {
    if (contender.writes.empty()) continue;
    if (contender.timed.prepare) contender.timed.prepare();
    testing_support::Digest digest;
    for (size_t slot = 0; slot < contest.slots; ++slot) {
      for (const size_t o : contender.writes) Poison(contest.outputs[o]);
      contender.timed.run(1);
      for (const size_t o : contender.writes) {
        const std::string error = Compare(contest.outputs[o], slot);
        if (!error.empty()) {
          return contender.name + ": output " + std::to_string(o) + error;
        }
        if (contest.outputs[o].ints.empty()) {
          digest.Add(contest.outputs[o].As<float>());
        } else {
          digest.Add(contest.outputs[o].As<int32_t>());
        }
      }
    }
    if (!contender.same_bits) continue;
    if (first_name == nullptr) {
      first_name = &contender.name;
      first_digest = digest.value();
    } else if (digest.value() != first_digest) {
      return contender.name + ": other bits than " + *first_name;
    }
  }
  return std::string();
}

void Run(benchmark::State& state, const std::string& kernel,
         const std::string& shape, const std::function<Contest()>& make) {
  std::string error;
  try {
    const Contest contest = make();
    error = Verify(contest);
    if (error.empty()) {
      for (auto _ : state) {
        const Result result = Measure(contest, kernel, shape);
        state.SetIterationTime(result.figures.front().seconds);
        state.SetLabel(Label(result));
        Results().push_back(result);
      }
    }
  } catch (const std::exception& e) {
    error = e.what();
  }
  if (!error.empty()) {
    Failures().push_back(kernel + "/" + shape + ": " + error);
    state.SkipWithError(error.c_str());
  }
}

// Calls right after others like them: a worker that has been idle sleeps, and
// the data should be in the caches of the cores that use it.
Timed Warm(const Contest& contest, const std::string& isa, Executor& executor) {
  const auto run = contest.ours(executor);
  return {run, [isa, run] {
            Check(CapIsa(isa.c_str()));
            run(3);
          }};
}

// A single call after a millisecond without any: workers sleep by then.
Timed Idle(const Contest& contest, const std::string& isa, Executor& executor) {
  const auto prepare = [isa] {
    Check(CapIsa(isa.c_str()));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  return {contest.ours(executor), prepare, true};
}

// As many tokens as make `seconds` of serial work, or up to 1.2 times that:
// found by trying, since the time of one depends on the caches.
size_t TokensFor(double seconds, const std::function<Contest(size_t)>& make) {
  for (size_t tokens = 8;; tokens += (tokens + 7) / 8) {
    const Contest contest = make(tokens);
    const double once = MedianSeconds(
        {Warm(contest, RunnableIsas().data[0].name, SerialExecutor())},
        {21, 0.05})[0];
    if (once >= seconds) return tokens;
  }
}

// `contest` without the rivals, each ISA on one and on two threads: one call
// right after the other, or after a pause.
Contest OnThreads(Contest contest, size_t tokens,
                  Timed (*timed)(const Contest&, const std::string&,
                                 Executor&)) {
  std::vector<Contender> contenders;
  for (const Contender& ours : contest.contenders) {
    if (ours.kind != Kind::kOurs) continue;
    for (const bool serial : {true, false}) {
      Contender contender = ours;
      contender.name += serial ? ", 1 thread" : ", 2 threads";
      contender.timed =
          timed(contest, ours.name, serial ? SerialExecutor() : *TwoThreads());
      contenders.push_back(std::move(contender));
    }
  }
  contest.contenders = std::move(contenders);
  contest.model = "T=" + std::to_string(tokens);
  return contest;
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The names given to RegisterThreads so far.
std::vector<std::string>& ThreadNames() {
  static std::vector<std::string> names;
  return names;
}

void ThreadAsks(Table& table) {
  for (const std::string& name : ThreadNames()) {
    for (const bool small : {true, false}) {
      const std::string shape = name + (small ? "/30us" : "/100us");
      // What it came to: the size was chosen beforehand.
      std::string serial;
      for (const Figure& figure : table.Figures("threads", shape)) {
        if (figure.name != table.best + ", 1 thread") continue;
        serial = std::to_string(std::lround(1e6 * figure.seconds)) + " us ";
      }
      const std::string one = table.best + ", 1 thread";
      const std::string two = table.best + ", 2 threads";
      table.AtLeast(
          small ? 1.6 : 1.85, table.Ratio("threads", shape, one, two),
          "two threads, " + shape + ": " + serial + "of serial work, speed-up");
      table.AtMost(1.15, table.Ratio("threads_idle", shape, two, one),
                   "two threads, " + shape +
                       ", after 1 ms idle: time / that of one thread");
    }
  }
}

}  // namespace

Registration::Registration(void (*add_in)(), void (*ask_in)(Table&))
    : add(add_in), ask(ask_in) {
  Registrations().push_back(*this);
}

std::vector<Registration>& Registrations() {
  static std::vector<Registration> registrations;
  return registrations;
}

void AddIsas(Contest& contest, const std::vector<size_t>& writes) {
  for (const Isa& isa : RunnableIsas()) {
    contest.contenders.push_back(
        {isa.name,
         Kind::kOurs,
         {contest.ours(SerialExecutor()), Cap(isa.name)},
         writes,
         isa.fma});
  }
}

std::vector<Result>& Results() {
  static std::vector<Result> results;
  return results;
}

std::vector<std::string>& Failures() {
  static std::vector<std::string> failures;
  return failures;
}

Effort& DefaultEffort() {
  static Effort effort;
  return effort;
}

void Register(const std::string& kernel, const std::string& shape,
              std::function<Contest()> make) {
  benchmark::RegisterBenchmark(
      (kernel + "/" + shape).c_str(),
      [=](benchmark::State& state) { Run(state, kernel, shape, make); })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

void RegisterThreads(const std::string& name, const std::vector<size_t>& sizes,
                     std::function<Contest(size_t)> make) {
  ThreadNames().push_back(name);
  if (TwoThreads() == nullptr) return;
  for (const int us : {30, 100}) {
    // Contests of their own: a pause would let the others' workers sleep.
    for (const bool idle : {false, true}) {
      Register(idle ? "threads_idle" : "threads",
               name + "/" + std::to_string(us) + "us", [=] {
                 const size_t tokens = TokensFor(us * 1e-6, make);
                 return OnThreads(make(tokens), tokens, idle ? Idle : Warm);
               });
    }
  }
  for (const size_t tokens : sizes) {
    Register("threads", name + "/T=" + std::to_string(tokens),
             [=] { return OnThreads(make(tokens), tokens, Warm); });
  }
}

std::vector<std::string> AskedIsas() {
  std::vector<std::string> isas;
  for (const Isa& isa : RunnableIsas()) {
    if (isas.empty() || std::strcmp(isa.name, "AVX2") == 0) {
      isas.push_back(isa.name);
    }
  }
  return isas;
}

Table::Table()
    : best(RunnableIsas().data[0].name),
      avx512(best.compare(0, 4, "AVX3") == 0 ? best : "AVX-512") {}

double Table::Ns(const std::string& kernel, const std::string& shape,
                 const std::string& contender) const {
  for (const Figure& figure : Figures(kernel, shape)) {
    if (figure.name == contender) return figure.NsPerUnit();
  }
  return kNone;
}

double Table::Best(const std::string& kernel, const std::string& shape,
                   Kind kind) const {
  double fastest = kNone;
  for (const Figure& figure : Figures(kernel, shape)) {
    if (figure.kind == kind) fastest = std::fmin(fastest, figure.NsPerUnit());
  }
  return fastest;
}

const std::vector<Figure>& Table::Figures(const std::string& kernel,
                                          const std::string& shape) const {
  static const std::vector<Figure> none;
  for (const Result& result : Results()) {
    if (result.kernel == kernel && result.shape == shape) {
      return result.figures;
    }
  }
  return none;
}

std::vector<Ask> Asks() {
  Table table;
  for (const Registration& registration : Registrations()) {
    if (registration.ask != nullptr) registration.ask(table);
  }
  ThreadAsks(table);
  return table.asks;
}

}  // namespace switchyard::bench
