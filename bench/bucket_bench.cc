// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "bench/bench.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "switchyard/bucket.h"
#include "testing/reference.h"

namespace switchyard::bench {
namespace {

constexpr size_t kSlots = 256;  // calls of one token rotate over these inputs

enum class Layout {
  kPacked,
  kPackedRowIndex,
  kStrided,  // row_stride is all pairs + 16, which is no power of two
  kNatural,  // row_stride is exactly all pairs, as in ggml's tables
};
struct Kernel {
  Layout layout;
  const char* name;
};
constexpr Kernel kKernels[] = {
    {Layout::kPacked, "bucket_packed"},
    {Layout::kPackedRowIndex, "bucket_packed_row_index"},
    {Layout::kStrided, "bucket_strided"},
    {Layout::kNatural, "bucket_strided_natural"},
};

bool IsPacked(Layout layout) { return layout <= Layout::kPackedRowIndex; }

struct Bucket {
  size_t tokens, experts, top_k, pairs_per_call, row_stride;
  Aligned<int32_t> ids;  // [slots * tokens, top_k]
  Layout layout;
  Aligned<int32_t> tokens_per_expert, offsets, pairs, row_index, table;
  std::vector<int32_t> scratch;
  uint32_t args[3] = {};

  Bucket(const RouterShape& shape, size_t t, Spread spread, Layout where,
         size_t scratch_size)
      : tokens(t),
        experts(shape.experts),
        top_k(shape.top_k),
        pairs_per_call(t * top_k),
        row_stride(pairs_per_call + (where == Layout::kNatural ? 0 : 16)),
        ids(TopKIds((t == 1 ? kSlots : 1) * t, experts, top_k, spread)),
        layout(where),
        tokens_per_expert(experts),
        offsets(experts + 1),
        pairs(pairs_per_call),
        row_index(pairs_per_call),
        table(IsPacked(where) ? 0 : experts * row_stride),
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
    if (!IsPacked(layout)) {
      return BucketStrided(In(slot), Strided(), {}, executor);
    }
    Report report;
    const Status status = BucketPacked(In(slot), Packed(&report), {}, executor);
    return status.ok() ? DispatchArgs(report.max_rows) : status;
  }
  void CallPlain(size_t slot) {
    if (!IsPacked(layout)) {
      plain::BucketStrided(In(slot), Strided());
    } else {
      Check(DispatchArgs(plain::BucketPacked(In(slot), Packed())));
    }
  }
  // Computes the arguments of the dispatch that follows the sort.
  Status DispatchArgs(size_t max_rows) {
    return MakeDispatchArgs({max_rows, experts, 768}, {args});
  }

