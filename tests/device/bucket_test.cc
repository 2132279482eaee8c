// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/activate.h"
#include "testing/inputs.h"
#include "tests/bucket_case.h"
#include "tests/device/built_in_test.h"

namespace switchyard::testing_support {
namespace {

// The kernel's arguments.
enum : size_t { kSelected, kTpe, kIds, kGateUpArgs, kDownArgs };

constexpr int32_t kNothing = static_cast<int32_t>(kCanary);  // is written

// All that the kernel writes.
struct Tables {
  std::vector<int32_t> tpe, ids;
  std::vector<uint32_t> gate_up_args, down_args;
};

Job BucketJob(const std::vector<int32_t>& selected, size_t experts,
              size_t row_stride, const Tables& tables, int32_t m_gate_up = 768,
              int32_t m_down = 2049) {
  return {"moe_compute_ids_tpe_f32",
          Words<MoeComputeIdsTpeParams>(
              {{static_cast<int32_t>(experts), static_cast<int32_t>(row_stride),
                static_cast<int32_t>(selected.size()), m_gate_up, m_down}}),
          {In(selected), Out(tables.tpe), Out(tables.ids),
           Out(tables.gate_up_args), Out(tables.down_args)}};
}

// The plain API's results for `selected`, over tables that hold canaries.
Job BucketJob(const std::vector<int32_t>& selected, size_t experts,
              size_t row_stride, size_t m_gate_up = 768, size_t m_down = 2049) {
  Tables t = {std::vector<int32_t>(experts, kNothing),
              std::vector<int32_t>(experts * row_stride, kNothing),
              std::vector<uint32_t>(3), std::vector<uint32_t>(3)};
  Report report;
  Status status = BucketStrided({{selected.data(), selected.size(), 1}},
                                {t.tpe, t.ids, row_stride, false, &report},
                                {BucketOrder::kAscending, true});
  EXPECT_TRUE(status.ok()) << status.message();
  status =
      MakeDispatchArgs({report.max_rows, experts, m_gate_up}, {t.gate_up_args});
  EXPECT_TRUE(status.ok()) << status.message();
  status = MakeDispatchArgs({report.max_rows, experts, m_down}, {t.down_args});
  EXPECT_TRUE(status.ok()) << status.message();
  return BucketJob(selected, experts, row_stride, t,
                   static_cast<int32_t>(m_gate_up),
                   static_cast<int32_t>(m_down));
}

size_t BusiestCount(const std::vector<int32_t>& selected, size_t experts) {
  return reference::Bucket(selected, experts).max_rows;
}

using DeviceBucketTest = BuiltInTest;
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(DeviceBucketTest);

TEST_P(DeviceBucketTest, EqualsThePlainApi) {
  for (const Shape& s : {Shape{1, 1, 1}, Shape{5, 3, 8}, Shape{7, 4, 60},
                         Shape{31, 33, 60}, Shape{1000, 8, 129}}) {
    for (const Load load :
         {Load::kUniform, Load::kZipf, Load::kOneExpert, Load::kStrangers}) {
      const size_t pairs = s.tokens * s.top_k;
      const std::vector<int32_t> ids = MakeIds(pairs, s.experts, load, pairs);
      // Always enough, just enough, and in between.
      const size_t tight = std::max<size_t>(1, BusiestCount(ids, s.experts));
      for (const size_t stride : {pairs, tight, tight + 1}) {
        SCOPED_TRACE(testing::Message() << s << ", stride " << stride);
        ExpectPlain(BucketJob(ids, s.experts, stride));
      }
    }
  }
}

TEST_P(DeviceBucketTest, NoPairsOrNoGrid) {
  // total_pairs is always enough of a row_stride: no table at all.
  const Tables none = {std::vector<int32_t>(8), {}, {1, 12, 8}, {1, 33, 8}};
  ExpectPlain(BucketJob({}, 8, 0, none));
  const Job three = BucketJob({1, 2, 3}, 4, 3);
  for (const How& how : kEveryHow) {
    for (const Size& grid :
         {Size(0, 1, 1), Size(256, 0, 1), Size(256, 1, 0), Size()}) {
      Expect(three, how, grid, {0, 0});
    }
  }
  ExpectPlain(BucketJob({}, 8, 5));
  ExpectPlain(BucketJob({-1, 8, 1 << 24}, 8, 3));  // none that stays
}

// A GEMM consumer's grid is read from the args after they have been written:
// every (pair, row tile) is visited by exactly one threadgroup.
TEST_P(DeviceBucketTest, ArgsGiveTheGridOfALaterDispatch) {
  const size_t experts = 6, pairs = 701, stride = pairs;
  const std::vector<int32_t> ids =
      MakeIds(pairs, experts, Load::kStrangers, 31);
  const Job job = BucketJob(ids, experts, stride);
  const Memory tables(device(), job);
  KernelFunction gemm;
  gemm.name = "gemm";
  gemm.threadgroup = [&](const ThreadgroupContext& context) {
    const Size& position = context.threadgroup_position_in_grid;
    const Span<const int32_t> tpe = context.buffer<const int32_t>(0);
    const Span<const int32_t> table = context.buffer<const int32_t>(1);
    const Span<int32_t> visits = context.buffer<int32_t>(2);
    const size_t count = static_cast<size_t>(tpe.data[position.depth]);
    for (size_t s = 32 * position.width;
         s < std::min(count, 32 * (position.width + 1)); ++s) {
      const int32_t pair = table.data[position.depth * stride + s];
      visits.data[static_cast<size_t>(pair) *
                      context.threadgroups_per_grid.height +
                  position.height] += 1;
    }
  };
  const auto consumer = device().newComputePipelineState(gemm);
  const size_t tiles[2] = {12, 33};
  const DeviceArray<int32_t> up(device(), pairs * tiles[0]);
  const DeviceArray<int32_t> down(device(), pairs * tiles[1]);
  up.memory().Fill(std::vector<int32_t>(pairs * tiles[0]));
  down.memory().Fill(std::vector<int32_t>(pairs * tiles[1]));

  const auto commands = Encoded(queue(), [&](Encoder& e) {
    Encode(e, job, tables, kEveryHow[0], job.WholeGrid());
    e.setComputePipelineState(consumer);
    Bind(e, tables.At(kTpe, 0));
    Bind(e, tables.At(kIds, 1));
    for (const bool is_down : {false, true}) {
      const BoundBuffer args = tables.At(is_down ? kDownArgs : kGateUpArgs, 0);
      Bind(e, (is_down ? down : up).At(2));
      e.dispatchThreadgroups(args.buffer, args.offset, Size(128, 1, 1));
    }
  });
  ASSERT_EQ(Finish(*commands), "");
  tables.Expect(job, {1, SIZE_MAX});
  for (const bool is_down : {false, true}) {
    const std::vector<int32_t> visits = (is_down ? down : up).Values();
    const size_t height = tiles[is_down];
    for (size_t i = 0; i < visits.size(); ++i) {
      const int32_t id = ids[i / height];
      const bool kept = id >= 0 && id < static_cast<int32_t>(experts);
      ASSERT_EQ(visits[i], kept ? 1 : 0) << i;
    }
  }
  up.memory().ExpectIntact("up");
  down.memory().ExpectIntact("down");
}

// The same args before a built-in kernel: one expert, 70 pairs and 300 features
// make 3 x 5 x 1 tiles, of a 5 x 900 product 768 columns.
TEST_P(DeviceBucketTest, ArgsGiveTheGridOfABuiltInKernel) {
  const size_t pairs = 70, rows = 5, cols = 900;
  const Job bucket = BucketJob(std::vector<int32_t>(pairs), 1, pairs, 300, 64);
  const Memory tables(device(), bucket);
  Random random(32);
  const std::vector<float> gate = random.Uniforms(rows * cols, -9.0f, 9.0f);
  const std::vector<float> up = random.Uniforms(rows * cols, -9.0f, 9.0f);
  std::vector<float> whole(rows * cols);
  ASSERT_TRUE(Activate({{gate.data(), rows, cols}, {up.data(), rows, cols}},
                       {{whole.data(), rows, cols}})
                  .ok());
  const Job silu = {"silu_mul_stacked_f32",
                    Words<SiluMulStackedParams>({{cols, rows}}),
                    {In(gate), In(up), Out(whole)},
                    rows,
                    cols};
  const Memory memory(device(), silu);
  const BoundBuffer args = tables.At(kGateUpArgs, 0);

  const auto commands = Encoded(queue(), [&](Encoder& e) {
    Encode(e, bucket, tables, kEveryHow[1], bucket.WholeGrid());
    // A grid of nothing, for all that it binds.
    Encode(e, silu, memory, kEveryHow[0], Size(0, 1, 1));
    e.dispatchThreadgroups(args.buffer, args.offset, Size(256, 1, 1));
  });
  ASSERT_EQ(Finish(*commands), "");
  memory.Expect(silu, {rows, 3 * 256});
}

TEST_P(DeviceBucketTest, RowStrideTooSmallChangesNothing) {
  for (const Shape& s :
       {Shape{1, 2, 1}, Shape{31, 33, 60}, Shape{60013, 2, 128}}) {
    const size_t pairs = s.tokens * s.top_k;
    const std::vector<int32_t> ids =
        MakeIds(pairs, s.experts, Load::kZipf, pairs);
    const size_t busiest = BusiestCount(ids, s.experts);
    for (const size_t stride : {busiest - 1, busiest / 2}) {
      const Tables tables = {std::vector<int32_t>(s.experts),
                             std::vector<int32_t>(s.experts * stride),
                             std::vector<uint32_t>(3),
                             std::vector<uint32_t>(3)};
      Job job = BucketJob(ids, s.experts, stride, tables);
      job.error = "moe_compute_ids_tpe_f32: params: row_stride is " +
                  std::to_string(stride) + ", and an expert has " +
                  std::to_string(busiest) + " pairs";
      ExpectPlain(job);
    }
    ExpectPlain(BucketJob(ids, s.experts, busiest));  // the queue goes on
  }
}

TEST_P(DeviceBucketTest, EveryThreadOfTheDevicesExecutor) {
  // Several grains of 30 us for 7 threads, at about 1 ns a pair.
  const size_t pairs = 480001, experts = 128;
  const std::vector<int32_t> ids =
      MakeIds(pairs, experts, Load::kStrangers, 33);
  const Job job = BucketJob(ids, experts, BusiestCount(ids, experts) + 3);
  executor().Rendezvous();
  ExpectWhole(job);
  // One thread does it without asking the executor at all.
  EXPECT_EQ(std::max<size_t>(1, executor().DistinctThreads()),
            executor().ExpectedThreads());
}

}  // namespace
}  // namespace switchyard::testing_support
