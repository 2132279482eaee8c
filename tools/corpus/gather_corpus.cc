// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/gather.h"
#include "tools/corpus/format_rows.h"

namespace switchyard::corpus {
namespace {

// If `stale`, the pairs include every kind of invalid pair.
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

// Gathers into another format. The row_index is right for about half of the
// pairs. Also scatters the rows back.
void Convert(Executor& executor, Digests& digests, const Format& from,
             const Format& to, bool scatter) {
  constexpr size_t kTokens = 7, kTopK = 3, kPairs = kTokens * kTopK;
  std::vector<int32_t> pairs(kPairs), index(kPairs, -1);
  for (size_t i = 0; i < kPairs; ++i) {
    pairs[i] = static_cast<int32_t>(Hash(23, i) % (kPairs + 1)) - 1;
    if (pairs[i] >= 0 && Hash(24, i) % 2 == 0) {
      index[static_cast<size_t>(pairs[i])] = static_cast<int32_t>(i);
    }
  }
  const auto run = [&](size_t hidden) {
    if (to.Cols(hidden) != hidden) return;
    const FormatMemory in(from, scatter ? kPairs : kTokens, hidden, 5),
        out(to, kPairs, hidden, 2);
    Fill(in.view(), 25);
    const ConstAnyMatrix topk(index.data(), kTokens, kTopK);
    Report report;
    if (scatter) {
      digests.Check(
          ScatterRows({in.view(), topk}, {out.view(), &report}, {}, executor));
    } else {
      digests.Check(GatherRows({in.view(), pairs, topk, topk},
                               {out.view(), &report}, {true}, executor));
    }
    out.AddTo(digests.exact);
    digests.exact.Add(static_cast<uint32_t>(report.invalid));
  };
  for (size_t hidden = 1; hidden <= 40; ++hidden) run(hidden);
  for (const size_t hidden : {64u, 100u, 256u, 512u}) run(hidden);
}

const Registration registration("gather", [](std::vector<Case>& cases) {
  for (const bool stale : {false, true}) {
    cases.push_back({stale ? "gather stale pairs" : "gather pairs",
                     [stale](Executor& executor, Digests& digests) {
                       for (size_t hidden = 1; hidden <= 100; ++hidden) {
                         Run(executor, digests, stale, hidden);
                       }
                       Run(executor, digests, stale, 2048);
                     }});
  }
  for (const bool scatter : {false, true}) {
    for (const Format& to : kFormats) {
      cases.push_back(
          {std::string(scatter ? "scatter to " : "gather to ") + to.name,
           [&to, scatter](Executor& executor, Digests& digests) {
             for (const Format& from : kFormats) {
               const bool floats = from.IsSource() && from.group == 0;
               if (floats || &from == &to) {
                 Convert(executor, digests, from, to, scatter);
               }
             }
           }});
    }
  }
});

}  // namespace
}  // namespace switchyard::corpus
