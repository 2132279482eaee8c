// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/conformance/causes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "programs/program.h"
#include "src/calls/names.h"
#include "switchyard/types.h"
#include "testing/floats.h"

namespace switchyard::conformance {
namespace {

using Keys = std::vector<double>;

// Makes the recipe apply `change` to its keys, after the changes that the
// recipe already makes.
void ThenChangeKeys(Recipe& r, std::function<void(Keys& keys)> change) {
  const auto first = r.steps.change_keys;
  r.steps.change_keys = [first, change](Keys& keys) {
    if (first) first(keys);
    change(keys);
  };
}
void ThenChangeResults(
    Recipe& r,
    std::function<void(std::vector<int32_t>& ids, std::vector<double>& weights)>
        change) {
  const auto first = r.steps.change_results;
  r.steps.change_results = [first, change](auto& ids, auto& weights) {
    if (first) first(ids, weights);
    change(ids, weights);
  };
}

bool HasBias(const Recipe& r) { return !r.inputs.correction_bias.empty(); }
bool HasGroups(const Recipe& r) { return r.options.num_expert_group > 1; }

// Sets an option. Returns false if the option already has the value.
template <class T>
bool Replace(T& option, T value) {
  if (option == value) return false;
  option = value;
  return true;
}
// Empties an input. Returns false if the input is already empty.
template <class T>
bool Clear(std::vector<T>& input) {
  if (input.empty()) return false;
  input.clear();
  return true;
}

bool RoundLogits(Recipe& r, Type type) {
  bool changes = false;
  for (float& logit : r.inputs.logits) {
    const float rounded = testing_support::Rounded(type, logit);
    changes |= rounded != logit && !std::isnan(logit);
    logit = rounded;
  }
  return changes;
}

// Renumbers the experts before the call, so that expert e of the call is expert
// order[e] of the case, and translates the selected ids back.
bool Reorder(Recipe& r, const std::vector<size_t>& order) {
  Case& c = r.inputs;
  const auto reorder = [&](std::vector<float>& rows, size_t columns) {
    const std::vector<float> from = rows;
    for (size_t at = 0; at < rows.size(); at += columns) {
      for (size_t e = 0; e < order.size(); ++e)
        rows[at + e] = from[at + order[e]];
    }
  };
  reorder(c.logits, c.Columns());
  reorder(c.correction_bias, c.num_experts);
  reorder(c.expert_scale, c.num_experts);
  ThenChangeResults(r, [order](std::vector<int32_t>& ids, auto&) {
    for (int32_t& id : ids) {
      const bool reordered = id >= 0 && static_cast<size_t>(id) < order.size();
      if (reordered) id = static_cast<int32_t>(order[static_cast<size_t>(id)]);
    }
  });
  return true;
}

// Ranks the groups by `score_of` instead of the recipe's rule. Drops all groups
// except the best topk_group; if `drops_best`, drops these best groups instead.
// `score_of` gets a group's keys and the index of the group's first expert.
using GroupScore = std::function<double(const Keys& group, size_t first)>;
bool RankGroups(Recipe& r, bool drops_best, const GroupScore& score_of) {
  const size_t groups = r.options.num_expert_group, kept = r.options.topk_group;
  if (groups <= 1 || kept >= groups) return false;
  const double dropped = r.options.dropped_key_is_zero
                             ? 0.0
                             : -std::numeric_limits<double>::infinity();
  r.options.num_expert_group = r.options.topk_group = 0;
  if (!HasBias(r)) r.options.select_on_rounded_score = true;
  ThenChangeKeys(r, [=](Keys& keys) {
    const size_t size = keys.size() / groups;
    Keys scores;
    for (size_t g = 0; g < groups; ++g) {
      const auto begin = keys.begin() + static_cast<ptrdiff_t>(g * size);
      scores.push_back(
          score_of({begin, begin + static_cast<ptrdiff_t>(size)}, g * size));
    }
    std::vector<size_t> order(groups);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    for (size_t i = 0; i < groups; ++i) {
      if ((i < kept) != drops_best) continue;
      const auto begin = keys.begin() + static_cast<ptrdiff_t>(order[i] * size);
      std::fill(begin, begin + static_cast<ptrdiff_t>(size), dropped);
    }
  });
  return true;
}
double SumOfLargest(Keys group, size_t count) {
  std::sort(group.begin(), group.end(), std::greater<double>());
  count = std::min(count, group.size());
  return std::accumulate(group.begin(),
                         group.begin() + static_cast<ptrdiff_t>(count), 0.0);
}

// Returns the sentence about a router that uses this enumerator by mistake. The
// compiler reports enumerators that have no sentence here.
const char* SentenceOf(Score score) {
  switch (score) {
    case Score::kSoftmax:
      return "computes scores by softmax, and the recipe has another score";
    case Score::kSigmoid:
      return "computes scores by sigmoid, and the recipe has another score";
    case Score::kSqrtSoftplus:
      return "computes scores by sqrt(softplus), and the recipe has another "
             "score";
    case Score::kRaw:
      return "takes the logits for scores, and the recipe has another score";
    case Score::kSparsemixer:
      return "computes weights as sparsemixer does, and the recipe has another "
             "score";
  }
  return "";
}
const char* SentenceOf(WeightOf weight_of) {
  switch (weight_of) {
    case WeightOf::kScore:
      return "computes weights from the scores of all experts, before the "
             "selection, and the recipe computes them after it";
    case WeightOf::kSoftmaxOfSelected:
      return "computes weights by softmax over the selected experts, after the "
             "selection, and the recipe computes them in another way";
    case WeightOf::kSigmoidOfSelected:
      return "computes weights by sigmoid of the selected logits, and the "
             "recipe computes them in another way";
  }
  return "";
}
const char* SentenceOf(Divisor divisor) {
  switch (divisor) {
    case Divisor::kMaxOfSumAndShare:
      return "bounds the divisor by a share of the sum over all experts, and "
             "the recipe has another divisor";
    case Divisor::kSum:
      return "divides by the sum itself, and the recipe has another divisor";
    case Divisor::kSumPlusEps:
      return "divides by sum + eps, and the recipe has another divisor";
    case Divisor::kMaxOfSumAndEps:
      return "divides by max(sum, eps), and the recipe has another divisor";
  }
  return "";
}
std::vector<Cause> MakeCauses() {
  std::vector<Cause> all;
  const auto add = [&all](const std::string& name, const std::string& sentence,
                          std::function<bool(Recipe&)> change) {
    all.push_back({name, sentence, std::move(change)});
  };

  for (const Score score : calls::kEnumerators<Score>) {
    add(std::string(calls::NameOf(score)) + "_score", SentenceOf(score),
        [score](Recipe& r) {
          const bool fits = score != Score::kSparsemixer ||
                            (r.inputs.top_k == 2 && !HasBias(r) &&
                             !HasGroups(r) && !r.options.shared_logits);
          return fits && Replace(r.options.score, score);
        });
  }
  add("bias_in_weight",
      "adds the correction bias to the weight too, and the recipe adds it only "
      "to the key",
      [](Recipe& r) {
        const bool fits = r.options.bias_place == BiasPlace::kLogit ||
                          r.options.weight_of == WeightOf::kScore;
        return fits && HasBias(r) && Replace(r.options.bias_in_weight, true);
      });
  add("renormalization_missing",
      "does not divide the weights by their sum, and the recipe does",
      [](Recipe& r) {
        return r.options.weight_of != WeightOf::kSoftmaxOfSelected &&
               Replace(r.options.renormalize, false);
      });
  add("renormalization_unwanted",
      "divides the weights by their sum, and the recipe does not",
      [](Recipe& r) {
        return r.options.score != Score::kSparsemixer &&
               Replace(r.options.renormalize, true);
      });
  add("scale_missing", "does not multiply the weights by routed_scaling_factor",
      [](Recipe& r) { return Replace(r.options.routed_scaling_factor, 1.0f); });
  add("scale_twice", "multiplies the weights by routed_scaling_factor twice",
      [](Recipe& r) {
        const float scale = r.options.routed_scaling_factor;
        return Replace(r.options.routed_scaling_factor, scale * scale);
      });
  add("scale_before_bias",
      "multiplies scores by routed_scaling_factor before it adds the bias, and "
      "the recipe scales only weights",
      [](Recipe& r) {
        const float scale = r.options.routed_scaling_factor;
        if (!HasBias(r) || scale == 1.0f || scale == 0.0f ||
            r.options.bias_place != BiasPlace::kScore ||
            r.options.bias_in_weight) {
          return false;
        }
        for (float& bias : r.inputs.correction_bias) bias /= scale;
        return true;
      });
  add("softmax_before_selection",
      "computes weights by softmax over all experts, before the selection, and "
      "the recipe has the softmax after it",
      [](Recipe& r) {
        r.options.renormalize = false;
        return r.options.weight_of == WeightOf::kSoftmaxOfSelected &&
               Replace(r.options.score, Score::kSoftmax) &&
               Replace(r.options.weight_of, WeightOf::kScore);
      });
  for (const WeightOf of : calls::kEnumerators<WeightOf>) {
    add("weight_of_" + std::string(calls::NameOf(of)), SentenceOf(of),
        [of](Recipe& r) {
          return r.options.score != Score::kSparsemixer &&
                 !(r.options.bias_in_weight &&
                   r.options.bias_place == BiasPlace::kScore) &&
                 Replace(r.options.weight_of, of);
        });
  }

  add("larger_index_wins",
      "gives ties to the larger index, and the smaller index has to win",
      [](Recipe& r) {
        const auto before = r.steps.comes_before;
        r.steps.comes_before = [before](double a, double b) {
          return !before(b, a);
        };
        return true;
      });
  add("nan_first", "ranks NaN above all numbers, and NaN has to rank last",
      [](Recipe& r) {
        const auto before = r.steps.comes_before;
        r.steps.comes_before = [before](double a, double b) {
          return std::isnan(a) == std::isnan(b) ? before(a, b) : std::isnan(a);
        };
        return true;
      });
  add("rounded_scores_ranked",
      "ranks the rounded scores, and the recipe ranks the logits",
      [](Recipe& r) {
        return r.options.score != Score::kSparsemixer &&
               Replace(r.options.select_on_rounded_score, true);
      });
  // Some routers subtract 3e-7 * index from keys so that a smaller index wins
  // ties. But keys that are closer than this difference change their order.
  const auto subtract_noise = [](Recipe& r) {
    ThenChangeKeys(r, [](Keys& keys) {
      for (size_t e = 0; e < keys.size(); ++e) {
        keys[e] -= 3e-7 * static_cast<double>(e);
      }
    });
    return true;
  };
  const char* const noise =
      "subtracts 3e-7 * index from keys to break ties, which reorders keys "
      "that are close but not equal";
  add("noise_on_keys", noise, subtract_noise);
  add("noise_on_scores", noise, [subtract_noise](Recipe& r) {
    return !HasBias(r) && Replace(r.options.select_on_rounded_score, true) &&
           subtract_noise(r);
  });
  add("logits_ranked",
      "ranks the logits, and the recipe ranks the rounded scores",
      [](Recipe& r) {
        return Replace(r.options.select_on_rounded_score, false);
      });
  for (const Type type : {Type::kBF16, Type::kF16}) {
    const std::string name = calls::NameOf(type);
    add("logits_in_" + name, "rounds the logits to " + name + " first",
        [type](Recipe& r) { return RoundLogits(r, type); });
  }
  // The table omits the opposite mistake, f32 instead of the recipe's bf16,
  // because its error is within the tolerance.
  for (const Type type : {Type::kBF16, Type::kF16}) {
    const std::string name = calls::NameOf(type);
    add("computed_in_" + name,
        "rounds scores and weights to " + name + ", and the recipe does not",
        [type](Recipe& r) { return Replace(r.options.round_to, type); });
  }

  add("groups_ignored",
      "selects from all groups, and the recipe selects from the best groups",
      [](Recipe& r) {
        r.options.topk_group = 0;
        if (!HasBias(r)) r.options.select_on_rounded_score = true;
        return HasGroups(r) && Replace(r.options.num_expert_group, size_t{0});
      });
  add("group_score_is_maximum",
      "ranks groups by their largest key, and the recipe sums several keys",
      [](Recipe& r) {
        return HasGroups(r) && Replace(r.options.group_score_of, size_t{1});
      });
  add("group_score_is_sum_of_2",
      "ranks groups by the sum of their two largest keys, and the recipe sums "
      "another number of keys",
      [](Recipe& r) {
        return HasGroups(r) &&
               r.inputs.num_experts / r.options.num_expert_group >= 2 &&
               Replace(r.options.group_score_of, size_t{2});
      });
  add("group_score_is_sum_of_all",
      "ranks groups by the sum of all their keys, and the recipe sums only the "
      "largest",
      [](Recipe& r) {
        return HasGroups(r) &&
               Replace(r.options.group_score_of,
                       r.inputs.num_experts / r.options.num_expert_group);
      });
  add("group_score_without_bias",
      "ranks groups by scores without the bias, and the recipe ranks them with "
      "it",
      [](Recipe& r) {
        if (r.inputs.correction_bias.size() != r.inputs.num_experts) {
          return false;
        }
        const std::vector<float> bias = r.inputs.correction_bias;
        const size_t count = r.options.group_score_of;
        return RankGroups(r, false, [bias, count](Keys group, size_t first) {
          for (size_t i = 0; i < group.size(); ++i) {
            group[i] -= static_cast<double>(bias[first + i]);
          }
          return SumOfLargest(group, count);
        });
      });
  add("best_groups_dropped",
      "drops as many groups as it should keep, the best ones, because its mask "
      "is inverted",
      [](Recipe& r) {
        const size_t count = r.options.group_score_of;
        return RankGroups(r, true, [count](const Keys& group, size_t) {
          return SumOfLargest(group, count);
        });
      });
  add("groups_interleaved",
      "puts expert e into group e % num_expert_group, and a group has to be "
      "num_experts / num_expert_group neighbours",
      [](Recipe& r) {
        if (!HasGroups(r)) return false;
        const size_t groups = r.options.num_expert_group,
                     experts = r.inputs.num_experts;
        std::vector<size_t> order;
        for (size_t g = 0; g < groups; ++g) {
          for (size_t e = g; e < experts; e += groups) order.push_back(e);
        }
        return Reorder(r, order);
      });
  add("dropped_keys_are_zero",
      "gives experts of dropped groups the key 0, which is above negative "
      "keys, and the recipe has -inf",
      [](Recipe& r) {
        return HasGroups(r) && Replace(r.options.dropped_key_is_zero, true);
      });
  add("dropped_keys_are_minus_infinity",
      "gives experts of dropped groups the key -inf, and the recipe has 0",
      [](Recipe& r) {
        return HasGroups(r) && Replace(r.options.dropped_key_is_zero, false);
      });

  add("bias_missing", "ignores the correction bias", [](Recipe& r) {
    r.inputs.bias_index.clear();
    r.options.bias_in_weight = false;
    // Without a bias, the reference would use the logits as keys. This option
    // makes it use the scores, so that only the bias is missing.
    if (r.options.bias_place == BiasPlace::kScore) {
      r.options.select_on_rounded_score = true;
    }
    return Clear(r.inputs.correction_bias);
  });
  add("bias_not_in_weight",
      "adds the correction bias only to the key, and the recipe adds it to the "
      "weight too",
      [](Recipe& r) { return Replace(r.options.bias_in_weight, false); });
  // The table omits the opposite mistake, because it changes no results:
  // recipes that add the bias to the logit use the logit itself as the score.
  add("bias_on_logit",
      "adds the bias to the logit, and the recipe adds it to the score",
      [](Recipe& r) {
        return HasBias(r) && !r.options.bias_in_weight &&
               Replace(r.options.bias_place, BiasPlace::kLogit);
      });
  add("bias_index_missing",
      "uses the first correction bias for each token, and ignores bias_index",
      [](Recipe& r) {
        if (r.inputs.bias_index.empty()) return false;
        r.inputs.bias_index.assign(r.inputs.tokens, 0);
        return true;
      });

  add("eps_missing", "leaves eps out of the divisor",
      [](Recipe& r) { return Replace(r.options.eps, 0.0f); });
  for (const Divisor divisor : calls::kEnumerators<Divisor>) {
    add("divisor_is_" + std::string(calls::NameOf(divisor)),
        SentenceOf(divisor), [divisor](Recipe& r) {
          if (!internal::TakesEps(divisor)) r.options.eps = 0.0f;
          return r.options.renormalize && Replace(r.options.divisor, divisor);
        });
  }
  add("clamp_missing",
      "does not bound the divisor by clamp * the sum over all experts",
      [](Recipe& r) {
        return r.options.renormalize &&
               r.options.divisor == Divisor::kMaxOfSumAndShare &&
               Replace(r.options.clamp, 0.0f);
      });
  add("zero_sum_divides",
      "divides by a sum of 0, and the recipe makes these weights 0",
      [](Recipe& r) { return Replace(r.options.zero_sum_is_zero, false); });
  add("zero_sum_is_zero",
      "makes weights 0 if their sum is 0, and the recipe divides",
      [](Recipe& r) {
        return r.options.renormalize &&
               Replace(r.options.zero_sum_is_zero, true);
      });
  add("expert_scale_missing", "ignores expert_scale",
      [](Recipe& r) { return Clear(r.inputs.expert_scale); });
  add("mask_missing", "ignores token_mask, and routes padding tokens",
      [](Recipe& r) { return Clear(r.inputs.token_mask); });
  add("zero_experts_written",
      "writes the ids and weights of zero experts, and the recipe writes -1 "
      "and 0",
      [](Recipe& r) { return Replace(r.options.num_zero_experts, size_t{0}); });
  add("shared_weight_missing", "gives shared experts the weight 1",
      [](Recipe& r) { return Replace(r.options.shared_weight, 1.0f); });
  add("logit_scale_missing", "ignores logit_scale",
      [](Recipe& r) { return Replace(r.options.logit_scale, 1.0f); });
  add("softcap_missing", "ignores logit_softcap",
      [](Recipe& r) { return Replace(r.options.logit_softcap, 0.0f); });
  add("clip_missing", "ignores logit_clip",
      [](Recipe& r) { return Replace(r.options.logit_clip, 0.0f); });
  add("jitter_missing", "takes jitter_eps for 0.01, its default",
      [](Recipe& r) {
        return r.options.score == Score::kSparsemixer &&
               Replace(r.options.jitter_eps, RouteOptions().jitter_eps);
      });

  // Some routers always compute softmax, whatever options the case has.
  for (const bool renormalize : {true, false}) {
    add(renormalize ? "only_softmax" : "only_softmax_not_renormalized",
        std::string("ignores all options and inputs, and computes softmax, "
                    "top_k ") +
            (renormalize ? "and renormalised weights"
                         : "and weights without renormalisation"),
        [renormalize](Recipe& r) {
          Case& c = r.inputs;
          if (c.Slots() != c.top_k || c.Columns() != c.num_experts) {
            return false;
          }
          r.options = RouteOptions();
          r.options.renormalize = renormalize;
          c.correction_bias.clear();
          c.bias_index.clear();
          c.expert_scale.clear();
          c.token_mask.clear();
          return true;
        });
  }
  return all;
}

}  // namespace

const std::vector<Cause>& Causes() {
  static const std::vector<Cause> causes = MakeCauses();
  return causes;
}

std::optional<Routed> RouteWith(const std::vector<const Cause*>& causes,
                                const Case& c) {
  Recipe recipe = {c, c.Options(), {}};
  for (const Cause* cause : causes) {
    if (!cause->change(recipe)) return std::nullopt;
  }
  try {
    return RouteExactly(recipe.inputs, recipe.options, recipe.steps);
  } catch (const program::InputError&) {
    return std::nullopt;  // the changed options do not fit this case
  }
}

}  // namespace switchyard::conformance