  std::vector<Output> Wanted() {
    std::vector<Output> outputs = {Output(tokens_per_expert)};
    if (IsPacked(layout)) {
      outputs.emplace_back(offsets);
      outputs.emplace_back(pairs);
    } else {
      outputs.emplace_back(table);
    }
    if (layout == Layout::kPackedRowIndex) outputs.emplace_back(row_index);
    for (size_t at = 0; at < ids.size(); at += pairs_per_call) {
      const int32_t* const slot = ids.data() + at;
      const reference::Buckets want =
          reference::Bucket({slot, slot + pairs_per_call}, experts);
      std::vector<int32_t> rows(table.size(), -1);  // kPoison
      for (size_t e = 0; e < experts && !IsPacked(layout); ++e) {
        std::copy(want.pairs.begin() + want.offsets[e],
                  want.pairs.begin() + want.offsets[e + 1],
                  rows.begin() + static_cast<std::ptrdiff_t>(e * row_stride));
      }
      const std::vector<int32_t>* const wanted[] = {
          &want.tokens_per_expert, IsPacked(layout) ? &want.offsets : &rows,
          &want.pairs, &want.row_index};
      for (size_t o = 0; o < outputs.size(); ++o) {
        outputs[o].AddExact(*wanted[o]);
      }
    }
    return outputs;
  }
};

// Returns the indices of the outputs that a call writes. They have the same
// bits on every ISA.
const std::vector<size_t>& Writes(Layout layout) {
  static const std::vector<size_t> strided = {0, 1}, packed = {0, 1, 2},
                                   row_index = {0, 1, 2, 3};
  return !IsPacked(layout)                   ? strided
         : layout == Layout::kPackedRowIndex ? row_index
                                             : packed;
}

Facts FactsOf(const std::string& name, const RouterShape& shape, size_t tokens,
              Layout layout) {
  // Counts the ids that a call reads and the elements that it writes. The
  // unused elements of a table do not count.
  const size_t pairs = tokens * shape.top_k;
  size_t elements = 2 * pairs + shape.experts;
  if (IsPacked(layout)) elements += shape.experts + 1;
  if (layout == Layout::kPackedRowIndex) elements += pairs;
  return {name,
          shape.model,
          "pair",
          static_cast<double>(pairs),
          4.0 * static_cast<double>(elements),
          tokens == 1 ? kSlots : 1};
}
Case<Bucket>::Make Make(const RouterShape& shape, size_t tokens, Spread spread,
                        Layout layout, const Executor& executor) {
  return [=, &executor] {
    const size_t scratch =
        BucketScratchSize(tokens * shape.top_k, shape.experts, executor);
    return std::make_unique<Bucket>(shape, tokens, spread, layout, scratch);
  };
}

// Moves the bytes of pairs [begin, end). The call with begin = 0 also moves the
// arrays that have an element per expert.
void Probe(Bucket& d, size_t slot, size_t begin, size_t end) {
  const Probes& probes = BestProbes();
  probes.move(d.Ids(slot) + begin, end - begin, d.pairs.data() + begin,
              end - begin);
  if (begin == 0) {
    probes.move(nullptr, 0, d.tokens_per_expert.data(),
                d.tokens_per_expert.size());
  }
  if (IsPacked(d.layout) && begin == 0) {
    probes.move(nullptr, 0, d.offsets.data(), d.offsets.size());
  }
  if (d.layout != Layout::kPackedRowIndex) return;
  probes.move(nullptr, 0, d.row_index.data() + begin, end - begin);
}

// Adds the usual code of engines: each expert has a count and a row with room
// for all pairs, without offsets.
auto Engine(Bucket& d) {
  auto rows =
      std::make_shared<Aligned<plain::TokenSlot>>(d.experts * d.pairs_per_call);
  const auto call = [&d, rows](size_t slot) {
    plain::AppendPairs(d.In(slot), d.tokens_per_expert, rows->data());
  };
  call(0);
  std::vector<int32_t> next(d.experts);
  for (size_t p = 0; p < d.pairs_per_call; ++p) {
    const size_t e = static_cast<size_t>(d.Ids(0)[p]);
    const plain::TokenSlot& got =
        (*rows)[e * d.pairs_per_call + static_cast<size_t>(next[e]++)];
    if (static_cast<size_t>(got.token) != p / d.top_k ||
        static_cast<size_t>(got.slot) != p % d.top_k) {
      throw std::runtime_error("pair " + std::to_string(p) + " is not there");
    }
  }
  return call;
}

void Add(const Kernel& kernel, const RouterShape& shape, size_t tokens,
         Spread spread) {
  const std::string name = std::string(kernel.name) + "/" +
                           RouterText(shape.experts, shape.top_k, tokens) +
                           (spread == Spread::kUniform ? "/uniform" : "/zipf");
  Case<Bucket> contest(
      FactsOf(name, shape, tokens, kernel.layout),
      Make(shape, tokens, spread, kernel.layout, SerialExecutor()));
  const std::vector<size_t>& writes = Writes(kernel.layout);
  contest.AddOurs(RunnableIsas(), writes);
  contest.Add({"plain", writes}, [](Bucket& d) {
    return [&d](size_t slot) { d.CallPlain(slot); };
  });
  if (kernel.layout == Layout::kPacked) contest.Add({"engine", {0}}, Engine);
  contest.AddProbe("probe", tokens * shape.top_k, Probe);
}

void AddOnThreads(const std::string& text, size_t tokens, bool idle) {
  const RouterShape shape = {"", 128, 8};
  if (TwoThreads() == nullptr) return;
  Facts facts = FactsOf("bucket_packed/E=128/k=8/" + text, shape, tokens,
                        Layout::kPacked);
  facts.model = "T=" + std::to_string(tokens);
  AddThreads<Bucket>(
      facts,
      Make(shape, tokens, Spread::kUniform, Layout::kPacked, *TwoThreads()),
      Writes(Layout::kPacked), tokens * shape.top_k, Probe, idle);
}

const Registration registration([] {
  for (const Kernel& kernel : kKernels) {
    for (const RouterShape& shape : kBuckets) {
      for (const size_t tokens : kBucketTokens) {
        for (const Spread spread : {Spread::kUniform, Spread::kZipf}) {
          if (tokens == 1 && spread == Spread::kZipf) continue;
          if (tokens == 1 && kernel.layout == Layout::kNatural) continue;
          Add(kernel, shape, tokens, spread);
        }
      }
    }
  }
  AddOnThreads("30us", 5600, true);
  AddOnThreads("100us", 18500, true);
  for (const size_t tokens : {size_t{512}, size_t{4096}, size_t{16384}}) {
    AddOnThreads("T=" + std::to_string(tokens), tokens, false);
  }
});

const Registration asked([](const LayerShape& shape) {
  Add(kKernels[1], {"", shape.experts, shape.top_k}, shape.tokens,
      Spread::kUniform);
});

}  // namespace
}  // namespace switchyard::bench
