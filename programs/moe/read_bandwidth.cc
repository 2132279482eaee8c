// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "read_bandwidth.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "programs/for_each.h"

namespace moe_layer {
namespace {

using switchyard::Span;

constexpr size_t kMostBytes = size_t{128} << 20;

uint64_t Sum(Span<const std::byte> bytes) {
  constexpr size_t kLanes =
      32;  // four cache lines, so that the compiler vectorises
  uint64_t lanes[kLanes] = {};
  uint64_t words[kLanes];
  for (size_t at = 0; at + sizeof(words) <= bytes.size; at += sizeof(words)) {
    std::memcpy(words, bytes.data + at, sizeof(words));
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += words[lane];
  }
  uint64_t sum = 0;
  for (const uint64_t lane : lanes) sum += lane;
  return sum;
}

}  // namespace

double ReadBandwidth(const std::vector<Span<const std::byte>>& matrices,
                     switchyard::Executor& executor) {
  size_t count = 0;
  size_t bytes = 0;
  while (count < matrices.size() && bytes < kMostBytes) {
    bytes += matrices[count++].size;
  }
  std::atomic<uint64_t> sums{0};  // so that the compiler keeps the reads
  const auto start = std::chrono::steady_clock::now();
  program::ForEach(executor, count, 1,
                   [&](size_t i) { sums += Sum(matrices[i]); });
  const std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - start;
  return static_cast<double>(bytes) / passed.count();
}

}  // namespace moe_layer
