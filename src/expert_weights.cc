// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/expert_weights.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/base/details.h"
#include "src/base/fp_env.h"
#include "src/base/layer_plan.h"
#include "src/base/weight_layout.h"
#include "src/calls/expert_weights.h"
#include "src/check.h"
#include "src/parallel_for.h"
#include "src/schedule.h"
#include "src/simd/multiply.h"
#include "src/simd/pack_weights.h"

namespace switchyard {
namespace {

using internal::CeilDiv;
using internal::Checked;
using internal::Given;
using internal::TraitsOf;
using internal::WeightTraits;

// Up to this many columns, int32 sums of products of int8 codes do not
// overflow, because 131,071 * 128 * 128 < 2^31. The other formats have the same
// limit, for simplicity.
constexpr size_t kMostColumns = 131071;

bool IsColumns(const WeightTraits& traits, size_t cols) {
  return cols != 0 && cols <= kMostColumns &&
         (!traits.has_block_scales() || cols % traits.block == 0);
}

size_t SizeOfExpert(const ExpertWeights& weights, WeightLayout layout) {
  const WeightTraits traits = TraitsOf(weights.format);
  if (traits.name == nullptr || calls::NameOf(layout) == nullptr ||
      !IsColumns(traits, weights.cols)) {
    return SIZE_MAX;
  }
  size_t count = weights.rows;
  size_t bytes = internal::StoredRowBytes(traits, weights.cols);
  if (layout == WeightLayout::kPacked) {
    count = CeilDiv(count, internal::kPackedRows);
    bytes = internal::PackedGroupBytes(
        traits, internal::WeightBlocks(traits, weights.cols));
  }
  return count > PTRDIFF_MAX / bytes ? SIZE_MAX : count * bytes;
}

// Messages for the faults that FindFaultOfMemory() finds.
struct MemoryErrors {
  const char* is_null;
  const char* has_stride;
  const char* is_too_large;
};
#define SWITCHYARD_MEMORY_ERRORS(name)                             \
  {                                                                \
    "MultiplyTile: " name ": data is null",                        \
        "MultiplyTile: " name ": stride is smaller than cols",     \
        "MultiplyTile: " name ": size overflows the address space" \
  }
constexpr MemoryErrors kDataErrors = SWITCHYARD_MEMORY_ERRORS("weights.data");
constexpr MemoryErrors kScalesErrors =
    SWITCHYARD_MEMORY_ERRORS("weights.scales");
constexpr MemoryErrors kRowsErrors = SWITCHYARD_MEMORY_ERRORS("tile.rows");
constexpr MemoryErrors kOutErrors = SWITCHYARD_MEMORY_ERRORS("tile.out");
#undef SWITCHYARD_MEMORY_ERRORS

// Returns an error unless the view has memory for its elements.
Status CheckMemory(const ConstAnyMatrix& m, const MemoryErrors& errors) {
  switch (internal::FindFaultOfMemory(m)) {
    case calls::kIsNull:
      return internal::Invalid(errors.is_null);
    case calls::kHasStride:
      return internal::Invalid(errors.has_stride);
    case calls::kIsTooLarge:
      return internal::Invalid(errors.is_too_large);
    default:
      return Status();
  }
}

// True if the kernel can multiply these rows: floats, or codes with scales that
// each cover at least one block of weights.
bool AreOperands(const WeightTraits& traits, const ConstAnyRows& rows) {
  if (traits.is_float()) return internal::IsFloat(rows.type);
  if (rows.type == Type::kI8) {
    return rows.scales.type == Type::kF32 &&
           (traits.is_super()
                ? rows.scales.cols == 1
                : internal::GroupOf(rows.cols, rows.scales.cols) != 0);
  }
  return rows.type == (traits.is_super() ? Type::kQ8_K : Type::kQ8_0);
}

Status Refuse(const char* message, size_t got, size_t needs) {
  internal::Details details;
  details.Put("got ").Put(got).Put(", needs ").Put(needs);
  return internal::Refuse(StatusCode::kInvalidArgument, message, details);
}

// Packs the groups of all experts in one loop, which threads share.
struct PackContext {
  const PackWeightsInputs& inputs;
  const PackWeightsOutputs& outputs;
  size_t groups;  // the groups of 16 rows of one expert
  simd::RowFunction<simd::PackArgs> pack;

