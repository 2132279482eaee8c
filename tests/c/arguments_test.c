// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests mistakes that only C callers can make, and functions without a
// kernel.

#include <stdlib.h>
#include <string.h>

#include "tests/c/check.h"

// The struct of a newer caller. Its last 16 bytes are unknown to this
// library.
#define LONGER(Struct)   \
  struct {               \
    Struct known;        \
    unsigned char b[16]; \
  }

// Makes every mistake in the struct `argument` of an otherwise valid call.
#define ARGUMENT(argument, call, prefix)                                  \
  do {                                                                    \
    const uint32_t size = argument.known.size;                            \
    argument.known.size = 0;                                              \
    CHECK_INVALID(call, prefix ": size is not set");                      \
    argument.known.size = 3;                                              \
    CHECK_INVALID(call, prefix ": size is not set");                      \
    argument.known.size = 5;                                              \
    if (size > 4) CHECK_INVALID(call, prefix NO_VERSION);                 \
    argument.known.size = size - 1;                                       \
    if (size > 4) CHECK_INVALID(call, prefix NO_VERSION);                 \
    argument.known.size = sizeof(void*);                                  \
    if (size > 8) CHECK_INVALID(call, prefix NO_VERSION);                 \
    argument.known.size = size + 16;                                      \
    CHECK(strcmp((call).message, valid) == 0);                            \
    argument.b[15] = 1;                                                   \
    CHECK_INVALID(call,                                                   \
                  prefix ": has fields that this version does not know"); \
    argument.b[15] = 0;                                                   \
    argument.known.size = SWY_MAX_STRUCT_SIZE + 1;                        \
    CHECK_INVALID(call, prefix TOO_LONG);                                 \
    argument.known.size = 0x80000000u;                                    \
    CHECK_INVALID(call, prefix TOO_LONG);                                 \
    argument.known.size = size;                                           \
  } while (0)
// CALL_NOBODY calls a function that takes no executor. CALL_EXECUTOR calls a
// function that takes one, and passes NULL.
#define CALL_NOBODY(function, in, out, options) function(in, out, options)
#define CALL_EXECUTOR(function, in, out, options) \
  function(in, out, options, NULL)
#define FUNCTION(function, name, In, IN, Out, OUT, Options, OPTIONS, last)   \
  do {                                                                       \
    LONGER(In) in = {IN, {0}};                                               \
    LONGER(Out) out = {OUT, {0}};                                            \
    LONGER(Options) options = {OPTIONS, {0}};                                \
    const char* valid =                                                      \
        last(function, &in.known, &out.known, &options.known).message;       \
    CHECK(last(function, &in.known, &out.known, NULL).message == valid);     \
    CHECK_INVALID(last(function, NULL, &out.known, &options.known),          \
                  name ": inputs: is null");                                 \
    CHECK_INVALID(last(function, &in.known, NULL, &options.known),           \
                  name ": outputs: is null");                                \
    ARGUMENT(in, last(function, &in.known, &out.known, &options.known),      \
             name ": inputs");                                               \
    ARGUMENT(out, last(function, &in.known, &out.known, &options.known),     \
             name ": outputs");                                              \
    ARGUMENT(options, last(function, &in.known, &out.known, &options.known), \
             name ": options");                                              \
  } while (0)
// CHECK_REPORT_1 checks the report of a function that writes one.
// CHECK_EXECUTOR checks the executor of a function that takes one.
#define CHECK_REPORT_1(function, name, In, IN, Out, OUT, last)          \
  do {                                                                  \
    LONGER(swy_report) report = {SWY_REPORT_INIT, {0}};                 \
    const In in = IN;                                                   \
    Out out = OUT;                                                      \
    const char* valid = last(function, &in, &out, NULL).message;        \
    out.report = &report.known;                                         \
    CHECK(last(function, &in, &out, NULL).message == valid);            \
    ARGUMENT(report, last(function, &in, &out, NULL), name ": report"); \
  } while (0)
