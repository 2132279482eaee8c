// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/map.h"

#include <algorithm>
#include <cstring>

#include "src/bucket_plan.h"
#include "src/check_macros.h"
#include "src/map_sort.h"
#include "src/simd/map.h"

// One of the two lists of rows, of at most `most`.
#define SWITCHYARD_CHECK_MAP_ROWS(list, most, text)                          \
  do {                                                                       \
    SWITCHYARD_CHECK_VIEW(MapPairs, list.offsets);                           \
    SWITCHYARD_CHECK_VIEW(MapPairs, list.rows);                              \
    SWITCHYARD_CHECK_VIEW(MapPairs, list.element_counts);                    \
    SWITCHYARD_CHECK_VIEW(MapPairs, list.element_offsets);                   \
    if (list.offsets.size != 0) {                                            \
      SWITCHYARD_CHECK(list.offsets.size == num_destinations + 1,            \
                       "MapPairs: " #list                                    \
                       ".offsets: size is not num_destinations + 1");        \
      SWITCHYARD_CHECK_NEEDED(MapPairs, list.rows, list.rows.size >= (most), \
                              "fewer than " text " elements");               \
    } else {                                                                 \
      SWITCHYARD_CHECK(list.rows.size == 0,                                  \
                       "MapPairs: " #list ".rows: given without offsets");   \
      SWITCHYARD_CHECK(list.element_offsets.size == 0,                       \
                       "MapPairs: " #list                                    \
                       ".element_offsets: given without offsets");           \
    }                                                                        \
    SWITCHYARD_CHECK(list.element_counts.size == 0 ||                        \
                         list.element_counts.size == num_destinations,       \
                     "MapPairs: " #list                                      \
                     ".element_counts: size is not num_destinations");       \
    SWITCHYARD_CHECK(list.element_offsets.size == 0 ||                       \
                         list.element_offsets.size == num_destinations + 1,  \
                     "MapPairs: " #list                                      \
                     ".element_offsets: size is not num_destinations + 1");  \
  } while (false)
// An index that goes with the rows of `list`.
#define SWITCHYARD_CHECK_MAP_INDEX(index, list)                             \
  do {                                                                      \
    if (!internal::Given(index)) break;                                     \
    SWITCHYARD_CHECK_TYPED(MapPairs, index, Type::kI32, "int32");           \
    SWITCHYARD_CHECK_SHAPE(MapPairs, index, num_tokens, top_k);             \
    SWITCHYARD_CHECK(list.offsets.size != 0,                                \
                     "MapPairs: " #index ": given without " #list ".rows"); \
  } while (false)

namespace switchyard {
namespace {

using internal::kMaxInt32;

void Clear(const Span<int32_t>& span) {
  if (span.size != 0) std::memset(span.data, 0, span.size * sizeof(int32_t));
}

// What of `list` is in elements.
void PutElements(const MapRows& list, size_t row_elements) {
  const auto put = [row_elements](const Span<int32_t>& rows,
                                  const Span<int64_t>& elements) {
    for (size_t i = 0; i < elements.size; ++i) {
      elements.data[i] = static_cast<int64_t>(
          static_cast<size_t>(rows.data[i]) * row_elements);
    }
  };
  put(list.counts, list.element_counts);
  put(list.offsets, list.element_offsets);
}

// Apart from what runs, which is compiled for each crew.
Status CheckMap(const MapInputs& inputs, const MapOutputs& outputs,
                const MapOptions& options) {
  const auto& [topk_ids, destinations, scratch] = inputs;
  const auto& [pairs, pair_index, tokens, copy_index, return_index, report] =
      outputs;
  SWITCHYARD_CHECK_SORT_INPUTS(MapPairs, pairs.counts, "destinations");
  SWITCHYARD_CHECK_VIEW(MapPairs, destinations);
  SWITCHYARD_CHECK_VIEW(MapPairs, tokens.counts);
  const size_t num_destinations = pairs.counts.size;
  const size_t num_tokens = topk_ids.rows, top_k = topk_ids.cols;
  const size_t num_pairs = num_tokens * top_k;
  const size_t per_destination = options.experts_per_destination;
  size_t num_ids = destinations.size, elements = 0;
  if (num_ids == 0) {
    SWITCHYARD_CHECK(per_destination != 0,
                     "MapPairs: destinations: neither a table nor "
                     "options.experts_per_destination");
    SWITCHYARD_CHECK(
        !__builtin_mul_overflow(num_destinations, per_destination, &num_ids) &&
            num_ids <= kMaxInt32,
        "MapPairs: options: experts_per_destination: more than 2^31 - 1 "
        "experts");
  } else {
    SWITCHYARD_CHECK(per_destination == 0,
                     "MapPairs: options: experts_per_destination: given with "
                     "destinations");
    SWITCHYARD_CHECK(num_ids <= kMaxInt32,
                     "MapPairs: destinations: more than 2^31 - 1 experts");
  }
  SWITCHYARD_CHECK(
      !__builtin_mul_overflow(num_pairs, options.row_elements, &elements) &&
          elements <= INT64_MAX,
      "MapPairs: options: row_elements: elements overflow 64 bits");
  SWITCHYARD_CHECK_MAP_ROWS(pairs, num_pairs, "tokens * top_k");
  const bool with_tokens = tokens.counts.size != 0;
  SWITCHYARD_CHECK(!with_tokens || tokens.counts.size == num_destinations,
                   "MapPairs: tokens.counts: size is not num_destinations");
  SWITCHYARD_CHECK(!with_tokens || tokens.offsets.size != 0,
                   "MapPairs: tokens.offsets: not given, with tokens.counts");
  SWITCHYARD_CHECK(with_tokens || tokens.offsets.size == 0,
                   "MapPairs: tokens.counts: not given, with tokens.offsets");
  SWITCHYARD_CHECK_MAP_ROWS(tokens,
                            num_tokens * std::min(top_k, num_destinations),
                            "tokens * min(top_k, num_destinations)");
  SWITCHYARD_CHECK(!with_tokens || num_destinations <= simd::kMaxTokenBuckets,
                   "MapPairs: tokens: more than 65536 destinations");
  SWITCHYARD_CHECK(with_tokens || tokens.element_counts.size == 0,
                   "MapPairs: tokens.element_counts: given without counts");
  SWITCHYARD_CHECK_MAP_INDEX(pair_index, pairs);
  SWITCHYARD_CHECK_MAP_INDEX(copy_index, tokens);
  SWITCHYARD_CHECK_MAP_INDEX(return_index, tokens);
#define SWITCHYARD_APART_VIEW(m) \
  { m, "MapPairs: " #m ": overlaps another argument" }
#define SWITCHYARD_APART_ROWS(list)                                        \
  SWITCHYARD_APART_VIEW(list.counts), SWITCHYARD_APART_VIEW(list.offsets), \
      SWITCHYARD_APART_VIEW(list.rows),                                    \
      SWITCHYARD_APART_VIEW(list.element_counts),                          \
      SWITCHYARD_APART_VIEW(list.element_offsets)
  const internal::ApartView views[] = {topk_ids,
                                       destinations,
                                       SWITCHYARD_APART_VIEW(scratch),
                                       SWITCHYARD_APART_ROWS(pairs),
                                       SWITCHYARD_APART_VIEW(pair_index),
                                       SWITCHYARD_APART_ROWS(tokens),
                                       SWITCHYARD_APART_VIEW(copy_index),
                                       SWITCHYARD_APART_VIEW(return_index)};
  return internal::CheckApart(views);
}

template <class Crew>
Status Map(const MapInputs& inputs, const MapOutputs& outputs,
           const MapOptions& options, const Crew& crew) {
  Status status = CheckMap(inputs, outputs, options);
  if (!status.ok()) return status;
  const auto& [topk_ids, destinations, scratch] = inputs;
  const auto& [pairs, pair_index, tokens, copy_index, return_index, report] =
      outputs;
  const bool with_tokens = tokens.counts.size != 0;
  const size_t num_destinations = pairs.counts.size;
  const size_t num_tokens = topk_ids.rows, top_k = topk_ids.cols;
  const size_t num_pairs = num_tokens * top_k;
  const size_t per_destination = options.experts_per_destination;
  const size_t num_ids = destinations.size != 0
                             ? destinations.size
                             : num_destinations * per_destination;
  const auto put_elements = [&outputs, row_elements = options.row_elements] {
    PutElements(outputs.pairs, row_elements);
    PutElements(outputs.tokens, row_elements);
  };
  simd::MapTotals totals, token_totals;
  int32_t found = 0;
  if (num_pairs == 0) {
    crew.Once([&outputs, &put_elements] {
      for (const MapRows* list : {&outputs.pairs, &outputs.tokens}) {
        Clear(list->counts);
        Clear(list->offsets);
      }
      put_elements();
    });
  } else {
    const AnyMatrix no_index;
    const internal::BucketPlan plan =
        internal::MakeBucketPlan(num_tokens, top_k, num_destinations,
                                 BucketOrder::kAscending, scratch.size, crew);
    const simd::IdMap map = {
        destinations.data, num_ids,
        simd::Divider(std::max<size_t>(1, per_destination))};
    int32_t* const cursors = plan.blocks == 1 ? nullptr : scratch.data;
    simd::MapArgs pair_args{topk_ids,
                            pair_index,
                            no_index,
                            map,
                            num_destinations,
                            pairs.counts.data,
                            pairs.offsets.data,
                            pairs.rows.data,
                            &totals,
                            plan.block_tokens,
                            cursors};
    const bool looked_up = destinations.size != 0 || per_destination > 1;
    pair_args.keeps_buckets = looked_up && pair_index.data != nullptr;
    status = internal::RunMapSort(crew, plan, pair_args, &found);
    if (status.ok() && with_tokens) {
      simd::MapArgs token_args{topk_ids,
                               copy_index,
                               return_index,
                               map,
                               num_destinations,
                               tokens.counts.data,
                               tokens.offsets.data,
                               tokens.rows.data,
                               &token_totals,
                               plan.block_tokens,
                               cursors};
      token_args.tokens = true;
      token_args.keeps_buckets = looked_up && copy_index.data != nullptr;
      status = internal::RunMapSort(crew, plan, token_args, &found);
    }
    if (!status.ok()) return status;
    crew.Once(put_elements);
  }
  crew.Once([&outputs, &totals, num_pairs, found] {
    Report* const told = outputs.report;
    if (told == nullptr) return;
    told->max_rows = static_cast<size_t>(totals.max);
    told->dropped = num_pairs - static_cast<size_t>(found);
  });
  SWITCHYARD_CHECK_DATA(
      static_cast<size_t>(found) == num_pairs || options.allow_dropped,
      "MapPairs: topk_ids: without a destination, and options.allow_dropped is "
      "not set");
  return Status();
}

}  // namespace

Status MapPairs(const MapInputs& inputs, const MapOutputs& outputs,
                const MapOptions& options, Executor& executor) noexcept {
  return Map(inputs, outputs, options, internal::ExecutorCrew(executor));
}
Status MapPairs(const MapInputs& inputs, const MapOutputs& outputs,
                const MapOptions& options, const Team& team) noexcept {
  SWITCHYARD_CHECK_TEAM(MapPairs, team);
  return Map(inputs, outputs, options, internal::TeamCrew(team));
}

}  // namespace switchyard
