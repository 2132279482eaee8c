// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/expert_weights.h"

#include <cmath>

#include "src/base/weight_layout.h"
#include "src/calls/expert_weights.h"
#include "switchyard/quantize.h"
#include "testing/floats.h"
#include "testing/reference_multiply.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {
namespace {

constexpr WeightFormat kWeightFormats[] = {
#define SWITCHYARD_ENUMERATOR(name, ...) WeightFormat::name,
    SWITCHYARD_WEIGHT_FORMATS(SWITCHYARD_ENUMERATOR)
#undef SWITCHYARD_ENUMERATOR
};
class ExpertWeightsTest : public IsaTest {};
class ExpertWeightsPoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(ExpertWeightsTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(ExpertWeightsPoolTest);

bool HasFma() {
  const std::vector<std::string> names = FmaIsaNames();
  return std::find(names.begin(), names.end(), LastIsa()->name) != names.end();
}

AnyRows ViewOf(FormatRows* rows) {
  uint8_t* const parts[] = {rows->codes.data(), rows->scales.data()};
  size_t part = 0;
  return MapRows(rows->format, rows->rows, rows->cols,
                 [&](Type type, size_t num_rows, size_t cols) {
                   return AnyMatrix(static_cast<void*>(parts[part++]), type,
                                    num_rows, cols, cols);
                 });
}
ExpertTile TileOf(size_t expert, size_t first, const ConstAnyRows& rows,
                  const AnyMatrix& out) {
  return {
      ExpertProduct::kDown, static_cast<int32_t>(expert), first, 0, rows, out};
}
struct Packed {
  std::vector<uint8_t> memory;
  ExpertWeights weights;

  explicit Packed(const ExpertWeights& stored,
                  Executor& executor = SerialExecutor())
      : memory(stored.data.rows * PackedWeightsSize(stored), 0xCD) {
    EXPECT_OK(PackWeights(
        {stored},
        {{memory.data(), stored.data.rows, PackedWeightsSize(stored)},
         &weights},
        {}, executor));
  }
};

// Draws a product: its formats, its sizes and the columns to compute.
struct ProductCase {
  WeightFormat format;
  Format operands;
  size_t rows, cols, num_rows, first, count;

  explicit ProductCase(Random& random) {
    format = kWeightFormats[random.Below(std::size(kWeightFormats))];
    do {
      operands = kProductRows[random.Below(std::size(kProductRows))];
    } while (!Takes(format, operands));
    const size_t step = ColumnsStep(format, operands);
    cols = step * (1 + random.Below(step == 1 ? 300 : step == 32 ? 18 : 4));
    rows = 1 + random.Below(70);
    num_rows = random.Below(3) != 0 ? 1 + random.Below(13) : random.Below(110);
    first = 16 * random.Below((rows + 15) / 16);
    count = 1 + random.Below(rows - first);
  }
};

void ExpectProduct(const std::vector<float>& values,
                   const NaiveProduct& expected) {
  ASSERT_EQ(values.size(), expected.values.size());
  if (HasFma()) {
    ASSERT_EQ(CanonicalBits(values), CanonicalBits(expected.values));
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected.values[i])) {
      ASSERT_TRUE(std::isnan(values[i])) << i;
    } else if (std::isfinite(expected.values[i]) &&
               std::isfinite(expected.bounds[i]) &&
               expected.bounds[i] < 1e30f) {
      // The bounds hold only if no intermediate result overflows.
      ASSERT_NEAR(values[i], expected.values[i], expected.bounds[i]) << i;
    }
  }
}

// Products equal the header's formulas for any codes, with stored weights and
// with packed weights.
TEST_P(ExpertWeightsTest, EqualsTheFormulas) {
  Random random(1);
  for (int i = 0; i < 150; ++i) {
    const ProductCase c(random);
    SCOPED_TRACE(testing::Message()
                 << i << ": " << calls::NameOf(c.format) << ", "
                 << c.operands.name << ", " << c.num_rows << " x " << c.cols
                 << " x " << c.rows << ", columns " << c.first << " + "
                 << c.count);
    const auto seed = static_cast<uint32_t>(10 * i);
    const bool any = i % 4 == 0;
    const WeightBytes stored =
        RandomWeights(c.format, 2, c.rows, c.cols, seed, any);
    FormatRows rows = RandomOperands(c.operands, c.num_rows, c.cols, seed + 2,
                                     any, i % 3 == 0 ? -128 : -127);
    const NaiveProduct expected =
        MultiplyNaively(stored.View(), 1, ViewOf(&rows), c.first, c.count);
    const Packed packed(stored.View());
    for (const ExpertWeights& weights : {stored.View(), packed.weights}) {
      std::vector<float> out(c.num_rows * c.count, -1.0f);
      ASSERT_OK(MultiplyTile(
          weights, TileOf(1, c.first, ViewOf(&rows),
                          Matrix<float>(out.data(), c.num_rows, c.count))));
      if (c.num_rows != 0) ExpectProduct(out, expected);
    }
  }
}

