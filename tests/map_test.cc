// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/map.h"

#include <numeric>

#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "testing/reference_map.h"
#include "tests/bucket_case.h"

namespace switchyard::testing_support {
namespace {

class MapTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(MapTest);
class MapPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(MapPoolTest);

// The outputs of MapPairs() for one of its two lists, in guarded memory: the
// list of pairs or the list of tokens.
struct Rows {
  Rows(size_t destinations, size_t most, size_t slack)
      : counts(1, destinations, 0, slack),
        offsets(1, destinations + 1, 0, slack),
        rows(1, most + slack),
        element_counts(1, destinations),
        element_offsets(1, destinations + 1) {}
  MapRows Out() const {
    return {counts.span(), offsets.span(), rows.span(), element_counts.span(),
            element_offsets.span()};
  }
  void Expect(const reference::Mapped& r, int64_t row_elements) const {
    EXPECT_EQ(counts.Values(), r.counts);
    EXPECT_EQ(offsets.Values(), r.offsets);
    std::vector<int32_t> wanted = r.rows;
    int32_t canary;
    std::memcpy(&canary, &kCanary, sizeof(canary));
    wanted.resize(rows.span().size, canary);
    EXPECT_EQ(rows.Values(), wanted);
    std::vector<int64_t> elements(r.counts.begin(), r.counts.end());
    for (int64_t& n : elements) n *= row_elements;
    EXPECT_EQ(element_counts.Values(), elements);
    elements.assign(r.offsets.begin(), r.offsets.end());
    for (int64_t& n : elements) n *= row_elements;
    EXPECT_EQ(element_offsets.Values(), elements);
    for (const Guarded<int32_t>* m : {&counts, &offsets, &rows}) {
      m->ExpectIntact("int32");
    }
    for (const Guarded<int64_t>* m : {&element_counts, &element_offsets}) {
      m->ExpectIntact("int64");
    }
  }
  Guarded<int32_t> counts, offsets, rows;
  Guarded<int64_t> element_counts, element_offsets;
};

// True if a map has an element outside [-1, size).
bool HasStrangers(const std::vector<int32_t>& map, size_t size) {
  return std::any_of(map.begin(), map.end(), [size](int32_t to) {
    return to < -1 || to >= static_cast<int64_t>(size);
  });
}

// The inputs and outputs of a MapPairs() call, and the expected outputs.
// s.experts is the size of the table.
struct Map {
  Map(const Shape& shape, std::vector<int32_t> values,
      std::vector<int32_t> destinations, size_t num_destinations,
      size_t slack = 0)
      : s(shape),
        ids(std::move(values)),
        table(std::move(destinations)),
        mapped(reference::MapIds(ids, table)),
        exact_pairs(
            reference::MapRows(mapped, s.top_k, num_destinations, false)),
        exact_tokens(
            reference::MapRows(mapped, s.top_k, num_destinations, true)),
        topk_ids(s.tokens, s.top_k, s.top_k + slack, slack, ids),
        pairs(num_destinations, ids.size(), slack),
        tokens(num_destinations, s.tokens * std::min(s.top_k, num_destinations),
               slack),
        pair_index(s.tokens, s.top_k, s.top_k + slack, slack),
        copy_index(s.tokens, s.top_k, s.top_k + slack, slack),
        return_index(s.tokens, s.top_k, s.top_k + slack, slack) {
    dropped = ids.size() - exact_pairs.rows.size();
    options.allow_dropped = dropped % 2 != 0;
    options.row_elements = 7168;
    for (const int32_t count : exact_pairs.counts) {
      max_rows = std::max(max_rows, static_cast<size_t>(count));
    }
  }
  MapInputs In() const { return {topk_ids.view(), table}; }
  MapOutputs Out() {
    return {pairs.Out(),       pair_index.view(),   tokens.Out(),
            copy_index.view(), return_index.view(), &report};
  }
  void Expect(const Status& status) const {
    if (dropped == 0 || options.allow_dropped) {
      ASSERT_OK(status);
    } else {
      ExpectError(status,
                  (HasStrangers(table, exact_pairs.counts.size())
                       ? "MapPairs: destinations: outside [-1, "
                         "num_destinations), and "
                       : "MapPairs: topk_ids: without a destination, and ") +
                      std::string("options.allow_dropped is not set"),
                  StatusCode::kFailedPrecondition);
    }
    const auto elements = static_cast<int64_t>(options.row_elements);
    pairs.Expect(exact_pairs, elements);
    tokens.Expect(exact_tokens, elements);
    EXPECT_EQ(pair_index.Values(), exact_pairs.index);
    EXPECT_EQ(copy_index.Values(), exact_tokens.index);
    EXPECT_EQ(return_index.Values(), exact_tokens.firsts);
    for (const Guarded<int32_t>* m :
         {&pair_index, &copy_index, &return_index}) {
      m->ExpectIntact("index");
    }
    Report expected = kUnwritten;
    expected.max_rows = max_rows;
    expected.dropped = dropped;
    EXPECT_EQ(report, expected);
  }

  const Shape s;
  const std::vector<int32_t> ids, table, mapped;
  const reference::Mapped exact_pairs, exact_tokens;
  size_t dropped = 0, max_rows = 0;
  MapOptions options;
  const Guarded<int32_t> topk_ids;
  Rows pairs, tokens;
  const Guarded<int32_t> pair_index, copy_index, return_index;
  Report report = kUnwritten;
};

// Makes a table in which some experts have no destination, or an invalid
// destination.
std::vector<int32_t> MakeTable(size_t experts, size_t destinations,
                               uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> table;
  for (size_t e = 0; e < experts; ++e) {
    const int32_t strangers[] = {-1, INT32_MIN, INT32_MAX,
                                 static_cast<int32_t>(destinations)};
    table.push_back(random.Below(8) == 0
                        ? strangers[random.Below(4)]
                        : static_cast<int32_t>(random.Below(destinations)));
  }
  return table;
}

Map MakeCase(uint64_t seed, const Shape& s, size_t destinations) {
  return {s, MakeIds(s, static_cast<Load>(seed % 4), seed),
          MakeTable(s.experts, destinations, seed), destinations, seed % 3};
}

TEST_P(MapTest, AnyShapeLikeTheReference) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(2000 + seed);
    // The kernel marks a token's destinations by bits in 64-bit words. 63 to
    // 65 destinations are around the limit of one word, and 128 fill two words.
    const size_t some[] = {1, 2, 8, 63, 64, 65, 128, 1 + random.Below(300)};
    const size_t destinations = some[random.Below(8)];
    const Shape s = {1 + random.Below(random.Below(8) ? 60 : 500),
                     1 + random.Below(12), 1 + random.Below(300)};
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ": " << s << " to " << destinations);
    Map c = MakeCase(seed, s, destinations);
    c.Expect(MapPairs(c.In(), c.Out(), c.options));
    ASSERT_FALSE(HasFailure());
  }
}

