// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

#include <algorithm>
#include <cstring>

#include "src/bucket_plan.h"
#include "src/check_macros.h"
#include "src/schedule.h"
#include "src/simd/bucket.h"

namespace switchyard {
namespace {

using internal::BucketPlan;
using internal::kMaxInt32;

// Clearing one element of a table in memory.
constexpr size_t kPadPs = 300;

// A sort on its way: what both functions do, in the same order.
template <class Crew>
struct Sort {
  const BucketPlan plan;
  const Crew& crew;
  simd::BucketTotals totals;
  simd::BucketArgs args;

  Sort(const BucketInputs& inputs, const Span<int32_t>& tokens_per_expert,
       const AnyMatrix& row_index, BucketOrder order, const Crew& who)
      : plan(internal::MakeBucketPlan(
            inputs.topk_ids.rows, inputs.topk_ids.cols, tokens_per_expert.size,
            order, inputs.scratch.size, who)),
        crew(who),
        args{inputs.topk_ids,
             row_index,
             tokens_per_expert.size,
             tokens_per_expert.data,
             nullptr,
             nullptr,
             0,
             &totals,
             plan.block_tokens,
             inputs.scratch.data,
             plan.claims} {}
  Sort(const Sort&) = delete;

  bool serial() const { return plan.blocks == 1; }
  size_t num_pairs() const { return args.topk_ids.rows * args.topk_ids.cols; }
  size_t dropped() const {
    return num_pairs() - static_cast<size_t>(totals.pairs);
  }

  Status RunSerial() {
    crew.Once([&] { simd::BucketSerial()(args, 0, args.topk_ids.rows); });
    ShareTotals();
    return Status();
  }
  // Each pass is charged the time of both: the second finds the threads awake.
  Status RunBlocks(simd::RowFunction<simd::BucketArgs> blocks) {
    const size_t block_ps =
        internal::kPairPs * args.block_tokens * args.topk_ids.cols;
    return crew.Share(plan.blocks, block_ps, blocks, args);
  }
  // Zeros: of no pairs, or as cursors of claims.
  void Clear() {
    crew.Once([&] {
      std::memset(args.tokens_per_expert, 0,
                  args.num_experts * sizeof(int32_t));
    });
  }
  // tokens_per_expert and totals; the offsets, too, where they are wanted.
  Status Count() {
    if (plan.claims) Clear();
    const Status status = RunBlocks(simd::BucketCount());
    if (status.ok()) Scan(plan.blocks);
    return status;
  }
  void Scan(size_t blocks) {
    crew.Once([&] { simd::BucketScan()(args, 0, blocks); });
    ShareTotals();
  }
  Status Place() { return RunBlocks(simd::BucketPlace()); }

