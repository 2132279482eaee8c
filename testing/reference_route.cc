// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "testing/floats.h"
#include "testing/route_case.h"
#include "testing/route_scores.h"

namespace switchyard::testing_support {
namespace {

// Computes the ids and weights that one token of a case should get.
class Restatement {
 public:
  Restatement(const RouteCase& c, size_t token)
      : c_(c), o_(c.options), token_(token) {
    x_ = Rounded(c.logit_type, RowOf(c.logits, token, c.columns));
    given_ = RowOf(c.given_ids, token, c.top_k);
    size_t bias = 0;
    if (!c.bias_index.empty()) bias = static_cast<size_t>(c.bias_index[token]);
    if (bias * c.experts < c.bias.size()) {
      bias_ = Rounded(c.bias_type, RowOf(c.bias, bias, c.experts));
    }
    on_score_ = o_.bias_place == BiasPlace::kScore;
    of_selected_ = o_.weight_of == WeightOf::kSoftmaxOfSelected;
    switch (o_.weight_of) {
      case WeightOf::kScore:
        value_score_ = o_.score;
        break;
      case WeightOf::kSoftmaxOfSelected:
        value_score_ = Score::kSoftmax;
        break;
      case WeightOf::kSigmoidOfSelected:
        value_score_ = Score::kSigmoid;
        break;
    }
  }

  std::string Check(const RouteResult& result, size_t& invalid,
                    size_t& elsewhere) {
    const size_t slots = c_.top_k + o_.num_shared_experts;
    const auto ids = RowOf(result.ids, token_, slots);
    const auto weights = RowOf(result.weights, token_, slots);
    const auto record = RowOf(result.record, token_, c_.top_k);
    if (!c_.token_mask.empty() && c_.token_mask[token_] == 0) {
      for (size_t i = 0; i < record.size(); ++i) {
        if (record[i] != -1) return Wrong("recorded id", i, record[i], -1);
      }
      for (size_t i = 0; i < slots; ++i) {
        if (ids[i] != -1) return Wrong("id", i, ids[i], -1);
        if (Bits(weights[i]) != 0) return Wrong("masked weight", i, 1, 0);
      }
      return c_.identity && Bits(result.identity[token_]) != 0
                 ? "identity of a masked token"
                 : "";
    }
    invalid += !c_.bias.empty() && bias_.empty();
    std::string wrong = Map();
    if (wrong.empty()) wrong = Select(ids);
    if (!wrong.empty()) return wrong;
    for (size_t i = 0; i < record.size(); ++i) {
      const int32_t id = std::max(ids_[i], -1);
      if (record[i] != id) return Wrong("recorded id", i, record[i], id);
    }
    Weigh();
    return Compare(result, ids, weights, invalid, elsewhere);
  }

 private:
  float Round(float f) const { return Rounded(o_.round_to, f); }
  bool Softmax() const {
    return !of_selected_ && value_score_ == Score::kSoftmax;
  }

  // Computes x as route.h defines it, and whether the row has a NaN or only
  // -inf.
  std::string Map() {
    const std::vector<float> logits = x_;
    RouteOptions map;
    map.logit_scale = o_.logit_scale;
    map.logit_softcap = o_.logit_softcap;
    map.logit_clip = o_.logit_clip;
    std::vector<float> mapped;
    if (o_.logit_softcap != 0.0f) {
      mapped = Scores(logits, Score::kRaw, Type::kF32, map);
    }
    for (size_t i = 0; i < x_.size(); ++i) {
      float& x = x_[i];
      x *= o_.logit_scale;
      if (o_.logit_softcap != 0.0f && !std::isnan(x)) {
        const double cap = static_cast<double>(o_.logit_softcap);
        const double exact = cap * std::tanh(static_cast<double>(x) / cap);
        x = mapped[i];
        const double clip = o_.logit_clip != 0.0f
                                ? static_cast<double>(o_.logit_clip)
                                : HUGE_VAL;
        const double clipped = std::min(std::max(exact, -clip), clip);
        if (!IsNear(x, clipped, 0x1p-20, cap * 0x1p-21, Type::kF32)) {
          return Wrong("x", i, static_cast<double>(x), clipped);
        }
      }
      const float clip = o_.logit_clip;
      if (clip != 0.0f) x = x > clip ? clip : x < -clip ? -clip : x;
      const bool in_x = !bias_.empty() && !on_score_ && o_.bias_in_weight;
      if (in_x && i < c_.experts) x += bias_[i];
      nan_ |= std::isnan(x);
      if (x > max_) max_ = x;
    }
    none_ = !nan_ && max_ == -kInf;
    return "";
  }

