// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "layer_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "common/for_each.h"
#include "common/hash_uniform.h"
#include "programs/machine.h"
#include "programs/program.h"
#include "progress.h"

namespace moe_layer {
namespace {

using example::HashUniform;
using example::UniformScale;
using program::BytesText;
using program::InputError;
using program::RequireMemory;

void CopyF32(const uint8_t* source, size_t count, float* out) noexcept {
  std::memcpy(out, source, count * sizeof(float));
}

// The first element that is NaN or infinite; SIZE_MAX if there is none.
size_t FirstNonFinite(const float* values, size_t count) noexcept {
  constexpr uint32_t kExponent = 0x7F800000u;
  constexpr size_t kBlock = 1024;  // without branches, for the compiler
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t end = std::min(count, at + kBlock);
    uint32_t found = 0;
    for (size_t i = at; i < end; ++i) {
      uint32_t bits;
      std::memcpy(&bits, values + i, sizeof(bits));
      found |= (bits & kExponent) == kExponent ? 1u : 0u;
    }
    if (found == 0) continue;
    while (std::isfinite(values[at])) ++at;
    return at;
  }
  return SIZE_MAX;
}

// "nan at [3, 17]", of a matrix or a vector.
std::string ElementText(const float* values, size_t at,
                        const std::vector<uint64_t>& shape) {
  const std::string value = std::isnan(values[at]) ? "nan"
                            : values[at] < 0       ? "-inf"
                                                   : "inf";
  const size_t cols = static_cast<size_t>(shape.back());
  const std::string row =
      shape.size() == 2 ? std::to_string(at / cols) + ", " : "";
  return value + " at [" + row + std::to_string(at % cols) + "]";
}

// Replaces {layer} and {expert}.
std::string TensorName(std::string pattern, size_t layer, size_t expert) {
  const std::pair<const char*, size_t> numbers[] = {{"{layer}", layer},
                                                    {"{expert}", expert}};
  for (const auto& [placeholder, number] : numbers) {
    const size_t at = pattern.find(placeholder);
    if (at == std::string::npos) continue;
    pattern.replace(at, std::strlen(placeholder), std::to_string(number));
  }
  return pattern;
}

uint16_t Load16(const uint8_t* source) {
  uint16_t bits;
  std::memcpy(&bits, source, sizeof(bits));
  return bits;
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// A part of a tensor of uniform values in [offset - scale, offset + scale).
struct Fill {
  float* out;
  size_t count;
  uint32_t first;  // index in the tensor
  uint32_t key;
  float scale;
  float offset;
};

}  // namespace

void ConvertF16(const uint8_t* source, size_t count, float* out) noexcept {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t half = Load16(source + 2 * i);
    const uint32_t sign = (half & 0x8000u) << 16;
    const uint32_t magnitude = (half & 0x7FFFu) << 13;
    uint32_t bits;
    if (magnitude >= 0x0F800000u) {  // infinity, NaN: the exponent stays full
      bits = magnitude | 0x7F800000u;
    } else if (magnitude >= 0x00800000u) {
      bits = magnitude + (112u << 23);  // 127 - 15, the exponents' biases
    } else {
      // Zero and denormals are multiples of 2^-24: 2^-14 plus such a multiple
      // is exact in a float, and so is taking the 2^-14 away again.
      const float value = FromBits(magnitude + (113u << 23)) - 0x1p-14f;
      std::memcpy(&bits, &value, sizeof(bits));
    }
    out[i] = FromBits(bits | sign);
  }
}

void ConvertBf16(const uint8_t* source, size_t count, float* out) noexcept {
  for (size_t i = 0; i < count; ++i) {
    out[i] = FromBits(uint32_t{Load16(source + 2 * i)} << 16);
  }
}

