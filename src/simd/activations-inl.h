// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The functors that SWITCHYARD_ACTIVATIONS lists. They are constructed from the
// options, and called with a vector of gates, or with a vector of gates and a
// vector of ups. kHalves: rows of 16-bit types are read and written without
// tiles, because tiles took 1.2 to 1.4 times as long.

#if defined(SWITCHYARD_SRC_SIMD_ACTIVATIONS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_ACTIVATIONS_INL_H_
#undef SWITCHYARD_SRC_SIMD_ACTIVATIONS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_ACTIVATIONS_INL_H_
#endif

#include "switchyard/activate.h"

#include "hwy/highway.h"

#include "src/simd/gelu-inl.h"
#include "src/simd/hwy_compat-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// Returns +0 for x = -0 and x = +0. The maximum of +0 and -0 depends on the
// ISA, but with the bound -0, all ISAs give the same result.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Relu(D d, V x) {
  return hn::Add(MaxOrNaN(d, hn::Set(d, -0.0f), x), hn::Zero(d));
}

#define SWITCHYARD_OF_GATE(Name, halves, ...)            \
  struct Name {                                          \
    static constexpr bool kHalves = halves;              \
    explicit Name(const ActivateOptions& /*options*/) {} \
    template <class D, class V = hn::Vec<D>>             \
    HWY_INLINE V operator()(D d, V x) const {            \
      (void)d;                                           \
      return __VA_ARGS__;                                \
    }                                                    \
  }
SWITCHYARD_OF_GATE(SiluOf, true, Silu(d, x));
SWITCHYARD_OF_GATE(GeluOf, false, Gelu(d, x));
SWITCHYARD_OF_GATE(GeluTanhOf, true, GeluTanh(d, x));
SWITCHYARD_OF_GATE(ReluOf, false, Relu(d, x));
SWITCHYARD_OF_GATE(Relu2Of, false, hn::Mul(Relu(d, x), Relu(d, x)));
SWITCHYARD_OF_GATE(IdentityOf, false, x);
#undef SWITCHYARD_OF_GATE

template <class Gate>
struct TimesUp {
  static constexpr bool kHalves = Gate::kHalves;
  Gate of_gate;
  explicit TimesUp(const ActivateOptions& options) : of_gate(options) {}
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V gate, V up) const {
    return hn::Mul(of_gate(d, gate), up);
  }
};

// Clamps gate and up to the limit before the activation.
template <class Both>
struct Limited {
  static constexpr bool kHalves = Both::kHalves;
  Both both;
  float limit;
  explicit Limited(const ActivateOptions& options)
      : both(options), limit(options.limit) {}
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V gate, V up) const {
    const V most = hn::Set(d, limit);
    return both(d, MinOrNaN(d, most, gate),
                MaxOrNaN(d, hn::Neg(most), MinOrNaN(d, most, up)));
  }
};

// Computes (up + 1) * gate * sigmoid(alpha * gate).
struct SwigluOaiOf {
  static constexpr bool kHalves = true;
  float alpha;
  explicit SwigluOaiOf(const ActivateOptions& options) : alpha(options.alpha) {}
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V gate, V up) const {
    const V one = hn::Set(d, 1.0f);
    const V x = hn::Mul(gate, hn::Set(d, alpha));
    const V acted =
        DivUnless(d, hn::Le(x, hn::Set(d, kExpFlush)), hn::Set(d, -0.0f), gate,
                  hn::Add(one, ExpOfNegated(d, x)));
    return hn::Mul(acted, hn::Add(up, one));
  }
};

// Computes beta tanh(gate / beta) sigmoid(gate) * linear_beta tanh(up /
// linear_beta), with one division for both tanh and the sigmoid.
struct SituOf {
  static constexpr bool kHalves = false;
  float inverse_beta, inverse_linear_beta, product;
  explicit SituOf(const ActivateOptions& options)
      : inverse_beta(1.0f / options.beta),
        inverse_linear_beta(1.0f / options.linear_beta),
        product(options.beta * options.linear_beta) {}
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V gate, V up) const {
    V gates, below_gates, ups, below_ups;
    TanhParts(d, hn::Mul(gate, hn::Set(d, inverse_beta)), gates, below_gates);
    TanhParts(d, hn::Mul(up, hn::Set(d, inverse_linear_beta)), ups, below_ups);
    const V sigmoid = hn::Add(hn::Set(d, 1.0f), ExpOfNegated(d, gate));
    // If the sigmoid is 0, the result is a zero with the sign of the product.
    return DivUnless(d, hn::Le(gate, hn::Set(d, kExpFlush)),
                     hn::Mul(hn::Set(d, -0.0f), ups),
                     hn::Mul(hn::Mul(gates, hn::Set(d, product)), ups),
                     hn::Mul(hn::Mul(below_gates, below_ups), sigmoid));
  }
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_ACTIVATIONS_INL_H_
