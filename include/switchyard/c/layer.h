// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The experts of a layer in one call, which calls the engine for the
// products. layer.h of the C++ API has the contract. Included by
// switchyard.h.

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
  SWY_PRODUCT_GATE_UP = 0,  // in one matrix, as swy_gate_up_layout says
  SWY_PRODUCT_GATE = 1,     // these two with SWY_SPLIT
  SWY_PRODUCT_UP = 2,
  SWY_PRODUCT_DOWN = 3
};
// The `expert` of the shared expert's tiles.
#define SWY_SHARED_EXPERT (-1)

// A part of a product:
//   out[r, c] = sum over i of rows[r, i] * weights[i, first_column + c]
typedef struct swy_expert_tile {
  int32_t product;  // enum swy_expert_product
  int32_t expert;   // or SWY_SHARED_EXPERT
  size_t first_column;
  // Below the executor's concurrency. No two tiles have the same number at
  // the same time.
  size_t worker;
  swy_rows rows;
  swy_matrix out;
} swy_expert_tile;
// The engine's product of a tile, on the calling thread alone; several run at
// the same time. If out[r, c] depends on rows[r] and column first_column + c
// alone, the layer's bits are those of one thread. A status that is not
// SWY_OK ends the layer, which returns it, so its message must live as long
// as the caller may read it.
typedef struct swy_expert_gemm {
  uint32_t size;
  swy_status (*run)(void* context, const swy_expert_tile* tile);
  void* context;
} swy_expert_gemm;
#define SWY_EXPERT_GEMM_INIT \
  { (uint32_t)sizeof(swy_expert_gemm), NULL, NULL }

typedef struct swy_row_format {
  int32_t type;          // enum swy_type
  int32_t scale_type;    // of codes
  size_t scale_columns;  // of codes: 32, 64, 128, or 0: a scale a row
  int32_t has_sums;
} swy_row_format;

// The work on a layer's experts. It points into
// swy_experts_plan_outputs::memory, which must not move or change; calls may
// share the plan. Calls refuse a plan that swy_plan_experts did not make,
// such as an uninitialised struct.
typedef struct swy_experts_plan {
  uint64_t opaque[48];
} swy_experts_plan;

typedef struct swy_experts_plan_inputs {
  uint32_t size;
  swy_matrix topk_ids;  // [tokens, top_k]
} swy_experts_plan_inputs;
#define SWY_EXPERTS_PLAN_INPUTS_INIT \
  { (uint32_t)sizeof(swy_experts_plan_inputs), SWY_NO_MATRIX }
typedef struct swy_experts_plan_outputs {
  uint32_t size;
  swy_i32_span memory;  // at least [swy_experts_plan_size]
  swy_experts_plan* plan;
  swy_report* report;  // optional: max_rows, dropped and tiles
} swy_experts_plan_outputs;
#define SWY_EXPERTS_PLAN_OUTPUTS_INIT \
  { (uint32_t)sizeof(swy_experts_plan_outputs), SWY_NO_SPAN, NULL, NULL }
// Options of swy_plan_experts. The products of an expert's m rows cost
// weight_cost
// + row_cost * max(m, min_rows).
typedef struct swy_experts_plan_options {
  uint32_t size;
  int32_t allow_dropped;       // ids outside [0, num_experts)
  size_t num_experts;          // these three have to be set
  size_t hidden;               // columns of a token
  size_t intermediate;         // columns between an expert's products
  size_t shared_intermediate;  // 0: no shared expert
  size_t workers;              // threads that claim tiles
  // Tiles begin at multiples of min(tile_rows, max_rows) rows of their expert.
  size_t tile_rows;
  size_t tile_columns;  // 0: a tile has all columns
  size_t max_rows;      // the most rows of a tile
  size_t weight_cost;   // the cost of reading an expert's weights
  size_t row_cost;      // the cost of a row
  size_t min_rows;      // fewer rows cost as much
  size_t least_cost;    // less is not worth a separate tile
} swy_experts_plan_options;
#define SWY_EXPERTS_PLAN_OPTIONS_INIT                                          \
  {                                                                            \
    (uint32_t)sizeof(swy_experts_plan_options), 0, 0, 0, 0, 0, 1, 16, 16, 256, \
        512, 16, 0, 8                                                          \
  }

// The int32 elements of memory for a plan. SIZE_MAX if the size overflows or
// swy_plan_experts refuses an option.
SWY_API size_t swy_experts_plan_size(size_t tokens, size_t top_k,
                                     const swy_experts_plan_options* options)
    SWY_NOEXCEPT;
// Sorts pairs to experts and cuts their products into tiles.
SWY_API swy_status swy_plan_experts(const swy_experts_plan_inputs* inputs,
                                    const swy_experts_plan_outputs* outputs,
                                    const swy_experts_plan_options* options,
                                    const swy_executor* executor) SWY_NOEXCEPT;

typedef struct swy_experts_inputs {
  uint32_t size;
  const swy_experts_plan* plan;
  swy_rows hidden;                    // [tokens, hidden]
  swy_rows shared_hidden;             // optional
  swy_matrix gate_bias;               // optional [num_experts, columns]
  swy_matrix up_bias;                 // with SWY_SPLIT only
  const swy_combine_inputs* combine;  // without rows and row_index
  swy_i32_span scratch;               // at least [swy_experts_scratch_size]
} swy_experts_inputs;
#define SWY_EXPERTS_INPUTS_INIT                                           \
  {                                                                       \
    (uint32_t)sizeof(swy_experts_inputs), NULL, SWY_NO_ROWS, SWY_NO_ROWS, \
        SWY_NO_MATRIX, SWY_NO_MATRIX, NULL, SWY_NO_SPAN                   \
  }
typedef struct swy_experts_options {
  uint32_t size;
  int32_t weights_on_input;
  const swy_activate_options* activate;  // null: the defaults
  const swy_combine_options* combine;
  const swy_activate_options* shared_activate;  // null: SiLU, concatenated
  swy_row_format operands;
  int32_t gate_up_type;  // enum swy_type
  int32_t down_type;
  const swy_row_format* down_operands;  // null: as operands
} swy_experts_options;
#define SWY_EXPERTS_OPTIONS_INIT                                \
  {                                                             \
    (uint32_t)sizeof(swy_experts_options), 0, NULL, NULL, NULL, \
        {SWY_F32, SWY_F32, 0, 0}, SWY_F32, SWY_F32, NULL        \
  }

// The int32 elements of scratch for `workers` workers. A call with less
// scratch runs fewer, and needs enough for one. SIZE_MAX if the size
// overflows or an argument is wrong.
SWY_API size_t swy_experts_scratch_size(const swy_experts_plan* plan,
                                        const swy_experts_options* options,
                                        size_t workers) SWY_NOEXCEPT;
// Enough for every plan of `tokens` tokens, for engines that allocate memory
// before the ids are known.
SWY_API size_t swy_experts_scratch_size_of_any(
    size_t tokens, size_t top_k, const swy_experts_plan_options* shape,
    const swy_experts_options* options, size_t workers) SWY_NOEXCEPT;
// Gathers rows, calls gemm to multiply them, applies the activation, calls
// gemm again, and sums up each token, in one region of the executor.
SWY_API swy_status swy_run_experts(const swy_experts_inputs* inputs,
                                   const swy_combine_outputs* outputs,
                                   const swy_experts_options* options,
                                   const swy_expert_gemm* gemm,
                                   const swy_executor* executor) SWY_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SWITCHYARD_C_LAYER_H_
