// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Random ids, a table that may map them to buckets, and the threads that sort
// them. The targets of the sorts use this file.

#ifndef SWITCHYARD_FUZZ_SORT_CASE_H_
#define SWITCHYARD_FUZZ_SORT_CASE_H_

#include <initializer_list>
#include <memory>
#include <vector>

#include "fuzz/call.h"
#include "switchyard/bucket.h"
#include "switchyard/team_executor.h"
#include "testing/crew.h"
#include "testing/reference_map.h"

namespace switchyard::fuzz {

struct SortCase {
  // Draws a size from `sizes`, or below `most`. The number of buckets is one
  // more than this size.
  SortCase(Bytes& b, std::initializer_list<size_t> sizes, size_t most,
           bool may_have_table = true)
      :  // Seldom draws enough tokens for several threads, which is slow.
        tokens(b.Below(32) == 31 ? 2500 + b.Below(2000)
                                 : b.Size({1, 2, 0, 16}, 70)),
        top_k(b.Size({1, 8, 4, 0}, 20)),
        buckets(1 + b.Size(sizes, most)),
        executor(b),
        num_threads(1 + b.Below(3)),
        crew(num_threads),
        team(num_threads, crew.Member(0).barrier, &crew),
        by_team(b.Flag()),
        mapped_by_table(may_have_table && b.Flag()),
        num_ids(mapped_by_table ? 1 + b.Size({7, 127}, 300) : buckets),
        values(b.Ids(tokens * top_k, num_ids, b.Flag())),
        ids(b, kTypes[b.Below(3)], tokens, top_k, values),
        table_values(may_have_table ? b.Ids(num_ids, buckets, b.Flag())
                                    : std::vector<int32_t>()),
        table(may_have_table ? std::make_unique<Memory>(b, Type::kI32, 1,
                                                        num_ids, table_values)
                             : nullptr),
        scratch(b, Type::kI32, 1,
                b.Flag() ? ScratchSize() : b.Below(ScratchSize() + 1)),
        mapped(mapped_by_table ? reference::MapIds(values, table_values)
                               : values) {
    // Some invalid int64 ids have low 32 bits that are a valid id.
    const AnyMatrix view = ids.view();
    for (size_t p = 0; view.type == Type::kI64 && p < values.size(); ++p) {
      int64_t& id = view.Row<int64_t>(p / top_k)[p % top_k];
      if (id == INT32_MIN) id = int64_t{1} << 32;
    }
    ids.Keep();
  }
  size_t ScratchSize() {
    const size_t pairs = tokens * top_k;
    return by_team ? BucketScratchSize(pairs, buckets, team)
                   : BucketScratchSize(pairs, buckets, executor);
  }
  Span<const int32_t> Table() const {
    return mapped_by_table ? table->span<const int32_t>()
                           : Span<const int32_t>();
  }

  // Runs call(executor), or call(team) on the first thread of a team.
  template <class Call>
  Status Run(const Call& call) {
    if (!by_team) return call(executor);
    Status status;
    crew.Run([&](const testing_support::EngineThread& member) {
      team.Run(member.thread, [&] { status = call(team); });
    });
    return status;
  }

  static constexpr Type kTypes[] = {Type::kI32, Type::kU32, Type::kI64};

  const size_t tokens, top_k, buckets;
  PiecesExecutor executor;
  const size_t num_threads;
  testing_support::EngineThreads crew;
  TeamExecutor team;
  const bool by_team, mapped_by_table;
  const size_t num_ids;
  const std::vector<int32_t> values;
  Memory ids;
  const std::vector<int32_t> table_values;
  const std::unique_ptr<const Memory> table;
  Memory scratch;
  const std::vector<int32_t> mapped;  // each pair's bucket, or an invalid id
};

}  // namespace switchyard::fuzz

#endif  // SWITCHYARD_FUZZ_SORT_CASE_H_
