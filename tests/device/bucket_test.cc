// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/activate.h"
#include "testing/inputs.h"
#include "tests/bucket_case.h"
#include "tests/device/built_in_test.h"

namespace switchyard {
namespace testing_support {
namespace {

constexpr char kName[] = "moe_compute_ids_tpe_f32";
constexpr size_t kFeatures[2] = {768, 2049};

// All that the kernel writes.
struct Tables {
  std::vector<int32_t> tpe, ids;
  std::vector<uint32_t> gate_up_args, down_args;
};

struct TableArrays {
  TableArrays(device::Device& device, size_t experts, size_t row_stride)
      : tpe(device, experts),
        ids(device, experts * row_stride),
        gate_up_args(device, 3),
        down_args(device, 3) {}
  Tables Values() const {
    return {tpe.Values(), ids.Values(), gate_up_args.Values(),
            down_args.Values()};
  }
  // `plain` to the bit, and nothing around it.
  void Expect(const Tables& plain) const {
    tpe.memory().ExpectIntact("tpe");
    ids.memory().ExpectIntact("ids");
    gate_up_args.memory().ExpectIntact("gate_up_args");
    down_args.memory().ExpectIntact("down_args");
    const Tables actual = Values();
    EXPECT_EQ(actual.tpe, plain.tpe);
    EXPECT_TRUE(actual.ids == plain.ids);
    EXPECT_EQ(actual.gate_up_args, plain.gate_up_args);
    EXPECT_EQ(actual.down_args, plain.down_args);
  }
  DeviceArray<int32_t> tpe, ids;
  DeviceArray<uint32_t> gate_up_args, down_args;
};

// What the plain API makes of `selected`, over tables that hold canaries.
Tables Plain(const std::vector<int32_t>& selected, size_t experts,
             size_t row_stride) {
  const int32_t canary = static_cast<int32_t>(kCanary);
  Tables t = {std::vector<int32_t>(experts, canary),
              std::vector<int32_t>(experts * row_stride, canary),
              std::vector<uint32_t>(3), std::vector<uint32_t>(3)};
  Report report;
  Status status = BucketStrided({{selected.data(), selected.size(), 1}},
                                {t.tpe, t.ids, row_stride, false, &report});
  EXPECT_TRUE(status.ok()) << status.message();
  for (const bool is_down : {false, true}) {
    status = MakeDispatchArgs({report.max_rows, experts, kFeatures[is_down]},
                              {is_down ? t.down_args : t.gate_up_args});
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return t;
}

size_t BusiestCount(const std::vector<int32_t>& selected, size_t experts) {
  return reference::Bucket(selected, experts).max_rows;
}

device::MoeComputeIdsTpeParams Params(size_t experts, size_t row_stride,
                                      size_t pairs) {
  return {static_cast<int32_t>(experts), static_cast<int32_t>(row_stride),
          static_cast<int32_t>(pairs), static_cast<int32_t>(kFeatures[0]),
          static_cast<int32_t>(kFeatures[1])};
}

Work MakeWork(const DeviceArray<int32_t>& selected, const TableArrays& t) {
  return {kName,
          256,
          5,
          {selected.At(0), t.tpe.At(1), t.ids.At(2), t.gate_up_args.At(3),
           t.down_args.At(4)}};
}

const device::Size kGrid(256, 1, 1);

class DeviceBucketTest : public BuiltInTest {
 protected:
  void ExpectPlain(const std::vector<int32_t>& ids, size_t experts,
                   size_t row_stride) {
    SCOPED_TRACE(testing::Message() << ids.size() << " pairs, " << experts
                                    << " experts, stride " << row_stride);
    const DeviceArray<int32_t> selected(device(), ids);
    const Tables plain = Plain(ids, experts, row_stride);
    for (const How& how : kEveryHow) {
      const TableArrays t(device(), experts, row_stride);
      ASSERT_EQ(Run(MakeWork(selected, t),
                    Params(experts, row_stride, ids.size()), how, kGrid),
                "");
      t.Expect(plain);
    }
  }
};
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
        ExpectPlain(ids, s.experts, stride);
      }
    }
  }
}

