// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/conformance/grade.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "programs/conformance/text.h"
#include "programs/program.h"
#include "programs/status_text.h"
#include "switchyard/presets.h"

namespace switchyard::conformance {
namespace {

constexpr size_t kShownFindings = 3, kShownFamilies = 4;
constexpr char kSlotOrder[] = "slot_order", kFactor[] = "factor";

const char* PluralOf(size_t count) { return count == 1 ? "" : "s"; }

// The expected results of a case, or the results that a cause would give.
struct Expected {
  const std::vector<int32_t>& ids;
  std::vector<float> weights, identity_weights;
};
std::vector<float> ToFloats(const std::vector<double>& values) {
  std::vector<float> floats;
  for (const double value : values) {
    floats.push_back(static_cast<float>(value));
  }
  return floats;
}
Expected ExpectedOf(const Case& c) {
  return {c.ids, c.weights, c.identity_weights};
}
Expected ExpectedOf(const Routed& routed) {
  return {routed.ids, ToFloats(routed.weights),
          ToFloats(routed.identity_weights)};
}

// Describes the first difference between a token's answer and the expected
// results, or returns "".
std::string Difference(const Case& c, const Expected& expected,
                       const Answer& got, size_t token) {
  const size_t slots = c.Slots();
  const auto differs = [&](const std::string& where, const std::string& is,
                           const std::string& should) {
    return "row " + std::to_string(token) + ", " + where + " " + is +
           ", expected " + should;
  };
  for (size_t slot = 0; slot < slots; ++slot) {
    const size_t i = token * slots + slot;
    if (got.ids[i] == expected.ids[i]) continue;
    return differs("slot " + std::to_string(slot) + ": id",
                   std::to_string(got.ids[i]), std::to_string(expected.ids[i]));
  }
  for (size_t slot = 0; slot < slots; ++slot) {
    const size_t i = token * slots + slot;
    if (IsRightWeight(got.weights[i], expected.weights[i], c.tolerance)) {
      continue;
    }
    return differs("slot " + std::to_string(slot) + ": weight",
                   TextOf(got.weights[i]), TextOf(expected.weights[i]));
  }
  const bool has_identity =
      !got.identity_weights.empty() && !expected.identity_weights.empty();
  if (has_identity &&
      !IsRightWeight(got.identity_weights[token],
                     expected.identity_weights[token], c.tolerance)) {
    return differs("identity weight", TextOf(got.identity_weights[token]),
                   TextOf(expected.identity_weights[token]));
  }
  return "";
}

bool IsEqual(const Case& c, const Expected& expected, const Answer& got) {
  if (expected.ids.size() != got.ids.size()) return false;
  for (size_t t = 0; t < c.tokens; ++t) {
    if (!Difference(c, expected, got, t).empty()) return false;
  }
  return true;
}

// Returns the error in an answer's shape, or "" if its shape is right.
std::string WrongShape(const Case& c, const Answer& answer) {
  const auto wrong = [](const char* block, size_t is, size_t should) {
    return std::string(block) + " has " + std::to_string(is) +
           " values, expected " + std::to_string(should);
  };
  const size_t pairs = c.tokens * c.Slots();
  if (answer.ids.size() != pairs) return wrong("ids", answer.ids.size(), pairs);
  if (answer.weights.size() != pairs) {
    return wrong("weights", answer.weights.size(), pairs);
  }
  const size_t identity = answer.identity_weights.size();
  if (identity != 0 && identity != c.tokens) {
    return wrong("identity_weights", identity, c.tokens);
  }
  return "";
}

// True if some token has fewer than top_k keys above -inf.
bool HasFewKeys(const Case& c) {
  Steps steps;
  bool has_few = false;
  steps.change_keys = [&](const std::vector<double>& keys) {
    const auto above = std::count_if(keys.begin(), keys.end(), [](double key) {
      return std::isnan(key) || key > -HUGE_VAL;
    });
    has_few |= static_cast<size_t>(above) < c.top_k;
  };
  RouteExactly(c, c.Options(), steps);
  return has_few;
}

// Finds results that no recipe gives: ids out of range, or an expert twice.
std::optional<Finding> FindImpossible(const Case& c, const Answer& answer) {
  const size_t slots = c.Slots();
  const int32_t most = static_cast<int32_t>(
      c.num_experts + static_cast<size_t>(c.Options().num_shared_experts));
  for (size_t t = 0; t < c.tokens; ++t) {
    std::set<int32_t> ids;
    for (size_t i = t * slots; i < (t + 1) * slots; ++i) {
      const int32_t id = answer.ids[i];
      if (id < -1 || id >= most) {
        return Finding{"id_out_of_range",
                       "returns an id outside [0, num_experts)"};
      }
      if (id < 0 || ids.insert(id).second) continue;
      if (HasFewKeys(c)) {
        return Finding{"selects_twice",
                       "selects an expert twice, because it marks selected "
                       "experts by the key -inf, which other experts have too"};
      }
      return Finding{"selects_twice", "selects an expert twice"};
    }
  }
  return std::nullopt;
}

// Describes the differences of an answer that no cause explains.
std::optional<Finding> Describe(const Case& c, const Answer& answer) {
  const size_t slots = c.Slots(), columns = c.Columns();
  std::set<std::string> special;
  bool is_permuted = true, has_right_ids = true, has_factor = true;
  double factor = 0, error = 0;
  for (size_t t = 0; t < c.tokens; ++t) {
    std::vector<bool> used(slots);
    bool hides_nan = false, makes_nan = false;
    for (size_t s = 0; s < slots; ++s) {
      const size_t i = t * slots + s;
      const float got = answer.weights[i], want = c.weights[i];
      has_right_ids &= answer.ids[i] == c.ids[i];
      bool is_found = false;
      for (size_t other = 0; other < slots && !is_found; ++other) {
        const size_t o = t * slots + other;
        is_found = !used[other] && answer.ids[i] == c.ids[o] &&
                   IsRightWeight(got, c.weights[o], c.tolerance);
        used[other] = used[other] || is_found;
      }
      is_permuted &= is_found;
      hides_nan |= std::isnan(want) && !std::isnan(got);
      makes_nan |= std::isfinite(want) && !std::isfinite(got);
      if (!std::isfinite(got) || !std::isfinite(want)) continue;
      const double g = static_cast<double>(got), w = static_cast<double>(want);
      if (w == 0.0) {
        has_factor &= g == 0.0;
        continue;
      }
      if (factor == 0.0) factor = g / w;
      has_factor &=
          std::fabs(g / w - factor) <= 4 * c.tolerance * std::fabs(factor);
      error = std::max(error, std::fabs(g / w - 1.0));
    }
    if (hides_nan) {
      special.insert(
          "gives numbers for weights of a row with a NaN logit, and all these "
          "weights have to be NaN");
    }
    if (!makes_nan) continue;
    bool has_infinity = false, is_empty = true;
    for (size_t e = 0; e < columns; ++e) {
      const float logit = c.logits[t * columns + e];
      has_infinity |= logit == HUGE_VALF;
      is_empty &= logit == -HUGE_VALF;
    }
    special.insert(std::string("gives weights that are not finite") +
                   (is_empty       ? " if all logits of a row are -inf"
                    : has_infinity ? " if a row has a logit of +inf"
                                   : ""));
  }
  if (!special.empty()) return Finding{"not_finite", *special.begin()};
  if (is_permuted) {
    return Finding{kSlotOrder,
                   "selects the right experts with the right weights, and "
                   "does not write the largest key first"};
  }
  if (!has_right_ids) return std::nullopt;
  if (has_factor && factor != 0.0) {
    return Finding{kFactor, "selects the right experts, and its weights are " +
                                TextOf(static_cast<float>(factor)) +
                                " times the expected ones"};
  }
  if (error <= 0x1p-7) {
    return Finding{"inaccurate",
                   "selects the right experts, and its weights have errors of "
                   "up to " +
                       TextOf(static_cast<float>(error)) +
                       (error > 0x1p-10   ? ", as if rounded to bf16"
                        : error > 0x1p-13 ? ", as if rounded to f16"
                                          : "")};
  }
  return std::nullopt;
}

bool IsFinite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}
bool HasInputs(const Case& a, const Case& b) {
  return a.correction_bias.empty() == b.correction_bias.empty() &&
         a.bias_index.empty() == b.bias_index.empty() &&
         a.expert_scale.empty() == b.expert_scale.empty() &&
         a.token_mask.empty() == b.token_mask.empty();
}
std::string SizesOf(const Case& c) {
  return std::to_string(c.num_experts) + " experts with top_k " +
         std::to_string(c.top_k);
}

std::string Join(const std::vector<std::string>& words, size_t most) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i == most) return text + ", ...";
    text += (i == 0 ? "" : ", ") + words[i];
  }
  return text;
}