LayerLoader::LayerLoader(std::shared_ptr<Checkpoint> checkpoint,
                         const ModelConfig& config, size_t layer)
    : label_("loading layer " + std::to_string(layer)) {
  const Family::Names& names = config.family().names;
  weights_.checkpoint = std::move(checkpoint);
  weights_.shape = config.shape();
  weights_.title = std::string(config.family().model_type) + ", layer " +
                   std::to_string(layer) + " of " +
                   std::to_string(config.num_layers());
  const uint64_t hidden = weights_.shape.hidden;
  const uint64_t num_experts = weights_.shape.num_experts;
  const bool last = layer + 1 == config.num_layers();

  const auto add = [&](const char* pattern, size_t expert,
                       const std::vector<uint64_t>& shape, const float** to) {
    Add(TensorName(pattern, layer, expert), shape, to);
  };
  const auto add_expert = [&](const char* gate, const char* up,
                              const char* down, size_t expert,
                              uint64_t intermediate, ExpertWeights* to) {
    add(gate, expert, {intermediate, hidden}, &to->gate);
    add(up, expert, {intermediate, hidden}, &to->up);
    add(down, expert, {hidden, intermediate}, &to->down);
  };
  add(names.norm, 0, {hidden}, &weights_.norm);
  Add(TensorName(last ? names.last_norm : names.next_norm, layer + 1, 0),
      {hidden}, &weights_.next_norm);
  // Before `experts` is sized: the file has to have that many rows.
  add(names.router, 0, {num_experts, hidden}, &weights_.router);
  weights_.experts.resize(num_experts);
  for (size_t e = 0; e < num_experts; ++e) {
    add_expert(names.gate, names.up, names.down, e, weights_.shape.intermediate,
               &weights_.experts[e]);
  }
  if (weights_.shape.shared_intermediate != 0) {
    add_expert(names.shared_gate, names.shared_up, names.shared_down, 0,
               weights_.shape.shared_intermediate, &weights_.shared);
    add(names.shared_logit, 0, {1, hidden}, &weights_.shared_logit);
  }
}

void LayerLoader::Add(const std::string& name,
                      const std::vector<uint64_t>& shape,
                      const float** target) {
  const auto [tensor, file] = weights_.checkpoint->Find(name, shape);
  size_t count = 1;  // does not overflow: the file holds that many
  for (const uint64_t dim : shape) count *= static_cast<size_t>(dim);
  const std::string where = file + ": tensor '" + name + "'";
  Job job{nullptr, tensor->data, count, target, where, shape};
  if (tensor->dtype == "F32") {
    const bool aligned =
        reinterpret_cast<uintptr_t>(tensor->data) % alignof(float) == 0;
    if (!aligned) job.convert = &CopyF32;
  } else if (tensor->dtype == "BF16") {
    job.convert = &ConvertBf16;
  } else if (tensor->dtype == "F16") {
    job.convert = &ConvertF16;
  } else {
    throw InputError(where + ": dtype " + tensor->dtype +
                     " is not supported; there are BF16, F16, F32");
  }
  jobs_.push_back(job);
  weights_.num_floats += count;
}

// Rounded up to a cache line; 0 for a tensor used in place.
size_t LayerLoader::Job::OwnedFloats() const {
  return convert == nullptr ? 0 : (count + 15) / 16 * 16;
}

LayerWeights LayerLoader::Load(switchyard::Executor& executor) {
  size_t total = 0;
  for (const Job& job : jobs_) total += job.OwnedFloats();
  RequireMemory(4.0 * static_cast<double>(total),
                weights_.checkpoint->ConfigPath());
  weights_.storage = FloatBuffer(total);
  float* next = weights_.storage.data();
  for (Job& job : jobs_) {
    if (job.OwnedFloats() == 0) {
      *job.target = reinterpret_cast<const float*>(job.source);
      continue;
    }
    *job.target = job.out = next;
    next += job.OwnedFloats();
  }

  Progress progress(label_, weights_.num_floats);
  example::ForEach(executor, jobs_.size(), 1, [&](size_t i) {
    Job& job = jobs_[i];
    if (job.convert != nullptr) job.convert(job.source, job.count, job.out);
    // Also brings in from the disk what is used in place, where progress is
    // shown, rather than during the first run.
    job.first_bad = FirstNonFinite(*job.target, job.count);
    progress.Add(job.count);
  });
  for (const Job& job : jobs_) {
    if (job.first_bad == SIZE_MAX) continue;
    // Every result that it touches would be NaN, right or wrong.
    throw InputError(job.name + ": " +
                     ElementText(*job.target, job.first_bad, job.shape) +
                     ", but weights have to be finite");
  }
  progress.Finish(BytesText(weights_.Bytes()));
  return std::move(weights_);
}

