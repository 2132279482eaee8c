// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The plain rivals of the kernels on rows. (See plain-inl.h.)

#include <cmath>
#include <cstring>
#include <type_traits>

#include "bench/plain-inl.h"
#include "bench/rivals.h"

namespace switchyard::bench::plain {
namespace {

// Returns the largest magnitude. Compares the bits as integers, which have the
// same order as the magnitudes, because the compiler may reorder and vectorise
// maxima of integers.
template <class T>
inline float Amax(const T* row, size_t size) {
  uint32_t max = 0;
  for (size_t i = 0; i < size; ++i) {
    const uint32_t bits = Bits(Load(row[i])) & 0x7FFFFFFF;
    max = bits > max ? bits : max;
  }
  return FromBits(max);
}

// Rounds to nearest, with ties to even. Uses std::rint, because the compiler
// cannot fuse std::rint with a product.
inline int8_t ToInt8(float f) {
  return static_cast<int8_t>(static_cast<int32_t>(std::rint(f)));
}

// Rounds to nearest. |f| must be at most 448.
inline uint8_t ToF8E4M3(float f) {
  const uint32_t bits = Bits(f) & 0x7FFFFFFF, sign = Bits(f) >> 24 & 0x80;
  const uint32_t normal = ((bits + 0x7FFFF + (bits >> 20 & 1)) >> 20) - 0x3C0;
  const uint32_t denormal = Bits(FromBits(bits) + 0x1p14f) & 0xFF;
  return static_cast<uint8_t>(sign | (bits < 0x3C800000 ? denormal : normal));
}

// Rounds to nearest. f has to be a normal number in the type's range.
inline Float16 ToF16(float f) {
  const uint32_t bits = Bits(f);
  const uint32_t rounded = bits + 0xFFF + (bits >> 13 & 1);
  return {static_cast<uint16_t>((rounded >> 13) - (112 << 10))};
}

template <class T>
void ToBlocks(const T* row, size_t size, BlockQ8_0* blocks) {
  for (size_t b = 0; b < size / 32; ++b) {
    const float d = Amax(row + 32 * b, 32) / 127.0f;
    const float factor = d == 0.0f ? 0.0f : 1.0f / d;
    blocks[b].d = ToF16(d);
    for (size_t i = 0; i < 32; ++i) {  // rounds halves away from zero
      const float x = Load(row[32 * b + i]) * factor;
      const float magnitude = FromBits(Bits(x) & 0x7FFFFFFF);
      const auto code = static_cast<int32_t>(magnitude + 0x1.fffffep-2f);
      blocks[b].qs[i] = static_cast<int8_t>(x < 0.0f ? -code : code);
    }
  }
}

template <class T>
void Quantize(const Matrix<const T>& rows, const AnyRows& out) {
  for (size_t r = 0; r < rows.rows; ++r) {
    const T* __restrict const row = rows.Row(r);
    if (out.type == Type::kBF16) {
      BFloat16* __restrict const to = out.Row<BFloat16>(r);
      for (size_t c = 0; c < rows.cols; ++c) Store(Load(row[c]), &to[c]);
      continue;
    }
    if (out.type == Type::kQ8_0) {
      ToBlocks(row, rows.cols,
               static_cast<BlockQ8_0*>(out.data) + r * (rows.cols / 32));
      continue;
    }
    const float amax = Amax(row, rows.cols);
    const float largest = out.type == Type::kI8 ? 127.0f : 448.0f;
    const float factor = amax == 0.0f ? 0.0f : largest / amax;
    *out.scales.Row<float>(r) = amax / largest;
    uint8_t* __restrict const to = out.Row<uint8_t>(r);
    if (out.type == Type::kI8) {
      for (size_t c = 0; c < rows.cols; ++c) {
        to[c] = static_cast<uint8_t>(ToInt8(Load(row[c]) * factor));
      }
    } else {
      for (size_t c = 0; c < rows.cols; ++c) {
        to[c] = ToF8E4M3(Load(row[c]) * factor);
      }
    }
  }
}

template <class T>
void Activate(const ActivateInputs& inputs, const Matrix<T>& out) {
  const auto gates = inputs.gate.As<T>(), ups = inputs.up.As<T>();
  for (size_t r = 0; r < out.rows; ++r) {
    const T* __restrict const gate = gates.Row(r);
    const T* __restrict const up = ups.Row(r);
    T* __restrict const o = out.Row(r);
    const auto silu_mul = [=](size_t c) {
      const float g = Load(gate[c]);
      Store(g * Load(up[c]) / (1.0f + Exp(-g)), &o[c]);
    };
    size_t c = 0;
    // Processes kLanes columns at a time, because GCC 12 then unrolls the loop
    // and makes it 1.1 times as fast.
    for (; c + kLanes <= out.cols; c += kLanes) {
      for (size_t l = 0; l < kLanes; ++l) silu_mul(c + l);
    }
    for (; c < out.cols; ++c) silu_mul(c);
  }
}

// Returns the activation's result for a gate value `g` and an up value `u`, for
// example SiLU(g) * u.
inline float Activated(const ActivateOptions& options, float g, float u) {
  switch (options.activation) {
    case Activation::kGelu:
      return 0.5f * g * (1.0f + std::erf(g * 0.70710678f)) * u;
    case Activation::kGeluTanh:
      return g / (1.0f + Exp(-1.5957691f * (g + 0.044715f * g * g * g))) * u;
    case Activation::kRelu2:
      return g > 0.0f ? g * g * u : 0.0f;
    case Activation::kSwigluOai:
      return (u + 1.0f) * g / (1.0f + Exp(-options.alpha * g));
    case Activation::kSitu:
      return options.beta * std::tanh(g / options.beta) / (1.0f + Exp(-g)) *
             options.linear_beta * std::tanh(u / options.linear_beta);
    default:
      return g * u / (1.0f + Exp(-g));
  }
}
template <class T>
void Activate(const ActivateInputs& inputs, const Matrix<T>& out,
              const ActivateOptions& options) {
  const auto gates = inputs.gate.As<T>(), ups = inputs.up.As<T>();
  const float limit = options.limit == 0.0f ? HUGE_VALF : options.limit;
  for (size_t r = 0; r < out.rows; ++r) {
    const T* __restrict const gate = gates.Row(r);
    const T* __restrict const up = ups.Row(r);
    T* __restrict const o = out.Row(r);
    for (size_t c = 0; c < out.cols; ++c) {
      const float g = Load(gate[c]), u = Load(up[c]);
      const float below = g < limit ? g : limit;
      const float within = u < -limit ? -limit : u < limit ? u : limit;
      Store(Activated(options, below, within), &o[c]);
    }
  }
}

// Returns the memory for a row's sums in f32: the output row itself if it is
// f32, otherwise `buffer`.
inline float* Sums(float* out, float*) { return out; }
inline float* Sums(BFloat16*, float* buffer) { return buffer; }

template <class T>
void Combine(const CombineInputs& inputs, const Matrix<T>& outs,
             const Matrix<T>& normeds, float eps) {
  const auto rows = inputs.rows.As<T>();
  const auto weights = inputs.topk_weights.As<float>();
  const auto row_index = inputs.row_index.As<int32_t>();
  const auto residuals = inputs.residual.As<T>();
  const float* __restrict const norm_weight =
      inputs.norm_weight.As<float>().data;
  static float buffer[kMaxHidden];
  for (size_t t = 0; t < outs.rows; ++t) {
    float w[kTopK];
    const T* from[kTopK];
    for (size_t s = 0; s < kTopK; ++s) {
      w[s] = weights.Row(t)[s];
      from[s] = rows.Row(row_index.data == nullptr
                             ? t * kTopK + s
                             : static_cast<size_t>(row_index.Row(t)[s]));
    }
    const T* __restrict const residual = residuals.Row(t);
    T* __restrict const out = outs.Row(t);
    T* __restrict const normed = normeds.Row(t);
    float* __restrict const sums = Sums(out, buffer);
    float squares[kLanes] = {};
    for (size_t h = 0; h < outs.cols; h += kLanes) {
      for (size_t l = 0; l < kLanes; ++l) {
        const size_t at = h + l;
        const float sum =
            ((w[0] * Load(from[0][at]) + w[1] * Load(from[1][at])) +
             (w[2] * Load(from[2][at]) + w[3] * Load(from[3][at]))) +
            ((w[4] * Load(from[4][at]) + w[5] * Load(from[5][at])) +
             (w[6] * Load(from[6][at]) + w[7] * Load(from[7][at]))) +
            Load(residual[at]);
        sums[at] = sum;
        if constexpr (!std::is_same_v<T, float>) Store(sum, &out[at]);
        squares[l] += sum * sum;
      }
    }
    const float mean = Sum(squares) / static_cast<float>(outs.cols);
    const float scale = 1.0f / std::sqrt(mean + eps);
    for (size_t h = 0; h < outs.cols; ++h) {
      Store(sums[h] * scale * norm_weight[h], &normed[h]);
    }
  }
}

// Adds the squares of a row to kLanes partial sums. `size` is a multiple of
// kLanes.
void AddSquares(const float* row, size_t size, float (&squares)[kLanes]) {
  for (size_t i = 0; i < size; i += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) squares[l] += row[i + l] * row[i + l];
  }
}

}  // namespace

