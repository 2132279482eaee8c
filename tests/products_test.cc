// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes products with random weights, rows, scales, shapes, tilings and
// layouts, and compares each output with the definition on every ISA.
//
//   SWITCHYARD_PRODUCTS=10000000 build/release/tests/products_test
//
// This command compares that number of outputs in each format, and prints the
// counts. Without the variable, the test takes a second.
// SWITCHYARD_PRODUCTS_SEED draws other products.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "src/calls/expert_weights.h"
#include "switchyard/expert_weights.h"
#include "testing/floats.h"
#include "testing/reference_multiply.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

size_t NumberIn(const char* variable, size_t by_default) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return by_default;
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0') {
    ADD_FAILURE() << variable << " is no number: " << text;
    return by_default;
  }
  return static_cast<size_t>(number);
}

// Random weights in both layouts, stored and packed, and random rows.
struct Operands {
  Format row_format;
  size_t cols, num_outputs, num_rows, expert;
  bool any_scales;
  WeightBytes weights;
  FormatRows rows;
  std::vector<uint8_t> memory;
  ExpertWeights packed;

  // With `is_long`, there are one or two rows of about 13,000 columns.
  Operands(WeightFormat format, bool is_long, Random& random)
      : row_format(DrawRowFormat(format, random)),
        cols(DrawCols(ColumnsStep(format, row_format), is_long, random)),
        num_outputs(1 + random.Below(80)),
        num_rows(1 + random.Below(is_long                ? 2
                                  : random.Below(2) == 0 ? 13
                                                         : 90)),
        expert(random.Below(2)),
        any_scales(random.Below(4) == 0),
        weights(RandomWeights(format, 2, num_outputs, cols, Seed(random),
                              any_scales)),
        rows(RandomOperands(row_format, num_rows, cols, Seed(random),
                            any_scales, random.Below(2) == 0 ? -128 : -127)) {
    const size_t size = PackedWeightsSize(weights.View());
    memory.resize(2 * size);
    EXPECT_OK(
        PackWeights({weights.View()}, {{memory.data(), 2, size}, &packed}));
  }
  ConstAnyRows RowsView() {
    uint8_t* const parts[] = {rows.codes.data(), rows.scales.data()};
    size_t part = 0;
    return MapRows(
        row_format, num_rows, cols, [&](Type type, size_t r, size_t c) {
          return AnyMatrix(static_cast<void*>(parts[part++]), type, r, c, c);
        });
  }

 private:
  static Format DrawRowFormat(WeightFormat format, Random& random) {
    for (;;) {
      const Format& f = kProductRows[random.Below(std::size(kProductRows))];
      if (Takes(format, f)) return f;
    }
  }
  static size_t DrawCols(size_t step, bool is_long, Random& random) {
    if (is_long) return 13056 - step * random.Below(2);
    return step * (1 + random.Below(step == 1 ? 900 : step == 32 ? 30 : 6));
  }
  static uint32_t Seed(Random& random) {
    return static_cast<uint32_t>(random.Next() >> 42);
  }
};

// Counts the outputs on one ISA by their result.
struct Counts {
  size_t equal = 0;      // outputs that equal the definition
  size_t bounded = 0;    // without FMA: outputs within the bound
  size_t unbounded = 0;  // without FMA: an intermediate result overflowed
  size_t tiles = 0;
};

struct Named {
  WeightFormat format;
};
std::ostream& operator<<(std::ostream& os, Named named) {
  return os << calls::NameOf(named.format);
}
constexpr Named kNamedFormats[] = {
#define SWITCHYARD_NAMED(name, ...) {WeightFormat::name},
    SWITCHYARD_WEIGHT_FORMATS(SWITCHYARD_NAMED)
#undef SWITCHYARD_NAMED
};

