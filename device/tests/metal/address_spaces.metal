// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Uses address spaces in all places where MSL allows them.

#include <metal_stdlib>
using namespace metal;

constant float kScale = 0.5f;
constant int kTable[4] = {10, 20, 30, 40};
constant uchar kGrid[2][3] = {{1, 2, 3}, {4, 5, 6}};
struct Step {
  int by;
  float times;
};
constant Step kSteps[] = {{1, 2.0f}, {3, 0.25f}};
static constant constexpr float kOther = 4.0f;

// These overloads differ only in the address space.
static float First(device const float* p) { return p[0]; }
static float First(threadgroup const float* p) { return p[0]; }
static float First(thread const float* p) { return p[0]; }
static float First(constant float* p) { return p[0]; }

template <typename P>
static float Second(P p) {
  return p[1];
}
static void Add(thread float& sum, float value) { sum += value; }
static void Store(device float* to, uint i, thread const float& value) {
  to[i] = value;
}
static int Sum(const constant int (&table)[4]) {
  int sum = 0;
  for (int i = 0; i < 4; ++i) sum += table[i];
  return sum;
}

struct Counter {
  int count;
  int Twice() const { return 2 * count; }
  int Twice() const constant { return 2 * count; }
  int Twice() const device { return 2 * count; }
  void Set(int c) thread { count = c; }
  void Set(int c) threadgroup { count = c; }
};

kernel void tables(device const uint* in [[buffer(0)]],
                   device float* out [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
  const uint k = in[i];
  constant Step& step = kSteps[k % 2];
  constant const int* table = kTable;
  constant uchar* row = kGrid[k % 2];
  out[i] = kScale * float(table[k % 4]) + float(row[k % 3]) + kOther +
           float(step.by) * step.times + float(Sum(kTable));
}

kernel void helpers(device const float* in [[buffer(0)]],
                    device float* out [[buffer(1)]],
                    constant float* c [[buffer(2)]],
                    uint i [[thread_position_in_threadgroup]]) {
  threadgroup float shared[32];
  shared[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float own[2] = {float(i), 7.0f};
  thread float* mine = own;
  thread float** to_mine = &mine;
  float sum = First(in + i) + First(&shared[31 - i]) + First(own) + First(c);
  Add(sum, Second(shared) + Second(c) + Second<thread float*>(own));
  (*to_mine)[0] = sum;
  Store(out, i, own[0]);
}

kernel void casts(device const uint* in [[buffer(0)]],
                  device uint* out [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  device const uchar* bytes = (device const uchar*)(in + i);
  device const ushort* halves = reinterpret_cast<device const ushort*>(in + i);
  thread uint word = 0;
  thread uchar* parts = (thread uchar*)&word;
  for (uint b = 0; b < 4; ++b) parts[b] = bytes[3 - b];
  out[i] = word ^ uint(halves[0]);
}

kernel void members(device const Counter* in [[buffer(0)]],
                    device int* out [[buffer(1)]],
                    constant Counter& c [[buffer(2)]],
                    uint i [[thread_position_in_threadgroup]]) {
  threadgroup Counter shared[32];
  Counter own;
  own.Set(int(i));
  shared[i].Set(own.Twice() + 1);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup const Counter& other = shared[i ^ 1];
  out[i] = in[i].Twice() + c.Twice() + other.count;
}
