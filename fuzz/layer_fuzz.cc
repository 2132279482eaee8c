// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs PlanExperts and RunExperts on random layers, and compares them with
// the same layers computed by single calls. Also runs products that fail, and
// checks that invalid calls are refused.

#include "fuzz/call.h"
#include "src/calls/layer.h"
#include "testing/layer_case.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

namespace {

using testing_support::DrawAnyLayerCase;
using testing_support::ExpertsLayer;
using testing_support::LayerCase;
using testing_support::LayerResult;

std::vector<uint32_t> WordsOf(const LayerResult& result) {
  std::vector<uint32_t> words;
  Append(words, result.out);
  Append(words, result.normed);
  return words;
}

// Makes the call of PlanExperts() or the call of RunExperts() invalid, and
// checks that the call is refused.
void CheckSpoilt(const Spoiler& spoiler, const LayerCase& c, bool spoils_plan) {
  const ExpertsLayer layer(c);
  ExpertsPlan plan;
  std::vector<int32_t> memory(ExpertsPlanSize(c.tokens, c.top_k, c.plan), -7);
  ExpertsPlanInputs plan_in = {layer.ids()};
  ExpertsPlanOutputs plan_out = {memory, &plan};
  ExpertsPlanOptions plan_options = c.plan;
  if (spoils_plan) {
    RefusesSpoilt<calls::ExpertsPlanCall>(
        spoiler, &plan_in, &plan_out, &plan_options,
        [&] { return PlanExperts(plan_in, plan_out, plan_options); });
    for (const int32_t word : memory) FUZZ_CHECK(word == -7, "memory: written");
    return;
  }
  const Status planned = PlanExperts(plan_in, {memory, &plan}, c.plan);
  FUZZ_CHECK(planned.ok(), planned.message());
  ExpertsOptions options = layer.Options();
  ExpertsInputs in = layer.Inputs();
  std::vector<int32_t> scratch(ExpertsScratchSize(plan, options, 1));
  std::vector<float> out(c.tokens * c.plan.hidden, -7.0f);
  in.plan = &plan;
  in.scratch = scratch;
  in.combine.norm_weight = {};
  CombineOutputs outputs = {{out.data(), c.tokens, c.plan.hidden}};
  const auto multiply = [&](const ExpertTile& tile) {
    return layer.Multiply(tile);
  };
  RefusesSpoilt<calls::ExpertsCall>(spoiler, &in, &outputs, &options, [&] {
    return RunExperts(in, outputs, options, multiply);
  });
  for (const float f : out) FUZZ_CHECK(f == -7.0f, "out: written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const Spoiler spoiler(bytes);
  const bool spoils_plan = bytes.Flag();
  const size_t fails = bytes.Below(4) == 1 ? bytes.Below(20) : SIZE_MAX;
  const size_t scratch_workers = bytes.Below(4);
  PiecesExecutor executor(bytes);
  const LayerCase c = DrawAnyLayerCase(bytes);
  if (spoiler.wanted()) {
    if (c.tokens != 0) CheckSpoilt(spoiler, c, spoils_plan);
    return 0;
  }
  const ExpertsLayer layer(c);
  OnEveryIsa([&](const Isa&) {
    LayerResult result;
    // The counter needs no lock, because the executor has one thread.
    size_t tiles = 0;
    const Status status = layer.Run(
        [&](const ExpertTile& tile) {
          return tiles++ == fails ? Status(StatusCode::kInternal, "a tile")
                                  : layer.Multiply(tile);
        },
        executor, &result, scratch_workers);
    if (tiles > fails) {
      FUZZ_CHECK(status.code() == StatusCode::kInternal, "an error is lost");
      return std::vector<uint32_t>();
    }
    FUZZ_CHECK(status.ok(), status.message());
    const std::vector<uint32_t> words = WordsOf(result);
    FUZZ_CHECK(words == WordsOf(layer.OneByOne()), "not one after the other");
    return words;
  });
  return 0;
}