  // Sets `s` to the library's score of each x, rounded. Returns an error if a
  // score is not close to its formula.
  std::string ScoresOf(Score score, std::vector<float>& s) const {
    if (score == Score::kSparsemixer) score = Score::kRaw;
    s = Scores(x_, score, o_.round_to);
    double sum = 0.0;
    const double max = static_cast<double>(max_);
    size_t numbers = 0;
    for (const float x : x_) {
      if (!std::isnan(x)) {
        ++numbers;
        sum += ExactScore(Score::kSoftmax, static_cast<double>(x), max, 1.0);
      }
    }
    for (size_t i = 0; i < s.size(); ++i) {
      const double x = static_cast<double>(x_[i]);
      if (max_ == -kInf) {  // then all weights are 0, but not all scores
        s[i] =
            Round(score == Score::kSoftmax
                      ? 1.0f / static_cast<float>(numbers)
                      : static_cast<float>(ExactScore(score, max, max, 1.0)));
      }
      if (std::isnan(x)) {
        s[i] = kNaN;
        continue;
      }
      const double exact = ExactScore(score, x, max, sum);
      const double slack =
          score == Score::kSoftmax && !std::isinf(x) && !std::isinf(max)
              ? std::fabs(x - max) * 0x1p-23
              : 0.0;
      if (!IsNear(s[i], exact,
                  0x1p-18 + slack + (o_.round_to == Type::kF32 ? 0.0 : 0x1p-9),
                  o_.round_to == Type::kF16 ? AccuracyOf(score).tiny_f16
                                            : AccuracyOf(score).tiny,
                  o_.round_to)) {
        return Wrong("score", i, static_cast<double>(s[i]), exact);
      }
    }
    return "";
  }

  std::string Select(const std::vector<int32_t>& ids) {
    const size_t experts = c_.experts, k = c_.top_k;
    if (!given_.empty()) {
      for (const int64_t id : given_) {
        const bool valid = id >= 0 && id < static_cast<int64_t>(experts);
        const bool is_mark =
            SizeOf(c_.given_type) <= 2 &&
            id == static_cast<int64_t>(MostExperts(c_.given_type));
        ids_.push_back(valid     ? static_cast<int32_t>(id)
                       : is_mark ? kNoExpert
                                 : -1);
      }
      return "";
    }
    const bool groups = o_.num_expert_group > 1;
    const bool bias = !c_.bias.empty() && !(!on_score_ && o_.bias_in_weight);
    std::vector<float> keys = x_;
    const bool by_score =
        (bias && on_score_) || groups || o_.select_on_rounded_score;
    if (by_score && !(bias && !on_score_)) {
      const std::string wrong = ScoresOf(o_.score, keys);
      if (!wrong.empty()) return wrong;
    }
    keys.resize(experts);
    for (size_t e = 0; bias && !bias_.empty() && e < experts; ++e) {
      keys[e] += bias_[e];
    }
    if (groups) DropGroups(keys);
    const std::vector<size_t> order = Order(keys);
    for (size_t i = 0; i < k; ++i) {
      ids_.push_back(static_cast<int32_t>(order[i]));
    }
    if (o_.num_zero_experts == 0 && c_.expert_map.empty()) {
      for (size_t i = 0; i < k; ++i) {
        if (ids[i] != ids_[i]) return Wrong("id", i, ids[i], ids_[i]);
      }
    }
    return "";
  }

  void DropGroups(std::vector<float>& keys) const {
    const size_t groups = o_.num_expert_group, size = c_.experts / groups;
    std::vector<float> scores;
    for (size_t g = 0; g < groups; ++g) {
      const std::vector<float> group = RowOf(keys, g, size);
      const std::vector<size_t> order = Order(group);
      float score = group[order[0]];
      for (size_t i = 1; i < o_.group_score_of; ++i) score += group[order[i]];
      scores.push_back(score);
    }
    const std::vector<size_t> order = Order(scores);
    for (size_t i = o_.topk_group; i < groups; ++i) {
      std::fill_n(keys.begin() + static_cast<ptrdiff_t>(order[i] * size), size,
                  o_.dropped_key_is_zero ? 0.0f : -kInf);
    }
  }

