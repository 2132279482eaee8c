// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/weights.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstring>
#include <new>

#include "bench/bench.h"
#include "bench/inputs.h"
#include "switchyard/quantize.h"
#include "testing/reference_multiply.h"

namespace switchyard::bench {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr float kLargest = 0.0625f;

ExpertWeights Shape(WeightFormat format, size_t rows, size_t cols) {
  ExpertWeights shape;
  shape.format = format;
  shape.rows = rows;
  shape.cols = cols;
  return shape;
}

// Fills the memory of all experts except the first `distinct`. Expert e gets
// the bytes of expert e % distinct.
void Repeat(uint8_t* memory, size_t bytes, size_t distinct, size_t experts) {
  for (size_t e = distinct; e < experts; ++e) {
    std::memcpy(memory + e * bytes, memory + (e % distinct) * bytes, bytes);
  }
}

}  // namespace

void UseHugePages(void* data, size_t size) {
#if defined(MADV_HUGEPAGE)
  const auto address = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = (address + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (address + size) / kHugePage * kHugePage;
  // Ignores an error: a system without huge pages uses small pages.
  if (begin < end) {
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
#else
  static_cast<void>(data);
  static_cast<void>(size);
#endif
}

HugePages::HugePages(size_t size) : size_(size) {
  if (size == 0) return;
  const size_t bytes = (size + kHugePage - 1) / kHugePage * kHugePage;
  data_.reset(static_cast<uint8_t*>(std::aligned_alloc(kHugePage, bytes)));
  if (data_ == nullptr) throw std::bad_alloc();
  UseHugePages(data_.get(), bytes);
}

Weights::Weights(WeightFormat format, size_t experts, size_t rows, size_t cols,
                 uint32_t seed, size_t distinct)
    : distinct_(std::min(distinct, experts)),
      stored_(Shape(format, rows, cols)) {
  const size_t stored_bytes = ExpertWeightsSize(stored_);
  const size_t packed_bytes = PackedWeightsSize(stored_);
  stored_memory_ = HugePages(experts * stored_bytes);
  packed_memory_ = HugePages(experts * packed_bytes);
  stored_.data = {stored_memory_.data(), experts, stored_bytes};
  if (format == WeightFormat::kInt8) {
    scales_.resize(experts * rows);
    stored_.scales = {scales_.data(), experts, rows};
  }
  for (size_t e = 0; e < distinct_; ++e) {
    uint8_t* const codes = stored_memory_.data() + e * stored_bytes;
    const Aligned<float> floats =
        Floats(rows * cols, seed + static_cast<uint32_t>(e), kLargest);
    const QuantizeInputs from = {ConstAnyMatrix(floats.data(), rows, cols)};
    if (format == WeightFormat::kInt8) {
      AnyRows to = AnyMatrix(codes, Type::kI8, rows, cols, cols);
      to.scales = AnyMatrix(&scales_[e * rows], rows, 1);
      Check(Quantize(from, {to}));
    } else if (format == WeightFormat::kQ8_0) {
      Check(Quantize(
          from, {AnyRows(AnyMatrix(codes, Type::kQ8_0, rows, cols, cols))}));
    } else {
      const std::vector<uint8_t> blocks =
          testing_support::QuantizeWeightsNaively(
              format, {floats.data(), floats.data() + floats.size()});
      std::memcpy(codes, blocks.data(), blocks.size());
    }
  }
  Repeat(stored_memory_.data(), stored_bytes, distinct_, experts);
  if (!scales_.empty()) {
    Repeat(reinterpret_cast<uint8_t*>(scales_.data()), rows * sizeof(float),
           distinct_, experts);
  }
  ExpertWeights first = stored_;
  first.data = stored_.data.RowRange(0, distinct_);
  if (!scales_.empty()) first.scales = stored_.scales.RowRange(0, distinct_);
  Check(PackWeights(
      {first}, {{packed_memory_.data(), distinct_, packed_bytes}, &packed_}));
  Repeat(packed_memory_.data(), packed_bytes, distinct_, experts);
  packed_.data = {packed_memory_.data(), experts, packed_bytes};
}

bool Takes(WeightFormat format, size_t cols) {
  return ExpertWeightsSize(Shape(format, 1, cols)) != SIZE_MAX;
}
size_t PackedBytes(WeightFormat format, size_t rows, size_t cols) {
  return PackedWeightsSize(Shape(format, rows, cols));
}

}  // namespace switchyard::bench
