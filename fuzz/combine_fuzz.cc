// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs Combine on every ISA, with any of its optional arguments. The output is
// separate or in place. On ISAs with FMA, the results have to have the
// reference's bits. Also checks that invalid calls are refused.

#include <cmath>

#include "fuzz/call.h"
#include "src/calls/combine.h"
#include "switchyard/combine.h"
#include "testing/reference_combine.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

namespace {

using testing_support::CanonicalBits;

constexpr Type kF32 = Type::kF32;

struct Case {
  explicit Case(Bytes& b)
      : spoiler(b),
        tokens(b.Size({1, 2, 0}, 6)),
        top_k(1 + b.Size({7, 1, 63, 64}, 70)),
        hidden(b.Size({1, 0, 32, 64, 512}, 200)),
        parts(b.Byte()),
        num_rows(by_index() ? b.Size({0, 1}, 30) : tokens * top_k),
        executor(b),
        rows(b, num_rows, hidden, b.Floats(num_rows * hidden)),
        weights(b, tokens, top_k, b.Floats(tokens * top_k)),
        list(b.Ids(tokens * top_k, std::max<size_t>(1, num_rows), true)),
        index(b, Type::kI32, tokens, top_k, list),
        shared(b, tokens, hidden, b.Floats(tokens * hidden)),
        gate(b, gate_is_row() ? 1 : tokens, gate_is_row() ? tokens : 1,
             b.Floats(tokens)),
        residual(b, tokens, hidden, b.Floats(tokens * hidden)),
        norm_weight(b, 1, hidden, b.Floats(hidden)),
        own(b, kF32, tokens, hidden),
        normed(b, kF32, tokens, hidden),
        in{{}, {}, RowIndex::kTokenOrder} {
    if (by_index()) in.row_index = index.view();
    if (with_shared()) in.shared.kind = SharedGate(b.Below(3));
    if (with_residual() && (parts & 32) != 0) {
      written = &residual;
    } else if (with_shared() && (parts & 64) != 0) {
      written = &shared;
    }
    constexpr float kEps[] = {1e-6f, 0.0f,   -0.0f,
                              1.0f,  1e-41f, testing_support::kInf};
    options.eps = kEps[b.Below(std::size(kEps))];
    options.allow_skipped = b.Flag();
    const size_t row_type = b.Below(kFloats.size() + 4);
    if (row_type < kFloats.size()) {
      rows.Become(kFloats.begin()[row_type]);
    } else {
      rows.Become(WithoutScales(b));
      scales.emplace(b, num_rows, 1, b.Floats(num_rows));
    }
    for (Memory* m :
         {&weights, &shared, &gate, &residual, &norm_weight, &own, &normed}) {
      m->Become(FloatType(b));
    }
    options.round_like_unfused = b.Below(4) == 1;

    in.rows = {rows.view(), scales ? scales->view() : AnyMatrix()};
    in.topk_weights = weights.view();
    if (with_shared()) in.shared.rows = shared.view();
    if (with_shared() && in.shared.kind != SharedGate::kNone) {
      in.shared.gate = gate.view();
    }
    if (with_residual()) in.residual = residual.view();
    if (with_norm()) {
      in.norm_weight = norm_weight.view();
      out.normed = normed.view();
    }
    out.out = written->view();
  }
  bool by_index() const { return (parts & 1) != 0; }
  bool with_shared() const { return (parts & 2) != 0; }
  bool with_residual() const { return (parts & 4) != 0; }
  bool with_norm() const { return (parts & 8) != 0; }
  bool gate_is_row() const { return (parts & 16) != 0; }

  Spoiler spoiler;
  const size_t tokens, top_k, hidden;
  const uint8_t parts;
  const size_t num_rows;
  PiecesExecutor executor;
  Memory rows, weights;
  const std::vector<int32_t> list;
  Memory index, shared, gate, residual, norm_weight, own, normed;
  std::optional<Memory> scales;  // for rows of codes
  CombineInputs in;
  CombineOutputs out;
  CombineOptions options;
  Memory* written = &own;
};

// The same call as a Case, but with all inputs and outputs in f32. The inputs
// are the values that the Case's inputs store. Scales of rows become factors of
// the weights.
struct F32 {
  explicit F32(const Case& c)
      : rows(c.rows.Floats()),
        weights(c.weights.Floats()),
        shared(c.shared.Floats()),
        gate(c.gate.Floats()),
        residual(c.residual.Floats()),
        norm_weight(c.norm_weight.Floats()),
        out(c.tokens * c.hidden),
        normed(out.size()),
        in{{rows.data(), c.num_rows, c.hidden},
           {weights.data(), c.tokens, c.top_k},
           c.in.row_index} {
    const std::vector<float> scales =
        c.scales ? c.scales->Floats() : std::vector<float>();
    for (size_t p = 0; p < weights.size(); ++p) {
      const size_t row = c.by_index() ? static_cast<size_t>(c.list[p]) : p;
      if (row < scales.size()) weights[p] *= scales[row];
    }
    const auto view = [&](std::vector<float>& values) {
      return AnyMatrix(values.data(), c.tokens, c.hidden);
    };
    if (c.with_shared()) {
      in.shared = {view(shared), {}, c.in.shared.kind};
      if (in.shared.kind != SharedGate::kNone) in.shared.gate = gate;
    }
    if (c.with_residual()) in.residual = view(residual);
    outputs.out = view(out);
    if (c.with_norm()) {
      in.norm_weight = norm_weight;
      outputs.normed = view(normed);
    }
  }
  F32(const F32&) = delete;

