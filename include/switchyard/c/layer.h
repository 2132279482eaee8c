// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the experts of a layer. One call does all steps, and calls the engine
// for the matrix products. switchyard.h includes this file; layer.h of the
// C++ API has the contract.

#ifndef SWITCHYARD_C_LAYER_H_
#define SWITCHYARD_C_LAYER_H_

#include "switchyard/c/combine.h"
#include "switchyard/c/rows.h"
#include "switchyard/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// The products of an expert.
enum swy_expert_product {
  SWY_PRODUCT_GATE_UP = 0,  // gate and up in one matrix: see swy_gate_up_layout
  SWY_PRODUCT_GATE = 1,     // the gate product, with SWY_SPLIT only
  SWY_PRODUCT_UP = 2,       // the up product, with SWY_SPLIT only
  SWY_PRODUCT_DOWN = 3      // the down product
};
// The value of `expert` in tiles of the shared expert.
#define SWY_SHARED_EXPERT (-1)

// A part of an expert's product, for one call of swy_expert_gemm::run. The
// engine computes
//   out[r, c] = sum over i of rows[r, i] * weights[i, first_column + c]
typedef struct swy_expert_tile {
  int32_t product;      // enum swy_expert_product
  int32_t expert;       // the expert's number, or SWY_SHARED_EXPERT
  size_t first_column;  // the tile's first column in the product's output
  // The number of the worker that computes the tile, below the executor's
  // concurrency. Tiles that are computed at the same time have different
  // numbers.
  size_t worker;
  swy_rows rows;   // input: [m, hidden], or [m, intermediate] for down
  swy_matrix out;  // output: [m, columns], with a stride
} swy_expert_tile;
// The engine's matrix product. run() computes one tile on the calling thread;
// several threads call run() at the same time. If out[r, c] depends on
// rows[r] and column first_column + c alone, the bits of the layer's result
// do not depend on the number of threads. If run() returns an error,
// swy_run_experts ends and returns this error, so the error's message must
// live as long as the caller may read it.
typedef struct swy_expert_gemm {
  uint32_t size;
  // Computes one tile. Required.
  swy_status (*run)(void* context, const swy_expert_tile* tile);
  void* context;  // the first argument of run()
} swy_expert_gemm;
#define SWY_EXPERT_GEMM_INIT \
  { (uint32_t)sizeof(swy_expert_gemm), NULL, NULL }

// A format of rows: one of the lines of the table in quantize.h of the C++
// API.
typedef struct swy_row_format {
  int32_t type;        // enum swy_type, the type of an element, code or block
  int32_t scale_type;  // enum swy_type, the type of the codes' scales
  // For codes: the number of columns that share a scale, 32, 64 or 128. 0
  // means that all columns of a row share one scale.
  size_t scale_columns;
  int32_t has_sums;  // for SWY_I8 and SWY_U8: rows have swy_rows::sums
} swy_row_format;

// A plan of the work on a layer's experts. The plan points into
// swy_experts_plan_outputs::memory, which must not move or change. Several
// calls may use a plan at the same time. Calls refuse a plan that
// swy_plan_experts did not make, such as an uninitialised struct.
typedef struct swy_experts_plan {
  uint64_t opaque[48];  // private to the library
} swy_experts_plan;

// Inputs of swy_plan_experts.
typedef struct swy_experts_plan_inputs {
  uint32_t size;
  swy_matrix topk_ids;  // [tokens, top_k] of int32, uint32 or int64
} swy_experts_plan_inputs;
#define SWY_EXPERTS_PLAN_INPUTS_INIT \
  { (uint32_t)sizeof(swy_experts_plan_inputs), SWY_NO_MATRIX }
// Outputs of swy_plan_experts.
typedef struct swy_experts_plan_outputs {
  uint32_t size;
  swy_i32_span memory;     // at least [swy_experts_plan_size]
  swy_experts_plan* plan;  // the plan, which points into memory
  // Optional. The call sets report->max_rows, report->dropped and
  // report->tiles.
  swy_report* report;
} swy_experts_plan_outputs;
#define SWY_EXPERTS_PLAN_OUTPUTS_INIT \
  { (uint32_t)sizeof(swy_experts_plan_outputs), SWY_NO_SPAN, NULL, NULL }