TEST_P(DeviceBucketTest, NoPairsOrNoGrid) {
  // total_pairs is always enough of a row_stride: no table at all.
  const DeviceArray<int32_t> selected(device(), std::vector<int32_t>());
  for (const How& how : kEveryHow) {
    const TableArrays t(device(), 8, 0);
    EXPECT_EQ(Run(MakeWork(selected, t), Params(8, 0, 0), how, kGrid), "");
    t.Expect({std::vector<int32_t>(8), {}, {1, 12, 8}, {1, 33, 8}});
  }
  const DeviceArray<int32_t> three(device(), {1, 2, 3});
  for (const How& how : kEveryHow) {
    for (const device::Size& none :
         {device::Size(0, 1, 1), device::Size(256, 0, 1),
          device::Size(256, 1, 0), device::Size()}) {
      const TableArrays t(device(), 4, 3);
      EXPECT_EQ(Run(MakeWork(three, t), Params(4, 3, 3), how, none), "");
      t.tpe.memory().ExpectUntouched("tpe");
      t.ids.memory().ExpectUntouched("ids");
      t.gate_up_args.memory().ExpectUntouched("gate_up_args");
      t.down_args.memory().ExpectUntouched("down_args");
    }
  }
  ExpectPlain({}, 8, 5);
  ExpectPlain({-1, 8, 1 << 24}, 8, 3);  // none that stays
}

// Cases from the seed projects' public tests.
TEST_P(DeviceBucketTest, KnownAnswers) {
  std::vector<int32_t> ids;
  for (int32_t b = 0; b < 5; ++b) {
    for (int32_t s = 0; s < 3; ++s) ids.push_back((3 * b + 2 * s + b) % 8);
  }
  const DeviceArray<int32_t> selected(device(), ids);
  const TableArrays t(device(), 8, 15);
  ASSERT_EQ(Run(MakeWork(selected, t),
                device::MoeComputeIdsTpeParams{8, 15, 15, 768, 2048},
                kEveryHow[3], kGrid),
            "");
  const int32_t x = static_cast<int32_t>(kCanary);
  std::vector<int32_t> table(8 * 15, x);
  const std::vector<std::vector<int32_t>> buckets = {
      {0, 5, 6, 11, 12}, {}, {1, 7, 13}, {}, {2, 3, 8, 9, 14}, {}, {4, 10}, {}};
  for (size_t e = 0; e < 8; ++e) {
    std::copy(buckets[e].begin(), buckets[e].end(), &table[e * 15]);
  }
  t.Expect({{5, 0, 3, 0, 5, 0, 2, 0}, table, {1, 12, 8}, {1, 32, 8}});

  const DeviceArray<int32_t> few(device(), {1, 3, 1, 0});
  const TableArrays u(device(), 4, 2);
  ASSERT_EQ(Run(MakeWork(few, u), Params(4, 2, 4), kEveryHow[0], kGrid), "");
  u.Expect({{1, 2, 0, 1}, {3, x, 0, 2, x, x, 1, x}, {1, 12, 4}, {1, 33, 4}});
}

