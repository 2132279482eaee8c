// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the grader of routers. It has to pass the library's own router on
// every ISA, and to name the mistake of each wrong router. The mistakes are in
// the table Causes(), or in the routers in plain code below.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "programs/conformance/causes.h"
#include "programs/conformance/grade.h"
#include "programs/conformance/text.h"
#include "programs/program.h"
#include "tests/swy_program.h"
#include "tests/target_test.h"

namespace switchyard {
namespace {

using conformance::Answer;
using conformance::Case;
using conformance::CaseGrade;
using conformance::Cause;
using conformance::Causes;
using conformance::Finding;
using conformance::Grader;
using conformance::Grades;
using conformance::Routed;
using conformance::Verdict;
using testing_support::ExpectError;
using testing_support::Outcome;
using testing_support::Swy;
using testing_support::SwyOk;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Grader& AllCases() {
  static Grader& grader = *new Grader(conformance::MakeCases());
  return grader;
}
const Case& CaseOf(const std::string& name) {
  for (const Case& c : AllCases().cases()) {
    if (c.name == name) return c;
  }
  throw std::out_of_range(name);
}
const CaseGrade& GradeOf(const Grades& grades, const std::string& name) {
  for (const CaseGrade& grade : grades.cases) {
    if (grade.name == name) return grade;
  }
  throw std::out_of_range(name);
}
Answer RightAnswer(const Case& c) {
  return {c.name, c.ids, c.weights, c.identity_weights, ""};
}
bool HasSentence(const CaseGrade& grade, const std::string& sentence) {
  return std::any_of(
      grade.findings.begin(), grade.findings.end(),
      [&](const Finding& finding) { return finding.sentence == sentence; });
}

class GradeOfLibrary : public testing_support::IsaTest {};

TEST_P(GradeOfLibrary, IsAllPass) {
  std::vector<Answer> answers;
  for (const Case& c : AllCases().cases()) {
    answers.push_back(conformance::RouteCase(c));
  }
  const Grades grades = AllCases().Grade(answers);
  EXPECT_TRUE(grades.IsGood()) << conformance::DescribeGrades(grades);
  EXPECT_EQ(grades.Count(Verdict::kPass), grades.cases.size());
}

INSTANTIATE_TEST_SUITE_P(Isa, GradeOfLibrary,
                         testing::ValuesIn(testing_support::RunnableIsaNames()),
                         [](const auto& test) { return test.param; });

// A router that makes one mistake of Causes() fails at least one case, and
// each case that it fails names the mistake.
TEST(Grade, NamesEachCauseOfTheTable) {
  std::set<std::string> names;
  for (const Cause& cause : Causes()) {
    EXPECT_TRUE(names.insert(cause.name).second) << cause.name;
    std::vector<Answer> answers;
    for (const Case& c : AllCases().cases()) {
      answers.push_back(RightAnswer(c));
      const std::optional<Routed> wrong = conformance::RouteWith({&cause}, c);
      if (!wrong.has_value()) continue;
      Answer& answer = answers.back();
      answer.ids = wrong->ids;
      answer.weights.assign(wrong->weights.begin(), wrong->weights.end());
      answer.identity_weights.assign(wrong->identity_weights.begin(),
                                     wrong->identity_weights.end());
    }
    const Grades grades = AllCases().Grade(answers);
    EXPECT_NE(grades.Count(Verdict::kDiffers), 0u) << cause.name;
    for (const CaseGrade& grade : grades.cases) {
      if (grade.verdict != Verdict::kDiffers) continue;
      EXPECT_TRUE(HasSentence(grade, cause.sentence))
          << cause.name << " in " << grade.name;
    }
  }
}

// A router in plain code, for one token. It computes the usual recipes, and
// answers that it does not support the others. Each class below overrides one
// step, and makes a mistake in it.
class PlainRouter {
 public:
  virtual ~PlainRouter() = default;

