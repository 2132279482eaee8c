// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

#include <algorithm>
#include <cstring>

#include "src/bucket_plan.h"
#include "src/calls/bucket.h"
#include "src/check.h"
#include "src/schedule.h"
#include "src/simd/bucket.h"

namespace switchyard {
namespace {

using internal::BucketPlan;

// The picoseconds to clear one element of a row in memory.
constexpr size_t kPadPs = 300;

// The state and the steps of one sort, for BucketPacked() and BucketStrided().
struct Sort {
  const BucketPlan plan;
  Executor& executor;
  simd::BucketTotals totals;
  simd::BucketArgs args;

  Sort(const BucketInputs& inputs, const Span<int32_t>& tokens_per_expert,
       const AnyMatrix& row_index, BucketOrder order, Executor& who)
      : plan(internal::MakeBucketPlan(
            inputs.topk_ids.rows, inputs.topk_ids.cols, tokens_per_expert.size,
            order, inputs.scratch.size, who)),
        executor(who),
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

  void RunSerial() { simd::BucketSerial()(args, 0, args.topk_ids.rows); }
  // Runs one of the two passes over blocks. block_ps is the time of a block
  // in both passes, because only the first pass has to wake the threads.
  Status RunBlocks(simd::RowFunction<simd::BucketArgs> blocks) {
    const size_t block_ps =
        internal::kPairPs * args.block_tokens * args.topk_ids.cols;
    return internal::RunRows(executor, plan.blocks, block_ps, blocks, args);
  }
  // Sets all counts to 0, which is the result of a call without pairs. With
  // plan.claims, blocks then add to these counts.
  void Clear() {
    std::memset(args.tokens_per_expert, 0, args.num_experts * sizeof(int32_t));
  }
  // Computes tokens_per_expert and totals, and the offsets if args has them.
  Status Count() {
    if (plan.claims) Clear();
    const Status status = RunBlocks(simd::BucketCount());
    if (status.ok()) Scan(plan.blocks);
    return status;
  }
  void Scan(size_t blocks) { simd::BucketScan()(args, 0, blocks); }
  Status Place() { return RunBlocks(simd::BucketPlace()); }

  void Tell(Report* report, size_t row_stride = 0) const {
    if (report == nullptr) return;
    report->max_rows = static_cast<size_t>(totals.max);
    report->dropped = dropped();
    if (row_stride != 0) report->row_stride = row_stride;
  }
};

}  // namespace

size_t BucketScratchSize(size_t num_pairs, size_t num_experts,
                         const Executor& executor) noexcept {
  constexpr size_t kMost = internal::kMaxInt32;
  if (num_pairs > kMost || num_experts > kMost) return 0;
  const size_t blocks = internal::BucketBlocks(
      num_pairs, internal::kMinPairsPerCounter * num_experts, executor);
  return blocks == 1 ? 0 : blocks * num_experts;
}

Status BucketPacked(const BucketInputs& inputs, const PackedBuckets& outputs,
                    const BucketOptions& options, Executor& executor) noexcept {
  const auto call = internal::CheckSort<calls::PackedCall>(inputs, outputs,
                                                           options, executor);
  Status status = call.status;
  if (!status.ok()) return status;
  const auto& [tokens_per_expert, offsets, pairs, row_index, report] = outputs;

  Sort sort(inputs, tokens_per_expert, row_index, options.order, executor);
  sort.args.offsets = offsets.data;
  sort.args.out = pairs.data;
  if (sort.num_pairs() == 0) {
    std::memset(offsets.data, 0, offsets.size * sizeof(int32_t));
    sort.Clear();
  } else if (sort.serial()) {
    sort.RunSerial();
  } else {
    status = sort.Count();
    if (status.ok()) status = sort.Place();
  }
  if (!status.ok()) return status;
  sort.Tell(report);
  return sort.dropped() == 0 || options.allow_dropped
             ? Status()
             : internal::DoesNotFit(SWITCHYARD_DROPPED_TEXT("BucketPacked"),
                                    sort.dropped(), sort.num_pairs());
}

Status BucketStrided(const BucketInputs& inputs, const StridedBuckets& outputs,
                     const BucketOptions& options,
                     Executor& executor) noexcept {
  const auto call = internal::CheckSort<calls::StridedCall>(inputs, outputs,
                                                            options, executor);
  Status status = call.status;
  if (!status.ok()) return status;
  const auto& [tokens_per_expert, ids, given_stride, zero_padding, report] =
      outputs;
  const size_t num_experts = call.sizes.buckets;
  size_t row_stride = given_stride;

  const AnyMatrix no_row_index;
  Sort sort(inputs, tokens_per_expert, no_row_index, options.order, executor);
  const size_t num_pairs = sort.num_pairs();
  if (num_pairs == 0) {
    sort.Clear();
    sort.Tell(report, std::max<size_t>(1, row_stride));
    return Status();
  }
  // Returns the least size of ids if the last row has `last` pairs.
  const auto needed_ids = [&, padded = zero_padding](size_t last) {
    return (num_experts - 1) * row_stride + (padded ? row_stride : last);
  };
  // If each row has room for all pairs, the sort needs no counts beforehand.
  const bool fits_any =
      row_stride >= num_pairs && ids.size >= needed_ids(num_pairs);
  if (!fits_any || !(sort.serial() || sort.plan.claims)) {
    if (sort.serial()) {
      sort.RunSerial();
    } else {
      status = sort.Count();
      if (!status.ok()) return status;
    }
    const size_t max_rows = static_cast<size_t>(sort.totals.max);
    const size_t tight = std::max<size_t>(1, max_rows);
    if (row_stride == StridedBuckets::kTightStride) row_stride = tight;
    const bool rows_fit = row_stride >= max_rows;
    if (!rows_fit || ids.size < needed_ids(max_rows)) {
      sort.Tell(report, tight);
      return internal::DoesNotFit(
          rows_fit ? "BucketStrided: ids: too small for num_experts rows"
                   : "BucketStrided: row_stride: smaller than the busiest "
                     "expert's pairs",
          internal::Details()
              .Put("got ")
              .Put(rows_fit ? ids.size : row_stride)
              .Put(", needs at least ")
              .Put(rows_fit ? needed_ids(max_rows) : max_rows));
    }
  }
  sort.args.out = ids.data;
  sort.args.row_stride = row_stride;
  if (sort.serial()) {
    sort.RunSerial();
  } else {
    if (sort.plan.claims) sort.Clear();
    status = sort.Place();
    if (status.ok() && sort.plan.claims) sort.Scan(0);
  }
  if (status.ok() && zero_padding) {
    status = internal::RunRows(executor, num_experts, kPadPs * row_stride,
                               simd::BucketPad(), sort.args);
  }
  if (!status.ok()) return status;
  sort.Tell(report, row_stride);
  return sort.dropped() == 0 || options.allow_dropped
             ? Status()
             : internal::DoesNotFit(SWITCHYARD_DROPPED_TEXT("BucketStrided"),
                                    sort.dropped(), sort.num_pairs());
}

Status MakeDispatchArgs(const DispatchInputs& inputs,
                        const DispatchOutputs& outputs,
                        const DispatchOptions& options) noexcept {
  const Checked<calls::DispatchCall> call(inputs, outputs, options);
  if (!call.status.ok()) return call.status;
  uint32_t* const args = outputs.args.data;
  args[0] = static_cast<uint32_t>(call.sizes.pair_tiles);
  args[1] = static_cast<uint32_t>(call.sizes.feature_tiles);
  args[2] = static_cast<uint32_t>(inputs.num_experts);
  return Status();
}

}  // namespace switchyard
