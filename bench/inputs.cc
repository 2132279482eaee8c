// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/inputs.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace switchyard::bench {

Aligned<int32_t> TopKIds(size_t tokens, size_t experts, size_t top_k,
                         Spread spread) {
  testing_support::Random random(7);
  std::vector<int32_t> popularity(experts);  // the most popular first
  std::iota(popularity.begin(), popularity.end(), 0);
  for (size_t e = experts; e > 1; --e) {
    std::swap(popularity[e - 1], popularity[random.Below(e)]);
  }
  std::vector<float> shares(experts, 1.0f);
  if (spread == Spread::kZipf) {
    for (size_t e = 0; e < experts; ++e) {
      shares[e] = 1.0f / static_cast<float>(e + 1);
    }
  }
  std::partial_sum(shares.begin(), shares.end(), shares.begin());
  Aligned<int32_t> ids(tokens * top_k);
  for (size_t t = 0; t < tokens; ++t) {
    int32_t* const row = ids.data() + t * top_k;
    for (size_t slot = 0; slot < top_k; ++slot) {
      do {
        const auto at = std::upper_bound(shares.begin(), shares.end() - 1,
                                         random.Uniform(0.0f, shares.back()));
        row[slot] = popularity[static_cast<size_t>(at - shares.begin())];
      } while (std::find(row, row + slot, row[slot]) != row + slot);
    }
  }
  return ids;
}

}  // namespace switchyard::bench
