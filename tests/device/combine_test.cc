// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/combine.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/combine_case.h"
#include "tests/device/built_in_test.h"

namespace switchyard {
namespace testing_support {
namespace {

CombineShape MakeShape(size_t tokens, size_t top_k, size_t hidden) {
  CombineShape s;
  s.tokens = tokens;
  s.top_k = top_k;
  s.hidden = hidden;
  return s;
}

std::vector<CombineShape> Stacked() {
  return {MakeShape(1, 1, 1), MakeShape(1, 33, 257), MakeShape(1, 8, 1001),
          MakeShape(1, 2, 700), MakeShape(1, 3, 256)};
}
std::vector<CombineShape> Batched() {
  return {MakeShape(1, 1, 1),   MakeShape(5, 3, 257),  MakeShape(3, 33, 33),
          MakeShape(4, 2, 700), MakeShape(2, 8, 1001), MakeShape(0, 2, 300),
          MakeShape(3, 2, 0)};
}

// kUnwanted: too short a buffer is bound, and add_residual is 0.
enum class Residual { kNone, kUnwanted, kIs, kIsOut };

class DeviceCombineTest : public BuiltInTest {
 protected:
  // `kernel` writes buffer 2, a residual or not.
  template <class Params>
  void ExpectPlainSum(const char* kernel, const CombineShape& shape,
                      const Params& params) {
    const CombineCase c(shape, 21 + shape.hidden);
    const size_t size = shape.tokens * shape.hidden;
    const std::vector<float> whole = Combine(c, false).out;
    const DeviceArray<float> slots(device(), c.rows);
    const DeviceArray<float> weights(device(), c.weights);
    ForTileGrids(
        shape.tokens, shape.hidden, shape.tokens == 1,
        [&](How how, device::Size threads, Covered covered) {
          const DeviceArray<float> out(device(), size);
          if (shape.residual) out.memory().Fill(c.residual);
          const std::vector<float> before = out.Values();
          ASSERT_EQ(
              Run({kernel, 256, 3, {slots.At(0), weights.At(1), out.At(2)}},
                  params, how, threads),
              "");
          ExpectPart(out, before, whole, shape.hidden, covered, "out");
        });
  }

  template <class Params>
  void ExpectPlainNorm(const char* kernel, CombineShape shape,
                       const Params& params, bool cut_off) {
    shape.residual = true;
    const CombineCase c(shape, 22 + shape.hidden);
    const size_t size = shape.tokens * shape.hidden;
    std::vector<float> whole(size), whole_normed(size);
    CombineInputs inputs = c.Inputs();
    inputs.norm_weight = c.norm_weight;
    ASSERT_TRUE(
        switchyard::Combine(inputs,
                            {{whole.data(), shape.tokens, shape.hidden},
                             {whole_normed.data(), shape.tokens, shape.hidden}},
                            {params.eps})
            .ok());
    const DeviceArray<float> slots(device(), c.rows);
    const DeviceArray<float> weights(device(), c.weights);
    const DeviceArray<float> norm_weight(device(), c.norm_weight);
    ForRowGrids(shape.tokens, 256, cut_off,
                [&](How how, device::Size threads, size_t rows) {
                  const DeviceArray<float> residual(device(), size);
                  const DeviceArray<float> normed(device(), size);
                  residual.memory().Fill(c.residual);
                  const std::vector<float> before = normed.Values();
                  ASSERT_EQ(Run({kernel,
                                 256,
                                 5,
                                 {slots.At(0), weights.At(1), residual.At(2),
                                  norm_weight.At(3), normed.At(4)}},
                                params, how, threads),
                            "");
                  const Covered covered = {rows, shape.hidden};
                  ExpectPart(residual, c.residual, whole, shape.hidden, covered,
                             "residual");
                  ExpectPart(normed, before, whole_normed, shape.hidden,
                             covered, "normed");
                });
  }