  std::vector<float> rows, weights, shared, gate, residual, norm_weight, out,
      normed;
  CombineInputs in;
  CombineOutputs outputs;
};

// The reference's results for the f32 call.
struct Expected {
  Expected(const Case& c, const F32& f32) : shared(f32.shared) {
    for (size_t t = 0; t < c.tokens; ++t) {
      sums.push_back(reference::CombineSums(f32.in, t));
      fixed.push_back(reference::CombineFormFixed(f32.in, {}, t).out);
    }
    for (const int32_t row : c.list) {
      if (row < -1 || row >= static_cast<int64_t>(c.num_rows)) ++skipped;
    }
    if (!c.by_index() || c.hidden == 0) skipped = 0;
  }
  const std::vector<float> shared;
  std::vector<std::vector<reference::Sum>> sums;
  std::vector<std::vector<float>> fixed;
  size_t skipped = 0;
};

void CheckRow(const Case& c, const Expected& expected, size_t t,
              const std::vector<float>& row, bool fma) {
  const bool logit = c.with_shared() && c.in.shared.kind == SharedGate::kLogit;
  for (size_t h = 0; h < c.hidden; ++h) {
    const std::string where =
        "token " + std::to_string(t) + " column " + std::to_string(h);
    if (fma && !logit) {
      FUZZ_CHECK(CanonicalBits(row[h]) == CanonicalBits(expected.fixed[t][h]),
                 where);
      continue;
    }
    const reference::Sum& sum = expected.sums[t][h];
    if (!(sum.magnitude < 1e38)) continue;  // the sum may overflow
    // The sigmoid's error of 2.5 ulp changes the shared expert's term by at
    // most 5 * 2^-24 of that term. The bound is 20 instead of 4 + 5, because on
    // ISAs without FMA the sigmoid is off by a few more ulp, and products and
    // sums may be denormal.
    const double terms = static_cast<double>(c.top_k) + (logit ? 20.0 : 4.0);
    const double bound = terms * (0x1p-24 * sum.magnitude + 0x1p-149);
    // If the sigmoid is below 2^-125, it may be 0.
    const double flushed =
        logit ? 0x1p-125 * std::fabs(expected.shared[t * c.hidden + h]) : 0.0;
    FUZZ_CHECK(
        std::fabs(static_cast<double>(row[h]) - sum.value) <= bound + flushed,
        where + ": " + std::to_string(row[h]) + ", expected " +
            std::to_string(sum.value));
  }
}

void CheckNormed(const Case& c, const F32& f32, const std::vector<float>& row,
                 const std::vector<float>& normed, bool fma) {
  if (!fma) return;  // for other ISAs, tests bound the error
  const std::vector<float> fixed =
      reference::CombineNormFixed(row, f32.in.norm_weight, c.options.eps);
  FUZZ_CHECK(CanonicalBits(normed) == CanonicalBits(fixed), "normed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Case c(bytes);
  const auto run = [&] { return Combine(c.in, c.out, c.options, c.executor); };
  if (RefusesSpoilt<calls::CombineCall>(c.spoiler, &c.in, &c.out, &c.options,
                                        run)) {
    return 0;
  }
  F32 f32(c);
  const Expected expected(c, f32);
  const auto check = [&](const Isa& isa) {
    CombineOptions any_rows = c.options;
    any_rows.allow_skipped = true;
    any_rows.round_like_unfused = false;
    FUZZ_CHECK(Combine(f32.in, f32.outputs, any_rows).ok(), "f32");
    for (size_t t = 0; t < c.tokens; ++t) {
      const auto row_of = [&](const std::vector<float>& values) {
        const float* const row = values.data() + t * c.hidden;
        return std::vector<float>(row, row + c.hidden);
      };
      CheckRow(c, expected, t, row_of(f32.out), isa.fma);
      if (!c.with_norm()) continue;
      CheckNormed(c, f32, row_of(f32.out), row_of(f32.normed), isa.fma);
    }
    std::vector<uint32_t> words;
    Append(words, c.written->Floats());
    if (c.with_norm()) Append(words, c.normed.Floats());
    if (!c.options.round_like_unfused) {
      CheckRounded(*c.written, f32.out, "out");
      if (c.with_norm()) CheckRounded(c.normed, f32.normed, "normed");
    }
    return words;
  };
  Report report = kUnwritten;
  report.skipped = expected.skipped;
  RunOnEveryIsa<calls::CombineCall>(
      c.in, &c.out, {c.options.allow_skipped || report.skipped == 0, report},
      run, check);
  return 0;
}
