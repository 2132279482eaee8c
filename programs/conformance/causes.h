// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The mistakes of routers that the grader knows. Each one is a small change of
// the reference, so that the grader recognises a mistake by its results.

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
  // The router's mistake, then the recipe's rule that it breaks. Reports
  // print this text after the word "It".
  std::string sentence;
  // Makes the mistake. Returns false if the recipe gives no occasion for it.
  std::function<bool(Recipe& recipe)> change;
};

// Returns all causes. The more frequent ones come first.
const std::vector<Cause>& Causes();

// Returns the results of a router that makes all these mistakes, or nothing if
// the case gives no occasion for one of them.
std::optional<Routed> RouteWith(const std::vector<const Cause*>& causes,
                                const Case& c);

}  // namespace switchyard::conformance

#endif  // SWITCHYARD_PROGRAMS_CONFORMANCE_CAUSES_H_