// Tokens have more pairs than the kernel handles at a time. Some cases have
// gaps between the rows of ids.
TEST_P(MapTest, LongTokens) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Map c = MakeCase(4 * seed + seed % 3, {3, 5001, 400}, 70);
    c.Expect(MapPairs(c.In(), c.Out(), c.options));
  }
}

TEST_P(MapTest, RangesLikeTheirTable) {
  for (const size_t per_destination : {1u, 3u, 16u, 100u}) {
    const Shape s = {100, 8, 7 * per_destination};
    const std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 4);
    const std::vector<int32_t> table =
        reference::RangeTable(7, per_destination);
    Map c(s, ids, table, 7);
    MapInputs in = c.In();
    in.destinations = {};
    c.options.experts_per_destination = per_destination;
    c.Expect(MapPairs(in, c.Out(), c.options));
    const std::vector<uint32_t> unsigned_ids(ids.begin(), ids.end());
    in.topk_ids = {unsigned_ids.data(), s.tokens, s.top_k};
    c.Expect(MapPairs(in, c.Out(), c.options));
  }
}

// The low halves of some int64 ids are valid ids.
TEST_P(MapTest, WideIds) {
  const Shape s = {100, 8, 60};
  std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 5);
  std::vector<int64_t> wide(ids.begin(), ids.end());
  for (size_t i = 0; i < ids.size(); i += 7) {
    wide[i] = ids[i] + (int64_t{1} << 32);
    ids[i] = -1;
  }
  for (const bool ranges : {false, true}) {
    Map c(s, ids, reference::RangeTable(6, 10), 6);
    MapInputs in = c.In();
    in.topk_ids = {wide.data(), s.tokens, s.top_k};
    if (ranges) in.destinations = {};
    c.options.experts_per_destination = ranges ? 10 : 0;
    c.Expect(MapPairs(in, c.Out(), c.options));
  }
}

TEST_P(MapTest, LeavesOutWhatIsNotThere) {
  Map c = MakeCase(8, {50, 6, 40}, 9);
  c.options.allow_dropped = true;
  // Asks for the counts of pairs only, without rows.
  MapOutputs out;
  out.pairs.counts = c.pairs.counts.span();
  ASSERT_OK(MapPairs(c.In(), out, c.options));
  EXPECT_EQ(c.pairs.counts.Values(), c.exact_pairs.counts);
  // Asks for the lists of tokens, without the rows of pairs.
  out.tokens = {c.tokens.counts.span(), c.tokens.offsets.span(),
                c.tokens.rows.span()};
  ASSERT_OK(MapPairs(c.In(), out, c.options));
  EXPECT_EQ(c.tokens.offsets.Values(), c.exact_tokens.offsets);
  c.pairs.rows.ExpectUntouched("pairs.rows");
  c.pair_index.ExpectUntouched("pair_index");
  c.copy_index.ExpectUntouched("copy_index");
  c.return_index.ExpectUntouched("return_index");
  c.tokens.element_counts.ExpectUntouched("tokens.element_counts");
  EXPECT_EQ(c.report, kUnwritten);
}

TEST_P(MapTest, KnownAnswers) {
  // Experts 0 and 1 are at rank 0, experts 2 and 3 at rank 1.
  const std::vector<int32_t> ids = {0, 1, 2, 2, 3, -1, 3, 0, 1};
  std::vector<int32_t> counts(2), offsets(3), rows(9), token_counts(2),
      token_offsets(3), tokens(6), copies(9), back(9);
  MapOutputs out;
  out.pairs = {counts, offsets, rows};
  out.tokens = {token_counts, token_offsets, tokens};
  out.copy_index = {copies.data(), 3, 3};
  out.return_index = {back.data(), 3, 3};
  ASSERT_OK(MapPairs({{ids.data(), 3, 3}}, out, {2, 1, true}));
  rows.resize(8);
  EXPECT_EQ(rows, (std::vector<int32_t>{0, 1, 7, 8, 2, 3, 4, 6}));
  EXPECT_EQ(token_counts, (std::vector<int32_t>{2, 3}));
  tokens.resize(5);
  EXPECT_EQ(tokens, (std::vector<int32_t>{0, 2, 0, 1, 2}));
  EXPECT_EQ(copies, (std::vector<int32_t>{0, 0, 2, 3, 3, -1, 4, 1, 1}));
  EXPECT_EQ(back, (std::vector<int32_t>{0, -1, 2, 3, -1, -1, 4, 1, -1}));
}

TEST_P(MapTest, NoTokens) {
  Map c({0, 4, 5}, {}, {1, 0, 2, 1, 1}, 3, 1);
  c.Expect(MapPairs(c.In(), c.Out(), c.options));
  // The fixture fails unless a kernel of this ISA has run, so the test runs
  // one.
  Map d = MakeCase(1, {2, 2, 2}, 2);
  d.Expect(MapPairs(d.In(), d.Out(), d.options));
}