  // To the threads for which one has counted. None goes on, to count again or
  // to return, before all have read.
  void ShareTotals() {
    if (!crew.Reports()) {
      totals = simd::BucketTotals();
      for (size_t e = 0; e < args.num_experts; ++e) {
        totals.max = std::max(totals.max, args.tokens_per_expert[e]);
        totals.pairs += args.tokens_per_expert[e];
      }
    }
    crew.Wait();
  }
  // Before any thread of a team returns.
  void Tell(Report* report, size_t row_stride = 0) const {
    if (report == nullptr) return;
    if (crew.Reports()) {
      report->max_rows = static_cast<size_t>(totals.max);
      report->dropped = dropped();
      if (row_stride != 0) report->row_stride = row_stride;
    }
    crew.Wait();
  }
};

#define SWITCHYARD_CHECK_BUCKET_INPUTS(fn)                               \
  do {                                                                   \
    SWITCHYARD_CHECK_SORT_INPUTS(fn, tokens_per_expert, "experts");      \
    SWITCHYARD_CHECK(options.order == BucketOrder::kAscending ||         \
                         options.order == BucketOrder::kClaim,           \
                     #fn ": options: order is not a known BucketOrder"); \
  } while (false)

// For an Executor or a Team.
template <class Who>
size_t ScratchSize(size_t num_pairs, size_t num_experts, const Who& who) {
  if (num_pairs > kMaxInt32 || num_experts > kMaxInt32) return 0;
  const size_t blocks = internal::BucketBlocks(
      num_pairs, internal::kMinPairsPerCounter * num_experts, who);
  return blocks == 1 ? 0 : blocks * num_experts;
}

template <class Crew>
Status Packed(const BucketInputs& inputs, const PackedBuckets& outputs,
              const BucketOptions& options, const Crew& crew) {
  const auto& [topk_ids, scratch] = inputs;
  const auto& [tokens_per_expert, offsets, pairs, row_index, report] = outputs;
  SWITCHYARD_CHECK_BUCKET_INPUTS(BucketPacked);
  SWITCHYARD_CHECK_VIEW(BucketPacked, offsets);
  SWITCHYARD_CHECK_VIEW(BucketPacked, pairs);
  const size_t num_experts = tokens_per_expert.size;
  const size_t tokens = topk_ids.rows, top_k = topk_ids.cols;
  SWITCHYARD_CHECK_NEEDED(BucketPacked, offsets,
                          offsets.size == num_experts + 1,
                          "size is not num_experts + 1");
  SWITCHYARD_CHECK_NEEDED(BucketPacked, pairs, pairs.size >= tokens * top_k,
                          "fewer than tokens * top_k elements");
  if (internal::Given(row_index)) {
    SWITCHYARD_CHECK_TYPED(BucketPacked, row_index, Type::kI32, "int32");
    SWITCHYARD_CHECK_SHAPE(BucketPacked, row_index, tokens, top_k);
  }
  if (!internal::AllApart(topk_ids, tokens_per_expert, offsets, pairs,
                          row_index, scratch)) {
    SWITCHYARD_CHECK_APART(BucketPacked, tokens_per_expert, topk_ids, offsets,
                           pairs, row_index, scratch);
    SWITCHYARD_CHECK_APART(BucketPacked, offsets, topk_ids, pairs, row_index,
                           scratch);
    SWITCHYARD_CHECK_APART(BucketPacked, pairs, topk_ids, row_index, scratch);
    SWITCHYARD_CHECK_APART(BucketPacked, row_index, topk_ids, scratch);
    SWITCHYARD_CHECK_APART(BucketPacked, scratch, topk_ids);
  }

  Sort<Crew> sort(inputs, tokens_per_expert, row_index, options.order, crew);
  sort.args.offsets = offsets.data;
  sort.args.out = pairs.data;
  Status status;
  if (tokens * top_k == 0) {
    crew.Once([&, zeros = offsets] {
      std::memset(zeros.data, 0, zeros.size * sizeof(int32_t));
    });
    sort.Clear();
  } else if (sort.serial()) {
    status = sort.RunSerial();
  } else {
    status = sort.Count();
    if (status.ok()) status = sort.Place();
  }
  if (!status.ok()) return status;
  sort.Tell(report);
  SWITCHYARD_CHECK_DROPPED(BucketPacked, sort.dropped(), options);
  return Status();
}

template <class Crew>
Status Strided(const BucketInputs& inputs, const StridedBuckets& outputs,
               const BucketOptions& options, const Crew& crew) {
  const auto& [topk_ids, scratch] = inputs;
  const auto& [tokens_per_expert, ids, given_stride, zero_padding, report] =
      outputs;
  SWITCHYARD_CHECK_BUCKET_INPUTS(BucketStrided);
  SWITCHYARD_CHECK_VIEW(BucketStrided, ids);
  const size_t num_experts = tokens_per_expert.size;
  size_t row_stride = given_stride;
  size_t table_size = 0;
  SWITCHYARD_CHECK(
      !__builtin_mul_overflow(row_stride, num_experts, &table_size) &&
          table_size <= PTRDIFF_MAX / sizeof(int32_t),
      "BucketStrided: row_stride: the table overflows the address space");
  if (!internal::AllApart(topk_ids, tokens_per_expert, ids, scratch)) {
    SWITCHYARD_CHECK_APART(BucketStrided, tokens_per_expert, topk_ids, ids,
                           scratch);
    SWITCHYARD_CHECK_APART(BucketStrided, ids, topk_ids, scratch);
    SWITCHYARD_CHECK_APART(BucketStrided, scratch, topk_ids);
  }

  const AnyMatrix no_row_index;
  Sort<Crew> sort(inputs, tokens_per_expert, no_row_index, options.order, crew);
  const size_t num_pairs = sort.num_pairs();
  if (num_pairs == 0) {
    sort.Clear();
    sort.Tell(report, std::max<size_t>(1, row_stride));
    return Status();
  }
  // Up to the end of a last row of `last` elements, all of it if padded.
  const auto needed_ids = [&, padded = zero_padding](size_t last) {
    return (num_experts - 1) * row_stride + (padded ? row_stride : last);
  };
  // A table with room for all pairs in each row needs no counts beforehand.
  const bool fits_any =
      row_stride >= num_pairs && ids.size >= needed_ids(num_pairs);
  Status status;
  if (!fits_any || !(sort.serial() || sort.plan.claims)) {
    status = sort.serial() ? sort.RunSerial() : sort.Count();
    if (!status.ok()) return status;
    const size_t max_rows = static_cast<size_t>(sort.totals.max);
    const size_t tight = std::max<size_t>(1, max_rows);
    if (row_stride == StridedBuckets::kTightStride) row_stride = tight;
    const bool rows_fit = row_stride >= max_rows;
    if (!rows_fit || ids.size < needed_ids(max_rows)) {
      sort.Tell(report, tight);
      return Status(StatusCode::kFailedPrecondition,
                    rows_fit ? "BucketStrided: ids: too small for num_experts "
                               "rows"
                             : "BucketStrided: row_stride: smaller than the "
                               "busiest expert's pairs");
    }
  }
  sort.args.out = ids.data;
  sort.args.row_stride = row_stride;
  if (sort.serial()) {
    status = sort.RunSerial();
  } else {
    if (sort.plan.claims) sort.Clear();
    status = sort.Place();
    if (status.ok() && sort.plan.claims) sort.Scan(0);
  }
  if (status.ok() && zero_padding) {
    status = crew.Share(num_experts, kPadPs * row_stride, simd::BucketPad(),
                        sort.args);
  }
  if (!status.ok()) return status;
  sort.Tell(report, row_stride);
  SWITCHYARD_CHECK_DROPPED(BucketStrided, sort.dropped(), options);
  return Status();
}

}  // namespace

size_t BucketScratchSize(size_t num_pairs, size_t num_experts,
                         const Executor& executor) noexcept {
  return ScratchSize(num_pairs, num_experts, executor);
}
size_t BucketScratchSize(size_t num_pairs, size_t num_experts,
                         const Team& team) noexcept {
  return ScratchSize(num_pairs, num_experts, team);
}

Status BucketPacked(const BucketInputs& inputs, const PackedBuckets& outputs,
                    const BucketOptions& options, Executor& executor) noexcept {
  return Packed(inputs, outputs, options, internal::ExecutorCrew(executor));
}
Status BucketPacked(const BucketInputs& inputs, const PackedBuckets& outputs,
                    const BucketOptions& options, const Team& team) noexcept {
  SWITCHYARD_CHECK_TEAM(BucketPacked, team);
  return Packed(inputs, outputs, options, internal::TeamCrew(team));
}

Status BucketStrided(const BucketInputs& inputs, const StridedBuckets& outputs,
                     const BucketOptions& options,
                     Executor& executor) noexcept {
  return Strided(inputs, outputs, options, internal::ExecutorCrew(executor));
}
Status BucketStrided(const BucketInputs& inputs, const StridedBuckets& outputs,
                     const BucketOptions& options, const Team& team) noexcept {
  SWITCHYARD_CHECK_TEAM(BucketStrided, team);
  return Strided(inputs, outputs, options, internal::TeamCrew(team));
}

Status MakeDispatchArgs(const DispatchInputs& inputs,
                        const DispatchOutputs& outputs,
                        const DispatchOptions& options) noexcept {
  const auto& [max_rows, num_experts, features] = inputs;
  const auto& [args] = outputs;
  const auto& [tile_pairs, tile_features] = options;
  SWITCHYARD_CHECK_VIEW(MakeDispatchArgs, args);
  SWITCHYARD_CHECK_NEEDED(MakeDispatchArgs, args, args.size == 3,
                          "size is not 3");
  SWITCHYARD_CHECK(tile_pairs != 0,
                   "MakeDispatchArgs: options: tile_pairs is 0");
  SWITCHYARD_CHECK(tile_features != 0,
                   "MakeDispatchArgs: options: tile_features is 0");
  const auto tiles = [](size_t n, size_t tile) {
    return n / tile + (n % tile != 0 ? 1 : 0);
  };
  const size_t pair_tiles = std::max<size_t>(1, tiles(max_rows, tile_pairs));
  const size_t feature_tiles = tiles(features, tile_features);
  SWITCHYARD_CHECK(pair_tiles <= UINT32_MAX,
                   "MakeDispatchArgs: max_rows: more than 2^32 - 1 tiles");
  SWITCHYARD_CHECK(feature_tiles <= UINT32_MAX,
                   "MakeDispatchArgs: features: more than 2^32 - 1 tiles");
  SWITCHYARD_CHECK(num_experts <= UINT32_MAX,
                   "MakeDispatchArgs: num_experts: more than 2^32 - 1");
  args.data[0] = static_cast<uint32_t>(pair_tiles);
  args.data[1] = static_cast<uint32_t>(feature_tiles);
  args.data[2] = static_cast<uint32_t>(num_experts);
  return Status();
}

}  // namespace switchyard
