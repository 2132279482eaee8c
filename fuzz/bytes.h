// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A fuzzer's bytes, read as what a call is made of. Behind their end there are
// zeros, so that every input means something and short ones are simple calls.

#ifndef SWITCHYARD_FUZZ_BYTES_H_
#define SWITCHYARD_FUZZ_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "testing/inputs.h"

namespace switchyard::fuzz {

using testing_support::Random;

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool empty() const { return size_ == 0; }
  uint8_t Byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  bool Flag() { return (Byte() & 1) != 0; }
  uint32_t Word() {
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word = word << 8 | Byte();
    return word;
  }
  // In [0, n); of a byte, or of two if n needs them.
  size_t Below(size_t n) {
    size_t value = Byte();
    if (n > 256) value = value << 8 | Byte();
    return value % n;
  }
  // One of the list, or else in [0, n): sizes where kernels change their ways,
  // and those between.
  size_t Size(std::initializer_list<size_t> list, size_t n) {
    const size_t which = Below(2 * list.size());
    return which < list.size() ? list.begin()[which] : Below(n);
  }
  // Often what makes a kernel stumble, or any bits.
  float Float() {
    using Limits = std::numeric_limits<float>;
    constexpr float kSpecial[] = {
        0.0f,
        -0.0f,
        1.0f,
        -1.0f,
        Limits::max(),
        Limits::lowest(),
        Limits::min(),
        0x1p-149f,
        -testing_support::kDenormal,
        -87.33655f,
        -87.4f,
        88.8f,
        0x1.fffffep-1f,
        1e19f,
        testing_support::kInf,
        -testing_support::kInf,
    };
    const uint8_t which = Byte();
    if (which < std::size(kSpecial)) return kSpecial[which];
    // NaNs of either sign, quiet and not, and any bits.
    if (which < 32) {
      return testing_support::FromBits(0x7F800000u | (which & 1u) << 31 |
                                       (which & 2u) << 21 | 1u | Byte());
    }
    return testing_support::FromBits(Word());
  }
  // Drawn from testing/'s generator in one of several ways, with a few of them
  // replaced by what the bytes say.
  std::vector<float> Floats(size_t n) {
    constexpr float kRange[] = {1.0f, 30.0f, 100.0f, 1e-38f, 1e19f, 3e38f};
    const uint8_t way = Byte();
    Random random(Word());
    std::vector<float> values;
    if (way % 4 == 0) {
      const float range = kRange[way / 4 % std::size(kRange)];
      values = random.Uniforms(n, -range, range);
    } else if (way % 4 == 1) {
      values = random.AnyBits(n);
    } else if (way % 4 == 2) {  // ties
      float few[3];
      for (float& value : few) value = Float();
      for (size_t i = 0; i < n; ++i) values.push_back(few[random.Below(3)]);
    } else {
      values.assign(n, static_cast<float>(way / 4) - 32.0f);
    }
    Replace(values, [this] { return Float(); });
    return values;
  }
  // In [0, n), skewed or not, some replaced by any int32: strangers, if there
  // are to be.
  std::vector<int32_t> Ids(size_t count, size_t n, bool strangers) {
    const uint8_t way = Byte();
    Random random(Word());
    std::vector<int32_t> ids;
    for (size_t i = 0; i < count; ++i) {
      size_t id = random.Below(n);
      if (way % 4 == 1) id = random.Below(id + 1);
      if (way % 4 == 2) id = way / 4 % n;
      if (way % 4 == 3) id = i % n;
      ids.push_back(static_cast<int32_t>(id));
    }
    if (strangers) {
      const int32_t edge = static_cast<int32_t>(n);
      const int32_t kinds[] = {-1,        edge, INT32_MIN,
                               INT32_MAX, -2,   edge + 65536};
      Replace(ids, [&] {
        const size_t kind = Below(std::size(kinds) + 1);
        return kind < std::size(kinds) ? kinds[kind]
                                       : static_cast<int32_t>(Word());
      });
    }
    return ids;
  }
  // The rest, as it is.
  std::string Rest() {
    std::string rest(reinterpret_cast<const char*>(data_), size_);
    size_ = 0;
    return rest;
  }

 private:
  template <class T, class Make>
  void Replace(std::vector<T>& values, const Make& make) {
    const size_t count = Below(8);
    for (size_t i = 0; i < count && !values.empty(); ++i) {
      const size_t at = Below(values.size());
      values[at] = make();
    }
  }

  const uint8_t* data_;
  size_t size_;
};

}  // namespace switchyard::fuzz

#endif  // SWITCHYARD_FUZZ_BYTES_H_