// Returns the names in lines that fit a terminal's width.
std::string Lines(const std::vector<std::string>& names) {
  constexpr size_t kWidth = 80;
  std::string text, line;
  for (const std::string& name : names) {
    if (!line.empty() && line.size() + 2 + name.size() > kWidth) {
      text += line + "\n";
      line.clear();
    }
    line += "  " + name;
  }
  return text + line + "\n";
}

bool HasSentence(const CaseGrade& grade, const std::string& sentence) {
  return std::any_of(grade.findings.begin(), grade.findings.end(),
                     [&sentence](const Finding& finding) {
                       return finding.sentence == sentence;
                     });
}
std::string FirstSentence(const CaseGrade& grade) {
  return grade.findings.empty() ? "" : grade.findings[0].sentence;
}

}  // namespace

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kDiffers:
      return "differ";
    case Verdict::kUnsupported:
      return "unsupported";
    case Verdict::kMissing:
      return "missing";
  }
  return "";
}

size_t Grades::Count(Verdict verdict) const {
  return static_cast<size_t>(std::count_if(
      cases.begin(), cases.end(),
      [verdict](const CaseGrade& c) { return c.verdict == verdict; }));
}
bool Grades::IsGood() const {
  return Count(Verdict::kDiffers) == 0 && Count(Verdict::kMissing) == 0 &&
         Count(Verdict::kPass) != 0;
}

