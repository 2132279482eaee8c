// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/inputs.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <sstream>
#include <utility>

#include "programs/machine.h"
#include "programs/program.h"

namespace switchyard::bench {

LayerShape ParseShape(const std::string& text) {
  LayerShape shape;
  const std::pair<const char*, size_t*> sizes[] = {
      {"experts", &shape.experts},
      {"top_k", &shape.top_k},
      {"hidden", &shape.hidden},
      {"intermediate", &shape.intermediate},
      {"tokens", &shape.tokens}};
  // Appends a comma, so that an empty text has one empty part, which the loop
  // reports as an error.
  std::istringstream parts(text + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = std::min(part.find('='), part.size());
    const auto found =
        std::find_if(std::begin(sizes), std::end(sizes), [&](const auto& size) {
          return part.compare(0, equals, size.first) == 0;
        });
    if (found == std::end(sizes)) {
      throw program::InputError("--shape " + part +
                                ": not experts=N, top_k=N, hidden=N, "
                                "intermediate=N or tokens=N");
    }
    const char* const end = part.data() + part.size();
    const char* const digits = part.data() + equals + (equals < part.size());
    const auto [stop, error] = std::from_chars(digits, end, *found->second);
    if (error != std::errc() || stop != end || *found->second == 0 ||
        *found->second > 1'000'000) {
      throw program::InputError("--shape " + part +
                                ": not a number from 1 to 1000000");
    }
  }
  if (shape.hidden % 64 != 0 || shape.intermediate % 64 != 0) {
    throw program::InputError("--shape " + text +
                              ": hidden and intermediate are multiples of 64");
  }
  if (shape.top_k > shape.experts) {
    throw program::InputError("--shape " + text + ": top_k is " +
                              std::to_string(shape.top_k) + " of " +
                              std::to_string(shape.experts) + " experts");
  }
  // Estimates the memory for rows of all types, and for the expected results
  // in double precision.
  const auto pairs = static_cast<double>(shape.tokens * shape.top_k);
  if (pairs > INT32_MAX) {
    throw program::InputError("--shape " + text + ": more than 2^31 - 1 pairs");
  }
  const auto values =
      static_cast<double>(shape.hidden + shape.intermediate) +
      static_cast<double>(shape.experts) / static_cast<double>(shape.top_k);
  program::RequireMemory(64 * pairs * values, "--shape " + text);
  return shape;
}

Aligned<int32_t> TopKIds(size_t tokens, size_t experts, size_t top_k,
                         Spread spread) {
  testing_support::Random random(7);
  // Shuffles the experts. The first expert is the most popular one.
  std::vector<int32_t> popularity(experts);
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
