// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

#include <algorithm>
#include <cstring>

#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/bucket.h"

namespace switchyard {
namespace {

using internal::MayOverlapAny;

constexpr size_t kMaxInt32 = 0x7FFFFFFF;

// Counting and placing one pair; clearing one element of a table in memory.
constexpr double kPairNs = 1.0;
constexpr double kPadNs = 0.3;

// Up to this many pairs, one thread is best.
constexpr size_t kMaxSerialPairs =
    static_cast<size_t>(internal::kGrainNs / kPairNs);

// Counters a block clears, sums and reads must not cost more than its pairs,
// and those it claims take an atomic add each.
constexpr size_t kMinBlockPairs = 4096;
constexpr size_t kMinPairsPerCounter = 8;
constexpr size_t kMinPairsPerClaim = 32;

// Blocks worth giving to several threads, 1 if there are none.
size_t ParallelBlocks(size_t pairs, size_t min_block_pairs,
                      const Executor& executor) {
  if (pairs <= kMaxSerialPairs) return 1;
  const size_t threads = executor.Concurrency();
  if (threads <= 1) return 1;
  const size_t most = pairs / std::max(kMinBlockPairs, min_block_pairs);
  return std::max<size_t>(1, std::min(most, 8 * threads));
}

// How a sort is shared out. One block: by the calling thread. Several: each
// with its own row of scratch, or, when they claim, with one row of cursors for
// all.
struct Plan {
  size_t blocks = 1;
  size_t block_tokens = 0;
  bool claims = false;
};

Plan MakePlan(Matrix<const int32_t> selected, size_t num_experts,
              BucketOrder order, size_t scratch_size,
              const Executor& executor) {
  const size_t tokens = selected.rows;
  const bool claims =
      order == BucketOrder::kClaim && num_experts <= simd::kMaxClaimExperts;
  const size_t blocks = ParallelBlocks(
      tokens * selected.cols,
      (claims ? kMinPairsPerClaim : kMinPairsPerCounter) * num_experts,
      executor);
  if (blocks == 1 || (!claims && scratch_size < blocks * num_experts)) {
    return {1, tokens, false};
  }
  const size_t block_tokens = (tokens + blocks - 1) / blocks;
  return {(tokens + block_tokens - 1) / block_tokens, block_tokens, claims};
}

simd::BucketBlocksArgs BlocksArgs(Matrix<const int32_t> selected,
                                  size_t num_experts, const Plan& plan,
                                  Span<int32_t> scratch, int32_t* out) {
  simd::BucketBlocksArgs args;
  args.selected = selected;
  args.num_experts = num_experts;
  args.block_tokens = plan.block_tokens;
  args.cursors = scratch.data;
  args.out = out;
  return args;
}

Status RunBlocks(Executor& executor, const Plan& plan,
                 void (*rows)(const simd::BucketBlocksArgs&, size_t, size_t),
                 const simd::BucketBlocksArgs& args) {
  // The time of both passes, although each is a loop of its own: the second
  // finds the threads awake.
  const double block_ns =
      kPairNs * static_cast<double>(args.block_tokens * args.selected.cols);
  return internal::RunRows(executor, plan.blocks, block_ns, rows, args);
}

// Fills tpe and, unless they claim, the blocks' own counters.
Status CountBlocks(Executor& executor, const Plan& plan,
                   simd::BucketBlocksArgs args, int32_t* tpe) {
  if (plan.claims) {
    std::memset(tpe, 0, args.num_experts * sizeof(int32_t));
    args.cursors = tpe;
    return RunBlocks(executor, plan, simd::BucketClaimCount, args);
  }
  const Status status =
      RunBlocks(executor, plan, simd::BucketCountBlocks, args);
  if (!status.ok()) return status;
  simd::BucketSumBlocks(args.cursors, plan.blocks, args.num_experts, tpe);
  return Status();
}

// The rest, after CountBlocks.
Status PlacePacked(Executor& executor, const Plan& plan,
                   simd::BucketBlocksArgs args, const int32_t* tpe,
                   int32_t* offsets, simd::BucketTotals* totals) {
  if (plan.claims) {
    // As cursors, the starts in offsets[1..] end where the next expert starts.
    offsets[0] = 0;
    *totals = simd::BucketScan(tpe, args.num_experts, offsets + 1);
    args.cursors = offsets + 1;
    return RunBlocks(executor, plan, simd::BucketClaimPlace, args);
  }
  *totals = simd::BucketScan(tpe, args.num_experts, offsets);
  offsets[args.num_experts] = totals->pairs;
  args.starts = offsets;
  return RunBlocks(executor, plan, simd::BucketPlaceBlocks, args);
}

// After CountBlocks, but for claims in a table that fits any counts.
Status PlaceStrided(Executor& executor, const Plan& plan,
                    simd::BucketBlocksArgs args, int32_t* tpe) {
  if (!plan.claims) {
    return RunBlocks(executor, plan, simd::BucketPlaceBlocks, args);
  }
  std::memset(tpe, 0, args.num_experts * sizeof(int32_t));
  args.cursors = tpe;
  return RunBlocks(executor, plan, simd::BucketClaimPlace, args);
}

BucketSummary Summary(const simd::BucketTotals& totals, size_t num_pairs,
                      size_t row_stride) {
  return {totals.max_tpe, row_stride,
          num_pairs - static_cast<size_t>(totals.pairs)};
}

bool AllApart() { return true; }
template <class View, class... Rest>
bool AllApart(const View& view, const Rest&... rest) {
  return internal::ApartFrom(view, rest...) && AllApart(rest...);
}

// What both functions ask of their inputs. The outputs hold pairs as int32.
#define SWITCHYARD_CHECK_BUCKET_INPUTS(fn, selected, tpe, scratch)    \
  do {                                                                \
    SWITCHYARD_CHECK_ISA();                                           \
    SWITCHYARD_CHECK_MATRIX(fn, "selected", selected);                \
    SWITCHYARD_CHECK_SPAN(fn, "tpe", tpe);                            \
    SWITCHYARD_CHECK_SPAN(fn, "scratch", scratch);                    \
    SWITCHYARD_CHECK((tpe).size != 0, fn ": tpe: no experts");        \
    SWITCHYARD_CHECK((tpe).size <= kMaxInt32,                         \
                     fn ": tpe: more than 2^31 - 1 experts");         \
    /* The product does not wrap: the view fits the address space. */ \
    SWITCHYARD_CHECK((selected).rows*(selected).cols <= kMaxInt32,    \
                     fn ": selected: more than 2^31 - 1 pairs");      \
  } while (false)

}  // namespace

size_t BucketScratchSize(size_t num_pairs, size_t num_experts,
                         const Executor& executor) noexcept {
  if (num_pairs > kMaxInt32 || num_experts > kMaxInt32) return 0;
  const size_t blocks =
      ParallelBlocks(num_pairs, kMinPairsPerCounter * num_experts, executor);
  return blocks == 1 ? 0 : blocks * num_experts;
}

Status BucketPacked(Matrix<const int32_t> selected, BucketOrder order,
                    const PackedBuckets& out, Span<int32_t> scratch,
                    BucketSummary* summary, Executor& executor) noexcept {
  SWITCHYARD_CHECK_BUCKET_INPUTS("BucketPacked", selected, out.tpe, scratch);
  SWITCHYARD_CHECK_SPAN("BucketPacked", "offsets", out.offsets);
  SWITCHYARD_CHECK_SPAN("BucketPacked", "pairs", out.pairs);
  SWITCHYARD_CHECK_MATRIX("BucketPacked", "row_index", out.row_index);
  const size_t num_experts = out.tpe.size;
  const size_t num_pairs = selected.rows * selected.cols;
  const bool has_row_index =
      out.row_index.data != nullptr || out.row_index.rows != 0;
  SWITCHYARD_CHECK(out.offsets.size == num_experts + 1,
                   "BucketPacked: offsets: size is not num_experts + 1");
  SWITCHYARD_CHECK(out.pairs.size >= num_pairs,
                   "BucketPacked: pairs: fewer than tokens * top_k elements");
  SWITCHYARD_CHECK(!has_row_index || out.row_index.rows == selected.rows,
                   "BucketPacked: row_index: rows differ from selected's");
  SWITCHYARD_CHECK(!has_row_index || out.row_index.cols == selected.cols,
                   "BucketPacked: row_index: cols differ from selected's");
  if (!AllApart(out.tpe, selected, out.offsets, out.pairs, out.row_index,
                scratch)) {
    SWITCHYARD_CHECK(!MayOverlapAny(out.tpe, selected, out.offsets, out.pairs,
                                    out.row_index, scratch),
                     "BucketPacked: tpe: overlaps another view");
    SWITCHYARD_CHECK(!MayOverlapAny(out.offsets, selected, out.pairs,
                                    out.row_index, scratch),
                     "BucketPacked: offsets: overlaps another view");
    SWITCHYARD_CHECK(
        !MayOverlapAny(out.pairs, selected, out.row_index, scratch),
        "BucketPacked: pairs: overlaps another view");
    SWITCHYARD_CHECK(!MayOverlapAny(out.row_index, selected, scratch),
                     "BucketPacked: row_index: overlaps another view");
    SWITCHYARD_CHECK(!MayOverlapAny(scratch, selected),
                     "BucketPacked: scratch: overlaps selected");
  }

  int32_t* const tpe = out.tpe.data;
  int32_t* const offsets = out.offsets.data;
  if (num_pairs == 0) {
    std::memset(tpe, 0, num_experts * sizeof(int32_t));
    std::memset(offsets, 0, (num_experts + 1) * sizeof(int32_t));
    if (summary != nullptr) *summary = {0, 0, 0};
    return Status();
  }

  const Plan plan =
      MakePlan(selected, num_experts, order, scratch.size, executor);
  simd::BucketTotals totals;
  if (plan.blocks == 1) {
    totals = simd::BucketPackedSerial(selected, num_experts, tpe, offsets,
                                      out.pairs.data, out.row_index);
  } else {
    simd::BucketBlocksArgs args =
        BlocksArgs(selected, num_experts, plan, scratch, out.pairs.data);
    args.row_index = out.row_index;
    Status status = CountBlocks(executor, plan, args, tpe);
    if (status.ok()) {
      status = PlacePacked(executor, plan, args, tpe, offsets, &totals);
    }
    if (!status.ok()) return status;
  }
  if (summary != nullptr) *summary = Summary(totals, num_pairs, 0);
  return Status();
}

Status BucketStrided(Matrix<const int32_t> selected, BucketOrder order,
                     const StridedBuckets& out, Span<int32_t> scratch,
                     BucketSummary* summary, Executor& executor) noexcept {
  SWITCHYARD_CHECK_BUCKET_INPUTS("BucketStrided", selected, out.tpe, scratch);
  SWITCHYARD_CHECK_SPAN("BucketStrided", "ids", out.ids);
  const size_t num_experts = out.tpe.size;
  const size_t num_pairs = selected.rows * selected.cols;
  size_t row_stride = out.row_stride;
  size_t table_size = 0;
  SWITCHYARD_CHECK(
      !__builtin_mul_overflow(row_stride, num_experts, &table_size) &&
          table_size <= PTRDIFF_MAX / sizeof(int32_t),
      "BucketStrided: row_stride: the table overflows the address space");
  if (!AllApart(out.tpe, selected, out.ids, scratch)) {
    SWITCHYARD_CHECK(!MayOverlapAny(out.tpe, selected, out.ids, scratch),
                     "BucketStrided: tpe: overlaps another view");
    SWITCHYARD_CHECK(!MayOverlapAny(out.ids, selected, scratch),
                     "BucketStrided: ids: overlaps another view");
    SWITCHYARD_CHECK(!MayOverlapAny(scratch, selected),
                     "BucketStrided: scratch: overlaps selected");
  }

  int32_t* const tpe = out.tpe.data;
  if (num_pairs == 0) {
    std::memset(tpe, 0, num_experts * sizeof(int32_t));
    if (summary != nullptr) *summary = {0, std::max<size_t>(1, row_stride), 0};
    return Status();
  }

  const Plan plan =
      MakePlan(selected, num_experts, order, scratch.size, executor);
  const bool serial = plan.blocks == 1;
  // Up to the end of a last row of `last` elements, all of it if padded.
  const auto needed_ids = [&](size_t last) {
    return (num_experts - 1) * row_stride +
           (out.zero_padding ? row_stride : last);
  };
  // A table with room for all pairs in each row needs no counts beforehand.
  const bool fits_any =
      row_stride >= num_pairs && out.ids.size >= needed_ids(num_pairs);
  simd::BucketTotals totals;
  Status status;
  if (!fits_any || !(serial || plan.claims)) {
    if (serial) {
      totals = simd::BucketCountSerial(selected, num_experts, tpe);
    } else {
      status = CountBlocks(
          executor, plan,
          BlocksArgs(selected, num_experts, plan, scratch, nullptr), tpe);
      if (!status.ok()) return status;
      totals = simd::BucketTotal(tpe, num_experts);
    }
    const size_t max_tpe = static_cast<size_t>(totals.max_tpe);
    const size_t tight = std::max<size_t>(1, max_tpe);
    if (row_stride == StridedBuckets::kTightStride) row_stride = tight;
    const bool rows_fit = row_stride >= max_tpe;
    if (!rows_fit || out.ids.size < needed_ids(max_tpe)) {
      if (summary != nullptr) *summary = Summary(totals, num_pairs, tight);
      return Status(
          StatusCode::kFailedPrecondition,
          rows_fit ? "BucketStrided: ids: too small for num_experts rows"
                   : "BucketStrided: row_stride: smaller than the max of tpe");
    }
  }
  if (serial) {
    totals = simd::BucketStridedSerial(selected, num_experts, tpe, out.ids.data,
                                       row_stride);
  } else {
    simd::BucketBlocksArgs args =
        BlocksArgs(selected, num_experts, plan, scratch, out.ids.data);
    args.row_stride = row_stride;
    status = PlaceStrided(executor, plan, args, tpe);
    if (!status.ok()) return status;
    totals = simd::BucketTotal(tpe, num_experts);
  }
  if (out.zero_padding) {
    const double row_ns = kPadNs * static_cast<double>(row_stride);
    status = internal::RunRows(executor, num_experts, row_ns, simd::BucketPad,
                               {tpe, out.ids.data, row_stride});
  }
  if (status.ok() && summary != nullptr) {
    *summary = Summary(totals, num_pairs, row_stride);
  }
  return status;
}

Status MakeDispatchArgs(int32_t max_tpe, size_t num_experts, size_t features,
                        const DispatchTile& tile,
                        Span<uint32_t> args) noexcept {
  SWITCHYARD_CHECK(args.data != nullptr,
                   "MakeDispatchArgs: args: data is null");
  SWITCHYARD_CHECK(args.size == 3, "MakeDispatchArgs: args: size is not 3");
  SWITCHYARD_CHECK(max_tpe >= 0, "MakeDispatchArgs: max_tpe: is negative");
  SWITCHYARD_CHECK(tile.pairs != 0, "MakeDispatchArgs: tile: pairs is 0");
  SWITCHYARD_CHECK(tile.features != 0, "MakeDispatchArgs: tile: features is 0");
  SWITCHYARD_CHECK(num_experts <= UINT32_MAX,
                   "MakeDispatchArgs: num_experts: more than 2^32 - 1");
  const size_t feature_tiles =
      features / tile.features + (features % tile.features != 0 ? 1 : 0);
  SWITCHYARD_CHECK(feature_tiles <= UINT32_MAX,
                   "MakeDispatchArgs: features: more than 2^32 - 1 tiles");
  const uint32_t pairs = static_cast<uint32_t>(max_tpe);
  args.data[0] = pairs <= tile.pairs ? 1 : (pairs - 1) / tile.pairs + 1;
  args.data[1] = static_cast<uint32_t>(feature_tiles);
  args.data[2] = static_cast<uint32_t>(num_experts);
  return Status();
}

}  // namespace switchyard