  virtual Answer Route(const Case& c) {
    Answer answer;
    answer.name = c.name;
    options_ = c.Options();
    if (!Takes(c)) {
      answer.unsupported = "not in this router";
      return answer;
    }
    for (size_t t = 0; t < c.tokens; ++t) {
      const auto row =
          c.logits.begin() + static_cast<ptrdiff_t>(t * c.num_experts);
      const Doubles logits =
          Read({row, row + static_cast<ptrdiff_t>(c.num_experts)});
      const bool has_nan = std::any_of(logits.begin(), logits.end(),
                                       [](double x) { return std::isnan(x); });
      const Doubles scores = Scores(logits);
      Doubles keys = logits;
      if (!c.correction_bias.empty()) {
        const size_t bias =
            c.bias_index.empty() ? 0 : static_cast<size_t>(c.bias_index[t]);
        for (size_t e = 0; e < keys.size(); ++e) {
          keys[e] = scores[e] + static_cast<double>(
                                    c.correction_bias[bias * keys.size() + e]);
        }
      } else if (options_.num_expert_group > 1) {
        keys = scores;
      }
      const Doubles all_keys = keys;
      if (options_.num_expert_group > 1) DropGroups(&keys);
      const std::vector<int32_t> ids = Select(keys, c.top_k);
      Doubles weights;
      for (const int32_t id : ids) {
        weights.push_back(Value(scores, all_keys, static_cast<size_t>(id)));
      }
      Weigh(scores, logits, ids, &weights);
      for (size_t i = 0; i < ids.size(); ++i) {
        answer.ids.push_back(ids[i]);
        answer.weights.push_back(has_nan ? kNaN
                                         : static_cast<float>(weights[i]));
      }
    }
    return answer;
  }

 protected:
  using Doubles = std::vector<double>;

  virtual bool Takes(const Case& c) const {
    const std::set<std::string> known = {"score",
                                         "renormalize",
                                         "divisor",
                                         "eps",
                                         "clamp",
                                         "routed_scaling_factor",
                                         "num_expert_group",
                                         "topk_group",
                                         "group_score_of",
                                         "weight_of"};
    for (const auto& [name, value] : c.options) {
      if (known.count(name) == 0) return false;
    }
    const bool has_score =
        options_.score == Score::kSoftmax || options_.score == Score::kSigmoid;
    const bool is_finite =
        std::all_of(c.logits.begin(), c.logits.end(),
                    [](float logit) { return std::isfinite(logit); });
    const bool has_nan_bias =
        std::any_of(c.correction_bias.begin(), c.correction_bias.end(),
                    [](float bias) { return std::isnan(bias); });
    return has_score && options_.weight_of == WeightOf::kScore &&
           c.expert_scale.empty() && c.token_mask.empty() && !has_nan_bias &&
           (is_finite || TakesAnyLogit());
  }
  virtual bool TakesAnyLogit() const { return false; }
  virtual Doubles Read(const std::vector<float>& logits) const {
    return {logits.begin(), logits.end()};
  }
  virtual Doubles Scores(const Doubles& logits) const {
    if (options_.score == Score::kSoftmax) return Softmax(logits);
    Doubles scores;
    for (const double x : logits) scores.push_back(1.0 / (1.0 + std::exp(-x)));
    // The library rounds scores to f32 (and tiny ones to 0) before it adds
    // biases, so this router does, too.
    for (double& s : scores)
      s = s < 0x1p-126 ? 0.0 : static_cast<double>(static_cast<float>(s));
    return scores;
  }
  static Doubles Softmax(const Doubles& logits) {
    const double max = *std::max_element(logits.begin(), logits.end());
    double sum = 0.0;
    Doubles scores;
    for (const double x : logits) {
      scores.push_back(std::exp(x - max));
      sum += scores.back();
    }
    for (double& s : scores) s /= sum;
    return scores;
  }
  virtual double ScoreOfGroup(Doubles group) const {
    std::sort(group.rbegin(), group.rend());
    return std::accumulate(
        group.begin(),
        group.begin() + static_cast<ptrdiff_t>(options_.group_score_of), 0.0);
  }
  virtual void DropGroups(Doubles* keys) const {
    const size_t size = keys->size() / options_.num_expert_group;
    Doubles scores;
    for (size_t g = 0; g < options_.num_expert_group; ++g) {
      const auto begin = keys->begin() + static_cast<ptrdiff_t>(g * size);
      scores.push_back(
          ScoreOfGroup({begin, begin + static_cast<ptrdiff_t>(size)}));
    }
    const std::vector<int32_t> kept = Best(scores, options_.topk_group);
    for (size_t e = 0; e < keys->size(); ++e) {
      const auto found =
          std::find(kept.begin(), kept.end(), static_cast<int32_t>(e / size));
      if (found == kept.end()) (*keys)[e] = -HUGE_VAL;
    }
  }
  virtual std::vector<int32_t> Select(const Doubles& keys, size_t top_k) const {
    return Best(keys, top_k);
  }
  static std::vector<int32_t> Best(const Doubles& keys, size_t count) {
    std::vector<int32_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)];
    });
    order.resize(count);
    return order;
  }
  // The value of a selected expert, before the division.
  virtual double Value(const Doubles& scores, const Doubles& keys,
                       size_t expert) const {
    (void)keys;
    return scores[expert];
  }
  // Divides and scales the weights.
  virtual void Weigh(const Doubles& scores, const Doubles& logits,
                     const std::vector<int32_t>& ids, Doubles* weights) const {
    (void)logits, (void)ids;
    const double sum = std::accumulate(weights->begin(), weights->end(), 0.0);
    const double all = std::accumulate(scores.begin(), scores.end(), 0.0);
    const double eps = static_cast<double>(options_.eps);
    double divisor = sum;
    if (options_.divisor == Divisor::kSumPlusEps) divisor += eps;
    if (options_.divisor == Divisor::kMaxOfSumAndEps) {
      divisor = std::max(sum, eps);
    }
    if (options_.divisor == Divisor::kMaxOfSumAndShare) {
      divisor = std::max(sum, static_cast<double>(options_.clamp) * all);
    }
    if (!options_.renormalize) divisor = 1.0;
    for (double& weight : *weights) {
      weight *= static_cast<double>(options_.routed_scaling_factor) / divisor;
    }
  }

  RouteOptions options_;
};

