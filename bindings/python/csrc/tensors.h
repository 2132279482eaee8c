// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tensors of torch, through its stable ABI, as views of the library.

#ifndef SWITCHYARD_PYTHON_TENSORS_H_
#define SWITCHYARD_PYTHON_TENSORS_H_

#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "switchyard/status.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

// Throws if a call of torch's C interface failed. The macro of 2.12 and later
// also says why; 2.10 and 2.11 have only the other.
#ifdef STABLE_TORCH_ERROR_CODE_CHECK
#define SWITCHYARD_CHECK_TORCH(call) STABLE_TORCH_ERROR_CODE_CHECK(call)
#else
#define SWITCHYARD_CHECK_TORCH(call) TORCH_ERROR_CODE_CHECK(call)
#endif

namespace switchyard {
namespace python {

using torch::stable::Tensor;
using OptionalTensor = std::optional<Tensor>;

[[noreturn]] inline void Fail(const char* op, const char* argument,
                              const std::string& what) {
  throw std::runtime_error(std::string("switchyard::") + op + ": " + argument +
                           ": " + what);
}
inline void Check(bool good, const char* op, const char* argument,
                  const char* what) {
  if (!good) Fail(op, argument, what);
}
inline void Check(const char* op, const Status& status) {
  if (!status.ok()) Fail(op, "library", status.message());
}

// The library's type of a tensor's elements.
inline Type TypeOfTensor(const char* op, const char* argument,
                         const Tensor& tensor) {
  using torch::headeronly::ScalarType;
  switch (tensor.scalar_type()) {
    case ScalarType::Float:
      return Type::kF32;
    case ScalarType::BFloat16:
      return Type::kBF16;
    case ScalarType::Half:
      return Type::kF16;
    case ScalarType::Int:
      return Type::kI32;
    case ScalarType::Long:
      return Type::kI64;
    case ScalarType::Byte:
    case ScalarType::Bool:
      return Type::kU8;
    default:
      Fail(op, argument,
           "a dtype that is none of float32, bfloat16, float16, "
           "int32, int64, uint8, bool");
  }
}
inline bool IsFloat(Type type) {
  return type == Type::kF32 || type == Type::kBF16 || type == Type::kF16;
}
inline int32_t DtypeOf(Type type) {
  return type == Type::kF32    ? aoti_torch_dtype_float32()
         : type == Type::kBF16 ? aoti_torch_dtype_bfloat16()
                               : aoti_torch_dtype_float16();
}

// A tensor's shape, read once: each look is a call into torch.
struct Shape {
  int64_t dim = 0;
  const int64_t* sizes = nullptr;
  const int64_t* strides = nullptr;

  explicit Shape(const Tensor& tensor)
      : dim(tensor.dim()),
        sizes(tensor.sizes().data()),
        strides(tensor.strides().data()) {}
};

// A tensor with rows of elements that follow each other, itself or a copy.
// `keeper` keeps what the view looks at.
inline ConstAnyMatrix MatrixOf(const char* op, const char* argument,
                               const Tensor& tensor, Tensor* keeper) {
  const Type type = TypeOfTensor(op, argument, tensor);
  *keeper = tensor;
  Shape shape(tensor);
  Check(shape.dim == 2, op, argument, "not a tensor of two dimensions");
  const int64_t rows = shape.sizes[0], cols = shape.sizes[1];
  const bool as_it_is = (cols <= 1 || shape.strides[1] == 1) &&
                        (rows <= 1 || shape.strides[0] >= cols);
  if (!as_it_is) {
    *keeper = torch::stable::contiguous(tensor);
  }
  return ConstAnyMatrix(keeper->data_ptr(), type, rows, cols,
                        rows <= 1 ? cols : Shape(*keeper).strides[0]);
}

// [rows, cols] of torch's memory that has not been written.
inline Tensor Empty(Type type, int64_t rows, int64_t cols) {
  const int64_t sizes[] = {rows, cols}, strides[] = {cols, 1};
  const int32_t dtype =
      type == Type::kI64 ? aoti_torch_dtype_int64() : DtypeOf(type);
  AtenTensorHandle made = nullptr;
  SWITCHYARD_CHECK_TORCH(aoti_torch_empty_strided(
      2, sizes, strides, dtype, aoti_torch_device_type_cpu(), 0, &made));
  return Tensor(made);
}

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_TENSORS_H_
