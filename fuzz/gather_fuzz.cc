// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares GatherRows with the reference, bit for bit on every ISA and with
// any row_index. Also checks that invalid calls are refused.

#include "fuzz/format_memory.h"
#include "src/calls/gather.h"
#include "switchyard/gather.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Spoiler spoiler(bytes);
  const Conversion formats(bytes);
  const size_t num_tokens = bytes.Size({1, 2, 0}, 9);
  const size_t hidden = formats.Cols(bytes.Size({0, 1, 16, 32, 64}, 150));
  const size_t top_k = bytes.Size({1, 8}, 12) + 1;
  const size_t num_pairs = bytes.Size({1, 0}, 40);
  constexpr Type kIds[] = {Type::kI32, Type::kU32, Type::kI64};
  PiecesExecutor executor(bytes);
  const FormatRows values = ReadRows(bytes, formats.from, num_tokens, hidden);
  const std::vector<int32_t> list =
      bytes.Ids(num_pairs, std::max<size_t>(1, num_tokens * top_k), true);
  std::vector<int32_t> index =
      bytes.Ids(num_tokens * top_k, std::max<size_t>(1, num_pairs), true);
  if (bytes.Flag()) {  // roughly what BucketPacked writes
    for (size_t r = 0; r < num_pairs; ++r) {
      const size_t pair = static_cast<size_t>(list[r]);
      if (pair < index.size()) index[pair] = static_cast<int32_t>(r);
    }
  }
  FormatMemory tokens(bytes, values);
  Memory pairs(bytes, Type::kI32, 1, num_pairs, list);
  Memory ids(bytes, kIds[bytes.Below(3)], num_tokens, top_k);
  Memory row_index(bytes, Type::kI32, num_tokens, top_k, index);
  FormatMemory rows(bytes, formats.to, num_pairs, hidden);
  GatherOptions options = {bytes.Flag()};
  GatherInputs in = {tokens.view(), pairs.span<int32_t>(), ids.view()};
  if (bytes.Flag()) in.row_index = row_index.view();
  GatherOutputs out = {rows.view()};
  const auto run = [&] { return GatherRows(in, out, options, executor); };
  if (RefusesSpoilt<calls::GatherCall>(spoiler, &in, &out, &options, run)) {
    return 0;
  }

  std::vector<int64_t> picks;
  size_t invalid = 0;
  for (const int32_t pair : list) {
    const bool fine = static_cast<uint32_t>(pair) < num_tokens * top_k;
    picks.push_back(fine ? pair / static_cast<int32_t>(top_k) : -1);
    invalid += !fine;
  }
  const FormatRows right =
      reference::Pick(reference::Quantize(values, formats.to), picks);
  Report report = kUnwritten;
  report.invalid = hidden == 0 ? 0 : invalid;
  RunOnEveryIsa<calls::GatherCall>(
      in, &out, {options.allow_invalid || report.invalid == 0, report}, run,
      [&](const Isa&) {
        CheckRows(rows, right, formats.from.CopiesTo(formats.to, hidden));
      });
  return 0;
}
