// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// HyperConnect to the bit of the reference where there are FMAs, the same on
// every ISA that has them; and refusals.

#include <deque>

#include "fuzz/call.h"
#include "src/calls/hyper.h"
#include "switchyard/hyper.h"
#include "testing/reference_hyper.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

namespace {

struct Case {
  explicit Case(Bytes& b)
      : spoiler(b),
        tokens(1 + b.Below(3)),
        n(b.Size({4, 1, kMaxStreams}, kMaxStreams)),
        hidden(1 + b.Size({0, 31, 32, 255, 256}, 100)),
        executor(b) {
    if (n == 0) n = 2;
    const uint8_t parts = b.Byte();
    const auto with = [parts](int i) { return (parts >> i & 1) != 0; };
    const auto give = [&](ConstAnyMatrix HyperInputs::*member, size_t rows,
                          size_t cols) {
      inputs.emplace_back(b, rows, cols, b.Floats(rows * cols));
      inputs.back().Become(FloatType(b));
      values.push_back(inputs.back().Floats());
      in.*member = inputs.back().view();
      exact.*member = {values.back().data(), rows, cols};
    };
    const auto output = [&](size_t rows, size_t cols) {
      outputs.emplace_back(b, FloatType(b), rows, cols);
      return outputs.back().view();
    };
    give(&HyperInputs::streams, tokens * n, hidden);
    if (with(0)) {
      give(&HyperInputs::block, tokens, hidden);
      give(&HyperInputs::post, tokens, n);
      if (with(1)) give(&HyperInputs::comb, tokens, n * n);
    }
    in_place = with(2);
    out.streams = in_place ? inputs[0].view() : output(tokens * n, hidden);
    if (with(3)) out.scales = output(tokens, 1);
    if (with(4)) {
      give(&HyperInputs::pre, with(5) ? tokens * n : tokens,
           with(5) ? hidden : n);
      out.out = output(tokens, hidden);
      if (with(6)) {
        give(&HyperInputs::norm_weight, 1, hidden);
        out.normed = output(tokens, hidden);
      }
    }
    options.num_streams = n;
    options.comb_by_row = b.Flag();
    options.norm_plus_one = b.Flag();
    options.round_like_unfused = with(7);
  }

  Spoiler spoiler;
  const size_t tokens;
  size_t n;
  const size_t hidden;
  PiecesExecutor executor;
  std::deque<Memory> inputs, outputs;
  std::deque<std::vector<float>> values;
  bool in_place = false;
  HyperInputs in, exact;
  HyperOutputs out;
  HyperOptions options;
};

template <class T>
void AppendAll(std::vector<T>* to, const std::vector<T>& from) {
  to->insert(to->end(), from.begin(), from.end());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Case c(bytes);
  const auto run = [&] {
    return HyperConnect(c.in, c.out, c.options, c.executor);
  };
  if (RefusesSpoilt<calls::HyperCall>(c.spoiler, &c.in, &c.out, &c.options,
                                      run)) {
    return 0;
  }
  // In the order in which the outputs' memory was made.
  std::vector<float> streams, scales, out, normed;
  for (size_t t = 0; t < c.tokens; ++t) {
    const auto row =
        reference::HyperFixed(c.exact, c.options, t, c.in.streams.type);
    AppendAll(&streams, row.streams);
    scales.push_back(row.scale);
    AppendAll(&out, row.out);
    AppendAll(&normed, row.normed);
  }
  std::vector<std::pair<Memory*, const std::vector<float>*>> right;
  if (c.in_place) right.emplace_back(&c.inputs[0], &streams);
  size_t next = 0;
  const auto expect = [&](const AnyMatrix& m, const std::vector<float>& row) {
    if (m.data == nullptr) return;
    right.emplace_back(&c.outputs[next++], &row);
  };
  if (!c.in_place) expect(c.out.streams, streams);
  expect(c.out.scales, scales);
  expect(c.out.out, out);
  expect(c.out.normed, normed);
  RunOnEveryIsa<calls::HyperCall>(c.in, &c.out, {}, run, [&](const Isa& isa) {
    std::vector<uint32_t> words;
    for (const auto& [memory, values] : right) {
      if (isa.fma) CheckRounded(*memory, *values, "output");
      Append(words, memory->Floats());
    }
    return words;
  });
  return 0;
}