// Runs the layer that map.h describes, which sends rows to other ranks and
// back. Here all ranks run in this process, one after the other. The result
// equals the result of one rank alone.
TEST_P(MapTest, ThereAndBack) {
  constexpr size_t kTokens = 60, kTopK = 4, kExperts = 12, kRanks = 3, kH = 32;
  const std::vector<int32_t> ids =
      MakeIds({kTokens, kTopK, kExperts}, Load::kZipf, 3);
  // Expert e multiplies its rows by e + 1, which is exact here.
  std::vector<float> x(kTokens * kH), wanted(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(Hash(5, i) % 64);
    for (size_t s = 0; s < kTopK; ++s) {
      wanted[i] += x[i] * static_cast<float>(ids[i / kH * kTopK + s] + 1);
    }
  }
  std::vector<int32_t> pair_counts(kRanks), counts(kRanks), offsets(kRanks + 1),
      tokens(kTokens * kRanks), back(ids.size());
  MapOutputs out;
  out.pairs.counts = pair_counts;
  out.tokens = {counts, offsets, tokens};
  out.return_index = {back.data(), kTokens, kTopK};
  MapOptions options;
  options.experts_per_destination = kExperts / kRanks;
  ASSERT_OK(MapPairs({{ids.data(), kTokens, kTopK}}, out, options));
  const auto sent = static_cast<size_t>(offsets[kRanks]);
  ASSERT_LT(sent, ids.size());  // because some experts share a rank
  const std::vector<int32_t> one_each(kTokens);
  std::vector<float> there(sent * kH), returned(sent * kH), result(x.size());
  ASSERT_OK(GatherRows({{x.data(), kTokens, kH},
                        {tokens.data(), sent},
                        {one_each.data(), kTokens, 1}},
                       {{there.data(), sent, kH}}));
  for (size_t r = 0; r < kRanks; ++r) {
    // Takes the rows that this rank received, and their ids.
    const auto first = static_cast<size_t>(offsets[r]);
    const auto n = static_cast<size_t>(counts[r]);
    std::vector<int32_t> got_ids, map(kExperts, -1);
    for (size_t i = 0; i < n; ++i) {
      const auto t = static_cast<size_t>(tokens[first + i]);
      got_ids.insert(got_ids.end(), &ids[t * kTopK], &ids[t * kTopK] + kTopK);
    }
    for (int32_t e = 0; e < 4; ++e) map[4 * r + static_cast<size_t>(e)] = e;
    AlignedOptions local;
    local.block_size = 5;
    local.allow_dropped = true;
    const size_t size = BucketAlignedSize(n * kTopK, 4, local);
    std::vector<int32_t> local_counts(4), local_offsets(5), pairs(size),
        index(n * kTopK);
    ASSERT_OK(BucketAligned(
        {{got_ids.data(), n, kTopK}, map},
        {local_counts, local_offsets, pairs, {index.data(), n, kTopK}}, local));
    std::vector<float> rows(size * kH);
    for (size_t e = 0; e < 4; ++e) {
      for (int32_t i = 0; i < local_counts[e]; ++i) {
        const auto at = static_cast<size_t>(local_offsets[e] + i);
        const size_t copy = static_cast<size_t>(pairs[at]) / kTopK;
        for (size_t h = 0; h < kH; ++h) {
          rows[at * kH + h] = there[(first + copy) * kH + h] *
                              static_cast<float>(4 * r + e + 1);
        }
      }
    }
    const std::vector<float> ones(n * kTopK, 1.0f);
    ASSERT_OK(Combine({{rows.data(), size, kH},
                       {ones.data(), n, kTopK},
                       {index.data(), n, kTopK}},
                      {{returned.data() + first * kH, n, kH}}));
  }
  const std::vector<float> ones(ids.size(), 1.0f);
  ASSERT_OK(Combine({{returned.data(), sent, kH},
                     {ones.data(), kTokens, kTopK},
                     {back.data(), kTokens, kTopK}},
                    {{result.data(), kTokens, kH}}));
  EXPECT_EQ(result, wanted);
}

TEST_P(MapPoolTest, SameBitsOnEveryThread) {
  executor().Rendezvous();
  const Shape s = {30011, 8, 128};
  for (const size_t destinations : {8u, 100u}) {
    const std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 6);
    const Guarded<int32_t> scratch(
        1, BucketScratchSize(ids.size(), destinations, executor()));
    for (const bool with_scratch : {true, false}) {
      Map c(s, ids, MakeTable(s.experts, destinations, 4), destinations);
      MapInputs in = c.In();
      if (with_scratch) in.scratch = scratch.span();
      c.Expect(MapPairs(in, c.Out(), c.options, executor()));
      ASSERT_FALSE(HasFailure());
      scratch.ExpectIntact("scratch");
    }
  }
  EXPECT_EQ(std::max<size_t>(1, executor().DistinctThreads()),
            executor().ExpectedThreads());
}

TEST(MapFailures, OfAnyLoopAreReported) {
  const Shape s = {15007, 4, 60};
  // Each of the loops fails in turn: the loops that count and place pairs,
  // and the loops that count and place tokens.
  for (size_t fail_at = 0; fail_at <= 4; ++fail_at) {
    BackwardsExecutor executor(fail_at);
    std::vector<int32_t> scratch(BucketScratchSize(60028, 8, executor));
    Map c = MakeCase(0, s, 8);
    c.options.allow_dropped = true;
    MapInputs in = c.In();
    in.scratch = scratch;
    EXPECT_EQ(MapPairs(in, c.Out(), c.options, executor).code(),
              fail_at < 4 ? StatusCode::kOutOfMemory : StatusCode::kOk);
    EXPECT_EQ(c.report == kUnwritten, fail_at < 4);
  }
}