MoeShape DefaultShape() {
  MoeShape shape;
  shape.hidden = 2048;
  shape.intermediate = 768;
  shape.num_experts = 128;
  shape.top_k = 8;
  shape.renormalize = true;
  shape.norm_eps = 1e-6f;
  return shape;
}

LayerWeights GenerateLayer(const MoeShape& shape,
                           switchyard::Executor& executor) {
  const size_t hidden = shape.hidden;
  const size_t shared = shape.shared_intermediate;
  LayerWeights weights;
  weights.title = "generated, shaped like one of Qwen3-30B-A3B";
  weights.shape = shape;
  weights.num_floats =
      (2 + shape.num_experts) * hidden +
      3 * hidden * (shape.num_experts * shape.intermediate + shared) +
      (shared != 0 ? hidden : 0);
  RequireMemory(weights.Bytes(), "the generated layer");
  weights.storage = FloatBuffer(weights.num_floats);

  float* next = weights.storage.data();
  std::vector<Fill> parts;
  uint32_t num_tensors = 0;
  const auto add = [&](size_t count, float scale, float offset = 0) {
    // Small enough to share out among threads.
    constexpr size_t kPart = size_t{1} << 18;
    const uint32_t key = example::HashKey(++num_tensors);
    for (size_t at = 0; at < count; at += kPart) {
      parts.push_back({next + at, std::min(kPart, count - at),
                       static_cast<uint32_t>(at), key, scale, offset});
    }
    return std::exchange(next, next + count);
  };
  const auto add_expert = [&](size_t intermediate) {
    ExpertWeights expert;
    expert.gate = add(intermediate * hidden, UniformScale(1, hidden));
    expert.up = add(intermediate * hidden, UniformScale(1, hidden));
    // silu(gate) * up is around 0.6, and top_k of them are averaged.
    expert.down = add(hidden * intermediate, UniformScale(4, intermediate));
    return expert;
  };
  weights.norm = add(hidden, 0.1f, 1.0f);
  weights.next_norm = add(hidden, 0.1f, 1.0f);
  // Logits around 1.5 give the first of 8 selected experts about a quarter of
  // the weight.
  weights.router = add(shape.num_experts * hidden, UniformScale(1.5, hidden));
  for (size_t e = 0; e < shape.num_experts; ++e) {
    weights.experts.push_back(add_expert(shape.intermediate));
  }
  if (shared != 0) {
    weights.shared = add_expert(shared);
    weights.shared_logit = add(hidden, UniformScale(1, hidden));
  }

  Progress progress("generating weights", weights.num_floats);
  example::ForEach(executor, parts.size(), 1, [&](size_t p) {
    const Fill& fill = parts[p];
    for (uint32_t i = 0; i < fill.count; ++i) {
      fill.out[i] =
          fill.offset + fill.scale * HashUniform(fill.key, fill.first + i);
    }
    progress.Add(fill.count);
  });
  progress.Finish(BytesText(weights.Bytes()));
  return weights;
}

FloatBuffer GenerateHidden(size_t tokens, size_t hidden,
                           switchyard::Executor& executor) {
  FloatBuffer states(tokens * hidden);
  // Far from the numbers of the weights' streams.
  constexpr uint32_t kFirst = 0x80000000u;
  const uint32_t common = example::HashKey(kFirst);
  example::ForEach(executor, tokens, 8, [&](size_t t) {
    const uint32_t own =
        example::HashKey(kFirst + 1 + static_cast<uint32_t>(t));
    float* row = states.data() + t * hidden;
    for (uint32_t h = 0; h < hidden; ++h) {
      // The variance is 1: 0.4^2 + 0.917^2 is, and sqrt(3) makes each part's.
      row[h] = 1.7320508f *
               (0.4f * HashUniform(common, h) + 0.917f * HashUniform(own, h));
    }
  });
  return states;
}

}  // namespace moe_layer
