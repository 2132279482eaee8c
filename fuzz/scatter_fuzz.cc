// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares ScatterRows with the reference, bit for bit on every ISA. Also
// checks that invalid calls are refused.

#include "fuzz/format_memory.h"
#include "src/calls/gather.h"
#include "switchyard/gather.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Spoiler spoiler(bytes);
  const Conversion formats(bytes);
  const size_t num_rows = bytes.Size({1, 2, 0}, 9);
  const size_t hidden = formats.Cols(bytes.Size({0, 1, 16, 32, 64}, 150));
  const size_t num_tokens = bytes.Size({1, 2, 0}, 9);
  const size_t top_k = bytes.Size({1, 8}, 12) + 1;
  PiecesExecutor executor(bytes);
  const FormatRows values = ReadRows(bytes, formats.from, num_rows, hidden);
  const std::vector<int32_t> list =
      bytes.Ids(num_tokens * top_k, std::max<size_t>(1, num_rows), true);
  FormatMemory from(bytes, values);
  Memory index(bytes, Type::kI32, num_tokens, top_k, list);
  FormatMemory to(bytes, formats.to, num_tokens * top_k, hidden);
  ScatterOptions options = {bytes.Flag()};
  ScatterInputs in = {from.view(), index.view()};
  ScatterOutputs out = {to.view()};
  const auto run = [&] { return ScatterRows(in, out, options, executor); };
  if (RefusesSpoilt<calls::ScatterCall>(spoiler, &in, &out, &options, run)) {
    return 0;
  }

  const std::vector<int64_t> rows(list.begin(), list.end());
  const FormatRows right =
      reference::Pick(reference::Quantize(values, formats.to), rows);
  size_t skipped = 0;
  for (const int64_t row : rows) {
    skipped += row < -1 || row >= static_cast<int64_t>(num_rows);
  }
  Report report = kUnwritten;
  report.skipped = hidden == 0 ? 0 : skipped;
  RunOnEveryIsa<calls::ScatterCall>(
      in, &out, {options.allow_skipped || report.skipped == 0, report}, run,
      [&](const Isa&) {
        CheckRows(to, right, formats.from.CopiesTo(formats.to, hidden));
      });
  return 0;
}
