// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Sums up the experts' outputs of each token, and mixes residual streams.
// switchyard.h includes this file; combine.h and hyper.h of the C++ API have
// the full contract.

#ifndef SWITCHYARD_C_COMBINE_H_
#define SWITCHYARD_C_COMBINE_H_

#include "switchyard/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// How the gate of a shared expert becomes the factor of its output.
enum swy_shared_gate {
  SWY_GATE_LOGIT = 0,   // the factor is sigmoid(gate[t])
  SWY_GATE_SCALAR = 1,  // the factor is gate[t] itself
  SWY_GATE_NONE = 2     // the factor is 1
};
// How a norm uses its weight w.
enum swy_norm_kind {
  SWY_NORM_WEIGHT = 0,  // (x * scale) * w
  // As SWY_NORM_WEIGHT, except that round_like_unfused does not round x *
  // scale.
  SWY_NORM_WEIGHT_IN_F32 = 1,
  SWY_NORM_PLUS_ONE = 2,       // (x * scale) * (1 + w)
  SWY_NORM_PLUS_ONE_FIRST = 3  // x * (1 + w), then * scale; not for normed
};

// The shared experts, which every token passes through.
typedef struct swy_shared_expert {
  // [tokens * num_shared, hidden]: outputs of the shared experts. A token's
  // rows follow each other.
  swy_matrix rows;
  // [tokens, num_shared], or [1, tokens] if num_shared is 1: the gate of each
  // row.
  swy_matrix gate;
  size_t num_shared;  // 1 by default
  int32_t kind;       // enum swy_shared_gate, how a gate becomes a factor
} swy_shared_expert;
#define SWY_NO_SHARED_EXPERT \
  { SWY_NO_MATRIX, SWY_NO_MATRIX, 1, SWY_GATE_LOGIT }
// Zero experts, which return their input.
typedef struct swy_identity_experts {
  swy_matrix rows;  // [tokens, hidden]: input of the layer
  // [tokens, 1] or [1, tokens]: the sum of the weights of a token's zero
  // experts.
  swy_matrix weight;
} swy_identity_experts;
// Weights of the RMSNorms that run before the residual is added. Each is
// [1, hidden] and optional.
typedef struct swy_block_norms {
  swy_matrix routed;  // weight of the norm of the routed sum
  swy_matrix shared;  // weight of the norm of the shared experts' sum
  swy_matrix block;   // weight of the norm of both sums together
} swy_block_norms;
// Learned vectors. Each is [1, hidden] and optional.
typedef struct swy_combine_vectors {
  swy_matrix block_bias;  // added to the sum of all experts
  // Multiplies the sum of all experts, after block_bias.
  swy_matrix block_scale;
  swy_matrix residual_bias;   // added to the residual
  swy_matrix residual_scale;  // multiplies the residual
} swy_combine_vectors;
// Factors of sums. A sum with a factor of 1 is not multiplied.
typedef struct swy_combine_scales {
  float routed;    // multiplies the routed sum
  float block;     // multiplies the sum of all experts
  float residual;  // multiplies the residual
  float out;       // multiplies the result
} swy_combine_scales;
#define SWY_NO_COMBINE_SCALES \
  { 1.0f, 1.0f, 1.0f, 1.0f }

// Inputs of swy_combine. To tell the call which row belongs to each (token,
// slot), set either row_index or token_order.
typedef struct swy_combine_inputs {
  uint32_t size;
  // 1 if the pair (token, slot) has row token * top_k + slot.
  int32_t token_order;
  swy_rows rows;            // [num_rows, hidden]: outputs of the down product
  swy_matrix topk_weights;  // [tokens, top_k]: weights of the rows
  // int32 [tokens, top_k]: the row of each (token, slot); -1 skips the slot.
  swy_matrix row_index;
  swy_matrix residual;            // optional [tokens, hidden]: added to the sum
  swy_matrix norm_weight;         // [1, hidden]; give it and normed, or neither
  swy_shared_expert shared;       // optional: the shared experts
  swy_identity_experts identity;  // optional: the zero experts
  swy_block_norms norms;          // optional: norms before the residual
  swy_combine_vectors vectors;    // optional: learned biases and factors
} swy_combine_inputs;
#define SWY_COMBINE_INPUTS_INIT                                            \
  {                                                                        \
    (uint32_t)sizeof(swy_combine_inputs), 0, SWY_NO_ROWS, SWY_NO_MATRIX,   \
        SWY_NO_MATRIX, SWY_NO_MATRIX, SWY_NO_MATRIX, SWY_NO_SHARED_EXPERT, \
        {SWY_NO_MATRIX, SWY_NO_MATRIX},                                    \
        {SWY_NO_MATRIX, SWY_NO_MATRIX, SWY_NO_MATRIX}, {                   \
      SWY_NO_MATRIX, SWY_NO_MATRIX, SWY_NO_MATRIX, SWY_NO_MATRIX           \
    }                                                                      \
  }
// Outputs of swy_combine. Give at least one of out and normed.
typedef struct swy_combine_outputs {
  uint32_t size;
  // [tokens, hidden] of f32, bf16 or f16: the sum, with the residual.
  swy_matrix out;
  // [tokens, hidden] in any format of quantize.h: the norm of the sum.
  swy_rows normed;
  swy_report* report;  // optional; the call sets report->skipped
} swy_combine_outputs;
#define SWY_COMBINE_OUTPUTS_INIT \
  { (uint32_t)sizeof(swy_combine_outputs), SWY_NO_MATRIX, SWY_NO_ROWS, NULL }