// vllm-omni #7175: marks selected experts by -inf.
class SelectsTwice : public PlainRouter {
  std::vector<int32_t> Select(const Doubles& keys,
                              size_t top_k) const override {
    Doubles left = keys;
    std::vector<int32_t> ids;
    for (size_t i = 0; i < top_k; ++i) {
      const auto best = std::max_element(left.begin(), left.end());
      ids.push_back(static_cast<int32_t>(best - left.begin()));
      *best = -HUGE_VAL;
    }
    return ids;
  }
};
// sglang #31768: subtracts noise that grows with the index of the expert.
class SubtractsNoise : public PlainRouter {
  std::vector<int32_t> Select(const Doubles& keys,
                              size_t top_k) const override {
    Doubles noisy = keys;
    for (size_t e = 0; e < noisy.size(); ++e) {
      noisy[e] -= static_cast<double>(e) * 3e-7;
    }
    return Best(noisy, top_k);
  }
};
// vllm #51521: supports only the numbers of experts in a list.
class RefusesSizes : public PlainRouter {
  bool Takes(const Case& c) const override {
    return c.num_experts != 144 && PlainRouter::Takes(c);
  }
};
// Three routers that keep wrong groups (ik_llama.cpp #836): the groups with
// the largest single key, all groups, and just the groups that should be
// dropped.
class RanksGroupsByMaximum : public PlainRouter {
  double ScoreOfGroup(Doubles group) const override {
    return *std::max_element(group.begin(), group.end());
  }
};
class IgnoresGroups : public PlainRouter {
  void DropGroups(Doubles*) const override {}
};
class DropsBestGroups : public PlainRouter {
  void DropGroups(Doubles* keys) const override {
    const Doubles all = *keys;
    PlainRouter::DropGroups(keys);
    for (size_t e = 0; e < all.size(); ++e) {
      (*keys)[e] = std::isinf((*keys)[e]) ? all[e] : -HUGE_VAL;
    }
  }
};
// llama.cpp #18980: computes softmax scores for every recipe.
class TakesSoftmaxForSigmoid : public PlainRouter {
  Doubles Scores(const Doubles& logits) const override {
    return Softmax(logits);
  }
};
class LetsLargerIndexWin : public PlainRouter {
  std::vector<int32_t> Select(const Doubles& keys,
                              size_t top_k) const override {
    std::vector<bool> used(keys.size());
    std::vector<int32_t> ids;
    while (ids.size() < top_k) {
      size_t best = keys.size();
      for (size_t e = 0; e < keys.size(); ++e) {
        if (used[e]) continue;
        if (best == keys.size() || keys[e] >= keys[best]) best = e;
      }
      used[best] = true;
      ids.push_back(static_cast<int32_t>(best));
    }
    return ids;
  }
};
// Ranks NaN above all numbers, as torch.topk() does.
class RanksNanFirst : public PlainRouter {
  bool TakesAnyLogit() const override { return true; }
  std::vector<int32_t> Select(const Doubles& keys,
                              size_t top_k) const override {
    Doubles ranked = keys;
    for (double& key : ranked) {
      if (std::isnan(key)) key = HUGE_VAL;
    }
    return Best(ranked, top_k);
  }
};
class AddsBiasToWeight : public PlainRouter {
  double Value(const Doubles&, const Doubles& keys,
               size_t expert) const override {
    return options_.score == Score::kSigmoid ? keys[expert]
                                             : std::exp(keys[expert]);
  }
  bool Takes(const Case& c) const override {
    return options_.score == Score::kSigmoid && !c.correction_bias.empty() &&
           PlainRouter::Takes(c);
  }
};
class DoesNotDivide : public PlainRouter {
  void Weigh(const Doubles&, const Doubles&, const std::vector<int32_t>&,
             Doubles* weights) const override {
    for (double& weight : *weights) {
      weight *= static_cast<double>(options_.routed_scaling_factor);
    }
  }
};
class DoesNotScale : public PlainRouter {
 protected:
  void Weigh(const Doubles& scores, const Doubles& logits,
             const std::vector<int32_t>& ids, Doubles* weights) const override {
    PlainRouter::Weigh(scores, logits, ids, weights);
    for (double& weight : *weights) {
      weight /= static_cast<double>(options_.routed_scaling_factor);
    }
  }
};
class TakesSoftmaxAndDoesNotScale : public DoesNotScale {
  Doubles Scores(const Doubles& logits) const override {
    return Softmax(logits);
  }
};
class TakesSoftmaxOfSelected : public PlainRouter {
  void Weigh(const Doubles&, const Doubles& logits,
             const std::vector<int32_t>& ids, Doubles* weights) const override {
    Doubles selected;
    for (const int32_t id : ids) {
      selected.push_back(logits[static_cast<size_t>(id)]);
    }
    *weights = Softmax(selected);
    for (double& weight : *weights) {
      weight *= static_cast<double>(options_.routed_scaling_factor);
    }
  }
};
class ReadsLogitsAsBf16 : public PlainRouter {
  Doubles Read(const std::vector<float>& logits) const override {
    Doubles rounded;
    for (float logit : logits) {
      uint32_t bits = 0;
      std::memcpy(&bits, &logit, sizeof(bits));
      bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u;
      std::memcpy(&logit, &bits, sizeof(bits));
      rounded.push_back(static_cast<double>(logit));
    }
    return rounded;
  }
};
// Causes() does not have the mistakes below. The grader finds them by other
// checks.
class SortsSlotsByIndex : public PlainRouter {
  std::vector<int32_t> Select(const Doubles& keys,
                              size_t top_k) const override {
    std::vector<int32_t> ids = Best(keys, top_k);
    std::sort(ids.begin(), ids.end());
    return ids;
  }
};
class TriplesWeights : public PlainRouter {
  void Weigh(const Doubles& scores, const Doubles& logits,
             const std::vector<int32_t>& ids, Doubles* weights) const override {
    PlainRouter::Weigh(scores, logits, ids, weights);
    for (double& weight : *weights) weight *= 3.0;
  }
};
class StoresWeightsAsBf16 : public PlainRouter {
  void Weigh(const Doubles& scores, const Doubles& logits,
             const std::vector<int32_t>& ids, Doubles* weights) const override {
    PlainRouter::Weigh(scores, logits, ids, weights);
    for (double& weight : *weights) {
      weight =
          std::ldexp(std::nearbyint(std::ldexp(weight, 8 - std::ilogb(weight))),
                     std::ilogb(weight) - 8);
    }
  }
};
class ExponentiatesLogits : public PlainRouter {
  Doubles Scores(const Doubles& logits) const override {
    if (options_.score != Score::kSoftmax) return PlainRouter::Scores(logits);
    Doubles scores;
    float sum = 0;
    for (const double x : logits) {
      scores.push_back(static_cast<double>(std::exp(static_cast<float>(x))));
      sum += static_cast<float>(scores.back());
    }
    for (double& s : scores) s /= static_cast<double>(sum);
    return scores;
  }
};
class CountsFromOne : public PlainRouter {
 public:
  Answer Route(const Case& c) override {
    Answer answer = PlainRouter::Route(c);
    for (int32_t& id : answer.ids) ++id;
    return answer;
  }
};
class ForgetsASlot : public PlainRouter {
 public:
  Answer Route(const Case& c) override {
    Answer answer = PlainRouter::Route(c);
    if (!answer.ids.empty()) answer.ids.pop_back();
    return answer;
  }
};

