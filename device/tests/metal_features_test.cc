// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the kernels in metal/ that use features of the language, unchecked and
// checked. The results must be right and must have the same bits in every
// mode, and checked mode must find nothing.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "device/tests/device_test.h"
#include "device/tests/metal_text.h"
#include "gtest/gtest.h"
#include "switchyard/device/library.h"
#include "switchyard/types.h"
#include "testing/floats.h"
#include "testing/inputs.h"

namespace switchyard::testing_support {
namespace {

template <class... Parts>
std::string Text(const Parts&... parts) {
  std::ostringstream text;
  text.precision(9);
  (text << ... << parts);
  return text.str();
}

using Bytes = std::vector<unsigned char>;

template <class T>
Bytes BytesOf(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> FromBytes(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

double AsNumber(float v) { return static_cast<double>(v); }
double AsNumber(Float16 v) { return static_cast<double>(Widen(v)); }
template <class T>
double AsNumber(T v) {
  return static_cast<double>(v);
}

// A dispatch of a kernel. The memory is listed in the order of the buffer
// indices.
struct Feature {
  struct Memory {
    Bytes before;
    // Checks the bytes after the run. Returns an error, or "" if the bytes
    // are right.
    std::function<std::string(const Bytes&)> wrong;
  };
  struct Constant {
    Bytes value;
    DataType type;
    size_t index;
  };

  Feature(const char* of_file, std::string name)
      : file(of_file), kernel(std::move(name)) {}

  // Sets the grid in threads; the last threadgroups may be smaller.
  Feature& Threads(Size all, Size each) {
    grid = all;
    threads = each;
    return *this;
  }
  Feature& Threads(size_t all, size_t each) {
    return Threads(Size(all, 1, 1), Size(each, 1, 1));
  }
  template <class T>
  Feature& In(const std::vector<T>& values) {
    const Bytes before = BytesOf(values);
    memory.push_back({before, [before](const Bytes& after) -> std::string {
                        return after == before ? "" : "an input was written";
                      }});
    return *this;
  }
  // Adds an output that must have exactly these bits. Before the run it is
  // filled with canaries.
  template <class T>
  Feature& Out(const std::vector<T>& right) {
    return InOut(std::vector<T>(), right);
  }
  // Adds an output whose error may be at most `units` times 2^-24. The error
  // is relative, or absolute for values below 1.
  Feature& Near(const std::vector<double>& right, double units) {
    std::vector<float> floats;
    for (const double r : right) floats.push_back(static_cast<float>(r));
    InOut(std::vector<float>(), floats);
    memory.back().wrong = [=](const Bytes& after) -> std::string {
      const std::vector<float> got = FromBytes<float>(after);
      for (size_t i = 0; i < right.size(); ++i) {
        const double value = static_cast<double>(got[i]);
        if (std::isnan(right[i]) && std::isnan(value)) continue;
        if (std::isinf(right[i]) && value == right[i]) continue;
        const double size = std::fmax(1.0, std::fabs(right[i]));
        if (!(std::fabs(value - right[i]) <= units * 0x1p-24 * size)) {
          return Text("[", i, "] is ", value, ", and ought to be ", right[i]);
        }
      }
      return "";
    };
    return *this;
  }
  // Adds an output that the function `wrong` checks.
  template <class T>
  Feature& Out(size_t size,
               const std::function<std::string(const std::vector<T>&)>& wrong) {
    memory.push_back({Canaries(size * sizeof(T)), [=](const Bytes& after) {
                        return wrong(FromBytes<T>(after));
                      }});
    return *this;
  }
  Feature& ThreadgroupMemory(size_t bytes) {
    threadgroup_memory.push_back(bytes);
    return *this;
  }
  template <class T>
  Feature& Set(size_t index, DataType type, T value) {
    Bytes bytes(sizeof(value));
    std::memcpy(bytes.data(), &value, sizeof(value));
    constants.push_back({bytes, type, index});
    return *this;
  }
  // Marks outputs that depend on the order of atomics, so that they are not
  // compared between modes.
  Feature& InAnyOrder() {
    in_any_order = true;
    return *this;
  }

  static Bytes Canaries(size_t size) { return Bytes(size, 0xA5); }

  template <class T>
  Feature& InOut(const std::vector<T>& before, const std::vector<T>& right) {
    const Bytes want = BytesOf(right);
    memory.push_back({before.empty() ? Canaries(want.size()) : BytesOf(before),
                      [=](const Bytes& after) -> std::string {
                        if (after == want) return "";
                        const std::vector<T> got = FromBytes<T>(after);
                        for (size_t i = 0; i < right.size(); ++i) {
                          if (std::memcmp(&got[i], &right[i], sizeof(T)) != 0) {
                            return Text("[", i, "] is ", AsNumber(got[i]),
                                        ", and ought to be ",
                                        AsNumber(right[i]));
                          }
                        }
                        return "differs";
                      }});
    return *this;
  }

  const char* file;
  std::string kernel;
  Size grid{1, 1, 1}, threads{1, 1, 1};
  std::vector<Memory> memory;
  std::vector<size_t> threadgroup_memory;
  std::vector<Constant> constants;
  bool in_any_order = false;
};

template <class Function>
auto Values(size_t n, const Function& function) {
  std::vector<decltype(function(size_t{0}))> values;
  values.reserve(n);
  for (size_t i = 0; i < n; ++i) values.push_back(function(i));
  return values;
}
float Float(size_t i) { return static_cast<float>(i); }

// The next functions return dispatches of the kernels in vectors.metal, with
// the expected results.

Feature SwizzlesOfSwizzles() {
  const auto in = Values(40, [](size_t i) { return Float(i * i % 37); });
  std::vector<float> right;
  for (size_t i = 0; i < 10; ++i) {
    const float* const v = in.data() + 4 * i;
    right.insert(right.end(),
                 {2.0f * (v[2] + v[0]) + 2.0f * v[3], 2.0f * v[2] + 2.0f * v[2],
                  4.0f + 2.0f * v[1], 2.0f * v[1] + 2.0f * v[0]});
  }
  return Feature("vectors", "swizzles_of_swizzles")
      .Threads(10, 4)
      .In(in)
      .Out(right);
}
Feature Conversions() {
  const auto in = Values(
      40, [](size_t i) { return Float(Hash(4, i) % 4000) * 0.25f - 500.0f; });
  std::vector<uint32_t> right;
  for (size_t i = 0; i < 10; ++i) {
    const float* const v = in.data() + 4 * i;
    uint8_t c[4];
    for (size_t k = 0; k < 4; ++k) {
      c[k] = static_cast<uint8_t>(std::abs(static_cast<int16_t>(v[k])));
    }
    const int32_t sum = int32_t{static_cast<int8_t>(c[0])} +
                        int32_t{static_cast<int16_t>(v[1])};
    const uint32_t word = uint32_t{c[0]} | uint32_t{c[1]} << 8 |
                          uint32_t{c[2]} << 16 | uint32_t{c[3]} << 24;
    right.insert(right.end(),
                 {static_cast<uint32_t>(sum), word, Bits(v[0]) >> 16,
                  Bits(v[3]) ^ (Bits(v[2]) & 0xFFFF)});
  }
  return Feature("vectors", "conversions").Threads(10, 10).In(in).Out(right);
}

struct Packed {
  float a[3];
  uint8_t flag;
  int16_t b[3];
};
static_assert(sizeof(Packed) == 20);
Feature PackedTypes() {
  std::vector<Packed> in;
  std::vector<float> right;
  for (int i = 0; i < 7; ++i) {
    Packed p = {};
    for (int c = 0; c < 3; ++c) {
      p.a[c] = static_cast<float>(i + c);
      p.b[c] = static_cast<int16_t>(10 * c - i);
    }
    p.flag = static_cast<uint8_t>(i % 3);
    in.push_back(p);
    float sum[3];
    for (int c = 0; c < 3; ++c) {
      sum[c] = p.a[c] + static_cast<float>(p.b[c] * p.flag);
    }
    sum[1] += p.a[2] + p.a[0];
    sum[2] *= 2.0f;
    right.insert(right.end(), sum, sum + 3);
  }
  return Feature("vectors", "packed_types")
      .Threads(7, 7)
      .In(in)
      .Out(right)
      .Out(std::vector<uint32_t>{20, 48, 16, 16, 8, 4, 4, 24, 32, 32});
}

// Returns `n` float3. Each has the size of four floats, and the fourth is
// NaN.
std::vector<float> Float3s(size_t n, uint32_t seed) {
  return Values(4 * n, [=](size_t i) {
    return i % 4 == 3 ? kNaN : Float(Hash(seed, i) % 9) - 4.0f;
  });
}

Feature Geometry() {
  const auto in = Float3s(20, 5);
  std::vector<double> right;
  for (size_t i = 0; i < 10; ++i) {
    double a[3], b[3];
    double ab = 0, aa = 0, bb = 0, apart = 0, raised = 0;
    for (size_t c = 0; c < 3; ++c) {
      a[c] = AsNumber(in[8 * i + c]);
      b[c] = AsNumber(in[8 * i + 4 + c]);
      ab += a[c] * b[c];
      aa += a[c] * a[c];
      bb += b[c] * b[c];
      apart += (a[c] - b[c]) * (a[c] - b[c]);
      raised += (a[c] + 1) * (a[c] + 1);
    }
    right.insert(right.end(),
                 {ab, a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
                  a[0] * b[1] - a[1] * b[0], std::sqrt(aa), std::sqrt(apart),
                  (a[1] + 1) / std::sqrt(raised), bb - a[1] - b[0] + apart});
  }
  return Feature("vectors", "geometry").Threads(10, 10).In(in).Near(right, 4);
}

Feature HalfVectors() {
  std::vector<Float16> in, right;
  for (size_t i = 0; i < 40; ++i) {
    in.push_back(Round<Float16>(Float(Hash(8, i) % 17) * 0.25f - 2.0f));
  }
  for (size_t i = 0; i < 10; ++i) {
    float v[4], w[4];
    for (size_t c = 0; c < 4; ++c) {
      v[c] = Widen(in[4 * i + c]);
      w[c] = std::fmax(v[c], 0.0f) * 2.0f + v[c] * 0.5f;
    }
    w[3] = v[0] * v[2] + v[1] * v[3] + 1.5f;
    for (size_t c = 4; c-- != 0;) {
      right.push_back(Round<Float16>(v[c] * 2.0f + w[c]));
    }
  }
  return Feature("vectors", "half_vectors").Threads(10, 10).In(in).Out(right);
}
Feature Unaligned() {
  const auto in = Values(21 * 10, [](size_t i) { return Float(i * i % 37); });
  std::vector<float> right = in;
  for (size_t row = 0; row < 10; ++row) {
    float* const last = right.data() + 21 * row + 17;
    for (size_t c = 0; c < 4; ++c) {
      last[c] = (last[c] + last[c - 16]) * last[c - 4];
    }
  }
  return Feature("vectors", "unaligned").Threads(10, 10).In(in).Out(right);
}

// The next functions return dispatches of the kernels in
// address_spaces.metal, threadgroup_memory.metal, templates.metal,
// function_constants.metal and inputs.metal, with the expected results.

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
  // The kernel rotates each tile of 8 x 4 elements by 180 degrees.
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

// A kernel with function constants. The constant kBy may be left without a
// value.
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

// In width and height, the grid is not a multiple of the threadgroup's size.
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

// The next functions return dispatches of the kernels in atomics.metal,
// simd_functions.metal and simdgroup_matrices.metal, with the expected
// results. metal/shim/ tests the functions of lanes and matrices one by one.

Feature OfInts() {
  const auto in = Values(96, [](size_t i) {
    return static_cast<int32_t>(Hash(11, i) % 4001) - 2000;
  });
  std::vector<int32_t> right = {10, 10, 0, 0, -1, 0, 0};
  const std::vector<int32_t> before = right;
  for (const int32_t x : in) {
    right[0] += x;
    right[1] -= x;
    right[2] = std::min(right[2], x);
    right[3] = std::max(right[3], x);
    right[4] &= x | 0xF0;
    right[5] |= x & 0xFF;
    right[6] ^= x;
  }
  return Feature("atomics", "of_ints")
      .Threads(96, 32)
      .InOut(before, right)
      .In(in);
}
Feature OfUints() {
  const auto in = Values(96, [](size_t i) { return Hash(12, i); });
  std::vector<uint32_t> right = {1, UINT32_MAX, 0};
  const std::vector<uint32_t> before = right;
  for (const uint32_t x : in) {
    right[0] += x;
    right[1] = std::min(right[1], x);
    right[2] = std::max(right[2], x);
  }
  return Feature("atomics", "of_uints")
      .Threads(96, 32)
      .InOut(before, right)
      .In(in);
}
Feature OfFloats() {
  const auto in = Values(96, [](size_t i) { return Float(i * 5 % 17); });
  std::vector<float> right = {0.5f, 0.25f};
  const std::vector<float> before = right;
  for (const float x : in) {
    right[0] += x;
    right[1] -= x;
  }
  return Feature("atomics", "of_floats")
      .Threads(96, 32)
      .InOut(before, right)
      .In(in);
}
Feature OfLongs() {
  const auto in = Values(96, [](size_t i) { return Hash(13, i); });
  std::vector<uint64_t> right = {0, UINT64_MAX};
  const std::vector<uint64_t> before = right;
  for (size_t i = 0; i < in.size(); ++i) {
    const uint64_t key = uint64_t{in[i]} << 20 | i;
    right[0] = std::max(right[0], key);
    right[1] = std::min(right[1], key);
  }
  return Feature("atomics", "of_longs")
      .Threads(96, 32)
      .InOut(before, right)
      .In(in);
}
// The outputs are the maximum, the exchanged word, and the sum of all values
// that the exchanges returned.
Feature ByExchange() {
  const auto in = Values(96, [](size_t i) { return Uniform(14, i, 1024.0f); });
  const float most = *std::max_element(in.begin(), in.end());
  Feature feature("atomics", "by_exchange");
  feature.Threads(96, 32).Out<uint32_t>(
      3, [=](const std::vector<uint32_t>& out) -> std::string {
        // out[1] (the exchanged word) and out[2] (the sum) start with the
        // canary value. The first exchange returns the canary in out[1],
        // which the kernel adds to out[2].
        const uint32_t canary = 0xA5A5A5A5;
        if (out[0] != Bits(most)) return "not the maximum";
        if (out[1] == 0 || out[1] > 96) return "no thread's";
        return out[1] + out[2] == 96 * 97 / 2 + 2 * canary ? "" : "lost one";
      });
  return feature.In(in).InAnyOrder();
}
Feature InThreadgroups() {
  auto in = Values(192, [](size_t i) { return Hash(15, i) % 64; });
  for (size_t i = 128; i < 192; ++i) in[i] += in[i] % 16 == 3;
  std::vector<uint32_t> bins(16), firsts(3, 999);
  for (size_t i = 0; i < in.size(); ++i) {
    ++bins[in[i] % 16];
    uint32_t& first = firsts[i / 64];
    if (in[i] % 16 == 3) first = std::min(first, static_cast<uint32_t>(i % 64));
  }
  return Feature("atomics", "in_threadgroups")
      .Threads(192, 64)
      .In(in)
      .InOut(std::vector<uint32_t>(16), bins)
      .Out(firsts);
}

Feature InBranches() {
  const auto in =
      Values(64, [](size_t i) { return static_cast<int32_t>(i * i % 29); });
  std::vector<int32_t> right;
  for (size_t i = 0; i < 64; ++i) {
    const size_t group = i / 32 * 32;
    const auto way = [&](size_t j) {
      return in[j] % 3 == 0 ? 0 : j % 32 >= 10 ? 1 : 2;
    };
    std::vector<size_t> same;
    for (size_t j = group; j < group + 32; ++j) {
      if (way(j) == way(i)) same.push_back(j);
    }
    int32_t result = 0;
    if (way(i) == 0) {
      for (const size_t j : same) result += in[j];
      if (i == same[0]) result *= 2;
    } else if (way(i) == 1) {
      result = static_cast<int32_t>(same.back() % 32 * 100) -
               static_cast<int32_t>(same[0] % 32);
    } else {
      const auto place = std::find(same.begin(), same.end(), i);
      result = static_cast<int32_t>(place - same.begin()) +
               static_cast<int32_t>(same[0] % 32) + 100;
    }
    right.push_back(result + (i % 32 < 16 ? 1 : 3));
  }
  return Feature("simd_functions", "in_branches")
      .Threads(64, 64)
      .In(in)
      .Out(right);
}

Feature Transposed() {
  const auto in = Values(256, [](size_t i) { return Float(i * 7 % 11); });
  auto right = in;
  for (size_t row = 0; row < 8; ++row) {
    for (size_t col = 0; col < 8; ++col) {
      float sum = 0.0f;
      for (size_t k = 0; k < 8; ++k) {
        sum += in[(4 + row) * 16 + 8 + k] * in[col * 16 + k];
      }
      right[(8 + row) * 16 + 8 + col] = 2.0f * sum;
    }
  }
  return Feature("simdgroup_matrices", "transposed")
      .Threads(32, 32)
      .In(in)
      .Out(right);
}

// The next functions return dispatches of the kernels in async_copy.metal,
// with the expected results.

// Full and partial simdgroups copy tiles.
Feature Tile(bool edge, size_t threads) {
  const auto in =
      Values(9 * 3, [](size_t i) { return Round<Float16>(Float(i + 1)); });
  std::vector<Float16> right;
  for (size_t i = 7 * 6; i-- > 0;) {
    const size_t x = i % 7, y = i / 7;
    const bool inside = x < 5 && y < 3;
    right.push_back(
        inside || edge ? in[std::min<size_t>(y, 2) * 9 + std::min<size_t>(x, 4)]
                       : Round<Float16>(0.0f));
  }
  return Feature("async_copy", edge ? "tile_edge" : "tile_zero")
      .Threads(threads, threads)
      .In(in)
      .Out(right);
}

Feature Reversed(size_t threads) {
  const auto in = Values(4 * threads, Float);
  std::vector<float> right;
  for (size_t i = threads; i-- > 0;) {
    for (size_t e = 0; e < 4; ++e) right.push_back(in[4 * i + e]);
  }
  return Feature("async_copy", "reversed")
      .Threads(threads, threads)
      .In(in)
      .Out(right)
      .In(std::vector<uint32_t>{1});
}

// Runs the kernel with 32 threads, and returns the findings.
std::vector<Finding> FindingsOf(Device& device, Library& library,
                                const char* kernel, uint32_t waits) {
  std::string error;
  const auto pipeline = device.newComputePipelineState(
      library.newFunction(kernel, &error), &error);
  EXPECT_NE(pipeline, nullptr) << error;
  const auto in = NewBuffer<float>(device, std::vector<float>(128, 1.0f));
  const auto out = NewBuffer<float>(device, std::vector<float>(128, 2.0f));
  const auto queue = device.newCommandQueue();
  const auto commands = Encoded(*queue, [&](Encoder& e) {
    e.setComputePipelineState(pipeline);
    e.setBuffer(in, 0, 0);
    e.setBuffer(out, 0, 1);
    e.setBytes(&waits, sizeof(waits), 2);
    e.dispatchThreads(Size(32, 1, 1), Size(32, 1, 1));
  });
  commands->commit();
  commands->waitUntilCompleted();
  if (waits == 1) {
    EXPECT_EQ(Contents<float>(out), std::vector<float>(128, 1.0f));
  }
  return commands->findings();
}

TEST(MetalAsyncCopy, WhatIsNotWaitedForIsARace) {
  SWITCHYARD_NEEDS_CLANG();
  const auto device = NewDevice(false, {true, 0});
  MetalTexts texts(device);
  const auto library = texts.Get("async_copy");
  ASSERT_NE(library, nullptr);
  std::vector<std::string> kinds;
  for (const Finding& f : FindingsOf(*device, *library, "reversed", 0)) {
    kinds.push_back(NameOf(f.kind));
    EXPECT_NE(f.text.find(" block["), std::string::npos) << f.text;
  }
  // A lane that runs before the copying lane reads an element that was never
  // written. A lane that runs later reads an element without a barrier. So
  // there are findings of two kinds.
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  EXPECT_EQ(kinds,
            (std::vector<std::string>{"missing-barrier", "never-written"}));
  EXPECT_EQ(FindingsToText(FindingsOf(*device, *library, "reversed", 1)), "");
}

// Uses the names that the header of Xcode 14.2 declares.
TEST(MetalAsyncCopy, Futures) {
  SWITCHYARD_NEEDS_CLANG();
  const auto device = NewDevice(false, {true, 0});
  std::string error;
  const auto library = device->newLibrary(
      "#include <metal_simdgroup_async>\n"
      "using namespace metal;\n"
      "kernel void named(device const float* in [[buffer(0)]],\n"
      "    device float* out [[buffer(1)]], constant uint& n [[buffer(2)]]) {\n"
      "  threadgroup float block[128];\n"
      "  simdgroup_async_copy(block, in, 128).wait();\n"
      "  simdgroup_future<void> back = simdgroup_async_copy(\n"
      "      out, 64, 1, ulong2(64, 2), block, 64, 1, ulong2(64, 2), "
      "long2(0),\n"
      "      simdgroup_async_copy_clamp_mode::clamp_to_edge);\n"
      "  back.wait();\n"
      "}\n",
      {}, &error);
  ASSERT_NE(library, nullptr) << error;
  EXPECT_EQ(FindingsToText(FindingsOf(*device, *library, "named", 1)), "");
}

const std::vector<Feature>& Features() {
  static const std::vector<Feature> features = {
      SwizzlesOfSwizzles(),
      Conversions(),
      PackedTypes(),
      Geometry(),
      HalfVectors(),
      Unaligned(),
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
      OfInts(),
      OfUints(),
      OfFloats(),
      OfLongs(),
      ByExchange(),
      InThreadgroups(),
      InBranches(),
      Transposed(),
      Tile(false, 32),
      Tile(true, 32),
      Tile(false, 20),
      Tile(true, 1),
      Reversed(32),
      Reversed(11)};
  return features;
}

class Runner {
 public:
  explicit Runner(Mode mode) : device_(NewDevice(false, mode)) {}

  std::shared_ptr<Library> Texts(const std::string& file) {
    return texts_.Get(file);
  }
  // Returns the contents of the buffers after the run, or nothing if the
  // kernel cannot run.
  std::vector<Bytes> Run(const Feature& feature) {
    const auto library = texts_.Get(feature.file);
    if (library == nullptr) return {};
    FunctionConstantValues values;
    for (const Feature::Constant& c : feature.constants) {
      values.setConstantValue(c.value.data(), c.type, c.index);
    }
    std::string error;
    const auto function =
        feature.constants.empty()
            ? library->newFunction(feature.kernel.c_str(), &error)
            : library->newFunction(feature.kernel.c_str(), values, &error);
    EXPECT_NE(function, nullptr) << error;
    if (function == nullptr) return {};
    const auto pipeline = device_->newComputePipelineState(function, &error);
    EXPECT_NE(pipeline, nullptr) << error;
    if (pipeline == nullptr) return {};

    std::vector<BufferPtr> buffers;
    const auto queue = device_->newCommandQueue();
    const auto commands = Encoded(*queue, [&](Encoder& e) {
      e.setComputePipelineState(pipeline);
      for (const Feature::Memory& memory : feature.memory) {
        buffers.push_back(
            device_->newBuffer(memory.before.data(), memory.before.size()));
        e.setBuffer(buffers.back(), 0, buffers.size() - 1);
      }
      for (size_t i = 0; i < feature.threadgroup_memory.size(); ++i) {
        e.setThreadgroupMemoryLength(feature.threadgroup_memory[i], i);
      }
      e.dispatchThreads(feature.grid, feature.threads);
    });
    commands->commit();
    commands->waitUntilCompleted();
    EXPECT_EQ(commands->error(), "");
    std::vector<Bytes> after;
    for (const BufferPtr& buffer : buffers) {
      after.push_back(buffer == nullptr ? Bytes()
                                        : Contents<unsigned char>(buffer));
    }
    return after;
  }

 private:
  const std::shared_ptr<Device> device_;
  MetalTexts texts_{device_};
};

class MetalFeatures : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override { SWITCHYARD_NEEDS_CLANG(); }
  Runner runner_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Mode, MetalFeatures, testing::ValuesIn(kModes),
                         testing::PrintToStringParamName());

// Checks that the tests run every kernel in the files.
TEST_P(MetalFeatures, AreAll) {
  std::map<std::string, std::set<std::string>> listed;
  for (const Feature& feature : Features()) {
    listed[feature.file].insert(feature.kernel);
  }
  EXPECT_GE(listed.size(), 10u);
  for (const auto& [file, kernels] : listed) {
    const auto library = runner_.Texts(file);
    ASSERT_NE(library, nullptr);
    EXPECT_TRUE(library->unsupported().empty()) << file;
    const auto names = library->functionNames();
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), kernels)
        << file;
  }
}

// Results for which an error is allowed must still have the same bits in
// every mode.
TEST(MetalFeaturesModes, LeaveWhatIsRightAndAgree) {
  SWITCHYARD_NEEDS_CLANG();
  std::vector<std::vector<Bytes>> first;
  for (const Mode& mode : kModes) {
    Runner runner(mode);
    for (size_t i = 0; i < Features().size(); ++i) {
      const Feature& feature = Features()[i];
      SCOPED_TRACE(std::string(feature.file) + ".metal, " + feature.kernel);
      const std::vector<Bytes> after = runner.Run(feature);
      EXPECT_EQ(after.size(), feature.memory.size());
      for (size_t m = 0; m < after.size(); ++m) {
        const auto& wrong = feature.memory[m].wrong;
        EXPECT_EQ(wrong ? wrong(after[m]) : "", "") << "buffer " << m;
      }
      if (i == first.size()) {
        first.push_back(after);
      } else if (!feature.in_any_order) {
        EXPECT_EQ(after, first[i]) << feature.kernel;
      }
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
