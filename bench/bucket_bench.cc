// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/contest.h"
#include "bench/inputs.h"
#include "bench/plain.h"
#include "bench/probes.h"
#include "bench/shapes.h"
#include "switchyard/bucket.h"
#include "testing/reference.h"

namespace switchyard {
namespace bench {
namespace {

constexpr size_t kSlots = 256;  // single tokens to rotate over

enum class Layout { kPacked, kPackedRowIndex, kStrided };
constexpr const char* kKernels[] = {"bucket_packed", "bucket_packed_row_index",
                                    "bucket_strided"};

struct Bucket {
  size_t tokens, experts, top_k, pairs_per_call, row_stride;
  Aligned<int32_t> selected;  // [slots * tokens, top_k]
  Layout layout;
  Aligned<int32_t> tpe, offsets, pairs, row_index, table;
  std::vector<int32_t> scratch = {};
  uint32_t args[3] = {};

  Bucket(const RouterShape& shape, size_t t, Spread spread, size_t slots,
         Layout where)
      : tokens(t),
        experts(shape.experts),
        top_k(shape.top_k),
        pairs_per_call(t * top_k),
        // Room for all pairs with one expert, and no power of two.
        row_stride(pairs_per_call + 16),
        selected(SelectedExperts(slots * t, experts, top_k, spread)),
        layout(where),
        tpe(experts),
        offsets(experts + 1),
        pairs(pairs_per_call),
        row_index(pairs_per_call),
        table(where == Layout::kStrided ? experts * row_stride : 0) {}

  Matrix<const int32_t> Selected(size_t slot) const {
    return {selected.data() + slot * pairs_per_call, tokens, top_k};
  }
  PackedBuckets Packed() {
    PackedBuckets out;
    out.tpe = {tpe.data(), tpe.size()};
    out.offsets = {offsets.data(), offsets.size()};
    out.pairs = {pairs.data(), pairs.size()};
    if (layout == Layout::kPackedRowIndex) {
      out.row_index = {row_index.data(), tokens, top_k};
    }
    return out;
  }
  StridedBuckets Strided() {
    StridedBuckets out;
    out.tpe = {tpe.data(), tpe.size()};
    out.ids = {table.data(), table.size()};
    out.row_stride = row_stride;
    return out;
  }
  // With the arguments of the dispatch that comes next.
  Status CallPacked(size_t slot, Executor& executor) {
    BucketSummary summary;
    const Status status = BucketPacked(Selected(slot), BucketOrder::kAscending,
                                       Packed(), scratch, &summary, executor);
    if (!status.ok()) return status;
    return MakeDispatchArgs(summary.max_tpe, experts, 768, {}, args);
  }
  Status CallStrided(size_t slot, Executor& executor) {
    return BucketStrided(Selected(slot), BucketOrder::kAscending, Strided(),
                         scratch, nullptr, executor);
  }