const std::optional<Routed>& Grader::Predicted(size_t c, size_t cause) {
  const auto key = std::make_pair(c, cause);
  const auto found = predicted_.find(key);
  if (found != predicted_.end()) return found->second;
  return predicted_.emplace(key, RouteWith({&Causes()[cause]}, cases_[c]))
      .first->second;
}

bool Grader::IsSeen(size_t c, size_t cause) {
  const std::optional<Routed>& predicted = Predicted(c, cause);
  if (!predicted.has_value()) return false;
  const Expected wrong = ExpectedOf(*predicted);
  const Answer right = {"", cases_[c].ids, cases_[c].weights,
                        cases_[c].identity_weights, ""};
  return !IsEqual(cases_[c], wrong, right);
}

Grades Grader::Grade(const std::vector<Answer>& answers) {
  std::map<std::string, const Answer*> by_name;
  for (const Answer& answer : answers) {
    if (!by_name.emplace(answer.name, &answer).second) {
      throw program::InputError("case " + answer.name + ": has two answers");
    }
  }
  Grades grades;
  std::vector<const Answer*> of_cases;
  for (const Case& c : cases_) {
    CaseGrade grade;
    grade.name = c.name;
    grade.tokens = c.tokens;
    const auto found = by_name.find(c.name);
    of_cases.push_back(found == by_name.end() ? nullptr : found->second);
    if (of_cases.back() != nullptr) {
      const Answer& answer = *of_cases.back();
      by_name.erase(found);
      const std::string wrong_shape = WrongShape(c, answer);
      grade.verdict = Verdict::kPass;
      if (!answer.unsupported.empty()) {
        grade.verdict = Verdict::kUnsupported;
        grade.reason = answer.unsupported;
      } else if (!wrong_shape.empty()) {
        grade.verdict = Verdict::kDiffers;
        grade.wrong_tokens = c.tokens;
        grade.rows = {wrong_shape};
        grade.findings = {
            {"shape", "returns results of another shape than the case has"}};
      } else {
        const Expected expected = ExpectedOf(c);
        for (size_t t = 0; t < c.tokens; ++t) {
          const std::string row = Difference(c, expected, answer, t);
          if (row.empty()) continue;
          grade.verdict = Verdict::kDiffers;
          if (++grade.wrong_tokens <= kShownRows) grade.rows.push_back(row);
        }
      }
    }
    grades.cases.push_back(grade);
  }
  if (!by_name.empty()) {
    throw program::InputError("case " + by_name.begin()->first +
                              ": there is an answer, and no such case");
  }
  FindCauses(of_cases, &grades);
  return grades;
}

