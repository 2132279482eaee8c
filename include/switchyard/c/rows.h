// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Gathers and converts rows, and computes activations. switchyard.h includes
// this file; gather.h, quantize.h and activate.h of the C++ API have the full
// contract.

#ifndef SWITCHYARD_C_ROWS_H_
#define SWITCHYARD_C_ROWS_H_

#include "switchyard/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Inputs of swy_gather_rows, which computes rows[r, :] = tokens[pairs[r] /
// top_k, :]. A pair outside [0, num_tokens * top_k) gives a row of zeros and
// is counted. Without allow_invalid, the call then returns
// SWY_FAILED_PRECONDITION, after everything is written. Types: f32, bf16, f16
// or quantised. If tokens and rows have the same format, rows are copied byte
// for byte.
typedef struct swy_gather_inputs {
  uint32_t size;
  swy_rows tokens;      // [num_tokens, hidden]: a row for each token
  swy_i32_span pairs;   // [n]: pairs, as swy_bucket_packed writes them
  swy_matrix topk_ids;  // [num_tokens, top_k]: only the shape is read
  // Optional [num_tokens, top_k], as swy_bucket_packed writes it. With
  // row_index, each token is converted once, and the token's other rows are
  // copies of the result.
  swy_matrix row_index;
} swy_gather_inputs;
#define SWY_GATHER_INPUTS_INIT                                     \
  {                                                                \
    (uint32_t)sizeof(swy_gather_inputs), SWY_NO_ROWS, SWY_NO_SPAN, \
        SWY_NO_MATRIX, SWY_NO_MATRIX                               \
  }
// Outputs of swy_gather_rows.
typedef struct swy_gather_outputs {
  uint32_t size;
  swy_rows rows;       // [n, hidden]: a row for each pair
  swy_report* report;  // optional; the call sets report->invalid
} swy_gather_outputs;
#define SWY_GATHER_OUTPUTS_INIT \
  { (uint32_t)sizeof(swy_gather_outputs), SWY_NO_ROWS, NULL }
// Options of swy_gather_rows.
typedef struct swy_gather_options {
  uint32_t size;
  int32_t allow_invalid;  // accept pairs that do not exist
} swy_gather_options;
#define SWY_GATHER_OPTIONS_INIT \
  { (uint32_t)sizeof(swy_gather_options), 0 }

// Copies rows of tokens into the order of a list of pairs.
SWY_API swy_status swy_gather_rows(const swy_gather_inputs* inputs,
                                   const swy_gather_outputs* outputs,
                                   const swy_gather_options* options,
                                   const swy_executor* executor) SWY_NOEXCEPT;

// Inputs of swy_scatter_rows, the inverse of swy_gather_rows: rows[token *
// top_k + slot, :] = packed[row_index[token, slot], :]. The row is zeros if
// row_index is -1 or is outside [-1, num_rows). Values outside [-1, num_rows)
// are counted.
typedef struct swy_scatter_inputs {
  uint32_t size;
  swy_rows packed;       // [num_rows, hidden]: rows sorted by expert
  swy_matrix row_index;  // int32 [tokens, top_k]: the row of each pair
} swy_scatter_inputs;
#define SWY_SCATTER_INPUTS_INIT \
  { (uint32_t)sizeof(swy_scatter_inputs), SWY_NO_ROWS, SWY_NO_MATRIX }
// Outputs of swy_scatter_rows.
typedef struct swy_scatter_outputs {
  uint32_t size;
  swy_rows rows;       // [tokens * top_k, hidden]: a row for each pair
  swy_report* report;  // optional; the call sets report->skipped
} swy_scatter_outputs;
#define SWY_SCATTER_OUTPUTS_INIT \
  { (uint32_t)sizeof(swy_scatter_outputs), SWY_NO_ROWS, NULL }
// Options of swy_scatter_rows.
typedef struct swy_scatter_options {
  uint32_t size;
  int32_t allow_skipped;  // accept row_index values outside [-1, num_rows)
} swy_scatter_options;
#define SWY_SCATTER_OPTIONS_INIT \
  { (uint32_t)sizeof(swy_scatter_options), 0 }

// Copies rows that are sorted by expert back into the order of tokens.
SWY_API swy_status swy_scatter_rows(const swy_scatter_inputs* inputs,
                                    const swy_scatter_outputs* outputs,
                                    const swy_scatter_options* options,
                                    const swy_executor* executor) SWY_NOEXCEPT;

// Inputs of swy_quantize, which copies `from` to `rows`, in the type and
// format of `rows`. quantize.h of the C++ API has the formats.
typedef struct swy_quantize_inputs {
  uint32_t size;
  swy_rows from;  // [rows, cols]: the rows to copy or convert
} swy_quantize_inputs;
#define SWY_QUANTIZE_INPUTS_INIT \
  { (uint32_t)sizeof(swy_quantize_inputs), SWY_NO_ROWS }
// Outputs of swy_quantize.
typedef struct swy_quantize_outputs {
  uint32_t size;
  swy_rows rows;       // [rows, cols] in any format of quantize.h
  swy_report* report;  // optional; the call sets report->overflowed_blocks
} swy_quantize_outputs;
#define SWY_QUANTIZE_OUTPUTS_INIT \
  { (uint32_t)sizeof(swy_quantize_outputs), SWY_NO_ROWS, NULL }
// Options of swy_quantize.
typedef struct swy_quantize_options {
  uint32_t size;
  // If a scale d or a sum s of q8_0 or q8_1 would be infinite in f16, make
  // its magnitude 65504.
  int32_t clamp_overflow;
} swy_quantize_options;
#define SWY_QUANTIZE_OPTIONS_INIT \
  { (uint32_t)sizeof(swy_quantize_options), 0 }

