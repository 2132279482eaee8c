// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Memory and numbers that the benchmarks feed on.

#ifndef SWITCHYARD_BENCH_INPUTS_H_
#define SWITCHYARD_BENCH_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "testing/inputs.h"

namespace switchyard {
namespace bench {

constexpr size_t kAlignment = 64;

// Starts on a cache line, and whole lines of it may be read and written.
template <class T>
class Aligned {
 public:
  explicit Aligned(size_t size = 0)
      : size_(size),
        storage_((size * sizeof(T) + kAlignment - 1) / kAlignment + 1) {}

  T* data() { return reinterpret_cast<T*>(storage_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(storage_.data()); }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }

 private:
  struct alignas(kAlignment) Line {
    unsigned char bytes[kAlignment] = {};
  };
  size_t size_;
  std::vector<Line> storage_;
};

inline Aligned<float> Floats(size_t size, uint32_t stream, float range = 4.0f) {
  Aligned<float> floats(size);
  for (size_t i = 0; i < size; ++i)
    floats[i] = testing_support::Uniform(stream, i, range);
  return floats;
}

// Experts of each token, all different: as a router picks them when all are
// equally likely, or by Zipf's law (the n-th most popular with a share of 1/n).
enum class Spread { kUniform, kZipf };
Aligned<int32_t> TopKIds(size_t tokens, size_t experts, size_t top_k,
                         Spread spread);

}  // namespace bench
}  // namespace switchyard

#endif  // SWITCHYARD_BENCH_INPUTS_H_