void Grader::FindCauses(const std::vector<const Answer*>& answers,
                        Grades* grades) {
  const size_t num_causes = Causes().size();
  struct Tally {
    size_t explained = 0, contradicted = 0;
  };
  std::vector<Tally> tallies(num_causes);
  std::vector<std::vector<size_t>> matches(cases_.size());
  const auto is_open = [&](size_t c) {
    return grades->cases[c].verdict == Verdict::kDiffers &&
           grades->cases[c].findings.empty();
  };
  for (size_t c = 0; c < cases_.size(); ++c) {
    if (!is_open(c)) continue;
    const std::optional<Finding> impossible =
        FindImpossible(cases_[c], *answers[c]);
    if (impossible.has_value()) {
      grades->cases[c].findings = {*impossible};
      continue;
    }
    for (size_t i = 0; i < num_causes; ++i) {
      const std::optional<Routed>& predicted = Predicted(c, i);
      if (predicted.has_value() &&
          IsEqual(cases_[c], ExpectedOf(*predicted), *answers[c])) {
        matches[c].push_back(i);
        ++tallies[i].explained;
      }
    }
  }

  // A mistake is less likely if the router passes cases that a router with this
  // mistake would fail.
  std::vector<size_t> likely;
  for (size_t i = 0; i < num_causes; ++i) {
    if (tallies[i].explained == 0) continue;
    likely.push_back(i);
    for (size_t c = 0; c < cases_.size(); ++c) {
      const bool passes = grades->cases[c].verdict == Verdict::kPass;
      tallies[i].contradicted += passes && IsSeen(c, i);
    }
  }
  const auto is_likelier = [&tallies](size_t a, size_t b) {
    const Tally &x = tallies[a], &y = tallies[b];
    if (x.explained != y.explained) return x.explained > y.explained;
    if (x.contradicted != y.contradicted) {
      return x.contradicted < y.contradicted;
    }
    return a < b;
  };
  std::sort(likely.begin(), likely.end(), is_likelier);
  for (size_t c = 0; c < cases_.size(); ++c) {
    std::sort(matches[c].begin(), matches[c].end(), is_likelier);
    std::vector<Finding>& findings = grades->cases[c].findings;
    for (const size_t i : matches[c]) {
      const Cause& cause = Causes()[i];
      if (HasSentence(grades->cases[c], cause.sentence)) continue;
      if (findings.size() == kShownFindings) break;
      findings.push_back({cause.name, cause.sentence});
    }
  }

  for (size_t c = 0; c < cases_.size(); ++c) {
    if (!is_open(c)) continue;
    // Skips the search for pairs of causes if the order of slots or a factor of
    // all weights is wrong, because no pair of causes has these effects.
    std::optional<Finding> finding = Describe(cases_[c], *answers[c]);
    const bool is_certain =
        finding.has_value() &&
        (finding->name == kSlotOrder || finding->name == kFactor);
    if (!is_certain) {
      std::optional<Finding> pair = FindPair(c, *answers[c], likely);
      if (pair.has_value()) finding = std::move(pair);
    }
    if (finding.has_value()) grades->cases[c].findings = {*finding};
  }
  for (size_t c = 0; c < cases_.size(); ++c) {
    CaseGrade& grade = grades->cases[c];
    const bool has_row = grade.verdict == Verdict::kDiffers &&
                         WrongShape(cases_[c], *answers[c]).empty();
    if (has_row) grade.families = FindFamilies(c, *answers[c]);
  }

  for (size_t c = 0; c < cases_.size(); ++c) {
    CaseGrade& grade = grades->cases[c];
    // Skips inputs with NaN or infinity, because the router may refuse these
    // values instead of the case's size.
    if (grade.verdict != Verdict::kUnsupported || !IsFinite(cases_[c].logits) ||
        !IsFinite(cases_[c].correction_bias)) {
      continue;
    }
    for (size_t other = 0; other < cases_.size(); ++other) {
      const Case &mine = cases_[c], &served = cases_[other];
      if (grades->cases[other].verdict != Verdict::kPass ||
          mine.options != served.options || !HasInputs(mine, served) ||
          (mine.num_experts == served.num_experts &&
           mine.top_k == served.top_k)) {
        continue;
      }
      grade.verdict = Verdict::kDiffers;
      grade.wrong_tokens = grade.tokens;
      grade.rows = {"unsupported: " + grade.reason};
      grade.findings = {
          {"size_refused", "refuses " + SizesOf(mine) +
                               ", and computes the same options for " +
                               SizesOf(served)}};
      break;
    }
  }
}

