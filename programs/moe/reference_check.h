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

// The difference of one kind of result from its double-precision value. The
// bound of an element's error is a share of the root mean square of its row,
// plus one rounding to its type. The share is 2^-16. If operands are rounded
// between products, the share is 2^-6 in bf16 and 2^-4 in int8, because an
// operand near the middle of two values may be rounded up in one computation
// and down in the other. On ten families and a generated layer, the largest
// measured shares are 2^-18, 2^-7.6 and 2^-6.1.
struct Difference {
  std::string what;
  double largest = 0;  // the largest |result - exact|
  double bound = 0;    // the bound of this element's error
  double closest = 0;  // the largest quotient of an error and its bound
  // The element with the largest quotient of error and bound.
  size_t token = 0;
  size_t column = 0;
  double result = 0;
  double exact = 0;

  bool Holds() const { return closest <= 1; }
};

struct CheckReport {
  size_t tokens = 0;  // the number of checked tokens
  // Each step's results, compared with a computation in double precision from
  // the inputs that the step had in the block. Routing has no Difference,
  // because it must be exact.
  std::vector<Difference> steps;
  // The block's results, compared with a whole block in double precision that
  // uses the same routing.
  std::vector<Difference> block;
  // A line that describes the first error; empty if every check holds.
  std::string failure;
};

// Repeats the block in double precision for up to `max_tokens` tokens, which
// are spread over the batch. Uses the weights that the block's GEMMs read and
// the same rows of `normed`.
CheckReport CheckAgainstDouble(const LayerWeights& weights,
                               const switchyard::ConstAnyMatrix& hidden,
                               const switchyard::ConstAnyMatrix& normed,
                               const BlockResults& results, size_t max_tokens,
                               switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_REFERENCE_CHECK_H_
