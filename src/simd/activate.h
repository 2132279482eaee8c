// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_SRC_SIMD_ACTIVATE_H_
#define SWITCHYARD_SRC_SIMD_ACTIVATE_H_

#include <cstddef>

#include "src/simd/row_function.h"
#include "switchyard/activate.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

namespace switchyard::simd {

// Each Activation with its name, its functor in activate_tiles.cc, and whether
// that is one of the gate alone, which up is then multiplied by.
#define SWITCHYARD_ACTIVATIONS(X)                 \
  X(kSilu, "silu", SiluOf, true)                  \
  X(kGelu, "gelu", GeluOf, true)                  \
  X(kGeluTanh, "gelu_tanh", GeluTanhOf, true)     \
  X(kRelu, "relu", ReluOf, true)                  \
  X(kRelu2, "relu2", Relu2Of, true)               \
  X(kIdentity, "identity", IdentityOf, true)      \
  X(kSwigluOai, "swiglu_oai", SwigluOaiOf, false) \
  X(kSitu, "situ", SituOf, false)

// Whether an activation is f(gate) * up: ungated there is f(gate), and a limit
// may come after it.
constexpr bool IsOfGate(Activation activation) {
#define SWITCHYARD_CASE(name, text, Function, of_gate) \
  case Activation::name:                               \
    return of_gate;
  switch (activation) { SWITCHYARD_ACTIVATIONS(SWITCHYARD_CASE) }
#undef SWITCHYARD_CASE
  return false;
}

// Checked: gate and up have out's shape, or, interleaved, gate has both. out is
// gate, up or disjoint from them.
struct ActivateArgs {
  // References, because loading a copy of views that were just stored takes a
  // single row as long as all of its checks.
  const ConstAnyMatrix& gate;
  const ConstAnyMatrix& up;  // without data if ungated or interleaved
  const AnyRows& out;
  bool interleaved;
  bool streaming;  // stores bypass the caches
};

// SiLU and a product, from gate and up of type `in`.
RowFunction<ActivateArgs> ActivateRows(Type in) noexcept;

// Everything else, of any types.
struct ActivateTilesArgs {
  const ActivateArgs& rows;
  const ActivateInputs& inputs;
  const ActivateOptions& options;
  const ConstAnyMatrix& gate_bias;  // without data if there are none
  const ConstAnyMatrix& up_bias;
  bool gated;
};
RowFunction<ActivateTilesArgs> ActivateTiles() noexcept;

}  // namespace switchyard::simd

#endif  // SWITCHYARD_SRC_SIMD_ACTIVATE_H_
