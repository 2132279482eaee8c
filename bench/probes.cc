// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/rivals.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace switchyard {
namespace bench {
namespace {

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f")
#endif
namespace avx512 {
#define PROBE_BYTES 64
#define PROBE_STREAM(p, v) _mm512_stream_ps(p, __m512(v))
#include "bench/probes-inl.h"
#undef PROBE_BYTES
#undef PROBE_STREAM
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2"))), \
                             apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
namespace avx2 {
#define PROBE_BYTES 32
#define PROBE_STREAM(p, v) _mm256_stream_ps(p, __m256(v))
#include "bench/probes-inl.h"
#undef PROBE_BYTES
#undef PROBE_STREAM
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif  // __x86_64__

namespace any {
#define PROBE_BYTES 16
#if defined(__x86_64__)
#define PROBE_STREAM(p, v) _mm_stream_ps(p, __m128(v))
#else
#define PROBE_STREAM(p, v) Store(v, p)
#endif
#include "bench/probes-inl.h"
}  // namespace any

}  // namespace

const Probes& BestProbes() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return avx512::kProbes;
  if (__builtin_cpu_supports("avx2")) return avx2::kProbes;
#endif
  return any::kProbes;
}

}  // namespace bench
}  // namespace switchyard
