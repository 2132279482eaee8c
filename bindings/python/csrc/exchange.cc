// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "exchange.h"

#include <cstddef>
#include <vector>

#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/map.h"
#include "torch_executor.h"

namespace switchyard {
namespace python {
namespace {

using torch::headeronly::ScalarType;

Type RowTypeOf(const char* op, const char* argument, const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case ScalarType::Float:
      return Type::kF32;
    case ScalarType::BFloat16:
      return Type::kBF16;
    case ScalarType::Half:
      return Type::kF16;
    case ScalarType::Char:
      return Type::kI8;
    case ScalarType::Float8_e4m3fn:
      return Type::kF8E4M3;
    case ScalarType::Float8_e5m2:
      return Type::kF8E5M2;
    default:
      Fail(op, argument,
           "a dtype that is none of float32, bfloat16, float16, int8, "
           "float8_e4m3fn, float8_e5m2");
  }
}

// Rows as they lie in a message: where they are written no copy would do.
AnyMatrix ValuesOf(const char* op, const char* argument, const Tensor& tensor,
                   Type type) {
  const Shape shape(tensor);
  Check(shape.dim == 2, op, argument, "not a tensor of two dimensions");
  const int64_t rows = shape.sizes[0], cols = shape.sizes[1];
  Check((cols <= 1 || shape.strides[1] == 1) &&
            (rows <= 1 || shape.strides[0] >= cols),
        op, argument, "the elements of its rows do not follow each other");
  return AnyMatrix(tensor.data_ptr(), type, rows, cols,
                   rows <= 1 ? cols : shape.strides[0]);
}

AnyRows RowsOf(const char* op, const char* argument, const Tensor& tensor,
               const char* scales_argument, const OptionalTensor& scales) {
  AnyRows rows =
      ValuesOf(op, argument, tensor, RowTypeOf(op, argument, tensor));
  if (scales.has_value()) {
    Check(scales->scalar_type() == ScalarType::Float, op, scales_argument,
          "not float32");
    rows.scales = ValuesOf(op, scales_argument, *scales, Type::kF32);
  }
  return rows;
}

Span<int32_t> IntsOf(const char* op, const char* argument,
                     const Tensor& tensor) {
  const Shape shape(tensor);
  Check(tensor.scalar_type() == ScalarType::Int, op, argument, "not int32");
  Check(shape.dim == 1 && (shape.sizes[0] <= 1 || shape.strides[0] == 1), op,
        argument, "not one dimension whose elements follow each other");
  return {static_cast<int32_t*>(tensor.data_ptr()), shape.sizes[0]};
}

ConstAnyMatrix IndexOf(const char* op, const char* argument,
                       const Tensor& tensor, Tensor* keeper) {
  const ConstAnyMatrix index = MatrixOf(op, argument, tensor, keeper);
  Check(index.type == Type::kI32, op, argument, "not int32");
  return index;
}

Tensor NewInts(const Tensor& like, std::vector<int64_t> sizes) {
  return torch::stable::new_empty(like, sizes, ScalarType::Int);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> MapToDestinations(
    const Tensor& topk_ids, int64_t num_destinations,
    int64_t experts_per_destination) {
  constexpr char kOp[] = "map_pairs";
  Tensor keeper = topk_ids;
  const MapInputs in = {MatrixOf(kOp, "topk_ids", topk_ids, &keeper)};
  Check(in.topk_ids.type == Type::kI64 || in.topk_ids.type == Type::kI32, kOp,
        "topk_ids", "not int64 or int32");
  Check(num_destinations >= 1 && num_destinations < int64_t{1} << 31, kOp,
        "num_destinations", "not in [1, 2^31)");
  Check(experts_per_destination >= 1, kOp, "experts_per_destination",
        "below 1");
  const int64_t tokens = static_cast<int64_t>(in.topk_ids.rows);
  const int64_t top_k = static_cast<int64_t>(in.topk_ids.cols);
  const Tensor counts = NewInts(topk_ids, {num_destinations});
  const Tensor offsets = NewInts(topk_ids, {num_destinations + 1});
  const Tensor rows = NewInts(topk_ids, {tokens * top_k});
  const Tensor pair_index = NewInts(topk_ids, {tokens, top_k});
  TorchExecutor pool(TorchThreads());
  std::vector<int32_t> scratch(
      BucketScratchSize(in.topk_ids.rows * in.topk_ids.cols,
                        static_cast<size_t>(num_destinations), pool));
  MapOutputs out;
  out.pairs = {IntsOf(kOp, "counts", counts), IntsOf(kOp, "offsets", offsets),
               IntsOf(kOp, "rows", rows)};
  out.pair_index =
      AnyMatrix(static_cast<int32_t*>(pair_index.data_ptr()), tokens, top_k);
  MapOptions options;
  options.experts_per_destination =
      static_cast<size_t>(experts_per_destination);
  Check(kOp, MapPairs({in.topk_ids, {}, scratch}, out, options, pool));
  return {counts, offsets, rows, pair_index};
}

void GatherInto(const Tensor& tokens, const Tensor& pairs, const Tensor& rows,
                int64_t top_k, const OptionalTensor& token_scales,
                const OptionalTensor& row_scales,
                const OptionalTensor& row_index) {
  constexpr char kOp[] = "gather_rows";
  Check(top_k >= 1, kOp, "top_k", "below 1");
  GatherInputs in;
  in.tokens = RowsOf(kOp, "tokens", tokens, "token_scales", token_scales);
  in.pairs = IntsOf(kOp, "pairs", pairs);
  // GatherRows looks only at the shape of ids, but refuses a null pointer.
  static const int32_t shape_only = 0;
  in.topk_ids = ConstAnyMatrix(&shape_only, in.tokens.rows, top_k);
  Tensor keeper = pairs;
  if (row_index.has_value()) {
    in.row_index = IndexOf(kOp, "row_index", *row_index, &keeper);
  }
  TorchExecutor pool(TorchThreads());
  Check(kOp,
        GatherRows(in, {RowsOf(kOp, "rows", rows, "row_scales", row_scales)},
                   {}, pool));
}

Tensor CombineRows(const Tensor& rows, const Tensor& topk_weights,
                   const Tensor& row_index, const OptionalTensor& row_scales,
                   std::optional<ScalarType> dtype) {
  constexpr char kOp[] = "combine";
  Tensor weights_keeper = rows, index_keeper = rows;
  const ConstAnyRows in = RowsOf(kOp, "rows", rows, "row_scales", row_scales);
  const ConstAnyMatrix weights =
      MatrixOf(kOp, "topk_weights", topk_weights, &weights_keeper);
  Check(IsFloat(weights.type), kOp, "topk_weights",
        "not float32, bfloat16 or float16");
  const ConstAnyMatrix index =
      IndexOf(kOp, "row_index", row_index, &index_keeper);
  const Tensor out = torch::stable::new_empty(
      rows,
      std::vector<int64_t>{static_cast<int64_t>(weights.rows),
                           static_cast<int64_t>(in.cols)},
      dtype.value_or(rows.scalar_type()));
  const Type type = RowTypeOf(kOp, "dtype", out);
  Check(IsFloat(type), kOp, "dtype", "not float32, bfloat16 or float16");
  TorchExecutor pool(TorchThreads());
  Check(kOp, Combine({in, weights, index}, {ValuesOf(kOp, "out", out, type)},
                     {}, pool));
  return out;
}

}  // namespace python
}  // namespace switchyard
