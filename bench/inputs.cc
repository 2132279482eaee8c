// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/inputs.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace switchyard {
namespace bench {

Aligned<int32_t> SelectedExperts(size_t tokens, size_t experts, size_t top_k,
                                 Spread spread) {
  std::mt19937 random(7);
  std::vector<int32_t> popularity(experts);
  std::iota(popularity.begin(), popularity.end(), 0);
  std::shuffle(popularity.begin(), popularity.end(), random);
  std::vector<double> shares(experts, 1.0);
  if (spread == Spread::kZipf) {
    for (size_t e = 0; e < experts; ++e) {
      shares[e] = 1.0 / static_cast<double>(e + 1);
    }
  }
  std::discrete_distribution<size_t> pick(shares.begin(), shares.end());
  Aligned<int32_t> selected(tokens * top_k);
  for (size_t t = 0; t < tokens; ++t) {
    int32_t* const row = selected.data() + t * top_k;
    for (size_t slot = 0; slot < top_k; ++slot) {
      int32_t expert = 0;
      do {
        expert = popularity[pick(random)];
      } while (std::find(row, row + slot, expert) != row + slot);
      row[slot] = expert;
    }
  }
  return selected;
}

}  // namespace bench
}  // namespace switchyard
