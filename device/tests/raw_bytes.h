// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Converts numbers to the bytes that a buffer holds.

#ifndef SWITCHYARD_DEVICE_TESTS_RAW_BYTES_H_
#define SWITCHYARD_DEVICE_TESTS_RAW_BYTES_H_

#include <cstddef>
#include <cstring>
#include <vector>

#include "testing/floats.h"

namespace switchyard::testing_support {

using RawBytes = std::vector<unsigned char>;

// Returns the same bits as elements of another type.
template <class To, class From>
std::vector<To> Recast(const std::vector<From>& values) {
  std::vector<To> result(values.size() * sizeof(From) / sizeof(To));
  if (!values.empty()) {
    std::memcpy(result.data(), values.data(), result.size() * sizeof(To));
  }
  return result;
}

template <class T>
RawBytes ToBytesOf(const std::vector<float>& values) {
  std::vector<T> rounded;
  for (const float f : values) rounded.push_back(Round<T>(f));
  return Recast<unsigned char>(rounded);
}
// Rounds the values to the type, which is f32, bf16 or f16, and returns their
// bytes.
inline RawBytes ToBytes(Type type, const std::vector<float>& values) {
  return type == Type::kBF16  ? ToBytesOf<BFloat16>(values)
         : type == Type::kF16 ? ToBytesOf<Float16>(values)
                              : ToBytesOf<float>(values);
}

template <class T>
void RoundEachTo(std::vector<float>* values) {
  for (float& f : *values) f = Widen(Round<T>(f));
}
// Rounds each number to the type; f32 stays unchanged.
inline void RoundEach(Type type, std::vector<float>* values) {
  if (type == Type::kBF16) RoundEachTo<BFloat16>(values);
  if (type == Type::kF16) RoundEachTo<Float16>(values);
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_DEVICE_TESTS_RAW_BYTES_H_