void Quantize(const QuantizeInputs& inputs, const QuantizeOutputs& outputs) {
  WithElement(inputs.from.type, [&](auto element) {
    Quantize(inputs.from.As<decltype(element)>(), outputs.rows);
  });
}

void GatherRows(const GatherInputs& inputs, const GatherOutputs& outputs) {
  const size_t bytes = BytesOf(inputs.tokens.type, inputs.tokens.cols);
  const char* const tokens = static_cast<const char*>(inputs.tokens.data);
  char* const rows = static_cast<char*>(outputs.rows.data);
  for (size_t r = 0; r < outputs.rows.rows; ++r) {
    const size_t pair = static_cast<size_t>(inputs.pairs.data[r]);
    std::memcpy(rows + r * bytes, tokens + pair / inputs.topk_ids.cols * bytes,
                bytes);
  }
}

void Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs) {
  WithElement(inputs.gate.type, [&](auto element) {
    Activate(inputs, outputs.out.As<decltype(element)>());
  });
}

void Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs,
              const ActivateOptions& options) {
  WithElement(inputs.gate.type, [&](auto element) {
    Activate(inputs, outputs.out.As<decltype(element)>(), options);
  });
}

void Combine(const CombineInputs& inputs, const CombineOutputs& outputs,
             float eps) {
  WithElement(inputs.rows.type, [&](auto element) {
    using T = decltype(element);
    Combine(inputs, outputs.out.As<T>(), outputs.normed.As<T>(), eps);
  });
}