// Options of swy_combine.
typedef struct swy_combine_options {
  uint32_t size;
  float eps;  // eps of the norm of normed, >= 0
  // Accept row_index values outside [-1, num_rows).
  int32_t allow_skipped;
  int32_t round_like_unfused;  // round each step, as separate operations do
  int32_t norm;                // enum swy_norm_kind, the norm of normed
  int32_t block_norm;          // enum swy_norm_kind, the norms of inputs.norms
  float block_eps;             // eps of the norms of inputs.norms, >= 0
  swy_combine_scales scales;   // factors of sums
  // Presets set this if the model's next layer starts with a LayerNorm or a
  // gated norm, because swy_combine has neither. swy_combine then refuses a
  // call with normed.
  int32_t needs_other_norm;
} swy_combine_options;
#define SWY_COMBINE_OPTIONS_INIT                                         \
  {                                                                      \
    (uint32_t)sizeof(swy_combine_options), 1e-6f, 0, 0, SWY_NORM_WEIGHT, \
        SWY_NORM_WEIGHT, 1e-6f, SWY_NO_COMBINE_SCALES, 0                 \
  }

// Computes out[t, :] = residual[t, :] + sum over the slots of topk_weights[t,
// s] * row(t, s) + gate * shared[t, :] and, in the same pass, normed[t, :] =
// RMSNorm(out[t, :]) * norm_weight. out may overwrite an input in place, if
// it has the data, stride and type of that input: residual or, if num_shared
// is 1, shared.rows.
SWY_API swy_status swy_combine(const swy_combine_inputs* inputs,
                               const swy_combine_outputs* outputs,
                               const swy_combine_options* options,
                               const swy_executor* executor) SWY_NOEXCEPT;

// The most streams of a token.
#define SWY_MAX_STREAMS 16
// Inputs of swy_hyper_connect. Each token has n residual streams, in n
// consecutive rows.
typedef struct swy_hyper_inputs {
  uint32_t size;
  swy_matrix streams;  // [tokens * n, hidden]: all streams
  // Optional [tokens, hidden]: the output of the block, which is added to the
  // streams. Give block and post, or neither.
  swy_matrix block;
  // Optional [tokens, n]: for each stream, the factor that multiplies `block`
  // before it is added. Give block and post, or neither.
  swy_matrix post;
  // Optional [tokens, n * n]: factors that mix streams. Stream j is added to
  // stream i with the factor comb[t, j * n + i].
  swy_matrix comb;
  // Optional: factors that multiply a token's streams before they are summed
  // into one row: [tokens, n], one factor for each stream, or [tokens * n,
  // hidden], one factor for each element.
  swy_matrix pre;
  swy_matrix norm_weight;  // optional [1, hidden]: weight of normed's norm
} swy_hyper_inputs;
#define SWY_HYPER_INPUTS_INIT                                         \
  {                                                                   \
    (uint32_t)sizeof(swy_hyper_inputs), SWY_NO_MATRIX, SWY_NO_MATRIX, \
        SWY_NO_MATRIX, SWY_NO_MATRIX, SWY_NO_MATRIX, SWY_NO_MATRIX    \
  }
// Outputs of swy_hyper_connect. Give at least one output. `streams` may
// overwrite the inputs' streams in place, if it has their data, stride and
// type.
typedef struct swy_hyper_outputs {
  uint32_t size;
  swy_matrix streams;  // [tokens * n, hidden]: the new streams
  // [tokens, 1]: for each token, the scale of one norm over all its streams.
  swy_matrix scales;
  // [tokens, hidden]: the sum of a token's streams. Needs inputs.pre.
  swy_matrix out;
  // [tokens, hidden]: the sum of a token's streams, after a norm. Needs
  // inputs.pre and inputs.norm_weight.
  swy_rows normed;
} swy_hyper_outputs;
#define SWY_HYPER_OUTPUTS_INIT                                         \
  {                                                                    \
    (uint32_t)sizeof(swy_hyper_outputs), SWY_NO_MATRIX, SWY_NO_MATRIX, \
        SWY_NO_MATRIX, SWY_NO_ROWS                                     \
  }
// Options of swy_hyper_connect.
typedef struct swy_hyper_options {
  uint32_t size;
  size_t num_streams;     // n, required; at most SWY_MAX_STREAMS
  float eps;              // eps of the norms, >= 0
  int32_t comb_by_row;    // use comb[t, i * n + j] as the factor from j to i
  int32_t norm_plus_one;  // use 1 + norm_weight as the norm's weight
  int32_t round_like_unfused;  // round each step, as separate operations do
} swy_hyper_options;
#define SWY_HYPER_OPTIONS_INIT \
  { (uint32_t)sizeof(swy_hyper_options), 0, 1e-6f, 0, 0, 0 }

// Adds a block's output to each token's streams, mixes the streams, and sums
// them into the input of the next block, as HyperConnect does.
SWY_API swy_status swy_hyper_connect(const swy_hyper_inputs* inputs,
                                     const swy_hyper_outputs* outputs,
                                     const swy_hyper_options* options,
                                     const swy_executor* executor) SWY_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SWITCHYARD_C_COMBINE_H_
