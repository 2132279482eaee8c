// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "switchyard/bucket.h"
#include "tools/corpus/corpus.h"

namespace switchyard::corpus {
namespace {

enum class Layout { kPacked, kWorstCase, kTight, kPadded };

// Returns ids, some of them outside [0, experts). A quarter is expert 0.
Rows<int32_t> TopKIds(size_t tokens, size_t top_k, size_t experts, size_t gap) {
  return {tokens, top_k, gap, [experts](size_t i) {
            const uint32_t hash = Hash(31, i);
            const uint32_t kind = hash % 32;
            if (kind == 0) return static_cast<int32_t>(hash);
            if (kind == 1) return -1;
            if (kind == 2) return static_cast<int32_t>(experts);
            if (kind < 10) return 0;
            return static_cast<int32_t>((hash >> 5) % experts);
          }};
}

void Run(Executor& executor, Digests& digests, Layout layout, size_t tokens,
         size_t top_k, size_t experts, size_t gap) {
  const size_t num_pairs = tokens * top_k;
  Rows<int32_t> topk_ids = TopKIds(tokens, top_k, experts, gap);
  std::vector<int32_t> tokens_per_expert(experts, -1);
  std::vector<int32_t> scratch(BucketScratchSize(num_pairs, experts, executor));
  const BucketInputs inputs = {topk_ids.view(), scratch};
  BucketOptions options;
  options.allow_dropped = true;
  Report report;
  if (layout == Layout::kPacked) {
    std::vector<int32_t> offsets(experts + 1, -1), pairs(num_pairs, -1);
    Rows<int32_t> row_index(tokens, top_k, gap);
    digests.Check(BucketPacked(
        inputs, {tokens_per_expert, offsets, pairs, row_index.view(), &report},
        options, executor));
    digests.exact.Add(offsets);
    digests.exact.Add(pairs);
    digests.exact.Add(row_index.view());
  } else {
    const size_t row_stride =
        layout == Layout::kWorstCase ? num_pairs : StridedBuckets::kTightStride;
    std::vector<int32_t> ids(experts * std::max<size_t>(1, num_pairs), -1);
    digests.Check(BucketStrided(inputs,
                                {tokens_per_expert, ids, row_stride,
                                 layout == Layout::kPadded, &report},
                                options, executor));
    digests.exact.Add(ids);
  }
  digests.exact.Add(tokens_per_expert);
  for (const size_t found :
       {report.max_rows, report.row_stride, report.dropped}) {
    digests.exact.Add(static_cast<uint32_t>(found));
  }
  for (const size_t features : {768u, 2048u, 2049u}) {
    uint32_t args[3] = {};
    digests.Check(
        MakeDispatchArgs({report.max_rows, experts, features}, {args}));
    for (const uint32_t arg : args) digests.exact.Add(arg);
  }
}

const Registration registration("bucket", [](std::vector<Case>& cases) {
  const std::pair<const char*, Layout> layouts[] = {
      {"packed", Layout::kPacked},
      {"strided", Layout::kWorstCase},
      {"tight", Layout::kTight},
      {"padded", Layout::kPadded}};
  for (const auto& [name, layout] : layouts) {
    for (const size_t gap : {0u, 3u}) {
      const auto run = [layout = layout, gap](Executor& executor,
                                              Digests& digests) {
        for (const size_t experts :
             {1u, 3u, 8u, 16u, 17u, 60u, 64u, 128u, 384u}) {
          for (const size_t tokens : {1u, 2u, 13u, 100u}) {
            for (const size_t top_k : {1u, 2u, 8u, 10u}) {
              Run(executor, digests, layout, tokens, top_k, experts, gap);
            }
          }
        }
        // 6,000 tokens have enough pairs for several threads.
        Run(executor, digests, layout, 6000, 8, 40, gap);
      };
      cases.push_back(
          {std::string("bucket ") + name + (gap ? ", gaps" : ""), run});
    }
  }
});

}  // namespace
}  // namespace switchyard::corpus
