// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_BUCKET_H_
#define SWITCHYARD_SRC_SIMD_BUCKET_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/views.h"

namespace switchyard {
namespace simd {

struct BucketTotals {
  int32_t max_tpe = 0;
  int32_t pairs = 0;
};

// On one thread. What goes in and out separately rather than in one struct:
// filling that takes as long as sorting one token's pairs.
// 1 <= num_experts < 2^31.

// Writes tpe.
BucketTotals BucketCountSerial(const Matrix<const int32_t>& selected,
                               size_t num_experts, int32_t* tpe);
// Writes all outputs; row_index.data may be null.
BucketTotals BucketPackedSerial(const Matrix<const int32_t>& selected,
                                size_t num_experts, int32_t* tpe,
                                int32_t* offsets, int32_t* pairs,
                                const Matrix<int32_t>& row_index);
// Writes tpe and the pairs of expert e from ids[e * row_stride] on, where there
// is room for them.
BucketTotals BucketStridedSerial(const Matrix<const int32_t>& selected,
                                 size_t num_experts, int32_t* tpe, int32_t* ids,
                                 size_t row_stride);

// On several threads: a counting sort in blocks of consecutive tokens. Each
// block counts its pairs per expert; from all counts follows where each block's
// pairs of each expert start; then each block places its pairs there. So the
// order is that of one pass over all tokens, whoever runs the blocks and
// however many there are.
struct BucketBlocksArgs {
  Matrix<const int32_t> selected;
  size_t num_experts = 0;
  size_t block_tokens = 0;
  // [blocks, num_experts], or [num_experts] shared by all blocks when claiming.
  // BucketCountBlocks counts into them. BucketPlaceBlocks takes from them the
  // next free position of each expert, and leaves behind the one after its last
  // pair.
  int32_t* cursors = nullptr;
  // If not null, BucketPlaceBlocks first adds starts[e] to its blocks' cursors.
  const int32_t* starts = nullptr;
  // Pair p of expert e goes to out[e * row_stride + cursor]; 0 when packed.
  int32_t* out = nullptr;
  size_t row_stride = 0;
  Matrix<int32_t> row_index;  // optional; the cursor, or -1 if dropped
};

// Blocks [begin, end).
void BucketCountBlocks(const BucketBlocksArgs& args, size_t begin, size_t end);
void BucketPlaceBlocks(const BucketBlocksArgs& args, size_t begin, size_t end);

// The same for blocks that share one row of cursors and claim room in it, with
// one atomic add per block and expert: no scratch, and pairs are in order in
// each block only. BucketClaimCount adds to the cursors.
constexpr size_t kMaxClaimExperts = 1024;
void BucketClaimCount(const BucketBlocksArgs& args, size_t begin, size_t end);
void BucketClaimPlace(const BucketBlocksArgs& args, size_t begin, size_t end);

// counts [blocks, num_experts] become sums over the blocks before; the sums
// over all go to tpe.
void BucketSumBlocks(int32_t* counts, size_t blocks, size_t num_experts,
                     int32_t* tpe);
BucketTotals BucketTotal(const int32_t* tpe, size_t num_experts);
// The same, and starts[e] = sum of tpe[i] over i < e.
BucketTotals BucketScan(const int32_t* tpe, size_t num_experts,
                        int32_t* starts);

struct BucketPadArgs {
  const int32_t* tpe;
  int32_t* ids;
  size_t row_stride;
};
// Zeros behind the pairs of experts [begin, end).
void BucketPad(const BucketPadArgs& args, size_t begin, size_t end);

}  // namespace simd
}  // namespace switchyard

#endif  // SWITCHYARD_SRC_SIMD_BUCKET_H_
