// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Grades the answers of a router: finds the rows that differ from the expected
// results, and the probable cause.

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
  kUnsupported,  // the router says that it does not support the recipe
  kMissing,      // the router gave no answer
};
// Returns "pass", "differ", "unsupported" or "missing".
const char* NameOf(Verdict verdict);

// A probable cause of differences.
struct Finding {
  std::string name;      // Cause::name, or another name such as "shape"
  std::string sentence;  // reports print it after the word "It"
};

struct CaseGrade {
  std::string name;
  Verdict verdict = Verdict::kMissing;
  size_t tokens = 0, wrong_tokens = 0;
  // Describes the first wrong rows, at most kShownRows. Each text names the
  // first slot that differs, the router's value, and the expected value.
  std::vector<std::string> rows;
  std::vector<Finding> findings;  // the likeliest first
  // The families for which the answer would be right, because their recipe
  // gives these results for the case's logits.
  std::vector<std::string> families;
  std::string reason;  // the router's reason, with kUnsupported
};
constexpr size_t kShownRows = 4;

struct Grades {
  std::vector<CaseGrade> cases;  // in the order of the cases

  size_t Count(Verdict verdict) const;
  // True if no case differs or is missing, and at least one passes.
  bool IsGood() const;
};

// Grades any number of routers with the same cases. Caches the results of each
// cause and recipe, because they do not depend on the router.
class Grader {
 public:
  explicit Grader(std::vector<Case> cases) : cases_(std::move(cases)) {}

  const std::vector<Case>& cases() const { return cases_; }

  // Grades the answers of one router. Throws program::InputError if two answers
  // have the name of the same case, or if no case has an answer's name.
  //
  // If the router answers `unsupported`, but passes a case with the same
  // options and another size, the verdict is kDiffers, because the router
  // refuses only the size.
  Grades Grade(const std::vector<Answer>& answers);

 private:
  // Returns the results that a router with the mistake `cause` has in case c.
  const std::optional<Routed>& Predicted(size_t c, size_t cause);
  // True if a router with the mistake `cause` has wrong results in case c.
  bool IsSeen(size_t c, size_t cause);
  void FindCauses(const std::vector<const Answer*>& answers, Grades* grades);
  // Routes the inputs of case c by the recipe of case `other`, without the
  // inputs that this recipe does not use. Returns nothing if the recipe does
  // not fit the case.
  const std::optional<Routed>& RoutedAs(size_t c, size_t other);
  std::vector<std::string> FindFamilies(size_t c, const Answer& answer);
  std::optional<Finding> FindPair(size_t c, const Answer& answer,
                                  const std::vector<size_t>& likely);

  std::vector<Case> cases_;
  // The results of Predicted() and RoutedAs(), by the functions' arguments.
  std::map<std::pair<size_t, size_t>, std::optional<Routed>> predicted_,
      routed_as_;
};

// Returns the cases with names that match a shell pattern such as "ties*".
// Throws program::InputError if no name matches.
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
