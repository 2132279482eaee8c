// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes expert ids to sort, and checks the sorted buckets.

#ifndef SWITCHYARD_TESTS_BUCKET_CASE_H_
#define SWITCHYARD_TESTS_BUCKET_CASE_H_

#include <cmath>

#include "switchyard/bucket.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {

enum class Load { kUniform, kZipf, kOneExpert, kStrangers };

// Returns an expert id for each of `pairs` pairs. (A pair is a token and one
// of its selected experts.) kStrangers adds invalid ids, which the sort
// drops.
inline std::vector<int32_t> MakeIds(size_t pairs, size_t experts, Load load,
                                    uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> ids;
  for (size_t p = 0; p < pairs; ++p) {
    size_t e = random.Below(experts);
    if (load == Load::kZipf) {
      const double u = static_cast<double>(random.Uniform(0.0f, 1.0f));
      e = static_cast<size_t>(std::pow(static_cast<double>(experts), u)) - 1;
      e = std::min(e, experts - 1);
    }
    if (load == Load::kOneExpert) e = experts / 2;
    int32_t id = static_cast<int32_t>(e);
    if (load == Load::kStrangers && random.Below(4) == 0) {
      // Some of these values would be valid ids if they were cut to 8 or 16
      // bits.
      const int32_t strangers[] = {-1,        static_cast<int32_t>(experts),
                                   INT32_MIN, INT32_MAX,
                                   -256,      65536 * 3,
                                   1 << 24,   -65535};
      id = strangers[random.Below(8)];
    }
    ids.push_back(id);
  }
  return ids;
}

struct Shape {
  size_t tokens, top_k, experts;
};
inline std::ostream& operator<<(std::ostream& os, const Shape& s) {
  return os << s.tokens << "x" << s.top_k << " of " << s.experts;
}

inline ConstAnyMatrix View(const std::vector<int32_t>& ids, const Shape& s) {
  return {ids.data(), s.tokens, s.top_k};
}
inline std::vector<int32_t> MakeIds(const Shape& s, Load load, uint64_t seed) {
  return MakeIds(s.tokens * s.top_k, s.experts, load, seed);
}

inline size_t ScratchSize(const Shape& s, const Executor& executor) {
  return BucketScratchSize(s.tokens * s.top_k, s.experts, executor);
}

// The outputs of BucketPacked(), in guarded memory.
struct Packed {
  explicit Packed(const Shape& s, size_t slack = 0)
      : tokens_per_expert(1, s.experts, 0, slack),
        offsets(1, s.experts + 1, 0, slack),
        pairs(1, s.tokens * s.top_k, 0, slack),
        row_index(s.tokens, s.top_k, s.top_k + slack, slack) {}
  PackedBuckets Out() {
    return {tokens_per_expert.span(), offsets.span(), pairs.span(),
            row_index.view(), &report};
  }
  Guarded<int32_t> tokens_per_expert, offsets, pairs, row_index;
  Report report = kUnwritten;
};

inline Report BucketReport(const reference::Buckets& r,
                           size_t row_stride = kUnwritten.row_stride) {
  Report report = kUnwritten;
  report.max_rows = r.max_rows;
  report.dropped = r.dropped;
  report.row_stride = row_stride;
  return report;
}

inline void ExpectPacked(const std::vector<int32_t>& ids, const Shape& s,
                         const Packed& b, bool ordered = true) {
  const reference::Buckets r = reference::Bucket(ids, s.experts);
  b.tokens_per_expert.ExpectIntact("tokens_per_expert");
  b.offsets.ExpectIntact("offsets");
  b.pairs.ExpectIntact("pairs");
  b.row_index.ExpectIntact("row_index");
  ASSERT_EQ(b.tokens_per_expert.Values(), r.tokens_per_expert);
  ASSERT_EQ(b.offsets.Values(), r.offsets);
  EXPECT_EQ(b.report, BucketReport(r));
  const std::vector<int32_t> index = b.row_index.Values();
  std::vector<int32_t> pairs = b.pairs.Values();
  // With either BucketOrder, row_index is the inverse of pairs.
  for (size_t p = 0; p < ids.size(); ++p) {
    if (index[p] == -1) {
      EXPECT_EQ(r.row_index[p], -1);
    } else {
      ASSERT_LT(static_cast<size_t>(index[p]), r.pairs.size());
      ASSERT_EQ(pairs[static_cast<size_t>(index[p])], static_cast<int32_t>(p));
    }
  }
  // The call must write nothing after the last pair.
  for (size_t i = r.pairs.size(); i < pairs.size(); ++i) {
    ASSERT_EQ(static_cast<uint32_t>(pairs[i]), kCanary);
  }
  pairs.resize(r.pairs.size());
  if (!ordered) {
    for (size_t e = 0; e < s.experts; ++e) {
      std::sort(pairs.begin() + r.offsets[e], pairs.begin() + r.offsets[e + 1]);
    }
  } else {
    EXPECT_EQ(index, r.row_index);
  }
  ASSERT_EQ(pairs, r.pairs);
}

// Sorts `in` by BucketPacked() and checks the result. `ids` has the ids of
// `in` as int32; it has -1 for ids that int32 cannot hold.
inline void CheckPacked(const BucketInputs& in, const std::vector<int32_t>& ids,
                        const Shape& s, size_t slack = 0,
                        BucketOrder order = BucketOrder::kAscending,
                        Executor& executor = SerialExecutor()) {
  Packed b(s, slack);
  const bool drops = reference::Bucket(ids, s.experts).dropped != 0;
  ASSERT_OK(BucketPacked(in, b.Out(), {order, drops}, executor));
  ExpectPacked(ids, s, b, order == BucketOrder::kAscending);
}

// Checks `ids`, the table of BucketStrided(). Row e has to begin with the
// pairs of expert e in `r`. All other elements of the row have to equal
// `behind`.
inline void ExpectStrided(const reference::Buckets& r,
                          const std::vector<int32_t>& ids, size_t row_stride,
                          uint32_t behind, bool ordered = true) {
  for (size_t e = 0; e < r.tokens_per_expert.size(); ++e) {
    const auto row = ids.begin() + static_cast<ptrdiff_t>(e * row_stride);
    const int32_t count = r.tokens_per_expert[e];
    std::vector<int32_t> bucket(row, row + count);
    if (!ordered) std::sort(bucket.begin(), bucket.end());
    const std::vector<int32_t> expected(r.pairs.begin() + r.offsets[e],
                                        r.pairs.begin() + r.offsets[e + 1]);
    ASSERT_EQ(bucket, expected) << "expert " << e;
    for (size_t i = static_cast<size_t>(count); i < row_stride; ++i) {
      ASSERT_EQ(static_cast<uint32_t>(row[static_cast<ptrdiff_t>(i)]), behind)
          << "expert " << e << " entry " << i;
    }
  }
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_BUCKET_CASE_H_
