// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Activate against its formulas in double precision, in place and not, in every
// layout, with limits, biases, row scales and padding, on every ISA; and
// refusals.

#include <cmath>
#include <iterator>

#include "fuzz/call.h"
#include "src/calls/activate.h"
#include "switchyard/activate.h"
#include "testing/reference_activate.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

namespace {

std::string Text(float f) {
  char text[32];
  std::snprintf(text, sizeof(text), "%a", static_cast<double>(f));
  return text;
}

// Which rows are computed, if not all: the first of each expert's.
std::vector<int32_t> Counts(Bytes& bytes, size_t rows) {
  std::vector<int32_t> counts;
  const size_t experts = bytes.Below(4);
  if (experts == 0 || rows % experts != 0) return counts;
  for (size_t e = 0; e < experts; ++e) {
    counts.push_back(static_cast<int32_t>(bytes.Below(rows / experts + 1)));
  }
  return counts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Spoiler spoiler(bytes);
  ActivateOptions options;
  constexpr auto& kActivations = calls::kEnumerators<Activation>;
  options.activation = kActivations[bytes.Below(kActivations.size())];
  const bool of_gate = simd::IsOfGate(options.activation);
  options.layout = static_cast<GateUpLayout>(bytes.Below(of_gate ? 4 : 3));
  const bool ungated = options.layout == GateUpLayout::kUngated;
  constexpr float kLimits[] = {0.0f, 0.0f, 7.0f, 0.5f, HUGE_VALF};
  options.limit = kLimits[bytes.Below(5)];
  options.limit_place = static_cast<ActivatePlace>(of_gate && bytes.Flag());
  options.row_scale_place = static_cast<ActivatePlace>(bytes.Flag());
  constexpr float kFactors[] = {1.702f, 1.0f, 4.0f, 25.0f};
  reference::ForEachParameter(
      &options, [&](float* value) { *value = kFactors[bytes.Below(4)]; });
  options.stores = static_cast<ActivateStores>(bytes.Below(3));
  const bool split = options.layout == GateUpLayout::kSplit;
  const size_t rows = bytes.Size({1, 2, 0}, 6);
  const size_t cols = bytes.Size({0, 1, 16, 32, 64, 128}, 200);
  // Not in place, over gate, over up.
  const size_t place = bytes.Below(3);
  const bool interleaved = options.layout == GateUpLayout::kInterleaved;
  PiecesExecutor executor(bytes);
  const size_t gate_cols = split || ungated ? cols : 2 * cols;
  const std::vector<float> drawn = bytes.Floats(rows * gate_cols);
  const std::vector<float> drawn_up =
      split ? bytes.Floats(rows * cols) : std::vector<float>();
  Memory gate(bytes, rows, gate_cols, drawn);
  Memory up(bytes, rows, split ? cols : 0, drawn_up);
  Memory own(bytes, Type::kF32, rows, cols);
  const Type type = FloatType(bytes);
  gate.Become(type);
  up.Become(type);
  own.Become(FloatType(bytes));
  const std::vector<float> gates = gate.Floats();
  const std::vector<float> ups = up.Floats();
  ActivateInputs in = {gate.view(), split ? up.view() : AnyMatrix()};
  ActivateOutputs out = {own.view()};
  Memory* written = &own;
  if (place != 0 && !interleaved) {
    written = split && place == 2 ? &up : &gate;
    out.out = written->view();
    if (!split && !ungated) {
      const size_t first = place == 1 ? 0 : cols;
      out.out = out.out.ColRange(first, first + cols);
    }
  }

  const std::vector<int32_t> counts = Counts(bytes, rows);
  const size_t experts = counts.empty() ? 1 : counts.size();
  const bool scaled = bytes.Flag();
  const bool scaled_before =
      scaled && options.row_scale_place == ActivatePlace::kBefore;
  const bool biased = !scaled_before && bytes.Flag();
  const std::vector<float> drawn_bias =
      bytes.Floats(biased ? experts * gate_cols : 0);
  const std::vector<float> drawn_scale = bytes.Floats(scaled ? rows : 0);
  Memory bias(bytes, biased ? experts : 0, gate_cols, drawn_bias);
  Memory scale(bytes, scaled ? rows : 0, 1, drawn_scale);
  bias.Become(FloatType(bytes));
  scale.Become(FloatType(bytes));
  const std::vector<float> biases = bias.Floats(), scales = scale.Floats();
  if (biased) in.gate_bias = bias.view();
  if (scaled) in.row_scale = scale.view();
  in.tokens_per_expert = counts;

  const auto run = [&] { return Activate(in, out, options, executor); };
  if (RefusesSpoilt<calls::ActivateCall>(spoiler, &in, &out, &options, run)) {
    return 0;
  }

  const auto gate_at = [&](size_t r, size_t i) {
    return gates[r * gate_cols + (interleaved ? 2 * i : i)];
  };
  const auto up_at = [&](size_t r, size_t i) {
    if (ungated) return 0.0f;
    if (split) return ups[r * cols + i];
    return gates[r * gate_cols + (interleaved ? 2 * i + 1 : cols + i)];
  };
  const size_t row_stride = rows / experts;
  const auto computed = [&](size_t r) {
    return counts.empty() ||
           r % row_stride < static_cast<size_t>(counts[r / row_stride]);
  };
  // The f32 kernel's gates, ups and results, one element after the other.
  std::vector<float> apart[3];
  for (size_t i = 0; i < rows * cols; ++i) {
    const size_t r = i / cols, c = i % cols;
    float g = gate_at(r, c), u = up_at(r, c);
    if (scaled_before) {
      g *= scales[r];
      u *= scales[r];
    }
    if (biased) {
      const float* const row =
          &biases[(counts.empty() ? 0 : r / row_stride) * gate_cols];
      g += row[interleaved ? 2 * c : c];
      // kSplit has no bias for up.
      if (!split && !ungated) u += row[interleaved ? 2 * c + 1 : cols + c];
    }
    apart[0].push_back(g);
    apart[1].push_back(u);
  }
  apart[2].resize(rows * cols);
  const auto f32 = [&](size_t which) {
    return AnyMatrix(apart[which].data(), rows, cols);
  };
  ActivateOptions plain = options;
  if (!ungated) plain.layout = GateUpLayout::kSplit;
  const ActivateInputs apart_in = {f32(0), ungated ? AnyMatrix() : f32(1)};
  const std::vector<float> old = written->Floats();
  const auto check = [&](const Isa& isa) {
    FUZZ_CHECK(Activate(apart_in, {f32(2)}, plain).ok(), "f32");
    for (size_t i = 0; i < rows * cols; ++i) {
      const float x = apart[0][i], u = apart[1][i], actual = apart[2][i];
      const reference::Activated exact(plain, x, u, isa.fma);
      FUZZ_CHECK(exact.IsClose(u, actual),
                 std::string(isa.name) + ": activation " +
                     std::to_string(static_cast<int>(plain.activation)) +
                     " of " + Text(x) + " and " + Text(u) + " = " +
                     Text(actual));
      if (scaled && !scaled_before) apart[2][i] *= scales[i / cols];
    }
    // In the half of a fused gate and up that out is, the other being as it
    // was.
    const bool fused = written == &gate && gate_cols != cols;
    std::vector<float> expected = fused ? gates : apart[2];
    for (size_t i = 0; i < rows * cols; ++i) {
      const size_t first = place == 1 ? 0 : cols;
      const size_t at = fused ? i / cols * gate_cols + first + i % cols : i;
      expected[at] = computed(i / cols) ? apart[2][i] : old[at];
    }
    CheckRounded(*written, expected, isa.name);
    std::vector<uint32_t> words;
    Append(words, written->Floats());
    return words;
  };
  RunOnEveryIsa<calls::ActivateCall>(in, &out, {}, run, check);
  return 0;
}
