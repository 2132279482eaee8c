// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "src/calls/names.h"
#include "src/simd/activate.h"
#include "switchyard/activate.h"
#include "tools/corpus/format_rows.h"

namespace switchyard::corpus {
namespace {

enum class Layout { kApart, kOnGate, kOnUp, kFused, kStreaming };

struct Types {
  const char* name;
  Type in, out;
};

void Run(Executor& executor, Digests& digests, const Types& types,
         Layout layout, size_t rows, size_t cols, bool any) {
  const auto value = [any](uint32_t stream) {
    return [any, stream](size_t i) {
      return any ? AnyFloat(stream, i) : Uniform(stream, i, 16.0f);
    };
  };
  // A fused matrix has gate and up side by side.
  const bool fused = layout == Layout::kFused;
  TypedRows first(types.in, rows, fused ? 2 * cols : cols, 3, value(11));
  TypedRows second(types.in, rows, cols, 1, value(12));
  TypedRows third(types.out, rows, cols, 2);
  const AnyMatrix gate = fused ? first.view().ColRange(0, cols) : first.view();
  const AnyMatrix up =
      fused ? first.view().ColRange(cols, 2 * cols) : second.view();
  ActivateOptions options;
  AnyMatrix out = third.view();
  if (layout == Layout::kOnUp) out = up;
  if (layout == Layout::kOnGate || fused) out = gate;
  if (layout == Layout::kStreaming) options.stores = ActivateStores::kStreaming;
  digests.Check(Activate({gate, up}, {out}, options, executor));
  AddFloats(digests.floats, out);
}

void Quantize(Executor& executor, Digests& digests, Type in,
              const Format& format) {
  for (size_t least = 1; least <= 2048; least = 3 * least / 2 + 1) {
    const size_t cols = format.Cols(least);
    TypedRows both(in, 3, 2 * cols, 1,
                   [](size_t i) { return Uniform(13, i, 16.0f); });
    const FormatMemory out(format, 3, cols, 2);
    digests.Check(Activate(
        {both.view().ColRange(0, cols), both.view().ColRange(cols, 2 * cols)},
        {out.view()}, {}, executor));
    out.AddTo(digests.floats);
  }
}

// Runs all options except plain SiLU. Layouts, limits, biases and row scales
// take turns. Each expert has other rows, and some rows belong to no
// expert.
void Optional(Executor& executor, Digests& digests, Activation activation,
              bool any) {
  const bool of_gate = internal::IsOfGate(activation);
  constexpr Type kTypes[] = {Type::kF32, Type::kBF16, Type::kF16};
  const std::vector<int32_t> offsets = {1, 3, 3, 6}, counts = {1, 0, 2};
  for (uint32_t i = 0; i < 144; ++i) {
    const size_t cols = i % 16 == 15 ? 1100 : 1 + 7 * i % 139;
    const size_t rows = i % 3 == 1 ? 6 : 7;
    ActivateOptions options;
    options.activation = activation;
    options.layout = static_cast<GateUpLayout>(i % (of_gate ? 4 : 3));
    options.limit = i / 2 % 2 == 0 ? 0.0f : 2.75f;
    options.limit_place = static_cast<ActivatePlace>(of_gate && i % 5 == 0);
    options.row_scale_place = static_cast<ActivatePlace>(i / 3 % 2);
    options.round_like_unfused = i % 6 == 5;
    const Type in = kTypes[i / 4 % 3], out = kTypes[i / 12 % 3];
    const bool split = options.layout == GateUpLayout::kSplit;
    const bool fused = !split && options.layout != GateUpLayout::kUngated;
    const auto value = [any, i](uint32_t stream) {
      return [any, stream = stream + 8 * i](size_t n) {
        return any ? AnyFloat(stream, n) : Uniform(stream, n, 16.0f);
      };
    };
    TypedRows gate(in, rows, fused ? 2 * cols : cols, 3, value(100));
    TypedRows up(in, rows, cols, 1, value(101));
    TypedRows gate_bias(kTypes[i % 3], 3, fused ? 2 * cols : cols, 1,
                        value(102));
    TypedRows up_bias(kTypes[i % 3], 3, cols, 2, value(103));
    TypedRows scale(kTypes[i / 2 % 3], rows, 1, 0, value(104));
    TypedRows to(out, rows, cols, 2);
    ActivateInputs inputs = {gate.view()};
    if (split) inputs.up = up.view();
    if (i % 3 == 0) inputs.offsets = offsets;
    if (i % 3 == 1) inputs.tokens_per_expert = counts;
    if (i % 3 != 2 && i / 6 % 2 == 0) {
      inputs.gate_bias = gate_bias.view();
      if (split) inputs.up_bias = up_bias.view();
    }
    if (i / 7 % 2 == 0) inputs.row_scale = scale.view();
    digests.Check(Activate(inputs, {to.view()}, options, executor));
    AddFloats(digests.floats, to.view());
  }
}

const Registration registration("activate", [](std::vector<Case>& cases) {
  const std::pair<const char*, Layout> layouts[] = {
      {"apart", Layout::kApart},
      {"onto gate", Layout::kOnGate},
      {"onto up", Layout::kOnUp},
      {"fused", Layout::kFused},
      {"streaming", Layout::kStreaming}};
  constexpr Types kTypes[] = {{"", Type::kF32, Type::kF32},
                              {", bf16", Type::kBF16, Type::kBF16},
                              {", f16", Type::kF16, Type::kF16},
                              {", bf16 to f32", Type::kBF16, Type::kF32},
                              {", f32 to bf16", Type::kF32, Type::kBF16},
                              {", f32 to f16", Type::kF32, Type::kF16}};
  for (const Types& types : kTypes) {
    for (const bool any : {false, true}) {
      for (const auto& [name, layout] : layouts) {
        const bool in_place =
            layout != Layout::kApart && layout != Layout::kStreaming;
        if (in_place && types.in != types.out) continue;
        cases.push_back(
            {std::string("silu_mul ") + name + types.name +
                 (any ? ", any" : ", random"),
             [types, layout = layout, any](Executor& executor,
                                           Digests& digests) {
               const bool f32 = types.name[0] == 0;
               for (size_t cols = 1; cols <= 140; cols += f32 ? 1 : 9) {
                 Run(executor, digests, types, layout, 3, cols, any);
               }
               for (const size_t cols : {768u, 1408u, 2048u, 2880u}) {
                 Run(executor, digests, types, layout, 5, cols, any);
               }
             }});
      }
    }
  }
  for (const Activation activation : calls::kEnumerators<Activation>) {
    for (const bool any : {false, true}) {
      cases.push_back({std::string("activate ") + calls::NameOf(activation) +
                           (any ? ", options, any" : ", options, random"),
                       [activation, any](Executor& executor, Digests& digests) {
                         Optional(executor, digests, activation, any);
                       }});
    }
  }
  for (const Type in : {Type::kF32, Type::kBF16}) {
    for (const Format& format : kFormats) {
      if (format.group == 0 && BlockOf(format.type) == 1) continue;
      cases.push_back({std::string("silu_mul ") +
                           (in == Type::kF32 ? "f32" : "bf16") + " to " +
                           format.name,
                       [in, format](Executor& executor, Digests& digests) {
                         Quantize(executor, digests, in, format);
                       }});
    }
  }
});

}  // namespace
}  // namespace switchyard::corpus
