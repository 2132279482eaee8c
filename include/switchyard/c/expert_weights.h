// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Multiplies rows with the weights of a layer's experts. switchyard.h
// includes this file; expert_weights.h of the C++ API has formulas, layouts
// and errors.
//
//   swy_layer_weights layer = SWY_LAYER_WEIGHTS_INIT;
//   layer.gate = swy_stored_weights(SWY_WEIGHTS_Q4_0, tensor, 128, 768, 2048);
//   swy_expert_gemm gemm = SWY_EXPERT_GEMM_INIT;
//   gemm.run = swy_multiply_layer;
//   gemm.context = &layer;
//   swy_run_experts(&in, &out, &options, &gemm, executor);

#ifndef SWITCHYARD_C_EXPERT_WEIGHTS_H_
#define SWITCHYARD_C_EXPERT_WEIGHTS_H_

#include "switchyard/c/layer.h"
#include "switchyard/c/rows.h"
#include "switchyard/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// The formats of weights.
enum swy_weight_format {
  SWY_WEIGHTS_INT8 = 0,   // int8 codes, with an f32 scale for each row
  SWY_WEIGHTS_Q8_0 = 1,   // GGML's q8_0
  SWY_WEIGHTS_Q4_0 = 2,   // GGML's q4_0
  SWY_WEIGHTS_MXFP4 = 3,  // OCP's mxfp4 in GGML's blocks
  SWY_WEIGHTS_Q4_K = 4,   // GGML's q4_K
  SWY_WEIGHTS_Q6_K = 5,   // GGML's q6_K
  SWY_WEIGHTS_F32 = 6,    // elements of f32
  SWY_WEIGHTS_BF16 = 7,   // elements of bf16
  SWY_WEIGHTS_F16 = 8     // elements of f16
};
// The order of the weights' bytes.
enum swy_weight_layout {
  SWY_WEIGHTS_STORED = 0,  // row by row, as in a GGUF or a checkpoint
  SWY_WEIGHTS_PACKED = 1   // as swy_pack_weights writes them
};

// A view of all experts' weights for one product: [experts, rows, cols]. A
// row of weights gives one column of the product's output.
typedef struct swy_expert_weights {
  int32_t format;     // enum swy_weight_format
  int32_t layout;     // enum swy_weight_layout
  size_t rows;        // columns of the product's output
  size_t cols;        // columns of the product's input
  swy_matrix data;    // uint8 [experts, swy_expert_weights_size]
  swy_matrix scales;  // f32 [experts, rows], for stored SWY_WEIGHTS_INT8 only
} swy_expert_weights;
#define SWY_NO_EXPERT_WEIGHTS \
  { SWY_WEIGHTS_Q8_0, SWY_WEIGHTS_STORED, 0, 0, SWY_NO_MATRIX, SWY_NO_MATRIX }

// Returns the number of bytes of one expert in the layout weights->layout, or
// SIZE_MAX if this size overflows or the format does not allow this number of
// columns.
SWY_API size_t swy_expert_weights_size(const swy_expert_weights* weights)
    SWY_NOEXCEPT;
// Returns the number of bytes of one expert in the layout SWY_WEIGHTS_PACKED,
// whatever weights->layout is. Returns SIZE_MAX if this size overflows or the
// format does not allow this number of columns.
SWY_API size_t swy_packed_weights_size(const swy_expert_weights* weights)
    SWY_NOEXCEPT;

// Returns a view of weights [experts, rows, cols] in the layout
// SWY_WEIGHTS_STORED that begin at `data` and have no gaps between experts. For
// SWY_WEIGHTS_INT8, set the member `scales` too. The function checks nothing,
// because the calls that take the view do.
static inline swy_expert_weights swy_stored_weights(int32_t format, void* data,
                                                    size_t experts, size_t rows,
                                                    size_t cols) {
  swy_expert_weights weights = SWY_NO_EXPERT_WEIGHTS;
  weights.format = format;
  weights.rows = rows;
  weights.cols = cols;
  weights.data =
      swy_dense(data, SWY_U8, experts, swy_expert_weights_size(&weights));
  return weights;
}

