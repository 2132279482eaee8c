// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/conformance/cases.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "programs/conformance/draw.h"
#include "programs/conformance/options.h"
#include "programs/conformance/reference.h"
#include "switchyard/presets.h"

namespace switchyard::conformance {

RouteOptions Case::Options() const {
  return OptionsFrom(options, "case " + name);
}

size_t Case::Columns() const {
  const RouteOptions o = Options();
  return num_experts + (o.shared_logits ? o.num_shared_experts : 0);
}

size_t Case::Slots() const { return top_k + Options().num_shared_experts; }

bool IsRightWeight(float got, float expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  const double exact = static_cast<double>(expected);
  return std::fabs(static_cast<double>(got) - exact) <=
         tolerance * std::fabs(exact) + 0x1p-126;
}

namespace {

// Resets options that have no effect to their defaults, so that families that
// route alike have equal options and share a case.
RouteOptions Effective(RouteOptions o) {
  const RouteOptions plain;
  o.needs_correction_bias = false;
  o.needs_expert_scale = false;
  o.needs_groups = false;
  o.needs_config = false;
  if (o.num_expert_group <= 1) {
    o.num_expert_group = plain.num_expert_group;
    o.topk_group = plain.topk_group;
    o.group_score_of = plain.group_score_of;
    o.dropped_key_is_zero = plain.dropped_key_is_zero;
  }
  if (o.weight_of == WeightOf::kSoftmaxOfSelected) {
    o.renormalize = plain.renormalize;
    o.divisor = plain.divisor;
  }
  if (!o.renormalize) {
    o.divisor = plain.divisor;
    o.eps = plain.eps;
  }
  return o;
}

// Options and inputs of a router, and all families that use them.
struct Routing {
  std::vector<OptionText> options;
  bool has_bias, has_scale;
  std::vector<const Preset*> families;
};

std::vector<Routing> DifferentRoutings() {
  std::vector<Routing> all;
  for (const Preset& preset : Presets()) {
    const std::vector<OptionText> options = TextOf(Effective(preset.route));
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const Routing& routing) {
          return routing.options == options &&
                 routing.has_bias == preset.correction_bias &&
                 routing.has_scale == preset.expert_scale;
        });
    if (same != all.end()) {
      same->families.push_back(&preset);
    } else {
      all.push_back(
          {options, preset.correction_bias, preset.expert_scale, {&preset}});
    }
  }
  return all;
}

// Makes the case of families that route alike. It has the sizes and the name of
// the family with the largest num_experts * top_k. Among equal products, it
// prefers a family that is not a copy of another family (same_as).
Case FamilyCase(const Routing& routing, size_t seed) {
  const auto size = [](const Preset* preset) {
    return std::make_pair(preset->num_experts * preset->top_k,
                          preset->same_as == nullptr);
  };
  const Preset& largest = **std::max_element(
      routing.families.begin(), routing.families.end(),
      [&](const Preset* a, const Preset* b) { return size(a) < size(b); });
  Case c;
  c.name = largest.family;
  c.about = std::string("the defaults of ") + largest.family +
            ", before a checkpoint's config.json changes them";
  for (const Preset* family : routing.families) {
    c.families.emplace_back(family->family);
  }
  // Uses common sizes if the preset has none, because only a config.json has
  // the family's sizes.
  c.num_experts = largest.num_experts != 0 ? largest.num_experts : 128;
  c.top_k = largest.top_k != 0 ? largest.top_k : 8;
  c.tokens = c.num_experts <= 128 ? 6 : 4;
  c.options = routing.options;
  Draw draw(seed);
  if (routing.has_bias) draw.Bias(&c);
  if (routing.has_scale) draw.ExpertScale(&c);
  draw.Logits(&c);
  return c;
}

}  // namespace

std::vector<Case> MakeCases() {
  std::vector<Case> cases;
  for (const Routing& routing : DifferentRoutings()) {
    cases.push_back(FamilyCase(routing, cases.size()));
  }
  for (Case& edge : Edges()) cases.push_back(std::move(edge));
  for (Case& c : cases) Expect(&c);
  return cases;
}

}  // namespace switchyard::conformance