// A product may be cut at any row and column, and its bits do not change.
// With packed weights, a part begins at a multiple of 16 columns.
TEST_P(ExpertWeightsTest, BitsAreThoseOfAnyCut) {
  Random random(2);
  for (const WeightFormat format : kWeightFormats) {
    const size_t rows = 83, num_rows = 61;
    const Format f = ProductRowsOf(format);
    const size_t cols = ColumnsStep(format, f) == 256 ? 768 : 352;
    const WeightBytes stored = RandomWeights(format, 1, rows, cols, 7, false);
    FormatRows operands = RandomOperands(f, num_rows, cols, 8, false);
    const ConstAnyRows view = ViewOf(&operands);
    const Packed packed(stored.View());
    std::vector<float> whole(num_rows * rows);
    const Matrix<float> all(whole.data(), num_rows, rows);
    ASSERT_OK(MultiplyTile(packed.weights, TileOf(0, 0, view, all)));
    for (int i = 0; i < 60; ++i) {
      const bool is_packed = i % 2 == 0;
      size_t first = random.Below(rows);
      if (is_packed) first = first / 16 * 16;
      const size_t count = 1 + random.Below(rows - first);
      const size_t begin = random.Below(num_rows);
      const size_t end = begin + 1 + random.Below(num_rows - begin);
      const size_t stride = count + random.Below(5);
      std::vector<float> part((end - begin) * stride, -1.0f);
      ASSERT_OK(MultiplyTile(
          is_packed ? packed.weights : stored.View(),
          TileOf(0, first, view.RowRange(begin, end),
                 Matrix<float>(part.data(), end - begin, count, stride))));
      for (size_t r = begin; r < end; ++r) {
        for (size_t c = 0; c < stride; ++c) {
          const float expected = c < count ? all.Row(r)[first + c] : -1.0f;
          ASSERT_EQ(Bits(part[(r - begin) * stride + c]), Bits(expected))
              << r << ", " << first + c;
        }
      }
    }
  }
}

// All ISAs with FMA run the same operations in the same order. So they give
// the same results, even if scales have random bits.
TEST(ExpertWeightsBits, AreThoseOfAnyIsa) {
  for (const WeightFormat format : kWeightFormats) {
    const WeightBytes stored = RandomWeights(format, 1, 64, 2048, 3, true);
    for (const Format& f : kProductRows) {
      if (!Takes(format, f)) continue;
      FormatRows operands = RandomOperands(f, 9, 2048, 5, true);
      ExpectFmaIsasAgree([&] {
        std::vector<float> out(9 * 64);
        EXPECT_OK(MultiplyTile(
            stored.View(),
            TileOf(0, 0, ViewOf(&operands), Matrix<float>(out.data(), 9, 64))));
        return CanonicalBits(out);
      });
    }
  }
}

// The longest rows of int8 reach the largest sums that fit in int32.
TEST_P(ExpertWeightsTest, TheLongestRowsAreExact) {
  const size_t cols = 131071;
  WeightBytes stored =
      RandomWeights(WeightFormat::kInt8, 1, 17, cols, 1, false);
  std::fill(stored.data.begin(), stored.data.end(), uint8_t{128});  // -128
  FormatRows operands = RandomOperands(kProductRows[0], 3, cols, 2, false);
  std::fill(operands.codes.begin(), operands.codes.end(), uint8_t{127});
  std::fill_n(operands.codes.begin(), cols, uint8_t{128});
  const NaiveProduct expected =
      MultiplyNaively(stored.View(), 0, ViewOf(&operands), 0, 17);
  const Packed packed(stored.View());
  for (const ExpertWeights& weights : {stored.View(), packed.weights}) {
    std::vector<float> out(3 * 17);
    ASSERT_OK(MultiplyTile(weights, TileOf(0, 0, ViewOf(&operands),
                                           Matrix<float>(out.data(), 3, 17))));
    EXPECT_EQ(CanonicalBits(out), CanonicalBits(expected.values));
  }
  stored.cols = cols + 1;
  EXPECT_EQ(ExpertWeightsSize(stored.View()), SIZE_MAX);
}

// The definition reads the same bytes through a view that the test made.
TEST(StoredWeightsTest, ViewsDenseWeights) {
  for (const WeightFormat format : kWeightFormats) {
    SCOPED_TRACE(calls::NameOf(format));
    const WeightBytes stored = RandomWeights(format, 3, 18, 512, 1, false);
    const ExpertWeights wanted = stored.View();
    const ExpertWeights view =
        StoredWeights(format, stored.data.data(), 3, 18, 512);
    EXPECT_EQ(view.format, format);
    EXPECT_EQ(view.layout, WeightLayout::kStored);
    EXPECT_EQ(view.rows, 18u);
    EXPECT_EQ(view.cols, 512u);
    EXPECT_EQ(view.data.data, wanted.data.data);
    EXPECT_EQ(view.data.type, Type::kU8);
    EXPECT_EQ(view.data.rows, 3u);
    EXPECT_EQ(view.data.cols, wanted.data.cols);
    EXPECT_EQ(view.data.stride, wanted.data.stride);
    EXPECT_EQ(view.scales.data, nullptr);
  }
}

