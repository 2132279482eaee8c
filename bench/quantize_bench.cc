// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstring>

#include "bench/bench.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "bench/rows.h"
#include "switchyard/quantize.h"
#include "testing/reference_rows.h"

namespace switchyard::bench {
namespace {

struct Data {
  Rows in, out;

  Data(const Types& types, size_t rows, size_t cols)
      : in(Rows::Make(types.in, rows, cols, 10)), out(types.out, rows, cols) {}
  Status Call(size_t, Executor& executor) {
    return Quantize({in.In()}, {out.Out()}, {}, executor);
  }
  std::vector<Output> Wanted() {
    std::vector<Output> outputs;
    out.AddWanted(reference::Quantize(in.Bytes(), out.format()), {}, &outputs);
    return outputs;
  }
};

// Moves only the codes, because they are nearly all of the bytes.
void Probe(Data& d, size_t, size_t begin, size_t end) {
  const size_t in = d.in.CodeBytes() / sizeof(float);
  const size_t out = d.out.CodeBytes() / sizeof(float);
  BestProbes().move(d.in.Data(begin), (end - begin) * in, d.out.Data(begin),
                    (end - begin) * out);
}

void Add(const HiddenShape& shape, size_t tokens, const Types& types) {
  const Rows in(types.in, 1, shape.hidden), out(types.out, 1, shape.hidden);
  Case<Data> contest(
      {"quantize/" + HiddenText(tokens, shape.hidden), shape.model, "row",
       static_cast<double>(tokens),
       static_cast<double>(tokens * (in.RowBytes() + out.RowBytes())), 1,
       Text(types)},
      [=] { return std::make_unique<Data>(types, tokens, shape.hidden); });
  const std::vector<size_t> all = AllOutputs(types.out);
  contest.AddOurs(IsasFor(types), all);
  for (const char* format : plain::kQuantized) {
    if (std::strcmp(types.out, format) != 0) continue;
    contest.Add({"plain", all}, [](Data& d) {
      return [&d](size_t) { plain::Quantize({d.in.In()}, {d.out.Out()}); };
    });
  }
  contest.AddProbe("probe", tokens, Probe);
}

const Registration registration([] {
  for (const size_t tokens : {size_t{64}, size_t{512}}) {
    for (const char* in : {"bf16", "f32"}) {
      for (const Format& out : testing_support::kFormats) {
        const Types types = {in, out.name};
        if (Converts(types)) Add(kHiddens[0], tokens, types);
      }
    }
  }
});

}  // namespace
}  // namespace switchyard::bench
