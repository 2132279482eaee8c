// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// bf16 and f16 from every float (SWITCHYARD_MATH_STRIDE says how many are left
// out, as in math_test.cc) and from all that lie next to a tie, and f32 from
// every code, on every ISA, against the reference; and the reference against
// the order of its codes.

#include <cmath>

#include "src/calls/names.h"
#include "switchyard/quantize.h"
#include "tests/float_sweep.h"
#include "tests/rows_case.h"

namespace switchyard::testing_support {
namespace {

using reference::SmallFloat;

struct Small {
  const SmallFloat& format;
  Type type;
};
// bf16 and f16 come first.
const std::vector<Small> kSmall = [] {
  std::vector<Small> all;
  for (const Type type : calls::kEnumerators<Type>) {
    const SmallFloat* const format = reference::SmallFloatOf(type);
    if (format != nullptr) all.push_back({*format, type});
  }
  return all;
}();

// Half way between neighbours, and the floats around.
std::vector<float> Ties(const SmallFloat& format) {
  std::vector<float> x;
  for (uint32_t code = 0; code <= format.largest; ++code) {
    const double low = format.Decode(code);
    // Behind the largest: where it would be if there were one.
    const double high = code < format.largest
                            ? format.Decode(code + 1)
                            : 2 * low - format.Decode(code - 1);
    const uint32_t tie = Bits(static_cast<float>((low + high) / 2));
    for (const uint32_t sign : {0u, 0x80000000u}) {
      for (uint32_t i = 0; i < 3; ++i)
        x.push_back(FromBits((tie + i - 1) | sign));
    }
  }
  return x;
}

TEST(ReferenceTest, RoundsToTheNearestCode) {
  for (const Small& small : kSmall) {
    const SmallFloat& f = small.format;
    SCOPED_TRACE(testing::Message() << f.mantissa_bits << " bits");
    // In the order of their codes, evenly spaced from one power of two on.
    ASSERT_EQ(f.Decode(0), 0.0f);
    for (uint32_t code = 0; code < f.largest; ++code) {
      const double low = f.Decode(code), high = f.Decode(code + 1);
      ASSERT_LT(low, high);
      const double tie = (low + high) / 2, step = high - low;
      ASSERT_EQ(f.Encode(low), code);
      ASSERT_EQ(f.Encode(tie), code + code % 2);
      ASSERT_EQ(f.Encode(tie - step / 4096), code);
      ASSERT_EQ(f.Encode(-(tie + step / 4096)), (code + 1) | f.sign);
    }
    ASSERT_EQ(f.Encode(-0.0), f.sign);
    ASSERT_EQ(f.Encode(f.Decode(f.largest)), f.largest);
    ASSERT_EQ(f.Encode(1e300), f.saturates ? f.largest : f.largest + 1);
    ASSERT_TRUE(std::isnan(f.Decode(f.Encode(kNaN))));
    ASSERT_EQ(std::isinf(f.Decode(f.largest + 1)), f.infinity);
  }
  // Well-known values of the formats.
  EXPECT_EQ(reference::kBF16.Decode(reference::kBF16.largest), 0x1.FEp127f);
  EXPECT_EQ(reference::kBF16.Decode(1), 0x1p-133f);
  EXPECT_EQ(reference::kF16.Decode(reference::kF16.largest), 65504.0f);
  EXPECT_EQ(reference::kF16.Decode(1), 0x1p-24f);
  EXPECT_EQ(reference::kF8E4M3.Decode(reference::kF8E4M3.largest), 448.0f);
  EXPECT_EQ(reference::kF8E4M3.Decode(1), 0x1p-9f);
  EXPECT_EQ(reference::kF8E5M2.Decode(reference::kF8E5M2.largest), 57344.0f);
  EXPECT_EQ(reference::kF8E5M2.Decode(1), 0x1p-16f);
}

TEST(ConvertTest, EveryFloat) {
  const ScopedIsa restores_the_cap(RunnableIsaNames().front());
  for (const Small& small : {kSmall[0], kSmall[1]}) {
    const SmallFloat& f = small.format;
    std::vector<uint16_t> right, y;
    SweepFloats(Ties(f), [&](const std::vector<float>& x) {
      right.clear();
      for (const float value : x) {
        right.push_back(static_cast<uint16_t>(f.Encode(value)));
      }
      for (const std::string& isa : RunnableIsaNames()) {
        EXPECT_OK(CapIsa(isa.c_str()));
        y.assign(x.size(), 0);
        const AnyMatrix out(y.data(), small.type, 1, y.size(), y.size());
        EXPECT_OK(Quantize({x}, {out}));
        EXPECT_EQ(LastIsa()->name, isa);
        for (size_t i = 0; i < x.size(); ++i) {
          if (y[i] == right[i]) continue;
          if (CanonicalBits(small.type, y[i]) == right[i]) continue;
          ADD_FAILURE() << isa << ": " << std::hexfloat << x[i] << " became "
                        << std::hex << y[i] << ", not " << right[i];
          return false;
        }
      }
      return !testing::Test::HasFailure();
    });
  }
}

class ConvertIsaTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(ConvertIsaTest);

TEST_P(ConvertIsaTest, EveryCode) {
  for (const Format& format : kFormats) {
    if (!format.IsSource() || format.type == Type::kF32) continue;
    SCOPED_TRACE(format.name);
    // A row for each scale, if there are any.
    const std::vector<float> scales = {1.0f,  0.0f, -3.0f, 1e-40f,
                                       3e38f, kInf, kNaN};
    const bool scaled = format.group != 0;
    const size_t cols = size_t{1} << 8 * SizeOf(format.type);
    FormatRows rows(format, scaled ? scales.size() : 1, cols);
    for (size_t i = 0; i < rows.rows * cols; ++i) {
      std::memcpy(&rows.codes[i * SizeOf(format.type)], &i,
                  SizeOf(format.type));
    }
    for (size_t i = 0; i * sizeof(float) < rows.scales.size(); ++i) {
      std::memcpy(&rows.scales[i * sizeof(float)],
                  &scales[i / format.NumScales(cols)], sizeof(float));
    }
    const GuardedRows in(rows, 0, 0);
    for (const Format& to : {kF32Rows, kFormats[1], kFormats[2]}) {
      if (to.type == format.type) continue;
      const GuardedRows out(to, rows.rows, cols, 0, 0);
      ASSERT_OK(Quantize({in.view()}, {out.view()}));
      ExpectSameRows(out.Values(), reference::Quantize(rows, to));
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