// A GEMM consumer's grid is read from the args after they have been written:
// every (pair, row tile) is visited by exactly one threadgroup.
TEST_P(DeviceBucketTest, ArgsGiveTheGridOfALaterDispatch) {
  const size_t experts = 6, pairs = 701, stride = pairs;
  const std::vector<int32_t> ids =
      MakeIds(pairs, experts, Load::kStrangers, 31);
  const Tables plain = Plain(ids, experts, stride);
  const DeviceArray<int32_t> selected(device(), ids);
  const TableArrays t(device(), experts, stride);
  const size_t tiles[2] = {12, 33};
  device::KernelFunction gemm;
  gemm.name = "gemm";
  gemm.threadgroup = [&](const device::ThreadgroupContext& context) {
    const device::Size& position = context.threadgroup_position_in_grid;
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
  const DeviceArray<int32_t> up(device(), pairs * tiles[0]);
  const DeviceArray<int32_t> down(device(), pairs * tiles[1]);
  up.memory().Fill(std::vector<int32_t>(pairs * tiles[0]));
  down.memory().Fill(std::vector<int32_t>(pairs * tiles[1]));

  const auto commands = queue().commandBuffer();
  const auto encoder = commands->computeCommandEncoder();
  const auto params = Params(experts, stride, pairs);
  Encode(*encoder, MakeWork(selected, t), &params, sizeof(params), kEveryHow[0],
         kGrid);
  encoder->setComputePipelineState(consumer);
  encoder->setBuffer(t.tpe.buffer(), t.tpe.At(0).offset, 0);
  encoder->setBuffer(t.ids.buffer(), t.ids.At(0).offset, 1);
  const device::Size per(128, 1, 1);
  for (const bool is_down : {false, true}) {
    const BoundBuffer out = (is_down ? down : up).At(2);
    const BoundBuffer args = (is_down ? t.down_args : t.gate_up_args).At(0);
    encoder->setBuffer(out.buffer, out.offset, out.index);
    encoder->dispatchThreadgroups(args.buffer, args.offset, per);
  }
  encoder->endEncoding();
  ASSERT_EQ(Finish(*commands), "");
  t.Expect(plain);
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
  const DeviceArray<int32_t> selected(device(), std::vector<int32_t>(pairs));
  const TableArrays t(device(), 1, pairs);
  Random random(32);
  const std::vector<float> g = random.Uniforms(rows * cols, -9.0f, 9.0f);
  const std::vector<float> u = random.Uniforms(rows * cols, -9.0f, 9.0f);
  const DeviceArray<float> gate(device(), g), up(device(), u);
  const DeviceArray<float> out(device(), rows * cols);
  const std::vector<float> before = out.Values();

  const auto commands = queue().commandBuffer();
  const auto encoder = commands->computeCommandEncoder();
  const device::MoeComputeIdsTpeParams params = {
      1, static_cast<int32_t>(pairs), static_cast<int32_t>(pairs), 300, 64};
  Encode(*encoder, MakeWork(selected, t), &params, sizeof(params), kEveryHow[1],
         kGrid);
  encoder->setComputePipelineState(
      device().newComputePipelineState("silu_mul_stacked_f32"));
  for (const BoundBuffer& b : {gate.At(0), up.At(1), out.At(2)}) {
    encoder->setBuffer(b.buffer, b.offset, b.index);
  }
  const device::SiluMulStackedParams silu = {static_cast<int32_t>(cols),
                                             static_cast<int32_t>(rows)};
  encoder->setBytes(&silu, sizeof(silu), 3);
  encoder->dispatchThreadgroups(t.gate_up_args.buffer(),
                                t.gate_up_args.At(0).offset, kGrid);
  encoder->endEncoding();
  ASSERT_EQ(Finish(*commands), "");
  std::vector<float> whole(rows * cols);
  ASSERT_TRUE(Activate({{g.data(), rows, cols}, {u.data(), rows, cols}},
                       {{whole.data(), rows, cols}})
                  .ok());
  ExpectPart(out, before, whole, cols, {rows, 3 * 256}, "out");
}

TEST_P(DeviceBucketTest, RowStrideTooSmallChangesNothing) {
  for (const Shape& s :
       {Shape{1, 2, 1}, Shape{31, 33, 60}, Shape{60013, 2, 128}}) {
    const size_t pairs = s.tokens * s.top_k;
    const std::vector<int32_t> ids =
        MakeIds(pairs, s.experts, Load::kZipf, pairs);
    const size_t busiest = BusiestCount(ids, s.experts);
    const DeviceArray<int32_t> selected(device(), ids);
    for (const size_t stride : {busiest - 1, busiest / 2}) {
      for (const How& how : kEveryHow) {
        const TableArrays t(device(), s.experts, stride);
        EXPECT_EQ(Run(MakeWork(selected, t), Params(s.experts, stride, pairs),
                      how, kGrid),
                  std::string(kName) + ": params: row_stride is " +
                      std::to_string(stride) + ", and an expert has " +
                      std::to_string(busiest) + " pairs");
        t.tpe.memory().ExpectUntouched("tpe");
        t.ids.memory().ExpectUntouched("ids");
        t.gate_up_args.memory().ExpectUntouched("gate_up_args");
        t.down_args.memory().ExpectUntouched("down_args");
      }
    }
    ExpectPlain(ids, s.experts, busiest);  // the queue goes on
  }
}

TEST_P(DeviceBucketTest, EveryThreadOfTheDevicesExecutor) {
  // Several grains of 30 us for 7 threads, at about 1 ns a pair.
  const size_t pairs = 480001, experts = 128;
  const std::vector<int32_t> ids =
      MakeIds(pairs, experts, Load::kStrangers, 33);
  const size_t stride = BusiestCount(ids, experts) + 3;
  const DeviceArray<int32_t> selected(device(), ids);
  const TableArrays t(device(), experts, stride);
  executor().Rendezvous();
  ASSERT_EQ(Run(MakeWork(selected, t), Params(experts, stride, pairs),
                kEveryHow[0], kGrid),
            "");
  // One thread does it without asking the executor at all.
  EXPECT_EQ(std::max<size_t>(1, executor().DistinctThreads()),
            executor().ExpectedThreads());
  t.Expect(Plain(ids, experts, stride));
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