// bf16 and f16 outputs are the f32 sums, rounded once to nearest even.
TEST_P(ExpertWeightsTest, WritesEveryFloat) {
  const WeightBytes stored =
      RandomWeights(WeightFormat::kQ4_0, 1, 50, 64, 1, false);
  FormatRows operands = RandomOperands(kProductRows[1], 5, 64, 2, false);
  std::vector<float> sums(5 * 50);
  ASSERT_OK(MultiplyTile(
      stored.View(),
      TileOf(0, 0, ViewOf(&operands), Matrix<float>(sums.data(), 5, 50))));
  for (const Type type : {Type::kBF16, Type::kF16}) {
    std::vector<uint16_t> out(5 * 50);
    ASSERT_OK(MultiplyTile(
        stored.View(),
        TileOf(0, 0, ViewOf(&operands),
               AnyMatrix(static_cast<void*>(out.data()), type, 5, 50, 50))));
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(WidenAt(type, out.data(), i), Rounded(type, sums[i])) << i;
    }
  }
}

// If a scale is NaN, the outputs that use it are NaN, and no others.
TEST_P(ExpertWeightsTest, NaNScalesAreNotHidden) {
  for (const WeightFormat format : kWeightFormats) {
    SCOPED_TRACE(calls::NameOf(format));
    const StoredFormat f = StoredFormatOf(format);
    const size_t cols = 3 * f.block;
    WeightBytes stored = RandomWeights(format, 1, 40, cols, 1, false);
    // Sets one scale of row 21 to NaN: the scale of its last block, or its
    // only scale.
    uint8_t* const block = &stored.data[0] + (21 * 3 + 2) * f.bytes;
    const Float16 nan = {0x7E01};
    switch (format) {
      case WeightFormat::kInt8:
        stored.scales[21] = kNaN;
        break;
      case WeightFormat::kMXFP4:
        *block = 255;
        break;
      case WeightFormat::kQ6_K:
        std::memcpy(block + 208, &nan, sizeof(nan));
        break;
      case WeightFormat::kF32:
      case WeightFormat::kBF16:
      case WeightFormat::kF16:
        RoundAt(FloatTypeOf(format), kNaN, stored.data.data(), 21 * cols + 5);
        break;
      default:
        std::memcpy(block, &nan, sizeof(nan));
    }
    const Format rows_format = ProductRowsOf(format);
    FormatRows operands = RandomOperands(rows_format, 7, cols, 2, false);
    // Row 3 of the operands has codes of 0 and a NaN scale. So only the scale
    // can make the outputs of row 3 NaN.
    const size_t row_bytes = operands.codes.size() / 7;
    std::memset(&operands.codes[3 * row_bytes], 0, row_bytes);
    if (IsFloatFormat(format)) {
      RoundAt(rows_format.type, kNaN, operands.codes.data(), 3 * cols + 40);
    } else if (rows_format.type == Type::kQ8_K) {
      std::memcpy(&operands.codes[3 * row_bytes + sizeof(BlockQ8_K)], &kNaN,
                  sizeof(kNaN));
    } else {
      const size_t groups = rows_format.NumScales(cols);
      std::memcpy(&operands.scales[(3 * groups + groups / 2) * 4], &kNaN,
                  sizeof(kNaN));
    }
    std::vector<float> out(7 * 40);
    ASSERT_OK(MultiplyTile(
        stored.View(),
        TileOf(0, 0, ViewOf(&operands), Matrix<float>(out.data(), 7, 40))));
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(std::isnan(out[i]), i / 40 == 3 || i % 40 == 21) << i;
    }
  }
}

// Tests all 256 e8m0 scales.
TEST_P(ExpertWeightsTest, TakesEveryPowerOfTwo) {
  WeightBytes stored =
      RandomWeights(WeightFormat::kMXFP4, 1, 256, 32, 1, false);
  for (size_t i = 0; i < 256; ++i) {
    stored.data[17 * i] = static_cast<uint8_t>(i);
    stored.data[17 * i + 1] = 7;  // 6
  }
  FormatRows operands = RandomOperands(kProductRows[1], 1, 32, 2, false);
  std::fill(operands.codes.begin(), operands.codes.end(), uint8_t{0});
  operands.codes[0] = 1;
  for (const float dx : {1.0f, 0x1p-20f, 0x1p20f}) {
    std::memcpy(operands.scales.data(), &dx, sizeof(dx));
    std::vector<float> out(256);
    ASSERT_OK(MultiplyTile(
        stored.View(),
        TileOf(0, 0, ViewOf(&operands), Matrix<float>(out.data(), 1, 256))));
    for (int i = 0; i < 255; ++i) {
      // Half the scale, which may be denormal, is multiplied by twice the
      // code.
      const float scale = std::ldexp(1.0f, i - 128) * dx;
      ASSERT_EQ(out[static_cast<size_t>(i)], 12.0f * scale) << i;
    }
    ASSERT_TRUE(std::isnan(out[255]));
  }
}

