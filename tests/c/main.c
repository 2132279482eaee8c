// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the C ABI from C99, on every ISA of this machine.

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/c/check.h"

static int failures = 0;
static const char* isa_name = "";

static void Fail(const char* file, int line) {
  ++failures;
  fprintf(stderr, "%s:%d: %s: ", file, line, isa_name);
}

void Check(int holds, const char* what, const char* file, int line) {
  if (holds) return;
  Fail(file, line);
  fprintf(stderr, "%s\n", what);
}
void CheckStatus(swy_status status, int32_t code, const char* message,
                 const char* file, int line) {
  if (status.code == code && strcmp(status.message, message) == 0) return;
  Fail(file, line);
  fprintf(stderr, "%d, \"%s\" is not %d, \"%s\"\n", (int)status.code,
          status.message, (int)code, message);
}
void CheckInts(const int32_t* found, const int32_t* wanted, size_t count,
               const char* file, int line) {
  size_t i;
  for (i = 0; i < count; ++i) {
    if (found[i] == wanted[i]) continue;
    Fail(file, line);
    fprintf(stderr, "[%d] is %d, not %d\n", (int)i, (int)found[i],
            (int)wanted[i]);
  }
}
void CheckFloats(const float* found, const float* wanted, size_t count,
                 const char* file, int line) {
  float largest = 0.0f;
  size_t i;
  for (i = 0; i < count; ++i) largest = fmaxf(largest, fabsf(wanted[i]));
  for (i = 0; i < count; ++i) {
    if (isnan(found[i]) && isnan(wanted[i])) continue;
    if (fabsf(found[i] - wanted[i]) <= 3e-6f * largest) continue;
    Fail(file, line);
    fprintf(stderr, "[%d] is %.9g, not %.9g\n", (int)i, found[i], wanted[i]);
  }
}

// The work of one of two threads: it runs every other index, the last first.
struct Half {
  swy_body body;
  void* body_context;
  size_t worker, count;
};
static void* RunHalf(void* context) {
  const struct Half* half = (const struct Half*)context;
  size_t i;
  for (i = half->count; i-- > 0;) {
    if (i % 2 == half->worker) {
      half->body(half->body_context, half->worker, i, i + 1);
    }
  }
  return NULL;
}
static swy_status RunOnTwo(void* context, size_t count, size_t grain,
                           swy_body body, void* body_context) {
  swy_status status = {SWY_OK, ""};
  struct Half halves[2];
  pthread_t thread;
  size_t w;
  CHECK(context == NULL);
  CHECK(grain >= 1);
  for (w = 0; w < 2; ++w) {
    halves[w].body = body;
    halves[w].body_context = body_context;
    halves[w].worker = w;
    halves[w].count = count;
  }
  if (pthread_create(&thread, NULL, RunHalf, &halves[1]) != 0) {
    status.code = SWY_OUT_OF_MEMORY;
    status.message = "no thread";
    return status;
  }
  RunHalf(&halves[0]);
  pthread_join(thread, NULL);
  return status;
}
const swy_executor kThreads = {(uint32_t)sizeof(swy_executor), NULL, 2,
                               RunOnTwo, NULL};

static void TestDetails(void) {
  float from[12] = {0}, to[12];
  swy_quantize_inputs in = SWY_QUANTIZE_INPUTS_INIT;
  swy_quantize_outputs out = SWY_QUANTIZE_OUTPUTS_INIT;
  swy_status refused, other;
  in.from = swy_plain_rows(swy_dense(from, SWY_F32, 3, 4));
  out.rows = swy_plain_rows(swy_dense(to, SWY_F32, 2, 4));
  refused = swy_quantize(&in, &out, NULL, NULL);
  CHECK_INVALID(refused, "Quantize: rows: is not [from.rows, from.cols]");
  CHECK(strcmp(swy_status_details(refused), "got [2, 4], needs [3, 4]") == 0);
  out.rows.values.rows = 3;
  CHECK_OK(swy_quantize(&in, &out, NULL, NULL));
  CHECK(strcmp(swy_status_details(refused), "got [2, 4], needs [3, 4]") == 0);
  other = swy_cap_isa("no such thing");
  CHECK(strcmp(swy_status_details(other), "") == 0);
  CHECK(strcmp(swy_status_details(refused), "") == 0);
  refused.code = SWY_OK;
  CHECK(strcmp(swy_status_details(refused), "") == 0);
}

