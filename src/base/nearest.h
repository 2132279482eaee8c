// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Finds the name that a misspelt name probably means.

#ifndef SWITCHYARD_SRC_BASE_NEAREST_H_
#define SWITCHYARD_SRC_BASE_NEAREST_H_

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace switchyard::internal {

constexpr size_t kLongestName = 63;

// Returns the number of letters to change, insert or delete to turn `a` into
// `b`. Ignores case, and treats '-' as '_'.
inline size_t EditDistance(std::string_view a, std::string_view b) {
  const auto plain = [](char c) {
    return c == '-'               ? '_'
           : c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32)
                                  : c;
  };
  b = b.substr(0, kLongestName);
  // Element i: the distance between the first i letters of `b` and the letters
  // of `a` that are read so far.
  size_t distances[kLongestName + 1];
  for (size_t i = 0; i <= b.size(); ++i) distances[i] = i;
  for (size_t j = 0; j < a.size(); ++j) {
    size_t diagonal = distances[0]++;
    for (size_t i = 0; i < b.size(); ++i) {
      const size_t changed = diagonal + (plain(a[j]) != plain(b[i]));
      diagonal = distances[i + 1];
      distances[i + 1] =
          std::min(changed, std::min(distances[i], distances[i + 1]) + 1);
    }
  }
  return distances[b.size()];
}

// Returns the index of the name that is nearest to `name`, or the first of
// several equally near names. name_of(i) returns name i of the `size` names.
// Returns `size` if the distance of each name is more than a third of the
// length of `name`: "MMX" does not mean "AVX2".
template <class NameOf>
size_t NearestName(std::string_view name, size_t size, const NameOf& name_of) {
  size_t nearest = size, least = name.size() / 3 + 1;
  if (name.size() > kLongestName) return size;
  for (size_t i = 0; i < size; ++i) {
    const size_t distance = EditDistance(name, name_of(i));
    if (distance < least) {
      least = distance;
      nearest = i;
    }
  }
  return nearest;
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_BASE_NEAREST_H_
