// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Helpers for the tests of Quantize, GatherRows and ScatterRows: rows of
// every format between guard pages, with values that are difficult to
// convert.

#ifndef SWITCHYARD_TESTS_ROWS_CASE_H_
#define SWITCHYARD_TESTS_ROWS_CASE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <string>
#include <vector>

#include "testing/formats.h"
#include "testing/reference_rows.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {

// The kinds of rows that FillRow() makes.
constexpr const char* kRowKinds[] = {
    "uniform",     "any finite",  "zeros",    "one NaN",
    "one inf",     "denormals",   "tiny",     "ties",
    "beside ties", "one is huge", "all bits", "around the largest f16"};
constexpr size_t kNumRowKinds = sizeof(kRowKinds) / sizeof(kRowKinds[0]);

inline void FillRow(size_t kind, Random& random, float* x, size_t cols) {
  const auto word = [&] { return static_cast<uint32_t>(random.Next() >> 32); };
  const size_t special = random.Below(cols);
  // For "ties" and "beside ties": values are in the middle between two
  // multiples of a step, or close to it. One value is 127 steps, so the scale
  // is the step, and values are ties between two codes. With a step of 1 all
  // products are exact.
  const float step = word() % 2 == 0 ? 1.0f : random.Uniform(0.5f, 2.0f);
  for (size_t c = 0; c < cols; ++c) {
    x[c] = random.Uniform(-1.0f, 1.0f);
    const float half = static_cast<float>(random.Below(254)) - 126.5f;
    switch (kind) {
      case 1:
        do x[c] = random.AnyBits();
        while (!std::isfinite(x[c]));
        break;
      case 2:
        x[c] = x[c] < 0 ? -0.0f : 0.0f;
        break;
      case 5:
        x[c] = FromBits(word() & 0x807FFFFFu);
        break;
      case 6:
        x[c] = FromBits((word() & 0x807FFFFFu) |
                        static_cast<uint32_t>(random.Below(12)) << 23);
        break;
      case 7:
        x[c] = half * step;
        break;
      // The values are within 2 ulp of a tie. Every fourth value is close to
      // half a step: just below half a step, a kernel that rounds by adding
      // 1/2 would get 1.
      case 8:
        x[c] = FromBits(Bits((c % 4 == 0 ? 0.5f : half) * step) +
                        static_cast<uint32_t>(random.Below(5)) - 2);
        break;
      case 10:
        x[c] = random.AnyBits();
        break;
      case 11:
        x[c] *= 70000.0f;
        break;
    }
  }
  if (kind == 3) x[special] = FromBits(word() | 0x7FC00000u);
  if (kind == 4) x[special] = word() % 2 == 0 ? kInf : -kInf;
  if (kind == 7 || kind == 8) x[special] = 127.0f * step;
  if (kind == 9) x[special] = FromBits(0x7F7FFFFFu - (word() >> 6));
}

// Returns a row of each kind in `kinds`.
inline std::vector<float> ValuesOf(const std::vector<size_t>& kinds,
                                   size_t cols, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(kinds.size() * cols);
  for (size_t r = 0; r < kinds.size() && cols != 0; ++r) {
    FillRow(kinds[r] % kNumRowKinds, random, &values[r * cols], cols);
  }
  return values;
}
inline std::vector<size_t> EveryKind() {
  std::vector<size_t> kinds;
  for (size_t k = 0; k < kNumRowKinds; ++k) kinds.push_back(k);
  return kinds;
}

// Returns a row of each kind in `kinds`, converted to `format`. If `seed` is
// divisible by 3, rows of other formats than f32 have random bytes instead.
inline FormatRows RowsOf(const Format& format, const std::vector<size_t>& kinds,
                         size_t cols, uint64_t seed) {
  FormatRows rows = reference::Quantize(ValuesOf(kinds, cols, seed),
                                        kinds.size(), cols, format);
  if (seed % 3 != 0 || format.type == Type::kF32) return rows;
  Random random(seed);
  for (std::vector<uint8_t>* bytes : {&rows.codes, &rows.scales, &rows.sums}) {
    for (uint8_t& byte : *bytes)
      byte = static_cast<uint8_t>(random.Next() >> 56);
  }
  return rows;
}

// Rows of a format that end `slack` elements before guard pages. After each
// row there is a gap of `gap` elements. A block counts as one element.
class GuardedRows {
 public:
  GuardedRows(const Format& format, size_t rows, size_t cols, size_t slack,
              size_t gap)
      : format_(format) {
    const auto map = [&](Type type, size_t n, size_t columns) {
      const size_t stride = columns + gap * BlockOf(type);
      const Guarded<uint8_t>& part =
          parts_.emplace_back(n, BytesOf(type, columns), BytesOf(type, stride),
                              slack * SizeOf(type));
      return AnyMatrix(static_cast<void*>(part.data()), type, n, columns,
                       stride);
    };
    view_ = MapRows(format, rows, cols, map);
  }
  GuardedRows(const FormatRows& values, size_t slack, size_t gap)
      : GuardedRows(values.format, values.rows, values.cols, slack, gap) {
    Store(values, view_);
  }

  const AnyRows& view() const { return view_; }
  FormatRows Values() const { return FormatRows(format_, view_); }

  // Checks rows, scales and sums.
  void ExpectIntact(const char* name) const {
    for (const Guarded<uint8_t>& part : parts_) part.ExpectIntact(name);
  }
  void ExpectUntouched(const char* name) const {
    for (const Guarded<uint8_t>& part : parts_) part.ExpectUntouched(name);
  }

 private:
  Format format_;
  std::deque<Guarded<uint8_t>> parts_;
  AnyRows view_;
};

inline void ExpectSameRows(const FormatRows& actual, const FormatRows& right) {
  ASSERT_EQ(actual.rows, right.rows);
  ASSERT_EQ(actual.cols, right.cols);
  if (actual.codes == right.codes && actual.scales == right.scales &&
      actual.sums == right.sums) {
    return;
  }
  const std::vector<uint32_t> a = actual.Words(), b = right.Words();
  if (a == b) return;
  // The words of values or codes come first, then the scales, then the sums.
  size_t different = 0, first = 0;
  for (size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) ++different, first = i;
  }
  FAIL() << different << " of " << a.size() << " words differ, first word "
         << first << ": " << std::hex << a[first] << ", not " << b[first];
}

// Compares all bytes, also those of NaNs.
inline void ExpectSameBytes(const FormatRows& actual, const FormatRows& right) {
  EXPECT_EQ(actual.codes, right.codes);
  EXPECT_EQ(actual.scales, right.scales);
  EXPECT_EQ(actual.sums, right.sums);
}

// Calls f(from, to) for each pair of formats between which rows can be
// converted.
template <class F>
void ForEveryConversion(const F& f) {
  for (const Format& from : kFormats) {
    for (const Format& to : kFormats) {
      if (!from.IsSource() && &from != &to) continue;
      SCOPED_TRACE(std::string(from.name) + " to " + to.name);
      f(from, to);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// Calls f(to) for every third format, beginning with the slowest. Tests on many
// threads use this function.
template <class F>
void ForSomeFormats(const F& f) {
  for (size_t i = std::size(kFormats); i > 0; i -= std::min<size_t>(i, 3)) {
    SCOPED_TRACE(kFormats[i - 1].name);
    f(kFormats[i - 1]);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_ROWS_CASE_H_
