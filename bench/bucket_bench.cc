// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/contest.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "switchyard/bucket.h"
#include "testing/reference.h"

namespace switchyard::bench {
namespace {

constexpr size_t kSlots = 256;  // single tokens to rotate over

enum class Layout { kPacked, kPackedRowIndex, kStrided };
constexpr const char* kKernels[] = {"bucket_packed", "bucket_packed_row_index",
                                    "bucket_strided"};

struct Bucket {
  size_t tokens, experts, top_k, pairs_per_call, row_stride;
  Aligned<int32_t> ids;  // [slots * tokens, top_k]
  Layout layout;
  Aligned<int32_t> tokens_per_expert, offsets, pairs, row_index, table;
  std::vector<int32_t> scratch;
  uint32_t args[3] = {};

  Bucket(const RouterShape& shape, size_t t, Spread spread, size_t slots,
         Layout where, size_t scratch_size)
      : tokens(t),
        experts(shape.experts),
        top_k(shape.top_k),
        pairs_per_call(t * top_k),
        // Room for all pairs with one expert, and no power of two.
        row_stride(pairs_per_call + 16),
        ids(TopKIds(slots * t, experts, top_k, spread)),
        layout(where),
        tokens_per_expert(experts),
        offsets(experts + 1),
        pairs(pairs_per_call),
        row_index(pairs_per_call),
        table(where == Layout::kStrided ? experts * row_stride : 0),
        scratch(scratch_size) {}

  const int32_t* Ids(size_t slot) const {
    return ids.data() + slot * pairs_per_call;
  }
  BucketInputs In(size_t slot) { return {{Ids(slot), tokens, top_k}, scratch}; }
  PackedBuckets Packed(Report* report = nullptr) {
    PackedBuckets out = {tokens_per_expert, offsets, pairs};
    if (layout == Layout::kPackedRowIndex) {
      out.row_index = {row_index.data(), tokens, top_k};
    }
    out.report = report;
    return out;
  }
  StridedBuckets Strided() { return {tokens_per_expert, table, row_stride}; }
  Status Call(size_t slot, Executor& executor) {
    if (layout == Layout::kStrided) {
      return BucketStrided(In(slot), Strided(), {}, executor);
    }
    Report report;
    const Status status = BucketPacked(In(slot), Packed(&report), {}, executor);
    return status.ok() ? DispatchArgs(report.max_rows) : status;
  }
  void CallPlain(size_t slot) {
    if (layout == Layout::kStrided) {
      plain::BucketStrided(In(slot), Strided());
    } else {
      Check(DispatchArgs(plain::BucketPacked(In(slot), Packed())));
    }
  }
  // Of the dispatch that comes next.
  Status DispatchArgs(size_t max_rows) {
    return MakeDispatchArgs({max_rows, experts, 768}, {args});
  }