// Inputs of swy_pack_weights.
typedef struct swy_pack_weights_inputs {
  uint32_t size;
  swy_expert_weights weights;  // the weights to pack, with SWY_WEIGHTS_STORED
  // Optional: f32, bf16 or f16 weights [experts * rows, cols], which
  // swy_pack_weights quantises. If you set `floats`, set only format, rows
  // and cols of `weights`.
  swy_matrix floats;
} swy_pack_weights_inputs;
#define SWY_PACK_WEIGHTS_INPUTS_INIT                                  \
  {                                                                   \
    (uint32_t)sizeof(swy_pack_weights_inputs), SWY_NO_EXPERT_WEIGHTS, \
        SWY_NO_MATRIX                                                 \
  }
// Outputs of swy_pack_weights.
typedef struct swy_pack_weights_outputs {
  uint32_t size;
  swy_expert_weights* weights;  // optional: receives a view of memory
  swy_matrix memory;            // uint8 [experts, swy_packed_weights_size]
} swy_pack_weights_outputs;
#define SWY_PACK_WEIGHTS_OUTPUTS_INIT \
  { (uint32_t)sizeof(swy_pack_weights_outputs), NULL, SWY_NO_MATRIX }
// Options of swy_pack_weights. There are none so far.
typedef struct swy_pack_weights_options {
  uint32_t size;
} swy_pack_weights_options;
#define SWY_PACK_WEIGHTS_OPTIONS_INIT \
  { (uint32_t)sizeof(swy_pack_weights_options) }

// Packs weights, or quantises floats and packs them.
SWY_API swy_status swy_pack_weights(const swy_pack_weights_inputs* inputs,
                                    const swy_pack_weights_outputs* outputs,
                                    const swy_pack_weights_options* options,
                                    const swy_executor* executor) SWY_NOEXCEPT;

// Returns the format that a product's input rows need for weights of
// `format`. It is the value for swy_experts_options::operands and
// down_operands.
SWY_API swy_row_format swy_operands_of(int32_t format) SWY_NOEXCEPT;
// Sets tile_columns and the costs of `options` for weights of `format`.
SWY_API void swy_set_costs(int32_t format,
                           swy_experts_plan_options* options) SWY_NOEXCEPT;

// Computes tile->out = tile->rows * weights^T for the tile's columns, on the
// calling thread.
SWY_API swy_status swy_multiply_tile(const swy_expert_weights* weights,
                                     const swy_expert_tile* tile) SWY_NOEXCEPT;

// The weights of all products of a layer. Set gate and up with SWY_SPLIT, and
// gate_up with the other layouts. The shared_ fields have one expert each. If
// the layer has no shared expert, leave them as SWY_LAYER_WEIGHTS_INIT sets
// them.
typedef struct swy_layer_weights {
  uint32_t size;
  swy_expert_weights gate_up;         // weights of SWY_PRODUCT_GATE_UP
  swy_expert_weights gate;            // weights of SWY_PRODUCT_GATE
  swy_expert_weights up;              // weights of SWY_PRODUCT_UP
  swy_expert_weights down;            // weights of SWY_PRODUCT_DOWN
  swy_expert_weights shared_gate_up;  // gate_up of the shared expert
  swy_expert_weights shared_gate;     // gate of the shared expert
  swy_expert_weights shared_up;       // up of the shared expert
  swy_expert_weights shared_down;     // down of the shared expert
} swy_layer_weights;
#define SWY_LAYER_WEIGHTS_INIT                                               \
  {                                                                          \
    (uint32_t)sizeof(swy_layer_weights), SWY_NO_EXPERT_WEIGHTS,              \
        SWY_NO_EXPERT_WEIGHTS, SWY_NO_EXPERT_WEIGHTS, SWY_NO_EXPERT_WEIGHTS, \
        SWY_NO_EXPERT_WEIGHTS, SWY_NO_EXPERT_WEIGHTS, SWY_NO_EXPERT_WEIGHTS, \
        SWY_NO_EXPERT_WEIGHTS                                                \
  }
// Multiplies a tile with the weights of its product. Set it as `run` of a
// swy_expert_gemm, with a pointer to a swy_layer_weights as `context`.
SWY_API swy_status swy_multiply_layer(void* layer_weights,
                                      const swy_expert_tile* tile) SWY_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SWITCHYARD_C_EXPERT_WEIGHTS_H_
