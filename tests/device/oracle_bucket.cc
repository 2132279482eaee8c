// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The built-in bucket sort and the seed's, on the same ids: counts and
// arguments exactly, the pairs of an expert as a set.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "testing/inputs.h"
#include "testing/reference.h"
#include "tests/bucket_case.h"
#include "tests/device/oracle_case.h"
#include "tests/device/seed_bucket.h"
#include "tests/device/seed_texts.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

struct BucketCase {
  std::vector<int32_t> selected;
  size_t experts, row_stride;
  int32_t m_gate_up, m_down;
};

enum Index : size_t { kSelected, kTpe, kIds, kGateUpArgs, kDownArgs, kParams };

BucketCase RandomCase(uint64_t seed) {
  Random random(seed);
  BucketCase c;
  c.experts = 1 + random.Below(random.Below(4) == 0 ? 400 : 20);
  const size_t pairs = 1 + random.Below(random.Below(4) == 0 ? 900 : 40);
  constexpr Load kLoads[] = {Load::kUniform, Load::kZipf, Load::kOneExpert,
                             Load::kStrangers};
  c.selected = MakeIds(pairs, c.experts, kLoads[random.Below(4)], seed);
  const size_t busiest =
      static_cast<size_t>(reference::Bucket(c.selected, c.experts).max_rows);
  // Always enough, or just enough.
  c.row_stride = random.Below(2) == 0 ? pairs : std::max<size_t>(1, busiest);
  c.m_gate_up = static_cast<int32_t>(1 + random.Below(3000));
  c.m_down = static_cast<int32_t>(1 + random.Below(3000));
  return c;
}

std::vector<int32_t> Args(const reference::Buckets& right, size_t experts,
                          int32_t features) {
  return {std::max(1, static_cast<int32_t>((right.max_rows + 31) / 32)),
          (features + 63) / 64, static_cast<int32_t>(experts)};
}

std::string Wrong(const BucketCase& c, const Ran& ran) {
  if (!ran.error.empty()) return ran.error;
  const reference::Buckets right = reference::Bucket(c.selected, c.experts);
  if (ran.Ints(kTpe) != right.tokens_per_expert) return "tpe is wrong";
  if (ran.Ints(kGateUpArgs) != Args(right, c.experts, c.m_gate_up)) {
    return "gate_up_args are wrong";
  }
  if (ran.Ints(kDownArgs) != Args(right, c.experts, c.m_down)) {
    return "down_args are wrong";
  }
  const std::vector<int32_t> ids = ran.Ints(kIds);
  const Words32& before = ran.before.at(kIds);
  for (size_t e = 0; e < c.experts; ++e) {
    const size_t count = static_cast<size_t>(right.tokens_per_expert[e]);
    const int32_t* const row = ids.data() + e * c.row_stride;
    std::vector<int32_t> pairs(row, row + count);
    std::sort(pairs.begin(), pairs.end());
    if (!std::equal(pairs.begin(), pairs.end(),
                    right.pairs.begin() + right.offsets[e])) {
      return Text("the pairs of expert ", e, " are wrong");
    }
    for (size_t i = count; i < c.row_stride; ++i) {
      if (static_cast<uint32_t>(row[i]) != before[e * c.row_stride + i]) {
        return Text("ids[", e, ", ", i, "] was written");
      }
    }
  }
  return "";
}

// Both are right, so their sets are equal, and so is all else.
std::string Differ(const Ran& a, const Ran& b) {
  for (const size_t index : {kTpe, kGateUpArgs, kDownArgs}) {
    if (a.after.at(index) != b.after.at(index)) {
      return Text("buffer ", index, " differs");
    }
  }
  return "";
}

OracleWork MakeWork(const BucketCase& c) {
  OracleWork w;
  w.shape = Text(c.selected.size(), " pairs, ", c.experts, " experts, stride ",
                 c.row_stride);
  w.wrong = [c](const Ran& ran) { return Wrong(c, ran); };
  w.differ = Differ;
  w.in_any_order = true;
  w.threads = seeds::ComputeIdsTpe::kThreads;
  w.grid = Size(1, 1, 1);
  w.SetSeed("moe_compute_ids_tpe_f32", seeds::ComputeIdsTpe{}, kParams,
            MoeComputeIdsTpeParams{static_cast<int32_t>(c.experts),
                                   static_cast<int32_t>(c.row_stride),
                                   static_cast<int32_t>(c.selected.size()),
                                   c.m_gate_up, c.m_down});
  w.In(kSelected, c.selected);
  w.Out(kTpe, c.experts);
  w.Out(kIds, c.experts * c.row_stride);
  w.Out(kGateUpArgs, 3);
  w.Out(kDownArgs, 3);
  return w;
}

