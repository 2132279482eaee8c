// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Operators that an engine calls before and after it exchanges rows between
// processes.

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/map.h"
#include "torch_executor.h"

namespace switchyard {
namespace python {
namespace {

// Returns a view of a tensor's rows and their scales. Rows and scales may be
// columns of a larger tensor, for example of a message to another process.
AnyRows RowsOf(const char* op, const char* argument, const Tensor& tensor,
               const char* scales_argument, const OptionalTensor& scales) {
  AnyRows rows = MatrixOf(op, argument, tensor);
  Check(rows.type != Type::kU8, op, argument, "uint8 or bool");
  if (scales.has_value()) {
    rows.scales = MatrixOf(op, scales_argument, *scales);
    Check(rows.scales.type == Type::kF32, op, scales_argument, "not float32");
  }
  return rows;
}

Span<int32_t> IntsOf(const char* op, const char* argument,
                     const Tensor& tensor) {
  Check(TypeOf(op, argument, tensor) == Type::kI32, op, argument, "not int32");
  Check(tensor.is_contiguous(), op, argument,
        "its elements do not follow each other");
  return {static_cast<int32_t*>(tensor.data_ptr()), tensor.numel()};
}

ConstAnyMatrix IndexOf(const char* op, const char* argument,
                       const Tensor& tensor, Tensor* keeper) {
  const ConstAnyMatrix index = MatrixOf(op, argument, tensor, keeper);
  Check(index.type == Type::kI32, op, argument, "not int32");
  return index;
}

// True if an element of `column` shares bytes with an id. Ids have id_bytes
// bytes and any strides. Compares each element, not only the ranges of
// memory, because column and ids may be columns of the same tensor.
bool Overlaps(const AnyMatrix& column, const Tensor& ids, int64_t id_bytes) {
  const Shape shape(ids);
  const int64_t last_row = shape.sizes[0] - 1, top_k = shape.sizes[1];
  const int64_t row_bytes = shape.strides[0] * id_bytes;
  const int64_t slot_bytes = shape.strides[1] * id_bytes;
  const auto bytes_behind_ids = [&ids](const int32_t* element) {
    return reinterpret_cast<intptr_t>(element) -
           reinterpret_cast<intptr_t>(ids.data_ptr());
  };
  if (column.rows == 0 ||
      bytes_behind_ids(column.Row<int32_t>(column.rows - 1) + 1) <= 0 ||
      bytes_behind_ids(column.Row<int32_t>(0)) >=
          last_row * row_bytes + (top_k - 1) * slot_bytes + id_bytes) {
    return false;
  }
  for (size_t r = 0; r < column.rows; ++r) {
    const int64_t element = bytes_behind_ids(column.Row<int32_t>(r));
    for (int64_t slot = 0; slot < top_k; ++slot) {
      // An id has 4 bytes or more, so an id that overlaps the element covers
      // its first or its last byte.
      for (const int64_t byte : {element, element + 3}) {
        const int64_t at = byte - slot * slot_bytes;
        const int64_t row =
            row_bytes == 0 ? 0 : std::min(at / row_bytes, last_row);
        if (at >= 0 && at - row * row_bytes < id_bytes) return true;
      }
    }
  }
  return false;
}

// Calls MapPairs. Expert e is at destination e / experts_per_destination.
// Returns MapOutputs::pairs.counts, .offsets and .rows, and pair_index, all
// int32. If `experts` is given, int32 of [pairs, 1], row r gets the number of
// the expert within its destination, e % experts_per_destination, where e is
// the expert of pair rows[r].
std::tuple<Tensor, Tensor, Tensor, Tensor> MapToDestinations(
    const Tensor& topk_ids, int64_t num_destinations,
    int64_t experts_per_destination, const OptionalTensor& experts) {
  constexpr char kOp[] = "map_pairs";
  Tensor keeper = topk_ids;
  const MapInputs in = {MatrixOf(kOp, "topk_ids", topk_ids, &keeper)};
  Check(in.topk_ids.type == Type::kI64 || in.topk_ids.type == Type::kI32, kOp,
        "topk_ids", "not int64 or int32");
  Check(num_destinations >= 1 && num_destinations < int64_t{1} << 31, kOp,
        "num_destinations", "not in [1, 2^31)");
  Check(experts_per_destination >= 1, kOp, "experts_per_destination",
        "below 1");
  const size_t tokens = in.topk_ids.rows, top_k = in.topk_ids.cols;
  const size_t pairs = tokens * top_k;
  AnyMatrix column;
  if (experts.has_value()) {
    column = MatrixOf(kOp, "experts", *experts);
    Check(column.type == Type::kI32 && column.rows == pairs && column.cols == 1,
          kOp, "experts", "not int32 of [tokens * top_k, 1]");
    Check(!Overlaps(column, topk_ids, in.topk_ids.type == Type::kI64 ? 8 : 4),
          kOp, "experts", "overlaps topk_ids");
  }
  const Tensor counts = Empty(Type::kI32, num_destinations);
  const Tensor offsets = Empty(Type::kI32, num_destinations + 1);
  const Tensor rows = Empty(Type::kI32, pairs);
  const Tensor pair_index = Empty(Type::kI32, tokens, top_k);
  TorchExecutor pool(TorchThreads());
  std::vector<int32_t> scratch(
      BucketScratchSize(pairs, static_cast<size_t>(num_destinations), pool));
  MapOutputs out;
  out.pairs = {IntsOf(kOp, "counts", counts), IntsOf(kOp, "offsets", offsets),
               IntsOf(kOp, "rows", rows)};
  out.pair_index =
      AnyMatrix(static_cast<int32_t*>(pair_index.data_ptr()), tokens, top_k);
  MapOptions options;
  options.experts_per_destination =
      static_cast<size_t>(experts_per_destination);
  Check(kOp, MapPairs({in.topk_ids, {}, scratch}, out, options, pool));
  for (size_t r = 0; r < column.rows; ++r) {
    const size_t pair = static_cast<size_t>(out.pairs.rows.data[r]);
    *column.Row<int32_t>(r) =
        static_cast<int32_t>(IdAt(in.topk_ids, pair / top_k, pair % top_k) %
                             experts_per_destination);
  }
  return {counts, offsets, rows, pair_index};
}

// Calls MapReplicas. Returns physical_ids and tokens_per_expert, both int32.
std::tuple<Tensor, Tensor> ChooseReplicas(const Tensor& topk_ids,
                                          const Tensor& replicas,
                                          const Tensor& replica_counts,
                                          int64_t first_replica) {
  constexpr char kOp[] = "map_replicas";
  Tensor ids_keeper = topk_ids, replicas_keeper = replicas;
  ReplicaInputs in;
  in.topk_ids = MatrixOf(kOp, "topk_ids", topk_ids, &ids_keeper);
  Check(in.topk_ids.type == Type::kI64 || in.topk_ids.type == Type::kI32, kOp,
        "topk_ids", "not int64 or int32");
  in.replicas = IndexOf(kOp, "replicas", replicas, &replicas_keeper);
  in.replica_counts = IntsOf(kOp, "replica_counts", replica_counts);
  Check(first_replica >= 0, kOp, "first_replica", "below 0");
  const size_t tokens = in.topk_ids.rows, top_k = in.topk_ids.cols;
  const size_t num_experts = in.replica_counts.size;
  const Tensor physical_ids = Empty(Type::kI32, tokens, top_k);
  const Tensor counts = Empty(Type::kI32, num_experts);
  TorchExecutor pool(TorchThreads());
  std::vector<int32_t> scratch(
      BucketScratchSize(tokens * top_k, num_experts, pool));
  in.scratch = scratch;
  ReplicaOptions options;
  options.first_replica = static_cast<size_t>(first_replica);
  Check(kOp,
        MapReplicas(in,
                    {AnyMatrix(static_cast<int32_t*>(physical_ids.data_ptr()),
                               tokens, top_k),
                     IntsOf(kOp, "counts", counts)},
                    options, pool));
  return {physical_ids, counts};
}

// Calls MapCounts. Returns send_counts, send_offsets, recv_counts, recv_offsets
// and put_offsets, all int64.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> CountsOfRank(
    const Tensor& counts, int64_t rank, int64_t row_elements,
    std::optional<int64_t> capacity) {
  constexpr char kOp[] = "map_counts";
  Tensor keeper = counts;
  const CountsInputs in = {MatrixOf(kOp, "counts", counts, &keeper)};
  Check(rank >= 0, kOp, "rank", "below 0");
  Check(row_elements >= 0, kOp, "row_elements", "below 0");
  Check(!capacity.has_value() || *capacity >= 0, kOp, "capacity", "below 0");
  const size_t ranks = in.counts.cols;
  const Tensor sent = Empty(Type::kI64, ranks);
  const Tensor send_offsets = Empty(Type::kI64, ranks + 1);
  const Tensor received = Empty(Type::kI64, ranks);
  const Tensor recv_offsets = Empty(Type::kI64, ranks + 1);
  const Tensor puts = Empty(Type::kI64, ranks);
  const auto span = [](const Tensor& tensor) {
    return Span<int64_t>(static_cast<int64_t*>(tensor.data_ptr()),
                         tensor.numel());
  };
  CountsOptions options;
  options.rank = static_cast<size_t>(rank);
  options.row_elements = static_cast<size_t>(row_elements);
  if (capacity.has_value()) options.capacity = static_cast<size_t>(*capacity);
  Check(kOp, MapCounts(in,
                       {span(received), span(recv_offsets), span(sent),
                        span(send_offsets), span(puts)},
                       options));
  return {sent, send_offsets, received, recv_offsets, puts};
}

// Calls GatherRows: writes rows[r] = tokens[pairs[r] / top_k] to the caller's
// memory, in the dtype of `rows`. Rows of float8 and int8 have scales:
// float32 [rows, 1].
void GatherInto(const Tensor& tokens, const Tensor& pairs, const Tensor& rows,
                int64_t top_k, const OptionalTensor& token_scales,
                const OptionalTensor& row_scales,
                const OptionalTensor& row_index) {
  constexpr char kOp[] = "gather_rows";
  Check(top_k >= 1, kOp, "top_k", "below 1");
  GatherInputs in;
  in.tokens = RowsOf(kOp, "tokens", tokens, "token_scales", token_scales);
  in.pairs = IntsOf(kOp, "pairs", pairs);
  // GatherRows refuses a null pointer in topk_ids, but reads only the shape of
  // topk_ids. So the view may point to a single number.
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

// Calls Combine. Returns the weighted sum of each token's rows, in `dtype`,
// or in the dtype of the rows if `dtype` is not given.
Tensor CombineRows(const Tensor& rows, const Tensor& topk_weights,
                   const Tensor& row_index, const OptionalTensor& row_scales,
                   std::optional<ScalarType> dtype) {
  constexpr char kOp[] = "combine";
  Tensor weights_keeper = rows, index_keeper = rows;
  const ConstAnyRows in = RowsOf(kOp, "rows", rows, "row_scales", row_scales);
  const ConstAnyMatrix weights =
      MatrixOf(kOp, "topk_weights", topk_weights, &weights_keeper);
  CheckFloat(kOp, "topk_weights", weights.type);
  const ConstAnyMatrix index =
      IndexOf(kOp, "row_index", row_index, &index_keeper);
  const Type type = FloatOf(kOp, dtype.value_or(rows.scalar_type()));
  const Tensor out = Empty(type, weights.rows, in.cols);
  TorchExecutor pool(TorchThreads());
  Check(kOp,
        Combine({in, weights, index}, {MatrixOf(kOp, "out", out)}, {}, pool));
  return out;
}

}  // namespace
}  // namespace python
}  // namespace switchyard

