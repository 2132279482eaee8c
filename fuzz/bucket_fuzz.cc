// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// BucketPacked and BucketStrided, on an executor and by a team, against the
// reference on every ISA; and refusals.

#include "fuzz/call.h"
#include "src/calls/bucket.h"
#include "switchyard/bucket.h"
#include "testing/crew.h"
#include "testing/reference.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

namespace {

constexpr Type kIdTypes[] = {Type::kI32, Type::kU32, Type::kI64};

// Who sorts, and what both functions are given.
struct Case {
  explicit Case(Bytes& b)
      : spoiler(b),
        packed(b.Flag()),
        // Enough for several threads is slow: seldom.
        tokens(b.Below(32) == 31 ? 2500 + b.Below(2000)
                                 : b.Size({1, 2, 0, 16}, 70)),
        top_k(b.Size({1, 8, 4, 0}, 20)),
        experts(1 + b.Size({7, 127, 255, 0, 1023}, 300)),
        executor(b),
        crew(1 + b.Below(3)),
        by_team(b.Flag()),
        values(b.Ids(tokens * top_k, experts, b.Flag())),
        ids(b, kIdTypes[b.Below(3)], tokens, top_k, values),
        scratch(b, Type::kI32, 1,
                b.Flag() ? ScratchSize() : b.Below(ScratchSize() + 1)),
        counts(b, Type::kI32, 1, experts),
        exact(reference::Bucket(values, experts)) {
    in = {ids.view(), scratch.span<int32_t>()};
    // Strangers that are valid ids once they are cut to 32 bits.
    for (size_t p = 0; in.topk_ids.type == Type::kI64 && p < values.size();
         ++p) {
      int64_t& id = ids.view().Row<int64_t>(p / top_k)[p % top_k];
      if (id == INT32_MIN) id = int64_t{1} << 32;
    }
    ids.Keep();
    options.order = b.Flag() ? BucketOrder::kClaim : BucketOrder::kAscending;
    options.allow_dropped = b.Flag();
  }
  size_t ScratchSize() {
    const size_t pairs = tokens * top_k;
    return by_team ? BucketScratchSize(pairs, experts, crew.Member(0))
                   : BucketScratchSize(pairs, experts, executor);
  }

  template <class Out>
  Status Run(const Out& out) {
    if (!by_team) return Call(out, executor);
    const std::vector<Status> statuses =
        crew.Run([&](const Team& team) { return Call(out, team); });
    for (const Status& s : statuses) {
      FUZZ_CHECK(s.code() == statuses[0].code() &&
                     std::strcmp(s.message(), statuses[0].message()) == 0,
                 "members got different statuses");
    }
    return statuses[0];
  }
  template <class Who>
  Status Call(const PackedBuckets& out, Who&& who) {
    return BucketPacked(in, out, options, who);
  }
  template <class Who>
  Status Call(const StridedBuckets& out, Who&& who) {
    return BucketStrided(in, out, options, who);
  }

  bool Ordered() const { return options.order == BucketOrder::kAscending; }
  bool MayDrop() const { return options.allow_dropped || exact.dropped == 0; }
  // After a call that got that far.
  void CheckCounts(const Status& status, bool fits) {
    const StatusCode expected =
        fits && MayDrop() ? StatusCode::kOk : StatusCode::kFailedPrecondition;
    FUZZ_CHECK(status.code() == expected, status.message());
    ids.CheckUntouched("topk_ids");
    scratch.CheckOnlyViewWritten("scratch");
    counts.CheckOnlyViewWritten("tokens_per_expert");
    FUZZ_CHECK(counts.Values<int32_t>() == exact.tokens_per_expert, "counts");
  }
  // The bucket of expert e lies at `begin`.
  void CheckBucket(size_t e, const int32_t* begin) const {
    std::vector<int32_t> bucket(begin, begin + exact.tokens_per_expert[e]);
    if (!Ordered()) std::sort(bucket.begin(), bucket.end());
    FUZZ_CHECK(std::equal(bucket.begin(), bucket.end(),
                          exact.pairs.begin() + exact.offsets[e]),
               "bucket of expert " + std::to_string(e));
  }
  template <class Call>
  void SpoilAndRun(typename Call::Outputs& out) {
    Report report = kUnwritten;
    out.report = &report;
    if (!spoiler.Spoil<Call>(&in, &out, &options)) return;
    CheckRefused(Run(out), Call::kName, report);
    ids.CheckUntouched("topk_ids");
    scratch.CheckUntouched("scratch");
    counts.CheckUntouched("tokens_per_expert");
  }

