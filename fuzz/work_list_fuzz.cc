// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// MakeWorkList: each row once, in order of cost; and refusals.

#include "fuzz/call.h"
#include "src/calls/work_list.h"
#include "switchyard/work_list.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Spoiler spoiler(bytes);
  WorkListOptions options;
  options.workers = 1 + bytes.Size({0, 1, 7, 63, 1200}, 300);
  options.tile_rows = 1 + bytes.Size({15, 0, 63}, 100);
  options.min_rows = bytes.Size({0, 16}, 100);
  options.tile_cost = bytes.Size({0, 32, 1000}, 200);
  options.row_cost = bytes.Size({1, 0}, 5);
  std::vector<int32_t> counts(bytes.Size({8, 0, 1}, 70));
  size_t rows = 0;
  for (int32_t& count : counts) {
    count = static_cast<int32_t>(bytes.Size({0, 1, 16}, 4000));
    rows += static_cast<size_t>(count);
  }
  const bool with_offsets = bytes.Flag();
  std::vector<int32_t> starts;  // with gaps
  int32_t start = 0;
  for (const int32_t count : counts) {
    starts.push_back(start);
    start += count + (with_offsets ? 3 : 0);
  }
  starts.push_back(start);
  Memory tokens(bytes, Type::kI32, 1, counts.size(), counts);
  Memory offsets(bytes, Type::kI32, 1, starts.size(), starts);
  const size_t needed = WorkListSize(rows, counts.size(), options);
  std::unique_ptr<WorkTile[]> memory(new WorkTile[needed]);
  const WorkTile canary = {-7, -7, -7};
  std::fill_n(memory.get(), needed, canary);
  WorkListInputs in = {tokens.span<const int32_t>(), {}};
  if (with_offsets) in.offsets = offsets.span<const int32_t>();
  WorkListOutputs out = {{memory.get(), needed}};
  const auto same = [](const WorkTile& a, const WorkTile& b) {
    return a.first_row == b.first_row && a.rows == b.rows &&
           a.expert == b.expert;
  };

  const auto run = [&] { return MakeWorkList(in, out, options); };
  if (RefusesSpoilt<calls::WorkListCall>(spoiler, &in, &out, &options, run)) {
    for (size_t i = 0; i < needed; ++i) {
      FUZZ_CHECK(same(memory[i], canary), "tiles: written");
    }
    return 0;
  }

  const Report report = ReportOf(&out, [&] {
    const Status status = run();
    FUZZ_CHECK(status.ok(), status.message());
  });
  tokens.CheckUntouched("tokens_per_expert");
  offsets.CheckUntouched("offsets");
  const size_t tiles = report.tiles;
  FUZZ_CHECK(tiles <= needed, "more than there may be");
  const auto cost = [&](const WorkTile& tile) {
    return options.tile_cost +
           options.row_cost *
               std::max(static_cast<size_t>(tile.rows), options.min_rows);
  };
  std::vector<WorkTile> list(memory.get(), memory.get() + tiles);
  for (size_t i = 1; i < tiles; ++i) {
    FUZZ_CHECK(cost(list[i - 1]) >= cost(list[i]), "not the largest first");
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.expert != b.expert ? a.expert < b.expert
                                : a.first_row < b.first_row;
  });
  size_t next = 0;
  for (size_t e = 0; e < counts.size(); ++e) {
    for (int32_t row = 0; row < counts[e]; ++next) {
      FUZZ_CHECK(next < tiles, "rows are missing");
      const WorkTile& tile = list[next];
      FUZZ_CHECK(tile.expert == static_cast<int32_t>(e) && tile.rows > 0 &&
                     tile.first_row == starts[e] + row &&
                     static_cast<size_t>(row) % options.tile_rows == 0,
                 "tile " + std::to_string(next));
      row += tile.rows;
      FUZZ_CHECK(row <= counts[e], "too many rows");
    }
  }
  FUZZ_CHECK(next == tiles, "a tile too many");
  return 0;
}