const std::optional<Routed>& Grader::RoutedAs(size_t c, size_t other) {
  const auto key = std::make_pair(c, other);
  const auto found = routed_as_.find(key);
  if (found != routed_as_.end()) return found->second;
  const Case& recipe = cases_[other];
  Case inputs = cases_[c];
  std::optional<Routed>& routed = routed_as_[key];
  if (recipe.Slots() != recipe.top_k || inputs.Slots() != inputs.top_k ||
      (inputs.correction_bias.empty() && !recipe.correction_bias.empty()) ||
      (inputs.expert_scale.empty() && !recipe.expert_scale.empty())) {
    return routed;
  }
  if (recipe.correction_bias.empty()) {
    inputs.correction_bias.clear();
    inputs.bias_index.clear();
  }
  if (recipe.expert_scale.empty()) inputs.expert_scale.clear();
  try {
    routed = RouteExactly(inputs, recipe.Options());
  } catch (const program::InputError&) {
    // The recipe does not fit the sizes of this case.
  }
  return routed;
}

std::vector<std::string> Grader::FindFamilies(size_t c, const Answer& answer) {
  std::vector<std::string> families;
  for (size_t other = 0; other < cases_.size(); ++other) {
    const std::vector<std::string>& of = cases_[other].families;
    if (of.empty()) continue;
    const std::optional<Routed>& routed = RoutedAs(c, other);
    if (!routed.has_value() ||
        !IsEqual(cases_[c], ExpectedOf(*routed), answer)) {
      continue;
    }
    families.insert(families.end(), of.begin(), of.end());
  }
  return families;
}

std::optional<Finding> Grader::FindPair(size_t c, const Answer& answer,
                                        const std::vector<size_t>& likely) {
  // Collects the causes that change the results, the likely causes first.
  std::vector<size_t> seen;
  for (const size_t i : likely) {
    if (IsSeen(c, i)) seen.push_back(i);
  }
  for (size_t i = 0; i < Causes().size(); ++i) {
    const bool is_new = std::find(seen.begin(), seen.end(), i) == seen.end();
    if (is_new && IsSeen(c, i)) seen.push_back(i);
  }
  for (size_t a = 0; a < seen.size(); ++a) {
    for (size_t b = a + 1; b < seen.size(); ++b) {
      const Cause &first = Causes()[seen[a]], &second = Causes()[seen[b]];
      const std::optional<Routed> routed =
          RouteWith({&first, &second}, cases_[c]);
      if (!routed.has_value() ||
          !IsEqual(cases_[c], ExpectedOf(*routed), answer)) {
        continue;
      }
      return Finding{first.name + "+" + second.name,
                     first.sentence + ". It also " + second.sentence};
    }
  }
  return std::nullopt;
}

std::vector<Case> CasesLike(const std::string& pattern,
                            std::vector<Case> cases) {
  std::vector<Case> like;
  for (Case& c : cases) {
    if (fnmatch(pattern.c_str(), c.name.c_str(), 0) == 0) {
      like.push_back(std::move(c));
    }
  }
  if (like.empty()) {
    throw program::InputError("'" + pattern + "' matches no case");
  }
  return like;
}

