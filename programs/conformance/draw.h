// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Parts of MakeCases(): random inputs, edge cases, and expected results.

#ifndef SWITCHYARD_PROGRAMS_CONFORMANCE_DRAW_H_
#define SWITCHYARD_PROGRAMS_CONFORMANCE_DRAW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "programs/conformance/cases.h"
#include "testing/inputs.h"

namespace switchyard::conformance {

// Draws the inputs of a case from a seed. All values are short binary
// fractions, which bf16 holds exactly.
class Draw {
 public:
  explicit Draw(size_t seed) : random_(seed) {}

  // Draws `rows` rows of biases, which are large enough to change about half of
  // the selection. Call it before Logits(), which uses the biases.
  void Bias(Case* c, size_t rows = 1);
  void ExpertScale(Case* c);
  // Draws the logits of all tokens. Draws a token's logits again until all
  // keys that decide its selection have a relative distance of at least
  // 2^-10, and no weight is near the middle of two floats.
  void Logits(Case* c);

 private:
  std::vector<float> Row(size_t columns, size_t top_k);
  // Returns a multiple of `unit` in [low, high].
  float Multiple(float unit, float low, float high);

  testing_support::Random random_;
};

// Returns the edge cases. Each edge case tests one rule.
std::vector<Case> Edges();

// Computes the expected results of a case by RouteExactly(). Throws
// std::logic_error if a weight is so near the middle of two floats that it
// could round to the other float with the exp() of another C library.
void Expect(Case* c);

}  // namespace switchyard::conformance

#endif  // SWITCHYARD_PROGRAMS_CONFORMANCE_DRAW_H_
