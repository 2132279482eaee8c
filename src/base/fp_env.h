// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The floating-point environment of the kernels: round to nearest, keep
// denormals, mask exceptions. Kernels set it, because the calling thread or a
// worker of a pool may have another environment. Reading the environment takes
// a few cycles, and it is written only if it differs.

#ifndef SWITCHYARD_SRC_BASE_FP_ENV_H_
#define SWITCHYARD_SRC_BASE_FP_ENV_H_

#ifdef __FAST_MATH__
#error "Switchyard fixes its evaluation order: do not compile with -ffast-math"
#endif

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace switchyard::internal {

// Sets the default environment on this thread for the object's lifetime.
class DefaultFpEnv {
 public:
#if defined(__x86_64__) || defined(__i386__)
  DefaultFpEnv() noexcept : saved_(_mm_getcsr()) {
    if (Differs()) _mm_setcsr(kDefault);
  }
  ~DefaultFpEnv() {
    if (Differs()) _mm_setcsr(saved_);
  }

 private:
  // The default MXCSR, without its six sticky exception flags.
  static constexpr uint32_t kDefault = 0x1F80;
  bool Differs() const { return (saved_ & 0xFFC0u) != kDefault; }
  const uint32_t saved_;
#elif defined(__aarch64__)
  DefaultFpEnv() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    if (saved_ != 0) Write(0);
  }
  ~DefaultFpEnv() {
    if (saved_ != 0) Write(saved_);
  }

 private:
  static void Write(uint64_t fpcr) {
    asm volatile("msr fpcr, %0" : : "r"(fpcr) : "memory");
  }
  uint64_t saved_;
#else
  // On other CPUs, FE_DFL_ENV turns off only the flush-to-zero modes that libc
  // knows.
  DefaultFpEnv() noexcept {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFpEnv() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
#endif

 public:
  DefaultFpEnv(const internal::DefaultFpEnv&) = delete;
  DefaultFpEnv& operator=(const internal::DefaultFpEnv&) = delete;
};

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BASE_FP_ENV_H_
