// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests that no integer division in a .metal file ends the process, and that
// checked mode reports each division that Metal leaves undefined
// (device/src/metal/divisions.h).

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "device/tests/device_test.h"
#include "device/tests/metal_text.h"
#include "gtest/gtest.h"
#include "switchyard/device/findings.h"
#include "switchyard/device/library.h"

namespace switchyard::testing_support {
namespace {

// 12 numbers fill vectors of 2, 3 or 4 elements exactly.
constexpr size_t kThreads = 12;

// Dividends() returns the type's smallest value and other values. Divisors()
// returns a divisor for each of them: 0, -1 or another number.
template <class T>
std::vector<T> Dividends() {
  constexpr T kLeast = std::numeric_limits<T>::min();
  return {7, kLeast, kLeast, 100, 5, kLeast, 0, 1, T(-9), kLeast, 100, 0};
}
template <class T>
std::vector<T> Divisors() {
  return {0, T(-1), 0, 7, T(-1), 1, 0, T(-1), 2, 3, 100, 9};
}
template <class T>
bool IsOverflow(T a, T b) {
  return std::is_signed<T>::value && a == std::numeric_limits<T>::min() &&
         b == static_cast<T>(-1);
}

struct Ran {
  std::vector<Finding> findings;
  std::string error;
};

class Divisions : public ::testing::TestWithParam<bool> {
 protected:
  Divisions() : device_(NewDevice(false, {GetParam(), 0})), texts_(device_) {}

  template <class T>
  Ran Run(const std::string& kernel, size_t threads, std::vector<T>* out) {
    Ran ran;
    const auto function = texts_.Get("divisions", kernel);
    if (function == nullptr) return ran;
    out->assign(4 * kThreads, T(111));
    const auto written = NewBuffer(*device_, *out);
    const auto commands = device_->newCommandQueue()->commandBuffer();
    const auto encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(
        device_->newComputePipelineState(function));
    encoder->setBuffer(NewBuffer(*device_, Dividends<T>()), 0, 0);
    encoder->setBuffer(NewBuffer(*device_, Divisors<T>()), 0, 1);
    encoder->setBuffer(written, 0, 2);
    encoder->dispatchThreads({threads, 1, 1}, {threads, 1, 1});
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    ran.findings = commands->findings();
    ran.error = commands->error();
    *out = Contents<T>(written);
    return ran;
  }

  // Checks a kernel that divides vectors of `elements` elements.
  template <class T>
  void Check(const std::string& kernel, size_t elements) {
    std::vector<T> out;
    const Ran ran = Run(kernel, kThreads / elements, &out);
    const std::vector<T> a = Dividends<T>(), b = Divisors<T>();
    // Integers of up to 16 bits are divided as ints, so their quotient does
    // not overflow.
    const bool is_small = sizeof(T) < sizeof(int);
    bool overflows = false;
    for (size_t i = 0; i < kThreads; ++i) {
      const T* const got =
          out.data() + 4 * (i / elements) * elements + i % elements;
      if (IsOverflow(a[i], b[i])) {
        overflows = true;
        EXPECT_EQ(got[0], a[i]) << kernel;
        EXPECT_EQ(got[elements], 0) << kernel;
      } else if (b[i] != 0) {
        for (size_t twice = 0; twice < 2; ++twice) {
          EXPECT_EQ(got[2 * twice * elements], static_cast<T>(a[i] / b[i]))
              << kernel;
          EXPECT_EQ(got[(2 * twice + 1) * elements],
                    static_cast<T>(a[i] % b[i]))
              << kernel;
        }
      }
    }
    if (!GetParam()) {
      EXPECT_EQ(ran.error, "") << kernel;
      return;
    }
    // The kernel has four lines with a division. On each line a thread
    // divides by zero. If T is signed, another thread divides the smallest
    // integer by -1. Checked mode reports only the first mistake at each code
    // address. So each line has at least one finding, but it may lack a
    // finding for -1.
    std::set<uint32_t> lines;
    bool by_zero = false, of_least = false;
    for (const Finding& finding : ran.findings) {
      EXPECT_EQ(finding.kind, FindingKind::kDivision) << finding.text;
      EXPECT_NE(finding.where.file.find("divisions.metal"), std::string::npos)
          << finding.text;
      EXPECT_NE(finding.text.find(finding.where.text()), std::string::npos);
      lines.insert(finding.where.line);
      by_zero |= finding.text.find("divides by zero") != std::string::npos;
      of_least |= finding.text.find("by -1") != std::string::npos;
    }
    EXPECT_EQ(lines.size(), 4u) << kernel << ": " << ran.error;
    EXPECT_TRUE(by_zero) << kernel;
    EXPECT_TRUE(!of_least || (overflows && !is_small)) << kernel;
  }

  const std::shared_ptr<Device> device_;
  MetalTexts texts_;
};

TEST_P(Divisions, OfAnyTypeDoNotTrap) {
  SWITCHYARD_NEEDS_CLANG();
  Check<int8_t>("every_char", 1);
  Check<uint8_t>("every_uchar", 1);
  Check<int16_t>("every_short", 1);
  Check<uint16_t>("every_ushort", 1);
  Check<int32_t>("every_int", 1);
  Check<uint32_t>("every_uint", 1);
  Check<int64_t>("every_long", 1);
  Check<uint64_t>("every_ulong", 1);
  Check<uint8_t>("every_uchar4", 4);
  Check<int16_t>("every_short4", 4);
  Check<int32_t>("every_int2", 2);
  Check<int32_t>("every_int4", 4);
  Check<uint32_t>("every_packed_uint3", 3);
  Check<int64_t>("every_long4", 4);
  Check<int32_t>("clangs", 4);
  Check<int32_t>("meets", 1);
}

TEST_P(Divisions, ProveNothingOfTheirDivisors) {
  SWITCHYARD_NEEDS_CLANG();
  std::vector<int32_t> out;
  const Ran ran = Run("tested", kThreads, &out);
  const std::vector<int32_t> b = Divisors<int32_t>();
  for (size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(out[4 * i] == -77, b[i] <= 0) << i;
    EXPECT_EQ(out[4 * i + 1] == -77, b[i] == 0) << i;
    EXPECT_EQ(out[4 * i + 3], b[i] == 0 ? -77 : 1) << i;
  }
  EXPECT_EQ(ran.findings.size(), GetParam() ? 3u : 0u) << ran.error;
}

TEST_P(Divisions, MayBeAllowed) {
  SWITCHYARD_NEEDS_CLANG();
  std::vector<int32_t> out;
  EXPECT_EQ(Run("allowed", kThreads, &out).error, "");
}

INSTANTIATE_TEST_SUITE_P(Metal, Divisions, ::testing::Bool(),
                         [](const auto& mode) {
                           return mode.param ? "Checked" : "Unchecked";
                         });

}  // namespace
}  // namespace switchyard::testing_support
