// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "weights.h"

#include <torch/csrc/stable/library.h>

#include <cstddef>
#include <optional>

#include "torch_executor.h"

namespace switchyard {
namespace python {
namespace {

// A format: its name in Python and in errors, and its types.
struct Named {
  const char* name;
  WeightFormat format;
  Type stored;  // the element type of stored weights
};
constexpr Named kFormats[] = {
    {"int8", WeightFormat::kInt8, Type::kI8},
    {"q8_0", WeightFormat::kQ8_0, Type::kU8},
    {"q4_0", WeightFormat::kQ4_0, Type::kU8},
    {"mxfp4", WeightFormat::kMXFP4, Type::kU8},
    {"q4_K", WeightFormat::kQ4_K, Type::kU8},
    {"q6_K", WeightFormat::kQ6_K, Type::kU8},
    {"f32", WeightFormat::kF32, Type::kF32},
    {"bf16", WeightFormat::kBF16, Type::kBF16},
    {"f16", WeightFormat::kF16, Type::kF16},
};

Type StoredType(WeightFormat format) {
  for (const Named& named : kFormats) {
    if (named.format == format) return named.stored;
  }
  return Type::kU8;
}

ExpertWeights Stored(WeightFormat format, int64_t rows, int64_t cols) {
  ExpertWeights weights;
  weights.format = format;
  weights.rows = static_cast<size_t>(rows);
  weights.cols = static_cast<size_t>(cols);
  return weights;
}

// Returns the columns of a block, which is the smallest number of columns that
// weights in this format can have.
int64_t BlockColumns(WeightFormat format) {
  for (const int64_t cols : {1, 32, 64, 128, 256}) {
    if (ExpertWeightsSize(Stored(format, 1, cols)) != SIZE_MAX) return cols;
  }
  return 0;
}
int64_t BlockBytes(WeightFormat format) {
  return static_cast<int64_t>(
      ExpertWeightsSize(Stored(format, 1, BlockColumns(format))));
}

// Returns the number of bytes of a packed expert. A number of columns that the
// format cannot have is an error.
int64_t PackedSize(const char* op, const char* argument, WeightFormat format,
                   int64_t rows, int64_t cols) {
  Check(rows > 0 && cols > 0, op, argument, "empty");
  const size_t size = PackedWeightsSize(Stored(format, rows, cols));
  if (size == SIZE_MAX) {
    Fail(op, argument,
         std::to_string(cols) +
             " columns, where the format takes multiples of " +
             std::to_string(BlockColumns(format)) + ", up to 131072");
  }
  return static_cast<int64_t>(size);
}

// True if the rows of an expert are stored without gaps.
bool RowsFollow(const Shape& shape) {
  return (shape.sizes[2] <= 1 || shape.strides[2] == 1) &&
         (shape.sizes[1] <= 1 || shape.strides[1] == shape.sizes[2]);
}

Tensor EmptyBytes(int64_t rows, int64_t cols) {
  const int64_t sizes[] = {rows, cols}, strides[] = {cols, 1};
  AtenTensorHandle made = nullptr;
  SWITCHYARD_CHECK_TORCH(
      aoti_torch_empty_strided(2, sizes, strides, aoti_torch_dtype_uint8(),
                               aoti_torch_device_type_cpu(), 0, &made));
  return Tensor(made);
}

constexpr char kPack[] = "pack_weights";

// Packs weights. A source of floats [experts, rows, cols] is quantised. A
// source of any other dtype has weights as the format stores them, and is
// packed without another rounding.
Tensor Pack(const Tensor& source, const std::string& name,
            const OptionalTensor& scales) {
  const WeightFormat format = FormatOf(kPack, "format", name);
  const Type type = TypeOf(kPack, "source", source);
  Check(source.dim() == 3, kPack, "source", "not a tensor of three dimensions");
  const Tensor from = torch::stable::contiguous(source);
  const Shape shape(from);
  const int64_t experts = shape.sizes[0], rows = shape.sizes[1];
  const bool is_float =
      type == Type::kF32 || type == Type::kBF16 || type == Type::kF16;
  const Type stored = StoredType(format);
  Check(is_float || type == stored, kPack, "source",
        "neither floats nor weights as the format stores them");
  int64_t cols = shape.sizes[2];
  if (!is_float && stored == Type::kU8) {
    const int64_t bytes = BlockBytes(format);
    if (cols % bytes != 0) {
      Fail(kPack, "source",
           "rows of " + std::to_string(cols) + " bytes, where a block has " +
               std::to_string(bytes));
    }
    cols = cols / bytes * BlockColumns(format);
  }
  const int64_t size = PackedSize(kPack, "source", format, rows, cols);
  Tensor out = EmptyBytes(experts, size);
  if (experts == 0) return out;

  PackWeightsInputs in;
  in.weights = Stored(format, rows, cols);
  Tensor scales_keeper = from;
  const bool needs_scales = !is_float && format == WeightFormat::kInt8;
  Check(scales.has_value() == needs_scales, kPack, "scales",
        needs_scales ? "missing, and the source is int8 codes"
                     : "given, and the source is not int8 codes");
  if (is_float) {
    const size_t all = static_cast<size_t>(experts * rows);
    in.floats = ConstAnyMatrix(AnyMatrix(from.data_ptr(), type, all,
                                         static_cast<size_t>(cols),
                                         static_cast<size_t>(cols)));
  } else {
    const size_t stored_size = ExpertWeightsSize(in.weights);
    in.weights.data = ConstAnyMatrix(AnyMatrix(from.data_ptr(), Type::kU8,
                                               static_cast<size_t>(experts),
                                               stored_size, stored_size));
  }
  if (needs_scales) {
    in.weights.scales = MatrixOf(kPack, "scales", *scales, &scales_keeper);
  }
  TorchExecutor pool(TorchThreads());
  Check(kPack,
        PackWeights(in, {MatrixOf(kPack, "packed", out), nullptr}, {}, pool));
  return out;
}

int64_t PackedWeightsSizeOf(const std::string& format, int64_t rows,
                            int64_t cols) {
  constexpr char kOp[] = "packed_weights_size";
  return PackedSize(kOp, "cols", FormatOf(kOp, "format", format), rows, cols);
}

// Returns a line for each format: its name, and the columns and bytes of a
// block.
std::string WeightFormats() {
  std::string lines;
  for (const Named& named : kFormats) {
    lines += std::string(named.name) + " " +
             std::to_string(BlockColumns(named.format)) + " " +
             std::to_string(BlockBytes(named.format)) + "\n";
  }
  return lines;
}

}  // namespace

WeightFormat FormatOf(const char* op, const char* argument,
                      const std::string& name) {
  std::string names;
  for (const Named& named : kFormats) {
    if (name == named.name) return named.format;
    names += (names.empty() ? "" : ", ") + std::string(named.name);
  }
  Fail(op, argument, "unknown: '" + name + "'; there are " + names);
}

ExpertWeights WeightsOf(const char* op, const char* argument,
                        const Tensor& tensor, WeightFormat format, int64_t rows,
                        int64_t cols) {
  const int64_t packed_size = PackedSize(op, argument, format, rows, cols);
  ExpertWeights weights = Stored(format, rows, cols);
  const Type type = TypeOf(op, argument, tensor);
  const Shape shape(tensor);
  Check(shape.dim == 2 || shape.dim == 3, op, argument,
        "not of two dimensions (packed) or three (as stored)");
  int64_t size = packed_size;
  if (shape.dim == 2) {
    weights.layout = WeightLayout::kPacked;
    if (type != Type::kU8 || shape.sizes[1] != size ||
        (size > 1 && shape.strides[1] != 1)) {
      Fail(op, argument,
           "packed weights of this format and shape are uint8 [experts, " +
               std::to_string(size) + "], without gaps");
    }
  } else {
    Check(format != WeightFormat::kInt8, op, argument,
          "int8 has scales beside its codes: pack_weights() takes both");
    size = static_cast<int64_t>(ExpertWeightsSize(weights));
    const int64_t row = size / rows / static_cast<int64_t>(SizeOf(type));
    if (type != StoredType(format) || shape.sizes[1] != rows ||
        shape.sizes[2] != row || !RowsFollow(shape)) {
      Fail(op, argument,
           "weights as this format stores them are [experts, " +
               std::to_string(rows) + ", " + std::to_string(row) +
               "] of the format's type, without gaps");
    }
  }
  Check(shape.sizes[0] > 0, op, argument, "no experts");
  const int64_t stride =
      shape.sizes[0] == 1
          ? size
          : shape.strides[0] * static_cast<int64_t>(SizeOf(type));
  Check(stride >= size, op, argument, "its experts overlap");
  weights.data = ConstAnyMatrix(AnyMatrix(
      tensor.data_ptr(), Type::kU8, static_cast<size_t>(shape.sizes[0]),
      static_cast<size_t>(size), static_cast<size_t>(stride)));
  return weights;
}

}  // namespace python
}  // namespace switchyard

STABLE_TORCH_LIBRARY_FRAGMENT(switchyard, m) {
  m.def(
      "pack_weights(Tensor source, str format, *, Tensor? scales=None) -> "
      "Tensor");
  m.def("packed_weights_size(str format, int rows, int cols) -> int");
  m.def("weight_formats() -> str");
}
STABLE_TORCH_LIBRARY_IMPL(switchyard, CPU, m) {
  m.impl("pack_weights", TORCH_BOX(&switchyard::python::Pack));
}
STABLE_TORCH_LIBRARY_IMPL(switchyard, CompositeExplicitAutograd, m) {
  m.impl("packed_weights_size",
         TORCH_BOX(&switchyard::python::PackedWeightsSizeOf));
  m.impl("weight_formats", TORCH_BOX(&switchyard::python::WeightFormats));
}