void HyperConnect(const HyperInputs& inputs, const HyperOutputs& outputs,
                  const HyperOptions& options) {
  const auto streams = inputs.streams.As<float>();
  const auto mixed = outputs.streams.As<float>();
  const size_t n = options.num_streams, hidden = streams.cols;
  const auto scale_of = [&](float squares, size_t size) {
    return 1.0f / std::sqrt(squares / static_cast<float>(size) + options.eps);
  };
  for (size_t t = 0; t < streams.rows / n; ++t) {
    const float* rows = streams.Row(t * n);
    if (mixed.data != nullptr) {
      const float* const block = inputs.block.As<float>().Row(t);
      const float* const post = inputs.post.As<float>().Row(t);
      const float* const comb = inputs.comb.As<float>().Row(t);
      float squares[kLanes] = {};
      for (size_t i = 0; i < n; ++i) {
        float* const to = mixed.Row(t * n + i);
        for (size_t h = 0; h < hidden; ++h) to[h] = post[i] * block[h];
        for (size_t j = 0; j < n; ++j) {
          const float share = comb[j * n + i];
          const float* const from = rows + j * hidden;
          for (size_t h = 0; h < hidden; ++h) to[h] += share * from[h];
        }
        AddSquares(to, hidden, squares);
      }
      outputs.scales.As<float>().Row(t)[0] = scale_of(Sum(squares), n * hidden);
      rows = mixed.Row(t * n);
    }
    if (outputs.out.data == nullptr) continue;
    const float* const pre = inputs.pre.As<float>().Row(t);
    const float* const weight = inputs.norm_weight.As<float>().Row(0);
    float* const out = outputs.out.As<float>().Row(t);
    float* const normed = outputs.normed.As<float>().Row(t);
    for (size_t h = 0; h < hidden; ++h) out[h] = pre[0] * rows[h];
    for (size_t i = 1; i < n; ++i) {
      const float* const from = rows + i * hidden;
      for (size_t h = 0; h < hidden; ++h) out[h] += pre[i] * from[h];
    }
    float squares[kLanes] = {};
    AddSquares(out, hidden, squares);
    const float scale = scale_of(Sum(squares), hidden);
    for (size_t h = 0; h < hidden; ++h) normed[h] = out[h] * scale * weight[h];
  }
}

}  // namespace switchyard::bench::plain