// Tests the largest integers: scales and codes have their largest values.
TEST_P(ExpertWeightsTest, TheLargestCodesAreExact) {
  Random random(8);
  for (const WeightFormat format : kWeightFormats) {
    if (IsFloatFormat(format)) continue;
    SCOPED_TRACE(calls::NameOf(format));
    for (int i = 0; i < 40; ++i) {
      const StoredFormat f = StoredFormatOf(format);
      const size_t cols = 2 * f.block, rows = 20;
      WeightBytes stored = RandomWeights(format, 1, rows, cols, 1, false);
      const uint8_t extremes[] = {0x00, 0xFF, 0x80, 0x7F, 0x0F, 0xF0};
      const uint8_t fill = extremes[random.Below(6)];
      const uint8_t scale = extremes[random.Below(6)];
      for (size_t at = 0; at < stored.data.size(); ++at) {
        const size_t in_block = at % f.bytes;
        const bool is_code =
            in_block >= f.codes_at && in_block < f.codes_at + f.codes;
        const bool is_factor =
            (format == WeightFormat::kQ4_K && in_block >= 4) ||
            (format == WeightFormat::kQ6_K && in_block < 208);
        if (is_code) {
          stored.data[at] = fill;
        } else if (is_factor) {
          stored.data[at] = scale;
        }
      }
      FormatRows operands =
          RandomOperands(ProductRowsOf(format), 9, cols, 2, false);
      const bool is_block = operands.format.type == Type::kQ8_K;
      for (size_t at = 0; at < operands.codes.size(); ++at) {
        if (is_block && at % sizeof(BlockQ8_K) < 4) continue;
        operands.codes[at] = at / cols % 3 == 0 ? 0x80 : extremes[i % 6];
      }
      const NaiveProduct expected =
          MultiplyNaively(stored.View(), 0, ViewOf(&operands), 0, rows);
      const Packed packed(stored.View());
      for (const ExpertWeights& weights : {stored.View(), packed.weights}) {
        std::vector<float> out(9 * rows);
        ASSERT_OK(
            MultiplyTile(weights, TileOf(0, 0, ViewOf(&operands),
                                         Matrix<float>(out.data(), 9, rows))));
        ExpectProduct(out, expected);
      }
    }
  }
}

// Products read and write no byte outside the views, at any alignment.
TEST_P(ExpertWeightsTest, StaysInsideItsViews) {
  Random random(3);
  for (size_t i = 0; i < 40; ++i) {
    const ProductCase c(random);
    SCOPED_TRACE(i);
    const WeightBytes bytes =
        RandomWeights(c.format, 1, c.rows, c.cols, 1, false);
    FormatRows operands =
        RandomOperands(c.operands, c.num_rows, c.cols, 2, false);
    const NaiveProduct expected =
        MultiplyNaively(bytes.View(), 0, ViewOf(&operands), c.first, c.count);
    const Guarded<uint8_t> data(bytes.data, i % 4);
    const Guarded<float> scales(bytes.scales);
    ExpertWeights stored = bytes.View();
    stored.data = {data.data(), 1, bytes.data.size()};
    if (!bytes.scales.empty()) stored.scales = {scales.data(), 1, c.rows};
    const Guarded<uint8_t> codes(operands.codes);
    const Guarded<uint8_t> row_scales(operands.scales);
    AnyRows rows = ViewOf(&operands);
    rows.data = codes.data();
    if (!operands.scales.empty()) rows.scales.data = row_scales.data();
    const size_t packed_size = PackedWeightsSize(stored);
    const Guarded<uint8_t> memory(1, packed_size, 0, i % 3);
    ExpertWeights packed;
    ASSERT_OK(
        PackWeights({stored}, {{memory.data(), 1, packed_size}, &packed}));
    memory.ExpectIntact("memory");
    EXPECT_EQ(memory.Values(), PackNaively(stored, 0));
    for (const ExpertWeights& weights : {stored, packed}) {
      const Guarded<float> out(c.num_rows, c.count, c.count + i % 3, i % 4);
      ASSERT_OK(MultiplyTile(weights, TileOf(0, c.first, rows, out.view())));
      out.ExpectIntact("out");
      if (c.num_rows != 0) ExpectProduct(out.Values(), expected);
    }
  }
}

// Packing gives the bytes of the layout that the header defines, on any
// executor.
TEST_P(ExpertWeightsPoolTest, PacksByteByByte) {
  Random random(4);
  for (const WeightFormat format : kWeightFormats) {
    for (int i = 0; i < 6; ++i) {
      const size_t step = ColumnsStep(format, ProductRowsOf(format));
      const size_t cols = step * (1 + random.Below(640 / step + step % 2));
      const size_t rows = 1 + random.Below(90);
      const WeightBytes stored =
          RandomWeights(format, 5, rows, cols, static_cast<uint32_t>(i), true);
      const Packed packed(stored.View(), executor());
      std::vector<uint8_t> expected;
      for (size_t e = 0; e < 5; ++e) {
        const std::vector<uint8_t> one = PackNaively(stored.View(), e);
        expected.insert(expected.end(), one.begin(), one.end());
      }
      ASSERT_EQ(packed.memory, expected)
          << calls::NameOf(format) << ", " << rows << " x " << cols;
      EXPECT_EQ(packed.weights.layout, WeightLayout::kPacked);
    }
  }
}

