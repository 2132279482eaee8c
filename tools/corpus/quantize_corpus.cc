// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>

#include "switchyard/quantize.h"
#include "tools/corpus/format_rows.h"

namespace switchyard::corpus {
namespace {

void Run(Executor& executor, Digests& digests, const Format& from,
         const Format& to) {
  constexpr size_t kRows = 4;
  const auto run = [&](size_t cols) {
    if (to.Cols(cols) != cols || from.Cols(cols) != cols) return;
    const FormatMemory in(from, kRows, cols, 5), out(to, kRows, cols, 3);
    Fill(in.view(), 61);
    digests.Check(Quantize({in.view()}, {out.view()}, {}, executor));
    out.AddTo(digests.exact);
  };
  for (size_t cols = 1; cols <= 70; ++cols) run(cols);
  for (const size_t cols : {96u, 129u, 256u, 2048u, 20480u}) run(cols);
}

// There is a case for each output format, which converts every float type to
// it. There is also a case for each input format, which is converted and
// copied.
const Registration registration("quantize", [](std::vector<Case>& cases) {
  for (const Format& to : kFormats) {
    cases.push_back({std::string("quantize to ") + to.name,
                     [&to](Executor& executor, Digests& digests) {
                       for (const Format& from : kFormats) {
                         if (from.IsSource() && from.group == 0) {
                           Run(executor, digests, from, to);
                         }
                       }
                     }});
  }
  for (const Format& from : kFormats) {
    cases.push_back({std::string("quantize from ") + from.name,
                     [&from](Executor& executor, Digests& digests) {
                       for (const Format& to : kFormats) {
                         if (from.CopiesTo(to, 1) ||
                             (from.IsSource() && to.group == 0)) {
                           Run(executor, digests, from, to);
                         }
                       }
                     }});
  }
});

}  // namespace
}  // namespace switchyard::corpus
