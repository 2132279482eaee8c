// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/corpus/corpus.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace switchyard::corpus {
namespace {

constexpr Expected kExpected[] = {
#include "tools/corpus/digests.inc"
};

using Add = void (*)(std::vector<Case>& cases);
std::multimap<std::string, Add>& Registered() {
  static std::multimap<std::string, Add> registered;
  return registered;
}

const Expected* Place(const std::string& name) {
  return std::find_if(std::begin(kExpected), std::end(kExpected),
                      [&](const Expected& e) { return name == e.name; });
}

}  // namespace

Registration::Registration(const char* kernel, Add add) {
  Registered().emplace(kernel, add);
}

std::vector<std::string> Kernels() {
  std::vector<std::string> kernels;
  for (const auto& [kernel, add] : Registered()) {
    if (kernels.empty() || kernels.back() != kernel) kernels.push_back(kernel);
  }
  return kernels;
}

std::vector<Case> Cases(const std::vector<std::string>& kernels) {
  std::vector<Case> cases;
  for (const auto& [kernel, add] : Registered()) {
    if (kernels.empty() ||
        std::find(kernels.begin(), kernels.end(), kernel) != kernels.end()) {
      add(cases);
    }
  }
  std::stable_sort(cases.begin(), cases.end(),
                   [](const Case& a, const Case& b) {
                     return Place(a.name) < Place(b.name);
                   });
  return cases;
}

const Expected* Find(const std::string& name) {
  const Expected* const place = Place(name);
  return place == std::end(kExpected) ? nullptr : place;
}

void AddFloats(Digest& digest, const ConstAnyMatrix& m) {
  digest.Add(static_cast<uint32_t>(m.rows));
  digest.Add(static_cast<uint32_t>(m.cols));
  testing_support::WithElement(m.type, [&](auto of_type) {
    for (size_t r = 0; r < m.rows; ++r) {
      const auto* const row =
          static_cast<const decltype(of_type)*>(m.RowRange(r, r + 1).data);
      for (size_t c = 0; c < m.cols; ++c) {
        digest.Add(testing_support::Widen(row[c]));
      }
    }
  });
}

}  // namespace switchyard::corpus
