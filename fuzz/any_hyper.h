// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes random calls of HyperConnect.

#ifndef SWITCHYARD_FUZZ_ANY_HYPER_H_
#define SWITCHYARD_FUZZ_ANY_HYPER_H_

#include <vector>

#include "fuzz/any_floats.h"
#include "src/calls/hyper.h"
#include "switchyard/hyper.h"
#include "testing/reference_hyper.h"

namespace switchyard::fuzz {

struct AnyHyper : AnyFloats {
  using Call = calls::HyperCall;
  explicit AnyHyper(Bytes& b, const Asked& asked_for = {})
      : AnyFloats(asked_for),
        tokens(1 + b.Below(3)),
        n(b.Size({4, 1, kMaxStreams}, kMaxStreams)),
        hidden(1 + b.Size({0, 31, 32, 255, 256}, 100)),
        executor(b) {
    if (n == 0) n = 2;
    if (asked.hidden != 0) hidden = asked.hidden;
    const uint8_t parts = b.Byte();
    const auto with = [parts](int i) { return (parts >> i & 1) != 0; };
    const auto give = [&](ConstAnyMatrix HyperInputs::*member, size_t rows,
                          size_t cols) {
      return Give(b, rows, cols, &(in.*member), &(exact.*member)).view();
    };
    const AnyMatrix streams = give(&HyperInputs::streams, tokens * n, hidden);
    if (with(0)) {
      give(&HyperInputs::block, tokens, hidden);
      give(&HyperInputs::post, tokens, n);
      if (with(1)) give(&HyperInputs::comb, tokens, n * n);
    }
    out.streams = with(2) ? streams : Output(b, tokens * n, hidden);
    if (with(3)) out.scales = Output(b, tokens, 1);
    if (with(4)) {
      give(&HyperInputs::pre, with(5) ? tokens * n : tokens,
           with(5) ? hidden : n);
      out.out = Output(b, tokens, hidden);
      if (with(6)) {
        give(&HyperInputs::norm_weight, 1, hidden);
        out.normed = Output(b, tokens, hidden);
      }
    }
    options.num_streams = n;
    options.comb_by_row = b.Flag();
    options.norm_plus_one = b.Flag();
    options.round_like_unfused = with(7);
    if (b.Flag()) options.eps = 0.5f;
    // Leaves out some outputs.
    if (b.Flag() && (with(3) || with(4))) out.streams = {};
    if (b.Flag() && with(6) && with(4)) out.out = {};
  }
  void ExpectResults() {
    std::vector<float> fixed[4];
    std::vector<double> close[4];
    const auto add = [](auto row, auto& all) {
      AppendRow(row.streams, &all[0]);
      all[1].push_back(row.scale);
      AppendRow(row.out, &all[2]);
      AppendRow(row.normed, &all[3]);
    };
    for (size_t t = 0; t < tokens; ++t) {
      add(reference::HyperFixed(exact, options, t, in.streams.type), fixed);
      if (asked.tame) add(reference::Hyper(exact, options, t), close);
    }
    Expect(out.streams, fixed[0], close[0]);
    Expect(out.scales, fixed[1], close[1]);
    Expect(out.out, fixed[2], close[2]);
    Expect(out.normed, fixed[3], close[3]);
  }
  Status Run(Executor& who) const {
    return HyperConnect(in, out, options, who);
  }

  const size_t tokens;
  size_t n, hidden;
  PiecesExecutor executor;
  HyperInputs in, exact;
  HyperOutputs out;
  HyperOptions options;
};

}  // namespace switchyard::fuzz

#endif  // SWITCHYARD_FUZZ_ANY_HYPER_H_
