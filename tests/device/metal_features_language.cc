// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The bytes that address_spaces.metal, threadgroup_memory.metal,
// templates.metal, function_constants.metal and inputs.metal are to leave.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/device/metal_features.h"

namespace switchyard::testing_support {
namespace {

Feature Tables() {
  const auto in = Values(32, [](size_t i) { return uint32_t(i * 7 % 13); });
  return Feature("address_spaces", "tables")
      .Threads(32, 32)
      .In(in)
      .Out(Values(32, [&](size_t i) {
        const uint32_t k = in[i];
        const float step = k % 2 == 0 ? 2.0f : 0.75f;
        return 0.5f * Float(10 * (k % 4 + 1)) + Float(3 * (k % 2) + k % 3 + 1) +
               4.0f + step + 100.0f;
      }));
}
Feature Helpers() {
  const auto in = Values(32, [](size_t i) { return Float(i * i % 19); });
  const std::vector<float> c = {3.0f, 5.0f};
  return Feature("address_spaces", "helpers")
      .Threads(32, 32)
      .In(in)
      .Out(Values(32,
                  [&](size_t i) {
                    return in[i] + in[31 - i] + Float(i) + c[0] + in[1] + c[1] +
                           7.0f;
                  }))
      .In(c);
}
Feature Casts() {
  const auto in = Values(40, [](size_t i) { return Hash(1, i); });
  return Feature("address_spaces", "casts")
      .Threads(40, 32)
      .In(in)
      .Out(Values(40, [&](size_t i) {
        const uint32_t w = in[i];
        const uint32_t swapped =
            w >> 24 | (w >> 8 & 0xFF00) | (w << 8 & 0xFF0000) | w << 24;
        return swapped ^ (w & 0xFFFF);
      }));
}
Feature Members() {
  const auto in = Values(32, [](size_t i) { return int32_t(100 - 3 * i); });
  return Feature("address_spaces", "members")
      .Threads(32, 32)
      .In(in)
      .Out(Values(32,
                  [&](size_t i) {
                    return 2 * in[i] + 2 * 11 +
                           static_cast<int32_t>(2 * (i ^ 1) + 1);
                  }))
      .In(std::vector<int32_t>{11});
}

Feature ReverseRows() {
  const auto in = Values(64, [](size_t i) { return Float(i); });
  // Tiles of 8 x 4, each turned by half a circle.
  return Feature("threadgroup_memory", "reverse_rows")
      .Threads(Size(16, 4, 1), Size(8, 4, 1))
      .In(in)
      .Out(Values(64, [&](size_t i) {
        const size_t x = i % 16, y = i / 16;
        return in[(3 - y) * 16 + x / 8 * 8 + (7 - x % 8)];
      }));
}
Feature ArgMax() {
  const auto in = Values(192, [](size_t i) { return Float(Hash(2, i) % 50); });
  std::vector<float> values;
  std::vector<uint32_t> indices;
  for (size_t g = 0; g < 3; ++g) {
    const auto row = in.begin() + static_cast<ptrdiff_t>(64 * g);
    const auto best = std::max_element(row, row + 64);
    values.push_back(*best);
    indices.push_back(static_cast<uint32_t>(best - row));
  }
  return Feature("threadgroup_memory", "arg_max")
      .Threads(192, 64)
      .In(in)
      .Out(values)
      .Out(indices);
}
Feature TwoArguments() {
  const auto in = Values(32, [](size_t i) { return Float(3 * i + 1); });
  return Feature("threadgroup_memory", "two_arguments")
      .Threads(32, 32)
      .In(in)
      .Out(Values(32, [&](size_t i) { return in[31 - (i ^ 3)]; }))
      .ThreadgroupMemory(128)
      .ThreadgroupMemory(64);
}
Feature RowSum(size_t threads, size_t bytes) {
  const auto in = Values(threads, [](size_t i) { return Float(i * i % 13); });
  float sum = 0.0f;
  for (const float x : in) sum += x;
  return Feature("threadgroup_memory", "row_sum")
      .Threads(threads, threads)
      .In(in)
      .Out(std::vector<float>(threads, sum))
      .ThreadgroupMemory(bytes);
}
Feature Everywhere() {
  const auto in = Values(64, [](size_t i) { return Float(i); });
  std::vector<float> row = in, work;
  for (size_t round = 0; round < 6; ++round) {
    std::vector<float> next(64);
    for (size_t i = 0; i < 64; ++i) {
      if (round % 2 == 0) {
        next[i] = row[(i + round + 1) % 64];
      } else {
        next[i] = row[i ^ 32] + (round == 3 ? 0.0f : 1.0f);
      }
    }
    if (round % 2 != 0) work = row;
    row = next;
  }
  return Feature("threadgroup_memory", "everywhere")
      .Threads(64, 64)
      .In(in)
      .Out(row)
      .Out(work)
      .In(std::vector<uint32_t>{6});
}
template <class T>
Feature Neighbours(const char* name) {
  const auto in = Values(32, [](size_t i) { return static_cast<T>(5 * i); });
  return Feature("threadgroup_memory", name)
      .Threads(32, 32)
      .In(in)
      .Out(Values(32,
                  [&](size_t i) { return T(in[31 - i] + in[(i + 1) % 32]); }));
}

template <class T>
Feature SumOf(const char* name, size_t count, T most) {
  const auto in =
      Values(20 * count, [](size_t i) { return static_cast<T>(i % 47); });
  return Feature("templates", name)
      .Threads(20, 8)
      .In(in)
      .Out(Values(20, [&](size_t i) {
        T sum = 0;
        for (size_t k = 0; k < count; ++k) sum = T(sum + in[count * i + k]);
        return std::min(sum, most);
      }));
}
template <class T, class Op>
Feature Fold(const char* name, T start, const Op& op) {
  const auto in =
      Values(30, [](size_t i) { return static_cast<T>(1 + i % 5); });
  return Feature("templates", name)
      .Threads(10, 10)
      .In(in)
      .Out(Values(10,
                  [&](size_t i) {
                    return op(start, in[3 * i], in[3 * i + 1], in[3 * i + 2]);
                  }))
      .In(std::vector<T>{start});
}
Feature Areas() {
  const auto sizes = Values(9, [](size_t i) { return Float(i); });
  const auto kinds = Values(9, [](size_t i) { return uint32_t(i % 4); });
  return Feature("templates", "areas_of_shapes")
      .Threads(9, 3)
      .In(sizes)
      .In(kinds)
      .Out(Values(9, [&](size_t i) {
        const float square = sizes[i] * sizes[i];
        return (kinds[i] == 0   ? square
                : kinds[i] == 3 ? 3.0f * square
                                : 0.0f) /
               2.0f;
      }));
}

// Function constants: kBy may be left out.
Feature Apply(bool add, uint32_t times, bool by) {
  const auto in = Values(8, Float);
  const float step = by ? -7.0f : 100.0f;
  Feature feature("function_constants", "apply");
  feature.Threads(8, 4)
      .In(in)
      .Out(Values(8,
                  [&](size_t i) {
                    float value = in[i];
                    if (add) {
                      value += Float(times) * 2.0f * step;
                    } else {
                      value -= step;
                    }
                    if (times > 2) value *= 0.25f;
                    return value + 1.5f + 200.0f + 60000.0f;
                  }))
      .Set(0, DataTypeBool, add)
      .Set(2, DataTypeUInt, times)
      .Set(3, DataTypeFloat, 0.25f)
      .Set(4, DataTypeHalf, Round<Float16>(1.5f))
      .Set(5, DataTypeUChar, uint8_t{200})
      .Set(6, DataTypeUShort, uint16_t{60000});
  if (by) feature.Set(1, DataTypeInt, int32_t{-7});
  return feature;
}
Feature Optional(bool has) {
  const auto in = Values(8, Float);
  Feature feature("function_constants", "optional");
  feature.Threads(8, 8).In(in).Out(Values(8, [&](size_t i) {
    return in[i] + (has ? 10.0f * in[i % 2 == 0 ? i : 7 - i] : 0.0f);
  }));
  if (has) feature.In(Values(8, [&](size_t i) { return 10.0f * in[i]; }));
  return feature.Set(7, DataTypeBool, has);
}

Feature Scaled(bool bias) {
  const auto in = Values(40, Float);
  Feature feature("templates", bias ? "scaled_bias" : "scaled");
  feature.Threads(40, 40).In(in).Out(Values(40, [&](size_t i) {
    return 2.0f * in[i] + (bias ? 4.0f * in[i] : 0.0f);
  }));
  if (bias) feature.In(in).In(std::vector<float>{4.0f});
  return feature;
}

uint32_t U(size_t n) { return static_cast<uint32_t>(n); }

// A grid whose last threadgroups are smaller in two dimensions.
Feature Wide() {
  const size_t grid[3] = {13, 5, 2}, size[3] = {8, 3, 2};
  std::vector<uint32_t> right;
  for (size_t n = 0; n < grid[0] * grid[1] * grid[2]; ++n) {
    const size_t p[3] = {n % grid[0], n / grid[0] % grid[1],
                         n / grid[0] / grid[1]};
    size_t in[3], group[3], groups[3], threads[3];
    for (size_t d = 0; d < 3; ++d) {
      in[d] = p[d] % size[d];
      group[d] = p[d] / size[d];
      groups[d] = (grid[d] + size[d] - 1) / size[d];
      threads[d] = std::min(size[d], grid[d] - group[d] * size[d]);
    }
    const size_t index = (in[2] * threads[1] + in[1]) * threads[0] + in[0];
    const size_t count = threads[0] * threads[1] * threads[2];
    const size_t all = size[0] * size[1] * size[2];
    std::vector<uint32_t> values;
    const auto put = [&](const size_t(&v)[3]) {
      for (const size_t part : v) values.push_back(U(part));
    };
    put(p);
    put(in);
    for (const size_t v :
         {index, index % 32, index % 4, index / 32, index / 4}) {
      values.push_back(U(v));
    }
    put(group);
    put(groups);
    put(grid);
    put(threads);
    put(size);
    for (const size_t v : {size_t{32}, size_t{32}, (count + 31) / 32,
                           (all + 31) / 32, (count + 3) / 4, (all + 3) / 4}) {
      values.push_back(U(v));
    }
    put({0, 0, 0});
    put(grid);
    values.resize(40);
    right.insert(right.end(), values.begin(), values.end());
  }
  return Feature("inputs", "wide")
      .Threads(Size(grid[0], grid[1], grid[2]), Size(size[0], size[1], size[2]))
      .Out(right);
}
Feature Narrow() {
  std::vector<uint32_t> right;
  for (size_t n = 0; n < 16 * 6; ++n) {
    const size_t x = n % 16, y = n / 16, index = y % 3 * 8 + x % 8;
    for (const size_t v : {index, index % 32, y / 3 * 16 + x / 8, size_t{8}}) {
      right.push_back(U(v));
    }
  }
  return Feature("inputs", "narrow")
      .Threads(Size(16, 6, 1), Size(8, 3, 1))
      .Out(right);
}
Feature WithoutIndices() {
  const auto a = Values(12, Float);
  const auto c = Values(12, [](size_t i) { return Float(100 * i); });
  return Feature("inputs", "without_indices")
      .Threads(12, 5)
      .In(a)
      .In(std::vector<float>{0.5f})
      .In(c)
      .Out(Values(12, [&](size_t i) { return a[i] * 0.5f + c[i]; }));
}

const bool kAdded = AddFeatures({
    Tables(),
    Helpers(),
    Casts(),
    Members(),
    ReverseRows(),
    ArgMax(),
    TwoArguments(),
    RowSum(96, 12),
    RowSum(32, 0),
    Everywhere(),
    Neighbours<float>("neighbours_float"),
    Neighbours<int32_t>("neighbours_int"),
    SumOf<float>("sum_float_2", 2, 100.0f),
    SumOf<float>("sum_float_4", 4, 100.0f),
    SumOf<uint8_t>("sum_uchar_2", 2, 50),
    Fold("fold_plus", 4.0f,
         [](float s, float a, float b, float c) { return s + a + b + c; }),
    Fold("fold_times", 4.0f,
         [](float s, float a, float b, float c) { return s * a * b * c; }),
    Fold("fold_minus_int", int32_t{4},
         [](int32_t s, int32_t a, int32_t b, int32_t c) {
           return -(s + a + b + c);
         }),
    Areas(),
    Apply(true, 2, true),
    Apply(true, 3, false),
    Apply(false, 0, true),
    Optional(true),
    Scaled(true),
    Scaled(false),
    Optional(false),
    Wide(),
    Narrow(),
    WithoutIndices(),
});

}  // namespace
}  // namespace switchyard::testing_support