#define CHECK_EXECUTOR(function, name, In, IN, Out, OUT)                    \
  do {                                                                      \
    LONGER(swy_executor) threads = {SWY_EXECUTOR_INIT, {0}};                \
    const In in = IN;                                                       \
    const Out out = OUT;                                                    \
    const char* valid = function(&in, &out, NULL, NULL).message;            \
    CHECK_INVALID(function(&in, &out, NULL, &threads.known), name           \
                  ": executor: parallel_for is null, or concurrency is 0"); \
    threads.known = kThreads;                                               \
    CHECK(function(&in, &out, NULL, &threads.known).message == valid);      \
    ARGUMENT(threads, function(&in, &out, NULL, &threads.known),            \
             name ": executor");                                            \
    threads.known.concurrency = 0;                                          \
    CHECK_INVALID(function(&in, &out, NULL, &threads.known), name           \
                  ": executor: parallel_for is null, or concurrency is 0"); \
  } while (0)
// RunExperts() is swy_run_experts() with a fixed GEMM, so that CALL() can
// test it like functions with four arguments. Its inputs need a `combine`,
// because null is refused.
static const swy_combine_inputs kSums = SWY_COMBINE_INPUTS_INIT;
#define SWY_SUMMED_EXPERTS_INIT                                           \
  {                                                                       \
    (uint32_t)sizeof(swy_experts_inputs), NULL, SWY_NO_ROWS, SWY_NO_ROWS, \
        SWY_NO_MATRIX, SWY_NO_MATRIX, &kSums, SWY_NO_SPAN                 \
  }
static swy_status Multiply(void* context, const swy_expert_tile* tile) {
  const swy_status status = {SWY_OK, ""};
  (void)context;
  (void)tile;
  return status;
}
static swy_status RunExperts(const swy_experts_inputs* in,
                             const swy_combine_outputs* out,
                             const swy_experts_options* options,
                             const swy_executor* executor) {
  swy_expert_gemm gemm = SWY_EXPERT_GEMM_INIT;
  gemm.run = Multiply;
  return swy_run_experts(in, out, options, &gemm, executor);
}
// Tests the structs to which a layer's arguments point.
static void TestParts(void) {
  LONGER(swy_combine_inputs) combine = {SWY_COMBINE_INPUTS_INIT, {0}};
  LONGER(swy_activate_options) activate = {SWY_ACTIVATE_OPTIONS_INIT, {0}};
  LONGER(swy_activate_options) shared = {SWY_ACTIVATE_OPTIONS_INIT, {0}};
  LONGER(swy_combine_options) sums = {SWY_COMBINE_OPTIONS_INIT, {0}};
  LONGER(swy_expert_gemm) gemm = {SWY_EXPERT_GEMM_INIT, {0}};
  swy_experts_inputs in = SWY_EXPERTS_INPUTS_INIT;
  swy_experts_options options = SWY_EXPERTS_OPTIONS_INIT;
  const swy_combine_outputs out = SWY_COMBINE_OUTPUTS_INIT;
  const char* valid = "RunExperts: plan: not given";
#define RUN swy_run_experts(&in, &out, &options, &gemm.known, NULL)
  CHECK_INVALID(RUN, "RunExperts: combine: is null");
  in.combine = &combine.known;
  CHECK_INVALID(swy_run_experts(&in, &out, &options, NULL, NULL),
                "RunExperts: gemm: is null");
  CHECK_INVALID(RUN, "RunExperts: gemm: run is null");
  gemm.known.run = Multiply;
  CHECK_INVALID(RUN, valid);
  options.activate = &activate.known;
  options.combine = &sums.known;
  options.shared_activate = &shared.known;
  ARGUMENT(combine, RUN, "RunExperts: combine");
  ARGUMENT(activate, RUN, "RunExperts: options: activate");
  ARGUMENT(sums, RUN, "RunExperts: options: combine");
  ARGUMENT(shared, RUN, "RunExperts: options: shared_activate");
  ARGUMENT(gemm, RUN, "RunExperts: gemm");
#undef RUN
}

#define CHECK_REPORT_0(...)
#define CHECK_NOBODY(...)

