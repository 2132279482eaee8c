// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Types that all functions share: errors, views, reports, executors and ISAs.
// switchyard.h includes this file, and explains how structs grow.

#ifndef SWITCHYARD_C_TYPES_H_
#define SWITCHYARD_C_TYPES_H_

#include <stddef.h>
#include <stdint.h>

// A build that exports the functions from a shared library defines SWY_API.
#ifndef SWY_API
#define SWY_API
#endif
#ifdef __cplusplus
#define SWY_NOEXCEPT noexcept
extern "C" {
#else
#define SWY_NOEXCEPT
#endif

// The largest valid `size` of a struct. Calls refuse a larger size, because
// no version has so large a struct. switchyard.h explains the sizes of other
// versions.
#define SWY_MAX_STRUCT_SIZE 4096

// The kind of an error.
enum swy_status_code {
  SWY_OK = 0,  // no error
  // An argument, not the data, is wrong: shape, stride, null, overlap,
  // overflow. Nothing is written.
  SWY_INVALID_ARGUMENT = 1,
  // The executor could not allocate memory. Outputs are unspecified.
  SWY_OUT_OF_MEMORY = 2,
  // The arguments are well-formed but do not fit the data. The function's
  // contract in the C++ API lists the outputs that are written in this case.
  SWY_FAILED_PRECONDITION = 3,
  // The executor failed for another reason. Outputs are unspecified.
  SWY_INTERNAL = 4
};

// The result of a call. The message is "Function: argument: problem" with the
// name of the C++ function, or "" with SWY_OK. It lives as long as the
// library is loaded. Do not free it.
typedef struct swy_status {
  int32_t code;         // enum swy_status_code
  const char* message;  // "Function: argument: problem", or ""
} swy_status;
// Returns the numbers of an error, such as "got [15, 2], needs [16, 2]", or
// "" if it has none. The numbers are those of the last error with this
// message on the calling thread. The thread keeps them until its next error,
// so copy the text.
SWY_API const char* swy_status_details(swy_status status) SWY_NOEXCEPT;

// Element types.
enum swy_type {
  SWY_F32 = 0,     // C's float
  SWY_BF16 = 1,    // bfloat16
  SWY_F16 = 2,     // IEEE half precision
  SWY_I32 = 3,     // int32_t
  SWY_U32 = 4,     // uint32_t
  SWY_I64 = 5,     // int64_t
  SWY_I8 = 6,      // int8_t
  SWY_U8 = 7,      // uint8_t
  SWY_F8E4M3 = 8,  // f8 with 4 bits of exponent
  SWY_F8E5M2 = 9,  // f8 with 5 bits of exponent
  SWY_E8M0 = 10,   // powers of two, for scales only
  SWY_Q8_0 = 11,   // swy_block_q8_0; views count values, not blocks
  SWY_Q8_1 = 12,   // swy_block_q8_1; views count values, not blocks
  SWY_Q8_K = 13,   // swy_block_q8_k; views count values, not blocks
  SWY_U16 = 14     // uint16_t, for recorded ids only
};
// GGML's block of 32 values d * qs[i].
typedef struct swy_block_q8_0 {
  uint16_t d;     // f16 scale
  int8_t qs[32];  // codes
} swy_block_q8_0;
// GGML's block of 32 values d * qs[i], with their sum.
typedef struct swy_block_q8_1 {
  uint16_t d, s;  // f16 scale, and f16 d * (sum of qs)
  int8_t qs[32];  // codes
} swy_block_q8_1;
// GGML's block of 256 values d * qs[i], with sums of the codes.
typedef struct swy_block_q8_k {
  float d;            // scale
  int8_t qs[256];     // codes
  int16_t bsums[16];  // each is the sum of 16 codes
} swy_block_q8_k;

// Returns the number of bytes of an element, or of a block; 0 if `type` is
// not a swy_type.
SWY_API size_t swy_size_of(int32_t type) SWY_NOEXCEPT;
// Returns the number of values in a block; 1 for a type without blocks.
SWY_API size_t swy_block_of(int32_t type) SWY_NOEXCEPT;
// Returns the number of bytes of `values` values. `values` must be a multiple
// of swy_block_of(type).
SWY_API size_t swy_bytes_of(int32_t type, size_t values) SWY_NOEXCEPT;

// `rows` rows of `cols` elements; row r starts at element r * stride, and
// stride >= cols. Nothing outside these rows is read or written. The data of
// an input is only read, so you may cast its const away. To leave out an
// optional matrix, set all fields to zero.
typedef struct swy_matrix {
  void* data;     // the first element of row 0
  size_t rows;    // number of rows
  size_t cols;    // number of columns
  size_t stride;  // elements from the start of a row to the next
  int32_t type;   // enum swy_type, the type of an element
} swy_matrix;
#define SWY_NO_MATRIX \
  { NULL, 0, 0, 0, SWY_F32 }

// Makes a matrix with a stride, which counts elements.
static inline swy_matrix swy_strided(void* data, int32_t type, size_t rows,
                                     size_t cols, size_t stride) {
  swy_matrix m;
  m.data = data;
  m.rows = rows;
  m.cols = cols;
  m.stride = stride;
  m.type = type;
  return m;
}
// Makes a matrix of rows without gaps.
static inline swy_matrix swy_dense(void* data, int32_t type, size_t rows,
                                   size_t cols) {
  return swy_strided(data, type, rows, cols, cols);
}
// Returns rows [begin, end) with all columns.
SWY_API swy_matrix swy_row_range(swy_matrix m, size_t begin,
                                 size_t end) SWY_NOEXCEPT;
// Returns columns [begin, end) of all rows, such as one half of a fused
// gate|up product.
SWY_API swy_matrix swy_col_range(swy_matrix m, size_t begin,
                                 size_t end) SWY_NOEXCEPT;

// Rows that may be quantised: a matrix of codes, with its scales and sums.
// quantize.h of the C++ API has the formats.
typedef struct swy_rows {
  swy_matrix values;  // [rows, cols]: elements, codes or blocks
  swy_matrix scales;  // the codes' scales: [rows, 1] or [rows, column groups]
  // Optional, for SWY_I8 and SWY_U8: int32 [rows, 1], sums of a row's codes.
  swy_matrix sums;
} swy_rows;
#define SWY_NO_ROWS \
  { SWY_NO_MATRIX, SWY_NO_MATRIX, SWY_NO_MATRIX }

// Makes rows without scales and sums.
static inline swy_rows swy_plain_rows(swy_matrix values) {
  swy_rows rows = SWY_NO_ROWS;
  rows.values = values;
  return rows;
}

// A list of `size` elements of int32. To leave out an optional list, set it
// to NULL and 0.
typedef struct swy_i32_span {
  int32_t* data;  // the first element
  size_t size;    // number of elements
} swy_i32_span;
// A list of `size` elements of uint32. To leave out an optional list, set it
// to NULL and 0.
typedef struct swy_u32_span {
  uint32_t* data;  // the first element
  size_t size;     // number of elements
} swy_u32_span;
// A list of `size` elements of int64. To leave out an optional list, set it
// to NULL and 0.
typedef struct swy_i64_span {
  int64_t* data;  // the first element
  size_t size;    // number of elements
} swy_i64_span;
#define SWY_NO_SPAN \
  { NULL, 0 }

// Counts that calls report beside their results. A function sets the fields
// that have its name in their comments, and leaves the other fields unchanged.
typedef struct swy_report {
  uint32_t size;
  // Set by swy_route_top_k: the number of invalid values in given_ids and
  // bias_index.
  size_t invalid_ids;
  // Set by swy_route_top_k: the number of selected experts with -1 in
  // expert_map.
  size_t elsewhere;
  // Set by swy_bucket_..., swy_map_pairs, swy_map_replicas and
  // swy_plan_experts: the number of pairs of the busiest expert or destination.
  // Set by swy_map_counts: the number of rows that the busiest rank receives.
  size_t max_rows;
  // Set by swy_bucket_strided: the stride that it used or, if rows were too
  // short, the least stride.
  size_t row_stride;
  // Set by swy_bucket_..., swy_map_pairs, swy_map_replicas and
  // swy_plan_experts: the number of dropped pairs, which have an id outside [0,
  // num_experts), or no destination or replica.
  size_t dropped;
  // Set by swy_gather_rows: the number of pairs outside [0, num_tokens *
  // top_k).
  size_t invalid;
  // Set by swy_combine, swy_run_experts and swy_scatter_rows: the number of
  // row_index values outside [-1, num_rows).
  size_t skipped;
  // Set by swy_bucket_aligned: the number of pairs beyond their expert's
  // capacity.
  size_t over_capacity;
  // Set by swy_bucket_aligned: the number of experts that have pairs.
  size_t active_experts;
  // Set by swy_plan_experts: the number of tiles in all tasks of the plan.
  size_t tiles;
  // Set by swy_quantize: the number of blocks in which all values are finite,
  // but d or s is infinite.
  size_t overflowed_blocks;
} swy_report;
#define SWY_REPORT_INIT \
  { (uint32_t)sizeof(swy_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// A function that does the work of indices [begin, end) of a loop. `worker`
// is the number of the worker that runs it.
typedef void (*swy_body)(void* body_context, size_t worker, size_t begin,
                         size_t end);

// An executor, which lends the library the threads of your engine. Results do
// not depend on it.
typedef struct swy_executor {
  uint32_t size;
  void* context;  // the first argument of parallel_for and fork_ns
  // The number of threads that may run bodies at the same time. It is at
  // least 1 and never changes.
  size_t concurrency;
  // Calls body(body_context, worker, begin, end) for ranges that together
  // cover [0, count), each index exactly once, and returns when all are done.
  // It may split, merge and reorder ranges, and may run them on any thread.
  // Bodies of one call that run at the same time get different worker
  // numbers, all < concurrency. `grain` indices take about fork_ns on one
  // thread; less work is not worth a thread. Bodies do not call parallel_for.
  // Several threads may call parallel_for at the same time. If it returns an
  // error, the library's function returns this error, so the error's message
  // must be a literal. If an executor breaks these rules, functions return
  // SWY_INTERNAL.
  swy_status (*parallel_for)(void* context, size_t count, size_t grain,
                             swy_body body, void* body_context);
  // Returns the current cost of a fork and join, in nanoseconds of serial
  // work. This cost decides which loops run on several threads. It never
  // changes results. If fork_ns is NULL, the cost is 30,000.
  size_t (*fork_ns)(void* context);
} swy_executor;
#define SWY_EXECUTOR_INIT \
  { (uint32_t)sizeof(swy_executor), NULL, 1, NULL, NULL }

// Makes an executor on oneTBB's threads, with max_concurrency threads
// including the caller; -1 means as many as TBB has. Returns NULL if
// max_concurrency is 0 or below -1, if the library was built without TBB, or
// if memory runs out. Destroy it with swy_tbb_executor_destroy.
SWY_API const swy_executor* swy_tbb_executor_create(int32_t max_concurrency)
    SWY_NOEXCEPT;
// Destroys an executor of swy_tbb_executor_create. NULL is allowed.
SWY_API void swy_tbb_executor_destroy(const swy_executor* executor)
    SWY_NOEXCEPT;

// An instruction set.
typedef struct swy_isa {
  const char* name;  // "AVX3_DL", "AVX2", "NEON", ...; NULL if no ISA exists
  int32_t fma;       // 0 or 1; all ISAs with FMA give the same bits
} swy_isa;

// Returns the ISA at `index` of the list of all ISAs that the library was
// compiled for. The list starts with the best ISA. If `index` is beyond the
// list, the name is NULL.
SWY_API swy_isa swy_compiled_isa(size_t index) SWY_NOEXCEPT;
// Returns the ISA at `index` of the list of ISAs that this CPU can run. The
// list starts with the best ISA. If `index` is beyond the list, the name is
// NULL.
SWY_API swy_isa swy_runnable_isa(size_t index) SWY_NOEXCEPT;
// Returns the ISA that the next call will use.
SWY_API swy_isa swy_active_isa(void) SWY_NOEXCEPT;
// Returns the ISA that the last call used. Before the first call, the name is
// NULL.
SWY_API swy_isa swy_last_isa(void) SWY_NOEXCEPT;
// Caps the ISA: later calls use no ISA better than `name`. NULL removes the
// cap. Call this once, before the first kernel.
SWY_API swy_status swy_cap_isa(const char* name) SWY_NOEXCEPT;
// Returns SWY_OK, or an error if the environment variable SWITCHYARD_ISA has
// a name that swy_cap_isa refuses. Every kernel then returns this error.
SWY_API swy_status swy_environment_isa(void) SWY_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // SWITCHYARD_C_TYPES_H_