Grades GradeRouter(PlainRouter* router) {
  std::vector<Answer> answers;
  for (const Case& c : AllCases().cases()) answers.push_back(router->Route(c));
  return AllCases().Grade(answers);
}

TEST(Grade, APlainRightRouterPasses) {
  PlainRouter right;
  const Grades grades = GradeRouter(&right);
  EXPECT_TRUE(grades.IsGood()) << conformance::DescribeGrades(grades);
  EXPECT_GT(grades.Count(Verdict::kPass), 40u);
}

struct WrongRouter {
  const char* label;
  std::function<std::unique_ptr<PlainRouter>()> make;
  const char* case_name;
  const char* cause;  // the name of the case's first finding
};
template <class Router>
WrongRouter Wrong(const char* label, const char* case_name, const char* cause) {
  return {label, [] { return std::make_unique<Router>(); }, case_name, cause};
}

const WrongRouter kWrongRouters[] = {
    Wrong<SelectsTwice>("SelectsTwice", "bias_minus_infinity_vllm_omni_7175",
                        "selects_twice"),
    Wrong<SubtractsNoise>("SubtractsNoise", "near_ties_sglang_31768",
                          "noise_on_keys"),
    Wrong<RefusesSizes>("RefusesSizes", "experts_144_vllm_51521",
                        "size_refused"),
    Wrong<RanksGroupsByMaximum>("RanksGroupsByMaximum", "groups_ik_llama_836",
                                "group_score_is_maximum"),
    Wrong<IgnoresGroups>("IgnoresGroups", "groups_ik_llama_836",
                         "groups_ignored"),
    Wrong<DropsBestGroups>("DropsBestGroups", "groups_ik_llama_836",
                           "best_groups_dropped"),
    Wrong<TakesSoftmaxForSigmoid>("TakesSoftmaxForSigmoid",
                                  "sigmoid_llama_cpp_18980", "softmax_score"),
    Wrong<LetsLargerIndexWin>("LetsLargerIndexWin", "ties",
                              "larger_index_wins"),
    Wrong<RanksNanFirst>("RanksNanFirst", "nan_logits", "nan_first"),
    Wrong<AddsBiasToWeight>("AddsBiasToWeight", "bias_not_in_weight",
                            "bias_in_weight"),
    Wrong<DoesNotDivide>("DoesNotDivide", "scale", "renormalization_missing"),
    Wrong<DoesNotScale>("DoesNotScale", "scale", "scale_missing"),
    Wrong<TakesSoftmaxAndDoesNotScale>("TakesSoftmaxAndDoesNotScale",
                                       "sigmoid_llama_cpp_18980",
                                       "softmax_score+scale_missing"),
    Wrong<TakesSoftmaxOfSelected>("TakesSoftmaxOfSelected",
                                  "softmax_before_selection",
                                  "weight_of_softmax_of_selected"),
    Wrong<ReadsLogitsAsBf16>("ReadsLogitsAsBf16", "float32_logits",
                             "logits_in_bf16"),
    Wrong<SortsSlotsByIndex>("SortsSlotsByIndex", "scale", "slot_order"),
    Wrong<TriplesWeights>("TriplesWeights", "experts_144_vllm_51521", "factor"),
    Wrong<StoresWeightsAsBf16>("StoresWeightsAsBf16", "scale", "inaccurate"),
    Wrong<ExponentiatesLogits>("ExponentiatesLogits", "far_logits",
                               "not_finite"),
    Wrong<CountsFromOne>("CountsFromOne", "experts_7_top_7", "id_out_of_range"),
    Wrong<ForgetsASlot>("ForgetsASlot", "scale", "shape"),
};

