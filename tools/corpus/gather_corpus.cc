// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/gather.h"
#include "tools/corpus/corpus.h"

namespace switchyard::corpus {
namespace {

// With invalid pairs of every kind if `stale`.
void Run(Executor& executor, Digests& digests, bool stale, size_t hidden) {
  constexpr size_t kTokens = 19, kTopK = 3, kPairs = 41;
  Rows<float> tokens(kTokens, hidden, 5,
                     [](size_t i) { return AnyFloat(21, i); });
  Rows<float> rows(kPairs, hidden, 2);
  std::vector<int32_t> pairs(kPairs);
  for (size_t i = 0; i < kPairs; ++i) {
    const uint32_t hash = Hash(22, i);
    pairs[i] = stale && hash % 4 == 0
                   ? static_cast<int32_t>(hash)
                   : static_cast<int32_t>(hash / 4 % (kTokens * kTopK));
  }
  Report report;
  const std::vector<int32_t> ids(kTokens * kTopK);
  digests.Check(GatherRows({tokens.view(), pairs, {ids.data(), kTokens, kTopK}},
                           {rows.view(), &report}, {stale}, executor));
  digests.exact.Add(rows.view());
  digests.exact.Add(static_cast<uint32_t>(report.invalid));
}

const Registration registration([](std::vector<Case>& cases) {
  for (const bool stale : {false, true}) {
    cases.push_back({stale ? "gather stale pairs" : "gather pairs",
                     [stale](Executor& executor, Digests& digests) {
                       for (size_t hidden = 1; hidden <= 100; ++hidden) {
                         Run(executor, digests, stale, hidden);
                       }
                       Run(executor, digests, stale, 2048);
                     }});
  }
});

}  // namespace
}  // namespace switchyard::corpus