  // Computes the weights. Sums of exps are in double precision.
  void Weigh() {
    std::vector<size_t> columns;
    for (const int32_t id : ids_) {
      // A negative id becomes an index beyond the last column.
      columns.push_back(static_cast<size_t>(id));
    }
    for (size_t i = c_.experts; i < c_.columns; ++i) columns.push_back(i);
    for (size_t i = c_.experts; i < c_.columns; ++i) {
      ids_.push_back(static_cast<int32_t>(i));
    }
    const bool bias_in_value = !bias_.empty() && on_score_ && o_.bias_in_weight;
    const bool by_sum =
        o_.renormalize && (o_.divisor == Divisor::kSum ||
                           o_.divisor == Divisor::kMaxOfSumAndShare);
    const bool share = o_.renormalize &&
                       o_.divisor == Divisor::kMaxOfSumAndShare &&
                       o_.clamp > 0.0f;
    if (o_.score == Score::kSparsemixer) return Sparsemixer();
    if (of_selected_ ||
        (Softmax() && by_sum && o_.round_to == Type::kF32 &&
         !(!c_.bias.empty() && on_score_ && o_.bias_in_weight))) {
      return Exps(columns, share);
    }
    std::vector<float> s;
    wrong_ = ScoresOf(value_score_, s);
    float sum = 0.0f;
    std::vector<float> values;
    for (const size_t i : columns) {
      float v = i < s.size() ? s[i] : 0.0f;
      if (bias_in_value && i < c_.experts) v = Round(v + bias_[i]);
      sum = values.empty() ? v : sum + v;
      values.push_back(v);
    }
    float divisor = Round(sum);
    switch (o_.divisor) {
      case Divisor::kSum:
        break;
      case Divisor::kSumPlusEps:
        divisor = Round(divisor + o_.eps);
        break;
      case Divisor::kMaxOfSumAndEps:
        divisor = Round(sum < o_.eps ? o_.eps : sum);
        break;
      case Divisor::kMaxOfSumAndShare:
        if (!share) break;
        const float all = Softmax() ? 1.0f : SumOfLanes(s);
        divisor = Round(sum < o_.clamp * all ? o_.clamp * all : sum);
        // With a clamp of at most top_k / num_experts, the sum of the largest
        // scores is at least clamp * all, except for rounding.
        exact_ = false;
        bound_ = 0x1p-16;
        break;
    }
    for (float v : values) {
      if (o_.renormalize) v = Round(v / divisor);
      if (o_.renormalize && divisor == 0.0f && o_.zero_sum_is_zero) v = 0.0f;
      weights_.push_back(static_cast<double>(v));
    }
  }

  // Computes weights that are shares of a sum of exps.
  void Exps(const std::vector<size_t>& columns, bool share) {
    exact_ = false;
    float max = max_;
    if (of_selected_) {
      max = -kInf;
      for (const size_t i : columns) {
        if (i < x_.size() && x_[i] > max) max = x_[i];
      }
      none_ |= !nan_ && max == -kInf;
    }
    const double top = static_cast<double>(max);
    const auto exp = [&](float x) {
      return ExactScore(Score::kSoftmax, static_cast<double>(x), top, 1.0);
    };
    double all = 0.0, sum = 0.0;
    for (const float x : x_) all += std::isnan(x) ? 0.0 : exp(x);
    double far = 0.0;
    std::vector<double> values;
    for (const size_t i : columns) {
      values.push_back(i < x_.size() ? exp(x_[i]) : 0.0);
      if (values.back() < 0x1.01p-126) values.back() = 0.0;
      sum += values.back();
      if (values.back() > 0.0 && std::isfinite(max)) {
        far = std::max(far, std::fabs(static_cast<double>(x_[i]) - top));
      }
    }
    double divisor = sum;
    if (share && !of_selected_) {
      divisor = std::max(divisor, static_cast<double>(o_.clamp) * all);
    }
    bound_ = (2.0 * far + 30.0 + 2.0 * static_cast<double>(columns.size())) *
             0x1p-23;
    const bool zero = divisor == 0.0 && o_.zero_sum_is_zero;
    absolute_ = divisor > 0.0 ? 0x1.1p-126 / divisor : 0.0;
    for (const double v : values) weights_.push_back(zero ? 0.0 : v / divisor);
  }

  void Sparsemixer() {
    exact_ = false;
    // Bounds the error of the sum over all experts. The library computes this
    // sum in 32 lanes.
    bound_ = 0x1p-18 + static_cast<double>(c_.experts / 32) * 0x1p-24;
    const std::vector<float> x(x_.begin(),
                               x_.begin() + static_cast<ptrdiff_t>(c_.experts));
    weights_ = SparsemixerWeights(x, o_, ids_);
  }

