// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "weight_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "memory.h"
#include "programs/for_each.h"
#include "programs/hash_uniform.h"
#include "programs/program.h"
#include "switchyard/quantize.h"

namespace moe_layer {
namespace {

using program::HashUniform;
using program::InputError;
using switchyard::AnyRows;
using switchyard::ConstAnyMatrix;
using switchyard::Type;

// Returns the index of the first element that is NaN or infinite, or SIZE_MAX.
// Such an element has all bits of `exponent` set. Bits is the unsigned integer
// type that has an element's size.
template <class Bits>
size_t FirstNonFinite(const void* values, size_t count, Bits exponent) {
  constexpr size_t kBlock =
      1024;  // the loop over a block has no branches, so it is vectorised
  const auto* at = static_cast<const unsigned char*>(values);
  const auto full = [&](size_t i) {
    Bits bits;
    std::memcpy(&bits, at + i * sizeof(bits), sizeof(bits));
    return (bits & exponent) == exponent;
  };
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t end = std::min(count, first + kBlock);
    Bits found = 0;
    for (size_t i = first; i < end; ++i) found |= full(i) ? Bits{1} : Bits{0};
    if (found == 0) continue;
    while (!full(first)) ++first;
    return first;
  }
  return SIZE_MAX;
}

size_t FirstNonFinite(const ConstAnyMatrix& values) {
  const size_t count = values.rows * values.cols;
  if (values.type == Type::kF32) {
    return FirstNonFinite<uint32_t>(values.data, count, 0x7F800000u);
  }
  return FirstNonFinite<uint16_t>(values.data, count,
                                  values.type == Type::kBF16 ? 0x7F80 : 0x7C00);
}

// Converts `from` to the type of `to`. Copies it if both types are equal.
void Convert(const ConstAnyMatrix& from, const AnyRows& to) {
  program::Check(switchyard::Quantize({from}, {to}));
}

// Returns the value and place of element `at`, such as "nan at [3, 17]".
// `shape` is the shape of a matrix or a vector.
std::string ElementText(const ConstAnyMatrix& values, size_t at,
                        const std::vector<uint64_t>& shape) {
  const size_t row = at / values.cols;
  const size_t column = at % values.cols;
  float found;
  Convert(values.RowRange(row, row + 1).ColRange(column, column + 1),
          switchyard::AnyMatrix(&found, 1, 1));
  const std::string value = std::isnan(found) ? "nan"
                            : found < 0       ? "-inf"
                                              : "inf";
  const std::string place = shape.size() == 2 ? std::to_string(row) + ", " : "";
  return value + " at [" + place + std::to_string(column) + "]";
}

bool IsAligned(const uint8_t* data, Type type) {
  return reinterpret_cast<uintptr_t>(data) % SizeOf(type) == 0;
}

}  // namespace

bool WeightTensor::IsPlainF32() const {
  return stored != nullptr && type == Type::kF32 && IsDense() &&
         IsAligned(stored, type);
}

WeightTensor WeightTensor::Part(const std::string& what, size_t element,
                                size_t rows, size_t cols, size_t row_step,
                                size_t col_step) const {
  WeightTensor part = *this;
  part.shape = {rows, cols};
  part.stored += element * SizeOf(type);
  part.name += ", " + what;
  part.row_stride = row_step;
  part.col_stride = col_step;
  return part;
}

void WeightTensor::Generate(const AnyRows& out) const {
  constexpr size_t kRows = 32;  // a block of this many rows stays in the cache
  Buffer buffer(kRows * Cols() * sizeof(float));
  auto* values = reinterpret_cast<float*>(buffer.data());
  for (size_t row = 0; row < Rows(); row += kRows) {
    const size_t end = std::min(Rows(), row + kRows);
    const auto first = static_cast<uint32_t>(row * Cols());
    const auto count = static_cast<uint32_t>((end - row) * Cols());
    for (uint32_t i = 0; i < count; ++i) {
      values[i] = offset + scale * HashUniform(key, first + i);
    }
    Convert({values, end - row, Cols()}, out.RowRange(row, end));
  }
}

void WeightTensor::Read(const AnyRows& out) const {
  if (stored == nullptr) {
    Generate(out);
    return;
  }
  const size_t size = SizeOf(type);
  ConstAnyMatrix values(stored, type, Rows(), Cols(), Cols());
  Buffer dense;
  if (!IsDense() || !IsAligned(stored, type)) {
    dense = Buffer(Rows() * Cols() * size);
    values.data = dense.data();
  }
  if (!IsDense()) {
    std::byte* to = dense.data();
    for (size_t row = 0; row < Rows(); ++row) {
      for (size_t col = 0; col < Cols(); ++col, to += size) {
        std::memcpy(to, stored + (row * row_stride + col * col_stride) * size,
                    size);
      }
    }
  } else if (dense.size() != 0) {
    std::memcpy(dense.data(), stored, dense.size());
  }
  const size_t bad = FirstNonFinite(values);
  if (bad != SIZE_MAX) {
    throw InputError(name + ": " + ElementText(values, bad, shape) + ", but " +
                     kind + " have to be finite");
  }
  if (out.data != stored) Convert(values, out);
  for (size_t i = 0; factor != 1 && i < Cols(); ++i) {
    out.Row<float>(0)[i] *= factor;
  }
}

}  // namespace moe_layer
