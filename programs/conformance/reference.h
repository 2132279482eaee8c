// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A router in double precision, written from the formulas of route.h. It gives
// the expected results of the cases, and shares no code with the kernels.

#ifndef SWITCHYARD_PROGRAMS_CONFORMANCE_REFERENCE_H_
#define SWITCHYARD_PROGRAMS_CONFORMANCE_REFERENCE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "programs/conformance/cases.h"
#include "switchyard/route.h"

namespace switchyard::conformance {

// The steps of the reference that a cause can replace to imitate a wrong
// router. The defaults are the correct steps.
struct Steps {
  // True if an expert with key a comes before an expert that has key b and a
  // larger index.
  std::function<bool(double a, double b)> comes_before =
      [](double a, double b) { return !(b > a) && (a == a || b != b); };
  // Changes the keys of a token before the selection.
  std::function<void(std::vector<double>& keys)> change_keys;
  // Changes the selected experts and their weights, in slot order.
  std::function<void(std::vector<int32_t>& ids, std::vector<double>& weights)>
      change_results;
};

struct Routed {
  std::vector<int32_t> ids;                       // [tokens, Slots()]
  std::vector<double> weights, identity_weights;  // shapes as in Case
  // The smallest relative distance of two keys that decide a selection or the
  // order of its slots: the keys of two adjacent selected experts, of the last
  // selected and the first other expert, or of the last kept and the first
  // dropped group. It is 0 if two such keys are equal.
  double closest = 0;
};

// Routes the tokens of a case with these options instead of the case's own.
// Throws program::InputError if sizes do not match.
Routed RouteExactly(const Case& c, const RouteOptions& options,
                    const Steps& steps = {});

}  // namespace switchyard::conformance

#endif  // SWITCHYARD_PROGRAMS_CONFORMANCE_REFERENCE_H_
