// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/conformance/reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "programs/program.h"
#include "src/base/enumerators.h"
#include "testing/floats.h"

namespace switchyard::conformance {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Rounds to f32, and then to `type`.
double Rounded(Type type, double value) {
  const float f = static_cast<float>(value);
  const reference::SmallFloat* const format = reference::SmallFloatOf(type);
  if (format == nullptr) return static_cast<double>(f);
  return static_cast<double>(
      format->Decode(format->Encode(static_cast<double>(f))));
}
double ToF32(double value) { return Rounded(Type::kF32, value); }

// Returns exp(x), or 0 if exp(x) is below the smallest normal f32.
double Exp(double x) {
  const double e = std::exp(x);
  return e < 0x1p-126 ? 0.0 : e;
}
// Returns exp(x - max) for x <= max. If both are the same infinity, returns 1,
// although x - max would be NaN.
double ExpBelow(double x, double max) {
  if (std::isinf(max)) return x == max ? 1.0 : 0.0;
  return Exp(x - max);
}

// Returns the relative distance of two numbers, or infinity if a number is not
// finite.
double Distance(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return kInf;
  if (a == b) return 0.0;
  return std::fabs(a - b) / std::max(std::fabs(a), std::fabs(b));
}

using Doubles = std::vector<double>;

class Token {
 public:
  Token(const Case& c, const RouteOptions& o, const Steps& steps, size_t token)
      : c_(c), o_(o), steps_(steps) {
    const size_t columns = c.logits.size() / c.tokens;
    const auto row = c.logits.begin() + static_cast<ptrdiff_t>(token * columns);
    x_.assign(row, row + static_cast<ptrdiff_t>(columns));
    size_t bias = 0;
    if (!c.bias_index.empty()) bias = static_cast<size_t>(c.bias_index[token]);
    if (bias < c.correction_bias.size() / c.num_experts) {
      const auto begin = c.correction_bias.begin() +
                         static_cast<ptrdiff_t>(bias * c.num_experts);
      bias_.assign(begin, begin + static_cast<ptrdiff_t>(c.num_experts));
    }
    is_on_score_ = internal::IsOnScore(o.bias_place);
    is_masked_ = !c.token_mask.empty() && c.token_mask[token] == 0;
  }

  void AppendTo(Routed* routed) {
    const size_t own = o_.shared_logits ? 0 : o_.num_shared_experts;
    if (is_masked_) {
      const size_t slots = c_.top_k + o_.num_shared_experts;
      routed->ids.insert(routed->ids.end(), slots, -1);
      routed->weights.insert(routed->weights.end(), slots, 0.0);
      if (o_.num_zero_experts != 0) routed->identity_weights.push_back(0.0);
      return;
    }
    MapLogits();
    Select(Keys());
    Weigh();
    Finish(routed);
    if (steps_.change_results) steps_.change_results(ids_, weights_);
    for (size_t i = 0; i < own; ++i) {
      ids_.push_back(static_cast<int32_t>(c_.num_experts + i));
      weights_.push_back(static_cast<double>(o_.shared_weight));
    }
    routed->ids.insert(routed->ids.end(), ids_.begin(), ids_.end());
    routed->weights.insert(routed->weights.end(), weights_.begin(),
                           weights_.end());
    routed->closest = std::min(routed->closest, closest_);
  }

 private:
  // Rounds an intermediate result to round_to, or keeps double precision if
  // round_to is f32.
  double Round(double value) const {
    return o_.round_to == Type::kF32 ? value : Rounded(o_.round_to, value);
  }

  // Scales, caps and clips the logits in x_. Afterwards, x_ has the values that
  // route.h calls x.
  void MapLogits() {
    const double cap = static_cast<double>(o_.logit_softcap),
                 clip = static_cast<double>(o_.logit_clip);
    for (size_t i = 0; i < x_.size(); ++i) {
      double& x = x_[i];
      x *= static_cast<double>(o_.logit_scale);
      if (cap != 0.0) x = cap * std::tanh(x / cap);
      if (clip != 0.0) x = x > clip ? clip : x < -clip ? -clip : x;
      const bool has_bias = !is_on_score_ && o_.bias_in_weight;
      if (has_bias && i < bias_.size()) x += bias_[i];
      has_nan_ |= std::isnan(x);
      if (x > max_) max_ = x;
    }
    is_empty_ = !has_nan_ && max_ == -kInf;
  }

