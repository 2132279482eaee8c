// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstring>

#include "bench/contest.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "switchyard/gather.h"
#include "testing/reference.h"

namespace switchyard::bench {
namespace {

constexpr size_t kExperts = 128, kTopK = 8;

struct Gather {
  size_t hidden, tokens;
  Aligned<float> rows = Floats(tokens * hidden, 9);
  Aligned<int32_t> ids;
  std::vector<int32_t> pairs;
  Aligned<float> out = Aligned<float>(tokens * kTopK * hidden);

  Gather(size_t h, size_t t)
      : hidden(h),
        tokens(t),
        ids(TopKIds(t, kExperts, kTopK, Spread::kUniform)) {
    pairs = reference::Bucket({ids.data(), ids.data() + ids.size()}, kExperts)
                .pairs;
  }
  GatherInputs In() const {
    return {{rows.data(), tokens, hidden}, pairs, {ids.data(), tokens, kTopK}};
  }
  GatherOutputs Out() { return {{out.data(), pairs.size(), hidden}}; }
};

Contest MakeGather(const HiddenShape& shape, size_t tokens) {
  const auto d = std::make_shared<Gather>(shape.hidden, tokens);
  Contest contest = {shape.model, "row", static_cast<double>(d->pairs.size()),
                     8.0 * static_cast<double>(d->out.size())};
  Output want(d->out, 0.0);
  for (const int32_t pair : d->pairs) {
    const float* const row =
        d->rows.data() + static_cast<size_t>(pair) / kTopK * d->hidden;
    want.floats.insert(want.floats.end(), row, row + d->hidden);
  }
  contest.outputs = {want};
  AddOurs(contest, {0}, [d](size_t, Executor& executor) {
    return GatherRows(d->In(), d->Out(), {}, executor);
  });
  AddRival(contest, Kind::kPlain, "plain C++", {0},
           [d](size_t) { plain::GatherRows(d->In(), d->Out()); });
  AddRival(contest, Kind::kProbe, "probe, tokens in order", {}, [d](size_t) {
    for (size_t r = 0; r < d->pairs.size(); ++r) {
      std::memcpy(d->out.data() + r * d->hidden,
                  d->rows.data() + r / kTopK * d->hidden,
                  d->hidden * sizeof(float));
    }
  });
  return contest;
}

const Registration registration([] {
  for (const HiddenShape& shape : kHiddens) {
    for (const size_t tokens : kCombineTokens) {
      Register("gather", HiddenText(tokens, shape.hidden),
               [=] { return MakeGather(shape, tokens); });
    }
  }
  RegisterThreads("gather H=2048 k=8", {64, 512}, [](size_t tokens) {
    return MakeGather({"", 2048}, tokens);
  });
});

}  // namespace
}  // namespace switchyard::bench
