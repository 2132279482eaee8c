// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "switchyard/activate.h"
#include "tools/corpus/corpus.h"

namespace switchyard::corpus {
namespace {

enum class Layout { kApart, kOnGate, kOnUp, kFused, kStreaming };

void Run(Executor& executor, Digests& digests, Layout layout, size_t rows,
         size_t cols, bool any) {
  const auto value = [any](uint32_t stream) {
    return [any, stream](size_t i) {
      return any ? AnyFloat(stream, i) : Uniform(stream, i, 16.0f);
    };
  };
  // A fused matrix has gate and up side by side.
  const bool fused = layout == Layout::kFused;
  Rows<float> first(rows, fused ? 2 * cols : cols, 3, value(11));
  Rows<float> second(rows, cols, 1, value(12));
  Rows<float> third(rows, cols, 2);
  const Matrix<float> gate =
      fused ? first.view().ColRange(0, cols) : first.view();
  const Matrix<float> up =
      fused ? first.view().ColRange(cols, 2 * cols) : second.view();
  ActivateOptions options;
  Matrix<float> out = third.view();
  if (layout == Layout::kOnUp) out = up;
  if (layout == Layout::kOnGate || fused) out = gate;
  if (layout == Layout::kStreaming) options.stores = ActivateStores::kStreaming;
  digests.Check(Activate({gate, up}, {out}, options, executor));
  digests.floats.Add(out);
}

const Registration registration([](std::vector<Case>& cases) {
  const std::pair<const char*, Layout> layouts[] = {
      {"apart", Layout::kApart},
      {"onto gate", Layout::kOnGate},
      {"onto up", Layout::kOnUp},
      {"fused", Layout::kFused},
      {"streaming", Layout::kStreaming}};
  for (const bool any : {false, true}) {
    for (const auto& [name, layout] : layouts) {
      cases.push_back(
          {std::string("silu_mul ") + name + (any ? ", any" : ", random"),
           [layout = layout, any](Executor& executor, Digests& digests) {
             for (size_t cols = 1; cols <= 140; ++cols) {
               Run(executor, digests, layout, 3, cols, any);
             }
             for (const size_t cols : {768u, 1408u, 2048u, 2880u}) {
               Run(executor, digests, layout, 5, cols, any);
             }
           }});
    }
  }
});

}  // namespace
}  // namespace switchyard::corpus
