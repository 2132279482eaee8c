// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/conformance/draw.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "programs/conformance/reference.h"

namespace switchyard::conformance {
namespace {

constexpr double kClosest = 0x1p-10;
constexpr float kUnit = 0x1p-5f;

// True if the value is not near the middle of two floats, so that errors of the
// reference cannot change the float to which the value rounds. These errors are
// below 2^-46, because the reference adds at most 1024 terms with errors of
// 2^-53 and a few ulp of exp().
bool IsStable(double value) {
  const float f = static_cast<float>(value);
  if (!std::isfinite(f) || f == 0.0f) return true;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float to : {-kInf, kInf}) {
    const double middle =
        (static_cast<double>(f) + static_cast<double>(std::nextafter(f, to))) /
        2.0;
    if (std::fabs(value - middle) <= 0x1p-44 * std::fabs(value)) return false;
  }
  return true;
}

bool AreStable(const Routed& routed) {
  for (const auto* values : {&routed.weights, &routed.identity_weights}) {
    if (!std::all_of(values->begin(), values->end(), IsStable)) return false;
  }
  return true;
}

// Returns a copy of case c that has only token `token`, with `logits` instead
// of the token's own logits.
Case TokenOf(const Case& c, size_t token, std::vector<float> logits) {
  Case one = c;
  one.tokens = 1;
  one.logits = std::move(logits);
  one.token_mask.clear();
  if (!c.bias_index.empty()) one.bias_index = {c.bias_index[token]};
  return one;
}

std::vector<float> ToFloats(const std::vector<double>& values) {
  return std::vector<float>(values.begin(), values.end());
}

}  // namespace

float Draw::Multiple(float unit, float low, float high) {
  const size_t steps = static_cast<size_t>((high - low) / unit);
  return low + unit * static_cast<float>(random_.Below(steps + 1));
}

void Draw::Bias(Case* c, size_t rows) {
  // Makes the bias as large as the scores: softmax scores are about
  // 1 / num_experts, other scores about 1.
  float unit = 0x1p-7f;
  if (c->Options().score == Score::kSoftmax) {
    unit =
        std::ldexp(1.0f, -5 - std::ilogb(static_cast<float>(c->num_experts)));
  }
  for (size_t i = 0; i < rows * c->num_experts; ++i) {
    c->correction_bias.push_back(Multiple(unit, -32.0f * unit, 32.0f * unit));
  }
}

void Draw::ExpertScale(Case* c) {
  for (size_t i = 0; i < c->num_experts; ++i) {
    c->expert_scale.push_back(Multiple(0x1p-4f, 0.5f, 1.5f));
  }
}

std::vector<float> Draw::Row(size_t columns, size_t top_k) {
  std::vector<float> row;
  std::set<float> taken;
  for (size_t e = 0; e < columns; ++e) {
    // About 3 * top_k of the logits are from -1 to 5 and differ from each
    // other. The others are from -6 to 0, so they are seldom selected.
    if (random_.Below(columns) >= 3 * top_k) {
      row.push_back(Multiple(kUnit, -6.0f, 0.0f));
      continue;
    }
    do {
      row.resize(e);
      row.push_back(Multiple(kUnit, -1.0f, 5.0f));
    } while (!taken.insert(row.back()).second);
  }
  return row;
}

void Draw::Logits(Case* c) {
  const RouteOptions options = c->Options();
  const size_t columns = c->Columns();
  for (size_t t = 0; t < c->tokens; ++t) {
    for (size_t tries = 0;; ++tries) {
      if (tries == 100000) throw std::logic_error(c->name + ": no such logits");
      const std::vector<float> row = Row(columns, c->top_k);
      const Routed routed = RouteExactly(TokenOf(*c, t, row), options);
      if (routed.closest < kClosest || !AreStable(routed)) continue;
      c->logits.insert(c->logits.end(), row.begin(), row.end());
      break;
    }
  }
}

void Expect(Case* c) {
  const Routed routed = RouteExactly(*c, c->Options());
  if (!AreStable(routed)) {
    throw std::logic_error(c->name + ": a weight is between two floats");
  }
  c->ids = routed.ids;
  c->weights = ToFloats(routed.weights);
  c->identity_weights = ToFloats(routed.identity_weights);
  if (c->tolerance == 0) c->tolerance = 0x1p-16;
}

}  // namespace switchyard::conformance
