// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/views.h"

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "src/base/view_checks.h"
#include "switchyard/status.h"
#include "switchyard/types.h"

namespace switchyard {
namespace {

using internal::Fits;
using internal::MayOverlap;
using internal::SameView;
using M = Matrix<float>;

AnyMatrix F32(float* data, size_t rows, size_t cols) {
  return M(data, rows, cols);
}
AnyMatrix F32(float* data, size_t rows, size_t cols, size_t stride) {
  return M(data, rows, cols, stride);
}

static_assert(!std::is_convertible_v<Status, bool>);
static_assert(!std::is_constructible_v<bool, Status>);
static_assert(!std::is_convertible_v<Span<const float>, Span<float>>);
static_assert(!std::is_convertible_v<Matrix<const float>, Matrix<float>>);
static_assert(!std::is_convertible_v<std::vector<double>&, Span<float>>);

// A view converts to AnyMatrix only if its element type is one of Type. A
// view of const elements never converts to an output.
static_assert(std::is_convertible_v<Matrix<float>, AnyMatrix>);
static_assert(std::is_convertible_v<Matrix<float>, ConstAnyMatrix>);
static_assert(std::is_convertible_v<Matrix<const float>, ConstAnyMatrix>);
static_assert(!std::is_convertible_v<Matrix<const float>, AnyMatrix>);
static_assert(!std::is_convertible_v<Matrix<double>, ConstAnyMatrix>);
static_assert(std::is_convertible_v<AnyMatrix, ConstAnyMatrix>);
static_assert(!std::is_convertible_v<ConstAnyMatrix, AnyMatrix>);
static_assert(std::is_convertible_v<Span<int64_t>, AnyMatrix>);
static_assert(std::is_convertible_v<Span<const int64_t>, ConstAnyMatrix>);
static_assert(!std::is_convertible_v<Span<const int64_t>, AnyMatrix>);
static_assert(std::is_convertible_v<std::vector<BFloat16>&, AnyMatrix>);
static_assert(std::is_convertible_v<const std::vector<BFloat16>&,  //
                                    ConstAnyMatrix>);
static_assert(!std::is_convertible_v<const std::vector<BFloat16>&, AnyMatrix>);
static_assert(!std::is_convertible_v<std::vector<double>&, ConstAnyMatrix>);
static_assert(std::is_convertible_v<std::vector<uint8_t>&, AnyMatrix>);
static_assert(!std::is_convertible_v<std::vector<int16_t>&, ConstAnyMatrix>);
static_assert(std::is_constructible_v<ConstAnyMatrix, const float*, int, int>);
static_assert(!std::is_constructible_v<AnyMatrix, const float*, int, int>);
static_assert(!std::is_constructible_v<AnyMatrix, double*, int, int>);
static_assert(!std::is_constructible_v<AnyMatrix, float*, float, int>);
static_assert(std::is_same_v<decltype(ConstAnyMatrix().As<float>()),
                             Matrix<const float>>);
static_assert(std::is_same_v<decltype(AnyMatrix().As<float>()),  //
                             Matrix<float>>);
static_assert(sizeof(BFloat16) == 2 && sizeof(Float16) == 2);
static_assert(kType<const float> == Type::kF32 &&
              kType<BFloat16> == Type::kBF16 && kType<Float16> == Type::kF16 &&
              kType<int32_t> == Type::kI32 && kType<uint32_t> == Type::kU32 &&
              kType<int64_t> == Type::kI64 && kType<int8_t> == Type::kI8 &&
              kType<uint8_t> == Type::kU8 && kType<uint16_t> == Type::kU16 &&
              kType<Float8E4M3> == Type::kF8E4M3 &&
              kType<Float8E5M2> == Type::kF8E5M2 &&
              kType<Scale8E8M0> == Type::kE8M0);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ8_1) == 36 &&
              sizeof(BlockQ8_K) == 292);
static_assert(BytesOf(Type::kQ8_0, 64) == 68 &&
              BytesOf(Type::kQ8_K, 512) == 584 && BytesOf(Type::kI8, 5) == 5 &&
              BytesOf(Type::kU16, 5) == 10 && BlockOf(Type::kU16) == 1);
