// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Templates of kernels and functions, and the names that the host sees.

#include <metal_stdlib>
#define instantiate(name, type, count)                     \
  template [[host_name("sum_" #name "_" #count)]] [[kernel]] \
  decltype(sum_of<type, count>) sum_of<type, count>;

using namespace metal;

template <typename T>
struct Limits {
  static constant constexpr int kMost = 100;
  T Clip(T x) const { return x > T(kMost) ? T(kMost) : x; }
};
template <>
struct Limits<uchar> {
  static constant constexpr int kMost = 50;
  uchar Clip(uchar x) const { return x > uchar(kMost) ? uchar(kMost) : x; }
};

struct Plus {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Times {
  template <typename T>
  T operator()(T a, T b) const {
    return a * b;
  }
};

template <typename T, int kCount>
[[kernel]] void sum_of(device const T* in [[buffer(0)]],
                       device T* out [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  T sum = T(0);
  for (int k = 0; k < kCount; ++k) sum += in[kCount * int(i) + k];
  out[i] = Limits<T>().Clip(sum);
}
instantiate(float, float, 2)
instantiate(float, float, 4)
instantiate(uchar, uchar, 2)

// The instantiations below give host names to this function: two by a typedef
// of the function's type, and one by a declaration.
template <typename Op, bool kNegate = false, typename T = float>
kernel void fold(device const T* in [[buffer(0)]],
                 device T* out [[buffer(1)]],
                 constant T& start [[buffer(2)]],
                 uint i [[thread_position_in_grid]]) {
  Op op;
  T value = start;
  for (uint k = 0; k < 3; ++k) value = op(value, in[3 * i + k]);
  out[i] = kNegate ? -value : value;
}
typedef decltype(fold<Plus>) fold_t;
template [[host_name("fold_plus")]] kernel fold_t fold<Plus>;
template [[host_name("fold_times")]] kernel fold_t fold<Times>;
template [[host_name("fold_minus_int")]] kernel void fold<Plus, true, int>(
    device const int* in [[buffer(0)]], device int* out [[buffer(1)]],
    constant int& start [[buffer(2)]], uint i [[thread_position_in_grid]]);

namespace shapes {
enum class Kind : uint { kSquare, kCircle = 3 };
using Area = float;
static Area AreaOf(Kind kind, float size) {
  switch (kind) {
    case Kind::kSquare:
      return size * size;
    case Kind::kCircle:
      return 3.0f * size * size;
  }
  return 0.0f;
}
template <typename T, typename = enable_if_t<is_floating_point<T>::value>>
static T Half(T x) {
  return x / T(2);
}
}  // namespace shapes

// The kernel has another name for hosts, and a limit on its threads.
[[host_name("areas_of_shapes")]] [[max_total_threads_per_threadgroup(64)]]
kernel void areas(device const float* in, device const uint* kinds,
                  device float* out, uint i [[thread_position_in_grid]]) {
  const auto kind = static_cast<shapes::Kind>(kinds[i]);
  const conditional_t<is_same<shapes::Area, float>::value, float, int> area =
      shapes::AreaOf(kind, in[i]);
  out[i] = shapes::Half(area);
}

// If kBias is false, hosts bind no bias.
template <bool kBias>
kernel void scaled(device const float* in [[buffer(0)]],
                   device float* out [[buffer(1)]],
                   device const float* bias [[buffer(2)]],
                   constant float& scale [[buffer(3)]],
                   uint i [[thread_position_in_grid]]) {
  float value = 2.0f * in[i];
  if (kBias) value += scale * bias[i];
  out[i] = value;
}
template [[host_name("scaled")]] [[kernel]]
decltype(scaled<false>) scaled<false>;
template [[host_name("scaled_bias")]] [[kernel]]
decltype(scaled<true>) scaled<true>;
