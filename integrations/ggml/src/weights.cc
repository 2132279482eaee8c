// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "weights.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "choice.h"
#include "expert_gemm.h"
#include "ggml-backend-impl.h"
#include "switchyard/openmp_executor.h"
#include "unpack.h"

namespace switchyard_ggml {
namespace {

using switchyard::ConstAnyMatrix;
using switchyard::ExpertWeights;
using switchyard::RowFormat;
using switchyard::Type;
using switchyard::WeightLayout;

constexpr char kName[] = "Switchyard_PACKED";
// The alignment of packed groups of rows.
constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{1} << 21;

ExpertWeights Shape(const ggml_tensor* t, WeightLayout layout) {
  ExpertWeights weights;
  weights.format = *FindExpertType(t->type)->format;
  weights.layout = layout;
  weights.rows = static_cast<size_t>(t->ne[1]);
  weights.cols = static_cast<size_t>(t->ne[0]);
  return weights;
}

// Packs and unpacks the experts of a tensor.
class Experts {
 public:
  explicit Experts(const ggml_tensor* t)
      : stored_(Shape(t, WeightLayout::kStored)),
        packed_(Shape(t, WeightLayout::kPacked)),
        data_(static_cast<uint8_t*>(t->data)) {}

  size_t stored_size() const { return ExpertWeightsSize(stored_); }

  void Unpack(size_t expert, uint8_t* to) const {
    UnpackExpert(packed_, data_ + expert * packed_size(), to);
  }
  // Packs experts [first, first + count), whose stored bytes are at `from`.
  void Pack(size_t first, size_t count, const void* from) const {
    ExpertWeights weights = stored_;
    weights.data = {static_cast<const uint8_t*>(from), count, stored_size()};
    switchyard::OpenMpExecutor executor;
    const switchyard::Status packed = PackWeights(
        {weights}, {{data_ + first * packed_size(), count, packed_size()}}, {},
        executor);
    // Packing cannot fail, because IsPackable() checked the sizes, and any
    // bytes are valid weights.
    GGML_ASSERT(packed.ok());
  }

 private:
  size_t packed_size() const { return ExpertWeightsSize(packed_); }

