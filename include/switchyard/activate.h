// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The activation between an expert's products: gate and up become the input
// of the down product.

#ifndef SWITCHYARD_ACTIVATE_H_
#define SWITCHYARD_ACTIVATE_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// A function of a gate g and an up u.
enum class Activation : uint8_t {
  kSilu,      // silu(g) * u, silu(x) = x / (1 + exp(-x)): SwiGLU, most models
  kGelu,      // gelu(g) * u, gelu(x) = x / 2 * (1 + erf(x / sqrt(2)))
  kGeluTanh,  // the same with tanh(sqrt(2 / pi) (x + 0.044715 x^3)); Gemma
  kRelu,      // max(g, 0) * u; ungated: Switch, NLLB
  kRelu2,     // max(g, 0)^2 * u; ungated: Nemotron
  kIdentity,  // g * u
  // (u + 1) * g * sigmoid(alpha * g); gpt-oss, MiniMax-M3
  kSwigluOai,
  // SiTU-GLU, also called soft-capped SwiGLU:
  // beta tanh(g / beta) sigmoid(g) * linear_beta tanh(u / linear_beta);
  // Kimi K3, Inkling-2
  kSitu,
};

// The places of gate and up values.
enum class GateUpLayout : uint8_t {
  kSplit,         // two matrices, `gate` and `up`
  kConcatenated,  // `gate` holds both: [gate | up]; most models' fused GEMM
  kInterleaved,   // `gate` holds both: gate, up, gate, up, ...; gpt-oss
  kUngated,       // `gate` alone: f(g) of an activation f(g) * u
};

// The place of a step: before the activation or after it.
enum class ActivatePlace : uint8_t { kBefore, kAfter };

// Whether stores to out go through the caches. Results are the same.
enum class ActivateStores : uint8_t {
  // kStreaming if gate, up and out together are above kActivateStreamingBytes,
  // kCached otherwise.
  kAuto,
  // Ordinary stores: the next reader finds in the caches as much of out as
  // fits.
  kCached,
  // Streaming stores, past the caches: memory is not read before it is
  // written, and the caches keep their contents. In place, and if out is
  // quantised, this is kCached.
  kStreaming,
};

// From this size on, the caches nearest to the core no longer hold out when
// it is read. On one core with 2 MB of L2 and a share of a large L3,
// streaming takes 1.17 of the time of cached stores at 19 MB, 0.93 at 28 MB,
// 0.76 at 38 MB and 0.71 from 57 MB on.
constexpr size_t kActivateStreamingBytes = size_t{32} << 20;

// Matrices are f32, bf16 or f16, each with its own stride.
struct ActivateInputs {
  ConstAnyMatrix gate;     // [rows, cols], or both [rows, 2 * cols]
  ConstAnyMatrix up = {};  // [rows, cols] with kSplit, of gate's type
  // The fields below are optional.
  ConstAnyMatrix gate_bias = {};  // [num_experts, gate.cols], laid out like it
  ConstAnyMatrix up_bias = {};    // [num_experts, cols] with kSplit
  ConstAnyMatrix row_scale = {};  // [rows, 1], router weights for instance
  // The rows of each expert as BucketPacked writes them: [num_experts + 1];
  // rows [offsets[e], offsets[e + 1]) are expert e's, others are not computed.
  // May be a part of a longer list, for some of the experts.
  Span<const int32_t> offsets = {};
  // Or, for padded buckets, as BucketStrided writes it: [num_experts]; each
  // expert has rows / num_experts rows, and the first tokens_per_expert[e] of
  // them are computed.
  Span<const int32_t> tokens_per_expert = {};
};
struct ActivateOutputs {
  // [rows, cols] in any format of quantize.h. May be exactly gate or exactly
  // up, with kConcatenated exactly one half of gate: the same data, stride and
  // type.
  AnyRows out;
};
struct ActivateOptions {
  Activation activation = Activation::kSilu;
  GateUpLayout layout = GateUpLayout::kSplit;
  ActivateStores stores = ActivateStores::kAuto;
  float alpha = 1.702f;       // of kSwigluOai; these three are positive
  float beta = 4.0f;          // of kSitu
  float linear_beta = 25.0f;  // of kSitu
  // Clamps up to [-limit, limit] and the gate to at most limit: before the
  // activation (DeepSeek-V4, gpt-oss) or after it (Step). 0 is no limit.
  float limit = 0.0f;
  ActivatePlace limit_place = ActivatePlace::kBefore;
  // row_scale multiplies gate and up, as if the expert's input had been scaled
  // (Llama 4), or out (Inkling's shared experts).
  ActivatePlace row_scale_place = ActivatePlace::kAfter;
  // Round to gate's type wherever an engine that runs one operation after the
  // other does: see below.
  bool round_like_unfused = false;
};

