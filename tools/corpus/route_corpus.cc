// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <limits>
#include <utility>

#include "switchyard/route.h"
#include "tools/corpus/corpus.h"

namespace switchyard::corpus {
namespace {

// Enough for rows to be taken a vector at a time on every ISA, and one that is
// left over on most.
constexpr size_t kTokens = 13;
constexpr size_t kExperts[] = {1,   2,   3,   5,   8,   16,  17,  31,
                               32,  33,  40,  60,  64,  72,  128, 160,
                               255, 256, 288, 384, 512, 513, 896};
constexpr size_t kTopK[] = {1,  2,  3,  4,  6,  8,  9,  10,
                            16, 22, 31, 32, 33, 40, 64, 65};

using Logit = float (*)(size_t i);

float Random(size_t i) { return Uniform(1, i, 8.0f); }
// Far apart: most experts' exponentials vanish.
float Spread(size_t i) { return Uniform(2, i, 256.0f); }
float Ties(size_t i) { return static_cast<float>(Hash(3, i) % 3) - 1.0f; }
// Zeros of both signs and neighbours of 1.
float Close(size_t i) {
  constexpr float kValues[] = {0.0f, -0.0f, 1.0f, 0x1.000002p0f,
                               0x1.fffffep-1f};
  return kValues[Hash(4, i) % 5];
}
float Denormal(size_t i) { return Uniform(5, i, 0x1p-126f); }
float Infinite(size_t i) {
  const uint32_t kind = Hash(6, i) % 8;
  const float infinity = std::numeric_limits<float>::infinity();
  return kind == 0 ? infinity : kind < 4 ? -infinity : Uniform(6, i, 4.0f);
}
float MinusInfinity(size_t) { return -std::numeric_limits<float>::infinity(); }
// NaN in some rows, infinities, denormals, everything.
float Any(size_t i) { return AnyFloat(7, i); }

void Run(Executor& executor, Digests& digests, Logit logit,
         const RouteOptions& options, size_t experts, size_t top_k) {
  Rows<float> logits(kTokens, experts, 3, logit);
  Rows<int32_t> ids(kTokens, top_k, 1);
  Rows<float> weights(kTokens, top_k, 2);
  digests.Check(RouteTopK({logits.view()}, {ids.view(), weights.view()},
                          options, executor));
  digests.exact.Add(ids.view());
  digests.floats.Add(weights.view());
}

const Registration registration([](std::vector<Case>& cases) {
  const std::pair<const char*, Logit> logits[] = {
      {"random", Random}, {"spread", Spread},         {"ties", Ties},
      {"close", Close},   {"denormal", Denormal},     {"infinite", Infinite},
      {"any", Any},       {"all -inf", MinusInfinity}};
  const std::pair<const char*, RouteOptions> options[] = {
      {"plain", {false, 0x1p-14f}},
      {"renormalized", {true, 0x1p-14f}},
      {"clamp 0", {true, 0.0f}},
      {"clamp 1/2", {true, 0.5f}},
      {"clamp 1", {true, 1.0f}}};
  for (const auto& [option_name, option] : options) {
    for (const auto& [logit_name, logit] : logits) {
      cases.push_back({std::string("route ") + option_name + ", " + logit_name,
                       [option = option, logit = logit](Executor& executor,
                                                        Digests& digests) {
                         for (const size_t experts : kExperts) {
                           for (const size_t top_k : kTopK) {
                             if (top_k > experts) break;
                             Run(executor, digests, logit, option, experts,
                                 top_k);
                           }
                         }
                       }});
    }
  }
  // top_k / E below the default clamp.
  cases.push_back(
      {"route many experts", [](Executor& executor, Digests& digests) {
         Run(executor, digests, Ties, RouteOptions(), 65536, 1);
       }});
});

}  // namespace
}  // namespace switchyard::corpus
