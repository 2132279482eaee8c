// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares BucketAligned on every ISA with the reference, on an executor or on
// a team of threads (team_executor.h). Also checks that invalid calls are
// refused.

#include "fuzz/call.h"
#include "fuzz/sort_case.h"
#include "src/calls/bucket.h"
#include "switchyard/bucket.h"
#include "testing/reference_map.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const Spoiler spoiler(bytes);
  SortCase c(bytes, {7, 127, 0, 1, 255}, 300);
  const size_t experts = c.buckets, num_pairs = c.tokens * c.top_k;
  AlignedOptions options;
  options.block_size = 1 + bytes.Size({0, 15, 63, 2, 1}, 200);
  if (bytes.Flag()) options.capacity = bytes.Below(50);
  options.fill_unused = bytes.Flag();
  options.allow_dropped = bytes.Flag();
  const reference::Aligned exact =
      reference::BucketAligned(c.mapped, std::max<size_t>(1, c.top_k), experts,
                               options.block_size, options.capacity);
  const size_t padded = BucketAlignedSize(num_pairs, experts, options);
  const size_t blocks = padded / options.block_size;

  Memory counts(bytes, Type::kI32, 1, experts);
  Memory offsets(bytes, Type::kI32, 1, experts + 1);
  Memory pairs(bytes, Type::kI32, 1, padded + bytes.Below(4));
  Memory index(bytes, Type::kI32, c.tokens, c.top_k);
  Memory block_experts(bytes, Type::kI32, 1, blocks + bytes.Below(4));
  Memory row_tokens(bytes, Type::kI32, 1, padded + bytes.Below(4));
  Memory active(bytes, Type::kI32, 1, experts);
  const size_t with = bytes.Byte();  // selects the optional arguments to give
  AlignedInputs in = {c.ids.view(), c.Table(), c.scratch.span<int32_t>()};
  AlignedBuckets out;
  out.tokens_per_expert = counts.span<int32_t>();
  out.offsets = offsets.span<int32_t>();
  out.pairs = pairs.span<int32_t>();
  if (with & 1) out.row_index = index.view();
  if (with & 2) out.block_experts = block_experts.span<int32_t>();
  if (with & 4) out.row_tokens = row_tokens.span<int32_t>();
  if (with & 8) out.active_experts = active.span<int32_t>();
  const auto run = [&] {
    return c.Run(
        [&](Executor& who) { return BucketAligned(in, out, options, who); });
  };

  if (RefusesSpoilt<calls::AlignedCall>(spoiler, &in, &out, &options, run)) {
    return 0;
  }

  Report report = kUnwritten;
  report.max_rows = exact.max_rows;
  report.dropped = exact.dropped;
  report.over_capacity = exact.over_capacity;
  report.active_experts = exact.active_experts.size();
  const auto check_all = [&](const Isa&) {
    // If the list is given, checks it and the memory after it.
    const auto check = [&](const Memory& m, bool there,
                           std::vector<int32_t> values, bool filled,
                           int32_t fill, const char* name) {
      if (!there) return;
      const std::vector<int32_t> found = m.Values<int32_t>();
      values.resize(found.size(), filled ? fill : 0x7FC0DEAD);
      FUZZ_CHECK(found == values, name);
    };
    const bool fill = options.fill_unused;
    check(counts, true, exact.tokens_per_expert, false, 0, "counts");
    check(offsets, true, exact.offsets, false, 0, "offsets");
    check(pairs, true, exact.pairs, fill, static_cast<int32_t>(num_pairs),
          "pairs");
    check(index, with & 1, exact.row_index, false, 0, "row_index");
    check(block_experts, with & 2, exact.block_experts, fill, -1,
          "block_experts");
    check(row_tokens, with & 4, exact.row_tokens, false, 0, "row_tokens");
    check(active, with & 8, exact.active_experts, true, -1, "active_experts");
  };
  RunOnEveryIsa<calls::AlignedCall>(
      in, &out, {options.allow_dropped || exact.dropped == 0, report}, run,
      check_all);
  return 0;
}
