// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes random calls of Combine. combine_fuzz covers rows of codes and stale
// rows, which this file does not draw.

#ifndef SWITCHYARD_FUZZ_ANY_COMBINE_H_
#define SWITCHYARD_FUZZ_ANY_COMBINE_H_

#include <cmath>
#include <vector>

#include "fuzz/any_floats.h"
#include "src/calls/combine.h"
#include "switchyard/combine.h"
#include "testing/reference_combine.h"

namespace switchyard::fuzz {

struct AnyCombine : AnyFloats {
  using Call = calls::CombineCall;
  explicit AnyCombine(Bytes& b, const Asked& asked_for = {})
      : AnyFloats(asked_for),
        tokens(1 + b.Below(3)),
        top_k(b.Below(9)),
        hidden(1 + b.Size({0, 31, 32, 33, 511, 512}, 100)),
        executor(b) {
    if (asked.hidden != 0) hidden = asked.hidden;
    const uint8_t parts = b.Byte(), norms = b.Byte(), vectors = b.Byte();
    const auto with = [](uint8_t bits, int i) { return (bits >> i & 1) != 0; };
    const auto give = [&](ConstAnyMatrix& to, ConstAnyMatrix& f32, size_t rows,
                          size_t cols) {
      return Give(b, rows, cols, &to, &f32).view();
    };
    const auto give_vector = [&](ConstAnyMatrix& to, ConstAnyMatrix& f32) {
      give(to, f32, 1, hidden);
    };
    AnyMatrix shared, residual;
    if (top_k != 0) {
      ConstAnyMatrix rows, rows_f32;
      give(rows, rows_f32, tokens * top_k, hidden);
      in.rows = rows, exact.rows = rows_f32;
      give(in.topk_weights, exact.topk_weights, tokens, top_k);
    }
    if (with(parts, 0)) {
      give(in.identity.rows, exact.identity.rows, tokens, hidden);
      const bool row = with(parts, 1);
      give(in.identity.weight, exact.identity.weight, row ? 1 : tokens,
           row ? tokens : 1);
    }
    if (with(parts, 2) || (top_k == 0 && !with(parts, 0))) {
      const size_t n = 1 + b.Below(3);
      in.shared.num_shared = n;
      in.shared.kind = with(parts, 3) ? SharedGate::kScalar : SharedGate::kNone;
      exact.shared = in.shared;
      shared = give(in.shared.rows, exact.shared.rows, tokens * n, hidden);
      if (with(parts, 3)) give(in.shared.gate, exact.shared.gate, tokens, n);
      if (with(norms, 1)) give_vector(in.norms.shared, exact.norms.shared);
    }
    if (with(norms, 0) && top_k != 0) {
      give_vector(in.norms.routed, exact.norms.routed);
    }
    if (with(norms, 2)) give_vector(in.norms.block, exact.norms.block);
    if (with(vectors, 0)) {
      give_vector(in.vectors.block_bias, exact.vectors.block_bias);
    }
    if (with(vectors, 1)) {
      give_vector(in.vectors.block_scale, exact.vectors.block_scale);
    }
    if (with(parts, 4)) {
      residual = give(in.residual, exact.residual, tokens, hidden);
      if (with(vectors, 2)) {
        give_vector(in.vectors.residual_bias, exact.vectors.residual_bias);
      }
      if (with(vectors, 3)) {
        give_vector(in.vectors.residual_scale, exact.vectors.residual_scale);
      }
    }
    const auto scale = [&](float& factor) {
      const float f = b.Flag() ? 1.0f : Numbers(b, 1)[0];
      factor = std::isfinite(f) ? f : -0.5f;
    };
    scale(options.scales.routed);
    scale(options.scales.block);
    scale(options.scales.residual);
    scale(options.scales.out);
    options.norm = NormKind(b.Below(3));
    options.block_norm =
        NormKind(b.Below(calls::kEnumerators<NormKind>.size()));
    options.block_eps = b.Flag() ? 1e-6f : 0.25f;
    options.round_like_unfused = b.Flag();
    const AnyMatrix own = Output(b, tokens, hidden);
    const AnyMatrix apart = Output(b, tokens, hidden);
    AnyMatrix first = own;
    if (with(parts, 5) && residual.data != nullptr) first = residual;
    if (with(parts, 6)) {
      give_vector(in.norm_weight, exact.norm_weight);
      out.normed = with(parts, 7) ? first : apart;
    }
    if (!with(parts, 6) || !with(parts, 7)) out.out = first;
    if (b.Flag()) options.eps = 0.5f;
    // The choices below are drawn last, so that older corpus files keep their
    // meaning: `out` may be the shared rows, and rows may have an index.
    if (b.Flag() && in.shared.num_shared == 1 && shared.data != nullptr &&
        first.data == own.data) {
      (out.out.data == own.data ? out.out : out.normed) = shared;
    }
    if (b.Flag() && top_k != 0) {
      index = b.Ids(tokens * top_k, tokens * top_k, false);
      for (int32_t& row : index) row -= row % 4 == 3 ? row + 1 : 0;
      in.row_index = exact.row_index = {index.data(), tokens, top_k};
    }
  }
  void ExpectResults() {
    const Type rounded = out.out.data != nullptr       ? out.out.type
                         : in.residual.data != nullptr ? in.residual.type
                                                       : out.normed.type;
    reference::CombineRow<float> fixed;
    reference::CombineRow<double> close;
    const auto add = [](const auto& row, auto* all) {
      AppendRow(row.out, &all->out);
      AppendRow(row.normed, &all->normed);
    };
    for (size_t t = 0; t < tokens; ++t) {
      add(reference::CombineFormFixed(exact, options, t, rounded), &fixed);
      if (asked.tame) add(reference::CombineForm(exact, options, t), &close);
    }
    Expect(out.out, fixed.out, close.out);
    Expect(out.normed, fixed.normed, close.normed);
  }
  Status Run(Executor& who) const { return Combine(in, out, options, who); }

  const size_t tokens, top_k;
  size_t hidden;
  PiecesExecutor executor;
  std::vector<int32_t> index;
  CombineInputs in = {{}, {}, RowIndex::kTokenOrder};
  CombineInputs exact = {{}, {}, RowIndex::kTokenOrder};
  CombineOutputs out;
  CombineOptions options;
};

}  // namespace switchyard::fuzz

#endif  // SWITCHYARD_FUZZ_ANY_COMBINE_H_