// out[r, i] = activation(gate[r, i], up[r, i]), the step between an expert's
// gate/up GEMMs and its down GEMM. Rows are (token, expert) pairs, columns the
// expert's intermediate size.
//
// With every optional input given; s is row_scale, and the biases are the
// row's expert's (without offsets and tokens_per_expert there is one expert):
//   g = min(gate * s + gate_bias, limit)
//   u = clamp(up * s + up_bias, -limit, limit)
//   out = activation(g, u)
// or, with ActivatePlace::kAfter, min(f(g), limit) * u for an activation f(g)
// * u, and out * s. kUngated and a limit after the activation need an
// activation of the form f(g) * u.
//
// Rounding: the computation is in f32 and rounded once, to out's type. With
// round_like_unfused, where M is the rounding to gate's type, the steps are
// M(g), M(u), M(f(g)) and M of the product; for kSwigluOai M(M(u + 1) * M(g *
// M(sigmoid(M(alpha * g))))). kSitu is rounded once, because models that have
// it compute in f32.
//
// Overlap: out may lie in place as described at ActivateOutputs; it may not
// overlap an input in any other way. gate and up may overlap. The halves of a
// fused gate|up matrix are views of equal stride in disjoint columns, so out
// may be the gate half with kSplit, too. Zero rows or columns do nothing.
//
// Accuracy: silu is within 2.5 ulp of the exact function for x > -87.33655 and
// -0 below that, -inf included; silu(+inf) = +inf. gelu is within 6.5 ulp (3.5
// above 0) and ends at -13.146247. With tanh it is within 2.5 ulp above 0 and
// 2.5 + 3.5 |y| below, where it is x / (1 + e^|y|), and ends at -10.00104; tanh
// is within 2.5 ulp everywhere. kSwigluOai is within 4 ulp, and |alpha g| more
// if alpha g is below 0, because its product is rounded before the exponential;
// if it is -87.33655 or less, g * sigmoid(alpha * g) is -0, and out a zero of
// the sign of -(u + 1), or NaN if u is infinite. kSitu is within 10 ulp, and
// for g <= -87.33655, -inf included, a zero of the sign of -u. Both bounds hold
// if neither out nor a step on the way to it is denormal or infinite: g *
// sigmoid(alpha * g), g / beta, u / linear_beta, beta * linear_beta. NaN gives
// NaN. A function itself produces denormals only next to its zero.
//
// Bits: the same on every ISA with FMA and in every layout, except the sign
// and payload of a NaN: of two NaNs, AVX2 and AVX-512 pass on different ones.
// ISAs without FMA differ by a few ulp, in gelu below 0 by up to 80.
//
// Errors: kInvalidArgument names the argument, and nothing is written: null
// data, strides, types and shapes that do not match, an overlap, an option
// out of range, arguments that do not go together, a view beyond the address
// space. kFailedPrecondition, with nothing written, for descending offsets,
// negative counts, and offsets or counts that exceed the rows.
//
// It follows the Metal kernels silu_mul_stacked_f32 and silu_mul_batched_f32.
Status Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs,
                const ActivateOptions& options = {},
                Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_ACTIVATE_H_