// AnyRows are made like matrices, or with scales and sums.
static_assert(std::is_convertible_v<Matrix<float>, AnyRows>);
static_assert(std::is_convertible_v<AnyMatrix, AnyRows>);
static_assert(std::is_convertible_v<AnyRows, ConstAnyRows>);
static_assert(!std::is_convertible_v<ConstAnyRows, AnyRows>);
static_assert(!std::is_convertible_v<ConstAnyMatrix, AnyRows>);
static_assert(SizeOf(Type::kF32) == 4 && SizeOf(Type::kBF16) == 2 &&
              SizeOf(Type::kF16) == 2 && SizeOf(Type::kI32) == 4 &&
              SizeOf(Type::kU32) == 4 && SizeOf(Type::kI64) == 8);

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
  // Span is a range, so constructors and loops accept it.
  const Span<float> span(vector);
  EXPECT_EQ(std::vector<float>(span.begin(), span.end()), vector);
  for (float& x : span) x = 7;
  EXPECT_EQ(vector, std::vector<float>(3, 7.0f));
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

void ExpectAny(const ConstAnyMatrix& m, const void* data, size_t rows,
               size_t cols, size_t stride, Type type) {
  EXPECT_EQ(m.data, data);
  EXPECT_EQ(m.rows, rows);
  EXPECT_EQ(m.cols, cols);
  EXPECT_EQ(m.stride, stride);
  EXPECT_EQ(m.type, type);
}

TEST(AnyMatrices, FromPointersAndSizesOfAnyIntegerType) {
  float x[24];
  ExpectAny(AnyMatrix(), nullptr, 0, 0, 0, Type::kF32);
  ExpectAny({x, 3, 5}, x, 3, 5, 5, Type::kF32);
  ExpectAny({x, int64_t{3}, uint8_t{5}}, x, 3, 5, 5, Type::kF32);
  ExpectAny({x, int64_t{3}, 5u, short{8}}, x, 3, 5, 8, Type::kF32);
  // Negative sizes do not become small sizes, but sizes that are too large for
  // any check.
  ExpectAny({x, -1, int64_t{-2}, -3}, x, SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 2,
            Type::kF32);
  // The type of this matrix is only known at run time.
  ExpectAny({static_cast<const void*>(x), Type::kBF16, 3, 5, int64_t{8}}, x, 3,
            5, 8, Type::kBF16);
  const AnyMatrix run_time(static_cast<void*>(x), Type::kI64, 3, 4, 4);
  ExpectAny(run_time.RowRange(1, 2), x + 8, 1, 4, 4, Type::kI64);
}

TEST(AnyMatrices, FromMatricesSpansAndContainers) {
  std::vector<int64_t> vector = {1, 2, 3};
  const std::array<uint32_t, 2> array = {4, 5};
  float x[24];
  ExpectAny(vector, vector.data(), 1, 3, 3, Type::kI64);
  ExpectAny(array, array.data(), 1, 2, 2, Type::kU32);
  ExpectAny(Span<float>(x), x, 1, 24, 24, Type::kF32);
  ExpectAny(Span<const float>(x), x, 1, 24, 24, Type::kF32);
  ExpectAny(M(x, 3, 5, 8), x, 3, 5, 8, Type::kF32);
  ExpectAny(Matrix<const float>(x, 3, 5, 8), x, 3, 5, 8, Type::kF32);
  const AnyMatrix any = M(x, 3, 5, 8);
  ExpectAny(any, x, 3, 5, 8, Type::kF32);
  const std::vector<float> empty;
  ExpectAny(empty, empty.data(), 1, 0, 0, Type::kF32);
  // Views convert in an argument list, as in calls.
  struct Inputs {
    ConstAnyMatrix ids;
    ConstAnyMatrix weights = {};
  };
  const Inputs in = {{vector.data(), 3, 1}, M(x, 2, 3)};
  ExpectAny(in.ids, vector.data(), 3, 1, 1, Type::kI64);
  ExpectAny(in.weights, x, 2, 3, 3, Type::kF32);
}

// Tests elements of 2, 4 and 8 bytes. A part of an AnyMatrix has the same
// address as that part of a Matrix.
template <class T>
class AnyMatricesOf : public testing::Test {};
using Elements =
    testing::Types<float, BFloat16, Float16, int32_t, uint32_t, int64_t>;