  std::vector<Output> Wanted(size_t slots) {
    const bool strided = layout == Layout::kStrided;
    std::vector<Output> outputs = {Output(tokens_per_expert)};
    if (strided) outputs.emplace_back(table);
    if (!strided) {
      outputs.emplace_back(offsets);
      outputs.emplace_back(pairs);
    }
    if (layout == Layout::kPackedRowIndex) outputs.emplace_back(row_index);
    for (size_t slot = 0; slot < slots; ++slot) {
      const reference::Buckets want =
          reference::Bucket({Ids(slot), Ids(slot) + pairs_per_call}, experts);
      std::vector<int32_t> rows(table.size(), kPoison);
      for (size_t e = 0; e < experts && strided; ++e) {
        std::copy(want.pairs.begin() + want.offsets[e],
                  want.pairs.begin() + want.offsets[e + 1],
                  rows.begin() + static_cast<std::ptrdiff_t>(e * row_stride));
      }
      const std::vector<int32_t>* const wanted[] = {
          &want.tokens_per_expert, strided ? &rows : &want.offsets, &want.pairs,
          &want.row_index};
      for (size_t o = 0; o < outputs.size(); ++o) {
        Append(*wanted[o], &outputs[o].ints);
      }
    }
    return outputs;
  }
};

Contest MakeBucket(const RouterShape& shape, size_t tokens, Spread spread,
                   Layout layout, size_t scratch = 0) {
  Contest contest = {shape.model, "pair"};
  contest.slots = tokens == 1 ? kSlots : 1;
  const auto d = std::make_shared<Bucket>(shape, tokens, spread, contest.slots,
                                          layout, scratch);
  contest.units = static_cast<double>(d->pairs_per_call);
  contest.outputs = d->Wanted(contest.slots);
  contest.bytes = 4.0 * contest.units;  // read; of the table, what is written
  std::vector<size_t> writes;
  for (const Output& output : contest.outputs) {
    const bool table = output.data == d->table.data();
    contest.bytes +=
        4.0 * static_cast<double>(table ? d->pairs_per_call : output.size);
    writes.push_back(writes.size());
  }
  AddOurs(contest, writes, [d](size_t slot, Executor& executor) {
    return d->Call(slot, executor);
  });
  AddRival(contest, Kind::kPlain, "plain C++", writes,
           [d](size_t slot) { d->CallPlain(slot); });
  AddRival(contest, Kind::kProbe, "probe", {}, [d](size_t slot) {
    const Probes& probes = BestProbes();
    probes.move(d->Ids(slot), d->pairs_per_call, d->pairs.data(),
                d->pairs.size());
    probes.move(nullptr, 0, d->tokens_per_expert.data(),
                d->tokens_per_expert.size());
    if (d->layout == Layout::kStrided) return;
    probes.move(nullptr, 0, d->offsets.data(), d->offsets.size());
    if (d->layout == Layout::kPacked) return;
    probes.move(nullptr, 0, d->row_index.data(), d->row_index.size());
  });
  return contest;
}

void Asks(Table& table) {
  const std::string& isa = table.best;
  for (const char* kernel : {"bucket_packed", "bucket_strided"}) {
    for (const RouterShape& router : kBuckets) {
      for (const size_t tokens : kBucketTokens) {
        if (tokens == 1) continue;
        for (const char* spread : {"uniform", "zipf"}) {
          const std::string shape =
              RouterText(router.experts, router.top_k, tokens) + "/" + spread;
          table.AtMost(router.top_k == 2 ? 1.0 : 1.25,
                       table.Ns(kernel, shape, isa),
                       std::string(kernel) + ", " + shape + ", ns a pair");
        }
      }
    }
  }
  const std::string one = RouterText(128, 8, 1) + "/uniform";
  const auto call_ns = [&](const char* kernel) {
    return 8.0 * table.Ns(kernel, one, isa);
  };
  table.AtMost(25.0, call_ns("bucket_strided"),
               "bucket_strided, " + one + ", ns a call");
  table.AtMost(60.0, call_ns("bucket_packed"),
               "bucket_packed with dispatch arguments, " + one + ", ns a call");
}

const Registration registration(
    [] {
      for (const Layout layout :
           {Layout::kPacked, Layout::kPackedRowIndex, Layout::kStrided}) {
        for (const RouterShape& shape : kBuckets) {
          for (const size_t tokens : kBucketTokens) {
            for (const Spread spread : {Spread::kUniform, Spread::kZipf}) {
              if (tokens == 1 && spread == Spread::kZipf) continue;
              Register(
                  kKernels[static_cast<size_t>(layout)],
                  RouterText(shape.experts, shape.top_k, tokens) +
                      (spread == Spread::kUniform ? "/uniform" : "/zipf"),
                  [=] { return MakeBucket(shape, tokens, spread, layout); });
            }
          }
        }
      }
      RegisterThreads(
          "bucket_packed E=128 k=8", {512, 4096, 16384}, [](size_t tokens) {
            return MakeBucket({"", 128, 8}, tokens, Spread::kUniform,
                              Layout::kPacked,
                              128 * 64);  // enough for two threads' blocks
          });
    },
    Asks);

}  // namespace
}  // namespace switchyard::bench