// Floats are quantised as the header defines, and then packed.
TEST_P(ExpertWeightsPoolTest, QuantizesFloats) {
  Random random(5);
  for (const WeightFormat format : kWeightFormats) {
    for (const Type type : {Type::kF32, Type::kBF16, Type::kF16}) {
      const bool is_int8 = format == WeightFormat::kInt8;
      const size_t step = ColumnsStep(format, ProductRowsOf(format));
      const size_t rows = 1 + random.Below(40);
      const size_t cols = step * (1 + random.Below(960 / step));
      std::vector<float> values = random.Uniforms(2 * rows * cols, -2, 2);
      // Sets zeros, ties, and one NaN or infinity.
      std::fill_n(values.begin(), std::min<size_t>(cols, 40), -0.0f);
      values[cols * rows - 1] = random.Below(2) != 0 ? kNaN : -kInf;
      for (size_t i = cols; i < 2 * cols && i < values.size(); ++i) {
        values[i] = static_cast<float>(static_cast<int>(i % 17) - 8) / 2;
      }
      // Values have all magnitudes, so that scales also overflow and
      // underflow.
      for (size_t i = 0; i < cols; ++i) {
        const float any = AnyFloat(7, i);
        // Gives all NaNs the same payload, because the expected bytes need it.
        const float f = std::isnan(any) ? kNaN : any;
        const float size =
            std::ldexp(1.0f, static_cast<int>(i / 256 * 40) - 90);
        values[values.size() - 1 - i] = i < 768 ? values[i] * size : f;
      }
      values = Rounded(type, values);
      std::vector<uint8_t> memory(values.size() * SizeOf(type));
      for (size_t i = 0; i < values.size(); ++i) {
        RoundAt(type, values[i], memory.data(), i);
      }
      WeightBytes expected;
      expected.format = format;
      expected.num_experts = 2;
      expected.rows = rows;
      expected.cols = cols;
      const ConstAnyMatrix floats(static_cast<const void*>(memory.data()), type,
                                  2 * rows, cols, cols);
      if (!is_int8 && format != WeightFormat::kQ8_0) {
        expected.data = QuantizeWeightsNaively(format, values);
      } else {
        FormatRows coded(kProductRows[is_int8 ? 0 : 4], 2 * rows, cols);
        ASSERT_OK(Quantize({floats}, {ViewOf(&coded)}));
        expected.data = coded.codes;
        expected.scales.resize(coded.scales.size() / sizeof(float));
        if (is_int8) {
          std::memcpy(expected.scales.data(), coded.scales.data(),
                      coded.scales.size());
        }
      }
      ExpertWeights shape;
      shape.format = format;
      shape.rows = rows;
      shape.cols = cols;
      const size_t size = PackedWeightsSize(shape);
      std::vector<uint8_t> packed(2 * size);
      ASSERT_OK(PackWeights({shape, floats}, {{packed.data(), 2, size}}, {},
                            executor()));
      const Packed as_expected(expected.View());
      ASSERT_EQ(packed, as_expected.memory)
          << calls::NameOf(format) << ", type " << static_cast<int>(type)
          << ", " << rows << " x " << cols;
    }
  }
}

// Flush-to-zero on the calling thread changes no bit.
TEST_P(ExpertWeightsTest, RunsInTheDefaultFloatingPointEnvironment) {
  const WeightBytes stored =
      RandomWeights(WeightFormat::kQ8_0, 1, 16, 64, 1, false);
  FormatRows operands = RandomOperands(kProductRows[1], 2, 64, 2, false);
  for (size_t i = 0; i < operands.scales.size(); i += 4) {
    std::memcpy(&operands.scales[i], &kDenormal, sizeof(kDenormal));
  }
  const NaiveProduct expected =
      MultiplyNaively(stored.View(), 0, ViewOf(&operands), 0, 16);
  std::vector<float> out(2 * 16);
  {
    const ScopedFlushToZero flush;
    ASSERT_OK(MultiplyTile(
        stored.View(),
        TileOf(0, 0, ViewOf(&operands), Matrix<float>(out.data(), 2, 16))));
  }
  ExpectProduct(out, expected);
  EXPECT_NE(out[0], 0.0f);
}

// Tests a layer that multiplies by MultiplyLayer(), without a GEMM of the
// caller. Each row of a batch has the same bits as if it were computed alone,
// for any tiling, executor and layout.
class ExpertWeightsLayer : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(ExpertWeightsLayer);