  void ExpectPlainReduce(CombineShape shape, Residual kind,
                         bool shared_is_out) {
    shape.shared = true;
    shape.kind = SharedGate::kLogit;
    shape.residual = kind == Residual::kIs || kind == Residual::kIsOut;
    const CombineCase c(shape, 23 + shape.hidden);
    const size_t size = shape.tokens * shape.hidden;
    // The plain API knows a shared expert by its data, which is null without
    // columns.
    std::vector<float> whole;
    if (size != 0) whole = Combine(c, false).out;
    const device::MoeWeightedReduceParams params = {
        static_cast<uint32_t>(shape.tokens), static_cast<uint32_t>(shape.top_k),
        static_cast<uint32_t>(shape.hidden),
        // Anything but 0 is true.
        shape.residual ? static_cast<uint32_t>(shape.hidden) : 0u};
    const DeviceArray<float> weights(device(), c.weights);
    const DeviceArray<float> rows(device(), c.rows);
    const DeviceArray<float> gate(device(), c.gate);
    const DeviceArray<float> shared(device(), c.shared);
    const DeviceArray<float> residual(device(), c.residual);
    ForTileGrids(shape.tokens, shape.hidden, shape.tokens == 1,
                 [&](How how, device::Size threads, Covered covered) {
                   const DeviceArray<float> out(device(), size);
                   if (kind == Residual::kIsOut) out.memory().Fill(c.residual);
                   if (shared_is_out) out.memory().Fill(c.shared);
                   const std::vector<float> before = out.Values();
                   std::vector<BoundBuffer> buffers = {
                       weights.At(1), rows.At(2), gate.At(3),
                       (shared_is_out ? out : shared).At(4), out.At(6)};
                   if (kind == Residual::kIs || kind == Residual::kUnwanted) {
                     buffers.push_back(residual.At(5));
                   }
                   if (kind == Residual::kIsOut) buffers.push_back(out.At(5));
                   ASSERT_EQ(Run({"moe_weighted_reduce_f32", 256, 0, buffers},
                                 params, how, threads),
                             "");
                   ExpectPart(out, before, whole, shape.hidden, covered,
                              "output");
                 });
  }
};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(DeviceCombineTest);

TEST_P(DeviceCombineTest, StackedSumsEqualThePlainApi) {
  for (CombineShape s : Stacked()) {
    const device::WeightedSumStackedParams params = {
        static_cast<int32_t>(s.hidden), static_cast<int32_t>(s.top_k)};
    ExpectPlainSum("weighted_sum_stacked_f32", s, params);
    s.residual = true;
    ExpectPlainSum("weighted_sum_residual_stacked_f32", s, params);
  }
}

TEST_P(DeviceCombineTest, BatchedSumEqualsThePlainApi) {
  for (const CombineShape& s : Batched()) {
    ExpectPlainSum(
        "weighted_sum_batched_f32", s,
        device::WeightedSumBatchedParams{static_cast<int32_t>(s.tokens),
                                         static_cast<int32_t>(s.top_k),
                                         static_cast<int32_t>(s.hidden)});
  }
}

TEST_P(DeviceCombineTest, NormsEqualThePlainApi) {
  for (const float eps : {0.0f, 1e-6f, 0.25f}) {
    for (const CombineShape& s : Stacked()) {
      ExpectPlainNorm("weighted_sum_residual_norm_stacked_f32", s,
                      device::WeightedSumResidualNormStackedParams{
                          static_cast<int32_t>(s.hidden),
                          static_cast<int32_t>(s.top_k), eps},
                      /*cut_off=*/false);
    }
    for (const CombineShape& s : Batched()) {
      ExpectPlainNorm(
          "weighted_sum_residual_norm_batched_f32", s,
          device::WeightedSumResidualNormBatchedParams{
              static_cast<int32_t>(s.tokens), static_cast<int32_t>(s.top_k),
              static_cast<int32_t>(s.hidden), eps},
          /*cut_off=*/true);
    }
  }
}

TEST_P(DeviceCombineTest, WeightedReduceEqualsThePlainApi) {
  for (const CombineShape& s : Batched()) {
    ExpectPlainReduce(s, Residual::kNone, false);
    ExpectPlainReduce(s, Residual::kIs, false);
  }
  const CombineShape s = MakeShape(5, 3, 257);
  ExpectPlainReduce(s, Residual::kIsOut, false);
  ExpectPlainReduce(s, Residual::kNone, true);
  ExpectPlainReduce(s, Residual::kIs, true);
  ExpectPlainReduce(s, Residual::kUnwanted, false);
}

TEST_P(DeviceCombineTest, EveryThreadOfTheDevicesExecutor) {
  // Several grains of 30 us for 7 threads.
  CombineShape shape = MakeShape(301, 4, 2001);
  shape.shared = true;
  shape.kind = SharedGate::kLogit;
  shape.residual = true;
  CombineCase c(shape, 25);
  const size_t size = shape.tokens * shape.hidden;
  const DeviceArray<float> weights(device(), c.weights), rows(device(), c.rows),
      gate(device(), c.gate), shared(device(), c.shared),
      norm_weight(device(), c.norm_weight);
  const DeviceArray<float> out(device(), size), normed(device(), size);
  const device::Size tiles(shape.hidden, shape.tokens, 1);
  // One executor each: they count over their lives.
  for (int kernel = 0; kernel < 3; ++kernel) {
    SCOPED_TRACE(kernel);
    const std::unique_ptr<RecordingExecutor> pool =
        MakeExecutor(GetParam().pool);
    Use(*pool);
    pool->Rendezvous();
    if (kernel == 0) {
      c.shape.shared = c.shape.residual = false;
      ASSERT_EQ(Run({"weighted_sum_batched_f32",
                     256,
                     3,
                     {rows.At(0), weights.At(1), out.At(2)}},
                    device::WeightedSumBatchedParams{301, 4, 2001},
                    kEveryHow[0], tiles),
                "");
    } else if (kernel == 1) {
      c.shape.residual = true;
      out.memory().Fill(c.residual);
      ASSERT_EQ(
          Run({"weighted_sum_residual_norm_batched_f32",
               256,
               5,
               {rows.At(0), weights.At(1), out.At(2), norm_weight.At(3),
                normed.At(4)}},
              device::WeightedSumResidualNormBatchedParams{301, 4, 2001, kEps},
              kEveryHow[0], device::Size(301 * 256, 1, 1)),
          "");
    } else {
      c.shape.shared = true;
      out.memory().Fill(c.residual);
      ASSERT_EQ(Run({"moe_weighted_reduce_f32",
                     256,
                     0,
                     {weights.At(1), rows.At(2), gate.At(3), shared.At(4),
                      out.At(5), out.At(6)}},
                    device::MoeWeightedReduceParams{301, 4, 2001, 1},
                    kEveryHow[0], tiles),
                "");
    }
    EXPECT_EQ(pool->DistinctThreads(), pool->ExpectedThreads());
    const CombineResult plain = Combine(c, kernel == 1);
    EXPECT_TRUE(Words(out.Values()) == Words(plain.out));
    if (kernel == 1) {
      EXPECT_TRUE(Words(normed.Values()) == Words(plain.normed));
    }
    Use(executor());  // nothing of the device holds on to the pool
  }
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