  static void Run(void* context, size_t /*worker*/, size_t begin, size_t end) {
    const internal::DefaultFpEnv fp_env;
    const auto& self = *static_cast<const PackContext*>(context);
    for (size_t at = begin; at < end;) {
      const size_t expert = at / self.groups, first = at % self.groups;
      const size_t count = std::min(end - at, self.groups - first);
      self.pack(self.ArgsOf(expert), first, first + count);
      at += count;
    }
  }
  simd::PackArgs ArgsOf(size_t expert) const {
    const ExpertWeights& weights = inputs.weights;
    simd::PackArgs args = {weights.format,
                           weights.rows,
                           weights.cols,
                           nullptr,
                           nullptr,
                           {},
                           outputs.memory.Row<unsigned char>(expert)};
    if (Given(inputs.floats)) {
      args.floats = inputs.floats.RowRange(expert * weights.rows,
                                           (expert + 1) * weights.rows);
    } else {
      args.stored = weights.data.Row<unsigned char>(expert);
    }
    if (Given(weights.scales)) {
      args.channel_scales = weights.scales.Row<float>(expert);
    }
    return args;
  }
};

}  // namespace

size_t ExpertWeightsSize(const ExpertWeights& weights) noexcept {
  return SizeOfExpert(weights, weights.layout);
}
size_t PackedWeightsSize(const ExpertWeights& weights) noexcept {
  return SizeOfExpert(weights, WeightLayout::kPacked);
}

Status PackWeights(const PackWeightsInputs& inputs,
                   const PackWeightsOutputs& outputs,
                   const PackWeightsOptions& options,
                   Executor& executor) noexcept {
  const Checked<calls::PackWeightsCall> call(inputs, outputs, options);
  if (!call.status.ok()) return call.status;
  const ExpertWeights& weights = inputs.weights;
  const AnyMatrix& memory = outputs.memory;
  const size_t groups = CeilDiv(weights.rows, internal::kPackedRows);
  PackContext context = {inputs, outputs, groups, simd::PackGroups()};
  // Packing a weight takes 1.3 ns from floats and 0.1 ns from codes on AVX2.
  const size_t weight_ps = Given(inputs.floats) ? 1300 : 100;
  const Status status = internal::ParallelFor(
      executor, memory.rows * groups,
      internal::Grain(executor, memory.rows * groups,
                      internal::kPackedRows * weights.cols * weight_ps),
      &PackContext::Run, &context);
  if (status.ok() && outputs.weights != nullptr) {
    *outputs.weights = {weights.format, WeightLayout::kPacked,
                        weights.rows,   weights.cols,
                        memory,         {}};
  }
  return status;
}

RowFormat OperandsOf(WeightFormat format) noexcept {
  const WeightTraits traits = TraitsOf(format);
  RowFormat rows;
  if (traits.is_float()) {
    rows.type = format == WeightFormat::kF32    ? Type::kF32
                : format == WeightFormat::kBF16 ? Type::kBF16
                                                : Type::kF16;
    return rows;
  }
  rows.type = traits.is_super() ? Type::kQ8_K : Type::kI8;
  if (!traits.is_super() && traits.has_block_scales()) {
    rows.scale_columns = traits.block;
  }
  return rows;
}

void SetCosts(WeightFormat format, ExpertsPlanOptions* options) noexcept {
  options->tile_columns = 2 * internal::kPackedRows;
  options->row_cost = 16;
  const size_t rows = format == WeightFormat::kF32 ? 6 : 3;
  options->weight_cost = rows * options->row_cost;
  options->min_rows = 0;
}

Status MultiplyTile(const ExpertWeights& weights,
                    const ExpertTile& tile) noexcept {
  if (!simd::g_isa_as_asked.load(std::memory_order_relaxed)) {
    const Status isa = EnvironmentIsa();
    if (!isa.ok()) return isa;
  }
  const WeightTraits traits = TraitsOf(weights.format);
  const size_t size = ExpertWeightsSize(weights);
  const bool is_packed = weights.layout == WeightLayout::kPacked;
  if (size == SIZE_MAX || weights.rows == 0) {
    return internal::Invalid(
        "MultiplyTile: weights: format, layout, rows or cols is out of range");
  }
  const ConstAnyMatrix& data = weights.data;
  if (data.type != Type::kU8 || data.cols != size) {
    return Refuse(
        "MultiplyTile: weights.data: is not uint8 [num_experts, "
        "ExpertWeightsSize]",
        data.cols, size);
  }
  Status memory = CheckMemory(data, kDataErrors);
  if (!memory.ok()) return memory;
  const bool has_channel_scales = traits.has_channel_scales() && !is_packed;
  const ConstAnyMatrix& scales = weights.scales;
  if (has_channel_scales &&
      (scales.type != Type::kF32 || scales.rows != data.rows ||
       scales.cols != weights.rows)) {
    return internal::Invalid(
        "MultiplyTile: weights.scales: is not f32 [num_experts, weights.rows]");
  }
  if (has_channel_scales) memory = CheckMemory(scales, kScalesErrors);
  if (!memory.ok()) return memory;
  const bool is_shared = tile.expert == ExpertTile::kShared;
  if (is_shared && data.rows != 1) {
    return Refuse(
        "MultiplyTile: weights.data: needs exactly one expert for the shared "
        "expert's tile",
        data.rows, 1);
  }
  const auto expert = static_cast<size_t>(is_shared ? 0 : tile.expert);
  if (tile.expert < ExpertTile::kShared || expert >= data.rows) {
    internal::Details details;
    details.Put("got ").Put(static_cast<int>(tile.expert));
    details.Put(" of ").Put(data.rows).Put(" experts");
    return internal::Refuse(StatusCode::kInvalidArgument,
                            "MultiplyTile: tile.expert: is not one of weights",
                            details);
  }
  const ConstAnyRows& rows = tile.rows;
  memory = CheckMemory(rows, kRowsErrors);
  if (!memory.ok()) return memory;
  if (!AreOperands(traits, rows) || !internal::AreSound(rows)) {
    return internal::Invalid(
        traits.is_float()
            ? "MultiplyTile: tile.rows: is not f32, bf16 or f16: set "
              "ExpertsOptions::operands, or down_operands, to "
              "OperandsOf(format)"
        : traits.is_super()
            ? "MultiplyTile: tile.rows: is neither q8_k nor i8 with an f32 "
              "scale of each row: set ExpertsOptions::operands, or "
              "down_operands, to OperandsOf(format)"
            : "MultiplyTile: tile.rows: is neither q8_0 nor i8 with f32 "
              "scales: set ExpertsOptions::operands, or down_operands, to "
              "OperandsOf(format)");
  }
  if (rows.cols != weights.cols) {
    return Refuse("MultiplyTile: tile.rows: is not [rows, weights.cols]",
                  rows.cols, weights.cols);
  }
  const AnyMatrix& out = tile.out;
  if (out.rows != rows.rows || !internal::IsFloat(out.type)) {
    return internal::Invalid(
        "MultiplyTile: tile.out: is not f32, bf16 or f16 [rows, columns]");
  }
  memory = CheckMemory(out, kOutErrors);
  if (!memory.ok()) return memory;
  if (tile.first_column > weights.rows ||
      out.cols > weights.rows - tile.first_column) {
    return Refuse(
        "MultiplyTile: tile.first_column: with tile.out.cols exceeds "
        "weights.rows",
        tile.first_column + out.cols, weights.rows);
  }
  if (is_packed && tile.first_column % internal::kPackedRows != 0) {
    return internal::Invalid(
        "MultiplyTile: tile.first_column: is not a multiple of 16, which "
        "packed weights need (ExpertsPlanOptions::tile_columns)");
  }
  if (internal::MayOverlap(out, rows) ||
      internal::MayOverlap(out, rows.scales)) {
    return internal::Invalid("MultiplyTile: tile.out: overlaps tile.rows");
  }
  if (out.cols == 0) return Status();
  const internal::DefaultFpEnv fp_env;
  simd::MultiplyRows()(
      {weights, data.Row<unsigned char>(expert),
       has_channel_scales ? scales.Row<float>(expert) : nullptr,
       tile.first_column, rows, out},
      0, rows.rows);
  return Status();
}

Status MultiplyTile(const LayerWeights& layer,
                    const ExpertTile& tile) noexcept {
  struct Product {
    const ExpertWeights& weights;
    const char* not_given;
  };
  const bool is_shared = tile.expert == ExpertTile::kShared;
  const auto multiply = [&](const Product& routed, const Product& shared) {
    const Product& product = is_shared ? shared : routed;
    if (product.weights.data.data == nullptr) {
      return internal::Invalid(product.not_given);
    }
    const Status status = MultiplyTile(product.weights, tile);
    if (status.ok()) return status;
    internal::Details details;
    details.Put(is_shared ? "shared_" : "").Put(calls::NameOf(tile.product));
    if (*status.details() != '\0') details.Put(": ").Put(status.details());
    return internal::Refuse(status.code(), status.message(), details);
  };
  switch (tile.product) {
#define SWITCHYARD_CASE(product, member)                                    \
  case ExpertProduct::product:                                              \
    return multiply({layer.member, "LayerWeights: " #member ": not given"}, \
                    {layer.shared_##member,                                 \
                     "LayerWeights: shared_" #member ": not given"});
    SWITCHYARD_CASE(kGateUp, gate_up)
    SWITCHYARD_CASE(kGate, gate)
    SWITCHYARD_CASE(kUp, up)
    SWITCHYARD_CASE(kDown, down)
#undef SWITCHYARD_CASE
  }
  return internal::Invalid(
      "LayerWeights: tile.product: is not a known ExpertProduct");
}

}  // namespace switchyard
