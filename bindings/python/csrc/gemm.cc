// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "gemm.h"

#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace switchyard {
namespace python {
namespace {

// Deletes the handle of a tensor that does not own its memory. This file uses
// plain handles for such tensors, because a torch::stable::Tensor would add a
// shared_ptr.
struct DeleteHandle {
  void operator()(AtenTensorHandle handle) const {
    aoti_torch_delete_tensor_object(handle);
  }
};
using Handle = std::unique_ptr<AtenTensorOpaque, DeleteHandle>;

Handle Over(const void* data, Type type, int64_t dim, const int64_t* sizes,
            const int64_t* strides) {
  AtenTensorHandle made = nullptr;
  SWITCHYARD_CHECK_TORCH(aoti_torch_create_tensor_from_blob_v2(
      const_cast<void*>(data), dim, sizes, strides, 0, DtypeOf(type),
      aoti_torch_device_type_cpu(), 0, &made, aoti_torch_layout_strided(),
      nullptr, 0));
  return Handle(made);
}
Handle Over(const ConstAnyMatrix& m) {
  const int64_t sizes[] = {static_cast<int64_t>(m.rows),
                           static_cast<int64_t>(m.cols)};
  const int64_t strides[] = {static_cast<int64_t>(m.stride), 1};
  return Over(m.data, m.type, 2, sizes, strides);
}
// Makes a tensor that views columns [first, first + count) of one row of `m`.
Handle Over(const ConstAnyMatrix& m, int64_t row, size_t first, size_t count) {
  const size_t begin = static_cast<size_t>(row) * m.stride + first;
  const int64_t size = static_cast<int64_t>(count), stride = 1;
  return Over(static_cast<const char*>(m.data) + SizeOf(m.type) * begin, m.type,
              1, &size, &stride);
}

// True if oneDNN would convert bf16 to floats to multiply. oneDNN accepts
// bf16 on any AVX-512 CPU, but only newer CPUs have instructions to multiply
// bf16. On AVX2 torch does not use oneDNN for bf16.
bool OneDnnConvertsBF16() {
#if defined(__x86_64__)
  static const bool does = [] {
    if (__builtin_cpu_supports("avx512bf16")) return false;
    StableIValue result = 0;
    return torch_call_dispatcher("mkldnn::_is_mkldnn_bf16_supported", "",
                                 &result, TORCH_ABI_VERSION) == TORCH_SUCCESS &&
           torch::stable::detail::to<bool>(result);
  }();
  return does;
#else
  return false;
#endif
}
// True if torch multiplies `type` slowly. torch multiplies bf16 and f16 by
// oneDNN if the CPU has instructions for these types. Otherwise it computes a
// dot product for each output, which reads all weights for each row; for
// transposed weights it runs a scalar loop. The library's tile reads weights
// once for all rows. (AVX2, 2048 x 768 in bf16, two threads, torch's time
// divided by the library's: 1 row 0.80, 2 rows 1.60, 4 rows 2.23, 32
// rows 4.25.)
bool TorchHasNoGemmFor(Type type) {
#if defined(__x86_64__)
  const auto asks = [](const char* name) {
    StableIValue result = 0;
    return torch_call_dispatcher(name, "", &result, TORCH_ABI_VERSION) ==
               TORCH_SUCCESS &&
           torch::stable::detail::to<bool>(result);
  };
  static const bool no_bf16 = !asks("mkldnn::_is_mkldnn_bf16_supported");
  static const bool no_f16 = !asks("mkldnn::_is_mkldnn_fp16_supported");
  return (type == Type::kBF16 && no_bf16) || (type == Type::kF16 && no_f16);
#else
  static_cast<void>(type);
  return false;
#endif
}
constexpr size_t kFewestTileRows = 2;

// If oneDNN converts bf16 to floats, products of up to this many rows are
// computed row by row, because oneDNN takes longer for one product of two or
// three rows than for two or three products of one row.
// (ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI on a Zen 4, 2880 x 5760: 1 row 2.2 ms, 2
// rows 6.4, 3 rows 7.1, 4 rows 8.1.)
constexpr size_t kMostSingleRows = 3;

}  // namespace

Projection::Projection(const char* op, const char* argument,
                       const Tensor& weights, const OptionalTensor& bias,
                       const char* bias_argument, bool transposed)
    : type_(TypeOf(op, argument, weights)),
      data_(static_cast<const char*>(weights.data_ptr())) {
  CheckFloat(op, argument, type_);
  const Shape shape(weights);
  Check(shape.dim == 3, op, argument, "not a tensor of three dimensions");
  const int in = transposed ? 1 : 2, out = 3 - in;
  experts_ = shape.sizes[0];
  in_ = shape.sizes[in];
  out_ = shape.sizes[out];
  expert_stride_ = shape.strides[0];
  in_stride_ = shape.strides[in];
  out_stride_ = shape.strides[out];
  tiles_.format =
      type_ == Type::kBF16 ? WeightFormat::kBF16 : WeightFormat::kF16;
  tiles_.rows = static_cast<size_t>(out_);
  tiles_.cols = static_cast<size_t>(in_);
  const size_t size = ExpertWeightsSize(tiles_);
  if (in_stride_ == 1 && out_stride_ == in_ && size != SIZE_MAX && size != 0 &&
      TorchHasNoGemmFor(type_) &&
      (experts_ <= 1 || expert_stride_ * 2 >= static_cast<int64_t>(size))) {
    tiles_.data = {
        data_, Type::kU8, experts_, size,
        experts_ <= 1 ? static_cast<int64_t>(size) : 2 * expert_stride_};
  }
  if (!bias.has_value()) return;
  bias_ = MatrixOf(op, bias_argument, *bias, &bias_keeper_);
  Check(bias_.type == type_, op, bias_argument,
        "not of the dtype of the weights");
  Check(bias_.rows == static_cast<size_t>(experts_) &&
            bias_.cols == static_cast<size_t>(out_),
        op, bias_argument, "not [experts, columns of the product]");
}

void Projection::UsePacked(const char* op, const PackedProduct& packed) {
  Check(packed.experts.size() == static_cast<size_t>(experts_), op, "packed",
        "not of as many experts");
  Check(packed.type == type_ && packed.out == out_ && packed.in == in_, op,
        "packed", "not of the shape and dtype of up and down");
  packed_ = &packed.experts;
}

// torch allocates the product, which is then copied to `out`. For 32 rows the
// copy takes a hundredth of the product's time. The call goes through torch's
// dispatcher, because torch's stable ABI lacks the operator.
void Projection::MultiplyPacked(int64_t expert, const ConstAnyMatrix& rows,
                                const AnyMatrix& out, bool add_bias) const {
  using torch::stable::detail::from;
  std::optional<Tensor> bias;
  if (add_bias && bias_.data != nullptr) {
    bias = Tensor(Over(bias_, expert, 0, out.cols).release());
  }
  std::array<StableIValue, 6> stack = {
      from(Tensor(Over(rows).release())),
      from((*packed_)[static_cast<size_t>(expert)]),
      from(bias),
      from(std::string("none")),
      from(std::vector<int64_t>()),
      from(std::optional<std::string>(""))};
  SWITCHYARD_CHECK_TORCH(torch_call_dispatcher(
      "mkldnn::_linear_pointwise", "", stack.data(), TORCH_ABI_VERSION));
  const Tensor product = torch::stable::detail::to<Tensor>(stack[0]);
  const auto* from_row = static_cast<const char*>(product.data_ptr());
  auto* to_row = static_cast<char*>(out.data);
  for (size_t r = 0; r < out.rows; ++r) {
    std::memcpy(to_row, from_row, out.cols * SizeOf(type_));
    from_row += out.cols * SizeOf(type_);
    to_row += out.stride * SizeOf(type_);
  }
}

// Adds the bias in f32, so that a result is rounded only once.
void Projection::MultiplyTiles(int64_t expert, const ConstAnyMatrix& rows,
                               size_t first_column, const AnyMatrix& out,
                               bool add_bias) const {
  ExpertTile tile;
  tile.product = ExpertProduct::kDown;
  tile.expert = static_cast<int32_t>(expert);
  tile.first_column = first_column;
  tile.worker = 0;
  tile.rows = rows;
  tile.out = out;
  std::vector<float> sums;
  const bool has_bias = add_bias && bias_.data != nullptr;
  if (has_bias) {
    sums.resize(out.rows * out.cols);
    tile.out = AnyMatrix(sums.data(), out.rows, out.cols);
  }
  python::Check("experts", MultiplyTile(tiles_, tile));
  if (!has_bias) return;
  const auto add = [&](auto element) {
    using T = decltype(element);
    const T* const bias = static_cast<const T*>(bias_.data) +
                          static_cast<size_t>(expert) * bias_.stride +
                          first_column;
    for (size_t r = 0; r < out.rows; ++r) {
      const float* const sum = tile.out.Row<float>(r);
      T* const to = static_cast<T*>(out.data) + r * out.stride;
      for (size_t c = 0; c < out.cols; ++c) {
        to[c] = static_cast<T>(sum[c] + static_cast<float>(bias[c]));
      }
    }
  };
  if (type_ == Type::kBF16) {
    add(torch::headeronly::BFloat16());
  } else {
    add(torch::headeronly::Half());
  }
}

void Projection::Multiply(int64_t expert, const ConstAnyMatrix& rows,
                          size_t first_column, const AnyMatrix& out,
                          bool add_bias) const {
  // A single row of f32 is not multiplied with packed weights, because this
  // takes 1.1 times as long as with plain weights.
  if (packed_ != nullptr && (rows.rows > 1 || type_ != Type::kF32)) {
    return MultiplyPacked(expert, rows, out, add_bias);
  }
  if (rows.rows >= kFewestTileRows && uses_tiles()) {
    return MultiplyTiles(expert, rows, first_column, out, add_bias);
  }
  if (rows.rows > 1 && rows.rows <= kMostSingleRows && type_ == Type::kBF16 &&
      OneDnnConvertsBF16()) {
    for (size_t r = 0; r < rows.rows; ++r) {
      Multiply(expert, rows.RowRange(r, r + 1), first_column,
               out.RowRange(r, r + 1), add_bias);
    }
    return;
  }
  const int64_t sizes[] = {in_, static_cast<int64_t>(out.cols)};
  const int64_t strides[] = {in_stride_, out_stride_};
  const int64_t begin = expert_stride_ * expert +
                        out_stride_ * static_cast<int64_t>(first_column);
  const Handle weights =
      Over(data_ + static_cast<int64_t>(SizeOf(type_)) * begin, type_, 2, sizes,
           strides);
  const Handle left = Over(rows), product = Over(out);
  if (add_bias && bias_.data != nullptr) {
    const Handle bias = Over(bias_, expert, first_column, out.cols);
    SWITCHYARD_CHECK_TORCH(aoti_torch_cpu_addmm_out(
        product.get(), bias.get(), left.get(), weights.get(), 1.0, 1.0));
  } else {
    SWITCHYARD_CHECK_TORCH(
        aoti_torch_cpu_mm_out(product.get(), left.get(), weights.get()));
  }
}

}  // namespace python
}  // namespace switchyard
