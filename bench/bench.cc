// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/bench.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "testing/digest.h"

namespace switchyard::bench {
namespace {

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

std::vector<void (*)()>& Registrations() {
  static std::vector<void (*)()> registrations;
  return registrations;
}

}  // namespace

void Verifier::Verify(const Contender& contender,
                      const std::function<std::vector<Output>()>& wanted,
                      const std::function<void(size_t)>& call) {
  --unverified_;
  if (!contender.writes.empty() && outputs_.empty()) outputs_ = wanted();
  testing_support::Digest digest;
  for (size_t slot = 0; slot < slots_ && !contender.writes.empty(); ++slot) {
    for (const size_t o : contender.writes) Poison(outputs_[o]);
    call(slot);
    for (const size_t o : contender.writes) {
      const Output& output = outputs_[o];
      const std::string error = Compare(output, slot);
      if (!error.empty()) {
        throw std::runtime_error("output " + std::to_string(o) + error);
      }
      if (output.ints.empty()) {
        digest.Add(output.As<float>());
      } else {
        digest.Add(output.As<int32_t>());
      }
    }
  }
  if (contender.same_bits && !contender.writes.empty()) {
    if (!same_bits_) same_bits_ = {contender.name, digest.value()};
    if (same_bits_->second != digest.value()) {
      throw std::runtime_error("other bits than " + same_bits_->first);
    }
  }
  if (unverified_ == 0) outputs_ = {};
}

std::vector<std::string>& Failures() {
  static std::vector<std::string> failures;
  return failures;
}

void Fail(const std::string& benchmark, const std::string& why) {
  Failures().push_back(benchmark + ": " + why);
}

std::vector<std::string>& Names() {
  static std::vector<std::string> names;
  return names;
}

Executor* TwoThreads() {
  static const std::unique_ptr<Executor> executor = MakeTbbExecutor(2);
  return executor.get();
}

std::vector<Isa> MainIsas() {
  std::vector<Isa> isas;
  for (const Isa& isa : RunnableIsas()) {
    if (isas.empty() || std::strcmp(isa.name, "AVX2") == 0) isas.push_back(isa);
  }
  return isas;
}

void UseIsa(const std::string& isa) {
  Check(CapIsa(isa.empty() ? RunnableIsas().data[0].name : isa.c_str()));
}

Registration::Registration(void (*add)()) { Registrations().push_back(add); }

void RegisterAll() {
  for (void (*const add)() : Registrations()) add();
}

}  // namespace switchyard::bench
