// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares MapPairs on every ISA with the reference, on an executor or on a
// team of threads (team_executor.h). Also checks that invalid calls are
// refused.

#include "fuzz/call.h"
#include "fuzz/sort_case.h"
#include "src/calls/map.h"
#include "switchyard/map.h"
#include "testing/reference_map.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

namespace {

// The outputs of MapPairs() for one of its two lists: the list of pairs or
// the list of tokens.
struct List {
  List(Bytes& b, size_t destinations, size_t most)
      : counts(b, Type::kI32, 1, destinations),
        offsets(b, Type::kI32, 1, destinations + 1),
        rows(b, Type::kI32, 1, most + b.Below(4)),
        element_counts(b, Type::kI64, 1, destinations),
        element_offsets(b, Type::kI64, 1, destinations + 1) {}
  MapRows Out() const {
    return {counts.span<int32_t>(), offsets.span<int32_t>(),
            rows.span<int32_t>(), element_counts.span<int64_t>(),
            element_offsets.span<int64_t>()};
  }
  void Check(const reference::Mapped& exact, size_t row_elements,
             const char* name) {
    FUZZ_CHECK(counts.Values<int32_t>() == exact.counts, name);
    FUZZ_CHECK(offsets.Values<int32_t>() == exact.offsets, name);
    std::vector<int32_t> all = exact.rows;
    const std::vector<int32_t> found = rows.Values<int32_t>();
    all.resize(found.size(), 0x7FC0DEAD);
    FUZZ_CHECK(found == all, name);
    const auto elements = [&](const std::vector<int32_t>& of) {
      std::vector<int64_t> product;
      for (const int32_t n : of) {
        product.push_back(n * static_cast<int64_t>(row_elements));
      }
      return product;
    };
    FUZZ_CHECK(element_counts.Values<int64_t>() == elements(exact.counts),
               name);
    FUZZ_CHECK(element_offsets.Values<int64_t>() == elements(exact.offsets),
               name);
  }
  Memory counts, offsets, rows, element_counts, element_offsets;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const Spoiler spoiler(bytes);
  SortCase c(bytes, {7, 1, 0, 63, 64}, 200);
  const size_t destinations = c.buckets, num_pairs = c.tokens * c.top_k;
  MapOptions options;
  options.row_elements = bytes.Size({1, 7168, 0}, 100);
  options.allow_dropped = bytes.Flag();
  std::vector<int32_t> mapped = c.mapped;
  if (!c.mapped_by_table) {
    // Each destination gets `experts_per_destination` consecutive ids.
    options.experts_per_destination = 1 + bytes.Size({0, 15}, 40);
    mapped = reference::MapIds(
        c.values,
        reference::RangeTable(destinations, options.experts_per_destination));
  }
  const size_t top_k = std::max<size_t>(1, c.top_k);
  const reference::Mapped exact =
      reference::MapRows(mapped, top_k, destinations, false);
  const reference::Mapped exact_tokens =
      reference::MapRows(mapped, top_k, destinations, true);
  const size_t most_tokens = c.tokens * std::min(c.top_k, destinations);

  List pairs(bytes, destinations, num_pairs);
  List tokens(bytes, destinations, most_tokens);
  Memory pair_index(bytes, Type::kI32, c.tokens, c.top_k);
  Memory copy_index(bytes, Type::kI32, c.tokens, c.top_k);
  Memory return_index(bytes, Type::kI32, c.tokens, c.top_k);
  // Each set bit leaves out an optional list.
  const size_t without = bytes.Byte();
  const bool with_pairs = !(without & 1), with_tokens = !(without & 2);
  const bool with_copies = with_tokens && !(without & 4);
  const bool with_returns = with_tokens && !(without & 8);
  MapInputs in = {c.ids.view(), c.Table(), c.scratch.span<int32_t>()};
  MapOutputs out;
  out.pairs.counts = pairs.counts.span<int32_t>();
  if (with_pairs) out.pairs = pairs.Out();
  if (with_pairs) out.pair_index = pair_index.view();
  if (with_tokens) out.tokens = tokens.Out();
  if (with_copies) out.copy_index = copy_index.view();
  if (with_returns) out.return_index = return_index.view();
  const auto run = [&] {
    return c.Run(
        [&](Executor& who) { return MapPairs(in, out, options, who); });
  };

  if (RefusesSpoilt<calls::MapCall>(spoiler, &in, &out, &options, run)) {
    return 0;
  }

  Report report = kUnwritten;
  report.max_rows = 0;
  for (const int32_t n : exact.counts) {
    report.max_rows = std::max(report.max_rows, static_cast<size_t>(n));
  }
  report.dropped = num_pairs - exact.rows.size();
  const auto check_all = [&](const Isa&) {
    FUZZ_CHECK(pairs.counts.Values<int32_t>() == exact.counts, "counts");
    if (with_pairs) pairs.Check(exact, options.row_elements, "pairs");
    if (with_tokens) {
      tokens.Check(exact_tokens, options.row_elements, "tokens");
    }
    const auto check = [](const Memory& m, bool there,
                          const std::vector<int32_t>& values,
                          const char* name) {
      FUZZ_CHECK(!there || m.Values<int32_t>() == values, name);
    };
    check(pair_index, with_pairs, exact.index, "pair_index");
    check(copy_index, with_copies, exact_tokens.index, "copy_index");
    check(return_index, with_returns, exact_tokens.firsts, "return_index");
  };
  RunOnEveryIsa<calls::MapCall>(
      in, &out, {options.allow_dropped || report.dropped == 0, report}, run,
      check_all);
  return 0;
}
