// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the shim's math functions. The host computes the expected results of
// float functions in double, and of integer functions in wider integers.
// Packed values are compared bit by bit.

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "device/tests/metal/shim/shim_module.h"
#include "gtest/gtest.h"

namespace switchyard::testing_support {
namespace {

using Reference = std::function<double(double, double, double)>;

double Median(double x, double y, double z) {
  return std::fmax(std::fmin(x, y), std::fmin(std::fmax(x, y), z));
}
double Clamp(double x, double low, double high) {
  return std::fmin(std::fmax(x, low), high);
}

const std::map<std::string, Reference>& FloatReferences() {
  static const double kPi = std::acos(-1.0);
#define ONE(name, ...)                                                    \
  {                                                                       \
#name, [](double x, double, double) -> double { return __VA_ARGS__; } \
  }
#define TWO(name, ...)                                  \
  {                                                     \
#name, []([[maybe_unused]] double x, double y,      \
              double) -> double { return __VA_ARGS__; } \
  }
#define THREE(name, ...)                                                   \
  {                                                                        \
#name, []([[maybe_unused]] double x, [[maybe_unused]] double y,        \
              [[maybe_unused]] double z) -> double { return __VA_ARGS__; } \
  }
  static const std::map<std::string, Reference> all = {
#include "device/tests/metal/shim/math_functions.inc"
      // The refraction angle's cosine is 0.8. The result is 0 if the root
      // would be of a negative number.
      TWO(refract, (1 - x * x * 0.36 < 0 ? 0 : 0.6 * x) + y),
      THREE(faceforward, 1 + z < 0 ? y : -y),
      TWO(length_squared, x * x + y * y),
      ONE(sincos, std::sin(x) + 10 * std::cos(x)),
      ONE(modf, x - std::trunc(x) + 10 * std::trunc(x)),
      ONE(frexp,
          [&] {
            int e;
            return std::frexp(x, &e) + 10 * e;
          }()),
      ONE(ldexp, 8 * x),
      THREE(select, z > 0 ? y : x),
      THREE(dot, x * z + y * x + z * y),
      THREE(length, std::sqrt(x * x + y * y + z * z)),
      THREE(distance, std::hypot(x - z, y - 1)),
      THREE(normalize, y / std::sqrt(x * x + y * y + z * z)),
      THREE(cross, z - 3 * x),
      TWO(reflect, -y),
  };
#undef ONE
#undef TWO
#undef THREE
  return all;
}

