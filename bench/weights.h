// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Weights of experts for benchmarks of products, stored and packed.

#ifndef SWITCHYARD_BENCH_WEIGHTS_H_
#define SWITCHYARD_BENCH_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "switchyard/expert_weights.h"

namespace switchyard::bench {

// Asks the system for 2 MB pages in [data, data + size), where nothing has been
// written yet. In pages of 4 KB, which are scattered in memory, a plain read of
// one buffer took 0.88 to 1.38 of the time of another.
void UseHugePages(void* data, size_t size);

// Memory in 2 MB pages.
class HugePages {
 public:
  explicit HugePages(size_t size = 0);
  uint8_t* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(uint8_t* data) const { std::free(data); }
  };
  std::unique_ptr<uint8_t[], Free> data_;
  size_t size_;
};

// The same weights in both layouts. Floats in [-1/16, 1/16] are quantised for
// `distinct` experts, and the other experts have copies of these bytes.
class Weights {
 public:
  Weights(WeightFormat format, size_t experts, size_t rows, size_t cols,
          uint32_t seed, size_t distinct);

  const ExpertWeights& stored() const { return stored_; }
  const ExpertWeights& packed() const { return packed_; }
  size_t distinct() const { return distinct_; }

 private:
  const size_t distinct_;
  HugePages stored_memory_, packed_memory_;
  std::vector<float> scales_;  // of kInt8
  ExpertWeights stored_, packed_;
};

// Whether the format takes so many columns.
bool Takes(WeightFormat format, size_t cols);
// The bytes of one packed expert.
size_t PackedBytes(WeightFormat format, size_t rows, size_t cols);

}  // namespace switchyard::bench

#endif  // SWITCHYARD_BENCH_WEIGHTS_H_