  // Returns the scores of all logits, rounded to round_to (see Round()).
  Doubles Scores(Score score) const {
    double sum = 0.0;
    for (const double x : x_) sum += std::isnan(x) ? 0.0 : ExpBelow(x, max_);
    Doubles scores;
    for (const double x : x_) {
      scores.push_back(Round(std::isnan(x) ? kNaN : ScoreOf(score, x, sum)));
    }
    return scores;
  }
  double ScoreOf(Score score, double x, double sum) const {
    switch (score) {
      case Score::kSoftmax:
        return ExpBelow(x, max_) / sum;
      case Score::kSigmoid:
        return x < 0 ? Exp(x) / (1.0 + Exp(x)) : 1.0 / (1.0 + Exp(-x));
      case Score::kSqrtSoftplus:
        return std::sqrt(std::max(x, 0.0) + std::log1p(Exp(-std::fabs(x))));
      case Score::kRaw:
      case Score::kSparsemixer:
        return x;
    }
    return x;
  }

  Doubles Keys() {
    const bool has_groups = o_.num_expert_group > 1;
    const bool has_bias =
        !c_.correction_bias.empty() && (is_on_score_ || !o_.bias_in_weight);
    Doubles keys = x_;
    const bool is_bias_on_x = has_bias && !is_on_score_;
    if (!is_bias_on_x &&
        (has_bias || has_groups || o_.select_on_rounded_score)) {
      keys = Scores(o_.score);
    }
    keys.resize(c_.num_experts);
    for (size_t e = 0; e < keys.size(); ++e) {
      keys[e] = ToF32(keys[e]);
      if (has_bias && !bias_.empty()) keys[e] = ToF32(keys[e] + bias_[e]);
    }
    if (has_groups) DropGroups(&keys);
    if (steps_.change_keys) steps_.change_keys(keys);
    return keys;
  }

  void DropGroups(Doubles* keys) {
    const size_t groups = o_.num_expert_group, size = c_.num_experts / groups;
    Doubles scores;
    for (size_t g = 0; g < groups; ++g) {
      const auto begin = keys->begin() + static_cast<ptrdiff_t>(g * size);
      const Doubles group(begin, begin + static_cast<ptrdiff_t>(size));
      const std::vector<size_t> order = Order(group);
      double score = group[order[0]];
      for (size_t i = 1; i < o_.group_score_of; ++i) score += group[order[i]];
      scores.push_back(ToF32(score));
    }
    const std::vector<size_t> order = Order(scores);
    if (o_.topk_group < groups) {
      Close(scores[order[o_.topk_group - 1]], scores[order[o_.topk_group]]);
    }
    for (size_t i = o_.topk_group; i < groups; ++i) {
      std::fill_n(keys->begin() + static_cast<ptrdiff_t>(order[i] * size), size,
                  o_.dropped_key_is_zero ? 0.0 : -kInf);
    }
  }

  std::vector<size_t> Order(const Doubles& keys) const {
    std::vector<size_t> order(keys.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      if (a == b) return false;
      return a < b ? steps_.comes_before(keys[a], keys[b])
                   : !steps_.comes_before(keys[b], keys[a]);
    });
    return order;
  }
  void Close(double a, double b) {
    closest_ = std::min(closest_, Distance(a, b));
  }

  void Select(const Doubles& keys) {
    const std::vector<size_t> order = Order(keys);
    for (size_t i = 0; i < c_.top_k; ++i) {
      ids_.push_back(static_cast<int32_t>(order[i]));
      if (i + 1 < order.size()) Close(keys[order[i]], keys[order[i + 1]]);
    }
  }

  // Appends the shared experts that have logits to ids_, then computes the
  // weights of all ids_.
  void Weigh() {
    for (size_t i = c_.num_experts; i < x_.size(); ++i) {
      ids_.push_back(static_cast<int32_t>(i));
    }
    if (o_.score == Score::kSparsemixer) {
      WeighByRounds();
      return;
    }
    if (o_.weight_of == WeightOf::kSoftmaxOfSelected) {
      WeighSelected();
      return;
    }
    const Score score = internal::ValueScore(o_);
    const Doubles scores = Scores(score);
    double sum = 0.0;
    for (const int32_t id : ids_) {
      const size_t i = static_cast<size_t>(id);
      double value = scores[i];
      if (o_.bias_in_weight && is_on_score_ && i < bias_.size()) {
        value = Round(value + bias_[i]);
      }
      sum += value;
      weights_.push_back(value);
    }
    if (!o_.renormalize) return;
    const double divisor = DivisorOf(sum, score, scores);
    for (double& weight : weights_) {
      weight = Round(weight / divisor);
      if (divisor == 0.0 && o_.zero_sum_is_zero) weight = 0.0;
    }
  }

