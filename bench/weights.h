// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The weights of experts, stored and packed, for benchmarks of products.

#ifndef SWITCHYARD_BENCH_WEIGHTS_H_
#define SWITCHYARD_BENCH_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "switchyard/expert_weights.h"

namespace switchyard::bench {

// Asks the system for 2 MB pages in [data, data + size). Call it before
// anything is written there. Pages of 4 KB are scattered in memory, so that a
// plain read of one buffer took 0.88 to 1.38 times as long as a read of another
// buffer.
void UseHugePages(void* data, size_t size);

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

// Experts' weights in two layouts, stored and packed. The constructor quantises
// floats in [-1/16, 1/16] for `distinct` experts. The other experts have copies
// of these experts' bytes.
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
  std::vector<float> scales_;  // the stored scales, only for kInt8
  ExpertWeights stored_, packed_;
};

// True if the format allows `cols` columns.
bool Takes(WeightFormat format, size_t cols);
// Returns the number of bytes of one packed expert.
size_t PackedBytes(WeightFormat format, size_t rows, size_t cols);

}  // namespace switchyard::bench

#endif  // SWITCHYARD_BENCH_WEIGHTS_H_
