// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The cases that grade a router: inputs, options, and the ids and weights that
// a correct router returns. conformance/README.md explains the options and the
// text form of a case to people who do not have this library.

#ifndef SWITCHYARD_PROGRAMS_CONFORMANCE_CASES_H_
#define SWITCHYARD_PROGRAMS_CONFORMANCE_CASES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "switchyard/route.h"

namespace switchyard::conformance {

// A call of a router and its expected results. Matrices are dense and
// row-major. If the call lacks an input, the input's vector is empty.
struct Case {
  std::string name;   // such as "deepseek_v3"; the name of its file
  std::string about;  // one line: the rule that the case tests
  // The model families with these options, sorted; empty for an edge case,
  // which tests one rule.
  std::vector<std::string> families;
  size_t tokens = 0, num_experts = 0, top_k = 0;
  // The options that differ from RouteOptions's defaults, in the order of
  // RouteOptions. Each has its name and value as SetOption() takes them. The
  // list never has the options needs_..., because they do not change results.
  std::vector<std::pair<std::string, std::string>> options;

  std::vector<float> logits;           // [tokens, Columns()]
  std::vector<float> correction_bias;  // [num_biases, num_experts]
  std::vector<int32_t> bias_index;     // [tokens]
  std::vector<float> expert_scale;     // [num_experts]
  std::vector<int32_t> token_mask;     // [tokens], 0 for a padding token

  std::vector<int32_t> ids;    // [tokens, Slots()]
  std::vector<float> weights;  // [tokens, Slots()]
  // [tokens] if num_zero_experts is not 0, otherwise empty.
  std::vector<float> identity_weights;
  // The largest error of a weight, relative to the expected weight. See
  // IsRightWeight().
  double tolerance = 0;

  // Returns the options of the call. Throws program::InputError if an option or
  // its value does not exist.
  RouteOptions Options() const;
  size_t Columns() const;  // logits per token, including shared experts
  size_t Slots() const;    // ids per token: top_k + shared experts
};

// Results of a router for the case `name`. If the router cannot compute the
// case, `unsupported` is the reason, and the vectors are empty.
struct Answer {
  std::string name;
  std::vector<int32_t> ids;             // [tokens, Slots()]
  std::vector<float> weights;           // [tokens, Slots()]
  std::vector<float> identity_weights;  // [tokens], or empty: not graded
  std::string unsupported;
};

// True if |got - expected| <= tolerance * |expected| + 2^-126, or both are NaN
// or the same infinity. 2^-126 lets a router flush denormal numbers to zero.
bool IsRightWeight(float got, float expected, double tolerance);

// Returns all cases in a fixed order: first a case for each different routing
// among Presets(), then the edge cases. Throws std::logic_error if rounding
// errors could change the results of a case.
std::vector<Case> MakeCases();

}  // namespace switchyard::conformance

#endif  // SWITCHYARD_PROGRAMS_CONFORMANCE_CASES_H_
