// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/work_list.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "testing/guarded_buffer.h"
#include "testing/inputs.h"
#include "testing/layer_schedule.h"

namespace switchyard {
namespace internal {

static bool operator==(const WorkTile& a, const WorkTile& b) {
  return a.first_row == b.first_row && a.rows == b.rows && a.expert == b.expert;
}
static std::ostream& operator<<(std::ostream& os, const WorkTile& t) {
  return os << "{" << t.first_row << ", " << t.rows << ", " << t.expert << "}";
}

}  // namespace internal

namespace testing_support {
namespace {

using internal::WorkListOptions;
using internal::WorkListSize;
using internal::WorkTile;

uint64_t Cost(const WorkListOptions& options, int32_t rows) {
  return options.tile_cost +
         options.row_cost *
             std::max(static_cast<uint64_t>(rows), uint64_t{options.min_rows});
}

// Returns the number of rows of each expert, for tokens with `top_k`
// different experts each. All experts are equally likely or, if `zipf`,
// expert n has a share proportional to 1/n. The function uses integers, so
// the result is the same on every machine.
std::vector<int32_t> Counts(size_t tokens, size_t top_k, size_t experts,
                            bool zipf) {
  std::vector<int32_t> counts(experts);
  for (const int32_t id : SkewedIds(tokens, top_k, experts,
                                    zipf ? Skew::kZipf : Skew::kUniform, 9)) {
    ++counts[static_cast<size_t>(id)];
  }
  return counts;
}

std::vector<int32_t> OffsetsOf(const std::vector<int32_t>& counts) {
  std::vector<int32_t> offsets = {0};
  for (const int32_t count : counts) offsets.push_back(offsets.back() + count);
  return offsets;
}

std::vector<WorkTile> Make(const std::vector<int32_t>& counts,
                           const std::vector<int32_t>& offsets,
                           const WorkListOptions& options) {
  size_t rows = 0;
  for (const int32_t count : counts) rows += static_cast<size_t>(count);
  const Guarded<WorkTile> tiles(1, WorkListSize(rows, counts.size(), options));
  const size_t num_tiles =
      internal::MakeWorkList({counts, offsets}, options, tiles.data());
  tiles.ExpectIntact("tiles");
  std::vector<WorkTile> list = tiles.Values();
  EXPECT_LE(num_tiles, list.size());
  list.resize(std::min(num_tiles, list.size()));
  return list;
}
std::vector<WorkTile> Make(const std::vector<int32_t>& counts,
                           const WorkListOptions& options) {
  return Make(counts, OffsetsOf(counts), options);
}

// Expects that each row is in the list once, that cuts are at multiples of
// tile_rows, and that the largest tiles come first.
void ExpectWhole(const std::vector<int32_t>& counts,
                 const WorkListOptions& options,
                 const std::vector<WorkTile>& list) {
  std::vector<WorkTile> sorted = list;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.first_row < b.first_row;
  });
  size_t i = 0;
  int64_t first = 0;
  for (size_t e = 0; e < counts.size(); ++e) {
    for (int32_t row = 0; row < counts[e]; ++i) {
      ASSERT_LT(i, sorted.size());
      ASSERT_EQ(sorted[i].first_row, first + row);
      ASSERT_EQ(sorted[i].expert, static_cast<int32_t>(e));
      ASSERT_GT(sorted[i].rows, 0);
      ASSERT_EQ(static_cast<size_t>(row) % options.tile_rows, 0u);
      row += sorted[i].rows;
      ASSERT_LE(row, counts[e]);
    }
    first += counts[e];
  }
  EXPECT_EQ(i, sorted.size());
  for (size_t t = 1; t < list.size(); ++t) {
    const auto key = [&](const WorkTile& tile) {
      return std::make_tuple(-static_cast<int64_t>(Cost(options, tile.rows)),
                             tile.expert, tile.first_row);
    };
    ASSERT_LT(key(list[t - 1]), key(list[t]));
  }
}

TEST(WorkList, HasEachRowOnce) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<int32_t> counts(random.Below(40));
    for (int32_t& count : counts) {
      const size_t most[] = {1, 5, 100, 3000};
      count = static_cast<int32_t>(random.Below(most[random.Below(4)]));
    }
    const size_t workers[] = {1, 2, 7, 64, 1000, SIZE_MAX};
    const WorkListOptions options = {workers[random.Below(6)],
                                     1 + random.Below(40), random.Below(70),
                                     random.Below(200), random.Below(4)};
    ExpectWhole(counts, options, Make(counts, options));
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(WorkList, KnownAnswers) {
  WorkListOptions options;
  options.workers = 2;
  options.tile_rows = 4;
  // A worker's share of 26 rows is 13. Half of it is 6, which rounds down to
  // 4, a multiple of tile_rows. The rest of an expert is a separate tile.
  const std::vector<int32_t> counts = {3, 0, 22, 1};
  EXPECT_EQ(Make(counts, options), (std::vector<WorkTile>{{3, 4, 2},
                                                          {7, 4, 2},
                                                          {11, 4, 2},
                                                          {15, 4, 2},
                                                          {19, 4, 2},
                                                          {0, 3, 0},
                                                          {23, 2, 2},
                                                          {25, 1, 3}}));
  // Tiles do not get shorter than min_rows, because fewer rows do not cost
  // less.
  options.min_rows = 5;
  EXPECT_EQ(Make(counts, options),
            (std::vector<WorkTile>{
                {3, 8, 2}, {11, 8, 2}, {19, 6, 2}, {0, 3, 0}, {25, 1, 3}}));
  // An expert is cut less, or not at all, if each tile has a cost of its own.
  options.min_rows = 0;
  options.tile_cost = 22;
  EXPECT_EQ(Make(counts, options),
            (std::vector<WorkTile>{{3, 22, 2}, {0, 3, 0}, {25, 1, 3}}));
  options.tile_cost = 24;
  options.row_cost = 2;
  EXPECT_EQ(Make(counts, options),
            (std::vector<WorkTile>{{3, 22, 2}, {0, 3, 0}, {25, 1, 3}}));
  EXPECT_EQ(
      Make({3, 0, 60, 1}, options),
      (std::vector<WorkTile>{{3, 48, 2}, {51, 12, 2}, {0, 3, 0}, {63, 1, 3}}));
  options.row_cost = 0;
  EXPECT_EQ(Make(counts, options),
            (std::vector<WorkTile>{{0, 3, 0}, {3, 22, 2}, {25, 1, 3}}));
  // With one worker, each cut is at half of the rows that are left.
  EXPECT_EQ(Make({64}, {1, 4}),
            (std::vector<WorkTile>{
                {0, 32, 0}, {32, 16, 0}, {48, 8, 0}, {56, 4, 0}, {60, 4, 0}}));
  EXPECT_EQ(Make({}, {}), std::vector<WorkTile>());
  EXPECT_EQ(Make({0, 0}, {}), std::vector<WorkTile>());
}

TEST(WorkList, FirstRowsAreTheOffsets) {
  EXPECT_EQ(Make({3, 0, 5}, {0, 8, 8, 16}, {}),
            (std::vector<WorkTile>{{8, 5, 2}, {0, 3, 0}}));
}

TEST(WorkList, LargeNumbers) {
  EXPECT_EQ(WorkListSize(SIZE_MAX, 2, {1, 1}), SIZE_MAX);
  EXPECT_EQ(WorkListSize(10, 20, {1, 4}), 12u);
  EXPECT_EQ(WorkListSize(100, 8, {1, 16}), 14u);
  // INT64_MAX / 45 is the largest row_cost for 45 rows. The costs in `beyond`
  // are too large.
  const std::vector<int32_t> counts = {5, 0, 40};
  WorkListOptions options;
  options.row_cost = INT64_MAX / 45;
  ExpectWhole(counts, options, Make(counts, options));
  for (const WorkListOptions& beyond :
       {WorkListOptions{1, 16, 0, 0, SIZE_MAX / 40},
        WorkListOptions{1, 16, 0, 0, INT64_MAX / 40},
        WorkListOptions{1, 16, 0, SIZE_MAX, 1},
        WorkListOptions{1, 16, 0, SIZE_MAX / 4, 1},
        WorkListOptions{1, 16, SIZE_MAX / 3, 0, 1}}) {
    EXPECT_EQ(
        internal::MakeWorkList({counts, OffsetsOf(counts)}, beyond, nullptr),
        SIZE_MAX);
  }
}

// Returns the time at which the last worker is ready, if each worker takes
// the next tile when it is ready.
uint64_t LastFinish(const std::vector<WorkTile>& list,
                    const WorkListOptions& options) {
  Workers workers(options.workers, 0);
  for (const WorkTile& tile : list) {
    workers.Work(static_cast<double>(Cost(options, tile.rows)));
  }
  return static_cast<uint64_t>(workers.last());
}

// The finish times of whole experts and of the list, divided by the mean time
// of a worker.
struct Finish {
  double whole, list;
};
Finish Simulate(const std::vector<int32_t>& counts, WorkListOptions options) {
  uint64_t sum = 0;
  for (const int32_t count : counts) {
    if (count != 0) sum += Cost(options, count);
  }
  const double mean =
      static_cast<double>(sum) / static_cast<double>(options.workers);
  const uint64_t list = LastFinish(Make(counts, options), options);
  options.tile_rows = INT32_MAX;
  const uint64_t whole = LastFinish(Make(counts, options), options);
  return {static_cast<double>(whole) / mean, static_cast<double>(list) / mean};
}

// Tests the bound that the header promises.
TEST(WorkList, AsGoodAsItSays) {
  for (const size_t experts : {8u, 60u, 256u}) {
    for (const size_t tokens : {200u, 1000u, 5000u}) {
      for (const bool zipf : {false, true}) {
        const std::vector<int32_t> counts = Counts(tokens, 4, experts, zipf);
        for (const size_t workers : {2u, 3u, 8u, 48u, 64u, 100u, 256u}) {
          for (const size_t tile_rows : {1u, 6u, 16u, 32u}) {
            SCOPED_TRACE(testing::Message()
                         << experts << " experts, " << tokens << " tokens, "
                         << workers << " workers, tiles of " << tile_rows
                         << " rows, zipf " << zipf);
            WorkListOptions options;
            options.workers = workers;
            options.tile_rows = tile_rows;
            const double mean =
                static_cast<double>(4 * tokens) / static_cast<double>(workers);
            EXPECT_LT(Simulate(counts, options).list * mean,
                      mean + static_cast<double>(tile_rows));
            // If cuts cost something, the list has a cut only if it helps.
            options.tile_cost = 3 * tile_rows;
            const Finish found = Simulate(counts, options);
            EXPECT_LE(found.list, found.whole);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
