// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares MapCounts with the reference in 128 bits. Also checks that invalid
// calls are refused.

#include "fuzz/call.h"
#include "src/calls/map.h"
#include "switchyard/map.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

__extension__ using Wide = __int128;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const Spoiler spoiler(bytes);
  const size_t ranks = 1 + bytes.Size({0, 1, 7, 15, 16}, 40);
  const bool is_wide = bytes.Flag();
  const uint8_t kinds = bytes.Byte();  // if zero, all counts are small
  Memory counts(bytes, is_wide ? Type::kI64 : Type::kI32, ranks, ranks);
  std::vector<Wide> values;
  bool is_negative = false;
  for (size_t i = 0; i < ranks * ranks; ++i) {
    const uint8_t kind = kinds == 0 ? 1 : bytes.Byte();
    int64_t value = testing_support::Hash(5, i) % 1000;
    if (kind == 2) value = is_wide ? INT64_MAX / 4 : INT32_MAX;
    if (kind == 3) value = is_wide ? INT64_MIN : INT32_MIN;
    if (is_wide) {
      counts.view().Row<int64_t>(i / ranks)[i % ranks] = value;
    } else {
      counts.view().Row<int32_t>(i / ranks)[i % ranks] =
          static_cast<int32_t>(value);
    }
    is_negative |= value < 0;
    values.push_back(value);
  }
  counts.Keep();
  CountsOptions options;
  options.rank = bytes.Below(ranks);
  options.row_elements =
      bytes.Size({1, 0, 7168, size_t{1} << 62, SIZE_MAX}, 100);
  if (bytes.Flag()) options.capacity = bytes.Size({0}, 10000);
  Memory received(bytes, Type::kI64, 1, ranks);
  Memory recv_offsets(bytes, Type::kI64, 1, ranks + 1);
  Memory sent(bytes, Type::kI64, 1, ranks);
  Memory send_offsets(bytes, Type::kI64, 1, ranks + 1);
  Memory puts(bytes, Type::kI64, 1, ranks);
  // Each set bit leaves out an optional output.
  const size_t without = bytes.Byte();
  CountsInputs in = {counts.view()};
  CountsOutputs out = {received.span<int64_t>(), recv_offsets.span<int64_t>()};
  if (!(without & 1)) out.send_counts = sent.span<int64_t>();
  if (!(without & 2)) out.send_offsets = send_offsets.span<int64_t>();
  if (!(without & 4)) out.put_offsets = puts.span<int64_t>();
  const auto run = [&] { return MapCounts(in, out, options); };
  if (RefusesSpoilt<calls::CountsCall>(spoiler, &in, &out, &options, run)) {
    return 0;
  }

  std::vector<Wide> columns(ranks), before(ranks);
  const auto elements = static_cast<Wide>(options.row_elements);
  Wide busiest = 0, row = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i / ranks < options.rank) before[i % ranks] += values[i];
    if (i / ranks == options.rank) row += values[i];
    columns[i % ranks] += values[i];
    busiest = std::max(busiest, columns[i % ranks]);
  }
  Report report;
  out.report = &report;
  const Status status = run();
  // Divides INT64_MAX by row_elements, because the number of rows times
  // row_elements may exceed 128 bits.
  if (is_negative ||
      std::max(busiest, row) > INT64_MAX / std::max(Wide{1}, elements)) {
    FUZZ_CHECK(status.code() == StatusCode::kInvalidArgument, "accepted");
    for (Memory* m : Memory::All()) m->CheckUntouched("after an error");
    return 0;
  }
  const bool fits = busiest <= Wide{options.capacity};
  FUZZ_CHECK(status.code() ==
                 (fits ? StatusCode::kOk : StatusCode::kFailedPrecondition),
             status.message());
  FUZZ_CHECK(Wide{report.max_rows} == busiest, "max_rows");
  for (Memory* m : Memory::All()) m->CheckOnlyViewWritten("a view");
  const auto check = [&](const Memory& m, bool given, const auto& exact) {
    const std::vector<int64_t> found = m.Values<int64_t>();
    for (size_t i = 0; given && i < found.size(); ++i) {
      FUZZ_CHECK(found[i] == exact(i), "element " + std::to_string(i));
    }
  };
  const auto column = [&](size_t i) {
    return values[i * ranks + options.rank] * elements;
  };
  const auto own_row = [&](size_t i) {
    return values[options.rank * ranks + i] * elements;
  };
  const auto sum_of = [](const auto& of) {
    return [&of](size_t n) {
      Wide sum = 0;
      for (size_t i = 0; i < n; ++i) sum += of(i);
      return sum;
    };
  };
  check(received, true, column);
  check(recv_offsets, true, sum_of(column));
  check(sent, !(without & 1), own_row);
  check(send_offsets, !(without & 2), sum_of(own_row));
  check(puts, !(without & 4), [&](size_t i) { return before[i] * elements; });
  return 0;
}