  const ExpertWeights stored_, packed_;
  uint8_t* const data_;
};

// Cuts the bytes [offset, offset + size) of a tensor's stored form at the
// experts' bounds. Calls body(expert, offset in the expert, size, offset in the
// whole range) for each piece.
template <class F>
void ForEachExpert(size_t expert_size, size_t offset, size_t size,
                   const F& body) {
  for (size_t done = 0; done < size;) {
    const size_t expert = (offset + done) / expert_size;
    const size_t at = (offset + done) % expert_size;
    const size_t part = std::min(size - done, expert_size - at);
    body(expert, at, part, done);
    done += part;
  }
}

// Returns the tensor that owns the memory of `t` and has the shape of the
// weights: `t` itself or, if `t` is a view, the viewed tensor. Adds the offset
// of a view to *offset.
const ggml_tensor* Owner(const ggml_tensor* t, size_t* offset) {
  if (t->view_src == nullptr) return t;
  *offset += t->view_offs;
  return t->view_src;
}

// Changes bytes [offset, offset + size) of the stored form: calls
// change(bytes, size, first) for pieces of this range, where `first` is the
// piece's offset in the range.
template <class F>
void Change(const ggml_tensor* t, size_t offset, size_t size, const F& change) {
  t = Owner(t, &offset);
  if (!IsPackable(t)) {
    change(static_cast<uint8_t*>(t->data) + offset, size, size_t{0});
    return;
  }
  const Experts experts(t);
  std::vector<uint8_t> stored(experts.stored_size());
  ForEachExpert(experts.stored_size(), offset, size,
                [&](size_t expert, size_t at, size_t part, size_t first) {
                  if (part < stored.size()) {
                    experts.Unpack(expert, stored.data());
                  }
                  change(stored.data() + at, part, first);
                  experts.Pack(expert, 1, stored.data());
                });
}

void SetTensor(ggml_backend_buffer_t, ggml_tensor* t, const void* data,
               size_t offset, size_t size) {
  const auto* from = static_cast<const uint8_t*>(data);
  if (t->view_src == nullptr && offset == 0 && size == ggml_nbytes(t) &&
      IsPackable(t)) {
    Experts(t).Pack(0, static_cast<size_t>(t->ne[2]), data);
    return;
  }
  Change(t, offset, size, [&](uint8_t* to, size_t part, size_t first) {
    std::memcpy(to, from + first, part);
  });
}

void MemsetTensor(ggml_backend_buffer_t, ggml_tensor* t, uint8_t value,
                  size_t offset, size_t size) {
  Change(t, offset, size, [&](uint8_t* to, size_t part, size_t) {
    std::memset(to, value, part);
  });
}

void GetTensor(ggml_backend_buffer_t, const ggml_tensor* t, void* data,
               size_t offset, size_t size) {
  auto* to = static_cast<uint8_t*>(data);
  t = Owner(t, &offset);
  if (!IsPackable(t)) {
    std::memcpy(to, static_cast<const uint8_t*>(t->data) + offset, size);
    return;
  }
  const Experts experts(t);
  std::vector<uint8_t> stored(experts.stored_size());
  ForEachExpert(experts.stored_size(), offset, size,
                [&](size_t expert, size_t at, size_t part, size_t first) {
                  if (part == stored.size()) {
                    experts.Unpack(expert, to + first);
                    return;
                  }
                  experts.Unpack(expert, stored.data());
                  std::memcpy(to + first, stored.data() + at, part);
                });
}

ggml_backend_buffer_t AllocateBuffer(ggml_backend_buffer_type_t type,
                                     size_t size) {
  ggml_backend_buffer_t buffer =
      ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
  if (buffer == nullptr) return nullptr;
  buffer->buft = type;
  buffer->iface.set_tensor = SetTensor;
  buffer->iface.get_tensor = GetTensor;
  buffer->iface.memset_tensor = MemsetTensor;
  buffer->iface.cpy_tensor = nullptr;
  // Asks for huge pages, because each token reads a few experts of each layer
  // in scattered places: 4 KB pages would cost more TLB misses.
  const auto begin =
      reinterpret_cast<uintptr_t>(ggml_backend_buffer_get_base(buffer));
  const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t last = (begin + size) / kHugePage * kHugePage;
  if (first < last) {
    madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
  }
  return buffer;
}

size_t AllocationSize(ggml_backend_buffer_type_t, const ggml_tensor* t) {
  if (t->view_src != nullptr || !IsPackable(t)) return ggml_nbytes(t);
  return static_cast<size_t>(t->ne[2]) *
         PackedWeightsSize(Shape(t, WeightLayout::kStored));
}

bool IsInPackedBuffer(const ggml_tensor* weights) {
  return weights->buffer != nullptr &&
         IsPackedBufferType(ggml_backend_buffer_get_type(weights->buffer)) &&
         weights->view_src == nullptr;
}

}  // namespace

bool IsPackable(const ggml_tensor* t) {
  const ExpertType* type = FindExpertType(t->type);
  if (type == nullptr || !type->format || t->ne[1] < 1 || t->ne[2] < 1 ||
      t->ne[3] != 1 || !ggml_is_contiguous(t)) {
    return false;
  }
  const ExpertWeights weights = Shape(t, WeightLayout::kStored);
  const size_t size = PackedWeightsSize(weights);
  return size <= PTRDIFF_MAX / static_cast<size_t>(t->ne[2]) &&
         ExpertWeightsSize(weights) == t->nb[2];
}

bool IsPackedBufferType(ggml_backend_buffer_type_t type) {
  return type->iface.alloc_buffer == AllocateBuffer;
}

bool IsPacked(const ggml_tensor* weights) {
  return IsInPackedBuffer(weights) && IsPackable(weights);
}

bool AreBesidePacked(const ggml_tensor* weights) {
  return IsInPackedBuffer(weights) && !IsPackable(weights);
}

ExpertWeights WeightsOf(const ggml_tensor* t) {
  ExpertWeights weights =
      Shape(t, IsPacked(t) ? WeightLayout::kPacked : WeightLayout::kStored);
  weights.data = {static_cast<const uint8_t*>(t->data), t->ne[2],
                  ExpertWeightsSize(weights)};
  return weights;
}

RowFormat OperandsOf(ggml_type type) {
  const ExpertType* row = FindExpertType(type);
  if (row->format) return switchyard::OperandsOf(*row->format);
  RowFormat rows;
  rows.type = OperandType(type == GGML_TYPE_BF16 ? Type::kBF16 : Type::kF16);
  return rows;
}

bool HaveSameOperands(ggml_type a, ggml_type b) {
  const RowFormat x = OperandsOf(a), y = OperandsOf(b);
  return x.type == y.type && x.scale_columns == y.scale_columns;
}

ggml_backend_buffer_type_t PackedBufferType(ggml_backend_dev_t device) {
  static ggml_backend_buffer_type type = [device] {
    ggml_backend_buffer_type made = {};
    made.iface.get_name = [](ggml_backend_buffer_type_t) { return kName; };
    made.iface.alloc_buffer = AllocateBuffer;
    made.iface.get_alignment = [](ggml_backend_buffer_type_t) {
      return kAlignment;
    };
    made.iface.get_alloc_size = AllocationSize;
    // The buffer does not count as host memory. Otherwise llama.cpp would
    // read files directly into the buffer, and the CPU backend would read
    // packed bytes as stored bytes.
    made.device = device;
    return made;
  }();
  return &type;
}

}  // namespace switchyard_ggml