TEST(Grade, NamesTheMistakesOfPlainRouters) {
  for (const WrongRouter& wrong : kWrongRouters) {
    const Grades grades = GradeRouter(wrong.make().get());
    EXPECT_FALSE(grades.IsGood()) << wrong.label;
    const CaseGrade& grade = GradeOf(grades, wrong.case_name);
    EXPECT_EQ(grade.verdict, Verdict::kDiffers) << wrong.label;
    ASSERT_FALSE(grade.findings.empty()) << wrong.label;
    EXPECT_EQ(grade.findings[0].name, wrong.cause) << wrong.label;
    ASSERT_FALSE(grade.rows.empty()) << wrong.label;
    EXPECT_LE(grade.rows.size(), conformance::kShownRows) << wrong.label;
    EXPECT_NE(conformance::DescribeGrades(grades).find(
                  "\nIt " + grade.findings[0].sentence + ".\n"),
              std::string::npos)
        << wrong.label;
  }
}

TEST(Grade, NamesTheFamiliesForWhichAWrongResultIsRight) {
  Case c = CaseOf("softmax_before_selection");
  c.options = {};  // the recipe of Mixtral
  const Routed routed = conformance::RouteExactly(c, c.Options());
  Answer answer = RightAnswer(c);
  answer.ids = routed.ids;
  answer.weights.assign(routed.weights.begin(), routed.weights.end());
  const Grades grades = AllCases().Grade({answer});
  const CaseGrade& grade = GradeOf(grades, "softmax_before_selection");
  EXPECT_EQ(grade.findings[0].name, "renormalization_unwanted");
  EXPECT_NE(std::find(grade.families.begin(), grade.families.end(), "mixtral"),
            grade.families.end());
}

