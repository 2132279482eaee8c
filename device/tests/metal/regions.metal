// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Kernels whose threads wait for each other. The compiler cuts most of these
// kernels at their barriers: those in the list kCut of
// device/tests/regions_test.cc. Threadgroups of 16 x 8 threads run each
// kernel, with n = 24. Each thread writes its result to `out`.

#include <metal_stdlib>
using namespace metal;

constant bool is_set [[function_constant(0)]];

#define ARGUMENTS                                                             \
  device const uint *in [[buffer(0)]], device uint *out [[buffer(1)]],        \
      constant uint &n [[buffer(2)]],                                         \
      uint2 at [[thread_position_in_grid]],                                   \
      uint2 own [[thread_position_in_threadgroup]],                           \
      uint2 group [[threadgroup_position_in_grid]],                           \
      uint2 size [[threads_per_threadgroup]], uint2 all [[threads_per_grid]], \
      uint lane [[thread_index_in_simdgroup]],                                \
      uint simdgroup [[simdgroup_index_in_threadgroup]],                      \
      uint i [[thread_index_in_threadgroup]]
#define ME (at.y * all.x + at.x)
#define MEET threadgroup_barrier(mem_flags::mem_threadgroup)

static uint Mix(uint a, uint b) { return (a ^ b) * 2654435761u + (a >> 7); }

