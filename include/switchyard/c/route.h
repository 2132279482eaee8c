// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The router, which selects experts and computes their weights from logits.
// switchyard.h includes this file; route.h of the C++ API has the formulas,
// the order, special values and errors.

#ifndef SWITCHYARD_C_ROUTE_H_
#define SWITCHYARD_C_ROUTE_H_

#include "switchyard/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// How a logit becomes a score.
enum swy_score {
  SWY_SCORE_SOFTMAX = 0,  // exp(logit) / sum over all experts: most models
  // 1 / (1 + exp(-logit)): DeepSeek-V3, GLM, MiniMax.
  SWY_SCORE_SIGMOID = 1,
  // sqrt(log(1 + exp(logit))): DeepSeek-V4.
  SWY_SCORE_SQRT_SOFTPLUS = 2,
  SWY_SCORE_RAW = 3,  // the logit itself: Granite, gpt-oss, Llama 4
  // Two rounds, which route.h of the C++ API describes: Phi-3.5-MoE.
  SWY_SCORE_SPARSEMIXER = 4
};
// The value to which correction_bias is added. The sum is an expert's key,
// and the experts with the largest keys are selected.
enum swy_bias_place {
  SWY_BIAS_ON_SCORE = 0,  // the score
  SWY_BIAS_ON_LOGIT = 1   // the logit, before it becomes a score
};
// The value from which a selected expert's weight is computed.
enum swy_weight_of {
  SWY_WEIGHT_OF_SCORE = 0,  // the expert's score
  // The softmax over the logits of the selected experts: Granite, gpt-oss.
  SWY_WEIGHT_OF_SOFTMAX_OF_SELECTED = 1,
  // The sigmoid of the expert's logit: Llama 4.
  SWY_WEIGHT_OF_SIGMOID_OF_SELECTED = 2
};
// The divisor of the weights with `renormalize`. `sum` adds up the values of
// the selected experts, and `total` those of all experts.
enum swy_divisor {
  // max(sum, clamp * total)
  SWY_DIVISOR_MAX_OF_SUM_AND_SHARE = 0,
  SWY_DIVISOR_SUM = 1,                // sum
  SWY_DIVISOR_SUM_PLUS_EPS = 2,       // sum + eps
  SWY_DIVISOR_MAX_OF_SUM_AND_EPS = 3  // max(sum, eps)
};

// Inputs of swy_route_top_k.
typedef struct swy_route_inputs {
  uint32_t size;
  swy_matrix logits;  // [tokens, num_experts] of f32, bf16 or f16
  // Optional [num_biases, num_experts] of f32, bf16 or f16: biases that are
  // added for the selection of experts. num_biases is mostly 1.
  swy_matrix correction_bias;
  // Optional [tokens, 1] or [1, tokens]: the row of correction_bias that each
  // token uses.
  swy_matrix bias_index;
  // Optional [1, num_experts]: the last step multiplies each weight by its
  // expert's value (Gemma 4).
  swy_matrix expert_scale;
  // Optional [tokens, 1] or [1, tokens] of u8: 0 marks a padding token.
  swy_matrix token_mask;
  // Optional [tokens, top_k] of int32, uint32, int64, uint8 or uint16: the
  // experts to use, such as a record of an earlier call. The call then
  // selects none. given_ids may be the same view as topk_ids. In uint8, 255
  // marks a slot without an expert, and in uint16, 65535 does.
  swy_matrix given_ids;
  // Optional int32 [1, num_experts]: the id that is written to topk_ids for
  // each expert; -1 marks an expert on another node.
  swy_matrix expert_map;
} swy_route_inputs;
#define SWY_ROUTE_INPUTS_INIT                                         \
  {                                                                   \
    (uint32_t)sizeof(swy_route_inputs), SWY_NO_MATRIX, SWY_NO_MATRIX, \
        SWY_NO_MATRIX, SWY_NO_MATRIX, SWY_NO_MATRIX, SWY_NO_MATRIX,   \
        SWY_NO_MATRIX                                                 \
  }

// Outputs of swy_route_top_k.
typedef struct swy_route_outputs {
  uint32_t size;
  // [tokens, top_k + num_shared_experts] of int32, uint32 or int64: the
  // selected experts, best first.
  swy_matrix topk_ids;
  // The weights of the selected experts: f32, bf16 or f16 in the shape of
  // topk_ids.
  swy_matrix topk_weights;
  // Optional [tokens, 1] or [1, tokens]: for each token, the sum of the
  // weights of its selected zero experts.
  swy_matrix identity_weights;
  // Optional. The call sets report->invalid_ids and report->elsewhere.
  swy_report* report;
  // Optional [tokens, top_k], with one of the types of given_ids: the
  // selected experts, which a later call can use as given_ids. A slot without
  // an expert has a value with all bits set: 255, 65535 or -1.
  swy_matrix record;
} swy_route_outputs;
#define SWY_ROUTE_OUTPUTS_INIT                                         \
  {                                                                    \
    (uint32_t)sizeof(swy_route_outputs), SWY_NO_MATRIX, SWY_NO_MATRIX, \
        SWY_NO_MATRIX, NULL, SWY_NO_MATRIX                             \
  }