TEST(ShimMath, OfFloats) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("math", false);
  const auto function =
      module.Function<int(int, const char**, float, float, float, float*)>(
          "float_function");
  ASSERT_NE(function, nullptr);
  std::vector<float> values = {0.0f,  -0.0f, 0.5f,     -0.5f, 1.0f,
                               2.5f,  -3.0f, 7.25f,    1e-3f, -0.8f,
                               0.25f, 20.0f, 0x1p-130f};
  std::set<std::string> seen;
  for (const float x : values) {
    for (const float y : values) {
      for (const float z : {0.3f, -2.0f, 1.0f}) {
        const char* name = nullptr;
        float got = 0;
        for (int i = 0; function(i, &name, x, y, z, &got) != 0; ++i) {
          seen.insert(name);
          const auto at = FloatReferences().find(name);
          ASSERT_NE(at, FloatReferences().end()) << name;
          const double expected = at->second(x, y, z);
          if (std::isnan(expected)) {
            EXPECT_TRUE(std::isnan(got)) << name << " " << x << " " << y;
          } else if (std::isinf(expected) || std::fabs(expected) > 1e30) {
            EXPECT_GT(std::fabs(got), 1e30f) << name << " " << x << " " << y;
          } else {
            // The tolerance allows a few rounding errors, because some
            // functions sum several terms.
            EXPECT_NEAR(got, expected, 2e-6 * (1 + std::fabs(expected)))
                << name << " " << x << " " << y << " " << z;
          }
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), FloatReferences().size());
}

// Computes the expected value in 128 bits, which can hold all intermediate
// results.
template <class T>
T Expected(const std::string& name, T x, T y, T z) {
  using Wide = __int128_t;
  using U = std::make_unsigned_t<T>;
  constexpr int kBits = 8 * sizeof(T);
  const Wide a = x, b = y, c = z;
  const Wide most = std::numeric_limits<T>::max();
  const Wide least = std::numeric_limits<T>::min();
  const auto saturated = [&](Wide w) {
    return w > most ? most : w < least ? least : w;
  };
  const auto bit = [](T value, int i) {
    return static_cast<U>(value) >> i & 1;
  };
  const auto high = [&] {
    // Products of unsigned integers need all 128 bits.
    return std::is_signed_v<T>
               ? (a * b) >> kBits
               : static_cast<Wide>((static_cast<__uint128_t>(x) *
                                    static_cast<__uint128_t>(y)) >>
                                   kBits);
  };
  const auto low24 = [](Wide w) {
    const Wide low = w & 0xffffff;
    return std::is_signed_v<T> && low >= 0x800000 ? low - 0x1000000 : low;
  };
  Wide result = 0;
  if (name == "popcount") {
    for (int i = 0; i < kBits; ++i) result += bit(x, i);
  } else if (name == "clz") {
    while (result < kBits && bit(x, kBits - 1 - static_cast<int>(result)) == 0)
      ++result;
  } else if (name == "ctz") {
    while (result < kBits && bit(x, static_cast<int>(result)) == 0) ++result;
  } else if (name == "reverse_bits") {
    for (int i = 0; i < kBits; ++i)
      result |= static_cast<Wide>(bit(x, i)) << (kBits - 1 - i);
  } else if (name == "absdiff") {
    result = a > b ? a - b : b - a;
  } else if (name == "addsat") {
    result = saturated(a + b);
  } else if (name == "subsat") {
    result = saturated(a - b);
  } else if (name == "hadd") {
    result = (a + b) >> 1;
  } else if (name == "rhadd") {
    result = (a + b + 1) >> 1;
  } else if (name == "mulhi") {
    result = high();
  } else if (name == "madhi") {
    result = high() + c;
  } else if (name == "madsat") {
    // A product of unsigned 64-bit integers may not fit. Then the result is
    // the maximum.
    result = !std::is_signed_v<T> && x != 0 && y > static_cast<T>(most / a)
                 ? most
                 : saturated(a * b + c);
  } else if (name == "rotate") {
    const int by = static_cast<int>(static_cast<U>(y) % kBits);
    for (int i = 0; i < kBits; ++i) {
      result |= static_cast<Wide>(bit(x, i)) << ((i + by) % kBits);
    }
  } else if (name == "max") {
    result = a > b ? a : b;
  } else if (name == "min") {
    result = a < b ? a : b;
  } else if (name == "abs") {
    result = a < 0 ? -a : a;
  } else if (name == "clamp" || name == "median3") {
    const Wide first = std::min(b, c), last = std::max(b, c);
    result = std::min(std::max(a, first), last);
  } else if (name == "extract_bits") {
    const int offset = static_cast<int>(static_cast<uint32_t>(y) % 7);
    const int bits = std::min(static_cast<int>(static_cast<uint32_t>(z) % 9),
                              kBits - offset);
    for (int i = 0; i < bits; ++i)
      result |= static_cast<Wide>(bit(x, offset + i)) << i;
    if (std::is_signed_v<T> && bits > 0 && bit(x, offset + bits - 1) != 0) {
      result -= Wide{1} << bits;
    }
  } else if (name == "insert_bits") {
    const int offset = static_cast<int>(static_cast<uint32_t>(z) % 5);
    const int bits = static_cast<int>(static_cast<uint32_t>(y) % 4);
    for (int i = 0; i < kBits; ++i) {
      const bool inside = i >= offset && i < offset + bits;
      result |= static_cast<Wide>(inside ? bit(y, i - offset) : bit(x, i)) << i;
    }
  } else if (name == "mad24") {
    result = sizeof(T) == 4 ? low24(a) * low24(b) + c : c;
  } else if (name == "mul24") {
    result = sizeof(T) == 4 ? low24(a) * low24(b) : b;
  } else {
    ADD_FAILURE() << name;
  }
  return static_cast<T>(result);
}

template <class T>
void CheckIntegers(const ShimModule& module, const char* type) {
  const auto function = module.Function<bool(int, const char**, T, T, T, T*)>(
      (std::string(type) + "_function").c_str());
  ASSERT_NE(function, nullptr) << type;
  std::mt19937_64 random(7);
  const T corners[] = {0,
                       1,
                       2,
                       static_cast<T>(-1),
                       std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::min()};
  const auto draw = [&] {
    return random() % 4 == 0 ? corners[random() % 6]
                             : static_cast<T>(static_cast<T>(random()) >>
                                              (random() % (8 * sizeof(T))));
  };
  for (int n = 0; n < 3000; ++n) {
    const T x = draw(), y = draw(), z = draw();
    const char* name = nullptr;
    T got = 0;
    for (int i = 0; function(i, &name, x, y, z, &got); ++i) {
      EXPECT_EQ(got, Expected<T>(name, x, y, z))
          << name << " of " << type << " " << +x << ", " << +y << ", " << +z;
    }
  }
}

TEST(ShimMath, OfIntegers) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("math", false);
  CheckIntegers<char>(module, "char");
  CheckIntegers<uint8_t>(module, "uchar");
  CheckIntegers<int16_t>(module, "short");
  CheckIntegers<uint16_t>(module, "ushort");
  CheckIntegers<int32_t>(module, "int");
  CheckIntegers<uint32_t>(module, "uint");
  CheckIntegers<int64_t>(module, "long");
  CheckIntegers<uint64_t>(module, "ulong");
}

