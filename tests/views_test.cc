// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/views.h"

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "src/check.h"
#include "switchyard/status.h"

namespace switchyard {
namespace {

using internal::Fits;
using internal::MayOverlap;
using internal::SameView;
using M = Matrix<float>;

static_assert(!std::is_convertible_v<Status, bool>);
static_assert(!std::is_constructible_v<bool, Status>);
static_assert(!std::is_convertible_v<Span<const float>, Span<float>>);
static_assert(!std::is_convertible_v<Matrix<const float>, Matrix<float>>);
static_assert(!std::is_convertible_v<std::vector<double>&, Span<float>>);

TEST(Views, SpansFromContainers) {
  std::vector<float> vector = {1, 2, 3};
  const std::array<float, 2> array = {4, 5};
  float raw[4] = {};
  EXPECT_EQ(Span<float>(vector).size, 3u);
  EXPECT_EQ(Span<const float>(vector).data, vector.data());
  EXPECT_EQ(Span<const float>(array).size, 2u);
  EXPECT_EQ(Span<float>(raw).size, 4u);
  EXPECT_EQ(Span<const float>(Span<float>(raw)).data, raw);
  EXPECT_EQ(Span<float>().data, nullptr);
}

TEST(Views, RowAndColumnRanges) {
  float x[24];
  const M m(x, 3, 5, 8);
  EXPECT_EQ(m.Row(2), x + 16);
  const M rows = m.RowRange(1, 3);
  EXPECT_EQ(rows.data, x + 8);
  EXPECT_EQ(rows.rows, 2u);
  const M cols = m.ColRange(2, 5);
  EXPECT_EQ(cols.data, x + 2);
  EXPECT_EQ(cols.cols, 3u);
  EXPECT_EQ(cols.stride, 8u);
}

TEST(Views, OverlapOfEqualStridesIsByColumn) {
  float x[200];
  const M left(x, 10, 8, 20), right(x + 8, 10, 12, 20);
  EXPECT_FALSE(MayOverlap(left, right));
  EXPECT_FALSE(MayOverlap(right, left));
  EXPECT_TRUE(MayOverlap(left, M(x + 7, 10, 12, 20)));
  // Starting rows later does not matter, wrapping around the stride does.
  EXPECT_FALSE(MayOverlap(left, M(x + 68, 5, 12, 20)));
  EXPECT_TRUE(MayOverlap(left, M(x + 68, 5, 13, 20)));
  EXPECT_FALSE(MayOverlap(M(x + 68, 5, 12, 20), left));
  EXPECT_TRUE(MayOverlap(M(x + 68, 5, 13, 20), left));
  // A single row is judged against the other's columns.
  EXPECT_FALSE(MayOverlap(left, M(x + 28, 1, 12)));
  EXPECT_TRUE(MayOverlap(left, M(x + 28, 1, 13)));
}

TEST(Views, OverlapOfOtherStridesIsByInterval) {
  float x[200];
  EXPECT_TRUE(MayOverlap(M(x, 10, 4, 20), M(x + 4, 10, 4, 19)));
  EXPECT_FALSE(MayOverlap(M(x, 5, 4, 20), M(x + 84, 5, 4, 19)));
  EXPECT_TRUE(MayOverlap(M(x, 5, 4, 20), M(x + 83, 5, 4, 19)));
  EXPECT_FALSE(MayOverlap(M(x, 0, 4), M(x, 5, 4)));
  EXPECT_FALSE(MayOverlap(M(x, 5, 0), M(x, 5, 4)));
  EXPECT_TRUE(MayOverlap(M(x, 5, 4), Span<float>(x + 19, 1)));
  EXPECT_FALSE(MayOverlap(M(x, 5, 4), Span<float>(x + 20, 1)));
}

TEST(Views, SameView) {
  float x[200];
  EXPECT_TRUE(SameView(M(x, 5, 4, 8), M(x, 5, 4, 8)));
  EXPECT_FALSE(SameView(M(x, 5, 4, 8), M(x, 5, 4, 9)));
  EXPECT_FALSE(SameView(M(x, 5, 4), M(x, 5, 3)));
  EXPECT_FALSE(SameView(M(x, 5, 4), M(x, 4, 4)));
  EXPECT_FALSE(SameView(M(x, 5, 4), M(x + 1, 5, 4)));
  EXPECT_TRUE(SameView(M(x, 1, 4, 8), M(x, 1, 4, 9)));
}

TEST(Views, SizesThatDoNotFit) {
  float x[1];
  const size_t max = PTRDIFF_MAX / sizeof(float);
  EXPECT_TRUE(Fits(M(nullptr, SIZE_MAX, 0, SIZE_MAX)));
  EXPECT_FALSE(Fits(M(nullptr, 1, max + 1)));
  EXPECT_FALSE(Fits(M(nullptr, SIZE_MAX, 1, SIZE_MAX)));
  EXPECT_TRUE(Fits(M(nullptr, 2, 1, max - 1)));
  EXPECT_FALSE(Fits(M(nullptr, 2, 2, max - 1)));
  EXPECT_TRUE(Fits(Span<float>(x, 1)));
  EXPECT_FALSE(Fits(Span<float>(x, SIZE_MAX)));
}

}  // namespace
}  // namespace switchyard
