// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_REFERENCE_CHECK_H_
#define SWITCHYARD_PROGRAMS_MOE_REFERENCE_CHECK_H_

#include <cstddef>
#include <string>
#include <vector>

#include "layer_weights.h"
#include "moe_block.h"
#include "switchyard/executor.h"
#include "switchyard/views.h"

namespace moe_layer {

// The difference of one kind of result from its double-precision value. A
// result may be off by a share of the root mean square of its row, and by one
// rounding to its type. The share is 2^-16; it is 2^-6 in bf16 and 2^-4 in
// int8 if operands are rounded between products, because they may be rounded
// to the other side. The largest shares found, on ten families and a generated
// layer, are 2^-18, 2^-7.6 and 2^-6.1.
struct Difference {
  std::string what;
  double largest = 0;  // |result - exact|
  double bound = 0;    // the largest valid error of that element
  double closest = 0;  // the largest share of its bound that any element uses
  // The element that uses most of its bound.
  size_t token = 0;
  size_t column = 0;
  double result = 0;
  double exact = 0;

  bool Holds() const { return closest <= 1; }
};

struct CheckReport {
  size_t tokens = 0;  // checked tokens
  // The sharp test: each step compared on its given inputs. Routing has no
  // Difference, because it must be exact.
  std::vector<Difference> steps;
  // The block's results compared with double precision after the router.
  std::vector<Difference> block;
  // The first error, one line; empty if every check holds.
  std::string failure;
};

// Repeats the block in double precision, from its GEMMs' weights and the same
// `normed` states, for up to `max_tokens` tokens spread over the batch.
CheckReport CheckAgainstDouble(const LayerWeights& weights,
                               const switchyard::ConstAnyMatrix& hidden,
                               const switchyard::ConstAnyMatrix& normed,
                               const BlockResults& results, size_t max_tokens,
                               switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_REFERENCE_CHECK_H_
