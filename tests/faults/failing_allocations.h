// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Replaces the functions that give memory and threads to the whole process,
// so that a test can make them fail: malloc and the like (and so operator
// new), anonymous mmap (used by TBB's allocator and for device buffers) and
// pthread_create. Needs glibc. Does not work with sanitizers, because they
// replace the same functions.

#ifndef SWITCHYARD_TESTS_FAULTS_FAILING_ALLOCATIONS_H_
#define SWITCHYARD_TESTS_FAULTS_FAILING_ALLOCATIONS_H_

#include <cstdint>

namespace switchyard::testing_support {

enum class Failing {
  kOne,    // only the n-th request
  kAllOn,  // the n-th request and all later ones
};

// Counts requests of all threads from now on, and refuses from the n-th
// (counted from 1). n = 0 only counts.
void StartFailing(uint64_t n, Failing which) noexcept;
// Stops refusing. Returns the number of requests since StartFailing().
uint64_t StopFailing() noexcept;

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_FAULTS_FAILING_ALLOCATIONS_H_