Answer RouteCase(const Case& c) {
  const RouteOptions options = c.Options();
  RouteInputs in = {{c.logits.data(), c.tokens, c.Columns()}};
  if (!c.correction_bias.empty()) {
    in.correction_bias = {c.correction_bias.data(),
                          c.correction_bias.size() / c.num_experts,
                          c.num_experts};
  }
  if (!c.bias_index.empty()) in.bias_index = {c.bias_index.data(), c.tokens, 1};
  if (!c.expert_scale.empty()) {
    in.expert_scale = {c.expert_scale.data(), 1, c.num_experts};
  }
  std::vector<uint8_t> mask;
  for (const int32_t bit : c.token_mask) mask.push_back(bit != 0);
  if (!mask.empty()) in.token_mask = {mask.data(), c.tokens, 1};
  Answer answer;
  answer.name = c.name;
  answer.ids.resize(c.tokens * c.Slots());
  answer.weights.resize(answer.ids.size());
  RouteOutputs out = {{answer.ids.data(), c.tokens, c.Slots()},
                      {answer.weights.data(), c.tokens, c.Slots()}};
  if (options.num_zero_experts != 0) {
    answer.identity_weights.resize(c.tokens);
    out.identity_weights = {answer.identity_weights.data(), c.tokens, 1};
  }
  const Status status = RouteTopK(in, out, options);
  if (!status.ok()) {
    throw std::runtime_error("case " + c.name + ": " +
                             program::StatusText(status));
  }
  return answer;
}

std::string DescribeGrades(const Grades& grades) {
  const size_t count = grades.cases.size();
  std::string text = std::to_string(count) + " case" + PluralOf(count) + ":";
  const char* before = " ";
  for (const Verdict verdict : {Verdict::kPass, Verdict::kDiffers,
                                Verdict::kUnsupported, Verdict::kMissing}) {
    const size_t of = grades.Count(verdict);
    if (of == 0) continue;
    text += before + (of == count ? "all" : std::to_string(of)) + " " +
            NameOf(verdict);
    before = ", ";
  }
  text += "\n";

  // Groups cases by their likeliest cause. The largest group comes first.
  std::vector<std::vector<const CaseGrade*>> groups;
  for (const CaseGrade& grade : grades.cases) {
    if (grade.verdict != Verdict::kDiffers) continue;
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&grade](const auto& group) {
          return FirstSentence(*group[0]) == FirstSentence(grade);
        });
    if (found == groups.end()) {
      groups.push_back({&grade});
    } else {
      found->push_back(&grade);
    }
  }
  std::stable_sort(
      groups.begin(), groups.end(),
      [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const auto& group : groups) {
    const std::string first = FirstSentence(*group[0]);
    text +=
        first.empty() ? "\nThe cause is not known.\n" : "\nIt " + first + ".\n";
    for (const Finding& finding : group[0]->findings) {
      const bool is_common =
          finding.sentence != first &&
          std::all_of(group.begin(), group.end(), [&](const CaseGrade* grade) {
            return HasSentence(*grade, finding.sentence);
          });
      if (is_common) text += "Or it " + finding.sentence + ".\n";
    }
    for (const CaseGrade* grade : group) {
      text += "  " + grade->name + ": " + std::to_string(grade->wrong_tokens) +
              " of " + std::to_string(grade->tokens) + " row" +
              PluralOf(grade->tokens) + " differ\n";
      if (!grade->rows.empty()) text += "    " + grade->rows[0] + "\n";
      if (!grade->families.empty()) {
        text += "    right for " + Join(grade->families, kShownFamilies) + "\n";
      }
    }
  }
  // Groups the unsupported cases by the router's reason. The cases without an
  // answer are one more group.
  std::vector<std::pair<std::string, std::vector<std::string>>> others;
  for (const CaseGrade& grade : grades.cases) {
    if (grade.verdict != Verdict::kUnsupported &&
        grade.verdict != Verdict::kMissing) {
      continue;
    }
    const std::string title = grade.verdict == Verdict::kMissing
                                  ? "No answer:"
                                  : "Unsupported: " + grade.reason;
    const auto found = std::find_if(
        others.begin(), others.end(),
        [&title](const auto& other) { return other.first == title; });
    if (found == others.end()) {
      others.push_back({title, {grade.name}});
    } else {
      found->second.push_back(grade.name);
    }
  }
  for (const auto& [title, names] : others) {
    text += "\n" + title + "\n" + Lines(names);
  }
  return text;
}

}  // namespace switchyard::conformance