  Spoiler spoiler;
  const bool packed;
  const size_t tokens, top_k, experts;
  PiecesExecutor executor;
  testing_support::Crew crew;
  const bool by_team;
  const std::vector<int32_t> values;
  Memory ids, scratch, counts;
  const reference::Buckets exact;
  BucketInputs in;
  BucketOptions options;
};

void RunPacked(Case& c, Bytes& bytes) {
  const size_t num_pairs = c.tokens * c.top_k;
  const bool with_index = bytes.Flag();
  Memory offsets(bytes, Type::kI32, 1, c.experts + 1);
  Memory pairs(bytes, Type::kI32, 1, num_pairs + bytes.Below(4));
  Memory index(bytes, Type::kI32, c.tokens, c.top_k);
  PackedBuckets out = {c.counts.span<int32_t>(), offsets.span<int32_t>(),
                       pairs.span<int32_t>()};
  if (with_index) out.row_index = index.view();
  if (c.spoiler.wanted()) {
    c.SpoilAndRun<calls::PackedCall>(out);
    offsets.CheckUntouched("offsets");
    pairs.CheckUntouched("pairs");
    index.CheckUntouched("row_index");
    return;
  }
  OnEveryIsa([&](const Isa&) {
    for (Memory* m : {&c.counts, &offsets, &pairs, &index}) m->Restore();
    Report report = kUnwritten, expected = kUnwritten;
    expected.max_rows = c.exact.max_rows;
    expected.dropped = c.exact.dropped;
    out.report = &report;
    c.CheckCounts(c.Run(out), true);
    FUZZ_CHECK(report == expected, "report");
    offsets.CheckOnlyViewWritten("offsets");
    pairs.CheckOnlyViewWritten("pairs");
    FUZZ_CHECK(offsets.Values<int32_t>() == c.exact.offsets, "offsets");
    const std::vector<int32_t> all = pairs.Values<int32_t>();
    for (size_t e = 0; e < c.experts; ++e) {
      c.CheckBucket(e, all.data() + c.exact.offsets[e]);
    }
    for (size_t i = c.exact.pairs.size(); i < all.size(); ++i) {
      FUZZ_CHECK(all[i] == 0x7FC0DEAD, "pairs: written behind the last one");
    }
    if (!with_index) {
      index.CheckUntouched("row_index");
      return std::vector<uint32_t>();
    }
    index.CheckOnlyViewWritten("row_index");
    const std::vector<int32_t> rows = index.Values<int32_t>();
    FUZZ_CHECK(!c.Ordered() || rows == c.exact.row_index, "row_index");
    for (size_t p = 0; p < num_pairs; ++p) {
      const bool dropped = c.exact.row_index[p] == -1;
      const auto row = static_cast<size_t>(rows[p]);
      FUZZ_CHECK(dropped ? rows[p] == -1
                         : row < c.exact.pairs.size() &&
                               all[row] == static_cast<int32_t>(p),
                 "row_index of pair " + std::to_string(p));
    }
    return std::vector<uint32_t>();
  });
}

void RunStrided(Case& c, Bytes& bytes) {
  const size_t num_pairs = c.tokens * c.top_k;
  const size_t tight = std::max<size_t>(1, c.exact.max_rows);
  // None given, short ones, just right, roomy, room for all (not too much).
  const size_t roomy = num_pairs < 300 ? num_pairs : tight;
  // One of the strides makes rows collide in the cache.
  const size_t more = bytes.Below(40), unit = size_t{256} << more % 3;
  const size_t some = more < 32 ? tight + more : (tight / unit + 1) * unit;
  const size_t strides[] = {StridedBuckets::kTightStride, tight - 1, tight,
                            some, roomy};
  const size_t given = strides[bytes.Below(std::size(strides))];
  const bool padded = bytes.Flag();
  const size_t used = given == 0 ? tight : given;
  const size_t last = padded ? used : c.exact.max_rows;
  const size_t needed = (c.experts - 1) * used + last;
  if (needed > size_t{1} << 18) return;  // too slow to learn from
  const bool large_enough = bytes.Below(8) != 1 || needed == 0;
  const size_t table_size =
      large_enough ? needed + bytes.Below(used + 1) : needed - 1;
  Memory table(bytes, Type::kI32, 1, table_size);
  StridedBuckets out = {c.counts.span<int32_t>(), table.span<int32_t>(), given,
                        padded};
  if (c.spoiler.wanted()) {
    c.SpoilAndRun<calls::StridedCall>(out);
    table.CheckUntouched("ids");
    return;
  }
  const bool fits =
      num_pairs == 0 || (used >= c.exact.max_rows && large_enough);
  OnEveryIsa([&](const Isa&) {
    for (Memory* m : {&c.counts, &table}) m->Restore();
    Report report = kUnwritten, expected = kUnwritten;
    expected.max_rows = c.exact.max_rows;
    expected.dropped = c.exact.dropped;
    expected.row_stride = !fits            ? tight
                          : num_pairs == 0 ? std::max<size_t>(1, given)
                                           : used;
    out.report = &report;
    c.CheckCounts(c.Run(out), fits);
    FUZZ_CHECK(report == expected, "report");
    if (!fits || num_pairs == 0) {
      table.CheckUntouched("ids");
      return std::vector<uint32_t>();
    }
    table.CheckOnlyViewWritten("ids");
    const std::vector<int32_t> all = table.Values<int32_t>();
    for (size_t e = 0; e < c.experts; ++e) {
      const int32_t* const row = all.data() + e * used;
      c.CheckBucket(e, row);
      const size_t end = std::min(used, all.size() - e * used);
      for (auto i = static_cast<size_t>(c.exact.tokens_per_expert[e]); i < end;
           ++i) {
        FUZZ_CHECK(row[i] == (padded ? 0 : 0x7FC0DEAD), "behind a bucket");
      }
    }
    return std::vector<uint32_t>();
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Case c(bytes);
  if (c.packed) {
    RunPacked(c, bytes);
  } else {
    RunStrided(c, bytes);
  }
  return 0;
}
