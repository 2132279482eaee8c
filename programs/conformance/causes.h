// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The mistakes of routers that the grader knows. Each mistake is a small change
// of the reference's inputs, options or steps. The grader recognises a mistake
// because the changed reference gives the router's wrong results.

#ifndef SWITCHYARD_PROGRAMS_CONFORMANCE_CAUSES_H_
#define SWITCHYARD_PROGRAMS_CONFORMANCE_CAUSES_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "programs/conformance/cases.h"
#include "programs/conformance/reference.h"
#include "switchyard/route.h"

namespace switchyard::conformance {

// The reference's inputs, options and steps. A cause changes them.
struct Recipe {
  Case inputs;
  RouteOptions options;
  Steps steps;
};

struct Cause {
  std::string name;  // such as "softmax_score"
  // Names the router's mistake, then the rule of the recipe. Reports print this
  // text after the word "It".
  std::string sentence;
  // Makes the mistake. Returns false if the mistake cannot happen in this
  // recipe.
  std::function<bool(Recipe& recipe)> change;
};

// Returns all causes. Frequent mistakes come first.
const std::vector<Cause>& Causes();

// Returns the results of a router that makes all these mistakes, or nothing if
// one of the mistakes cannot happen in this case.
std::optional<Routed> RouteWith(const std::vector<const Cause*>& causes,
                                const Case& c);

}  // namespace switchyard::conformance

#endif  // SWITCHYARD_PROGRAMS_CONFORMANCE_CAUSES_H_