// Has loops that all threads leave after the same round.
kernel void tiles(ARGUMENTS) {
  threadgroup uint a[8][16], b[16][16];
  uint sum = ME;
  for (uint k = 0; k < n; k += 8) {
    a[own.y][own.x] = in[at.y * n + k + own.x];
    b[own.y][own.x] = in[(k + own.y) * all.x + at.x];
    b[own.y + 8][own.x] = in[k + own.y + own.x];
    MEET;
    for (uint j = 0; j < 16; ++j) sum = Mix(sum, a[own.y][j] + b[j][own.x]);
    MEET;
  }
  out[ME] = sum;
}
kernel void tree(ARGUMENTS) {
  threadgroup uint part[128];
  part[i] = in[ME];
  MEET;
  for (uint k = size.x * size.y / 2; k > 0; k /= 2) {
    if (i < k) part[i] = Mix(part[i], part[i + k]);
    MEET;
  }
  out[ME] = part[0] + i;
}
kernel void nested(ARGUMENTS) {
  threadgroup uint x[128];
  uint mine = ME;
  for (uint k = 0; k < n; ++k) {
    if (k == 5) continue;
    for (uint j = k; j > 1; j /= 3) {
      x[i] = mine;
      MEET;
      mine = Mix(mine, x[(i + j) % 128]);
      MEET;
      if (j + k == 19) break;
    }
    if (k == 21) break;
  }
  out[ME] = mine;
}
// In each round of the loop, a and b change places, and so do c and d.
kernel void swap(ARGUMENTS) {
  threadgroup uint x[128];
  uint a = ME, b = i + 7, c = 3, d = 5;
  for (uint k = 0; k < n; ++k) {
    x[i] = a + c;
    MEET;
    const uint t = a;
    a = b + x[127 - i];
    b = t;
    const uint u = c;
    c = d;
    d = u + k;
    MEET;
  }
  out[ME] = Mix(a, b) + Mix(c, d);
}
// Threads leave the loop after different numbers of rounds, and use the last
// values of its variables later.
kernel void uneven(ARGUMENTS) {
  threadgroup uint x[128];
  uint count = 0, steps = 0;
  while (count < i) {
    count += 1 + in[count] % 3;
    ++steps;
  }
  x[i] = steps;
  MEET;
  uint sum = count;
  for (uint k = 0; k < x[i]; ++k) sum = Mix(sum, x[k]);
  MEET;
  out[ME] = sum + steps;
}
// All threads read the loop's bound from threadgroup memory.
kernel void read_bound(ARGUMENTS) {
  threadgroup uint bound, x[128];
  if (i == 37) bound = in[group.x] % 7 + 2;
  MEET;
  uint sum = 0;
  for (uint k = 0; k < bound; ++k) {
    x[i] = Mix(sum, k + i);
    MEET;
    sum += x[127 - i];
    MEET;
  }
  out[ME] = sum + bound;
}
// Each threadgroup takes one branch, but not all take the same branch.
kernel void ways(ARGUMENTS) {
  threadgroup uint x[128];
  uint mine = ME;
  if (n == 0) return;
  if (group.x % 2 == 0) {
    x[i] = mine;
    MEET;
    mine = Mix(x[127 - i], 1);
  } else {
    x[i ^ 1] = mine;
    MEET;
    mine = Mix(x[i], 2);
    MEET;
  }
  switch (group.x + group.y) {
    case 0:
      mine += 5;
      break;
    case 1:
      MEET;
      x[i] = mine;
      MEET;
      mine += x[(i + 1) % 128];
    case 3:
      MEET;
      x[i] = mine;
      MEET;
      mine ^= x[(i + 3) % 128];
      break;
    default:
      MEET;
      x[i] = mine + i;
      MEET;
      mine = x[i / 2];
  }
  out[ME] = mine;
}
kernel void constant_way(ARGUMENTS) {
  threadgroup uint x[128];
  x[i] = ME;
  if (is_set) {
    MEET;
    x[i] = x[i] * 3;
  }
  MEET;
  out[ME] = x[127 - i];
}
// Each thread has its own arrays and structs.
struct Pair {
  uint a;
  bool b;
  ushort3 c;
};
kernel void own_memory(ARGUMENTS) {
  threadgroup uint x[128];
  uint mine[5] = {i, 1, 2, 3, 4}, zeros[13] = {};
  Pair pair = {ME, i % 3 == 0, ushort3(i, 2, 3)};
  half4 h = half4(half(i), 1, 2, 3);
  for (uint k = 0; k < n; ++k) {
    x[i] = mine[(k + i) % 5];
    MEET;
    mine[k % 5] = Mix(mine[(i + 1) % 5], x[127 - i]);
    zeros[(i + k) % 13] += x[i];
    pair.b = pair.b != (x[0] % 2 == 0);
    pair.c.y += ushort(x[i]);
    h = h.yzwx + half4(0.5h);
    MEET;
  }
  const uint y = mine[0] + mine[1] * 3 + mine[2] * 5 + mine[3] * 7 + mine[4];
  out[ME] =
      Mix(y + pair.a, uint(pair.b) + pair.c.y) + uint(h.x * 4) + zeros[i % 13];
}
kernel void argument_memory(ARGUMENTS, threadgroup uint *x [[threadgroup(0)]]) {
  x[i] = in[ME];
  MEET;
  const uint next = x[(i + 1) % 128];
  MEET;
  atomic_fetch_add_explicit((threadgroup atomic_uint *)&x[i % 4], next,
                            memory_order_relaxed);
  MEET;
  out[ME] = x[i % 4] + next;
}
kernel void lanes(ARGUMENTS) {
  threadgroup uint x[4];
  uint v = in[ME];
  const uint most = simd_max(v);
  v = simd_shuffle_xor(v, 5) + quad_broadcast(v, 2);
  v += simd_prefix_exclusive_sum(v % 1000);
  simdgroup_barrier(mem_flags::mem_none);
  if (lane == 0) x[simdgroup] = most;
  MEET;
  for (uint k = 0; k < n; k += 11) v = Mix(v, simd_sum(v % 100 + k));
  out[ME] = Mix(v, x[simdgroup]) + simd_shuffle_down(v, 3u);
}
kernel void matrices(ARGUMENTS) {
  threadgroup float a[4][64], b[4][64];
  a[simdgroup][lane] = float(in[ME] % 17);
  a[simdgroup][lane + 32] = float(in[ME] % 13);
  b[simdgroup][lane] = float(i % 11);
  b[simdgroup][lane + 32] = float(i % 7);
  MEET;
  simdgroup_float8x8 x, y, sum = make_filled_simdgroup_matrix<float, 8>(1.0f);
  for (uint k = 0; k < n; k += 8) {
    simdgroup_load(x, a[simdgroup], 8);
    simdgroup_load(y, b[simdgroup], 8, ulong2(0, 0), true);
    simdgroup_multiply_accumulate(sum, x, y, sum);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_store(sum, a[simdgroup], 8);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    sum = make_filled_simdgroup_matrix<float, 8>(float(k));
  }
  out[ME] = as_type<uint>(a[simdgroup][lane] - a[simdgroup][63 - lane] + 0.5f);
}
// The threadgroups have three dimensions.
kernel void deep(device const uint *in [[buffer(0)]],
                 device uint *out [[buffer(1)]],
                 uint3 at [[thread_position_in_grid]],
                 uint3 own [[thread_position_in_threadgroup]],
                 uint3 size [[threads_per_threadgroup]],
                 uint3 all [[threads_per_grid]],
                 uint i [[thread_index_in_threadgroup]]) {
  threadgroup uint x[2][8][16];
  x[own.z][own.y][own.x] = in[i];
  MEET;
  uint sum = i;
  for (uint k = 0; k < size.x; ++k) {
    sum = Mix(sum, x[own.z][own.y][k]);
    MEET;
    x[own.z][own.y][own.x] = sum;
    MEET;
  }
  out[(at.z * all.y + at.y) * all.x + at.x] = sum + own.z;
}
kernel void needs_unbound(ARGUMENTS, device uint *unbound [[buffer(3)]]) {
  threadgroup uint x[128];
  x[i] = ME;
  MEET;
  unbound[ME] = x[127 - i];
}