TYPED_TEST_SUITE(AnyMatricesOf, Elements, );  // Clang needs three arguments

TYPED_TEST(AnyMatricesOf, PartsAreWhereAMatrixHasThem) {
  using T = TypeParam;
  T x[24];
  const Matrix<T> m(x, 3, 5, 8);
  const AnyMatrix any = m;
  const ConstAnyMatrix const_any = any;
  ASSERT_EQ(any.type, kType<T>);
  EXPECT_EQ(any.As<T>().Row(2), x + 16);
  EXPECT_EQ(const_any.As<T>().Row(2), x + 16);
  EXPECT_EQ(any.As<T>().stride, 8u);
  ExpectAny(any.RowRange(1, 3), x + 8, 2, 5, 8, kType<T>);
  ExpectAny(const_any.RowRange(1, 3), x + 8, 2, 5, 8, kType<T>);
  ExpectAny(any.ColRange(2, 5), x + 2, 3, 3, 8, kType<T>);
  ExpectAny(const_any.ColRange(2, 5), x + 2, 3, 3, 8, kType<T>);
  ExpectAny(any.RowRange(2, 3).ColRange(4, 5), x + 20, 1, 1, 8, kType<T>);
  ExpectAny(any.RowRange(1, 1), x + 8, 0, 5, 8, kType<T>);
}

TEST(Views, OverlapOfEqualStridesIsByColumn) {
  float x[200];
  const AnyMatrix left(x, 10, 8, 20), right(x + 8, 10, 12, 20);
  EXPECT_FALSE(MayOverlap(left, right));
  EXPECT_FALSE(MayOverlap(right, left));
  EXPECT_TRUE(MayOverlap(left, F32(x + 7, 10, 12, 20)));
  // The second view may begin in a later row of the first, but its columns
  // must not wrap around the stride.
  EXPECT_FALSE(MayOverlap(left, F32(x + 68, 5, 12, 20)));
  EXPECT_TRUE(MayOverlap(left, F32(x + 68, 5, 13, 20)));
  EXPECT_FALSE(MayOverlap(F32(x + 68, 5, 12, 20), left));
  EXPECT_TRUE(MayOverlap(F32(x + 68, 5, 13, 20), left));
  // A single row is compared with the other view's columns.
  EXPECT_FALSE(MayOverlap(left, F32(x + 28, 1, 12)));
  EXPECT_TRUE(MayOverlap(left, F32(x + 28, 1, 13)));
}

TEST(Views, OverlapOfOtherStridesIsByInterval) {
  float x[200];
  EXPECT_TRUE(MayOverlap(F32(x, 10, 4, 20), F32(x + 4, 10, 4, 19)));
  EXPECT_FALSE(MayOverlap(F32(x, 5, 4, 20), F32(x + 84, 5, 4, 19)));
  EXPECT_TRUE(MayOverlap(F32(x, 5, 4, 20), F32(x + 83, 5, 4, 19)));
  EXPECT_FALSE(MayOverlap(F32(x, 0, 4), F32(x, 5, 4)));
  EXPECT_FALSE(MayOverlap(F32(x, 5, 0), F32(x, 5, 4)));
  EXPECT_TRUE(MayOverlap(F32(x, 5, 4), Span<float>(x + 19, 1)));
  EXPECT_FALSE(MayOverlap(F32(x, 5, 4), Span<float>(x + 20, 1)));
}

// Tests views with different element types. Their overlap is computed in
// bytes.
TEST(Views, OverlapOfOtherElements) {
  float x[200];
  int64_t* const wide = reinterpret_cast<int64_t*>(x);
  BFloat16* const half = reinterpret_cast<BFloat16*>(x);
  const AnyMatrix left(x, 10, 8, 20);
  EXPECT_FALSE(MayOverlap(left, AnyMatrix(wide + 4, 10, 6, 10)));
  EXPECT_TRUE(MayOverlap(left, AnyMatrix(wide + 3, 10, 6, 10)));
  EXPECT_TRUE(MayOverlap(left, AnyMatrix(wide + 4, 10, 7, 10)));
  EXPECT_FALSE(MayOverlap(left, AnyMatrix(half + 16, 10, 24, 40)));
  EXPECT_TRUE(MayOverlap(left, AnyMatrix(half + 15, 10, 24, 40)));
  EXPECT_TRUE(MayOverlap(left, AnyMatrix(half + 16, 10, 25, 40)));
  EXPECT_TRUE(MayOverlap(AnyMatrix(wide, 1, 3), Span<float>(x + 5, 1)));
  EXPECT_FALSE(MayOverlap(AnyMatrix(wide, 1, 3), Span<float>(x + 6, 1)));
  EXPECT_TRUE(MayOverlap(AnyMatrix(half, 1, 3), Span<float>(x + 1, 1)));
  EXPECT_FALSE(MayOverlap(AnyMatrix(half, 1, 2), Span<float>(x + 1, 1)));
}