// Tests RunExperts() and every other function that has inputs, outputs and
// options. structs.awk makes the list of the other functions, structs.inc.
void TestArguments(void) {
#define S(...)
#define E(...)
#define P(...)
#define CALL(f, name, who, has_report, in, IN, out, OUT, opt, OPT)          \
  FUNCTION(f, name, swy_##in, SWY_##IN##_INIT, swy_##out, SWY_##OUT##_INIT, \
           swy_##opt, SWY_##OPT##_INIT, CALL_##who);                        \
  CHECK_REPORT_##has_report(f, name, swy_##in, SWY_##IN##_INIT, swy_##out,  \
                            SWY_##OUT##_INIT, CALL_##who);                  \
  CHECK_##who(f, name, swy_##in, SWY_##IN##_INIT, swy_##out, SWY_##OUT##_INIT);
#include "structs.inc"
  CALL(RunExperts, "RunExperts", EXECUTOR, 1, experts_inputs, SUMMED_EXPERTS,
       combine_outputs, COMBINE_OUTPUTS, experts_options, EXPERTS_OPTIONS)
#undef CALL
  TestParts();
}

// Checks that a call refuses a flag with an invalid value. Only callers in C
// can pass such a value, because in C flags are numbers.
#define CHECK_FLAG(call, message, details)                    \
  do {                                                        \
    const swy_status refused = (call);                        \
    CHECK_INVALID(refused, message NO_FLAG);                  \
    CHECK(strcmp(swy_status_details(refused), details) == 0); \
  } while (0)
void TestFlags(void) {
  swy_route_inputs route = SWY_ROUTE_INPUTS_INIT;
  swy_route_outputs routed = SWY_ROUTE_OUTPUTS_INIT;
  swy_route_options options = SWY_ROUTE_OPTIONS_INIT;
  swy_bucket_inputs bucket = SWY_BUCKET_INPUTS_INIT;
  swy_strided_buckets table = SWY_STRIDED_BUCKETS_INIT;
  swy_combine_inputs rows = SWY_COMBINE_INPUTS_INIT;
  swy_combine_outputs sums = SWY_COMBINE_OUTPUTS_INIT;
  swy_experts_inputs layer = SWY_EXPERTS_INPUTS_INIT;
  swy_experts_options parts = SWY_EXPERTS_OPTIONS_INIT;
  swy_activate_options activate = SWY_ACTIVATE_OPTIONS_INIT;
  swy_expert_gemm gemm = SWY_EXPERT_GEMM_INIT;
  swy_model_config config = SWY_MODEL_CONFIG_INIT;
  swy_preset preset = SWY_PRESET_INIT;
  options.renormalize = 2;
  CHECK_FLAG(swy_route_top_k(&route, &routed, &options, NULL),
             "RouteTopK: options", "got renormalize 2");
  options.renormalize = -1;
  CHECK_FLAG(swy_route_top_k(&route, &routed, &options, NULL),
             "RouteTopK: options", "got renormalize -1");
  // A struct that ends before the flag is valid.
  options.renormalize = 1;
  options.bias_in_weight = 2;
  options.size = (uint32_t)offsetof(swy_route_options, bias_in_weight);
  CHECK(strstr(swy_route_top_k(&route, &routed, &options, NULL).message,
               "flag") == NULL);
  table.zero_padding = 256;
  CHECK_FLAG(swy_bucket_strided(&bucket, &table, NULL, NULL),
             "BucketStrided: outputs", "got zero_padding 256");
  rows.token_order = 2;
  CHECK_FLAG(swy_combine(&rows, &sums, NULL, NULL), "Combine: inputs",
             "got token_order 2");
  layer.combine = &rows;
  gemm.run = Multiply;
  CHECK_FLAG(swy_run_experts(&layer, &sums, NULL, &gemm, NULL),
             "RunExperts: combine", "got token_order 2");
  rows.token_order = 0;
  activate.round_like_unfused = 3;
  parts.activate = &activate;
  CHECK_FLAG(swy_run_experts(&layer, &sums, &parts, &gemm, NULL),
             "RunExperts: options: activate", "got round_like_unfused 3");
  parts.activate = NULL;
  parts.operands.has_sums = 2;
  CHECK_FLAG(swy_run_experts(&layer, &sums, &parts, &gemm, NULL),
             "RunExperts: options", "got operands.has_sums 2");
  CHECK_OK(swy_find_preset("mixtral", &preset, NULL));
  config.norm_topk_prob = swy_flag(2);
  CHECK_FLAG(swy_apply_config(&config, &preset, NULL), "ApplyConfig: config",
             "got norm_topk_prob 2");
  config.norm_topk_prob = swy_flag(1);
  config.n_group.is_set = 7;
  CHECK_FLAG(swy_set_number("n_group", 1, &config), "SetField: config",
             "got n_group 7");
}

// Tests the longest valid struct, and one that is a byte longer.
void TestLongest(void) {
  union {
    swy_dispatch_options known;
    unsigned char bytes[SWY_MAX_STRUCT_SIZE + 1];
  } options;
  const swy_dispatch_options initial = SWY_DISPATCH_OPTIONS_INIT;
  uint32_t args[3] = {0, 0, 0};
  swy_dispatch_inputs in = SWY_DISPATCH_INPUTS_INIT;
  swy_dispatch_outputs out = SWY_DISPATCH_OUTPUTS_INIT;
  in.max_rows = in.num_experts = in.features = 64;
  out.args.data = args;
  out.args.size = 3;
  memset(&options, 0, sizeof options);
  options.known = initial;
  options.known.size = SWY_MAX_STRUCT_SIZE;
  CHECK_OK(swy_make_dispatch_args(&in, &out, &options.known));
  CHECK(args[0] == 2 && args[1] == 1 && args[2] == 64);
  options.bytes[SWY_MAX_STRUCT_SIZE - 1] = 1;
  CHECK_INVALID(swy_make_dispatch_args(&in, &out, &options.known),
                "MakeDispatchArgs: options: has fields that this version does "
                "not know");
  options.bytes[SWY_MAX_STRUCT_SIZE - 1] = 0;
  options.known.size = SWY_MAX_STRUCT_SIZE + 1;
  CHECK_INVALID(swy_make_dispatch_args(&in, &out, &options.known),
                "MakeDispatchArgs: options" TOO_LONG);
}

// A function that returns a size reports errors only through the size.
void TestSizes(void) {
  swy_executor threads = SWY_EXECUTOR_INIT;
  threads.size = 0;
  CHECK(swy_bucket_scratch_size(1 << 20, 8, &kThreads) > 0);
  CHECK(swy_bucket_scratch_size(1 << 20, 8, NULL) == 0);
  CHECK(swy_bucket_scratch_size(1 << 20, 8, &threads) == 0);
  {
    swy_aligned_options blocks = SWY_ALIGNED_OPTIONS_INIT;
    blocks.block_size = 4;
    CHECK(swy_bucket_aligned_size(8, 3, &blocks) == 16);
    blocks.size = 0;
    CHECK(swy_bucket_aligned_size(8, 3, &blocks) == SIZE_MAX);
  }
}

void TestTypes(void) {
  float f[6];
  const swy_matrix m = swy_dense(f, SWY_F32, 2, 3);
  const swy_matrix part = swy_row_range(m, 1, 2);
  CHECK(swy_size_of(SWY_F32) == 4 && swy_size_of(SWY_I64) == 8);
  CHECK(swy_size_of(SWY_Q8_0) == sizeof(swy_block_q8_0));
  CHECK(swy_size_of(SWY_Q8_1) == sizeof(swy_block_q8_1));
  CHECK(swy_size_of(SWY_Q8_K) == sizeof(swy_block_q8_k));
  CHECK(swy_size_of(SWY_U16) == 2 && swy_bytes_of(SWY_U16, 3) == 6);
  CHECK(swy_size_of(-1) == 0 && swy_size_of(15) == 0 && swy_size_of(256) == 0);
  CHECK(swy_block_of(SWY_Q8_K) == 256 && swy_block_of(SWY_BF16) == 1);
  CHECK(swy_bytes_of(SWY_Q8_0, 64) == 68 && swy_bytes_of(SWY_BF16, 3) == 6);
  CHECK(part.data == f + 3 && part.rows == 1 && part.cols == 3);
  CHECK(part.stride == 3 && part.type == SWY_F32);
  CHECK(swy_row_range(swy_dense(f, SWY_F16, 2, 3), 1, 2).data == (char*)f + 6);
  CHECK(swy_compiled_isa(0).name != NULL && swy_compiled_isa(99).name == NULL);
  CHECK(swy_runnable_isa(99).name == NULL);
}

static size_t seen_grain;
static swy_status Fail(void* context, size_t count, size_t grain, swy_body body,
                       void* body_context) {
  const swy_status status = {SWY_OUT_OF_MEMORY, "Fail: no memory"};
  (void)count;
  seen_grain = grain;
  (void)body;
  (void)body_context;
  ++*(int*)context;
  return status;
}
static swy_status FailSilently(void* context, size_t count, size_t grain,
                               swy_body body, void* body_context) {
  swy_status status = Fail(context, count, grain, body, body_context);
  status.code = SWY_INTERNAL;
  status.message = NULL;
  return status;
}
static size_t ThreeMicroseconds(void* context) {
  CHECK(*(int*)context > 0);
  return 3000;
}

void TestExecutors(void) {
  enum { kTokens = 4096 };
  float* logits = (float*)malloc(kTokens * 16 * sizeof *logits);
  float* weights = (float*)malloc(2 * kTokens * sizeof *weights);
  int32_t* ids = (int32_t*)malloc(2 * kTokens * sizeof *ids);
  const swy_executor* tbb = swy_tbb_executor_create(2);
  swy_executor failing = SWY_EXECUTOR_INIT;
  swy_route_inputs in = SWY_ROUTE_INPUTS_INIT;
  swy_route_outputs out = SWY_ROUTE_OUTPUTS_INIT;
  size_t i, grain, wrong = 0;
  int calls = 0;
  CHECK(logits != NULL && weights != NULL && ids != NULL);
  if (logits == NULL || weights == NULL || ids == NULL) return;
  for (i = 0; i < kTokens * 16; ++i) logits[i] = (float)(i * 7 % 16);
  in.logits = swy_dense(logits, SWY_F32, kTokens, 16);
  out.topk_ids = swy_dense(ids, SWY_I32, kTokens, 2);
  out.topk_weights = swy_dense(weights, SWY_F32, kTokens, 2);
  failing.context = &calls;
  failing.concurrency = 3;
  failing.parallel_for = Fail;
  CheckStatus(swy_route_top_k(&in, &out, NULL, &failing), SWY_OUT_OF_MEMORY,
              "Fail: no memory", __FILE__, __LINE__);
  failing.parallel_for = FailSilently;
  CheckStatus(swy_route_top_k(&in, &out, NULL, &failing), SWY_INTERNAL,
              "Executor: parallel_for failed without a message", __FILE__,
              __LINE__);
  CHECK(calls == 2);
  // The library computes the grain from the cost of a fork. Callers that were
  // compiled before fork_ns existed do not set that field.
  grain = seen_grain;
  failing.fork_ns = ThreeMicroseconds;
  CHECK(swy_route_top_k(&in, &out, NULL, &failing).code == SWY_INTERNAL);
  CHECK(seen_grain == grain / 10);
  failing.size = (uint32_t)offsetof(swy_executor, fork_ns);
  CHECK(swy_route_top_k(&in, &out, NULL, &failing).code == SWY_INTERNAL);
  CHECK(seen_grain == grain && calls == 4);
  CHECK(tbb == NULL || tbb->fork_ns(tbb->context) == 30000);
  // swy_tbb_executor_create() returns NULL in a build without TBB.
  CHECK(tbb == NULL || (tbb->concurrency >= 1 && tbb->concurrency <= 2));
  CHECK_OK(swy_route_top_k(&in, &out, NULL, tbb));
  // Logit i of a row is 7 * i modulo 16. The largest logits are 15 (i = 9) and
  // 14 (i = 2).
  for (i = 0; i < kTokens; ++i) {
    wrong += ids[2 * i] != 9 || ids[2 * i + 1] != 2;
  }
  CHECK(wrong == 0);
  swy_tbb_executor_destroy(tbb);
  swy_tbb_executor_destroy(NULL);
  CHECK(swy_tbb_executor_create(0) == NULL);
  CHECK(swy_tbb_executor_create(-2) == NULL);
  free(logits);
  free(weights);
  free(ids);
}