TEST_P(ExpertWeightsLayer, RowsOfABatchAreRowsAlone) {
  const size_t experts = 6, top_k = 2, tokens = 64;
  for (const WeightFormat format : kWeightFormats) {
    SCOPED_TRACE(calls::NameOf(format));
    const bool is_super = StoredFormatOf(format).block == 256;
    const size_t hidden = is_super ? 512 : 96;
    const size_t intermediate = is_super ? 256 : 64;
    const WeightBytes gate =
        RandomWeights(format, experts, intermediate, hidden, 1, false);
    const WeightBytes up =
        RandomWeights(format, experts, intermediate, hidden, 3, false);
    const WeightBytes down =
        RandomWeights(format, experts, hidden, intermediate, 5, false);
    const WeightBytes shared_both =
        RandomWeights(format, 1, 2 * intermediate, hidden, 7, false);
    const WeightBytes shared_down =
        RandomWeights(format, 1, hidden, intermediate, 9, false);
    const Packed packed_gate(gate.View()), packed_down(down.View());
    LayerWeights layer;
    layer.gate = packed_gate.weights;
    layer.up = up.View();
    layer.down = packed_down.weights;
    layer.shared_gate_up = shared_both.View();
    layer.shared_down = shared_down.View();
    Random random(6);
    const std::vector<float> x = random.Uniforms(tokens * hidden, -1, 1);
    const std::vector<float> weights = random.Uniforms(tokens * top_k, 0, 1);
    std::vector<int32_t> ids;
    for (size_t t = 0; t < tokens; ++t) {
      const size_t first = random.Below(experts);
      ids.push_back(static_cast<int32_t>(first));
      ids.push_back(
          static_cast<int32_t>((first + 1 + random.Below(5)) % experts));
    }
    const auto run = [&](size_t begin, size_t end, size_t workers,
                         Executor& pool) {
      const size_t n = end - begin;
      ExpertsPlanOptions shape;
      shape.num_experts = experts;
      shape.hidden = hidden;
      shape.intermediate = shape.shared_intermediate = intermediate;
      shape.workers = workers;
      shape.least_cost = 0;
      std::vector<int32_t> memory(ExpertsPlanSize(n, top_k, shape));
      ExpertsPlan plan;
      EXPECT_OK(PlanExperts({{ids.data() + begin * top_k, n, top_k}},
                            {memory, &plan}, shape));
      ExpertsOptions options;
      options.operands = OperandsOf(format);
      options.activate.layout = GateUpLayout::kSplit;
      std::vector<int32_t> scratch(
          ExpertsScratchSize(plan, options, pool.Concurrency()));
      ExpertsInputs in;
      in.plan = &plan;
      in.hidden = ConstAnyMatrix(x.data() + begin * hidden, n, hidden);
      in.combine.topk_weights = {weights.data() + begin * top_k, n, top_k};
      in.combine.shared.kind = SharedGate::kNone;
      in.scratch = scratch;
      std::vector<float> out(n * hidden);
      EXPECT_OK(RunExperts(in, {Matrix<float>(out.data(), n, hidden)}, options,
                           layer, pool));
      return out;
    };
    const std::vector<float> batch = run(0, tokens, 1, SerialExecutor());
    ASSERT_NE(batch[0], 0.0f);
    for (const size_t workers : {2u, 7u, 64u}) {
      ASSERT_EQ(CanonicalBits(run(0, tokens, workers, executor())),
                CanonicalBits(batch));
    }
    for (size_t t = 0; t < tokens; t += 9) {
      const std::vector<float> row(&batch[t * hidden],
                                   &batch[t * hidden] + hidden);
      ASSERT_EQ(CanonicalBits(run(t, t + 1, 5, executor())), CanonicalBits(row))
          << t;
    }
  }
}

// ---- Tests of errors.

