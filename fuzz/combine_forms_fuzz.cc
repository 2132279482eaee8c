// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Combine with what only some models have, to the bit of the reference where
// there are FMAs, the same on every ISA that has them; and refusals.

#include <deque>

#include "fuzz/call.h"
#include "src/calls/combine.h"
#include "switchyard/combine.h"
#include "testing/reference_combine.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

namespace {

struct Case {
  explicit Case(Bytes& b)
      : spoiler(b),
        bytes(b),
        tokens(1 + b.Below(3)),
        top_k(b.Below(9)),
        hidden(1 + b.Size({0, 31, 32, 33, 511, 512}, 100)),
        executor(b) {
    const uint8_t parts = b.Byte(), norms = b.Byte(), vectors = b.Byte();
    const auto with = [](uint8_t bits, int i) { return (bits >> i & 1) != 0; };
    const auto give = [&](ConstAnyMatrix& to, ConstAnyMatrix& f32, size_t rows,
                          size_t cols) {
      inputs.emplace_back(b, rows, cols, b.Floats(rows * cols));
      inputs.back().Become(FloatType(b));
      values.push_back(inputs.back().Floats());
      to = inputs.back().view();
      f32 = {values.back().data(), rows, cols};
    };
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
      give(in.shared.rows, exact.shared.rows, tokens * n, hidden);
      if (with(parts, 3)) give(in.shared.gate, exact.shared.gate, tokens, n);
      if (with(norms, 1))
        give_vector(give, in.norms.shared, exact.norms.shared);
    }
    if (with(norms, 0) && top_k != 0) {
      give_vector(give, in.norms.routed, exact.norms.routed);
    }
    if (with(norms, 2)) give_vector(give, in.norms.block, exact.norms.block);
    if (with(vectors, 0)) {
      give_vector(give, in.vectors.block_bias, exact.vectors.block_bias);
    }
    if (with(vectors, 1)) {
      give_vector(give, in.vectors.block_scale, exact.vectors.block_scale);
    }
    if (with(parts, 4)) {
      residual = inputs.size();
      give(in.residual, exact.residual, tokens, hidden);
      if (with(vectors, 2)) {
        give_vector(give, in.vectors.residual_bias,
                    exact.vectors.residual_bias);
      }
      if (with(vectors, 3)) {
        give_vector(give, in.vectors.residual_scale,
                    exact.vectors.residual_scale);
      }
    }
    const auto scale = [&](float& factor) {
      const float f = b.Flag() ? 1.0f : b.Float();
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
    own.emplace(b, FloatType(b), tokens, hidden);
    normed.emplace(b, FloatType(b), tokens, hidden);
    const bool in_place = with(parts, 5) && in.residual.data != nullptr;
    Memory& first = in_place ? inputs[residual] : *own;
    if (with(parts, 6)) {
      give_vector(give, in.norm_weight, exact.norm_weight);
      normed_at = with(parts, 7) ? &first : &*normed;
      out.normed = normed_at->view();
    }
    if (!with(parts, 6) || !with(parts, 7)) {
      out_at = &first;
      out.out = first.view();
    }
  }
  template <class Give>
  void give_vector(const Give& give, ConstAnyMatrix& to, ConstAnyMatrix& f32) {
    give(to, f32, 1, hidden);
  }
  Type Rounded() const {
    return out_at != nullptr             ? out.out.type
           : in.residual.data != nullptr ? in.residual.type
                                         : out.normed.type;
  }

  Spoiler spoiler;
  Bytes& bytes;
  const size_t tokens, top_k, hidden;
  PiecesExecutor executor;
  std::deque<Memory> inputs;
  std::deque<std::vector<float>> values;
  std::optional<Memory> own, normed;
  size_t residual = 0;
  Memory* out_at = nullptr;
  Memory* normed_at = nullptr;
  CombineInputs in = {{}, {}, RowIndex::kTokenOrder};
  CombineInputs exact = {{}, {}, RowIndex::kTokenOrder};
  CombineOutputs out;
  CombineOptions options;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Case c(bytes);
  const auto run = [&] { return Combine(c.in, c.out, c.options, c.executor); };
  if (RefusesSpoilt<calls::CombineCall>(c.spoiler, &c.in, &c.out, &c.options,
                                        run)) {
    return 0;
  }
  std::vector<float> out, normed;
  for (size_t t = 0; t < c.tokens; ++t) {
    const auto row =
        reference::CombineFormFixed(c.exact, c.options, t, c.Rounded());
    out.insert(out.end(), row.out.begin(), row.out.end());
    normed.insert(normed.end(), row.normed.begin(), row.normed.end());
  }
  RunOnEveryIsa<calls::CombineCall>(c.in, &c.out, {}, run, [&](const Isa& isa) {
    std::vector<uint32_t> words;
    for (const auto& [memory, right] :
         {std::pair(c.out_at, &out), std::pair(c.normed_at, &normed)}) {
      if (memory == nullptr) continue;
      Append(words, memory->Floats());
      if (isa.fma) CheckRounded(*memory, *right, "output");
    }
    return words;
  });
  return 0;
}
