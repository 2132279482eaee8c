// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes views for the library from torch's tensors, through torch's stable ABI.

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

// Throws if a call of torch's C interface failed. With torch 2.12 and later
// the exception also has the cause; torch 2.10 and 2.11 have only the older
// macro, without the cause.
#ifdef STABLE_TORCH_ERROR_CODE_CHECK
#define SWITCHYARD_CHECK_TORCH(call) STABLE_TORCH_ERROR_CODE_CHECK(call)
#else
#define SWITCHYARD_CHECK_TORCH(call) TORCH_ERROR_CODE_CHECK(call)
#endif

namespace switchyard {
namespace python {

using torch::headeronly::ScalarType;
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
  if (status.ok()) return;
  std::string what = status.message();
  if (*status.details() != '\0') what.append(": ").append(status.details());
  Fail(op, "library", what);
}

// Returns the library's type for a dtype of torch.
inline Type TypeOfDtype(const char* op, const char* argument,
                        ScalarType dtype) {
  switch (dtype) {
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
    case ScalarType::UInt16:
      return Type::kU16;
    case ScalarType::Char:
      return Type::kI8;
    case ScalarType::Float8_e4m3fn:
      return Type::kF8E4M3;
    case ScalarType::Float8_e5m2:
      return Type::kF8E5M2;
    default:
      Fail(op, argument,
           "a dtype that is none of float32, bfloat16, float16, int32, int64, "
           "uint8, uint16, bool, int8, float8_e4m3fn, float8_e5m2");
  }
}
// Returns the library's type for a tensor's dtype. None in Python is an error:
// torch passes it as a tensor that is not defined. (If no other argument is a
// tensor either, torch's own dispatcher refuses the call.)
inline Type TypeOf(const char* op, const char* argument, const Tensor& tensor) {
  Check(tensor.defined(), op, argument, "None, and not a tensor");
  return TypeOfDtype(op, argument, tensor.scalar_type());
}
inline void CheckFloat(const char* op, const char* argument, Type type) {
  Check(type == Type::kF32 || type == Type::kBF16 || type == Type::kF16, op,
        argument, "not float32, bfloat16 or float16");
}
// Returns the library's type for the dtype of a result, which must be a float
// type.
inline Type FloatOf(const char* op, ScalarType dtype) {
  Check(dtype == ScalarType::Float || dtype == ScalarType::BFloat16 ||
            dtype == ScalarType::Half,
        op, "dtype", "not float32, bfloat16 or float16");
  return TypeOfDtype(op, "dtype", dtype);
}
// Returns torch's number for a float or integer type.
inline int32_t DtypeOf(Type type) {
  return type == Type::kF32    ? aoti_torch_dtype_float32()
         : type == Type::kBF16 ? aoti_torch_dtype_bfloat16()
         : type == Type::kF16  ? aoti_torch_dtype_float16()
         : type == Type::kI64  ? aoti_torch_dtype_int64()
                               : aoti_torch_dtype_int32();
}

// The shape of a tensor, which is read only once, because each query of a
// tensor calls into torch.
struct Shape {
  int64_t dim = 0;
  const int64_t* sizes = nullptr;
  const int64_t* strides = nullptr;

  explicit Shape(const Tensor& tensor)
      : dim(tensor.dim()),
        sizes(tensor.sizes().data()),
        strides(tensor.strides().data()) {}
};

// Returns a view of a tensor. The elements of a row must be contiguous, and
// rows must not overlap. For other tensors, makes a copy, stores it in `keeper`
// and returns a view of the copy. For an output, pass no `keeper`: tensors that
// need a copy are then an error.
inline AnyMatrix MatrixOf(const char* op, const char* argument,
                          const Tensor& tensor, Tensor* keeper = nullptr) {
  const Type type = TypeOf(op, argument, tensor);
  const Shape shape(tensor);
  Check(shape.dim == 2, op, argument, "not a tensor of two dimensions");
  const int64_t rows = shape.sizes[0], cols = shape.sizes[1];
  if ((cols > 1 && shape.strides[1] != 1) ||
      (rows > 1 && shape.strides[0] < cols)) {
    Check(keeper != nullptr, op, argument,
          "the elements of its rows do not follow each other");
    *keeper = torch::stable::contiguous(tensor);
    return MatrixOf(op, argument, *keeper);
  }
  return AnyMatrix(tensor.data_ptr(), type, rows, cols,
                   rows <= 1 ? cols : shape.strides[0]);
}

// Returns the id at (row, slot). Ids are int64 or int32.
inline int64_t IdAt(const ConstAnyMatrix& ids, size_t row, size_t slot) {
  return ids.type == Type::kI64 ? ids.Row<int64_t>(row)[slot]
                                : ids.Row<int32_t>(row)[slot];
}

// Makes an uninitialised tensor of a float or integer type.
template <class... Sizes>
Tensor Empty(Type type, Sizes... of_dimensions) {
  constexpr int64_t kDims = sizeof...(Sizes);
  const int64_t sizes[] = {static_cast<int64_t>(of_dimensions)...};
  int64_t strides[kDims];
  for (int64_t dim = kDims, stride = 1; dim-- > 0; stride *= sizes[dim]) {
    strides[dim] = stride;
  }
  AtenTensorHandle made = nullptr;
  SWITCHYARD_CHECK_TORCH(
      aoti_torch_empty_strided(kDims, sizes, strides, DtypeOf(type),
                               aoti_torch_device_type_cpu(), 0, &made));
  return Tensor(made);
}

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_TENSORS_H_