TEST(MultiplyTileErrors, NameTheArgument) {
  const WeightBytes bytes =
      RandomWeights(WeightFormat::kQ8_0, 2, 40, 64, 1, false);
  const WeightBytes int8 =
      RandomWeights(WeightFormat::kInt8, 2, 40, 64, 1, false);
  const Packed packed(bytes.View());
  FormatRows operands = RandomOperands(kProductRows[1], 3, 64, 2, false);
  std::vector<float> out(3 * 40, 5.0f);
  struct Call {
    ExpertWeights weights;
    ExpertTile tile;
  };
  const auto expect = [&](const char* message, auto spoil) {
    Call c = {bytes.View(), TileOf(1, 0, ViewOf(&operands),
                                   Matrix<float>(out.data(), 3, 40))};
    ASSERT_OK(MultiplyTile(c.weights, c.tile));
    std::fill(out.begin(), out.end(), 5.0f);
    spoil(c);
    ExpectError(MultiplyTile(c.weights, c.tile),
                std::string("MultiplyTile: ") + message);
    EXPECT_EQ(out, std::vector<float>(out.size(), 5.0f)) << message;
  };
  const char* const weights =
      "weights: format, layout, rows or cols is out of range";
  expect(weights,
         [](Call& c) { c.weights.format = static_cast<WeightFormat>(99); });
  expect(weights,
         [](Call& c) { c.weights.layout = static_cast<WeightLayout>(9); });
  expect(weights, [](Call& c) { c.weights.rows = 0; });
  expect(weights, [](Call& c) { c.weights.cols = 0; });
  expect(weights, [](Call& c) { c.weights.cols = 33; });
  expect(weights, [](Call& c) { c.weights.cols = 131104; });
  expect(weights, [](Call& c) { c.weights.rows = SIZE_MAX / 2; });
  const char* const data =
      "weights.data: is not uint8 [num_experts, ExpertWeightsSize]";
  expect("weights.data: data is null",
         [](Call& c) { c.weights.data.data = nullptr; });
  expect(data, [](Call& c) { c.weights.data.type = Type::kI8; });
  expect(data, [](Call& c) { --c.weights.data.cols; });
  expect("weights.data: stride is smaller than cols",
         [](Call& c) { --c.weights.data.stride; });
  // A negative stride becomes a huge one.
  expect("weights.data: size overflows the address space",
         [](Call& c) { c.weights.data.stride = -c.weights.data.stride; });
  expect(data, [](Call& c) { c.weights.layout = WeightLayout::kPacked; });
  const char* const scales =
      "weights.scales: is not f32 [num_experts, weights.rows]";
  expect("weights.scales: data is null", [&](Call& c) {
    c.weights = int8.View();
    c.weights.scales.data = nullptr;
  });
  expect("weights.scales: stride is smaller than cols", [&](Call& c) {
    c.weights = int8.View();
    --c.weights.scales.stride;
  });
  expect("weights.scales: size overflows the address space", [&](Call& c) {
    c.weights = int8.View();
    c.weights.scales.stride = -c.weights.scales.stride;
  });
  expect(scales, [&](Call& c) {
    c.weights = int8.View();
    c.weights.scales.type = Type::kBF16;
  });
  expect(scales, [&](Call& c) {
    c.weights = int8.View();
    c.weights.scales.rows = 1;
  });
  expect(scales, [&](Call& c) {
    c.weights = int8.View();
    c.weights.scales.cols = 39;
  });
  const char* const expert = "tile.expert: is not one of weights";
  expect(expert, [](Call& c) { c.tile.expert = 2; });
  expect(expert, [](Call& c) { c.tile.expert = -2; });
  expect("weights.data: needs exactly one expert for the shared expert's tile",
         [](Call& c) { c.tile.expert = ExpertTile::kShared; });
  const char* const rows =
      "tile.rows: is neither q8_0 nor i8 with f32 scales: set "
      "ExpertsOptions::operands, or down_operands, to OperandsOf(format)";
  const char* const super_rows =
      "tile.rows: is neither q8_k nor i8 with an f32 scale of each row: set "
      "ExpertsOptions::operands, or down_operands, to OperandsOf(format)";
  const WeightBytes q4_k =
      RandomWeights(WeightFormat::kQ4_K, 2, 40, 256, 1, false);
  FormatRows many = RandomOperands(kProductRows[1], 3, 256, 2, false);
  const WeightBytes bf16 =
      RandomWeights(WeightFormat::kBF16, 2, 40, 64, 1, false);
  expect(
      "tile.rows: is not f32, bf16 or f16: set ExpertsOptions::operands, or "
      "down_operands, to "
      "OperandsOf(format)",
      [&](Call& c) { c.weights = bf16.View(); });
  expect(super_rows, [&](Call& c) {
    c.weights = q4_k.View();
    c.tile.rows = ViewOf(&many);
  });
  expect(rows, [](Call& c) {
    c.tile.rows = {c.tile.rows.data, Type::kQ8_K, 3, 0, 0};
  });
  expect(weights, [&](Call& c) {
    c.weights = q4_k.View();
    c.weights.cols = 32;
  });
  expect(rows, [](Call& c) { c.tile.rows.type = Type::kU8; });
  expect(rows, [](Call& c) { c.tile.rows.type = Type::kF32; });
  expect(rows, [](Call& c) { c.tile.rows.scales = {}; });
  expect(rows, [](Call& c) { c.tile.rows.scales.cols = 5; });
  expect("tile.rows: data is null",
         [](Call& c) { c.tile.rows.data = nullptr; });
  expect("tile.rows: stride is smaller than cols",
         [](Call& c) { --c.tile.rows.stride; });
  expect("tile.rows: size overflows the address space",
         [](Call& c) { c.tile.rows.stride = -c.tile.rows.stride; });
  expect(rows, [](Call& c) { c.tile.rows.scales.rows = 2; });
  expect("tile.rows: is not [rows, weights.cols]", [](Call& c) {
    c.tile.rows.cols = 32;
    c.tile.rows.scales.cols = 1;
  });
  const char* const outputs =
      "tile.out: is not f32, bf16 or f16 [rows, columns]";
  expect(outputs, [](Call& c) { c.tile.out.rows = 2; });
  expect(outputs, [](Call& c) { c.tile.out.type = Type::kI32; });
  expect("tile.out: stride is smaller than cols",
         [](Call& c) { c.tile.out.stride = 39; });
  expect("tile.out: data is null", [](Call& c) { c.tile.out.data = nullptr; });
  expect("tile.out: size overflows the address space",
         [](Call& c) { c.tile.out.stride = -c.tile.out.stride; });
  const char* const columns =
      "tile.first_column: with tile.out.cols exceeds weights.rows";
  expect(columns, [](Call& c) { c.tile.out.cols = c.tile.out.stride = 41; });
  expect(columns, [](Call& c) { c.tile.first_column = 1; });
  expect(columns, [](Call& c) { c.tile.first_column = SIZE_MAX; });
  expect("tile.out: overlaps tile.rows", [&](Call& c) {
    c.tile.out.data = operands.scales.data();
    c.tile.out.cols = c.tile.out.stride = 2;
  });
  expect(
      "tile.first_column: is not a multiple of 16, which packed weights need "
      "(ExpertsPlanOptions::tile_columns)",
      [&](Call& c) {
        c.weights = packed.weights;
        c.tile.first_column = 8;
        c.tile.out.cols = 16;
      });
}

