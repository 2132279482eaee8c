// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Hyper-connections: several residual streams for each token instead of one.

#ifndef SWITCHYARD_HYPER_H_
#define SWITCHYARD_HYPER_H_

#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// The most streams of a token.
constexpr size_t kMaxStreams = 16;

// Inputs of HyperConnect(). Each token has n streams in consecutive rows:
// stream i of token t is row t * n + i.
struct HyperInputs {
  ConstAnyMatrix streams;  // [tokens * n, hidden]: all streams
  // Optional [tokens, hidden]: the output of the block (attention or
  // experts), which is added to the streams. Give block and post, or neither.
  ConstAnyMatrix block = {};
  // Optional [tokens, n]: for each stream, the factor that multiplies `block`
  // before it is added. Give block and post, or neither.
  ConstAnyMatrix post = {};
  // Optional [tokens, n * n]: factors that mix streams. Stream j is added to
  // stream i with the factor comb[t, j * n + i]. Without comb, streams are
  // not mixed.
  ConstAnyMatrix comb = {};
  // Optional: factors that multiply a token's streams before they are summed
  // into one row: [tokens, n], one factor for each stream, or [tokens * n,
  // hidden], one factor for each element.
  ConstAnyMatrix pre = {};
  // Optional [1, hidden]: weight of the norm of HyperOutputs::normed.
  ConstAnyMatrix norm_weight = {};
};
// Outputs of HyperConnect(). Give at least one.
struct HyperOutputs {
  AnyMatrix streams = {};  // [tokens * n, hidden]: the new streams
  // [tokens, 1]: for each token, the scale of one norm over all its streams.
  AnyMatrix scales = {};
  // [tokens, hidden]: the sum of a token's streams. Needs HyperInputs::pre.
  AnyMatrix out = {};
  // [tokens, hidden]: the sum of a token's streams, after a norm. Needs
  // HyperInputs::pre and norm_weight.
  AnyRows normed = {};
};
// Options of HyperConnect().
struct HyperOptions {
  size_t num_streams = 0;      // n, the streams of a token; required
  float eps = 1e-6f;           // eps of the norms, >= 0
  bool comb_by_row = false;    // use comb[t, i * n + j] as factor from j to i
  bool norm_plus_one = false;  // the norm's weight is 1 + norm_weight
  // Round each step to the streams' type, like an engine that runs one
  // operation after the other. HyperConnect() lists the steps.
  bool round_like_unfused = false;
};

// Computes the hyper-connections that DeepSeek-V4, GLM-5.3, Hy4 and Qwen4
// have instead of the residual. The work has two halves, and a call does one
// half or both:
// * After a block, it adds the block's output to the streams (block, post,
//   comb).
// * Before the next block, it sums the streams into the input of that block
//   (pre).
// Between the two halves, an engine computes `pre`, `post` and `comb` from the
// new streams with a small product. The product's input is the norm of the
// streams, which an engine computes with the factors `scales`. If pre, post and
// comb do not depend on the streams, one call does both halves.
//
// Per token t, stream i and column h, in f32:
//   s = post[t, i] * block[t, h],
//   s = fma(comb[t, j * n + i], streams[t * n + j, h], s) in the order of j,
//   or, without comb, s = s + streams[t * n + i, h];
//   without a block, s = streams[t * n + i, h];
//   outputs.streams[t * n + i, h] = s;
//   scales[t] = 1 / sqrt(mean over i and h of s^2 + eps);
//   x = pre[t, 0] * s_0, then x = fma(pre[t, i], s_i, x) in the order of i;
//   out[t, h] = x;
//   normed[t, h] = (x * scale) * norm_weight[h],
//   scale = 1 / sqrt(mean over h of x^2 + eps).
//
// Types: every matrix is f32, bf16 or f16; normed may have any format of
// quantize.h. Each output is rounded once: scales, out and normed are
// computed from s before it is rounded to outputs.streams. With
// round_like_unfused, let M be the rounding to the type of inputs.streams.
// The steps are then
//   s = M(M(M(post) * block) + M(sum over j of M(comb) * streams)) or,
//   without comb, as in Hy4, s = M(post * block + streams);
//   x = M(sum over i), normed = (x * scale) * norm_weight.
// The outputs are computed from this s.
// Shapes: as in HyperInputs and HyperOutputs, with 1 <= n <= kMaxStreams;
// each matrix has its own stride. With zero tokens or columns, the call does
// nothing. Leave an optional view out as {}.
// In place: outputs.streams may have the data, stride and type of
// inputs.streams. Any other overlap of an output with another view is an
// error.
// Values: NaN and infinities propagate.
// Bits: results are the same for every batch split, thread count and
// alignment, and on every ISA with FMA, except for the sign and payload of a
// NaN. The means of squares are summed in 32 lanes: column h is added to lane
// h mod 32, one stream after the other. The upper half of the lanes is then
// added to the lower half, until 16, 8, 4, 2 and at last 1 lane is left.
// Errors: kInvalidArgument for null data, strides, shapes and types that do
// not match, an input given without its partner, an eps that is negative or
// NaN, an overlap or an overflow; nothing is written.
//
// The formulas are those of deepseek_v4 (modeling_deepseek_v4.py:887 and
// :1157), glm5_next (:218), hy_v4 (:602) and qwen4_exp (:997) of transformers
// 5.23.
Status HyperConnect(const HyperInputs& inputs, const HyperOutputs& outputs,
                    const HyperOptions& options,
                    Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_HYPER_H_
