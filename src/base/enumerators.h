// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Lists of the enumerators that decide how a row is computed, with names and
// with facts about each. Kernels, checks, references, tests, benchmarks, the
// corpus and Python loop over these lists.

#ifndef SWITCHYARD_SRC_BASE_ENUMERATORS_H_
#define SWITCHYARD_SRC_BASE_ENUMERATORS_H_

#include <cstdint>

#include "switchyard/activate.h"
#include "switchyard/route.h"

namespace switchyard::internal {

// A line for each Score: its name, its functor in route_scores-inl.h, its
// ScoreKind, and whether it is never negative and grows with x. If so, the
// scores of the top_k largest x add up to at least top_k / experts of the sum
// of all scores. All other code that depends on a score is a switch without a
// default, so that -Werror=switch refuses a score without a case.
#define SWITCHYARD_SCORES(X)                                        \
  X(kSoftmax, "softmax", SoftmaxOf, kShareOfAll, true)              \
  X(kSigmoid, "sigmoid", SigmoidOf, kOfLogit, true)                 \
  X(kSqrtSoftplus, "sqrt_softplus", SqrtSoftplusOf, kOfLogit, true) \
  X(kRaw, "raw", RawOf, kOfLogit, false)                            \
  X(kSparsemixer, "sparsemixer", RawOf, kInRounds, false)

enum class ScoreKind : uint8_t {
  kShareOfAll,  // the functor's value divided by the sum over all experts
  kOfLogit,     // the functor's value
  kInRounds,    // a softmax, in each of two rounds of selection
};

#define SWITCHYARD_CASE(name, text, F, kind, grows) \
  case Score::name:                                 \
    return ScoreKind::kind;
constexpr ScoreKind KindOf(Score score) {
  switch (score) { SWITCHYARD_SCORES(SWITCHYARD_CASE) }
  return ScoreKind::kOfLogit;
}
#undef SWITCHYARD_CASE
#define SWITCHYARD_CASE(name, text, F, kind, grows) \
  case Score::name:                                 \
    return grows;
constexpr bool GrowsFromZero(Score score) {
  switch (score) { SWITCHYARD_SCORES(SWITCHYARD_CASE) }
  return false;
}
#undef SWITCHYARD_CASE

// The other enumerations of RouteOptions, in lists like SWITCHYARD_SCORES.
//
// For each WeightOf: its name, and the Score that turns a logit into a weight.
#define SWITCHYARD_WEIGHTS_OF(X)                                \
  X(kScore, "score", options.score)                             \
  X(kSoftmaxOfSelected, "softmax_of_selected", Score::kSoftmax) \
  X(kSigmoidOfSelected, "sigmoid_of_selected", Score::kSigmoid)
// For each Divisor: its name, and whether it uses eps. (With softmax and a
// divisor without eps, exp(x - max) is not divided by the sum over all experts,
// because this sum cancels in the weights.)
#define SWITCHYARD_DIVISORS(X)                        \
  X(kMaxOfSumAndShare, "max_of_sum_and_share", false) \
  X(kSum, "sum", false)                               \
  X(kSumPlusEps, "sum_plus_eps", true)                \
  X(kMaxOfSumAndEps, "max_of_sum_and_eps", true)
// For each BiasPlace: its name, and whether the bias is added to the score.
#define SWITCHYARD_BIAS_PLACES(X) \
  X(kScore, "score", true)        \
  X(kLogit, "logit", false)

#define SWITCHYARD_CASE(name, text, value) \
  case Listed::name:                       \
    return value;
constexpr Score ValueScore(const RouteOptions& options) {
  using Listed = WeightOf;
  switch (options.weight_of) { SWITCHYARD_WEIGHTS_OF(SWITCHYARD_CASE) }
  return options.score;
}
constexpr bool TakesEps(Divisor divisor) {
  using Listed = Divisor;
  switch (divisor) { SWITCHYARD_DIVISORS(SWITCHYARD_CASE) }
  return false;
}
constexpr bool IsOnScore(BiasPlace place) {
  using Listed = BiasPlace;
  switch (place) { SWITCHYARD_BIAS_PLACES(SWITCHYARD_CASE) }
  return true;
}
#undef SWITCHYARD_CASE

// For each Activation: its name, its functor in activations-inl.h, and whether
// the functor takes only the gate (its result is then multiplied by up).
#define SWITCHYARD_ACTIVATIONS(X)                 \
  X(kSilu, "silu", SiluOf, true)                  \
  X(kGelu, "gelu", GeluOf, true)                  \
  X(kGeluTanh, "gelu_tanh", GeluTanhOf, true)     \
  X(kRelu, "relu", ReluOf, true)                  \
  X(kRelu2, "relu2", Relu2Of, true)               \
  X(kIdentity, "identity", IdentityOf, true)      \
  X(kSwigluOai, "swiglu_oai", SwigluOaiOf, false) \
  X(kSitu, "situ", SituOf, false)

// True if an activation is f(gate) * up. Only such an activation may be ungated
// (f(gate)), or have a limit after f.
constexpr bool IsOfGate(Activation activation) {
#define SWITCHYARD_CASE(name, text, Function, of_gate) \
  case Activation::name:                               \
    return of_gate;
  switch (activation) { SWITCHYARD_ACTIVATIONS(SWITCHYARD_CASE) }
#undef SWITCHYARD_CASE
  return false;
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BASE_ENUMERATORS_H_