TEST(LayerWeightsErrors, NameTheWeights) {
  ExpertTile tile = {};
  tile.product = static_cast<ExpertProduct>(7);
  ExpectError(LayerWeights()(tile),
              "LayerWeights: tile.product: is not a known ExpertProduct");
  const std::pair<ExpertProduct, std::string> products[] = {
      {ExpertProduct::kGateUp, "gate_up"},
      {ExpertProduct::kGate, "gate"},
      {ExpertProduct::kUp, "up"},
      {ExpertProduct::kDown, "down"}};
  for (const auto& [product, name] : products) {
    tile.product = product;
    tile.expert = 0;
    ExpectError(LayerWeights()(tile), "LayerWeights: " + name + ": not given");
    tile.expert = ExpertTile::kShared;
    ExpectError(LayerWeights()(tile),
                "LayerWeights: shared_" + name + ": not given");
  }
  const WeightBytes bytes =
      RandomWeights(WeightFormat::kQ8_0, 2, 40, 64, 1, false);
  FormatRows operands = RandomOperands(kProductRows[1], 3, 32, 2, false);
  const Status status =
      MultiplyTile(bytes.View(), TileOf(0, 0, ViewOf(&operands), {}));
  EXPECT_EQ(std::string(status.details()), "got 32, needs 64");
  // Through LayerWeights, the details begin with the weights' name.
  LayerWeights layer;
  layer.down = bytes.View();
  const Status named = layer(TileOf(0, 0, ViewOf(&operands), {}));
  EXPECT_STREQ(named.message(), status.message());
  EXPECT_STREQ(named.details(), "down: got 32, needs 64");
  FormatRows fine = RandomOperands(kProductRows[1], 3, 64, 2, false);
  EXPECT_STREQ(layer(TileOf(2, 0, ViewOf(&fine), {})).details(),
               "down: got 2 of 2 experts");
}

class PackWeightsErrors
    : public CallErrors<PackWeightsInputs, PackWeightsOutputs,
                        PackWeightsOptions> {
 protected:
  PackWeightsErrors()
      : CallErrors("PackWeights", PackWeights),
        stored_(RandomWeights(WeightFormat::kInt8, 3, 20, 40, 1, false)) {
    call_.in.weights = stored_.View();
    memory_.assign(3 * PackedWeightsSize(call_.in.weights), 0xCD);
    call_.out = {{memory_.data(), 3, memory_.size() / 3}, &weights_};
  }
  void ExpectUntouched() const override {
    EXPECT_EQ(memory_, std::vector<uint8_t>(memory_.size(), 0xCD));
    EXPECT_EQ(weights_.rows, 0u);
  }

  const WeightBytes stored_;
  std::vector<uint8_t> memory_;
  ExpertWeights weights_;
};

TEST_F(PackWeightsErrors, HoldsAnExecutorToItsContract) {
  class NoThreads final : public Executor {
   public:
    size_t Concurrency() const noexcept override { return 0; }
    Status ParallelFor(size_t, size_t, Body, void*) noexcept override {
      return Status();
    }
  } no_threads;
  EXPECT_EQ(Run(call_, no_threads).code(), StatusCode::kInvalidArgument);
  ExpectUntouched();
}
TEST_F(PackWeightsErrors, SpoiltCallsAreRefused) {
  ExpectSpoiltCallsAreRefused<calls::PackWeightsCall>();
  EXPECT_OK(Run(call_));
}
// The message leaves out sizes that the format does not determine.
TEST_F(PackWeightsErrors, ShowNoSizeThatIsNone) {
  for (int i = 0; i < 4; ++i) {
    Call c = call_;
    if (i == 0) c.in.weights.format = static_cast<WeightFormat>(31);
    if (i == 1) c.in.weights.cols = 131073;
    if (i == 2) c.in.weights.rows = SIZE_MAX / 64;
    if (i == 3) c.in.weights.rows = 0;
    const Status status = Run(c);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(status.details()).find(std::to_string(SIZE_MAX)),
              std::string::npos)
        << status.details();
  }
}
TEST_F(PackWeightsErrors, NameTheArgument) {
  EXPECT_ERROR("weights.format: is not a known WeightFormat",
               c.in.weights.format = static_cast<WeightFormat>(31));
  EXPECT_ERROR("weights.layout: is not kStored",
               c.in.weights.layout = WeightLayout::kPacked);
  EXPECT_ERROR("weights.rows: is 0", c.in.weights.rows = 0);
  const char* const cols =
      "weights.cols: is 0, not a multiple of the format's block, above 131071, "
      "or the size overflows because of weights.rows";
  EXPECT_ERROR(cols, c.in.weights.cols = 0);
  EXPECT_ERROR(cols, c.in.weights.cols = 131072);
  EXPECT_ERROR(cols, c.in.weights.rows = SIZE_MAX / 64);
  EXPECT_ERROR(cols, c.in.weights.format = WeightFormat::kQ8_0);
  const char* const data = "weights.data: give either weights.data or floats";
  EXPECT_ERROR(data, c.in.weights.data = {});
  const std::vector<float> floats(60 * 40);
  EXPECT_ERROR(data, c.in.floats = ConstAnyMatrix(floats.data(), 60, 40));
  const char* const scales =
      "weights.scales: only int8 data has scales, and needs them";
  EXPECT_ERROR(scales, c.in.weights.scales = {});
  EXPECT_ERROR(scales, c.in.weights.data = {},
               c.in.floats = ConstAnyMatrix(floats.data(), 60, 40));
  ExpectExecutorErrorsAreReported();
}

}  // namespace
}  // namespace switchyard::testing_support
