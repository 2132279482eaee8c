// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests that guarded memory detects a change of any byte outside its view.

#include "testing/guarded_buffer.h"

#include <gtest/gtest-spi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace switchyard::testing_support {
namespace {

// Returns the message of the check, which is empty if the check passes.
template <class Check>
std::string FailureMessage(const Check& check) {
  testing::TestPartResultArray results;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::
            INTERCEPT_ONLY_CURRENT_THREAD,
        &results);
    check();
  }
  return results.size() == 0 ? "" : results.GetTestPartResult(0).message();
}

template <class T>
class GuardedTest : public testing::Test {};
using Elements = testing::Types<uint8_t, uint16_t, float, int64_t>;
TYPED_TEST_SUITE(GuardedTest, Elements, );

TYPED_TEST(GuardedTest, SeesEachByte) {
  using T = TypeParam;
  constexpr size_t kRows = 3, kCols = 5, kStride = 7, kSlack = 3;
  const Guarded<T> memory(kRows, kCols, kStride, kSlack);
  auto* const view = reinterpret_cast<unsigned char*>(memory.data());
  const auto intact = [&] {
    return FailureMessage([&] { memory.ExpectIntact("m"); });
  };
  const auto untouched = [&] {
    return FailureMessage([&] { memory.ExpectUntouched("m"); });
  };
  ASSERT_EQ(intact() + untouched(), "");
  // Covers the canaries before the view, the view with its gaps, and the
  // slack.
  constexpr ptrdiff_t kSize = sizeof(T);
  constexpr ptrdiff_t kLast = (kRows - 1) * kStride + kCols;
  for (ptrdiff_t b = -64 * kSize;
       b < (kLast + static_cast<ptrdiff_t>(kSlack)) * kSize; ++b) {
    const ptrdiff_t i = b < 0 ? (b + 1) / kSize - 1 : b / kSize;
    const bool inside =
        i >= 0 && i < kLast && i % ptrdiff_t{kStride} < ptrdiff_t{kCols};
    const std::string said = "m: element " + std::to_string(i) +
                             " counted from the view's start was overwritten";
    view[b] ^= 0x10;
    EXPECT_NE(untouched().find(said), std::string::npos) << b;
    EXPECT_EQ(intact().find(said) != std::string::npos, !inside) << b;
    view[b] ^= 0x10;
  }
  EXPECT_EQ(intact() + untouched(), "");
}

// Tests that the first byte after a buffer is inaccessible. The sizes range
// from one byte to many pages. One size occurs twice, because the second buffer
// of that size may reuse the memory of the first.
TEST(GuardedDeathTest, TheByteBehindIsNobodys) {
  for (const size_t size : {1u, 4096u, 70000u, 70000u, 1u << 25}) {
    const Guarded<unsigned char> memory(1, size);
    volatile unsigned char* const end = memory.data() + size;
    EXPECT_EQ(end[-1], reinterpret_cast<const unsigned char*>(&kCanary)[3]);
    EXPECT_DEATH((void)end[0], "");
    EXPECT_DEATH(end[0] = 1, "");
  }
}

TYPED_TEST(GuardedTest, WithoutAnElementAllOfItIsOutside) {
  const Guarded<TypeParam> memory(0, 4);
  memory.data()[-1] = TypeParam();
  EXPECT_NE(FailureMessage([&] { memory.ExpectIntact("none"); }), "");
}

}  // namespace
}  // namespace switchyard::testing_support
