// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>

#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/isa.h"
#include "switchyard/route.h"
#include "testing/inputs.h"
#include "testing/rounds.h"
#include "tools/swy/swy.h"

namespace swy {
namespace {

using switchyard::Status;
using switchyard::testing_support::Hash;
using switchyard::testing_support::Uniform;

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
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
                                       {},
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

}  // namespace

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
    std::fflush(stdout);
  }
  Check(switchyard::CapIsa(nullptr));
  return 0;
}

}  // namespace swy
