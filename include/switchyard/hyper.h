// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Hyper-connections: several residual streams to a token instead of one.

#ifndef SWITCHYARD_HYPER_H_
#define SWITCHYARD_HYPER_H_

#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// How many streams there may be.
constexpr size_t kMaxStreams = 16;

// Streams are n rows of each token, one after the other: row t * n + i.
struct HyperInputs {
  ConstAnyMatrix streams;  // [tokens * n, hidden]
  // What a block gave and how it goes to each stream. Both or none.
  ConstAnyMatrix block = {};  // [tokens, hidden]
  ConstAnyMatrix post = {};   // [tokens, n]
  // How streams mix: from j to i by comb[t, j * n + i]. Without it each stays
  // as it is.
  ConstAnyMatrix comb = {};  // [tokens, n * n]
  // How they collapse: by a number for each stream, or for each element.
  ConstAnyMatrix pre = {};          // [tokens, n] or [tokens * n, hidden]
  ConstAnyMatrix norm_weight = {};  // [1, hidden], for `normed`
};
// At least one.
struct HyperOutputs {
  AnyMatrix streams = {};  // [tokens * n, hidden]
  AnyMatrix scales = {};   // [tokens, 1], of the norm of all of a token's
                           // streams together
  AnyMatrix out = {};      // [tokens, hidden], with pre
  AnyRows normed = {};     // [tokens, hidden], with pre and norm_weight
};
struct HyperOptions {
  size_t num_streams = 0;      // n, has to be set
  float eps = 1e-6f;           // of the norms
  bool comb_by_row = false;    // from j to i by comb[t, i * n + j]
  bool norm_plus_one = false;  // 1 + norm_weight
  // Round to the streams' type wherever an engine that runs one operation after
  // the other does: see below.
  bool round_like_unfused = false;
};

// The residual's place in DeepSeek-V4, GLM-5.3, Hy4 and Qwen4, in two calls of
// which either may be left out: behind a block the streams take what it gave
// (block, post, comb), and in front of the next one they collapse (pre) to what
// it reads. Between the two an engine makes `pre`, `post` and `comb` from the
// new streams by a small product, for which `scales` is the norm. Where these
// do not depend on the streams, one call does both.
//
// Per token t, stream i and column h, in f32:
//   s = post[t, i] * block[t, h],
//   s = fma(comb[t, j * n + i], streams[t * n + j, h], s) in the order of j,
//   or, without comb, s = s + streams[t * n + i, h], streams'[t * n + i, h] =
//   s, or without a block streams[t * n + i, h]; scales[t] = 1 / sqrt(mean over
//   i and h of s^2 + eps); x = pre[t, 0] * s_0, then x = fma(pre[t, i], s_i, x)
//   in the order of i, out[t, h] = x, normed[t, h] = (x * scale) *
//   norm_weight[h], scale = 1 / sqrt(mean over h of x^2 + eps).
//
// Types: each of f32, bf16 or f16; normed may have any format of quantize.h.
// All that is read is exact, and what is written is rounded once: what is taken
// of streams' here is not rounded. With round_like_unfused, M being the
// rounding to the type of inputs.streams, instead
//   s = M(M(M(post) * block) + M(sum over j of M(comb) * streams)), or without
//   comb s = M(post * block + streams), as Hy4; and all of the rest from that,
//   x = M(sum over i), normed = (x * scale) * norm_weight.
// Shapes: as above, 1 <= n <= kMaxStreams; each matrix has its own stride. Zero
// tokens or columns do nothing. What is optional is left out as {}.
// In place: streams' may be exactly streams. Any other overlap of an output
// with another view is an error. Values: NaN and infinities propagate. Same
// bits for every batch split, thread count and alignment, and on every ISA with
// FMA, but for a NaN's sign and payload: the means of squares run in 32 lanes
// (column h in lane h mod 32, stream after stream), folded 16, 8, 4, 2, 1.
// Errors: kInvalidArgument for null data, strides, shapes and types that do not
// match, parts that go together and do not come so, an eps that is negative or
// NaN, overlap, overflow; nothing written.
//
// From deepseek_v4 (modeling_deepseek_v4.py:887 and :1157), glm5_next (:218),
// hy_v4 (:602) and qwen4_exp (:997) of transformers 5.23.
Status HyperConnect(const HyperInputs& inputs, const HyperOutputs& outputs,
                    const HyperOptions& options,
                    Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_HYPER_H_