TEST(Grade, ShowsTheFirstSlotThatDiffers) {
  const Case& c = CaseOf("ties");
  Answer answer = RightAnswer(c);
  const size_t slots = c.Slots();
  answer.ids[slots + 2] = 7;
  answer.weights[2 * slots + 1] = 0.75f;
  const Grades grades = AllCases().Grade({answer});
  const CaseGrade& grade = GradeOf(grades, "ties");
  EXPECT_EQ(grade.wrong_tokens, 2u);
  ASSERT_EQ(grade.rows.size(), 2u);
  EXPECT_EQ(grade.rows[0], "row 1, slot 2: id 7, expected " +
                               std::to_string(c.ids[slots + 2]));
  EXPECT_EQ(grade.rows[1], "row 2, slot 1: weight 0.75, expected " +
                               conformance::TextOf(c.weights[2 * slots + 1]));
  EXPECT_TRUE(grade.findings.empty());
  EXPECT_NE(conformance::DescribeGrades(grades).find("The cause is not known."),
            std::string::npos);
  EXPECT_EQ(grades.Count(Verdict::kMissing), grades.cases.size() - 1);
  EXPECT_EQ(GradeOf(grades, "scale").verdict, Verdict::kMissing);
}

TEST(Grade, WeighsIdentityWeightsIfTheAnswerHasThem) {
  Answer answer = RightAnswer(CaseOf("zero_experts"));
  ASSERT_FALSE(answer.identity_weights.empty());
  const auto verdict = [&answer] {
    return GradeOf(AllCases().Grade({answer}), "zero_experts").verdict;
  };
  EXPECT_EQ(verdict(), Verdict::kPass);
  answer.identity_weights[0] += 1.0f;
  EXPECT_EQ(verdict(), Verdict::kDiffers);
  answer.identity_weights.clear();
  EXPECT_EQ(verdict(), Verdict::kPass);
  answer.identity_weights = {1.0f};
  EXPECT_EQ(verdict(), Verdict::kDiffers);
}

