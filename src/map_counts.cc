// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/calls/map.h"
#include "src/check.h"
#include "switchyard/map.h"

namespace switchyard {
namespace {

using internal::Details;

class Counts {
 public:
  explicit Counts(const ConstAnyMatrix& counts) : counts_(counts) {}
  int64_t operator()(size_t from, size_t to) const {
    return counts_.type == Type::kI64 ? counts_.Row<int64_t>(from)[to]
                                      : counts_.Row<int32_t>(from)[to];
  }

 private:
  const ConstAnyMatrix& counts_;
};

// The largest number of rows that a rank receives.
struct Received {
  int64_t most = 0;
  size_t busiest = 0;  // the first rank that receives `most` rows
};

// Adds up each column, and checks all counts.
Status SumColumns(const Counts& counts, size_t ranks, int64_t most_rows,
                  Received* received) {
  // Reads a cache line of each row at a time, because the sum of one column of
  // 65536 ranks would miss the cache for each element.
  constexpr size_t kColumns = 16;
  for (size_t first = 0; first < ranks; first += kColumns) {
    int64_t sums[kColumns] = {};
    const size_t columns = std::min(kColumns, ranks - first);
    for (size_t from = 0; from < ranks; ++from) {
      for (size_t i = 0; i < columns; ++i) {
        const int64_t count = counts(from, first + i);
        if (count < 0) {
          return internal::Refuse(StatusCode::kInvalidArgument,
                                  "MapCounts: counts: is negative",
                                  Details()
                                      .Put("from rank ")
                                      .Put(from)
                                      .Put(" to rank ")
                                      .Put(first + i));
        }
        if (count > most_rows - sums[i]) {
          return internal::Refuse(
              StatusCode::kInvalidArgument,
              "MapCounts: counts: elements overflow 64 bits",
              Details().Put("rows received by rank ").Put(first + i));
        }
        sums[i] += count;
      }
    }
    for (size_t i = 0; i < columns; ++i) {
      if (sums[i] > received->most) *received = {sums[i], first + i};
    }
  }
  return Status();
}

// Writes count(i) * row_elements for each i, and the sums of these products.
template <class Count>
void Put(const Count& count, size_t ranks, int64_t row_elements,
         const Span<int64_t>& counts, const Span<int64_t>& offsets) {
  int64_t offset = 0;
  for (size_t i = 0; i < ranks; ++i) {
    const int64_t elements = count(i) * row_elements;
    if (counts.size != 0) counts.data[i] = elements;
    if (offsets.size != 0) offsets.data[i] = offset;
    offset += elements;
  }
  if (offsets.size != 0) offsets.data[ranks] = offset;
}

}  // namespace

Status MapCounts(const CountsInputs& inputs, const CountsOutputs& outputs,
                 const CountsOptions& options) noexcept {
  const Checked<calls::CountsCall> call(inputs, outputs, options);
  if (!call.status.ok()) return call.status;
  const Counts counts(inputs.counts);
  const size_t ranks = call.sizes.ranks, rank = options.rank;
  // No number of rows exceeds this number, so no product overflows.
  const auto most_rows = static_cast<int64_t>(
      size_t{INT64_MAX} / std::max<size_t>(1, options.row_elements));
  Received received;
  const Status status = SumColumns(counts, ranks, most_rows, &received);
  if (!status.ok()) return status;
  int64_t sent = 0;
  for (size_t to = 0; to < ranks; ++to) {
    if (counts(rank, to) > most_rows - sent) {
      return internal::Refuse(StatusCode::kInvalidArgument,
                              "MapCounts: counts: elements overflow 64 bits",
                              Details().Put("rows sent by rank ").Put(rank));
    }
    sent += counts(rank, to);
  }
  const auto row_elements =
      static_cast<int64_t>(std::min(options.row_elements, size_t{INT64_MAX}));
  Put([&](size_t to) { return counts(rank, to); }, ranks, row_elements,
      outputs.send_counts, outputs.send_offsets);
  Put([&](size_t from) { return counts(from, rank); }, ranks, row_elements,
      outputs.recv_counts, outputs.recv_offsets);
  if (outputs.put_offsets.size != 0) {
    std::fill_n(outputs.put_offsets.data, ranks, 0);
    for (size_t from = 0; from < rank; ++from) {
      for (size_t to = 0; to < ranks; ++to) {
        outputs.put_offsets.data[to] += counts(from, to) * row_elements;
      }
    }
  }
  const auto max_rows = static_cast<size_t>(received.most);
  if (outputs.report != nullptr) outputs.report->max_rows = max_rows;
  return max_rows <= options.capacity
             ? Status()
             : internal::DoesNotFit(
                   "MapCounts: counts: a rank receives more rows than "
                   "options.capacity",
                   Details()
                       .Put("rank ")
                       .Put(received.busiest)
                       .Put(" receives ")
                       .Put(max_rows)
                       .Put(", capacity is ")
                       .Put(options.capacity));
}

}  // namespace switchyard