// Between two barriers, a thread accesses its own elements in several ways.
// One index depends on `n`, so the compiler does not know it. Stir() computes
// so much that Clang vectorises the loop over threads.
static uint Stir(uint a) {
  for (uint k = 0; k < 8; ++k) a = (a << 3) ^ (a >> 2);
  return a;
}
kernel void rewrites(ARGUMENTS) {
  device uint2 *q = (device uint2 *)out + at.y * all.x;
  MEET;
  const uint a = Stir(at.x), b = Stir(a ^ 99);
  q[at.x].x = a;
  q[at.x][n - 24] = 7;
  q[at.x].y = b;
  MEET;
}
kernel void reads_back(ARGUMENTS) {
  device uint2 *q = (device uint2 *)out + at.y * all.x;
  q[at.x] = uint2(in[ME], i + 5);
  MEET;
  const uint a = q[at.x].x;
  q[at.x][n - 23] = a * 3 + 11;
  q[at.x].x = Stir(a + q[at.x].y);
  MEET;
}
kernel void second_pointer(ARGUMENTS) {
  device uint2 *q = (device uint2 *)out + at.y * all.x;
  device uint *words = out + 2 * at.y * all.x + n / 25;
  q[at.x] = uint2(in[ME], i + 5);
  MEET;
  const uint a = q[at.x].x;
  words[2 * at.x + 1] = Stir(a);
  q[at.x].x = q[at.x].y;
  words[2 * at.x] += 3;
  q[at.x].y = Stir(a ^ 99);
  MEET;
}
kernel void half_words(ARGUMENTS) {
  threadgroup ushort4 x[128];
  device ushort2 *q = (device ushort2 *)out + at.y * all.x;
  x[i] = ushort4(in[ME]);
  MEET;
  const ushort a = x[i].x;
  x[i][n - 23] = Stir(a);
  x[i].w = x[i].y;
  q[at.x].x = x[i].w;
  q[at.x][n - 24] = x[i].z + 1;
  q[at.x].y = Stir(a + 1);
  MEET;
}

// The next two kernels are not cut: threads wait at different points.
kernel void some_meet(ARGUMENTS) {
  uint v = in[ME];
  if (simdgroup == 1) v = simd_sum(v % 100);
  if (lane % 2 == 0) v += simd_max(i);
  out[ME] = v;
}
kernel void as_many_as(ARGUMENTS) {
  threadgroup uint x[128];
  uint sum = ME;
  for (uint k = 0; k < in[simdgroup] % 5; ++k) {
    x[i] = sum;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    sum = Mix(sum, x[i ^ 1]);
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[ME] = sum;
}
// This kernel is not cut, because its threads never wait.
kernel void alone(ARGUMENTS) { out[ME] = Mix(in[ME], i); }
