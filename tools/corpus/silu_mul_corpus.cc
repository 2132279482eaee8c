// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/silu_mul.h"
#include "tools/corpus/corpus.h"

namespace switchyard {
namespace corpus {
namespace {

enum class Layout { kApart, kOnGate, kOnUp, kFused, kStreaming };

Status Run(Executor& executor, Digests& digests, Layout layout, size_t rows,
           size_t cols, bool any) {
  const auto value = [any](uint32_t seed) {
    return [any, seed](size_t i) {
      return any ? AnyFloat(seed, i) : Uniform(seed, i, 16.0f);
    };
  };
  // A fused matrix has gate and up side by side.
  const bool fused = layout == Layout::kFused;
  Rows<float> first(rows, fused ? 2 * cols : cols, 3);
  Rows<float> second(rows, cols, 1);
  Rows<float> third(rows, cols, 2);
  first.Fill(value(11));
  second.Fill(value(12));
  const Matrix<float> gate =
      fused ? first.view().ColRange(0, cols) : first.view();
  const Matrix<float> up =
      fused ? first.view().ColRange(cols, 2 * cols) : second.view();
  SiluMulOptions options;
  Matrix<float> out = third.view();
  if (layout == Layout::kOnUp) out = up;
  if (layout == Layout::kOnGate || fused) out = gate;
  if (layout == Layout::kStreaming) options.stores = SiluMulStores::kStreaming;
  const Status status = SiluMul(gate, up, out, options, executor);
  digests.floats.Add(out);
  return status;
}

Case MakeCase(const char* name, Layout layout, bool any) {
  return {
      std::string("silu_mul ") + name + (any ? ", any" : ", random"),
      [layout, any](Executor& executor, Digests& digests) {
        for (size_t cols = 1; cols <= 140; ++cols) {
          const Status status = Run(executor, digests, layout, 3, cols, any);
          if (!status.ok()) return status;
        }
        for (const size_t cols : {768u, 1408u, 2048u, 2880u}) {
          const Status status = Run(executor, digests, layout, 5, cols, any);
          if (!status.ok()) return status;
        }
        return Status();
      }};
}

}  // namespace

void AddSiluMulCases(std::vector<Case>& cases) {
  for (const bool any : {false, true}) {
    cases.push_back(MakeCase("apart", Layout::kApart, any));
    cases.push_back(MakeCase("onto gate", Layout::kOnGate, any));
    cases.push_back(MakeCase("onto up", Layout::kOnUp, any));
    cases.push_back(MakeCase("fused", Layout::kFused, any));
    cases.push_back(MakeCase("streaming", Layout::kStreaming, any));
  }
}

}  // namespace corpus
}  // namespace switchyard
