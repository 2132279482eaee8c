// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "switchyard/bucket.h"
#include "tools/corpus/corpus.h"

namespace switchyard {
namespace corpus {
namespace {

enum class Layout { kPacked, kWorstCase, kTight, kPadded };

// Some of the ids are outside [0, experts); a quarter belongs to expert 0.
Rows<int32_t> Selected(size_t tokens, size_t top_k, size_t experts,
                       size_t gap) {
  Rows<int32_t> selected(tokens, top_k, gap);
  selected.Fill([experts](size_t i) {
    const uint32_t hash = Hash(31, i);
    const uint32_t kind = hash % 32;
    if (kind == 0) return static_cast<int32_t>(hash);
    if (kind == 1) return -1;
    if (kind == 2) return static_cast<int32_t>(experts);
    if (kind < 10) return 0;
    return static_cast<int32_t>((hash >> 5) % experts);
  });
  return selected;
}

void AddSummary(Digests& digests, const BucketSummary& summary) {
  digests.exact.Add(static_cast<uint32_t>(summary.max_tpe));
  digests.exact.Add(static_cast<uint32_t>(summary.row_stride));
  digests.exact.Add(static_cast<uint32_t>(summary.dropped));
}

Status AddArgs(Digests& digests, const BucketSummary& summary, size_t experts) {
  for (const size_t features : {768u, 2048u, 2049u}) {
    uint32_t args[3];
    const Status status = MakeDispatchArgs(summary.max_tpe, experts, features,
                                           DispatchTile(), args);
    if (!status.ok()) return status;
    for (const uint32_t arg : args) digests.exact.Add(arg);
  }
  return Status();
}

Status Run(Executor& executor, Digests& digests, Layout layout, size_t tokens,
           size_t top_k, size_t experts, size_t gap) {
  const size_t num_pairs = tokens * top_k;
  Rows<int32_t> selected = Selected(tokens, top_k, experts, gap);
  std::vector<int32_t> tpe(experts, -1);
  std::vector<int32_t> scratch(BucketScratchSize(num_pairs, experts, executor));
  BucketSummary summary;
  Status status;
  if (layout == Layout::kPacked) {
    std::vector<int32_t> offsets(experts + 1, -1), pairs(num_pairs, -1);
    Rows<int32_t> row_index(tokens, top_k, gap);
    PackedBuckets out;
    out.tpe = tpe;
    out.offsets = offsets;
    out.pairs = pairs;
    out.row_index = row_index.view();
    status = BucketPacked(selected.view(), BucketOrder::kAscending, out,
                          scratch, &summary, executor);
    digests.exact.Add(offsets);
    digests.exact.Add(pairs);
    digests.exact.Add(row_index.view());
  } else {
    StridedBuckets out;
    out.row_stride =
        layout == Layout::kWorstCase ? num_pairs : StridedBuckets::kTightStride;
    out.zero_padding = layout == Layout::kPadded;
    std::vector<int32_t> ids(experts * std::max<size_t>(1, num_pairs), -1);
    out.tpe = tpe;
    out.ids = ids;
    status = BucketStrided(selected.view(), BucketOrder::kAscending, out,
                           scratch, &summary, executor);
    digests.exact.Add(ids);
  }
  digests.exact.Add(tpe);
  AddSummary(digests, summary);
  return status.ok() ? AddArgs(digests, summary, experts) : status;
}

Status RunAll(Executor& executor, Digests& digests, Layout layout, size_t gap) {
  for (const size_t experts : {1u, 3u, 8u, 16u, 17u, 60u, 64u, 128u, 384u}) {
    for (const size_t tokens : {1u, 2u, 13u, 100u}) {
      for (const size_t top_k : {1u, 2u, 8u, 10u}) {
        const Status status =
            Run(executor, digests, layout, tokens, top_k, experts, gap);
        if (!status.ok()) return status;
      }
    }
  }
  // Enough pairs for several threads.
  return Run(executor, digests, layout, 6000, 8, 40, gap);
}

}  // namespace

void AddBucketCases(std::vector<Case>& cases) {
  const std::pair<const char*, Layout> layouts[] = {
      {"packed", Layout::kPacked},
      {"strided", Layout::kWorstCase},
      {"tight", Layout::kTight},
      {"padded", Layout::kPadded}};
  for (const auto& [name, layout] : layouts) {
    for (const size_t gap : {0u, 3u}) {
      cases.push_back(
          {std::string("bucket ") + name + (gap ? ", gaps" : ""),
           [layout = layout, gap](Executor& executor, Digests& digests) {
             return RunAll(executor, digests, layout, gap);
           }});
    }
  }
}

}  // namespace corpus
}  // namespace switchyard
