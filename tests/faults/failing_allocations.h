// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Replaces functions of the whole process, so that a test can make them fail:
// * malloc and the other allocation functions; operator new calls malloc;
// * anonymous mmap, which TBB's allocator and device buffers use;
// * pthread_create.
//
// This needs glibc. It does not work with sanitizers, because they replace the
// same functions.

#ifndef SWITCHYARD_TESTS_FAULTS_FAILING_ALLOCATIONS_H_
#define SWITCHYARD_TESTS_FAULTS_FAILING_ALLOCATIONS_H_

#include <cstdint>

namespace switchyard::testing_support {

enum class Failing {
  kOne,    // refuses only the n-th request
  kAllOn,  // refuses the n-th request and all later ones
};

// Starts to count the requests of all threads from 1. Refuses the n-th request
// and, with kAllOn, all later requests. With n = 0 it only counts.
void StartFailing(uint64_t n, Failing which) noexcept;
// Stops refusing. Returns the number of requests since StartFailing().
uint64_t StopFailing() noexcept;

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_FAULTS_FAILING_ALLOCATIONS_H_
