// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes random calls of Activate. The expected results come from the f32
// kernel. It gets gates and ups to which this file has already applied biases,
// scales and the layout. The f32 kernel's results have to be close to the
// formulas.

#ifndef SWITCHYARD_FUZZ_ANY_ACTIVATE_H_
#define SWITCHYARD_FUZZ_ANY_ACTIVATE_H_

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/any_floats.h"
#include "src/calls/activate.h"
#include "switchyard/activate.h"
#include "testing/reference_activate.h"

namespace switchyard::fuzz {

struct AnyActivate : AnyFloats {
  using Call = calls::ActivateCall;
  explicit AnyActivate(Bytes& b, const Asked& asked_for = {})
      : AnyFloats(asked_for), executor(b) {
    constexpr auto& kActivations = calls::kEnumerators<Activation>;
    options.activation = kActivations[b.Below(kActivations.size())];
    const bool of_gate = internal::IsOfGate(options.activation);
    options.layout = static_cast<GateUpLayout>(b.Below(of_gate ? 4 : 3));
    constexpr float kLimits[] = {0.0f, 0.0f, 7.0f, 0.5f, HUGE_VALF};
    options.limit = kLimits[b.Below(5)];
    options.limit_place = static_cast<ActivatePlace>(of_gate && b.Flag());
    options.row_scale_place = static_cast<ActivatePlace>(b.Flag());
    constexpr float kFactors[] = {1.702f, 1.0f, 4.0f, 25.0f};
    reference::ForEachParameter(
        &options, [&](float* value) { *value = kFactors[b.Below(4)]; });
    options.stores = static_cast<ActivateStores>(b.Below(3));
    is_gated = options.layout != GateUpLayout::kUngated;
    const bool is_split = options.layout == GateUpLayout::kSplit;
    const bool is_pairs = options.layout == GateUpLayout::kInterleaved;
    const bool is_fused = is_gated && !is_split;
    rows = b.Size({1, 2, 0}, asked.coarse ? 12 : 6);
    cols = b.Size({0, 1, 16, 32, 64, 128}, 200);
    if (asked.hidden != 0) cols = asked.hidden;
    // The output is in other memory (0), over gate (1) or over up (2).
    const size_t place = b.Below(3);
    width = is_fused ? 2 * cols : cols;
    const std::vector<float> drawn = Numbers(b, rows * width);
    const std::vector<float> drawn_up = Numbers(b, is_split ? rows * cols : 0);
    Memory& gate = inputs.emplace_back(b, rows, width, drawn);
    Memory& up = inputs.emplace_back(b, is_split ? rows : 0, cols, drawn_up);
    Memory& own = outputs.emplace_back(b, Type::kF32, rows, cols);
    const Type type = TypeOf(b);
    gate.Become(type);
    up.Become(type);
    own.Become(TypeOf(b));
    in.gate = gate.view();
    if (is_split) in.up = up.view();
    written = place == 0 || is_pairs   ? &own
              : is_split && place == 2 ? &up
                                       : &gate;
    out.out = written->view();
    if (is_fused && written == &gate) {
      first = place == 1 ? 0 : cols;
      out.out = gate.view().ColRange(first, first + cols);
    }
    DrawExperts(b);
    const bool is_scaled = b.Flag();
    const bool scales_before =
        is_scaled && options.row_scale_place == ActivatePlace::kBefore;
    const size_t experts = std::max<size_t>(
        1, std::max(in.tokens_per_expert.size, in.offsets.size) -
               (in.offsets.size != 0));
    // Sums and products of coarse numbers are exact, so the order of
    // operations does not matter.
    const bool is_biased = (asked.coarse || !scales_before) && b.Flag();
    const bool biases_up = is_biased && is_split && b.Flag();
    const auto give = [&](bool is_given, size_t n, size_t columns,
                          ConstAnyMatrix* to) {
      ConstAnyMatrix stored, f32;
      Give(b, is_given ? n : 0, columns, &stored, &f32);
      if (is_given) *to = stored;
      return inputs.back().Floats();
    };
    const std::vector<float> gates = gate.Floats(), ups = up.Floats();
    const auto bias = give(is_biased, experts, width, &in.gate_bias);
    const auto up_bias = give(biases_up, experts, cols, &in.up_bias);
    scale = give(is_scaled, rows, 1, &in.row_scale);
    for (size_t i = 0; i < rows * cols; ++i) {
      const size_t r = i / cols, c = i % cols;
      const size_t of_gate_at = is_pairs ? 2 * c : c;
      const size_t of_up_at = is_pairs ? 2 * c + 1 : cols + c;
      float g = gates[r * width + of_gate_at];
      float u = !is_gated  ? 0.0f
                : is_split ? ups[i]
                           : gates[r * width + of_up_at];
      if (scales_before) {
        g *= scale[r];
        u *= scale[r];
      }
      const auto e = static_cast<size_t>(std::max(expert_of[r], 0));
      if (is_biased) g += bias[e * width + of_gate_at];
      if (is_biased && is_fused) u += bias[e * width + of_up_at];
      if (biases_up) u += up_bias[e * cols + c];
      prepared_gate.push_back(g);
      prepared_up.push_back(u);
    }
    if (scales_before) scale.clear();
    old = written->Floats();
  }
  // Draws the rows to compute: all rows, the first rows of each expert, or
  // slices.
  void DrawExperts(Bytes& b) {
    expert_of.assign(rows, 0);
    const size_t experts = b.Below(4);
    if (experts == 0) return;
    expert_of.assign(rows, -1);
    if (rows % experts == 0 && b.Below(4) != 1) {
      const size_t stride = rows / experts;
      for (size_t e = 0; e < experts; ++e) {
        const size_t count = b.Below(stride + 1);
        list.push_back(static_cast<int32_t>(count));
        std::fill_n(expert_of.begin() + static_cast<ptrdiff_t>(e * stride),
                    count, static_cast<int32_t>(e));
      }
      in.tokens_per_expert = list;
      return;
    }
    size_t row = b.Below(rows / 2 + 1);
    list.push_back(static_cast<int32_t>(row));
    for (size_t e = 0; e < experts; ++e) {
      for (size_t n = b.Below(rows - row + 1); n > 0; --n) {
        expert_of[row++] = static_cast<int32_t>(e);
      }
      list.push_back(static_cast<int32_t>(row));
    }
    in.offsets = list;
  }
  void ExpectResults() {}
  std::vector<uint32_t> Check(bool fma, bool /*is_rounded*/) {
    const auto text = [](float f) {
      char hex[32];
      std::snprintf(hex, sizeof(hex), "%a", static_cast<double>(f));
      return std::string(hex);
    };
    std::vector<float> acted(rows * cols);
    ActivateOptions plain = options;
    if (is_gated) plain.layout = GateUpLayout::kSplit;
    const auto view = [&](std::vector<float>& values) {
      return AnyMatrix(values.data(), rows, cols);
    };
    ActivateInputs split = {view(prepared_gate)};
    if (is_gated) split.up = view(prepared_up);
    FUZZ_CHECK(Activate(split, {view(acted)}, plain).ok(), "f32");
    std::vector<float> right = old;
    const size_t stride = rows == 0 ? 0 : old.size() / rows;
    for (size_t i = 0; i < rows * cols; ++i) {
      const float x = prepared_gate[i], u = prepared_up[i];
      const reference::Activated exact(plain, x, u, fma);
      FUZZ_CHECK(
          exact.IsClose(u, acted[i]),
          "activation " + std::to_string(static_cast<int>(plain.activation)) +
              " of " + text(x) + " and " + text(u) + " = " + text(acted[i]));
      const size_t r = i / cols;
      if (!scale.empty()) acted[i] *= scale[r];
      if (expert_of[r] >= 0) right[r * stride + first + i % cols] = acted[i];
    }
    CheckRounded(*written, right, "out");
    std::vector<uint32_t> words;
    Append(words, written->Floats());
    return words;
  }
  Status Run(Executor& who) const { return Activate(in, out, options, who); }

  PiecesExecutor executor;
  ActivateInputs in;
  ActivateOutputs out;
  ActivateOptions options;
  bool is_gated = true;
  // `width` is the number of columns of gate's rows. `first` is the column of
  // `written` at which out begins.
  size_t rows = 0, cols = 0, width = 0, first = 0;
  const Memory* written = nullptr;
  std::vector<int32_t> list, expert_of;  // for each row; -1: not computed
  // `prepared_gate` and `prepared_up` are gate and up after biases and scales.
  // `scale` has the factors of the results, or is empty if the gates already
  // have these factors. `old` is the output before the call.
  std::vector<float> prepared_gate, prepared_up, scale, old;
};

}  // namespace switchyard::fuzz

#endif  // SWITCHYARD_FUZZ_ANY_ACTIVATE_H_
