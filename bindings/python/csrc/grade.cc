// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Operators for switchyard/grade.py: one returns the cases of
// programs/conformance, and one grades a router's answers to the cases.

#include "programs/conformance/grade.h"

#include <torch/csrc/stable/library.h>

#include <cstdint>
#include <exception>
#include <iterator>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "programs/conformance/cases.h"
#include "programs/conformance/text.h"
#include "src/calls/route.h"
#include "switchyard/presets.h"
#include "tensors.h"

namespace switchyard {
namespace python {
namespace {

constexpr char kOp[] = "grade";

// Returns the cases with names that match `only`, a shell pattern.
std::vector<conformance::Case> CasesLike(const std::string& only) {
  // All cases are made once per process, because making them takes longer
  // than grading a router.
  static const std::vector<conformance::Case> all = conformance::MakeCases();
  try {
    return conformance::CasesLike(only, all);
  } catch (const std::exception& error) {
    Fail(kOp, "only", error.what());
  }
}

std::string CasesAsText(const std::string& only) {
  std::string text;
  for (const conformance::Case& c : CasesLike(only)) {
    text += conformance::Write(c);
  }
  return text;
}

// Returns a line for each option of RouteTopK: its name, its kind (flag, name,
// count or number) and its default.
std::string OptionsAsText() {
  const Preset defaults;
  std::ostringstream text;
  text.precision(9);
  for (size_t i = 0; i < std::size(calls::RouteCall::kOptions); ++i) {
    const calls::Option& option = calls::RouteCall::kOptions[i];
    const double value = OptionAt(defaults, i).value;
    text << option.field.name;
    if (option.range.name_of != nullptr) {
      text << " name " << option.range.name_of(static_cast<uint32_t>(value))
           << '\n';
    } else {
      text << (option.field.kind == calls::Kind::kFlag     ? " flag "
               : option.field.kind == calls::Kind::kNumber ? " number "
                                                           : " count ")
           << value << '\n';
    }
  }
  return text.str();
}

// Grades a router's answers to the cases of CasesLike(only). Returns the
// report, and true if the router is right.
std::tuple<std::string, bool> Grade(const std::string& answers,
                                    const std::string& only) {
  conformance::Grader grader(CasesLike(only));
  try {
    const conformance::Grades grades =
        grader.Grade(conformance::ReadAnswers(answers));
    return {conformance::DescribeGrades(grades), grades.IsGood()};
  } catch (const std::exception& error) {
    Fail(kOp, "answers", error.what());
  }
}

}  // namespace
}  // namespace python
}  // namespace switchyard

STABLE_TORCH_LIBRARY_FRAGMENT(switchyard, m) {
  m.def("conformance_cases(str only) -> str");
  m.def("route_options() -> str");
  m.def("grade(str answers, str only) -> (str, bool)");
}
STABLE_TORCH_LIBRARY_IMPL(switchyard, CompositeExplicitAutograd, m) {
  m.impl("conformance_cases", TORCH_BOX(&switchyard::python::CasesAsText));
  m.impl("route_options", TORCH_BOX(&switchyard::python::OptionsAsText));
  m.impl("grade", TORCH_BOX(&switchyard::python::Grade));
}
