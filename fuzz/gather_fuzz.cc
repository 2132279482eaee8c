// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// GatherRows against the reference, bit for bit on every ISA; and refusals.

#include "fuzz/call.h"
#include "switchyard/gather.h"
#include "testing/reference.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Spoiler spoiler(bytes);
  const size_t num_tokens = bytes.Size({1, 2, 0}, 9);
  const size_t hidden = bytes.Size({0, 1, 16, 32, 64}, 150);
  const size_t top_k = bytes.Size({1, 8}, 12) + 1;
  const size_t num_pairs = bytes.Size({1, 0}, 40);
  constexpr Type kIds[] = {Type::kI32, Type::kU32, Type::kI64};
  PiecesExecutor executor(bytes);
  const std::vector<float> values = bytes.Floats(num_tokens * hidden);
  const std::vector<int32_t> list =
      bytes.Ids(num_pairs, std::max<size_t>(1, num_tokens * top_k), true);
  Memory tokens(bytes, num_tokens, hidden, values);
  Memory pairs(bytes, Type::kI32, 1, num_pairs, list);
  Memory ids(bytes, kIds[bytes.Below(3)], num_tokens, top_k);
  Memory rows(bytes, Type::kF32, num_pairs, hidden);
  const GatherOptions options = {bytes.Flag()};
  Report report = kUnwritten;
  GatherInputs in = {tokens.view(), pairs.span<int32_t>(), ids.view()};
  GatherOutputs out = {rows.view(), &report};

  if (spoiler.wanted()) {
    spoiler.View(in.tokens, {Type::kF32});
    spoiler.View(in.pairs);
    spoiler.View(in.topk_ids, {Type::kI32, Type::kU32, Type::kI64});
    spoiler.View(out.rows, {Type::kF32});
    spoiler.Add([&](Bytes&) { ++in.topk_ids.rows; });
    spoiler.Add([&](Bytes&) { in.topk_ids.cols = 0; });
    spoiler.Add([&](Bytes&) { ++out.rows.rows; });
    spoiler.Add([&](Bytes&) { in.tokens.cols = in.tokens.stride += 1; });
    spoiler.Overlap(out.rows, in.tokens);
    if (num_pairs * hidden != 0) {
      spoiler.Add([&](Bytes&) { in.pairs.data = out.rows.Row<int32_t>(0); });
    }
    spoiler.Apply();
    CheckRefused(GatherRows(in, out, options, executor), "GatherRows", report);
    tokens.CheckUntouched("tokens");
    rows.CheckUntouched("rows");
    return 0;
  }

  // The reference has no tokens of no columns.
  const reference::Gathered exact =
      reference::Gather(values, hidden, list, top_k);
  OnEveryIsa([&](const Isa&) {
    rows.Restore();
    report = kUnwritten;
    const Status status = GatherRows(in, out, options, executor);
    tokens.CheckUntouched("tokens");
    pairs.CheckUntouched("pairs");
    ids.CheckUntouched("topk_ids");
    rows.CheckOnlyViewWritten("rows");
    Report expected = kUnwritten;
    expected.invalid = hidden == 0 ? 0 : exact.invalid;
    const bool fine = options.allow_invalid || expected.invalid == 0;
    FUZZ_CHECK(status.code() ==
                   (fine ? StatusCode::kOk : StatusCode::kFailedPrecondition),
               status.message());
    FUZZ_CHECK(Same(report, expected), "report");
    const std::vector<float> all = rows.Values<float>();
    FUZZ_CHECK(all.empty() || std::memcmp(all.data(), exact.rows.data(),
                                          all.size() * sizeof(float)) == 0,
               "rows");
    return std::vector<uint32_t>();
  });
  return 0;
}
