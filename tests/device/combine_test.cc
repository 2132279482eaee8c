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

// The sizes in a parameter struct.
struct Sizes {
  int32_t tokens, top_k, hidden;
  explicit Sizes(const CombineShape& s)
      : tokens(static_cast<int32_t>(s.tokens)),
        top_k(static_cast<int32_t>(s.top_k)),
        hidden(static_cast<int32_t>(s.hidden)) {}
};

CombineCase MakeCase(const CombineShape& s, uint64_t seed, Type type) {
  CombineCase c(s, seed);
  for (auto* values :
       {&c.rows, &c.residual, &c.norm_weight, &c.shared, &c.gate}) {
    RoundEach(type, values);
  }
  return c;
}

// The plain API's results.
std::vector<float> Sums(const CombineCase& c) {
  const CombineShape& s = c.shape;
  std::vector<float> sums(s.tokens * s.hidden);
  EXPECT_OK(
      switchyard::Combine(c.Inputs(), {{sums.data(), s.tokens, s.hidden}}));
  return sums;
}

// The job of a kernel over tiles.
Job TileJob(const char* stem, const RowType& type, const CombineShape& s,
            std::vector<uint32_t> params, std::vector<Given> arguments) {
  return {stem + std::string(type.suffix), std::move(params),
          std::move(arguments), s.tokens, s.hidden};
}

// weighted_sum_[residual_]stacked
Job StackedJob(CombineShape s, const RowType& type, bool residual) {
  s.residual = residual;
  const CombineCase c = MakeCase(s, 21 + s.hidden, type.type);
  const std::vector<float> whole = Sums(c);
  const Sizes n(s);
  return TileJob(
      residual ? "weighted_sum_residual_stacked" : "weighted_sum_stacked", type,
      s, Words<WeightedSumStackedParams>({{n.hidden, n.top_k}}),
      {In(c.rows).As(type.type), In(c.weights),
       (residual ? Updated(c.residual, whole) : Out(whole)).As(type.type)});
}

Job BatchedJob(const CombineShape& s, const RowType& type) {
  const CombineCase c = MakeCase(s, 21 + s.hidden, type.type);
  const Sizes n(s);
  return TileJob(
      "weighted_sum_batched", type, s,
      Words<WeightedSumBatchedParams>({{n.tokens, n.top_k, n.hidden}}),
      {In(c.rows).As(type.type), In(c.weights), Out(Sums(c)).As(type.type)});
}

// weighted_sum_residual_norm_[stacked|batched]
Job NormJob(CombineShape s, const RowType& type, float eps, bool batched) {
  s.residual = true;
  const CombineCase c = MakeCase(s, 22 + s.hidden, type.type);
  std::vector<float> whole(s.tokens * s.hidden), normed(whole.size());
  CombineInputs inputs = c.Inputs();
  inputs.norm_weight = c.norm_weight;
  EXPECT_TRUE(switchyard::Combine(inputs,
                                  {{whole.data(), s.tokens, s.hidden},
                                   {normed.data(), s.tokens, s.hidden}},
                                  {eps})
                  .ok());
  const Sizes n(s);
  return {std::string(batched ? "weighted_sum_residual_norm_batched"
                              : "weighted_sum_residual_norm_stacked") +
              type.suffix,
          batched ? Words<WeightedSumResidualNormBatchedParams>(
                        {{n.tokens, n.top_k, n.hidden, eps}})
                  : Words<WeightedSumResidualNormStackedParams>(
                        {{n.hidden, n.top_k, eps}}),
          {In(c.rows).As(type.type), In(c.weights),
           Updated(c.residual, whole).As(type.type),
           In(c.norm_weight).As(type.type), Out(normed).As(type.type)},
          s.tokens};
}

// kUnwanted: too short a buffer is bound, and add_residual is 0.
enum class Residual { kNone, kUnwanted, kIs, kIsOut };

Job ReduceJob(CombineShape s, const RowType& type, Residual kind,
              bool shared_is_out) {
  s.shared = true;
  s.kind = SharedGate::kLogit;
  s.residual = kind == Residual::kIs || kind == Residual::kIsOut;
  const CombineCase c = MakeCase(s, 23 + s.hidden, type.type);
  // The plain API knows a shared expert by its data, which is null without
  // columns.
  std::vector<float> whole;
  if (s.tokens * s.hidden != 0) whole = Sums(c);
  Given shared = In(c.shared), residual = In(c.residual), out = Out(whole);
  if (shared_is_out) out = Updated(c.shared, whole);
  if (kind == Residual::kIsOut) out = Updated(c.residual, whole);
  std::vector<Given> arguments = {
      In(c.weights),        In(c.rows).As(type.type), In(c.gate).As(type.type),
      shared.As(type.type), residual.As(type.type),   out.As(type.type)};
  if (shared_is_out) arguments[3] = SameAs(5);
  if (kind == Residual::kNone) arguments[4] = {};
  if (kind == Residual::kIsOut) arguments[4] = SameAs(5);
  const auto u32 = [](size_t size) { return static_cast<uint32_t>(size); };
  return TileJob("moe_weighted_reduce", type, s,
                 Words<MoeWeightedReduceParams>(
                     {{u32(s.tokens), u32(s.top_k), u32(s.hidden),
                       // Anything but 0 is true.
                       s.residual ? u32(s.hidden) : 0u}}),
                 std::move(arguments));
}

using DeviceCombineTest = BuiltInTest;
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(DeviceCombineTest);

TEST_P(DeviceCombineTest, StackedSumsEqualThePlainApi) {
  for (const RowType& type : kRowTypes) {
    for (const CombineShape& s : Stacked()) {
      ExpectPlain(StackedJob(s, type, false));
      ExpectPlain(StackedJob(s, type, true));
    }
  }
}

TEST_P(DeviceCombineTest, BatchedSumEqualsThePlainApi) {
  for (const RowType& type : kRowTypes) {
    for (const CombineShape& s : Batched()) ExpectPlain(BatchedJob(s, type));
  }
}

TEST_P(DeviceCombineTest, NormsEqualThePlainApi) {
  for (const RowType& type : kRowTypes) {
    for (const float eps : {0.0f, 1e-6f, 0.25f}) {
      for (const CombineShape& s : Stacked()) {
        ExpectPlain(NormJob(s, type, eps, false));
      }
      for (const CombineShape& s : Batched()) {
        ExpectPlain(NormJob(s, type, eps, true));
      }
    }
  }
}

TEST_P(DeviceCombineTest, WeightedReduceEqualsThePlainApi) {
  for (const RowType& type : kRowTypes) {
    for (const CombineShape& s : Batched()) {
      ExpectPlain(ReduceJob(s, type, Residual::kNone, false));
      ExpectPlain(ReduceJob(s, type, Residual::kIs, false));
    }
    const CombineShape s = MakeShape(5, 3, 257);
    ExpectPlain(ReduceJob(s, type, Residual::kIsOut, false));
    ExpectPlain(ReduceJob(s, type, Residual::kNone, true));
    ExpectPlain(ReduceJob(s, type, Residual::kIs, true));
    ExpectPlain(ReduceJob(s, type, Residual::kUnwanted, false));
  }
}

TEST_P(DeviceCombineTest, EveryThreadOfTheDevicesExecutor) {
  // Several grains of 30 us for 7 threads.
  const CombineShape s = MakeShape(301, 4, 2001);
  const RowType& f32 = kRowTypes[0];
  for (const Job& job : {BatchedJob(s, f32), NormJob(s, f32, kEps, true),
                         ReduceJob(s, f32, Residual::kIsOut, false)}) {
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