// Options of swy_route_top_k. Flags are 0 or 1.
typedef struct swy_route_options {
  uint32_t size;
  int32_t renormalize;  // divide the selected weights by their sum
  float clamp;          // for SWY_DIVISOR_MAX_OF_SUM_AND_SHARE, in [0, 1]
  int32_t score;        // enum swy_score, how a logit becomes a score
  int32_t divisor;      // enum swy_divisor, the divisor of renormalize
  float eps;            // for divisors with EPS in their names, >= 0
  // If the divisor is 0, make weights 0, not NaN or infinite.
  int32_t zero_sum_is_zero;
  int32_t weight_of;  // enum swy_weight_of, the value that becomes a weight
  // enum swy_bias_place, the value that correction_bias is added to
  int32_t bias_place;
  int32_t bias_in_weight;  // add the correction bias to the weight, too
  // Select by the rounded score, as PyTorch code does, instead of by the
  // logit.
  int32_t select_on_rounded_score;
  float routed_scaling_factor;  // multiplies weights after the division
  // A factor of logits. The call first replaces every logit l by
  // logit_softcap * tanh(l * logit_scale / logit_softcap), and clips the
  // result to [-logit_clip, logit_clip].
  float logit_scale;
  float logit_softcap;  // the bound of the tanh; 0 leaves out this step
  float logit_clip;     // the largest magnitude; 0 leaves out this step
  // The number of groups of experts. Experts are selected from the topk_group
  // best groups. 0 or 1: no groups.
  size_t num_expert_group;
  size_t topk_group;  // the number of groups to select experts from
  // The number of keys in a group's score, which is the sum of the group's
  // largest keys.
  size_t group_score_of;
  // Experts of a dropped group get the key 0, not -inf.
  int32_t dropped_key_is_zero;
  // The number of zero experts, which compute nothing (LongCat, ZAYA). They
  // are the last ones of num_experts.
  size_t num_zero_experts;
  // The number of shared experts, which every token passes through. They get
  // the last slots, with ids from num_experts on.
  size_t num_shared_experts;
  float shared_weight;    // the weight of shared experts
  int32_t shared_logits;  // logits has more columns, for the shared experts
  int32_t round_to;  // enum swy_type, the type to which each step is rounded
  float jitter_eps;  // for SWY_SCORE_SPARSEMIXER
  // Presets set this, and a call without correction_bias is then refused.
  int32_t needs_correction_bias;
  // Presets set this, and a call without expert_scale is then refused.
  int32_t needs_expert_scale;
  // Presets set this, and a num_expert_group of 0 is then refused.
  int32_t needs_groups;
  // swy_find_preset sets this, and calls are refused until swy_apply_config
  // has applied a config.json.
  int32_t needs_config;
} swy_route_options;
#define SWY_ROUTE_OPTIONS_INIT                                        \
  {                                                                   \
    (uint32_t)sizeof(swy_route_options), 1, /* renormalize */         \
        6.103515625e-5f,                    /* clamp, 2^-14 */        \
        SWY_SCORE_SOFTMAX, SWY_DIVISOR_MAX_OF_SUM_AND_SHARE, 0.0f, 0, \
        SWY_WEIGHT_OF_SCORE, SWY_BIAS_ON_SCORE, 0, 0,                 \
        1.0f,                /* routed_scaling_factor */              \
        1.0f,                /* logit_scale */                        \
        0.0f, 0.0f, 0, 0, 2, /* group_score_of */                     \
        0, 0, 0, 1.0f,       /* shared_weight */                      \
        0, SWY_F32, 0.01f,   /* jitter_eps */                         \
        0, 0, 0, 0                                                    \
  }

// Selects for each token the top_k experts with the largest keys, best first,
// and computes their weights, as RouteTopK does. The smaller index wins ties.
// NaN ranks below every number, and a row with a NaN gets weights of NaN.
SWY_API swy_status swy_route_top_k(const swy_route_inputs* inputs,
                                   const swy_route_outputs* outputs,
                                   const swy_route_options* options,
                                   const swy_executor* executor) SWY_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SWITCHYARD_C_ROUTE_H_
