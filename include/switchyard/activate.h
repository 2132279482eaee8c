// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The activation of an expert, which computes the input of its down product
// from the outputs of its gate and up products.

#ifndef SWITCHYARD_ACTIVATE_H_
#define SWITCHYARD_ACTIVATE_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// The function to compute. g is a value of the gate product, u the value of
// the up product at the same row and column.
enum class Activation : uint8_t {
  kSilu,  // silu(g) * u, silu(x) = x / (1 + exp(-x)): SwiGLU, most models
  kGelu,  // gelu(g) * u, gelu(x) = x / 2 * (1 + erf(x / sqrt(2)))
  // kGelu with tanh(sqrt(2 / pi) (x + 0.044715 x^3)) instead of erf(...);
  // Gemma
  kGeluTanh,
  kRelu,      // max(g, 0) * u; Switch and NLLB have no u (kUngated)
  kRelu2,     // max(g, 0)^2 * u; Nemotron has no u (kUngated)
  kIdentity,  // g * u
  // (u + 1) * g * sigmoid(alpha * g); gpt-oss, MiniMax-M3
  kSwigluOai,
  // SiTU-GLU, also called soft-capped SwiGLU:
  // beta tanh(g / beta) sigmoid(g) * linear_beta tanh(u / linear_beta);
  // Kimi K3, Inkling-2
  kSitu,
};

// Where the values of gate and up lie.
enum class GateUpLayout : uint8_t {
  kSplit,         // two matrices, `gate` and `up`
  kConcatenated,  // `gate` holds both: [gate | up]; most models' fused GEMM
  kInterleaved,   // `gate` holds both: gate, up, gate, up, ...; gpt-oss
  kUngated,       // the expert has no up: the result is f(g), not f(g) * u
};

// Whether a step (the limit, row_scale) runs before or after the activation.
enum class ActivatePlace : uint8_t {
  kBefore,  // before the activation
  kAfter    // after the activation
};

// Whether stores to `out` go through the caches. The results are the same
// either way.
enum class ActivateStores : uint8_t {
  // kStreaming if gate, up and out together have more bytes than
  // kActivateStreamingBytes, kCached otherwise.
  kAuto,
  // Ordinary stores: the next reader finds `out`, or the part that fits, in
  // the caches.
  kCached,
  // Streaming stores, which bypass the caches: memory is not read before it
  // is written, and the caches keep their contents. If out is in place or
  // quantised, the call uses ordinary stores.
  kStreaming,
};

// ActivateStores::kAuto streams above this size, because a larger out is no
// longer in the caches near the core when the down product reads it. On one
// core with 2 MB of L2 and a share of a large L3, streaming takes 1.17 times
// as long as cached stores at 19 MB, 0.93 times at 28 MB, 0.76 times at 38 MB
// and 0.71 times from 57 MB on.
constexpr size_t kActivateStreamingBytes = size_t{32} << 20;

// Inputs of Activate(). Matrices are f32, bf16 or f16, each with its own
// stride. `gate` is always required, and `up` is required with
// GateUpLayout::kSplit.
struct ActivateInputs {
  // Output of the gate product: [rows, cols], or [rows, 2 * cols] if it also
  // holds up.
  ConstAnyMatrix gate;
  // Output of the up product, with GateUpLayout::kSplit only: [rows, cols],
  // of gate's type.
  ConstAnyMatrix up = {};
  // Optional [num_experts, gate.cols]: biases that are added to gate, laid
  // out like gate.
  ConstAnyMatrix gate_bias = {};
  // Optional [num_experts, cols], with GateUpLayout::kSplit only: biases that
  // are added to up.
  ConstAnyMatrix up_bias = {};
  // Optional [rows, 1]: a factor for each row, such as the router's weights.
  ConstAnyMatrix row_scale = {};
  // Optional [num_experts + 1], as BucketPacked writes it: expert e has rows
  // [offsets[e], offsets[e + 1]). Rows that belong to no expert are not
  // computed. To compute only experts [a, b), pass elements a to b of the
  // list.
  Span<const int32_t> offsets = {};
  // Optional [num_experts], as BucketStrided writes it. It replaces `offsets`
  // for padded buckets, in which each expert has rows / num_experts rows. The
  // first tokens_per_expert[e] rows of expert e are computed.
  Span<const int32_t> tokens_per_expert = {};
};
// Outputs of Activate().
struct ActivateOutputs {
  // [rows, cols] in any format of quantize.h. May overwrite an input in
  // place, if it has the data, stride and type of that input: gate, up or,
  // with kConcatenated, one half of gate.
  AnyRows out;
};
// Options of Activate().
struct ActivateOptions {
  Activation activation = Activation::kSilu;      // the function
  GateUpLayout layout = GateUpLayout::kSplit;     // where gate and up lie
  ActivateStores stores = ActivateStores::kAuto;  // how out is stored
  float alpha = 1.702f;       // for Activation::kSwigluOai, positive
  float beta = 4.0f;          // for Activation::kSitu, positive
  float linear_beta = 25.0f;  // for Activation::kSitu, positive
  // Clamps u to [-limit, limit]. Also clamps g to at most limit before the
  // activation (DeepSeek-V4, gpt-oss), or f(g) after it (Step-3.7). 0 means no
  // limit.
  float limit = 0.0f;
  // Whether the limit applies before or after the activation.
  ActivatePlace limit_place = ActivatePlace::kBefore;
  // With kBefore, row_scale multiplies gate and up, as if the expert's input
  // had been scaled (Llama 4). With kAfter, row_scale multiplies `out`
  // (Inkling's shared experts).
  ActivatePlace row_scale_place = ActivatePlace::kAfter;
  // Round each step to gate's type, like an engine that runs one operation
  // after the other. Activate() lists the steps.
  bool round_like_unfused = false;
};

