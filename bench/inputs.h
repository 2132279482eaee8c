// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Inputs of the benchmarks: aligned memory, random numbers, and shapes of
// published models.

#ifndef SWITCHYARD_BENCH_INPUTS_H_
#define SWITCHYARD_BENCH_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "testing/inputs.h"

namespace switchyard::bench {

constexpr size_t kAlignment = 64;

// Memory that starts on a cache line. Loops may read and write the whole last
// cache line.
template <class T>
class Aligned {
 public:
  explicit Aligned(size_t size = 0)
      : size_(size),
        storage_((size * sizeof(T) + kAlignment - 1) / kAlignment + 1) {}

  T* data() { return reinterpret_cast<T*>(storage_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(storage_.data()); }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }

 private:
  struct alignas(kAlignment) Line {
    unsigned char bytes[kAlignment] = {};
  };
  size_t size_;
  std::vector<Line> storage_;
};

inline Aligned<float> Floats(size_t size, uint32_t stream, float range = 4.0f) {
  Aligned<float> floats(size);
  for (size_t i = 0; i < size; ++i)
    floats[i] = testing_support::Uniform(stream, i, range);
  return floats;
}

// The distribution from which TopKIds() draws the experts of a token, which are
// always distinct. kUniform: all experts are equally likely. kZipf: the n-th
// most popular expert has a share proportional to 1/n.
enum class Spread { kUniform, kZipf };
Aligned<int32_t> TopKIds(size_t tokens, size_t experts, size_t top_k,
                         Spread spread);

// The layer that a --shape option describes. The defaults are
// Qwen3-30B-A3B's.
struct LayerShape {
  size_t experts = 128, top_k = 8, hidden = 2048, intermediate = 768;
  size_t tokens = 512;
};
// Parses a text like "experts=160,top_k=6,tokens=64". Throws InputError if the
// text is wrong, or if rows are not whole cache lines in all types.
LayerShape ParseShape(const std::string& text);

struct RouterShape {
  const char* model;
  size_t experts;
  size_t top_k;
};

// Return a part of a shape's name: RouterText() returns "E=128/k=8/T=512", and
// HiddenText() "T=64/H=2048" or, if k is not 8, "T=64/H=2048/k=6".
inline std::string RouterText(size_t experts, size_t top_k, size_t tokens) {
  return "E=" + std::to_string(experts) + "/k=" + std::to_string(top_k) +
         "/T=" + std::to_string(tokens);
}
inline std::string HiddenText(size_t tokens, size_t hidden, size_t top_k = 8) {
  return "T=" + std::to_string(tokens) + "/H=" + std::to_string(hidden) +
         (top_k == 8 ? "" : "/k=" + std::to_string(top_k));
}

// The numbers of tokens to time: decoding, a few sequences, and prompts.
constexpr size_t kRouteTokens[] = {1, 64, 512, 4096};
constexpr size_t kBucketTokens[] = {1, 512, 4096};
constexpr size_t kCombineTokens[] = {1, 64, 512};

// The sizes of models' routers. The benchmark always computes a softmax and
// top-k with renormalisation. Some of these models score by sigmoid, so the
// table has only their size. (gpt-oss selects before the softmax, which gives
// the same result.)
constexpr RouterShape kRouters[] = {
    {"Mixtral 8x7B", 8, 2},
    {"ERNIE-4.5-300B-A47B", 64, 8},
    {"gpt-oss-120b", 128, 4},
    {"Qwen3-30B-A3B", 128, 8},
    {"Qwen3-Coder-480B-A35B", 160, 8},
    {"DeepSeek-V3's size", 256, 8},
    {"Kimi K2's size", 384, 8},
    {"Qwen3-Next-80B-A3B", 512, 10},
};

// The sizes for softmax and top-k without renormalisation. Some of these models
// renormalise. The table has them nevertheless, because a speed target names
// their sizes.
constexpr RouterShape kUnnormalisedRouters[] = {
    {"Mixtral 8x7B's size", 8, 2},    {"Qwen1.5-MoE-A2.7B", 60, 4},
    {"DeepSeek-V2-Lite", 64, 6},      {"OLMoE-1B-7B", 64, 8},
    {"Qwen3-30B-A3B's size", 128, 8}, {"DeepSeek-V3's size", 256, 8},
    {"Qwen3-Next's size", 512, 10},
};

constexpr RouterShape kBuckets[] = {
    {"Mixtral 8x7B", 8, 2},         {"Phi-3.5-MoE", 16, 2},
    {"ERNIE-4.5-300B-A47B", 64, 8}, {"Qwen3-30B-A3B", 128, 8},
    {"DeepSeek-V3", 256, 8},
};

// Numbers of experts in published models that are not powers of two, each with
// a power of two nearby. kTopKs has the values of top_k for all these numbers.
struct OddExperts {
  size_t experts, power_of_two;
};
constexpr OddExperts kOddExperts[] = {{60, 64},   {72, 64},   {160, 128},
                                      {288, 256}, {384, 512}, {896, 1024}};
constexpr size_t kTopKs[] = {1, 2, 4, 8, 16, 32};

struct ActivationShape {
  const char* model;
  size_t rows;  // the number of (token, expert) pairs
  size_t cols;  // the intermediate size of an expert
};

constexpr ActivationShape kActivations[] = {
    {"Qwen3-30B-A3B, one token", 8, 768},
    {"DeepSeek-V3, one expert's 64 pairs", 64, 2048},
    {"Qwen3-30B-A3B, 512 tokens", 4096, 768},
    {"Qwen3-235B-A22B, 512 tokens", 4096, 1536},
};

struct HiddenShape {
  const char* model;
  size_t hidden;
};

constexpr size_t kCombineTopK = 8;  // top_k of the three models below
constexpr HiddenShape kHiddens[] = {
    {"Qwen3-30B-A3B", 2048},
    {"Qwen3-235B-A22B", 4096},
    {"DeepSeek-V3", 7168},
};

}  // namespace switchyard::bench

#endif  // SWITCHYARD_BENCH_INPUTS_H_