// A router may leave out recipes, if it is right in the others.
TEST(Grade, UnsupportedIsNoMistakeUnlessItRefusesASize) {
  std::vector<Answer> answers;
  for (const Case& c : AllCases().cases()) {
    answers.push_back(RightAnswer(c));
    if (c.name != "experts_144_vllm_51521" && c.name != "sparsemixer") continue;
    answers.back() = {c.name, {}, {}, {}, "no"};
  }
  const Grades grades = AllCases().Grade(answers);
  EXPECT_FALSE(grades.IsGood());
  EXPECT_EQ(GradeOf(grades, "sparsemixer").verdict, Verdict::kUnsupported);
  EXPECT_EQ(GradeOf(grades, "sparsemixer").reason, "no");
  const CaseGrade& refused = GradeOf(grades, "experts_144_vllm_51521");
  ASSERT_EQ(refused.verdict, Verdict::kDiffers);
  EXPECT_EQ(refused.findings[0].sentence.find("refuses 144 experts with top_k "
                                              "8, and computes the same "),
            0u)
      << refused.findings[0].sentence;

  for (Answer& answer : answers) answer = {answer.name, {}, {}, {}, "no"};
  const Grades none = AllCases().Grade(answers);
  const std::string report = conformance::DescribeGrades(none);
  EXPECT_EQ(report.find("cases: all unsupported\n\nUnsupported: no\n  "),
            std::to_string(none.cases.size()).size() + 1)
      << report;
  testing_support::ExpectFitsATerminal(report);
  EXPECT_EQ(none.Count(Verdict::kUnsupported), none.cases.size());
  EXPECT_FALSE(none.IsGood());
}