// Computes out[r, i] = activation(gate[r, i], up[r, i]), the step between an
// expert's gate/up GEMMs and its down GEMM. A row is a (token, expert) pair.
// The number of columns is the expert's intermediate size.
//
// With every optional input, Activate computes the following. For row r of
// expert e, s is row_scale[r], and the biases are elements of row e of
// gate_bias and up_bias. Without offsets and tokens_per_expert, all rows
// belong to one expert.
//   g = min(gate * s + gate_bias, limit)
//   u = clamp(up * s + up_bias, -limit, limit)
//   out = activation(g, u)
// With limit_place kAfter, g is not limited, and an activation f(g) * u gives
// out = min(f(g), limit) * u. With row_scale_place kAfter, s multiplies `out`
// instead of gate and up. kUngated and a limit after the activation need an
// activation of the form f(g) * u.
//
// Rounding: results are computed in f32 and rounded once, to out's type. With
// round_like_unfused, each step is rounded to gate's type. If M is this
// rounding, the steps are M(g), M(u), M(f(g)) and M of the product; for
// kSwigluOai they are M(M(u + 1) * M(g * M(sigmoid(M(alpha * g))))). kSitu is
// rounded once, because models that have it compute in f32.
//
// Overlap: out may overwrite an input as described at ActivateOutputs, and
// may not overlap an input in any other way. gate and up may overlap each
// other. With kSplit, gate and up may be the two halves of one matrix, and
// out may be the gate half: the views have equal strides and different
// columns. With zero rows or columns the call does nothing.
//
// Accuracy, compared with the exact function. NaN gives NaN.
// * silu: within 2.5 ulp for x > -87.33655. Below that, and for -inf, it is
//   -0. silu(+inf) = +inf.
// * gelu: within 6.5 ulp, and within 3.5 above 0. From -13.146247 down it is
//   -0.
// * gelu with tanh, written as x / (1 + e^-y): within 2.5 ulp above 0, and
//   within 2.5 + 3.5 |y| ulp below 0. From -10.00104 down it is -0.
// * tanh: within 2.5 ulp.
// * kSwigluOai: within 4 ulp, or within 4 + |alpha g| ulp if alpha g is
//   negative, because that product is rounded before the exponential. If alpha
//   g is -87.33655 or less, g * sigmoid(alpha * g) is -0, and out is a zero
//   with the sign of -(u + 1), or NaN if u is infinite.
// * kSitu: within 10 ulp. If g is -87.33655 or less, -inf included, out is a
//   zero with the sign of -u.
// The bounds of kSwigluOai and kSitu hold if neither out nor an intermediate
// value is denormal or infinite. The intermediate values are g *
// sigmoid(alpha * g), g / beta, u / linear_beta and beta * linear_beta. An
// activation itself gives a denormal result only for inputs near 0.
//
// Bits: every ISA with FMA and every layout give the same bits, except for
// the sign and payload of a NaN: if both operands of an operation are NaN, AVX2
// and AVX-512 return different NaNs. ISAs without FMA differ by a few ulp, and
// by up to 80 ulp in gelu below 0.
//
// Errors, after which nothing has been written:
// * kInvalidArgument names the argument: null data, strides, types and shapes
//   that do not match, an overlap, an option out of range, a combination of
//   arguments that is not allowed, a view beyond the address space.
// * kFailedPrecondition: descending offsets, negative counts, and offsets or
//   counts that exceed the rows.
//
// The function follows the Metal kernels silu_mul_stacked_f32 and
// silu_mul_batched_f32.
Status Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs,
                const ActivateOptions& options = {},
                Executor& executor = SerialExecutor()) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_ACTIVATE_H_
