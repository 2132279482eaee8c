// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Asynchronous copies by a simdgroup. Shaders declare the functions for
// copies themselves, with the symbol names of Metal's compiler. Texts for
// newLibrary() often have no #include, and this file has none either.

struct _simdgroup_event_t;

thread _simdgroup_event_t* __metal_simdgroup_async_copy_1d(
    ulong, ulong, threadgroup void*, const device void*, ulong)
    __asm("air.simdgroup_async_copy_1d.p3i8.p1i8");
thread _simdgroup_event_t* __metal_simdgroup_async_copy_1d(
    ulong, ulong, device void*, const threadgroup void*, ulong)
    __asm("air.simdgroup_async_copy_1d.p1i8.p3i8");
thread _simdgroup_event_t* __metal_simdgroup_async_copy_2d(
    ulong, ulong, threadgroup void*, ulong, ulong, ulong2, const device void*,
    ulong, ulong, ulong2, long2, int)
    __asm("air.simdgroup_async_copy_2d.p3i8.p1i8");
thread _simdgroup_event_t* __metal_simdgroup_async_copy_2d(
    ulong, ulong, device void*, ulong, ulong, ulong2, const threadgroup void*,
    ulong, ulong, ulong2, long2, int)
    __asm("air.simdgroup_async_copy_2d.p1i8.p3i8");
void __metal_wait_simdgroup_events(int, thread _simdgroup_event_t**)
    __asm("air.wait_simdgroup_events");

namespace metal {

enum class simdgroup_async_copy_clamp_mode { clamp_to_zero, clamp_to_edge };

struct simdgroup_event {
  METAL_FUNC simdgroup_event() thread {}

  template <typename T>
  METAL_FUNC void async_copy(threadgroup T* to, const device T* from, ulong n) thread {
    event = __metal_simdgroup_async_copy_1d(sizeof(T), alignof(T), to, from, n);
  }
  template <typename T>
  METAL_FUNC void async_copy(device T* to, const threadgroup T* from, ulong n) thread {
    event = __metal_simdgroup_async_copy_1d(sizeof(T), alignof(T), to, from, n);
  }
  template <typename T>
  METAL_FUNC void async_copy(threadgroup T* to, ushort to_row, ushort2 to_tile,
                             const device T* from, uint from_row, ushort2 from_tile,
                             simdgroup_async_copy_clamp_mode mode =
                                 simdgroup_async_copy_clamp_mode::clamp_to_zero) thread {
    event = __metal_simdgroup_async_copy_2d(
        sizeof(T), alignof(T), reinterpret_cast<threadgroup void*>(to), ushort(to_row), 1,
        ulong2(to_tile), reinterpret_cast<const device void*>(from), uint(from_row), 1,
        ulong2(from_tile), long2(0), static_cast<int>(mode));
  }
  METAL_FUNC static void wait(int n, thread simdgroup_event* events) {
    __metal_wait_simdgroup_events(n, reinterpret_cast<thread _simdgroup_event_t**>(events));
  }

 private:
  thread _simdgroup_event_t* event;
};

}  // namespace metal

using namespace metal;

constant uint kWidth = 7, kHeight = 6;

// Copies a tile of 5 x 3 elements, from rows of 9 elements, to `block`, which
// has 7 x 6 elements. Then copies `block`, in reverse order, to `out` as one
// row.
template <simdgroup_async_copy_clamp_mode mode>
kernel void tile(device const half* in [[buffer(0)]],
                 device half* out [[buffer(1)]],
                 uint lane [[thread_index_in_threadgroup]],
                 uint lanes [[threads_per_threadgroup]]) {
  threadgroup half block[kWidth * kHeight];
  threadgroup half copy[kWidth * kHeight];
  simdgroup_event events[2];
  events[0].async_copy(block, kWidth, ushort2(kWidth, kHeight), in, 9, ushort2(5, 3), mode);
  simdgroup_event::wait(1, events);
  for (uint i = lane; i < kWidth * kHeight; i += lanes) {
    copy[i] = block[kWidth * kHeight - 1 - i];
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  events[1].async_copy(out, copy, kWidth * kHeight);
  simdgroup_event::wait(1, &events[1]);
}
template [[host_name("tile_zero")]] kernel void
tile<simdgroup_async_copy_clamp_mode::clamp_to_zero>(device const half*, device half*, uint, uint);
template [[host_name("tile_edge")]] kernel void
tile<simdgroup_async_copy_clamp_mode::clamp_to_edge>(device const half*, device half*, uint, uint);

// Each thread reads an element that another lane may have copied.
kernel void reversed(device const float4* in [[buffer(0)]],
                     device float4* out [[buffer(1)]],
                     constant uint& waits [[buffer(2)]],
                     uint i [[thread_index_in_threadgroup]],
                     uint n [[threads_per_threadgroup]]) {
  threadgroup float4 block[32];
  simdgroup_event event;
  event.async_copy(block, in, n);
  if (waits == 1) simdgroup_event::wait(1, &event);
  out[i] = block[n - 1 - i];
}
