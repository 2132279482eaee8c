// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/combine.h"

#include <atomic>
#include <cfloat>
#include <cmath>
#include <tuple>
#include <utility>

#include "src/check.h"
#include "src/check_rows.h"
#include "src/combine_plan.h"
#include "src/schedule.h"
#include "src/shapes.h"
#include "src/simd/combine.h"

namespace switchyard {
namespace {

using internal::Given;
using internal::Role;

// Or nothing, of no tokens.
bool IsPerToken(const ConstAnyMatrix& m, size_t tokens) {
  return (m.rows == tokens && m.cols == 1) ||
         (m.rows == 1 && m.cols == tokens) || (tokens == 0 && !Given(m));
}

// One of `tokens` numbers in a row or in a column, as a column.
ConstAnyMatrix Column(const ConstAnyMatrix& m) {
  ConstAnyMatrix column = m;
  if (m.rows == 1) std::swap(column.rows, column.cols);
  return column;
}

// The message of a call whose views do not fit each other, or, if they do,
// `otherwise`.
[[gnu::cold, gnu::noinline]] const char* ShapeError(
    const CombineInputs& inputs, const CombineOutputs& outputs,
    const char* otherwise) {
  const auto& [rows, topk_weights, row_index, residual, norm_weight, shared] =
      std::tie(inputs.rows, inputs.topk_weights, inputs.row_index,
               inputs.residual, inputs.norm_weight, inputs.shared);
  const auto& [out, normed, report] = outputs;
  const IdentityExperts& identity = inputs.identity;
  if (!Given(out) && !Given(normed) && !Given(norm_weight)) {
    return "Combine: out: not given, nor normed";
  }
  if (!row_index.token_order && !Given(row_index)) {
    return "Combine: row_index: not given, nor RowIndex::kTokenOrder";
  }
  if (Given(topk_weights) && topk_weights.cols == 0) return otherwise;
  const auto needed_if = [](bool needed) {
    return needed ? Role::kInput : Role::kOptional;
  };
  const bool routed = Given(rows) || Given(topk_weights) || Given(row_index);
  const bool has_shared = Given(shared.rows) || Given(shared.gate);
  const bool has_identity = Given(identity.rows) || Given(identity.weight);
  const bool has_norm = Given(normed) || Given(norm_weight);
  const bool one_shared = shared.num_shared == 1;
  const internal::Shaped in_order = SWITCHYARD_SHAPED(
      Combine, needed_if(routed), rows, tokens * top_k, hidden);
  const internal::Shaped listed =
      SWITCHYARD_SHAPED(Combine, needed_if(routed), rows, num_rows, hidden);
  const internal::Shaped of_one = SWITCHYARD_SHAPED(
      Combine, needed_if(has_shared), shared.rows, tokens, hidden);
  const internal::Shaped of_several = SWITCHYARD_SHAPED(
      Combine, needed_if(has_shared), shared.rows, tokens * num_shared, hidden);
  const internal::Shaped arguments[] = {
      SWITCHYARD_SHAPED(Combine, needed_if(routed), topk_weights, tokens,
                        top_k),
      row_index.token_order ? in_order : listed,
      SWITCHYARD_SHAPED(Combine, needed_if(routed && !row_index.token_order),
                        row_index, tokens, top_k),
      {Role::kOptional, Span<const char>("", shared.num_shared), "num_shared",
       "1", "Combine: shared.num_shared: is not that of shared.rows", ""},
      one_shared ? of_one : of_several,
      {needed_if(has_shared && shared.kind != SharedGate::kNone),
       one_shared ? Column(shared.gate) : shared.gate, "tokens",
       one_shared ? "1" : "num_shared",
       one_shared ? "Combine: shared.gate: is not [tokens, 1] or [1, tokens]"
                  : "Combine: shared.gate: is not [tokens, num_shared]",
       "Combine: shared.gate: not given"},
      SWITCHYARD_SHAPED(Combine, needed_if(has_identity), identity.rows, tokens,
                        hidden),
      {needed_if(has_identity), Column(identity.weight), "tokens", "1",
       "Combine: identity.weight: is not [tokens, 1] or [1, tokens]",
       "Combine: identity.weight: not given"},
      SWITCHYARD_SHAPED(Combine, Role::kOptional, residual, tokens, hidden),
      SWITCHYARD_SHAPED(Combine, needed_if(has_norm), norm_weight, 1, hidden),
      SWITCHYARD_SHAPED(Combine, Role::kOptionalOutput, out, tokens, hidden),
      SWITCHYARD_SHAPED(Combine,
                        has_norm ? Role::kOutput : Role::kOptionalOutput,
                        normed, tokens, hidden)};
  return internal::OddOneOut(arguments, otherwise);
}

Status CheckShapes(const CombineInputs& inputs, const CombineOutputs& outputs) {
  const ConstAnyRows& rows = inputs.rows;
  const auto& [topk_weights, row_index, residual, norm_weight, shared] =
      std::tie(inputs.topk_weights, inputs.row_index, inputs.residual,
               inputs.norm_weight, inputs.shared);
  const auto& [out, normed, report] = outputs;
  const bool has_out = Given(out) || !Given(normed);
  const size_t tokens = has_out ? out.rows : normed.rows,
               hidden = has_out ? out.cols : normed.cols,
               top_k = topk_weights.cols, num_rows = rows.rows;
  SWITCHYARD_CHECK_ROWS(Combine, rows);
  SWITCHYARD_CHECK_FLOATS(Combine, topk_weights);
  SWITCHYARD_CHECK_FLOATS(Combine, out);
  SWITCHYARD_CHECK(internal::IsReadable(rows) &&
                       (!internal::HasParts(rows) || rows.scales.cols == 1),
                   "Combine: rows: has to be f32, bf16 or f16, or codes with "
                   "f32 scales [num_rows, 1]");
  const bool routed = top_k != 0;
  SWITCHYARD_CHECK_FITS(
      routed || (!Given(topk_weights) && !Given(rows) && row_index.token_order),
      "Combine: topk_weights: top_k (cols) is 0");
  SWITCHYARD_CHECK(routed || Given(shared.rows) || Given(residual) ||
                       Given(inputs.identity.rows),
                   "Combine: rows: not given, nor shared.rows, identity.rows "
                   "or residual");
  if (routed) {
    SWITCHYARD_CHECK_SHAPE_FITS(Combine, topk_weights, tokens, top_k);
    if (!row_index.token_order) {
      SWITCHYARD_CHECK_FITS(row_index.type == Type::kI32,
                            "Combine: row_index: has to be int32");
      SWITCHYARD_CHECK_VIEW(Combine, row_index);
      SWITCHYARD_CHECK_SHAPE_FITS(Combine, row_index, tokens, top_k);
      SWITCHYARD_CHECK_SHAPE_FITS(Combine, rows, num_rows, hidden);
    } else {
      // The product does not wrap: topk_weights fits the address space.
      SWITCHYARD_CHECK_SHAPE_FITS(Combine, rows, tokens * top_k, hidden);
    }
  }
  if (Given(shared.rows) || Given(shared.gate)) {
    const size_t num_shared = shared.num_shared;
    size_t shared_rows;
    SWITCHYARD_CHECK_FLOATS(Combine, shared.rows);
    SWITCHYARD_CHECK_FLOATS(Combine, shared.gate);
    SWITCHYARD_CHECK(num_shared != 0 && !__builtin_mul_overflow(
                                            tokens, num_shared, &shared_rows),
                     "Combine: shared.num_shared: is 0 or too large");
    if (num_shared == 1) {
      SWITCHYARD_CHECK_SHAPE_FITS(Combine, shared.rows, tokens, hidden);
    } else {
      SWITCHYARD_CHECK_FITS(
          shared.rows.rows == shared_rows && shared.rows.cols == hidden,
          "Combine: shared.rows: is not [tokens * num_shared, hidden]");
    }
    SWITCHYARD_CHECK(shared.kind == SharedGate::kLogit ||
                         shared.kind == SharedGate::kScalar ||
                         shared.kind == SharedGate::kNone,
                     "Combine: shared.kind: is not a known SharedGate");
    if (shared.kind == SharedGate::kNone) {
      SWITCHYARD_CHECK(!Given(shared.gate),
                       "Combine: shared.gate: given with SharedGate::kNone");
    } else if (num_shared == 1) {
      SWITCHYARD_CHECK_FITS(IsPerToken(shared.gate, tokens),
                            "Combine: shared.gate: is not [tokens, 1] or "
                            "[1, tokens]");
    } else {
      SWITCHYARD_CHECK_SHAPE_FITS(Combine, shared.gate, tokens, num_shared);
    }
  }
  if (Given(residual)) {
    SWITCHYARD_CHECK_FLOATS(Combine, residual);
    SWITCHYARD_CHECK_SHAPE_FITS(Combine, residual, tokens, hidden);
  }
  if (Given(normed) || Given(norm_weight)) {
    SWITCHYARD_CHECK_ROWS(Combine, normed);
    SWITCHYARD_CHECK_FLOATS(Combine, norm_weight);
    SWITCHYARD_CHECK_SHAPE_FITS(Combine, normed, tokens, hidden);
    SWITCHYARD_CHECK_SHAPE_FITS(Combine, norm_weight, 1, hidden);
  }
  return Status();
}

// What most models do not have.
[[gnu::cold]] Status CheckExtras(const CombineInputs& inputs, size_t tokens,
                                 size_t hidden) {
  const auto& [identity, norms, vectors] =
      std::tie(inputs.identity, inputs.norms, inputs.vectors);
  if (Given(identity.rows) || Given(identity.weight)) {
    SWITCHYARD_CHECK_FLOATS(Combine, identity.rows);
    SWITCHYARD_CHECK_FLOATS(Combine, identity.weight);
    SWITCHYARD_CHECK_NEEDED(
        Combine, identity.rows,
        identity.rows.rows == tokens && identity.rows.cols == hidden,
        "is not [tokens, hidden]");
    SWITCHYARD_CHECK_NEEDED(Combine, identity.weight,
                            IsPerToken(identity.weight, tokens),
                            "is not [tokens, 1] or [1, tokens]");
  }
#define SWITCHYARD_CHECK_VECTOR(m)                 \
  if (Given(m)) {                                  \
    SWITCHYARD_CHECK_FLOATS(Combine, m);           \
    SWITCHYARD_CHECK_SHAPE(Combine, m, 1, hidden); \
  }
  SWITCHYARD_CHECK_VECTOR(norms.routed);
  SWITCHYARD_CHECK_VECTOR(norms.shared);
  SWITCHYARD_CHECK_VECTOR(norms.block);
  SWITCHYARD_CHECK_VECTOR(vectors.block_bias);
  SWITCHYARD_CHECK_VECTOR(vectors.block_scale);
  SWITCHYARD_CHECK_VECTOR(vectors.residual_bias);
  SWITCHYARD_CHECK_VECTOR(vectors.residual_scale);
#undef SWITCHYARD_CHECK_VECTOR
  SWITCHYARD_CHECK(!Given(norms.routed) || inputs.topk_weights.cols != 0 ||
                       Given(identity.rows),
                   "Combine: norms.routed: given without rows");
  SWITCHYARD_CHECK(!Given(norms.shared) || Given(inputs.shared.rows),
                   "Combine: norms.shared: given without shared.rows");
  SWITCHYARD_CHECK(!Given(vectors.residual_bias) || Given(inputs.residual),
                   "Combine: vectors.residual_bias: given without residual");
  SWITCHYARD_CHECK(!Given(vectors.residual_scale) || Given(inputs.residual),
                   "Combine: vectors.residual_scale: given without residual");
  return Status();
}
[[gnu::cold]] Status CheckExtraOverlaps(const CombineInputs& inputs,
                                        const CombineOutputs& outputs) {
  const auto& [identity, norms, vectors] =
      std::tie(inputs.identity, inputs.norms, inputs.vectors);
  const auto& [out, normed, report] = outputs;
  SWITCHYARD_CHECK_APART(Combine, out, identity.rows, identity.weight,
                         norms.routed, norms.shared, norms.block,
                         vectors.block_bias, vectors.block_scale,
                         vectors.residual_bias, vectors.residual_scale);
  SWITCHYARD_CHECK_APART(Combine, normed, identity.rows, identity.weight,
                         norms.routed, norms.shared, norms.block,
                         vectors.block_bias, vectors.block_scale,
                         vectors.residual_bias, vectors.residual_scale);
  SWITCHYARD_CHECK_PARTS_APART(Combine, normed, identity.rows, identity.weight,
                               norms.routed, norms.shared, norms.block);
  SWITCHYARD_CHECK_PARTS_APART(Combine, normed, vectors.block_bias,
                               vectors.block_scale, vectors.residual_bias,
                               vectors.residual_scale);
  return Status();
}

// Exponents below 255, by the bits as IsUpTo() has it.
bool IsFinite(float x) {
  return internal::IsUpTo(FLT_MAX, x) || internal::IsUpTo(FLT_MAX, -x);
}
Status CheckOptions(const CombineOptions& options) {
  SWITCHYARD_CHECK(internal::IsUpTo(INFINITY, options.eps),
                   "Combine: options: eps is negative or NaN");
  SWITCHYARD_CHECK(internal::IsUpTo(INFINITY, options.block_eps),
                   "Combine: options: block_eps is negative or NaN");
  SWITCHYARD_CHECK(options.norm == NormKind::kWeight ||
                       options.norm == NormKind::kWeightInF32 ||
                       options.norm == NormKind::kPlusOne,
                   "Combine: options: norm is not a NormKind for normed");
  SWITCHYARD_CHECK(options.block_norm >= NormKind::kWeight &&
                       options.block_norm <= NormKind::kPlusOneFirst,
                   "Combine: options: block_norm is not a known NormKind");
  const CombineScales& scales = options.scales;
  SWITCHYARD_CHECK(IsFinite(scales.routed),
                   "Combine: options: scales.routed is not finite");
  SWITCHYARD_CHECK(IsFinite(scales.block),
                   "Combine: options: scales.block is not finite");
  SWITCHYARD_CHECK(IsFinite(scales.residual),
                   "Combine: options: scales.residual is not finite");
  SWITCHYARD_CHECK(IsFinite(scales.out),
                   "Combine: options: scales.out is not finite");
  return Status();
}

bool AreF32(const CombineInputs& in, const CombineOutputs& out) {
  constexpr Type kF32 = Type::kF32;
  return (in.rows.type == kF32) & (in.topk_weights.type == kF32) &
         (in.residual.type == kF32) & (in.norm_weight.type == kF32) &
         (in.shared.rows.type == kF32) & (in.shared.gate.type == kF32) &
         (out.out.type == kF32) & (out.normed.type == kF32);
}

// `out` may be one of the views that are read element by element as it is
// written, and without it `normed`. kF32: AreF32(), which halves it.
template <bool kF32>
[[gnu::always_inline]] inline Status CheckOverlaps(
    const CombineInputs& inputs, const CombineOutputs& outputs) {
  if (kF32 && !AreF32(inputs, outputs)) __builtin_unreachable();
  const auto& [rows, topk_weights, row_index, residual, norm_weight, shared] =
      std::tie(inputs.rows, inputs.topk_weights, inputs.row_index,
               inputs.residual, inputs.norm_weight, inputs.shared);
  const auto& [out, normed, report] = outputs;
  SWITCHYARD_CHECK_APART(Combine, out, rows, topk_weights, row_index,
                         norm_weight, shared.gate);
  if (internal::HasParts(rows)) {
    SWITCHYARD_CHECK_APART(Combine, out, rows.scales, rows.sums);
  }
  if (Given(residual)) SWITCHYARD_CHECK_APART_OR_SAME(Combine, out, residual);
  if (Given(shared.rows)) {
    SWITCHYARD_CHECK_APART_OR_SAME(Combine, out, shared.rows);
  }
  if (Given(normed)) {
    SWITCHYARD_CHECK_APART(Combine, normed, out, rows, topk_weights, row_index,
                           norm_weight, shared.gate);
    if (Given(out)) {
      SWITCHYARD_CHECK_APART(Combine, normed, residual, shared.rows);
    } else {
      if (Given(residual)) {
        SWITCHYARD_CHECK_APART_OR_SAME(Combine, normed, residual);
      }
      if (Given(shared.rows)) {
        SWITCHYARD_CHECK_APART_OR_SAME(Combine, normed, shared.rows);
      }
    }
    if (internal::HasParts(rows)) {
      SWITCHYARD_CHECK_APART(Combine, normed, rows.scales, rows.sums);
    }
    SWITCHYARD_CHECK_PARTS_APART(Combine, normed, out, rows, topk_weights,
                                 row_index, residual, norm_weight, shared.rows);
    SWITCHYARD_CHECK_PARTS_APART(Combine, normed, shared.gate, rows.scales,
                                 rows.sums);
  }
  return Status();
}

}  // namespace

Status Combine(const CombineInputs& inputs, const CombineOutputs& outputs,
               const CombineOptions& options, Executor& executor) noexcept {
  SWITCHYARD_CHECK_ISA();
  Status status = CheckShapes(inputs, outputs);
  if (status.ok()) {
    status = AreF32(inputs, outputs) ? CheckOverlaps<true>(inputs, outputs)
                                     : CheckOverlaps<false>(inputs, outputs);
  }
  if (!status.ok()) {
    if (status.code() != internal::kMisfit) return status;
    return Status(StatusCode::kInvalidArgument,
                  ShapeError(inputs, outputs, status.message()));
  }
  const bool extras = internal::HasExtras(inputs);
  const bool has_out = Given(outputs.out);
  const size_t tokens = has_out ? outputs.out.rows : outputs.normed.rows,
               hidden = has_out ? outputs.out.cols : outputs.normed.cols;
  if (extras) {
    status = CheckExtras(inputs, tokens, hidden);
    if (status.ok()) status = CheckExtraOverlaps(inputs, outputs);
    if (!status.ok()) return status;
  }
  status = CheckOptions(options);
  if (!status.ok()) return status;

  const internal::CombinePlan plan(inputs, outputs, options, extras);
  const auto kernel = simd::CombineRows(plan.rows_type());
  SWITCHYARD_CHECK_KERNEL(Combine, kernel);

  std::atomic<size_t> counter{0};
  if (hidden != 0) {
    // 0.06 ns an element and term: 0.7 us for H = 2048 and top_k = 8 in cache.
    const size_t row_ps =
        60 * hidden * (inputs.topk_weights.cols + 2 + 2 * plan.num_stages());
    status = internal::RunRows(
        executor, tokens, row_ps, kernel,
        {inputs, outputs, options, plan.stages(), plan.scales(), hidden,
         plan.rows_type(), plan.shared_listed(), plan.identity_listed(),
         &counter});
    if (!status.ok()) return status;
  }
  const size_t skipped = counter.load(std::memory_order_relaxed);
  if (outputs.report != nullptr) outputs.report->skipped = skipped;
  SWITCHYARD_CHECK_DATA(skipped == 0 || options.allow_skipped,
                        "Combine: row_index: outside [-1, num_rows), and "
                        "options.allow_skipped is not set");
  return Status();
}

}  // namespace switchyard
