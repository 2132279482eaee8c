// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The built-in kernels of the device layer. They replace Metal kernels of
// ferrum and mlx-native, and have the same names, buffer indices, grids and
// parameter structs. The structs are the same byte for byte, so that an
// engine can keep its own definitions.
//
// Each kernel calls the function of the C++ API that its entry below names.
// The header of that function has the formula and the rules for the order of
// sums, NaN, ties and rounding. Matrices are dense, at any address (buffer
// and offset) that is a multiple of an element's size; buffers may be longer
// than needed. Pass parameter structs with setBytes, or in a buffer, which an
// earlier dispatch may write.
//
// Rows may be float, half or bfloat: a name X_* below stands for X_f32, X_f16
// and X_bf16, with the same indices, grid and struct. An argument marked *
// has the type that the kernel's name ends in. Any other argument is f32,
// unless its entry gives a type.
// * Activations, expert outputs, residuals and normed rows are marked,
//   because GEMMs read and write them.
// * Logits of the router and of the shared expert's gate are marked, because
//   a GEMV of the same type writes them.
// * Norm weights are marked, and have the type of the model's file.
// * Router weights are f32, because there are few of them, and each one is
//   the factor of a whole row.
// The half kernels of ferrum and mlx-native use the same types: ferrum's
// moe_router_topk_softmax_f16 (half logits, float weights) and
// weighted_sum_batched_f16 (half slots, float weights, half out),
// mlx-native's moe_weighted_sum_seq_bf16_input (bfloat rows, float weights)
// and fused_residual_norm_bf16 (all bfloat). mlx-native's rms_norm_f16
// differs: it takes the norm's weights in float. Sums are computed in f32 and
// rounded once. Normed rows are computed from the sum before it is rounded to
// the residual's type.
//
// Grids are in threadgroups. The part of a grid that lies beyond the shapes
// in the struct is ignored. A smaller grid computes only its part: fewer
// rows, or fewer tiles of 256 columns. Dimensions that an entry does not list
// must be 1. An entry with grid (1) allows exactly one threadgroup, because
// several would race on Metal. Errors are:
// * a threadgroup size other than the one in the entry,
// * negative dimensions,
// * buffers shorter than the shapes in the struct need,
// * outputs that overlap inputs in a way that the C++ API does not allow,
// * any other argument that the C++ API refuses.

#ifndef SWITCHYARD_DEVICE_KERNELS_H_
#define SWITCHYARD_DEVICE_KERNELS_H_

#include <cstdint>

#include "switchyard/language.h"

namespace switchyard::device {

// moe_router_topk_softmax_*: RouteTopK
//   0 logits* [T, num_experts], 1 ids i32 [T, top_k], 2 weights [T, top_k],
//   3 params; T is the grid's width
//   grid (T), 32 threads
struct MoeRouterTopkSoftmaxParams {
  int32_t num_experts;
  int32_t top_k;
  int32_t norm_topk_prob;  // RouteOptions::renormalize is true if this is not 0
};

// moe_compute_ids_tpe_f32 (in f32 only, because it has no rows):
// BucketStrided in ascending order, then MakeDispatchArgs
//   0 selected ids i32 [total_pairs], 1 tpe i32 [num_experts], 2 ids i32
//   [num_experts, row_stride], 3 gate/up args u32 [3], 4 down args u32 [3],
//   5 params
//   grid (1), 256 threads
// In row e of ids, the entries after the first tpe[e] keep their values. If
// row_stride is below the busiest expert's count, nothing is written, and the
// error reports the count.
struct MoeComputeIdsTpeParams {
  int32_t num_experts;
  int32_t row_stride;   // total_pairs is always large enough
  int32_t total_pairs;  // tokens * top_k
  int32_t m_gate_up;    // features of the gate and up GEMMs
  int32_t m_down;       // features of the down GEMM
};

// silu_mul_stacked_*: Activate
//   0 gate*, 1 up*, 2 out*, all [n_slots, ffn], 3 params
//   grid (ceil(ffn / 256), n_slots), 256 threads
struct SiluMulStackedParams {
  int32_t ffn;
  int32_t n_slots;
};

// silu_mul_batched_*: Activate
//   0 gate*, 1 up*, 2 out*, all [total_pairs, ffn], 3 params
//   grid (ceil(ffn / 256), total_pairs), 256 threads
struct SiluMulBatchedParams {
  int32_t total_pairs;
  int32_t ffn;
};

// weighted_sum_stacked_*: Combine, for one token
//   0 slots* [n_slots, hidden], 1 weights [n_slots], 2 out* [hidden], 3 params
// weighted_sum_residual_stacked_*: Combine with a residual, for one token
//   0 slots* [n_slots, hidden], 1 weights [n_slots], 2 residual* [hidden], read
//   and written, 3 params
// Both kernels:
//   grid (ceil(hidden / 256)), 256 threads
struct WeightedSumStackedParams {
  int32_t hidden;
  int32_t n_slots;
};

// weighted_sum_batched_*: Combine
//   0 slots* [batch * top_k, hidden], 1 weights [batch, top_k],
//   2 out* [batch, hidden], 3 params
//   grid (ceil(hidden / 256), batch), 256 threads
struct WeightedSumBatchedParams {
  int32_t batch;
  int32_t top_k;
  int32_t hidden;
};

// weighted_sum_residual_norm_stacked_*: Combine with `normed`, for one token
//   0 slots* [n_slots, hidden], 1 weights [n_slots], 2 residual* [hidden], read
//   and written, 3 next_norm_w* [hidden], 4 normed* [hidden], 5 params
//   grid (1), 256 threads
struct WeightedSumResidualNormStackedParams {
  int32_t hidden;
  int32_t n_slots;
  float eps;
};

// weighted_sum_residual_norm_batched_*: Combine with `normed`
//   0 slots* [batch * top_k, hidden], 1 weights [batch, top_k], 2 residual*
//   [batch, hidden], read and written, 3 next_norm_w* [hidden], 4 normed*
//   [batch, hidden], 5 params
//   grid (batch), 256 threads
struct WeightedSumResidualNormBatchedParams {
  int32_t batch;
  int32_t top_k;
  int32_t hidden;
  float eps;
};

// moe_softmax_topk_*: RouteTopK, renormalised
//   0 params, 1 logits* [n_tokens, n_experts], 2 ids u32 [n_tokens, top_k],
//   3 weights [n_tokens, top_k]
//   grid (n_tokens), min(n_experts, 128) threads
struct MoeSoftmaxTopkParams {
  uint32_t n_tokens;
  uint32_t n_experts;
  uint32_t top_k;
  float padding;  // not read
};

// moe_weighted_reduce_*: Combine with a shared expert, SharedGate::kLogit
//   0 params, 1 expert_w [n_tokens, top_k], 2 y_expert* [n_tokens * top_k, h],
//   3 sh_gate* [n_tokens] (logits), 4 y_shared* [n_tokens, h], 5 residual*
//   [n_tokens, h] (read only with add_residual), 6 output* [n_tokens, h]
//   grid (ceil(h / 256), n_tokens), 256 threads
struct MoeWeightedReduceParams {
  uint32_t n_tokens;
  uint32_t top_k;
  uint32_t h;
  uint32_t add_residual;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNELS_H_