// The inputs and outputs of a MapReplicas() call in guarded memory, and the
// expected outputs.
struct Replicas {
  // Draws the tables. If `valid` is false, some counts are 0 or out of range.
  Replicas(const Shape& shape, std::vector<int32_t> values, size_t most,
           uint64_t seed, bool valid, size_t slack = 0)
      : s(shape),
        max_replicas(most),
        ids(std::move(values)),
        table(Table(seed)),
        counts(Counts(seed, valid)),
        topk_ids(s.tokens, s.top_k, s.top_k + slack, slack, ids),
        replicas(s.experts, most, most + slack, slack, table),
        replica_counts(1, s.experts, 0, slack, counts),
        physical_ids(s.tokens, s.top_k, s.top_k + slack, slack),
        tokens_per_expert(1, s.experts, 0, slack) {
    options.first_replica = seed % 5 == 0 ? 0x7FFFFFFF : seed;
    exact =
        reference::MapReplicas(ids, table, counts, most, options.first_replica);
    options.allow_dropped = exact.dropped % 2 != 0;
  }
  ReplicaInputs In() const {
    return {topk_ids.view(), replicas.view(), replica_counts.span()};
  }
  ReplicaOutputs Out() {
    return {physical_ids.view(), tokens_per_expert.span(), &report};
  }
  void Expect(const Status& status) const { Expect(status, physical_ids); }
  void Expect(const Status& status, const Guarded<int32_t>& written) const {
    if (exact.dropped == 0 || options.allow_dropped) {
      ASSERT_OK(status);
    } else {
      const bool has_strangers =
          std::any_of(counts.begin(), counts.end(), [&](int32_t count) {
            return count < 0 || static_cast<size_t>(count) > max_replicas;
          });
      ExpectError(
          status,
          (has_strangers ? "MapReplicas: replica_counts: outside [0, "
                           "max_replicas], and "
                         : "MapReplicas: topk_ids: without a replica, and ") +
              std::string("options.allow_dropped is not set"),
          StatusCode::kFailedPrecondition);
    }
    EXPECT_EQ(written.Values(), exact.physical_ids);
    EXPECT_EQ(tokens_per_expert.Values(), exact.tokens_per_expert);
    written.ExpectIntact("physical_ids");
    tokens_per_expert.ExpectIntact("tokens_per_expert");
    Report expected = kUnwritten;
    expected.max_rows = exact.max_rows;
    expected.dropped = exact.dropped;
    EXPECT_EQ(report, expected);
  }

  std::vector<int32_t> Table(uint64_t seed) const {
    Random random(seed + 1);
    std::vector<int32_t> all;
    for (size_t i = 0; i < s.experts * max_replicas; ++i) {
      all.push_back(static_cast<int32_t>(random.Below(1 << 20)));
    }
    return all;
  }
  std::vector<int32_t> Counts(uint64_t seed, bool valid) const {
    Random random(seed + 2);
    std::vector<int32_t> all;
    for (size_t e = 0; e < s.experts; ++e) {
      const int32_t strangers[] = {0, -1, INT32_MIN, INT32_MAX,
                                   static_cast<int32_t>(max_replicas + 1)};
      all.push_back(!valid && random.Below(8) == 0
                        ? strangers[random.Below(5)]
                        : static_cast<int32_t>(1 + random.Below(max_replicas)));
    }
    return all;
  }

  const Shape s;
  const size_t max_replicas;
  const std::vector<int32_t> ids, table, counts;
  ReplicaOptions options;
  reference::Replicated exact;
  const Guarded<int32_t> topk_ids, replicas, replica_counts, physical_ids,
      tokens_per_expert;
  Report report = kUnwritten;
};

class ReplicaTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(ReplicaTest);
class ReplicaPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(ReplicaPoolTest);

TEST_P(ReplicaTest, AnyShapeLikeTheReference) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(3000 + seed);
    const Shape s = {1 + random.Below(random.Below(8) ? 60 : 500),
                     1 + random.Below(12), 1 + random.Below(300)};
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << s);
    Replicas c(s, MakeIds(s, static_cast<Load>(seed % 4), seed),
               1 + random.Below(9), seed, seed % 3 == 0, seed % 4);
    c.Expect(MapReplicas(c.In(), c.Out(), c.options));
    // The ids are replaced in place.
    ReplicaOutputs in_place = c.Out();
    in_place.physical_ids =
        AnyMatrix(c.topk_ids.data(), s.tokens, s.top_k, s.top_k + seed % 4);
    c.Expect(MapReplicas(c.In(), in_place, c.options), c.topk_ids);
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(ReplicaTest, ReadsEveryTypeOfIds) {
  const Shape s = {70, 6, 40};
  std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 5);
  const std::vector<uint32_t> unsigned_ids(ids.begin(), ids.end());
  std::vector<int64_t> wide(ids.begin(), ids.end());
  for (size_t i = 0; i < ids.size(); i += 7) {
    wide[i] = ids[i] + (int64_t{1} << 32);
    ids[i] = -1;
  }
  Replicas c(s, ids, 3, 1, true);
  ReplicaInputs in = c.In();
  in.topk_ids = {wide.data(), s.tokens, s.top_k};
  c.Expect(MapReplicas(in, c.Out(), c.options));
  Replicas d(s, {unsigned_ids.begin(), unsigned_ids.end()}, 3, 1, true);
  in.topk_ids = {unsigned_ids.data(), s.tokens, s.top_k};
  d.Expect(MapReplicas(in, d.Out(), d.options));
}

TEST_P(ReplicaTest, KnownAnswers) {
  // Expert 0 has three replicas, expert 1 has one, expert 2 has two.
  const std::vector<int32_t> replicas = {0, 4, 5, 1, -9, -9, 2, 3, -9};
  const std::vector<int32_t> replica_counts = {3, 1, 2};
  const std::vector<int32_t> ids = {0, 2, 0, 1, 0, 2, 0, 1, 2, 0};
  std::vector<int32_t> physical(10), tokens(3);
  const ReplicaInputs in = {
      {ids.data(), 5, 2}, {replicas.data(), 3, 3}, replica_counts};
  const ReplicaOutputs out = {{physical.data(), 5, 2}, tokens};
  ASSERT_OK(MapReplicas(in, out));
  EXPECT_EQ(physical, (std::vector<int32_t>{0, 2, 4, 1, 5, 3, 0, 1, 2, 4}));
  EXPECT_EQ(tokens, (std::vector<int32_t>{5, 2, 3}));
  ASSERT_OK(MapReplicas(in, out, {1}));
  EXPECT_EQ(physical, (std::vector<int32_t>{4, 3, 5, 1, 0, 2, 4, 1, 3, 5}));
}

