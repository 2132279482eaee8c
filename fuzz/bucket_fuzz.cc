// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares BucketPacked and BucketStrided on every ISA with the reference, on
// an executor or on a team of threads (team_executor.h). Also checks that
// invalid calls are refused.

#include "fuzz/sort_case.h"
#include "src/calls/bucket.h"
#include "switchyard/bucket.h"
#include "testing/reference.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

namespace {

// The executor and the arguments that BucketPacked and BucketStrided share.
struct Case : SortCase {
  explicit Case(Bytes& b)
      : SortCase(b, {7, 127, 255, 0, 1023}, 300, false),
        counts(b, Type::kI32, 1, buckets),
        exact(reference::Bucket(values, buckets)),
        in{ids.view(), scratch.span<int32_t>()} {
    options.order = b.Flag() ? BucketOrder::kClaim : BucketOrder::kAscending;
    options.allow_dropped = b.Flag();
  }

  bool Ordered() const { return options.order == BucketOrder::kAscending; }
  // Checks the bucket of expert e, which starts at `begin`.
  void CheckBucket(size_t e, const int32_t* begin) const {
    std::vector<int32_t> bucket(begin, begin + exact.tokens_per_expert[e]);
    if (!Ordered()) std::sort(bucket.begin(), bucket.end());
    FUZZ_CHECK(std::equal(bucket.begin(), bucket.end(),
                          exact.pairs.begin() + exact.offsets[e]),
               "bucket of expert " + std::to_string(e));
  }
  // Runs the call that writes `out`. `report` is the expected report; this
  // function sets the fields that both calls share. check() checks the
  // outputs that only this call has.
  template <class C, class Out, class Check>
  void RunCall(const Spoiler& spoiler, Out& out, bool fits, Report report,
               const Check& check) {
    const auto run = [&] {
      return Run([&](Executor& who) {
        if constexpr (std::is_same_v<Out, PackedBuckets>) {
          return BucketPacked(in, out, options, who);
        } else {
          return BucketStrided(in, out, options, who);
        }
      });
    };
    if (RefusesSpoilt<C>(spoiler, &in, &out, &options, run)) return;
    report.max_rows = exact.max_rows;
    report.dropped = exact.dropped;
    const bool may_drop = options.allow_dropped || exact.dropped == 0;
    RunOnEveryIsa<C>(
        in, &out, {fits && may_drop, report}, run, [&](const Isa&) {
          FUZZ_CHECK(counts.Values<int32_t>() == exact.tokens_per_expert,
                     "counts");
          check();
        });
  }

  Memory counts;
  const reference::Buckets exact;
  BucketInputs in;
  BucketOptions options;
};

void RunPacked(const Spoiler& spoiler, Case& c, Bytes& bytes) {
  const size_t num_pairs = c.tokens * c.top_k;
  const bool with_index = bytes.Flag();
  Memory offsets(bytes, Type::kI32, 1, c.buckets + 1);
  Memory pairs(bytes, Type::kI32, 1, num_pairs + bytes.Below(4));
  Memory index(bytes, Type::kI32, c.tokens, c.top_k);
  PackedBuckets out = {c.counts.span<int32_t>(), offsets.span<int32_t>(),
                       pairs.span<int32_t>()};
  if (with_index) out.row_index = index.view();
  c.RunCall<calls::PackedCall>(spoiler, out, true, kUnwritten, [&] {
    FUZZ_CHECK(offsets.Values<int32_t>() == c.exact.offsets, "offsets");
    const std::vector<int32_t> all = pairs.Values<int32_t>();
    for (size_t e = 0; e < c.buckets; ++e) {
      c.CheckBucket(e, all.data() + c.exact.offsets[e]);
    }
    for (size_t i = c.exact.pairs.size(); i < all.size(); ++i) {
      FUZZ_CHECK(all[i] == 0x7FC0DEAD, "pairs: written behind the last one");
    }
    if (!with_index) return;
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
  });
}

void RunStrided(const Spoiler& spoiler, Case& c, Bytes& bytes) {
  const size_t num_pairs = c.tokens * c.top_k;
  const size_t tight = std::max<size_t>(1, c.exact.max_rows);
  // The stride is not given, too short, exact, roomy, or enough for all pairs
  // (unless these are too many).
  const size_t roomy = num_pairs < 300 ? num_pairs : tight;
  // One of the strides is a multiple of a power of two, so that rows collide
  // in the cache.
  const size_t more = bytes.Below(40), unit = size_t{256} << more % 3;
  const size_t some = more < 32 ? tight + more : (tight / unit + 1) * unit;
  const size_t strides[] = {StridedBuckets::kTightStride, tight - 1, tight,
                            some, roomy};
  const size_t given = strides[bytes.Below(std::size(strides))];
  const bool padded = bytes.Flag();
  const size_t used = given == 0 ? tight : given;
  const size_t last = padded ? used : c.exact.max_rows;
  const size_t needed = (c.buckets - 1) * used + last;
  if (needed > size_t{1} << 18) return;  // too slow for a fuzzer
  const bool large_enough = bytes.Below(8) != 1 || needed == 0;
  const size_t table_size =
      large_enough ? needed + bytes.Below(used + 1) : needed - 1;
  Memory table(bytes, Type::kI32, 1, table_size);
  StridedBuckets out = {c.counts.span<int32_t>(), table.span<int32_t>(), given,
                        padded};
  const bool fits =
      num_pairs == 0 || (used >= c.exact.max_rows && large_enough);
  Report report = kUnwritten;
  report.row_stride = !fits            ? tight
                      : num_pairs == 0 ? std::max<size_t>(1, given)
                                       : used;
  c.RunCall<calls::StridedCall>(spoiler, out, fits, report, [&] {
    if (!fits || num_pairs == 0) return table.CheckUntouched("ids");
    const std::vector<int32_t> all = table.Values<int32_t>();
    for (size_t e = 0; e < c.buckets; ++e) {
      const int32_t* const row = all.data() + e * used;
      c.CheckBucket(e, row);
      const size_t end = std::min(used, all.size() - e * used);
      for (auto i = static_cast<size_t>(c.exact.tokens_per_expert[e]); i < end;
           ++i) {
        FUZZ_CHECK(row[i] == (padded ? 0 : 0x7FC0DEAD), "behind a bucket");
      }
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const Spoiler spoiler(bytes);
  const bool packed = bytes.Flag();
  Case c(bytes);
  (packed ? RunPacked : RunStrided)(spoiler, c, bytes);
  return 0;
}
