// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Grades the answers of a router: which rows differ from the expected ones,
// and the probable cause.

#ifndef SWITCHYARD_PROGRAMS_CONFORMANCE_GRADE_H_
#define SWITCHYARD_PROGRAMS_CONFORMANCE_GRADE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "programs/conformance/cases.h"
#include "programs/conformance/causes.h"

namespace switchyard::conformance {

enum class Verdict {
  kPass,
  kDiffers,
  kUnsupported,  // the router says that it does not compute such a recipe
  kMissing,      // the router gave no answer
};
// Returns "pass", "differ", "unsupported" or "missing".
const char* NameOf(Verdict verdict);

// A probable cause of differences.
struct Finding {
  std::string name;      // as Cause::name
  std::string sentence;  // follows the word "It"
};

struct CaseGrade {
  std::string name;
  Verdict verdict = Verdict::kMissing;
  size_t tokens = 0, wrong_tokens = 0;
  // The first wrong rows, at most kShownRows: the first slot that differs,
  // with the expected and the router's value.
  std::vector<std::string> rows;
  std::vector<Finding> findings;  // the likeliest first
  // The families for which all wrong rows would be right: the results are
  // theirs for the same logits.
  std::vector<std::string> families;
  std::string reason;  // of kUnsupported
};
constexpr size_t kShownRows = 4;

struct Grades {
  std::vector<CaseGrade> cases;  // in the order of the cases

  size_t Count(Verdict verdict) const;
  // True if no case differs or is missing, and at least one passes.
  bool IsGood() const;
};

// Grades any number of routers with the same cases. Remembers the results of
// each cause and recipe, because they do not depend on the router.
class Grader {
 public:
  explicit Grader(std::vector<Case> cases) : cases_(std::move(cases)) {}

  const std::vector<Case>& cases() const { return cases_; }

  // Throws program::InputError if two answers are for one case, or if an
  // answer is for no case.
  //
  // An answer that says `unsupported` differs if the router passes another
  // case with the same options, because the router then refuses a size.
  Grades Grade(const std::vector<Answer>& answers);

 private:
  // Returns the results of a router that makes the mistake.
  const std::optional<Routed>& Predicted(size_t c, size_t cause);
  // True if a router with this mistake has wrong results in the case.
  bool IsSeen(size_t c, size_t cause);
  void FindCauses(const std::vector<const Answer*>& answers, Grades* grades);
  // Returns the results for the inputs of case c by the recipe of another
  // case, without the inputs that the recipe does not have.
  const std::optional<Routed>& RoutedAs(size_t c, size_t other);
  std::vector<std::string> FindFamilies(size_t c, const Answer& answer);
  std::optional<Finding> FindPair(size_t c, const Answer& answer,
                                  const std::vector<size_t>& likely);

  std::vector<Case> cases_;
  // Keys are the arguments of Predicted() and RoutedAs().
  std::map<std::pair<size_t, size_t>, std::optional<Routed>> predicted_,
      routed_as_;
};

// Returns the cases with names that match a shell pattern such as "ties*".
// Throws program::InputError if none does.
std::vector<Case> CasesLike(const std::string& pattern,
                            std::vector<Case> cases);

// Routes a case by RouteTopK() on the active ISA. Throws std::runtime_error if
// RouteTopK() refuses the case.
Answer RouteCase(const Case& c);

// Describes the grades for people. Cases with equal findings are under one
// heading; cases that pass are only counted.
std::string DescribeGrades(const Grades& grades);

}  // namespace switchyard::conformance

#endif  // SWITCHYARD_PROGRAMS_CONFORMANCE_GRADE_H_