// A packed format: the number of bits of each element. The first element is
// in the lowest bits.
struct Packing {
  std::vector<int> bits;
  bool has_sign;
  bool is_srgb;
};
const Packing kPackings[] = {
    {{8, 8, 8, 8}, false, false}, {{8, 8, 8, 8}, true, false},
    {{16, 16}, false, false},     {{16, 16}, true, false},
    {{8, 8, 8, 8}, false, false}, {{10, 10, 10, 2}, false, false},
    {{5, 6, 5}, false, false},    {{8, 8, 8, 8}, false, true}};

TEST(ShimMath, Packs) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("math", false);
  const auto pack = module.Function<uint32_t(int, const float*)>("pack");
  const auto unpack = module.Function<void(int, uint32_t, float*)>("unpack");
  ASSERT_TRUE(pack != nullptr && unpack != nullptr);
  std::mt19937 random(8);
  for (int what = 0; what < 8; ++what) {
    const Packing& packing = kPackings[what];
    for (int n = 0; n < 2000; ++n) {
      int total = 0;
      for (const int bits : packing.bits) total += bits;
      const auto packed = static_cast<uint32_t>(
          random() & (total == 32 ? 0xffffffffu : (uint32_t{1} << total) - 1));
      float out[4];
      unpack(what, packed, out);
      uint32_t again = 0;
      int shift = 0;
      for (size_t i = 0; i < packing.bits.size(); ++i) {
        const int bits = packing.bits[i];
        const uint32_t mask = (uint32_t{1} << bits) - 1;
        int64_t value = packed >> shift & mask;
        double expected = static_cast<double>(value) / mask;
        if (packing.has_sign) {
          if (value > mask / 2) value -= int64_t{mask} + 1;
          expected = std::fmax(-1.0, static_cast<double>(value) / (mask / 2));
          // Packing clamps to -1, so the smallest value is packed like the
          // next larger value.
          if (value == -int64_t{mask / 2} - 1) ++value;
        } else if (packing.is_srgb && i < 3) {
          expected = expected <= 0.04045
                         ? expected / 12.92
                         : std::pow((expected + 0.055) / 1.055, 2.4);
        }
        EXPECT_NEAR(out[i], expected, what == 4 ? 5e-4 : 1e-6) << what;
        again |= (static_cast<uint32_t>(value) & mask) << shift;
        shift += bits;
      }
      EXPECT_EQ(pack(what, out), again) << what << " " << packed;
    }
    // These inputs are values out of range, and NaN.
    const float beyond[] = {2, -5, NAN, 1};
    const uint32_t zero = pack(what, beyond);
    const int bits = packing.bits[0];
    const uint32_t mask = (uint32_t{1} << bits) - 1;
    EXPECT_EQ(zero & mask, packing.has_sign ? mask / 2 : mask) << what;
    EXPECT_EQ(zero >> bits & ((uint32_t{1} << packing.bits[1]) - 1),
              packing.has_sign ? mask / 2 + 2 : 0)
        << what;
    if (packing.bits.size() > 2) {
      EXPECT_EQ(zero >> (bits + packing.bits[1]) &
                    ((uint32_t{1} << packing.bits[2]) - 1),
                0u);
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