TEST(Views, RowRangesOfRowsTakeTheirScales) {
  int8_t codes[12];
  float scales[6];
  int32_t sums[3];
  const AnyRows rows = {{codes, 3, 4}, {scales, 3, 2}, {sums, 3, 1}};
  const ConstAnyRows last = rows.RowRange(2, 3);
  EXPECT_EQ(last.data, codes + 8);
  EXPECT_EQ(last.rows, 1u);
  EXPECT_EQ(last.scales.data, scales + 4);
  EXPECT_EQ(last.scales.rows, 1u);
  EXPECT_EQ(last.sums.data, sums + 2);
  const AnyRows plain = AnyMatrix(scales, 3, 2);
  EXPECT_EQ(plain.RowRange(1, 2).scales.data, nullptr);
}

TEST(Views, BlocksAreCountedInValues) {
  BlockQ8_0 blocks[6];
  const AnyMatrix m(blocks, Type::kQ8_0, 3, 64, 64);
  EXPECT_EQ(m.RowRange(1, 3).data, blocks + 2);
  EXPECT_EQ(m.ColRange(32, 64).data, blocks + 1);
}

TEST(Views, SameView) {
  float x[200];
  const auto Same = [](const AnyMatrix& a, const ConstAnyMatrix& b) {
    return SameView(a, b);
  };
  EXPECT_TRUE(Same(M(x, 5, 4, 8), M(x, 5, 4, 8)));
  EXPECT_FALSE(Same(M(x, 5, 4, 8), M(x, 5, 4, 9)));
  EXPECT_FALSE(Same(M(x, 5, 4), M(x, 5, 3)));
  EXPECT_FALSE(Same(M(x, 5, 4), M(x, 4, 4)));
  EXPECT_FALSE(Same(M(x, 5, 4), M(x + 1, 5, 4)));
  EXPECT_TRUE(Same(M(x, 1, 4, 8), M(x, 1, 4, 9)));
  // Views with the same bytes but different types are not the same.
  EXPECT_FALSE(Same({x, Type::kBF16, 5, 4, 4}, {x, Type::kF16, 5, 4, 4}));
}

TEST(Views, SizesThatDoNotFit) {
  float x[1];
  const size_t max = PTRDIFF_MAX / sizeof(float);
  EXPECT_TRUE(Fits(F32(nullptr, SIZE_MAX, 0, SIZE_MAX)));
  EXPECT_FALSE(Fits(F32(nullptr, 1, max + 1)));
  EXPECT_FALSE(Fits(F32(nullptr, SIZE_MAX, 1, SIZE_MAX)));
  EXPECT_TRUE(Fits(F32(nullptr, 2, 1, max - 1)));
  EXPECT_FALSE(Fits(F32(nullptr, 2, 2, max - 1)));
  // With wider elements, smaller sizes already overflow the address space.
  int64_t wide[1];
  BFloat16 half[1];
  EXPECT_TRUE(Fits(AnyMatrix(wide, 1, max / 2)));
  EXPECT_FALSE(Fits(AnyMatrix(wide, 1, max / 2 + 1)));
  EXPECT_TRUE(Fits(AnyMatrix(half, 1, max)));
  EXPECT_FALSE(Fits(AnyMatrix(half, 1, -1)));
  EXPECT_TRUE(Fits(Span<float>(x, 1)));
  EXPECT_FALSE(Fits(Span<float>(x, SIZE_MAX)));
}

}  // namespace
}  // namespace switchyard
