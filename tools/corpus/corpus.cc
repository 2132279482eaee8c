// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/corpus/corpus.h"

#include <algorithm>
#include <iterator>

namespace switchyard::corpus {
namespace {

constexpr Expected kExpected[] = {
#include "tools/corpus/digests.inc"
};

using Add = void (*)(std::vector<Case>& cases);
std::vector<Add>& Registered() {
  static std::vector<Add> registered;
  return registered;
}

const Expected* Place(const std::string& name) {
  return std::find_if(std::begin(kExpected), std::end(kExpected),
                      [&](const Expected& e) { return name == e.name; });
}

}  // namespace

Registration::Registration(Add add) { Registered().push_back(add); }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Add add : Registered()) add(cases);
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
  for (size_t r = 0; r < m.rows; ++r) {
    const void* const row = m.RowRange(r, r + 1).data;
    for (size_t c = 0; c < m.cols; ++c) {
      digest.Add(testing_support::WidenAt(m.type, row, c));
    }
  }
}

}  // namespace switchyard::corpus