class ProductsTest : public testing::TestWithParam<Named> {
 protected:
  // Computes the product in random tiles, each with stored or packed weights.
  void RunOnIsa(Operands& o, const NaiveProduct& wanted, bool fma,
                Random& random, Counts* counts) {
    const ConstAnyRows rows = o.RowsView();
    for (size_t r = 0; r < o.num_rows;) {
      const size_t row_end = r + 1 + random.Below(o.num_rows - r);
      for (size_t c = 0; c < o.num_outputs;) {
        const size_t count = 1 + random.Below(o.num_outputs - c);
        const bool is_packed = c % 16 == 0 && random.Below(2) != 0;
        const Type type = !fma || random.Below(4) != 0 ? Type::kF32
                          : random.Below(2) != 0       ? Type::kBF16
                                                       : Type::kF16;
        const size_t stride = count + random.Below(4);
        out_.assign((row_end - r) * stride, 0.0f);
        const AnyMatrix out(static_cast<void*>(out_.data()), type, row_end - r,
                            count, stride);
        ASSERT_OK(
            MultiplyTile(is_packed ? o.packed : o.weights.View(),
                         {ExpertProduct::kDown, static_cast<int32_t>(o.expert),
                          c, 0, rows.RowRange(r, row_end), out}));
        ++counts->tiles;
        for (size_t i = r; i < row_end; ++i) {
          for (size_t j = 0; j < count; ++j) {
            const size_t at = i * o.num_outputs + c + j;
            const float found =
                WidenAt(type, out_.data(), (i - r) * stride + j);
            ASSERT_NO_FATAL_FAILURE(Compare(found,
                                            Rounded(type, wanted.values[at]),
                                            wanted.bounds[at], fma, counts))
                << "row " << i << ", column " << c + j << ", "
                << (is_packed ? "packed" : "stored");
          }
        }
        c += count;
      }
      r = row_end;
    }
  }

 private:
  static void Compare(float found, float wanted, float bound, bool fma,
                      Counts* counts) {
    if (CanonicalBits(found) == CanonicalBits(wanted)) {
      ++counts->equal;
      return;
    }
    ASSERT_FALSE(fma) << found << " is not " << wanted;
    if (!std::isfinite(wanted) || !(bound < 1e30f)) {
      ++counts->unbounded;
      return;
    }
    ASSERT_NEAR(found, wanted, bound);
    ++counts->bounded;
  }

  std::vector<float> out_;
};
INSTANTIATE_TEST_SUITE_P(Formats, ProductsTest,
                         testing::ValuesIn(kNamedFormats),
                         testing::PrintToStringParamName());

TEST_P(ProductsTest, EqualTheDefinition) {
  const WeightFormat format = GetParam().format;
  const size_t least = NumberIn("SWITCHYARD_PRODUCTS", 20000);
  const size_t seed = NumberIn("SWITCHYARD_PRODUCTS_SEED", 1);
  Random random(100 * seed + static_cast<size_t>(format));
  std::map<std::string, Counts> counts;
  size_t outputs = 0, products = 0;
  for (; outputs < least; ++products) {
    Operands o(format, products < 4, random);
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ", product " << products << ": "
                 << o.num_rows << " rows of " << o.row_format.name << ", "
                 << o.cols << " columns, " << o.num_outputs << " outputs"
                 << (o.any_scales ? ", any scales" : ""));
    const NaiveProduct wanted = MultiplyNaively(o.weights.View(), o.expert,
                                                o.RowsView(), 0, o.num_outputs);
    for (const Isa& isa : RunnableIsas()) {
      const ScopedIsa scoped(isa.name);
      RunOnIsa(o, wanted, isa.fma, random, &counts[isa.name]);
      if (HasFailure()) return;
      ASSERT_STREQ(LastIsa()->name, isa.name);
    }
    outputs += wanted.values.size();
  }
  std::printf("%s, seed %zu: %zu outputs of %zu products\n",
              calls::NameOf(format), seed, outputs, products);
  for (const Isa& isa : RunnableIsas()) {
    const Counts& c = counts[isa.name];
    EXPECT_EQ(c.equal + c.bounded + c.unbounded, outputs);
    std::printf("  %-8s %zu tiles: %zu equal to the definition", isa.name,
                c.tiles, c.equal);
    if (!isa.fma) {
      std::printf(", %zu within the bound, %zu with an overflow", c.bounded,
                  c.unbounded);
    }
    std::printf("\n");
  }
}

}  // namespace
}  // namespace switchyard::testing_support
