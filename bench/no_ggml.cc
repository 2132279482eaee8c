// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Instead of ggml.cc where ggml's CMake package is not installed.

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

}  // namespace switchyard::bench::ggml