// On each rank, the replicas of an expert get numbers of pairs that differ by
// at most one. Over all ranks, the sums of these numbers differ by at most the
// number of ranks.
TEST_P(ReplicaTest, BalancesReplicas) {
  constexpr size_t kExperts = 16, kReplicas = 4, kRanks = 4;
  const Shape s = {101, 4, kExperts};
  std::vector<int32_t> replicas(kExperts * kReplicas);
  std::iota(replicas.begin(), replicas.end(), 0);
  const std::vector<int32_t> replica_counts(kExperts, kReplicas);
  std::vector<int32_t> physical(s.tokens * s.top_k), tokens(kExperts),
      sums(replicas.size());
  for (size_t rank = 0; rank < kRanks; ++rank) {
    const std::vector<int32_t> ids = MakeIds(s, Load::kZipf, rank);
    ASSERT_OK(MapReplicas(
        {View(ids, s), {replicas.data(), kExperts, kReplicas}, replica_counts},
        {{physical.data(), s.tokens, s.top_k}, tokens}, {rank}));
    std::vector<int32_t> pairs(replicas.size());
    for (const int32_t id : physical) ++pairs[static_cast<size_t>(id)];
    for (auto of = pairs.begin(); of != pairs.end(); of += kReplicas) {
      const auto [least, most] = std::minmax_element(of, of + kReplicas);
      EXPECT_LE(*most - *least, 1) << "rank " << rank;
    }
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += pairs[i];
  }
  for (auto of = sums.begin(); of != sums.end(); of += kReplicas) {
    const auto [least, most] = std::minmax_element(of, of + kReplicas);
    EXPECT_LE(*most - *least, static_cast<int32_t>(kRanks));
  }
}

TEST_P(ReplicaTest, NoTokens) {
  Replicas c({0, 4, 5}, {}, 2, 1, true, 1);
  c.Expect(MapReplicas(c.In(), c.Out(), c.options));
  // The fixture fails unless a kernel of this ISA has run, so the test runs
  // one.
  Replicas d({2, 2, 2}, {0, 1, 1, 0}, 2, 1, true);
  d.Expect(MapReplicas(d.In(), d.Out(), d.options));
}

TEST_P(ReplicaPoolTest, SameBitsOnEveryThread) {
  executor().Rendezvous();
  const Shape s = {30011, 8, 128};
  const std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 6);
  const Guarded<int32_t> scratch(1, ScratchSize(s, executor()));
  for (const bool with_scratch : {true, false}) {
    for (const bool in_place : {true, false}) {
      Replicas c(s, ids, 5, 7, true);
      ReplicaInputs in = c.In();
      if (with_scratch) in.scratch = scratch.span();
      ReplicaOutputs out = c.Out();
      if (in_place) out.physical_ids = c.topk_ids.view();
      c.Expect(MapReplicas(in, out, c.options, executor()),
               in_place ? c.topk_ids : c.physical_ids);
      ASSERT_FALSE(HasFailure());
      scratch.ExpectIntact("scratch");
    }
  }
  EXPECT_EQ(std::max<size_t>(1, executor().DistinctThreads()),
            executor().ExpectedThreads());
}

TEST(ReplicaFailures, OfAnyLoopAreReported) {
  const Shape s = {15007, 4, 60};
  for (size_t fail_at = 0; fail_at <= 2; ++fail_at) {
    BackwardsExecutor executor(fail_at);
    std::vector<int32_t> scratch(ScratchSize(s, executor));
    Replicas c(s, MakeIds(s, Load::kUniform, 1), 3, 0, true);
    ReplicaInputs in = c.In();
    in.scratch = scratch;
    EXPECT_EQ(MapReplicas(in, c.Out(), c.options, executor).code(),
              fail_at < 2 ? StatusCode::kOutOfMemory : StatusCode::kOk);
    EXPECT_EQ(c.report == kUnwritten, fail_at < 2);
  }
}

// The outputs of a MapCounts() call, in guarded memory.
struct Exchange {
  explicit Exchange(size_t n, size_t slack = 0)
      : ranks(n),
        send_counts(1, n, 0, slack),
        send_offsets(1, n + 1, 0, slack),
        recv_counts(1, n, 0, slack),
        recv_offsets(1, n + 1, 0, slack),
        put_offsets(1, n, 0, slack) {}
  CountsOutputs Out() {
    return {recv_counts.span(),  recv_offsets.span(), send_counts.span(),
            send_offsets.span(), put_offsets.span(),  &report};
  }
  void Expect(const reference::Exchange& exact) const {
    EXPECT_EQ(send_counts.Values(), exact.send_counts);
    EXPECT_EQ(send_offsets.Values(), exact.send_offsets);
    EXPECT_EQ(recv_counts.Values(), exact.recv_counts);
    EXPECT_EQ(recv_offsets.Values(), exact.recv_offsets);
    EXPECT_EQ(put_offsets.Values(), exact.put_offsets);
    for (const Guarded<int64_t>* m : {&send_counts, &send_offsets, &recv_counts,
                                      &recv_offsets, &put_offsets}) {
      m->ExpectIntact("an output");
    }
    Report expected = kUnwritten;
    expected.max_rows = exact.max_rows;
    EXPECT_EQ(report, expected);
  }
  const size_t ranks;
  const Guarded<int64_t> send_counts, send_offsets, recv_counts, recv_offsets,
      put_offsets;
  Report report = kUnwritten;
};