  double DivisorOf(double sum, Score score, const Doubles& scores) const {
    const double eps = static_cast<double>(o_.eps),
                 clamp = static_cast<double>(o_.clamp);
    double all = 0.0;
    switch (o_.divisor) {
      case Divisor::kSum:
        return Round(sum);
      case Divisor::kSumPlusEps:
        return Round(Round(sum) + eps);
      case Divisor::kMaxOfSumAndEps:
        return Round(std::max(sum, eps));
      case Divisor::kMaxOfSumAndShare:
        if (clamp == 0.0) return Round(sum);
        for (const double s : scores) all += std::isnan(s) ? 0.0 : s;
        if (score == Score::kSoftmax) all = 1.0;
        return Round(std::max(sum, clamp * all));
    }
    return kNaN;
  }

  void WeighSelected() {
    double max = -kInf, sum = 0.0;
    for (const int32_t id : ids_) max = std::max(max, x_[IndexOf(id)]);
    is_empty_ |= !has_nan_ && max == -kInf;
    for (const int32_t id : ids_) {
      weights_.push_back(ExpBelow(x_[IndexOf(id)], max));
      sum += weights_.back();
    }
    for (double& weight : weights_) weight /= sum;
  }

  void WeighByRounds() {
    const double most = Round(2.0 * static_cast<double>(o_.jitter_eps));
    for (size_t round = 0; round < ids_.size(); ++round) {
      const double top = x_[IndexOf(ids_[round])];
      double sum = 0.0;
      for (size_t e = 0; e < c_.num_experts; ++e) {
        if (round == 1 && static_cast<int32_t>(e) == ids_[0]) continue;
        const double size = std::max(std::fabs(x_[e]), top);
        const double share = Round(Round(top - x_[e]) / size);
        Close(share, most);
        if (!(share > most)) sum += ExpBelow(x_[e], top);
      }
      weights_.push_back(1.0 / sum);
    }
  }

  // Scales the weights. Replaces the ids of zero experts by -1, and moves their
  // weights to the identity weight.
  void Finish(Routed* routed) {
    double identity = 0.0;
    for (size_t i = 0; i < ids_.size(); ++i) {
      const size_t e = IndexOf(ids_[i]);
      double& weight = weights_[i];
      if (o_.routed_scaling_factor != 1.0f) {
        weight = Round(weight * static_cast<double>(o_.routed_scaling_factor));
      }
      if (e < c_.expert_scale.size()) {
        weight = Round(weight * static_cast<double>(c_.expert_scale[e]));
      }
      if (is_empty_) weight = 0.0;
      if (has_nan_) weight = kNaN;
      if (e < c_.num_experts && e >= c_.num_experts - o_.num_zero_experts) {
        identity += weight;
        weight = 0.0;
        ids_[i] = -1;
      }
    }
    if (o_.num_zero_experts != 0) routed->identity_weights.push_back(identity);
  }

  static size_t IndexOf(int32_t id) { return static_cast<size_t>(id); }

  const Case& c_;
  const RouteOptions& o_;
  const Steps& steps_;
  Doubles x_, bias_, weights_;
  std::vector<int32_t> ids_;
  double max_ = -kInf, closest_ = kInf;
  bool is_on_score_ = false, is_masked_ = false;
  bool has_nan_ = false;
  bool is_empty_ = false;  // true if all logits are -inf
};

void RequireSizes(const Case& c, const RouteOptions& o) {
  const auto require = [&c](bool holds, const char* wrong) {
    if (!holds) throw program::InputError("case " + c.name + ": " + wrong);
  };
  const size_t experts = c.num_experts,
               shared = o.shared_logits ? o.num_shared_experts : 0;
  const size_t groups = o.num_expert_group;
  require(experts != 0, "num_experts is 0");
  require(c.top_k != 0 && c.top_k <= experts, "top_k is not in 1..num_experts");
  require(c.logits.size() == c.tokens * (experts + shared), "logits: size");
  require(c.correction_bias.size() % experts == 0, "correction_bias: size");
  require(c.bias_index.empty() || c.bias_index.size() == c.tokens,
          "bias_index: size");
  require(c.expert_scale.empty() || c.expert_scale.size() == experts,
          "expert_scale: size");
  require(c.token_mask.empty() || c.token_mask.size() == c.tokens,
          "token_mask: size");
  require(o.num_zero_experts <= experts, "num_zero_experts: too many");
  require(groups <= 1 || (experts % groups == 0 && o.topk_group != 0 &&
                          o.topk_group <= groups && o.group_score_of != 0 &&
                          o.group_score_of <= experts / groups),
          "num_expert_group, topk_group or group_score_of: wrong");
  require(o.score != Score::kSparsemixer || c.top_k == 2,
          "score: sparsemixer selects two");
}

}  // namespace

Routed RouteExactly(const Case& c, const RouteOptions& options,
                    const Steps& steps) {
  RequireSizes(c, options);
  Routed routed;
  routed.closest = kInf;
  for (size_t t = 0; t < c.tokens; ++t) {
    Token(c, options, steps, t).AppendTo(&routed);
  }
  return routed;
}

}  // namespace switchyard::conformance
