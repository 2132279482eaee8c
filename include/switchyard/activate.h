// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_ACTIVATE_H_
#define SWITCHYARD_ACTIVATE_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// What becomes of a gate g and an up u.
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

// Where an expert's gate and up values lie.
enum class GateUpLayout : uint8_t {
  kSplit,         // in two matrices, `gate` and `up`
  kConcatenated,  // `gate` holds both: [gate | up]; most models' fused GEMM
  kInterleaved,   // `gate` holds both: gate, up, gate, up, ...; gpt-oss
  kUngated,       // there is no up: f(g) of an activation f(g) * u
};

// On which side of the activation something is done.
enum class ActivatePlace : uint8_t { kBefore, kAfter };

// Whether out goes through the caches. Results are the same.
enum class ActivateStores : uint8_t {
  // kStreaming if gate, up and out together are above kActivateStreamingBytes,
  // kCached otherwise.
  kAuto,
  // The next reader finds what still fits in the caches.
  kCached,
  // Past the caches: memory is not read before it is written, and what the
  // caches hold stays there. In place this is kCached, the lines being in the
  // cache anyway; so it is where out is quantised.
  kStreaming,
};

// The rule: by then out has left the caches nearest to the core before it is
// read. On one core with 2 MB of L2 and a share of a large L3, streaming takes
// 1.17 of the time of cached stores at 19 MB, 0.93 at 28 MB, 0.76 at 38 MB,
// 0.71 from 57 MB on.
constexpr size_t kActivateStreamingBytes = size_t{32} << 20;

struct ActivateInputs {
  ConstAnyMatrix gate;     // [rows, cols], or both [rows, 2 * cols]
  ConstAnyMatrix up = {};  // [rows, cols] with kSplit
  // All below is optional.
  ConstAnyMatrix gate_bias = {};  // [num_experts, gate.cols], laid out like it
  ConstAnyMatrix up_bias = {};    // [num_experts, cols] with kSplit
  ConstAnyMatrix row_scale = {};  // [rows, 1], router weights for instance
  // Whose row is whose, as BucketPacked writes it: [num_experts + 1], rows
  // [offsets[e], offsets[e + 1]) are expert e's. Others are not computed. May
  // be a part of a longer list, of some experts.
  Span<const int32_t> offsets = {};
  // Or, for padded buckets, as BucketStrided writes it: [num_experts], each
  // expert having rows / num_experts rows, of which only the first
  // tokens_per_expert[e] are computed.
  Span<const int32_t> tokens_per_expert = {};
};
struct ActivateOutputs {
  AnyRows out;  // [rows, cols]
};
struct ActivateOptions {
  Activation activation = Activation::kSilu;
  GateUpLayout layout = GateUpLayout::kSplit;
  ActivateStores stores = ActivateStores::kAuto;
  float alpha = 1.702f;       // of kSwigluOai
  float beta = 4.0f;          // of kSitu
  float linear_beta = 25.0f;  // of kSitu
  // Clamps up to [-limit, limit], and the gate to at most limit: before the
  // activation (DeepSeek-V4, gpt-oss) or after it (Step). 0 is no limit.
  float limit = 0.0f;
  ActivatePlace limit_place = ActivatePlace::kBefore;
  // What row_scale multiplies: gate and up, as if the expert's input had been
  // scaled (Llama 4), or out (Inkling's shared experts).
  ActivatePlace row_scale_place = ActivatePlace::kAfter;
  // Round to gate's type wherever an engine that runs one operation after the
  // other does: see below.
  bool round_like_unfused = false;
};

// out[r, i] = activation(gate[r, i], up[r, i])
//
// Between an expert's gate/up GEMMs and its down GEMM; rows are (token, expert)
// pairs, columns the expert's intermediate size. From the Metal kernels
// silu_mul_stacked_f32 and silu_mul_batched_f32.
//
// With all that is optional, s being row_scale and bias that of the row's
// expert (of the only one if neither offsets nor tokens_per_expert is given):
//   g = min(gate * s + gate_bias, limit)
//   u = clamp(up * s + up_bias, -limit, limit)
//   out = activation(g, u)
// or, on the other side of it, min(f(g), limit) * u for an activation f(g) * u,
// and out * s. With round_like_unfused, M being the rounding to gate's type,
// instead M(g), M(u), M(f(g)), M of the product; for kSwigluOai M(M(u + 1) *
// M(g * M(sigmoid(M(alpha * g))))). kSitu is rounded once: models that have it
// compute in f32.
//
// Types: gate and up f32, bf16 or f16, both the same; biases and row_scale each
// any of those; out any format of quantize.h. Computed in f32, rounded once, to
// out's type.
// Shapes: as above, each with its own stride. Zero rows or columns do nothing.
// In place: out may be exactly gate or exactly up (same data, stride and type),
// with kConcatenated exactly one half of gate; any other overlap of out with an
// input is an error. gate and up may overlap. Two halves of a fused gate|up
// output are views of equal stride in disjoint columns, so out may be the gate
// half with kSplit, too.
// Values: silu is within 2.5 ulp of the exact function for x > -87.33655 and -0
// below that, -inf included; silu(+inf) = +inf. So is gelu, within 6.5 ulp (3.5
// above 0), with its end at -13.146247; its form with tanh, within 2.5 ulp
// above 0 and 2.5 + 3.5 |y| below, where it is x / (1 + e^|y|), with its end at
// -10.00104; tanh within 2.5 ulp everywhere. kSwigluOai is within 4 ulp, and
// |alpha g| more where alpha g is below 0, for its product is rounded before
// the exponential; where it is then -87.33655 or less, g * sigmoid(alpha * g)
// is -0, and so out a zero of the sign of -(u + 1), or NaN where u is infinite.
// kSitu is within 10 ulp, and for g <= -87.33655, -inf included, a zero of the
// sign of -u. Both bounds hold where neither out nor anything on the way to it
// is denormal or infinite: g * sigmoid(alpha * g), g / beta, u / linear_beta,
// beta * linear_beta. NaN gives NaN. No denormal is produced by a function
// itself but next to its zero. Same bits on every ISA with FMA and in every
// layout, but for a NaN's sign and payload: of two NaNs, AVX2 and AVX-512 hand
// on different ones. ISAs without FMA differ by a few ulp, in gelu below 0 by
// up to 80.
// Errors: kInvalidArgument for null data, stride < cols, shapes and types that
// do not match, up beside both in gate, a view larger than the address space,
// an overlap as above, an option outside its enumeration or range, limits after
// and kUngated with an activation that does more with up than to multiply by
// it; kFailedPrecondition for offsets that descend or tokens_per_expert below
// zero, or of more rows than there are; nothing written.
Status Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs,
                const ActivateOptions& options = {},
                Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_ACTIVATE_H_