TEST(CountsTest, AnyRankLikeTheReference) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(4000 + seed);
    // MapCounts adds up 16 columns at a time.
    const size_t some[] = {1, 2, 15, 16, 17, 32, 33, 1 + random.Below(80)};
    const size_t ranks = some[random.Below(8)], slack = seed % 3;
    std::vector<int64_t> wide;
    for (size_t i = 0; i < ranks * ranks; ++i) {
      wide.push_back(static_cast<int64_t>(random.Below(1000)));
    }
    const std::vector<int32_t> narrow(wide.begin(), wide.end());
    const Guarded<int64_t> counts64(ranks, ranks, ranks + slack, slack, wide);
    const Guarded<int32_t> counts32(ranks, ranks, ranks + slack, slack, narrow);
    CountsOptions options;
    options.rank = random.Below(ranks);
    options.row_elements = seed % 4 == 0 ? 1 : size_t{1} << 40;
    const reference::Exchange exact =
        reference::MapCounts(wide, ranks, options.rank, options.row_elements);
    Exchange c(ranks, slack), d(ranks, slack);
    ASSERT_OK(MapCounts({counts64.view()}, c.Out(), options));
    c.Expect(exact);
    options.capacity = exact.max_rows;
    ASSERT_OK(MapCounts({counts32.view()}, d.Out(), options));
    d.Expect(exact);
    if (exact.max_rows == 0) continue;
    --options.capacity;
    ExpectError(MapCounts({counts32.view()}, d.Out(), options),
                "MapCounts: counts: a rank receives more rows than "
                "options.capacity",
                StatusCode::kFailedPrecondition);
    d.Expect(exact);
    ASSERT_FALSE(HasFailure());
  }
}

TEST(CountsTest, KnownAnswers) {
  const std::vector<int32_t> counts = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<int64_t> sent(3), send_offsets(4), received(3), recv_offsets(4),
      put(3);
  Report report;
  CountsOptions options;
  options.rank = 2;
  options.row_elements = 10;
  options.capacity = 17;
  const Status status = MapCounts(
      {{counts.data(), 3, 3}},
      {received, recv_offsets, sent, send_offsets, put, &report}, options);
  ExpectError(status,
              "MapCounts: counts: a rank receives more rows than "
              "options.capacity",
              StatusCode::kFailedPrecondition);
  EXPECT_STREQ(status.details(), "rank 2 receives 18, capacity is 17");
  EXPECT_EQ(sent, (std::vector<int64_t>{70, 80, 90}));
  EXPECT_EQ(send_offsets, (std::vector<int64_t>{0, 70, 150, 240}));
  EXPECT_EQ(received, (std::vector<int64_t>{30, 60, 90}));
  EXPECT_EQ(recv_offsets, (std::vector<int64_t>{0, 30, 90, 180}));
  EXPECT_EQ(put, (std::vector<int64_t>{50, 70, 90}));
  EXPECT_EQ(report.max_rows, 18u);
}

// If each rank puts its rows at put_offsets, they fill each receive buffer
// without a gap.
TEST(CountsTest, PutsFillEachReceiveBuffer) {
  constexpr size_t kRanks = 5;
  std::vector<int32_t> counts;
  for (size_t i = 0; i < kRanks * kRanks; ++i) {
    counts.push_back(static_cast<int32_t>(Hash(11, i) % 4));
  }
  std::vector<int64_t> begin[kRanks], received[kRanks], offsets[kRanks];
  for (size_t rank = 0; rank < kRanks; ++rank) {
    begin[rank].resize(kRanks);
    received[rank].resize(kRanks);
    offsets[rank].resize(kRanks + 1);
    CountsOutputs out = {received[rank], offsets[rank]};
    out.put_offsets = begin[rank];
    ASSERT_OK(MapCounts({{counts.data(), kRanks, kRanks}}, out, {rank, 3}));
  }
  for (size_t to = 0; to < kRanks; ++to) {
    for (size_t from = 0; from < kRanks; ++from) {
      EXPECT_EQ(begin[from][to], offsets[to][from]);
    }
  }
}

class BucketAlignedTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(BucketAlignedTest);
class BucketAlignedPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(BucketAlignedPoolTest);

// The inputs and outputs of a BucketAligned() call in guarded memory, and the
// expected outputs.
struct Aligned {
  Aligned(const Shape& shape, std::vector<int32_t> values,
          std::vector<int32_t> expert_map, const AlignedOptions& given,
          size_t slack = 0)
      : s(shape),
        ids(std::move(values)),
        map(std::move(expert_map)),
        options(given),
        exact(reference::BucketAligned(
            map.empty() ? ids : reference::MapIds(ids, map), s.top_k, s.experts,
            given.block_size, given.capacity)),
        size(BucketAlignedSize(ids.size(), s.experts, given) + slack),
        topk_ids(s.tokens, s.top_k, s.top_k + slack, slack, ids),
        tokens_per_expert(1, s.experts, 0, slack),
        offsets(1, s.experts + 1, 0, slack),
        pairs(1, size),
        row_index(s.tokens, s.top_k, s.top_k + slack, slack),
        block_experts(1, size / given.block_size + slack),
        row_tokens(1, size),
        active_experts(1, s.experts) {
    options.allow_dropped = exact.dropped % 2 != 0;
  }
  AlignedInputs In() const { return {topk_ids.view(), map}; }
  AlignedBuckets Out() {
    return {tokens_per_expert.span(),
            offsets.span(),
            pairs.span(),
            row_index.view(),
            block_experts.span(),
            row_tokens.span(),
            active_experts.span(),
            &report};
  }
  // Checks that `memory` begins with `wanted`. If `filled`, all later elements
  // have to be `fill`. Otherwise they have to be canaries.
  static void ExpectTail(const Guarded<int32_t>& memory,
                         std::vector<int32_t> wanted, bool filled, int32_t fill,
                         const char* name) {
    memory.ExpectIntact(name);
    int32_t canary;
    std::memcpy(&canary, &kCanary, sizeof(canary));
    wanted.resize(memory.span().size, filled ? fill : canary);
    EXPECT_EQ(memory.Values(), wanted) << name;
  }
  void Expect(const Status& status) const {
    if (exact.dropped == 0 || options.allow_dropped) {
      ASSERT_OK(status);
    } else {
      ExpectError(
          status,
          (HasStrangers(map, s.experts)
               ? "BucketAligned: expert_map: outside [-1, num_experts), and "
               : "BucketAligned: topk_ids: outside [0, num_experts), and ") +
              std::string("options.allow_dropped is not set"),
          StatusCode::kFailedPrecondition);
    }
    EXPECT_EQ(tokens_per_expert.Values(), exact.tokens_per_expert);
    EXPECT_EQ(offsets.Values(), exact.offsets);
    EXPECT_EQ(row_index.Values(), exact.row_index);
    tokens_per_expert.ExpectIntact("tokens_per_expert");
    offsets.ExpectIntact("offsets");
    row_index.ExpectIntact("row_index");
    const bool fill = options.fill_unused;
    ExpectTail(pairs, exact.pairs, fill, static_cast<int32_t>(ids.size()),
               "pairs");
    ExpectTail(block_experts, exact.block_experts, fill, -1, "block_experts");
    ExpectTail(row_tokens, exact.row_tokens, false, 0, "row_tokens");
    ExpectTail(active_experts, exact.active_experts, true, -1,
               "active_experts");
    Report expected = kUnwritten;
    expected.max_rows = exact.max_rows;
    expected.dropped = exact.dropped;
    expected.over_capacity = exact.over_capacity;
    expected.active_experts = exact.active_experts.size();
    EXPECT_EQ(report, expected);
  }

