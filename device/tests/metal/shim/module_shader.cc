// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Contains code in the forms that the translation of a shader makes: kernels
// with their description, threadgroup variables, and accesses and atomics for
// checked modules.

#include <metal_stdlib>

using namespace metal;
using switchyard_metal::Input;

extern "C" void set_runtime(const switchyard_metal::Runtime* runtime) {
  switchyard_metal::runtime = runtime;
}

struct Params {
  uint n;
  float3 v;
};

void described(const float* x, float* out, const Params& params, half* shared,
               uint3 in_grid) {
  out[in_grid.x] = x[1] + shared[0] + params.v.z;
}
static constexpr auto kernel_0 = &described;

static switchyard_metal::Parameter parameters[] = {
    switchyard_metal::Describe<decltype(kernel_0), 0>("x", Input::kBuffer, 3,
                                                      "device const float* x"),
    switchyard_metal::Describe<decltype(kernel_0), 1>("out", Input::kBuffer, 1,
                                                      "device float* out"),
    switchyard_metal::Describe<decltype(kernel_0), 2>(
        "params", Input::kBuffer, 2, "constant Params& params"),
    switchyard_metal::Describe<decltype(kernel_0), 3>(
        "shared", Input::kThreadgroup, 0, "threadgroup half* shared"),
    switchyard_metal::Describe<decltype(kernel_0), 4>(
        "in_grid", Input::kThreadPositionInGrid, 0, "uint3 in_grid"),
};
extern "C" const switchyard_metal::Parameter* describe() { return parameters; }

// Each of the two instantiations of reverse() has two variables that are
// named "a".
template <int kBy>
void reverse(const int* in, int* out, uint lane) {
  auto& a = switchyard_metal::ThreadgroupVariable<int[32]>([] {}, "a");
  a[lane] = kBy * in[lane];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  {
    auto& b = switchyard_metal::ThreadgroupVariable<int[32]>([] {}, "a");
    b[lane] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[lane] += a[31 - lane] + b[31 - lane];
  }
}
extern "C" void variables(const int* in, int* out, uint lane) {
  reverse<10>(in, out, lane);
  reverse<1000>(in, out, lane);
  simdgroup_barrier(mem_flags::mem_none);
}

// Each case of the function makes one kind of access.
struct Block {
  ushort scale;
  uchar bits[44];
};
extern "C" void access(void* memory, int what) {
  switch (what) {
    case 0:
      *static_cast<volatile char*>(memory) = 1;
      break;
    case 1:
      (void)*static_cast<volatile short*>(memory);
      break;
    case 2:
      *static_cast<float*>(memory) = 2;
      break;
    case 3:
      *static_cast<ulong*>(memory) = 3;
      break;
    case 4:
      static_cast<float4*>(memory)[1] = *static_cast<float4*>(memory);
      break;
    case 5:
      static_cast<Block*>(memory)[2] = *static_cast<Block*>(memory);
      break;
    case 6:
      __builtin_memset(memory, 1, 100);
      break;
    case 7:
      static_cast<half3*>(memory)->yz = static_cast<half3*>(memory)[1].xy;
      break;
    case 8: {  // makes only accesses to the stack
      int numbers[16];
      for (int i = 0; i < 16; ++i) numbers[i] = what * i;
      volatile int* const at = numbers;
      for (int i = 0; i < 16; ++i) at[i] = at[15 - i];
      break;
    }
    case 9:
      atomic_fetch_add_explicit(static_cast<atomic_uint*>(memory), 1,
                                memory_order_relaxed);
      break;
    case 10:
      atomic_store_explicit(static_cast<atomic_bool*>(memory), true,
                            memory_order_relaxed);
      break;
    case 11:
      (void)atomic_load_explicit(static_cast<atomic_ulong*>(memory),
                                 memory_order_relaxed);
      break;
    case 12: {
      int expected = 0;
      atomic_compare_exchange_weak_explicit(static_cast<atomic_int*>(memory),
                                            &expected, 1, memory_order_relaxed,
                                            memory_order_relaxed);
      break;
    }
  }
}

// Does all atomic operations on values of type T. Every lane calls it.
template <class T>
void Update(atomic<T>* a, T x) {
  atomic_fetch_add_explicit(&a[0], x, memory_order_relaxed);
  atomic_fetch_sub_explicit(&a[1], x, memory_order_relaxed);
  atomic_fetch_min_explicit(&a[2], x, memory_order_relaxed);
  atomic_fetch_max_explicit(&a[3], x, memory_order_relaxed);
  if constexpr (is_integral_v<T>) {
    atomic_fetch_and_explicit(&a[4], ~(T(1) << x), memory_order_relaxed);
    atomic_fetch_or_explicit(&a[5], T(1) << x, memory_order_relaxed);
    atomic_fetch_xor_explicit(&a[6], T(3) << x, memory_order_relaxed);
  }
  T old = atomic_load_explicit(&a[7], memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(
      &a[7], &old, old + x, memory_order_relaxed, memory_order_relaxed)) {
  }
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst,
                      thread_scope_device);
}
extern "C" void update_int(atomic_int* a, int x) { Update(a, x); }
extern "C" void update_uint(atomic_uint* a, uint x) { Update(a, x); }
extern "C" void update_ulong(atomic_ulong* a, ulong x) {
  Update(a, x);
  atomic_max_explicit(&a[8], x, memory_order_relaxed);
  atomic_min_explicit(&a[9], x, memory_order_relaxed);
}
extern "C" void update_float(atomic_float* a, float x) { Update(a, x); }
