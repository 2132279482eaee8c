// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The checks that all tests in C use. A CHECK that fails writes a line to
// stderr, and main() then fails.

#ifndef SWITCHYARD_TESTS_C_CHECK_H_
#define SWITCHYARD_TESTS_C_CHECK_H_

#include "switchyard/switchyard.h"

#define TOO_LONG ": size is above SWY_MAX_STRUCT_SIZE, 4096"
#define NO_VERSION ": size is that of no version of the struct"
#define NO_FLAG ": a flag is neither 0 nor 1"
#define CHECK(condition) Check((condition) != 0, #condition, __FILE__, __LINE__)
#define CHECK_OK(status) CheckStatus((status), SWY_OK, "", __FILE__, __LINE__)
#define CHECK_INVALID(status, message) \
  CheckStatus((status), SWY_INVALID_ARGUMENT, (message), __FILE__, __LINE__)
#define CHECK_FAILED(status, message) \
  CheckStatus((status), SWY_FAILED_PRECONDITION, (message), __FILE__, __LINE__)
// Compares `count` integers of two arrays.
#define CHECK_INTS(found, wanted, count) \
  CheckInts((found), (wanted), (count), __FILE__, __LINE__)
// Compares `count` floats of two arrays. They may differ by 3e-6 of the
// largest wanted value. A NaN has to be NaN in both arrays.
#define CHECK_FLOATS(found, wanted, count) \
  CheckFloats((found), (wanted), (count), __FILE__, __LINE__)

void Check(int holds, const char* what, const char* file, int line);
void CheckStatus(swy_status status, int32_t code, const char* message,
                 const char* file, int line);
void CheckInts(const int32_t* found, const int32_t* wanted, size_t count,
               const char* file, int line);
void CheckFloats(const float* found, const float* wanted, size_t count,
                 const char* file, int line);

// An executor with two threads of the caller. They run ranges of one index
// each, the last index first.
extern const swy_executor kThreads;

// The tests. Tests of kernels run on every ISA.
void TestRoute(void);
void TestBucket(void);
void TestActivate(void);
void TestCombine(void);
void TestLayer(void);
void TestExpertWeights(void);
void TestThreads(void);
void TestArguments(void);
void TestFlags(void);
void TestLongest(void);
void TestSizes(void);
void TestTypes(void);
void TestPresets(void);
void TestConfig(void);
void TestExecutors(void);

#endif  // SWITCHYARD_TESTS_C_CHECK_H_
