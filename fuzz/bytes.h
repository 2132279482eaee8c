// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Reads the arguments of a call from a fuzzer's bytes. After the last byte it
// reads zeros. So every input is valid, and short inputs give simple calls.

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
  // Returns a number in [0, n). It reads one byte, or two if n is above 256.
  size_t Below(size_t n) {
    size_t value = Byte();
    if (n > 256) value = value << 8 | Byte();
    return value % n;
  }
  // Returns a size from `list`, or any size in [0, n). At the sizes in
  // `list`, kernels change their code path.
  size_t Size(std::initializer_list<size_t> list, size_t n) {
    const size_t which = Below(2 * list.size());
    return which < list.size() ? list.begin()[which] : Below(n);
  }
  // Often returns a value that kernels need to treat with care. Otherwise
  // returns a float with any bits.
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
    // Returns a NaN of either sign, quiet or signalling.
    if (which < 32) {
      return testing_support::FromBits(0x7F800000u | (which & 1u) << 31 |
                                       (which & 2u) << 21 | 1u | Byte());
    }
    return testing_support::FromBits(Word());
  }
  // Returns numbers from the generator of testing/, in one of several
  // distributions. Then replaces up to 7 of them by numbers that the bytes
  // give.
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
  // Returns ids in [0, n), evenly distributed or skewed. With `strangers`,
  // replaces up to 7 ids by invalid ids or by any int32.
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
  // Returns the remaining bytes.
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
