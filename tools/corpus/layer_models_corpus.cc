// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "src/base/weight_layout.h"
#include "testing/model_layer.h"
#include "tools/corpus/corpus.h"

namespace switchyard::corpus {
namespace {

using testing_support::kModelCuts;
using testing_support::ModelCut;
using testing_support::ModelFamily;
using testing_support::ModelFormats;
using testing_support::ModelLayer;
using testing_support::ModelResult;

bool IsSame(const ModelResult& a, const ModelResult& b) {
  using testing_support::CanonicalBits;
  return a.ids == b.ids &&
         CanonicalBits(a.weights) == CanonicalBits(b.weights) &&
         CanonicalBits(a.out) == CanonicalBits(b.out) &&
         CanonicalBits(a.normed) == CanonicalBits(b.normed);
}

// Runs a layer from the logits to the residual and the next norm. It is
// planned for several numbers of workers, with stored and packed weights. All
// of these give the same bits.
void Run(Executor& executor, Digests& digests, const ModelFamily& family,
         const ModelFormats& formats, bool has_many) {
  const size_t most = has_many ? 512 : 7;
  const ModelLayer layer(family, formats, most, executor);
  // All ISAs select the same ids if scores are logits. With sigmoids, only
  // ISAs with FMA do.
  Digest& ids = layer.preset().route.score == Score::kSigmoid ? digests.floats
                                                              : digests.exact;
  for (const size_t tokens : {size_t{1}, size_t{7}, size_t{512}}) {
    if (tokens > most) break;
    ModelResult first;
    for (const ModelCut& cut : kModelCuts) {
      // Many tokens take long, so only two cuts run them.
      const bool is_first = &cut == std::begin(kModelCuts);
      if (tokens == 512 && !is_first && cut.workers != 64) continue;
      ModelResult result;
      digests.Check(layer.Run(cut, 0, tokens, executor, &result));
      // If a cut gives other bits, its results go into the digest and change
      // it.
      if (!is_first && IsSame(result, first)) continue;
      if (is_first || result.ids != first.ids) {
        ids.Add(Span<const int32_t>(result.ids));
      }
      digests.floats.Add(Span<const float>(result.weights));
      digests.floats.Add(Span<const float>(result.out));
      digests.floats.Add(Span<const float>(result.normed));
      if (is_first) first = std::move(result);
    }
  }
}

// Returns the family that also runs 512 tokens with weights in this format.
std::string FamilyOfMany(WeightFormat format) {
  switch (format) {
    case WeightFormat::kInt8:
    case WeightFormat::kQ4_0:
      return "qwen3_moe";
    case WeightFormat::kQ8_0:
      return "deepseek_v3";
    case WeightFormat::kMXFP4:
      return "gpt_oss";
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ6_K:
      return "mixtral";
    default:
      return "none";
  }
}

const Registration registration("layer", [](std::vector<Case>& cases) {
  for (const ModelFamily& family : testing_support::kModelFamilies) {
    for (const ModelFormats& formats : testing_support::kModelFormats) {
      const bool is_one = formats.gate_up == formats.down;
      const bool has_many =
          is_one && FamilyOfMany(formats.down) == family.family;
      std::string name = std::string("layer of ") + family.family + ", " +
                         internal::TraitsOf(formats.gate_up).name;
      if (!is_one) {
        name += std::string(" and ") + internal::TraitsOf(formats.down).name;
      }
      cases.push_back({name, [=](Executor& executor, Digests& digests) {
                         Run(executor, digests, family, formats, has_many);
                       }});
    }
  }
});

}  // namespace
}  // namespace switchyard::corpus