  const Shape s;
  const std::vector<int32_t> ids, map;
  AlignedOptions options;
  const reference::Aligned exact;
  const size_t size;
  const Guarded<int32_t> topk_ids, tokens_per_expert, offsets, pairs, row_index,
      block_experts, row_tokens, active_experts;
  Report report = kUnwritten;
};

// Makes a map in which half of the ids belong to another node, or map to an
// invalid expert.
std::vector<int32_t> MakeMap(size_t ids, size_t experts, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> map;
  for (size_t i = 0; i < ids; ++i) {
    const size_t e = random.Below(2 * experts);
    map.push_back(e < experts  ? static_cast<int32_t>(e)
                  : e % 4 == 0 ? static_cast<int32_t>(e)
                               : -static_cast<int32_t>(1 + e % 3));
  }
  return map;
}

AlignedOptions MakeOptions(Random& random) {
  AlignedOptions options;
  const size_t blocks[] = {1, 2, 3, 16, 17, 64, 1 + random.Below(200)};
  options.block_size = blocks[random.Below(7)];
  if (random.Below(2) != 0) options.capacity = random.Below(40);
  options.fill_unused = random.Below(2) != 0;
  return options;
}

Aligned MakeAligned(uint64_t seed, const Shape& s) {
  Random random(seed);
  const AlignedOptions options = MakeOptions(random);
  const size_t global = 1 + random.Below(2 * s.experts);
  const bool mapped = random.Below(2) != 0;
  std::vector<int32_t> ids =
      MakeIds(s.tokens * s.top_k, mapped ? global : s.experts,
              static_cast<Load>(random.Below(4)), seed);
  return {s, std::move(ids),
          mapped ? MakeMap(global, s.experts, seed) : std::vector<int32_t>(),
          options, random.Below(4)};
}

TEST_P(BucketAlignedTest, AnyShapeLikeTheReference) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(1000 + seed);
    const size_t experts = 1 + random.Below(random.Below(2) ? 20 : 600);
    const Shape s = {1 + random.Below(random.Below(8) ? 80 : 600),
                     1 + random.Below(12), experts};
    Aligned c = MakeAligned(seed, s);
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ": " << s << " block "
                 << c.options.block_size << " capacity " << c.options.capacity);
    c.Expect(BucketAligned(c.In(), c.Out(), c.options));
    ASSERT_FALSE(HasFailure());
  }
}

// Sorts ids of other types. Some invalid ids would be valid if they were cut
// to 32 bits.
TEST_P(BucketAlignedTest, WideAndUnsignedIds) {
  for (const bool mapped : {false, true}) {
    const Shape s = {301, 8, 60};
    std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 5);
    std::vector<int64_t> wide(ids.begin(), ids.end());
    for (size_t i = 0; i < ids.size(); i += 7) {
      wide[i] = ids[i] + (int64_t{1} << 32);
      ids[i] = -1;
    }
    AlignedOptions options;
    options.block_size = 7;
    const std::vector<int32_t> map =
        mapped ? MakeMap(60, 60, 3) : std::vector<int32_t>();
    Aligned c(s, ids, map, options);
    AlignedInputs in = c.In();
    in.topk_ids = {wide.data(), s.tokens, s.top_k};
    c.Expect(BucketAligned(in, c.Out(), c.options));
    const std::vector<uint32_t> unsigned_ids(ids.begin(), ids.end());
    Aligned d(s, ids, map, options);
    in.topk_ids = {unsigned_ids.data(), s.tokens, s.top_k};
    d.Expect(BucketAligned(in, d.Out(), d.options));
  }
}

// Leaves out each optional output in turn.
TEST_P(BucketAlignedTest, LeavesOutWhatIsNotThere) {
  for (int left_out = 0; left_out < 5; ++left_out) {
    Aligned c = MakeAligned(77, {40, 6, 30});
    AlignedBuckets out = c.Out();
    if (left_out == 0) out.row_index = {};
    if (left_out == 1) out.block_experts = {};
    if (left_out == 2) out.row_tokens = {};
    if (left_out == 3) out.active_experts = {};
    if (left_out == 4) out.report = nullptr;
    EXPECT_OK(BucketAligned(
        c.In(), out, {c.options.block_size, c.options.capacity, false, true}));
    EXPECT_EQ(c.offsets.Values(), c.exact.offsets);
    const Guarded<int32_t>* const memory[] = {&c.row_index, &c.block_experts,
                                              &c.row_tokens, &c.active_experts};
    for (int i = 0; i < 4; ++i) {
      if (i == left_out) memory[i]->ExpectUntouched("left out");
      if (i != left_out) {
        EXPECT_NE(static_cast<uint32_t>(memory[i]->At(0, 0)), kCanary);
      }
    }
    EXPECT_EQ(c.report == kUnwritten, left_out == 4);
  }
}

