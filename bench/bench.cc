// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "bench/inputs.h"
#include "testing/digest.h"
#include "testing/floats.h"

namespace switchyard::bench {
namespace {

template <class T>
T At(const void* data, size_t i) {
  T value;
  std::memcpy(&value, static_cast<const unsigned char*>(data) + i * sizeof(T),
              sizeof(T));
  return value;
}

std::string Wrong(size_t i, const std::string& got, const std::string& want) {
  return "[" + std::to_string(i) + "] is " + got + " instead of " + want;
}

// Returns an integer in decimal, and any other element as hexadecimal bits.
std::string Text(Type type, const void* data, size_t i) {
  if (type == Type::kI32) return std::to_string(At<int32_t>(data, i));
  char text[16];
  std::snprintf(text, sizeof(text), "0x%x",
                SizeOf(type) == 4   ? At<uint32_t>(data, i)
                : SizeOf(type) == 2 ? At<uint16_t>(data, i)
                                    : At<uint8_t>(data, i));
  return text;
}

std::string CompareBytes(const Output& output, size_t slot) {
  const unsigned char* const want = &output.exact[slot * output.Bytes()];
  if (std::memcmp(output.data, want, output.Bytes()) == 0) return "";
  for (size_t i = 0;; ++i) {
    const std::string got_text = Text(output.type, output.data, i);
    const std::string want_text = Text(output.type, want, i);
    if (got_text != want_text) return Wrong(i, got_text, want_text);
  }
}

std::string CompareNumbers(const Output& output, size_t slot) {
  for (size_t i = 0; i < output.size; ++i) {
    const double got = testing_support::WidenAt(output.type, output.data, i);
    const double want = output.floats[slot * output.size + i];
    // A NaN is never within the tolerance.
    if (!(std::fabs(got - want) <=
          output.tolerance * std::max(1.0, std::fabs(want)))) {
      return Wrong(i, std::to_string(got), std::to_string(want));
    }
  }
  return "";
}

// Compares the output of one slot. Returns a description of the first error,
// or "".
std::string Compare(const Output& output, size_t slot, bool same_bits) {
  const bool bytes =
      output.floats.empty() || (same_bits && !output.exact.empty());
  return bytes ? CompareBytes(output, slot) : CompareNumbers(output, slot);
}

struct All {
  std::vector<void (*)()> add;
  std::vector<void (*)(const LayerShape&)> add_at;
};
All& Registrations() {
  static All registrations;
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
    for (const size_t o : contender.writes) {
      std::memset(outputs_[o].data, kPoison, outputs_[o].Bytes());
    }
    call(slot);
    for (const size_t o : contender.writes) {
      const Output& output = outputs_[o];
      const std::string error = Compare(output, slot, contender.same_bits);
      if (!error.empty()) {
        throw std::runtime_error("output " + std::to_string(o) + error);
      }
      if (output.exact.empty()) {
        digest.Add({static_cast<const float*>(output.data), output.size});
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

Registration::Registration(void (*add)()) {
  Registrations().add.push_back(add);
}
Registration::Registration(void (*add_at)(const LayerShape&)) {
  Registrations().add_at.push_back(add_at);
}

void RegisterAll(const std::vector<LayerShape>& shapes) {
  for (const LayerShape& shape : shapes) {
    for (const auto add_at : Registrations().add_at) add_at(shape);
  }
  if (!shapes.empty()) return;
  for (const auto add : Registrations().add) add();
}

}  // namespace switchyard::bench