TEST(Grade, RefusesAnswersOfNoCase) {
  const Answer answer = RightAnswer(CaseOf("ties"));
  const auto error = [](const std::vector<Answer>& answers) {
    try {
      AllCases().Grade(answers);
    } catch (const program::InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(error({answer, answer}), "case ties: has two answers");
  Answer other = answer;
  other.name = "tie";
  EXPECT_EQ(error({other}), "case tie: there is an answer, and no such case");
}

// The text of a case has the answer, too. This command copies the answer.
constexpr char kCopies[] =
    "awk '/^[a-z]/ && !/^(nan|inf)/ { "
    "k = /^(switchyard-router|case|ids|weights|identity_weights|end)/ } k'";

TEST(SwyGrade, ARightCommandPasses) {
  const Outcome all = SwyOk(std::string("grade ") + kCopies);
  EXPECT_EQ(all.out,
            std::to_string(AllCases().cases().size()) + " cases: all pass\n");
  EXPECT_EQ(SwyOk(std::string("grade --only ties ") + kCopies).out,
            "1 case: all pass\n");
}

TEST(SwyGrade, OwnRouterPassesOnEveryIsa) {
  const std::vector<std::string> lines =
      testing_support::Lines(SwyOk("grade --own").out);
  const std::vector<std::string> isas = testing_support::RunnableIsaNames();
  ASSERT_EQ(lines.size(), isas.size());
  const std::string pass =
      " " + std::to_string(AllCases().cases().size()) + " cases: all pass";
  for (size_t i = 0; i < isas.size(); ++i) {
    EXPECT_EQ(lines[i].find(isas[i] + " "), 0u) << lines[i];
    EXPECT_EQ(lines[i].substr(lines[i].size() - pass.size()), pass);
  }
}

TEST(SwyGrade, AWrongCommandExitsWithOne) {
  const testing_support::TempFolder folder;
  const std::string json = folder.File("grades.json");
  const Outcome outcome =
      Swy("grade --only 'scale*' --json " + json + " sh -c \"" +
          "sed 's/^1/2/' | awk '/^[a-z]/ { k = "
          "/^(switchyard-router|case|ids|weights|end)/ } k'\"");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(outcome.Printed("2 cases: all differ\n")) << outcome.out;
  const nlohmann::json read =
      nlohmann::json::parse(testing_support::ReadFile(json));
  EXPECT_EQ(read["differ"], 2);
  EXPECT_EQ(read["cases"][0]["verdict"], "differ");
  EXPECT_TRUE(read["cases"][0].contains("causes"));
  EXPECT_FALSE(read["cases"][0]["first_wrong_rows"].empty());
}

TEST(SwyGrade, TellsHowTheCommandEnded) {
  const Outcome exits = Swy("grade --only ties sh -c 'exit 3'");
  EXPECT_EQ(exits.exit_code, 1);
  EXPECT_EQ(exits.out,
            "The command exited with 3.\n1 case: all missing\n\nNo answer:\n"
            "  ties\n");
  const Outcome dies = Swy("grade --only ties sh -c 'kill -9 $$'");
  EXPECT_EQ(dies.exit_code, 1);
  EXPECT_TRUE(dies.Printed("The command was ended by signal 9.\n"));
  // swy fails if the command fails, even if all answers are right.
  const Outcome late =
      Swy(std::string("grade --only ties sh -c \"") +
          "awk '/^[a-z]/ { k = /^(switchyard-router|case|ids|weights|end)/ } "
          "k'; exit 4\"");
  EXPECT_EQ(late.exit_code, 1);
  EXPECT_EQ(late.out, "The command exited with 4.\n1 case: all pass\n");
  // The command's own errors appear on stderr unchanged.
  EXPECT_EQ(Swy("grade --only ties sh -c 'echo no GPU >&2'").err, "no GPU\n");
}

TEST(SwyGrade, WrongArgumentsAndAnswersAreErrors) {
  ExpectError(Swy("grade"), "grade: needs COMMAND, or --own");
  ExpectError(Swy("grade --own cat"), "grade: --own: takes no COMMAND");
  ExpectError(Swy("grade --frobnicate cat"), "--frobnicate: is no option");
  ExpectError(Swy("grade --only 'x*' cat"), "--only: 'x*' matches no case");
  ExpectError(Swy("grade --only"), "--only");
  ExpectError(Swy("grade --own --json grades.json"), "--own");
  ExpectError(Swy("grade --json /no/such cat"), "--json");
  ExpectError(Swy("grade /no/such/router"),
              "cannot run /no/such/router: No such file or directory");
  ExpectError(Swy("grade --only ties cat"),
              "grade: cat: wrong answers: line 3: about");
  ExpectError(Swy("grade --only ties sh -c 'echo hello; exit 1'"),
              "grade: sh exited with 1: wrong answers: line 1");
  ExpectError(Swy(std::string("grade --only ties sh -c \"") +
                  "sed s/ties/tie/ | awk '/^[a-z]/ { k = "
                  "/^(switchyard-router|case|ids|weights|end)/ } k'\""),
              "case tie: there is an answer, and no such case");
}

}  // namespace
}  // namespace switchyard
