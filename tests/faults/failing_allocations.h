// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A program that links this gets its memory and its threads from here, and none
// when it is told so: malloc and its kin (with them operator new), anonymous
// mmap (from which TBB's allocator and device buffers come) and pthread_create,
// of every library in the process. For glibc, and not under a sanitizer, which
// replaces the same functions.

#ifndef SWITCHYARD_TESTS_FAULTS_FAILING_ALLOCATIONS_H_
#define SWITCHYARD_TESTS_FAULTS_FAILING_ALLOCATIONS_H_

#include <cstdint>

namespace switchyard::testing_support {

enum class Failing {
  kOne,    // the n-th only
  kAllOn,  // the n-th and all after it
};

// Counts from 1, from now on, in whichever thread. 0: only counts.
void StartFailing(uint64_t n, Failing which) noexcept;
// How many were asked for since; none fail from now on.
uint64_t StopFailing() noexcept;

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_FAULTS_FAILING_ALLOCATIONS_H_
