// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Combine over threads, slices and ISAs: the same bits.

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/combine.h"
#include "switchyard/isa.h"
#include "testing/inputs.h"
#include "tests/combine_case.h"
#include "tests/target_test.h"

namespace switchyard {
namespace testing_support {
namespace {

class CombinePoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(CombinePoolTest);

TEST_P(CombinePoolTest, SameBitsAsSerialOnEveryThread) {
  CombineShape s = {301, 8, 2048};
  s.row_index = s.shared = s.residual = true;
  s.kind = SharedGate::kLogit;
  CombineCase c(s, 11);
  for (size_t i = 0; i < c.index.size(); i += 100) c.index[i] = -9;
  const CombineResult serial = Combine(c, true);
  executor().Rendezvous();
  const CombineResult r = Combine(c, true, executor());
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
  EXPECT_EQ(r.skipped, 25u);
  ASSERT_EQ(CanonicalBits(r.out), CanonicalBits(serial.out));
  ASSERT_EQ(CanonicalBits(r.normed), CanonicalBits(serial.normed));
  ASSERT_EQ(Combine(c, false, executor()).out, serial.out);
  // Row slices, as an engine's own loop passes them.
  CombineResult slices;
  slices.out.resize(r.out.size());
  slices.normed.resize(r.out.size());
  const Matrix<float> out(slices.out.data(), s.tokens, s.hidden);
  const Matrix<float> normed(slices.normed.data(), s.tokens, s.hidden);
  for (size_t begin = 0; begin < s.tokens; begin += 43) {
    const size_t end = begin + 43 < s.tokens ? begin + 43 : s.tokens;
    CombineInputs in = c.Inputs();
    in.topk_weights = in.topk_weights.RowRange(begin, end);
    in.row_index = in.row_index.RowRange(begin, end);
    in.shared.rows = in.shared.rows.RowRange(begin, end);
    in.shared.gate = in.shared.gate.ColRange(begin, end);
    in.residual = in.residual.RowRange(begin, end);
    in.norm_weight = c.norm_weight;
    ASSERT_TRUE(Combine(in,
                        {out.RowRange(begin, end), normed.RowRange(begin, end)},
                        {kEps}, executor())
                    .ok());
  }
  EXPECT_EQ(slices.out, serial.out);
  EXPECT_EQ(slices.normed, serial.normed);
}

TEST(CombineAcrossIsas, FmaIsasAgree) {
  for (uint64_t seed = 200; seed < 230; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    CombineShape s = {1 + random.Below(4), 1 + random.Below(12),
                      1 + random.Below(300)};
    s.row_index = random.Below(2) != 0;
    s.shared = random.Below(2) != 0;
    s.kind = SharedGate::kLogit;
    s.residual = random.Below(2) != 0;
    CombineCase c(s, seed);
    if (seed % 2) {
      for (float& x : c.rows) x = random.AnyBits();
      for (float& w : c.weights) w = random.AnyBits();
      for (float& g : c.gate) g = random.AnyBits();
    }
    std::vector<uint32_t> first_out, first_normed;
    for (const std::string& isa : FmaIsaNames()) {
      const ScopedIsa scoped(isa);
      const CombineResult r = Combine(c, true);
      ASSERT_EQ(LastIsa()->name, isa);
      if (first_out.empty()) {
        first_out = CanonicalBits(r.out);
        first_normed = CanonicalBits(r.normed);
      }
      ASSERT_EQ(CanonicalBits(r.out), first_out) << isa;
      ASSERT_EQ(CanonicalBits(r.normed), first_normed) << isa;
    }
  }
}

}  // namespace
}  // namespace testing_support
}  // namespace switchyard
