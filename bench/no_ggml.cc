// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Replaces ggml.cc if ggml's CMake package is not installed.

#include "bench/ggml.h"

namespace switchyard::bench::ggml {

bool Available() { return false; }

void Rest() {}

std::string Version() { return "none"; }

Router Route(size_t, size_t, size_t, bool, size_t) { return {}; }

std::function<void(const float*, const int32_t*, float*)> GatherRows(size_t,
                                                                     size_t,
                                                                     size_t,
                                                                     size_t) {
  return {};
}

std::function<void(const void*, const void*, void*)> SiluMul(Type, size_t,
                                                             size_t, size_t) {
  return {};
}

std::function<void(const CombineArgs&)> Combine(size_t, size_t, size_t, float,
                                                size_t) {
  return {};
}

bool Has(WeightFormat) { return false; }

bool Repacks(WeightFormat, size_t, size_t) { return false; }

std::shared_ptr<const Loaded> Load(const ExpertWeights&, bool) { return {}; }

std::function<void(size_t, const float*, float*)> Multiply(
    std::shared_ptr<const Loaded>, size_t, size_t) {
  return {};
}

std::function<void(const ExpertsArgs&)> Experts(const ExpertsWeights&, size_t,
                                                size_t, size_t) {
  return {};
}

}  // namespace switchyard::bench::ggml