const bool kAdded = AddOracles(
    std::vector<int>{0},
    [](int, uint64_t seed) { return MakeWork(RandomCase(seed)); },
    [](int) {
      BucketCase c = {{}, 11, 0, 100, 700};
      c.selected = MakeIds(290, c.experts, Load::kStrangers, 290);
      c.row_stride = c.selected.size();
      return MakeWork(c);
    });

using DeviceOracleBucket = OracleTest;
SWITCHYARD_FOR_EVERY_ISA(DeviceOracleBucket);

// From the seed projects' public tests.
TEST_P(DeviceOracleBucket, KnownAnswers) {
  BucketCase c = {{}, 8, 15, 768, 2048};
  for (int32_t b = 0; b < 5; ++b) {
    for (int32_t s = 0; s < 3; ++s) {
      c.selected.push_back((3 * b + 2 * s + b) % 8);
    }
  }
  device_.ExpectAlike(MakeWork(c));
  const Ran seed = device_.Run(MakeWork(c), Who::kSeed);
  EXPECT_EQ(seed.Ints(kTpe), (std::vector<int32_t>{5, 0, 3, 0, 5, 0, 2, 0}));
  EXPECT_EQ(seed.Ints(kGateUpArgs), (std::vector<int32_t>{1, 12, 8}));
  EXPECT_EQ(seed.Ints(kDownArgs), (std::vector<int32_t>{1, 32, 8}));
  const std::vector<std::vector<int32_t>> buckets = {
      {0, 5, 6, 11, 12}, {}, {1, 7, 13}, {}, {2, 3, 8, 9, 14}, {}, {4, 10}, {}};
  const std::vector<int32_t> ids = seed.Ints(kIds);
  for (size_t e = 0; e < 8; ++e) {
    const int32_t* const row = ids.data() + e * c.row_stride;
    std::vector<int32_t> bucket(row, row + buckets[e].size());
    std::sort(bucket.begin(), bucket.end());
    EXPECT_EQ(bucket, buckets[e]) << e;
  }

  const BucketCase few = {{1, 3, 1, 0}, 4, 4, 768, 2048};
  device_.ExpectAlike(MakeWork(few));
  const Ran ran = device_.Run(MakeWork(few), Who::kSeed);
  EXPECT_EQ(ran.Ints(kTpe), (std::vector<int32_t>{1, 2, 0, 1}));
  EXPECT_EQ(ran.Ints(kIds)[0], 3);
  EXPECT_EQ(ran.Ints(kIds)[4] + ran.Ints(kIds)[5], 0 + 2);
  EXPECT_EQ(ran.Ints(kIds)[12], 1);
}

// A stride that is not enough: an error here; there the last expert's pairs
// leave the table.
TEST_P(DeviceOracleBucket, TooSmallAStride) {
  const BucketCase c = {{0, 1, 1, 1}, 2, 2, 64, 64};
  EXPECT_EQ(device_.Wrong(MakeWork(c), Who::kBuiltIn),
            "moe_compute_ids_tpe_f32: params: row_stride is 2, and an expert "
            "has 3 pairs");
  EXPECT_EQ(device_.Wrong(MakeWork(c), Who::kSeed),
            "buffer 2 was written behind its end");
  EXPECT_EQ(OracleDevice(true).Wrong(MakeWork(c), Who::kSeed),
            "moe_compute_ids_tpe_f32: threadgroup (0, 0, 0), thread 3: writes "
            "buffer 2[4], which has 4 elements");
}

// The same in the seed's own text, on the line that writes pairs.
TEST(DeviceOracleBucketTexts, TooSmallAStride) {
  SWITCHYARD_NEEDS_SEEDS();
  const OracleWork work = MakeWork({{0, 1, 1, 1}, 2, 2, 64, 64});
  const Ran ran = SeedTexts::NewOracleDevice(true).Run(work, Who::kText);
  ASSERT_FALSE(ran.findings.empty());
  const Finding& finding = ran.findings[0];
  EXPECT_EQ(finding.kind, FindingKind::kBounds) << finding.text;
  EXPECT_EQ(finding.thread, 3u);
  const std::string line =
      SeedTexts::Of(true).Line(work.seed.name, finding.where.line);
  EXPECT_EQ(line.find("ids["), line.find_first_not_of(' ')) << line;
}

}  // namespace
}  // namespace switchyard::testing_support