// If a number does not fit the C++ enumeration, swy_status_details() must not
// show a valid enumerator instead, but "no type" or "no enumerator".
static void TestDetailsOfEnumerators(void) {
  static const int32_t kNone[] = {-1, 255, 256, 1 << 30};
  float from[12] = {0}, to[12];
  swy_quantize_inputs in = SWY_QUANTIZE_INPUTS_INIT;
  swy_quantize_outputs out = SWY_QUANTIZE_OUTPUTS_INIT;
  swy_activate_inputs gates = SWY_ACTIVATE_INPUTS_INIT;
  swy_activate_outputs rows = SWY_ACTIVATE_OUTPUTS_INIT;
  swy_activate_options options = SWY_ACTIVATE_OPTIONS_INIT;
  swy_status refused;
  size_t i;
  in.from = swy_plain_rows(swy_dense(from, SWY_F32, 3, 4));
  out.rows = swy_plain_rows(swy_dense(to, SWY_F32, 3, 4));
  for (i = 0; i < sizeof kNone / sizeof kNone[0]; ++i) {
    in.from.values.type = kNone[i];
    refused = swy_quantize(&in, &out, NULL, NULL);
    CHECK_INVALID(refused,
                  "Quantize: from: has to be f32, bf16, f16 or quantised");
    CHECK(strcmp(swy_status_details(refused),
                 "got no type, takes f32, bf16, f16 or quantised") == 0);
    options.layout = kNone[i];
    refused = swy_activate(&gates, &rows, &options, NULL);
    CHECK_INVALID(refused,
                  "Activate: options: layout is not a known GateUpLayout");
    CHECK(strcmp(swy_status_details(refused),
                 "got no enumerator, needs 0 to 3") == 0);
  }
  options.layout = 4;
  refused = swy_activate(&gates, &rows, &options, NULL);
  CHECK(strcmp(swy_status_details(refused), "got 4, needs 0 to 3") == 0);
}

int main(void) {
  void (*const tests[])(void) = {TestRoute,   TestBucket, TestActivate,
                                 TestCombine, TestLayer,  TestExpertWeights,
                                 TestThreads};
  const size_t num_tests = sizeof tests / sizeof tests[0];
  swy_isa isa;
  size_t i, t;
  CHECK(swy_last_isa().name == NULL);
  CHECK(swy_runnable_isa(0).name != NULL);
  for (i = 0; (isa = swy_runnable_isa(i)).name != NULL; ++i) {
    isa_name = isa.name;
    CHECK_OK(swy_cap_isa(isa.name));
    CHECK(strcmp(swy_active_isa().name, isa.name) == 0);
    CHECK(swy_active_isa().fma == isa.fma);
    for (t = 0; t < num_tests; ++t) {
      tests[t]();
      CHECK(strcmp(swy_last_isa().name, isa.name) == 0);
    }
  }
  printf("%d tests on %d ISAs, ", (int)num_tests, (int)i);
  isa_name = "once";
  CHECK_INVALID(swy_cap_isa("no such thing"),
                "CapIsa: name: the library is not compiled for that ISA");
  CHECK_OK(swy_cap_isa(NULL));
  CHECK_OK(swy_environment_isa());
  TestDetails();
  TestDetailsOfEnumerators();
  TestSizes();
  TestTypes();
  TestPresets();
  TestConfig();
  TestExecutors();
  TestArguments();
  TestFlags();
  TestLongest();
  printf("%d failures\n", failures);
  return failures != 0;
}