STABLE_TORCH_LIBRARY_FRAGMENT(switchyard, m) {
  m.def(
      "map_pairs(Tensor topk_ids, int num_destinations, "
      "int experts_per_destination, Tensor(a!)? experts=None) "
      "-> (Tensor, Tensor, Tensor, Tensor)");
  m.def(
      "map_replicas(Tensor topk_ids, Tensor replicas, Tensor replica_counts, "
      "int first_replica=0) -> (Tensor, Tensor)");
  m.def(
      "map_counts(Tensor counts, int rank, int row_elements=1, "
      "int? capacity=None) -> (Tensor, Tensor, Tensor, Tensor, Tensor)");
  m.def(
      "gather_rows(Tensor tokens, Tensor pairs, Tensor(a!) rows, int top_k=1, "
      "Tensor? token_scales=None, Tensor(b!)? row_scales=None, "
      "Tensor? row_index=None) -> ()");
  m.def(
      "combine(Tensor rows, Tensor topk_weights, Tensor row_index, "
      "Tensor? row_scales=None, ScalarType? dtype=None) -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(switchyard, CPU, m) {
  m.impl("map_pairs", TORCH_BOX(&switchyard::python::MapToDestinations));
  m.impl("map_replicas", TORCH_BOX(&switchyard::python::ChooseReplicas));
  m.impl("map_counts", TORCH_BOX(&switchyard::python::CountsOfRank));
  m.impl("gather_rows", TORCH_BOX(&switchyard::python::GatherInto));
  m.impl("combine", TORCH_BOX(&switchyard::python::CombineRows));
}
