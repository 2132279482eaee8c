// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares Quantize with the reference, bit for bit on every ISA. Also checks
// that invalid calls are refused.

#include "fuzz/format_memory.h"
#include "src/calls/quantize.h"
#include "switchyard/quantize.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Spoiler spoiler(bytes);
  const Conversion formats(bytes);
  const size_t num_rows = bytes.Size({1, 2, 0}, 9);
  const size_t cols = formats.Cols(bytes.Size({0, 1, 16, 32, 64, 129}, 300));
  PiecesExecutor executor(bytes);
  const FormatRows values = ReadRows(bytes, formats.from, num_rows, cols);
  FormatMemory from(bytes, values);
  FormatMemory to(bytes, formats.to, num_rows, cols);
  QuantizeInputs in = {from.view()};
  QuantizeOutputs out = {to.view()};
  QuantizeOptions options;
  const auto run = [&] { return Quantize(in, out, options, executor); };
  if (RefusesSpoilt<calls::QuantizeCall>(spoiler, &in, &out, &options, run)) {
    return 0;
  }

  const FormatRows right = reference::Quantize(values, formats.to);
  RunOnEveryIsa<calls::QuantizeCall>(in, &out, {}, run, [&](const Isa&) {
    CheckRows(to, right, formats.from.CopiesTo(formats.to, cols));
  });
  return 0;
}