// Copies rows and converts them to another type or format.
SWY_API swy_status swy_quantize(const swy_quantize_inputs* inputs,
                                const swy_quantize_outputs* outputs,
                                const swy_quantize_options* options,
                                const swy_executor* executor) SWY_NOEXCEPT;

// The function to compute. g is a value of the gate product, u the value of
// the up product at the same row and column.
enum swy_activation {
  SWY_SILU = 0,        // silu(g) * u
  SWY_GELU = 1,        // gelu(g) * u
  SWY_GELU_TANH = 2,   // gelu(g) * u, with tanh(...) instead of erf(...)
  SWY_RELU = 3,        // max(g, 0) * u
  SWY_RELU2 = 4,       // max(g, 0)^2 * u
  SWY_IDENTITY = 5,    // g * u
  SWY_SWIGLU_OAI = 6,  // (u + 1) * g * sigmoid(alpha * g)
  // beta tanh(g / beta) sigmoid(g) * linear_beta tanh(u / linear_beta)
  SWY_SITU = 7
};
// Where the values of gate and up lie.
enum swy_gate_up_layout {
  SWY_SPLIT = 0,         // separately in `gate` and `up`
  SWY_CONCATENATED = 1,  // both in `gate`: [gate | up]
  SWY_INTERLEAVED = 2,   // both in `gate`: gate, up, gate, up, ...
  SWY_UNGATED = 3        // gate alone in `gate`; the expert has no up
};
// Whether a step (the limit, row_scale) runs before or after the activation.
enum swy_activate_place {
  SWY_BEFORE = 0,  // before the activation
  SWY_AFTER = 1    // after the activation
};
// Whether stores to `out` go through the caches. The results are the same
// either way.
enum swy_activate_stores {
  SWY_STORES_AUTO = 0,      // streaming above SWY_ACTIVATE_STREAMING_BYTES
  SWY_STORES_CACHED = 1,    // ordinary stores
  SWY_STORES_STREAMING = 2  // streaming stores, which bypass the caches
};
// SWY_STORES_AUTO uses streaming stores if gate, up and out together have
// more than this number of bytes.
#define SWY_ACTIVATE_STREAMING_BYTES ((size_t)32 << 20)

// Inputs of swy_activate, which computes out[r, i] = activation(gate[r, i],
// up[r, i]). out may overwrite an input in place, if it has the data, stride
// and type of that input: gate, up or, with SWY_CONCATENATED, one half of
// gate.
typedef struct swy_activate_inputs {
  uint32_t size;
  // Output of the gate product, of f32, bf16 or f16: [rows, cols], or [rows,
  // 2 * cols] if it also holds up.
  swy_matrix gate;
  // Output of the up product, with SWY_SPLIT only: [rows, cols], of gate's
  // type.
  swy_matrix up;
  // Optional [num_experts, gate.cols]: biases that are added to gate, laid
  // out like gate.
  swy_matrix gate_bias;
  // Optional [num_experts, cols], with SWY_SPLIT only: biases that are added
  // to up.
  swy_matrix up_bias;
  swy_matrix row_scale;  // optional [rows, 1]: a factor for each row
  // Optional [num_experts + 1], as swy_bucket_packed writes it: expert e has
  // rows [offsets[e], offsets[e + 1]). Rows that belong to no expert are not
  // computed. Give at most one of offsets and tokens_per_expert.
  swy_i32_span offsets;
  // Optional [num_experts], as swy_bucket_strided writes it: the number of
  // rows of each expert. Give at most one of offsets and tokens_per_expert.
  swy_i32_span tokens_per_expert;
} swy_activate_inputs;
#define SWY_ACTIVATE_INPUTS_INIT                                              \
  {                                                                           \
    (uint32_t)sizeof(swy_activate_inputs), SWY_NO_MATRIX, SWY_NO_MATRIX,      \
        SWY_NO_MATRIX, SWY_NO_MATRIX, SWY_NO_MATRIX, SWY_NO_SPAN, SWY_NO_SPAN \
  }
// Outputs of swy_activate.
typedef struct swy_activate_outputs {
  uint32_t size;
  swy_rows out;  // [rows, cols] in any format of quantize.h
} swy_activate_outputs;
#define SWY_ACTIVATE_OUTPUTS_INIT \
  { (uint32_t)sizeof(swy_activate_outputs), SWY_NO_ROWS }
// Options of swy_activate.
typedef struct swy_activate_options {
  uint32_t size;
  int32_t activation;       // enum swy_activation, the function to compute
  int32_t layout;           // enum swy_gate_up_layout, where gate and up lie
  int32_t stores;           // enum swy_activate_stores, how out is stored
  float alpha;              // for SWY_SWIGLU_OAI
  float beta;               // for SWY_SITU
  float linear_beta;        // for SWY_SITU
  float limit;              // clamps gate and up; 0 means no limit
  int32_t limit_place;      // enum swy_activate_place, when limit applies
  int32_t row_scale_place;  // enum swy_activate_place, when row_scale applies
  int32_t round_like_unfused;  // round each step, as separate operations do
} swy_activate_options;
#define SWY_ACTIVATE_OPTIONS_INIT                                            \
  {                                                                          \
    (uint32_t)sizeof(swy_activate_options), SWY_SILU, SWY_SPLIT,             \
        SWY_STORES_AUTO, 1.702f, 4.0f, 25.0f, 0.0f, SWY_BEFORE, SWY_AFTER, 0 \
  }

// Computes an expert's activation from its gate and up products.
SWY_API swy_status swy_activate(const swy_activate_inputs* inputs,
                                const swy_activate_outputs* outputs,
                                const swy_activate_options* options,
                                const swy_executor* executor) SWY_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SWITCHYARD_C_ROWS_H_