// Options of swy_plan_experts. The plan assumes that an expert's products of
// m rows cost weight_cost + row_cost * max(m, min_rows).
typedef struct swy_experts_plan_options {
  uint32_t size;
  int32_t allow_dropped;  // accept ids outside [0, num_experts)
  size_t num_experts;     // required
  size_t hidden;          // required: columns of a token
  size_t intermediate;    // required: columns of the down product's input
  // Columns of the shared expert; 0 means that the layer has none.
  size_t shared_intermediate;
  size_t workers;  // number of workers that the plan is for
  // Tiles begin at multiples of min(tile_rows, max_rows) rows, counted from the
  // first row of their expert.
  size_t tile_rows;
  // Tiles begin at multiples of tile_columns columns of their product. 0 means
  // that a tile has all columns.
  size_t tile_columns;
  size_t max_rows;     // the largest number of rows in a tile
  size_t weight_cost;  // the cost of reading an expert's weights, in any unit
  size_t row_cost;     // the cost of multiplying a row
  size_t min_rows;     // fewer rows cost as much as min_rows rows
  size_t least_cost;   // work of a lower cost is not worth a separate tile
} swy_experts_plan_options;
#define SWY_EXPERTS_PLAN_OPTIONS_INIT                                          \
  {                                                                            \
    (uint32_t)sizeof(swy_experts_plan_options), 0, 0, 0, 0, 0, 1, 16, 16, 256, \
        512, 16, 0, 8                                                          \
  }

// Returns the number of int32 elements of memory that a plan needs, or
// SIZE_MAX if the size overflows or swy_plan_experts refuses an option.
SWY_API size_t swy_experts_plan_size(size_t tokens, size_t top_k,
                                     const swy_experts_plan_options* options)
    SWY_NOEXCEPT;
// Sorts pairs by expert and cuts the experts' products into tiles.
SWY_API swy_status swy_plan_experts(const swy_experts_plan_inputs* inputs,
                                    const swy_experts_plan_outputs* outputs,
                                    const swy_experts_plan_options* options,
                                    const swy_executor* executor) SWY_NOEXCEPT;

// Inputs of swy_run_experts.
typedef struct swy_experts_inputs {
  uint32_t size;
  const swy_experts_plan* plan;  // made by swy_plan_experts for these tokens
  swy_rows hidden;               // [tokens, hidden]: input of the experts
  // Optional: input of the shared expert, if it differs from hidden.
  swy_rows shared_hidden;
  // Optional [num_experts, columns of the product]: biases of the gate
  // product, laid out like the product's output.
  swy_matrix gate_bias;
  // Optional [num_experts, intermediate]: biases of the up product, with
  // SWY_SPLIT only.
  swy_matrix up_bias;
  // The arguments of swy_combine. Leave out its rows and row_index.
  const swy_combine_inputs* combine;
  swy_i32_span scratch;  // at least [swy_experts_scratch_size]
} swy_experts_inputs;
#define SWY_EXPERTS_INPUTS_INIT                                           \
  {                                                                       \
    (uint32_t)sizeof(swy_experts_inputs), NULL, SWY_NO_ROWS, SWY_NO_ROWS, \
        SWY_NO_MATRIX, SWY_NO_MATRIX, NULL, SWY_NO_SPAN                   \
  }
// Options of swy_run_experts.
typedef struct swy_experts_options {
  uint32_t size;
  // 1: combine's topk_weights scale an expert's input, before the activation,
  // instead of its output.
  int32_t weights_on_input;
  // The activation of the routed experts; NULL means the defaults.
  const swy_activate_options* activate;
  // Options of the sum over a token's experts; NULL means the defaults.
  const swy_combine_options* combine;
  // The activation of the shared expert; NULL means SWY_SILU and
  // SWY_CONCATENATED.
  const swy_activate_options* shared_activate;
  swy_row_format operands;  // format of the input rows of gate and up
  int32_t gate_up_type;     // enum swy_type, the type of gate and up products
  int32_t down_type;        // enum swy_type, the type of down products
  // The format of the input rows of the down product; NULL means `operands`.
  const swy_row_format* down_operands;
} swy_experts_options;
#define SWY_EXPERTS_OPTIONS_INIT                                \
  {                                                             \
    (uint32_t)sizeof(swy_experts_options), 0, NULL, NULL, NULL, \
        {SWY_F32, SWY_F32, 0, 0}, SWY_F32, SWY_F32, NULL        \
  }

// Returns the number of int32 elements of scratch for `workers` workers. With
// less scratch, swy_run_experts runs fewer workers. The scratch must be
// enough for at least one worker. Returns SIZE_MAX if the size overflows or
// an argument is wrong.
SWY_API size_t swy_experts_scratch_size(const swy_experts_plan* plan,
                                        const swy_experts_options* options,
                                        size_t workers) SWY_NOEXCEPT;
// Returns a size of scratch that is enough for every plan of `tokens` tokens,
// for engines that allocate memory before they know the ids.
SWY_API size_t swy_experts_scratch_size_of_any(
    size_t tokens, size_t top_k, const swy_experts_plan_options* shape,
    const swy_experts_options* options, size_t workers) SWY_NOEXCEPT;
// Gathers rows, calls gemm to multiply them, applies the activation, calls
// gemm again, and sums up each token's rows, all in one loop of the executor.
SWY_API swy_status swy_run_experts(const swy_experts_inputs* inputs,
                                   const swy_combine_outputs* outputs,
                                   const swy_experts_options* options,
                                   const swy_expert_gemm* gemm,
                                   const swy_executor* executor) SWY_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SWITCHYARD_C_LAYER_H_