  std::string Compare(const RouteResult& result,
                      const std::vector<int32_t>& ids,
                      const std::vector<float>& weights, size_t& invalid,
                      size_t& elsewhere) {
    if (!wrong_.empty()) return wrong_;
    const std::vector<float> scale = Rounded(c_.bias_type, c_.expert_scale);
    const double step = o_.round_to == Type::kBF16  ? 0x1p-8
                        : o_.round_to == Type::kF16 ? 0x1p-10
                                                    : 0x1p-23;
    double identity = 0.0, identity_slack = 0.0;
    float identity_exact = 0.0f;
    for (size_t i = 0; i < ids_.size(); ++i) {
      const size_t e = static_cast<size_t>(ids_[i]);
      float w = static_cast<float>(weights_[i]);
      double weight = weights_[i], factor = 1.0;
      const auto times = [&](float f) {
        w = Round(w * f);
        weight *= static_cast<double>(f);
        factor *= std::max(1.0, std::fabs(static_cast<double>(f)));
      };
      if (o_.routed_scaling_factor != 1.0f) times(o_.routed_scaling_factor);
      if (!scale.empty() && e < c_.experts) times(scale[e]);
      if (exact_) weight = static_cast<double>(w);
      if (nan_ || none_) weight = nan_ ? HUGE_VAL - HUGE_VAL : 0.0;
      int32_t id = ids_[i];
      if (id < 0) {
        invalid += id != kNoExpert;
        weight = 0.0;
        id = -1;
      } else if (e >= c_.experts) {
      } else if (e >= c_.experts - o_.num_zero_experts) {
        identity += weight;
        identity_slack += std::fabs(weight);
        identity_exact += static_cast<float>(weight);
        weight = 0.0;
        id = -1;
      } else if (!c_.expert_map.empty()) {
        id = c_.expert_map[e];
        elsewhere += id == -1;
      }
      if (ids[i] != id) return Wrong("id", i, ids[i], id);
      const float stored = Rounded(c_.weight_type, static_cast<float>(weight));
      const bool same = CanonicalBits(stored) == CanonicalBits(weights[i]);
      const double absolute =
          (absolute_ + (o_.round_to == Type::kF16 ? 0x1p-23 : 0x1p-126)) *
              factor +
          0x1p-149;
      if (!same && (exact_ || nan_ || none_ ||
                    !IsNear(weights[i], weight, bound_ + 4.0 * step, absolute,
                            c_.weight_type))) {
        return Wrong("weight", i, static_cast<double>(weights[i]), weight);
      }
      worst_ = std::max(worst_, absolute);
    }
    const size_t own = o_.shared_logits ? 0 : o_.num_shared_experts;
    for (size_t i = 0; i < own; ++i) {
      const size_t slot = c_.top_k + i;
      const int32_t id = static_cast<int32_t>(c_.experts + i);
      if (ids[slot] != id) return Wrong("shared id", i, ids[slot], id);
      const float weight = Rounded(c_.weight_type, o_.shared_weight);
      if (weights[slot] != weight) {
        return Wrong("shared weight", i, static_cast<double>(weights[slot]),
                     static_cast<double>(weight));
      }
    }
    if (!c_.identity) return "";
    const float is = result.identity[token_];
    const float stored = Rounded(c_.weight_type, identity_exact);
    if (CanonicalBits(stored) != CanonicalBits(is) &&
        (exact_ ||
         !IsNear(is, identity, 0x1p-20,
                 (bound_ + 4.0 * step) * identity_slack + 8.0 * worst_,
                 c_.weight_type))) {
      return Wrong("identity weight", token_, static_cast<double>(is),
                   identity);
    }
    return "";
  }

  const RouteCase& c_;
  const RouteOptions& o_;
  const size_t token_;
  std::vector<float> x_, bias_;
  std::vector<int64_t> given_;
  bool on_score_, of_selected_;
  Score value_score_ = Score::kSoftmax;
  float max_ = -kInf;
  bool nan_ = false, none_ = false;
  // The selected experts, and the shared experts that have a logit, before
  // the options change ids. -1 stands for an invalid given id, and kNoExpert
  // for a given id that marks a slot without an expert.
  static constexpr int32_t kNoExpert = -2;
  std::vector<int32_t> ids_;
  std::vector<double> weights_;
  bool exact_ = true;  // true: weights must be equal; false: within bounds
  double bound_ = 0.0, absolute_ = 0.0, worst_ = 0.0;
  std::string wrong_;
};

}  // namespace

std::string WrongRouteCase(const RouteCase& c, const RouteResult& result) {
  size_t invalid = 0, elsewhere = 0;
  for (size_t t = 0; t < c.tokens; ++t) {
    const std::string wrong =
        Restatement(c, t).Check(result, invalid, elsewhere);
    if (!wrong.empty()) return "token " + std::to_string(t) + ": " + wrong;
  }
  if (result.report.invalid_ids != invalid) return "invalid_ids";
  if (result.report.elsewhere != elsewhere) return "elsewhere";
  return "";
}

}  // namespace switchyard::testing_support