  std::vector<Output> Outputs(size_t slots) {
    Output want_tpe = {tpe.data(), tpe.size()};
    Output want_offsets = {offsets.data(), offsets.size()};
    Output want_pairs = {pairs.data(), pairs.size()};
    Output want_row_index = {row_index.data(), row_index.size()};
    Output want_table = {table.data(), table.size()};
    const auto append = [](Output& output, const std::vector<int32_t>& more) {
      output.ints.insert(output.ints.end(), more.begin(), more.end());
    };
    for (size_t slot = 0; slot < slots; ++slot) {
      const int32_t* const ids = Selected(slot).data;
      const reference::Buckets want = reference::Bucket(
          std::vector<int32_t>(ids, ids + pairs_per_call), experts);
      append(want_tpe, want.tokens_per_expert);
      append(want_offsets, want.offsets);
      append(want_pairs, want.pairs);
      append(want_row_index, want.row_index);
      if (layout != Layout::kStrided) continue;
      std::vector<int32_t> rows(table.size(), kPoison);
      for (size_t e = 0; e < experts; ++e) {
        std::copy(want.pairs.begin() + want.offsets[e],
                  want.pairs.begin() + want.offsets[e + 1],
                  rows.begin() + static_cast<std::ptrdiff_t>(e * row_stride));
      }
      append(want_table, rows);
    }
    if (layout == Layout::kStrided) return {want_tpe, want_table};
    return {want_tpe, want_offsets, want_pairs, want_row_index};
  }
};

std::string Shape(const RouterShape& shape, size_t tokens, Spread spread) {
  return "E=" + std::to_string(shape.experts) +
         "/k=" + std::to_string(shape.top_k) + "/T=" + std::to_string(tokens) +
         (spread == Spread::kUniform ? "/uniform" : "/zipf");
}

Contest Ours(const RouterShape& shape, size_t tokens, Spread spread,
             Layout layout) {
  Contest contest;
  contest.kernel = kKernels[static_cast<size_t>(layout)];
  contest.shape = Shape(shape, tokens, spread);
  contest.model = shape.model;
  contest.unit = "pair";
  contest.slots = tokens == 1 ? kSlots : 1;
  const auto data =
      std::make_shared<Bucket>(shape, tokens, spread, contest.slots, layout);
  Bucket* const d = data.get();
  contest.data = data;
  contest.units = static_cast<double>(d->pairs_per_call);
  contest.bytes = 8.0 * contest.units + 4.0 * static_cast<double>(d->experts);
  contest.outputs = d->Outputs(contest.slots);
  if (layout == Layout::kStrided) {
    AddOurs(contest, {0, 1}, [d](size_t slot, Executor& executor) {
      return d->CallStrided(slot, executor);
    });
    return contest;
  }
  contest.bytes += 4.0 * static_cast<double>(d->experts + 1);
  std::vector<size_t> writes = {0, 1, 2};
  if (layout == Layout::kPackedRowIndex) {
    contest.bytes += 4.0 * contest.units;
    writes.push_back(3);
  }
  AddOurs(contest, writes, [d](size_t slot, Executor& executor) {
    return d->CallPacked(slot, executor);
  });
  return contest;
}

Contest MakeBucket(const RouterShape& shape, size_t tokens, Spread spread,
                   Layout layout) {
  Contest contest = Ours(shape, tokens, spread, layout);
  Bucket* const d = static_cast<Bucket*>(contest.data.get());
  const std::vector<size_t> writes = contest.contenders.front().writes;
  AddRival(contest, Kind::kPlain, "plain C++", writes, [d](size_t slot) {
    if (d->layout == Layout::kStrided) {
      plain::BucketStrided(d->Selected(slot), d->Strided());
    } else {
      const int32_t max = plain::BucketPacked(d->Selected(slot), d->Packed());
      Check(MakeDispatchArgs(max, d->experts, 768, {}, d->args));
    }
  });
  AddRival(contest, Kind::kProbe, "probe", {}, [d](size_t slot) {
    const Probes& probes = BestProbes();
    probes.move(d->Selected(slot).data, d->pairs_per_call, d->pairs.data(),
                d->pairs.size());
    probes.move(nullptr, 0, d->tpe.data(), d->tpe.size());
    if (d->layout == Layout::kStrided) return;
    probes.move(nullptr, 0, d->offsets.data(), d->offsets.size());
    if (d->layout == Layout::kPacked) return;
    probes.move(nullptr, 0, d->row_index.data(), d->row_index.size());
  });
  return contest;
}

}  // namespace

void RegisterBucket() {
  for (const Layout layout :
       {Layout::kPacked, Layout::kPackedRowIndex, Layout::kStrided}) {
    const char* const kernel = kKernels[static_cast<size_t>(layout)];
    for (const RouterShape& shape : kBuckets) {
      for (const size_t tokens : kBucketTokens) {
        for (const Spread spread : {Spread::kUniform, Spread::kZipf}) {
          if (tokens == 1 && spread == Spread::kZipf) continue;
          Register(kernel, Shape(shape, tokens, spread),
                   [=] { return MakeBucket(shape, tokens, spread, layout); });
        }
      }
    }
  }
  RegisterThreads(
      "bucket_packed E=128 k=8", {512, 4096, 16384}, [](size_t tokens) {
        Contest contest =
            Ours({"", 128, 8}, tokens, Spread::kUniform, Layout::kPacked);
        Bucket* const d = static_cast<Bucket*>(contest.data.get());
        d->scratch.resize(128 * 64);  // enough for the blocks of two threads
        return contest;
      });
}

}  // namespace bench
}  // namespace switchyard
