// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/combine.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/combine_case.h"
#include "tests/device/built_in_test.h"

namespace switchyard::testing_support {
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

// Those that a parameter struct is made of.
struct Sizes {
  int32_t tokens, top_k, hidden;
  explicit Sizes(const CombineShape& s)
      : tokens(static_cast<int32_t>(s.tokens)),
        top_k(static_cast<int32_t>(s.top_k)),
        hidden(static_cast<int32_t>(s.hidden)) {}
};

Job TileJob(const char* kernel, const CombineShape& s,
            std::vector<uint32_t> params, std::vector<Given> arguments) {
  return {kernel, std::move(params), std::move(arguments), s.tokens, s.hidden};
}

// weighted_sum_[residual_]stacked_f32
Job StackedJob(CombineShape s, bool residual) {
  s.residual = residual;
  const CombineCase c(s, 21 + s.hidden);
  const std::vector<float> whole = Combine(c, false).out;
  const Sizes n(s);
  return TileJob(residual ? "weighted_sum_residual_stacked_f32"
                          : "weighted_sum_stacked_f32",
                 s, Words<WeightedSumStackedParams>({{n.hidden, n.top_k}}),
                 {In(c.rows), In(c.weights),
                  residual ? InOut(c.residual, whole) : Out(whole)});
}

Job BatchedJob(const CombineShape& s) {
  const CombineCase c(s, 21 + s.hidden);
  const Sizes n(s);
  return TileJob(
      "weighted_sum_batched_f32", s,
      Words<WeightedSumBatchedParams>({{n.tokens, n.top_k, n.hidden}}),
      {In(c.rows), In(c.weights), Out(Combine(c, false).out)});
}

// weighted_sum_residual_norm_[stacked|batched]_f32
Job NormJob(CombineShape s, float eps, bool batched) {
  s.residual = true;
  const CombineCase c(s, 22 + s.hidden);
  std::vector<float> whole(s.tokens * s.hidden), normed(whole.size());
  CombineInputs inputs = c.Inputs();
  inputs.norm_weight = c.norm_weight;
  EXPECT_TRUE(switchyard::Combine(inputs,
                                  {{whole.data(), s.tokens, s.hidden},
                                   {normed.data(), s.tokens, s.hidden}},
                                  {eps})
                  .ok());
  const Sizes n(s);
  return {batched ? "weighted_sum_residual_norm_batched_f32"
                  : "weighted_sum_residual_norm_stacked_f32",
          batched ? Words<WeightedSumResidualNormBatchedParams>(
                        {{n.tokens, n.top_k, n.hidden, eps}})
                  : Words<WeightedSumResidualNormStackedParams>(
                        {{n.hidden, n.top_k, eps}}),
          {In(c.rows), In(c.weights), InOut(c.residual, whole),
           In(c.norm_weight), Out(normed)},
          s.tokens};
}

// kUnwanted: too short a buffer is bound, and add_residual is 0.
enum class Residual { kNone, kUnwanted, kIs, kIsOut };

Job ReduceJob(CombineShape s, Residual kind, bool shared_is_out) {
  s.shared = true;
  s.kind = SharedGate::kLogit;
  s.residual = kind == Residual::kIs || kind == Residual::kIsOut;
  const CombineCase c(s, 23 + s.hidden);
  // The plain API knows a shared expert by its data, which is null without
  // columns.
  std::vector<float> whole;
  if (s.tokens * s.hidden != 0) whole = Combine(c, false).out;
  Given shared = In(c.shared), residual = In(c.residual), out = Out(whole);
  if (shared_is_out) {
    shared = SameAs(5);
    out = InOut(c.shared, whole);
  }
  if (kind == Residual::kNone) residual = {};
  if (kind == Residual::kIsOut) {
    residual = SameAs(5);
    out = InOut(c.residual, whole);
  }
  const auto u32 = [](size_t size) { return static_cast<uint32_t>(size); };
  return TileJob(
      "moe_weighted_reduce_f32", s,
      Words<MoeWeightedReduceParams>(
          {{u32(s.tokens), u32(s.top_k), u32(s.hidden),
            // Anything but 0 is true.
            s.residual ? u32(s.hidden) : 0u}}),
      {In(c.weights), In(c.rows), In(c.gate), shared, residual, out});
}

using DeviceCombineTest = BuiltInTest;
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(DeviceCombineTest);

TEST_P(DeviceCombineTest, StackedSumsEqualThePlainApi) {
  for (const CombineShape& s : Stacked()) {
    ExpectPlain(StackedJob(s, false));
    ExpectPlain(StackedJob(s, true));
  }
}

TEST_P(DeviceCombineTest, BatchedSumEqualsThePlainApi) {
  for (const CombineShape& s : Batched()) ExpectPlain(BatchedJob(s));
}

TEST_P(DeviceCombineTest, NormsEqualThePlainApi) {
  for (const float eps : {0.0f, 1e-6f, 0.25f}) {
    for (const CombineShape& s : Stacked()) ExpectPlain(NormJob(s, eps, false));
    for (const CombineShape& s : Batched()) ExpectPlain(NormJob(s, eps, true));
  }
}

TEST_P(DeviceCombineTest, WeightedReduceEqualsThePlainApi) {
  for (const CombineShape& s : Batched()) {
    ExpectPlain(ReduceJob(s, Residual::kNone, false));
    ExpectPlain(ReduceJob(s, Residual::kIs, false));
  }
  const CombineShape s = MakeShape(5, 3, 257);
  ExpectPlain(ReduceJob(s, Residual::kIsOut, false));
  ExpectPlain(ReduceJob(s, Residual::kNone, true));
  ExpectPlain(ReduceJob(s, Residual::kIs, true));
  ExpectPlain(ReduceJob(s, Residual::kUnwanted, false));
}

TEST_P(DeviceCombineTest, EveryThreadOfTheDevicesExecutor) {
  // Several grains of 30 us for 7 threads.
  const CombineShape s = MakeShape(301, 4, 2001);
  for (const Job& job : {BatchedJob(s), NormJob(s, kEps, true),
                         ReduceJob(s, Residual::kIsOut, false)}) {
    // One executor each: they count over their lives.
    const std::unique_ptr<RecordingExecutor> pool =
        MakeExecutor(GetParam().pool);
    Use(*pool);
    pool->Rendezvous();
    ExpectWhole(job);
    EXPECT_EQ(pool->DistinctThreads(), pool->ExpectedThreads()) << job.kernel;
    Use(executor());  // nothing of the device holds on to the pool
  }
}

}  // namespace
}  // namespace switchyard::testing_support