// Runs the example of vLLM's moe_align_block_size. vLLM's example numbers
// experts from 1, and this test numbers them from 0.
TEST_P(BucketAlignedTest, KnownAnswers) {
  const std::vector<int32_t> ids = {1, 2, 3, 0, 1, 3, 0, 2, 3, 0, 1, 2};
  std::vector<int32_t> counts(4), offsets(5), pairs(24), experts(6);
  AlignedOptions options;
  options.block_size = 4;
  options.fill_unused = true;
  ASSERT_EQ(BucketAlignedSize(12, 4, options), 24u);
  ASSERT_OK(BucketAligned({{ids.data(), 4, 3}},
                          {counts, offsets, pairs, {}, experts}, options));
  const std::vector<int32_t> wanted = {3,  6,  9,  12, 0,  4,  10, 12,
                                       1,  7,  11, 12, 2,  5,  8,  12,
                                       12, 12, 12, 12, 12, 12, 12, 12};
  EXPECT_EQ(pairs, wanted);
  EXPECT_EQ(experts, (std::vector<int32_t>{0, 1, 2, 3, -1, -1}));
  EXPECT_EQ(offsets[4], 16);
}

// The capacity is two pairs per expert. The sort keeps the first pairs of an
// expert in the order of tokens.
TEST_P(BucketAlignedTest, CapacityKeepsTheFirst) {
  const std::vector<int32_t> ids = {1, 0, 1, 1, 0, 1};
  std::vector<int32_t> counts(2), offsets(3), pairs(4), index(6);
  AlignedOptions options;
  options.capacity = 2;
  ASSERT_EQ(BucketAlignedSize(6, 2, options), 4u);
  Report report;
  ASSERT_OK(BucketAligned(
      {ids},
      {counts, offsets, pairs, {index.data(), 1, 6}, {}, {}, {}, &report},
      options));
  EXPECT_EQ(pairs, (std::vector<int32_t>{1, 4, 0, 2}));
  EXPECT_EQ(index, (std::vector<int32_t>{2, 0, 3, -1, 1, -1}));
  EXPECT_EQ(report.over_capacity, 2u);
  EXPECT_EQ(report.dropped, 0u);
}

TEST_P(BucketAlignedTest, NoTokens) {
  Aligned c({0, 4, 5}, {}, {}, {3, 7, true, false}, 3);
  c.Expect(BucketAligned(c.In(), c.Out(), c.options));
  // The fixture fails unless a kernel of this ISA has run, so the test runs
  // one.
  Aligned d = MakeAligned(1, {2, 2, 2});
  d.Expect(BucketAligned(d.In(), d.Out(), d.options));
}

// Sorts blocks of tokens on several threads, with and without scratch.
TEST_P(BucketAlignedPoolTest, SameBitsOnEveryThread) {
  executor().Rendezvous();
  for (const bool mapped : {false, true}) {
    const Shape s = {30011, 8, 128};
    const std::vector<int32_t> ids = MakeIds(s, Load::kStrangers, 6);
    Guarded<int32_t> scratch(1, ScratchSize(s, executor()));
    AlignedOptions options;
    options.block_size = 48;
    if (mapped) options.capacity = 1000;
    const std::vector<int32_t> map =
        mapped ? MakeMap(128, 128, 3) : std::vector<int32_t>();
    for (const bool with_scratch : {true, false}) {
      Aligned c(s, ids, map, options);
      AlignedInputs in = c.In();
      if (with_scratch) in.scratch = scratch.span();
      c.Expect(BucketAligned(in, c.Out(), c.options, executor()));
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_EQ(std::max<size_t>(1, executor().DistinctThreads()),
              executor().ExpectedThreads());
    scratch.ExpectIntact("scratch");
  }
}

TEST(BucketAlignedFailures, OfAnyLoopAreReported) {
  const Shape s = {15007, 4, 60};
  const std::vector<int32_t> ids = MakeIds(s, Load::kUniform, 22);
  AlignedOptions options;
  options.block_size = 16;
  // Each of the four loops fails in turn: the loops that count, place, pad
  // and write row_tokens.
  for (size_t fail_at = 0; fail_at <= 4; ++fail_at) {
    BackwardsExecutor executor(fail_at);
    std::vector<int32_t> scratch(ScratchSize(s, executor));
    Aligned c(s, ids, {}, options);
    AlignedInputs in = c.In();
    in.scratch = scratch;
    EXPECT_EQ(BucketAligned(in, c.Out(), options, executor).code(),
              fail_at < 4 ? StatusCode::kOutOfMemory : StatusCode::kOk);
    EXPECT_EQ(c.report == kUnwritten, fail_at < 4);
  }
}

TEST(BucketAlignedSizes, AreTheWorstCase) {
  const auto size = [](size_t pairs, size_t experts, size_t block,
                       size_t capacity = AlignedOptions::kNoCapacity) {
    return BucketAlignedSize(pairs, experts, {block, capacity});
  };
  EXPECT_EQ(size(12, 4, 1), 12u);
  EXPECT_EQ(size(3, 8, 4), 12u);     // each pair needs a block
  EXPECT_EQ(size(100, 4, 7), 119u);  // the largest multiple of 7 up to 124
  EXPECT_EQ(size(100, 4, 1, 5), 20u);
  EXPECT_EQ(size(100, 4, 8, 0), 0u);
  EXPECT_EQ(size(100, 4, 0), SIZE_MAX);
  EXPECT_EQ(size(SIZE_MAX, 4, 2), SIZE_MAX);
  EXPECT_EQ(size(SIZE_MAX / 2, SIZE_MAX / 2, SIZE_MAX), SIZE_MAX);
}

}  // namespace
}  // namespace switchyard::testing_support
