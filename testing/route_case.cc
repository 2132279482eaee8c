// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "testing/route_case.h"

#include "testing/floats.h"

namespace switchyard::testing_support {
namespace {

// Memory for ids of type int32 or int64.
struct Ids {
  Ids(Type type_in, size_t n) : type(type_in), narrow(n, 7), wide(n, 7) {}
  AnyMatrix View(size_t rows, size_t cols) {
    void* const data = type == Type::kI64 ? static_cast<void*>(wide.data())
                                          : static_cast<void*>(narrow.data());
    return {data, type, rows, cols, cols};
  }
  void Set(size_t i, int64_t id) {
    wide[i] = id;
    // An id that does not fit in int32 becomes another invalid id.
    const bool fits = id >= INT32_MIN && id <= INT32_MAX;
    narrow[i] = fits ? static_cast<int32_t>(id) : -5;
  }
  std::vector<int32_t> Values() const {
    return type == Type::kI64 ? std::vector<int32_t>(wide.begin(), wide.end())
                              : narrow;
  }
  Type type;
  std::vector<int32_t> narrow;
  std::vector<int64_t> wide;
};

}  // namespace

Status RunRouteCase(const RouteCase& c, Executor& executor,
                    RouteResult* result) {
  const size_t slots = c.top_k + c.options.num_shared_experts;
  Stored logits(c.logit_type, c.logits), bias(c.bias_type, c.bias),
      scale(c.bias_type, c.expert_scale),
      weights(c.weight_type, std::vector<float>(c.tokens * slots, -7.0f)),
      identity(c.weight_type, std::vector<float>(c.tokens, -7.0f));
  Ids ids(c.id_type, c.tokens * slots), given(c.id_type, c.given_ids.size());
  for (size_t i = 0; i < c.given_ids.size(); ++i) {
    given.Set(i, c.given_ids[i]);
    ids.Set(i / c.top_k * slots + i % c.top_k, c.given_ids[i]);
  }
  std::vector<int32_t> index = c.bias_index, map = c.expert_map;
  std::vector<uint8_t> mask = c.token_mask;
  RouteInputs in = {logits.View(c.tokens, c.columns)};
  if (!c.bias.empty()) {
    in.correction_bias = bias.View(c.bias.size() / c.experts, c.experts);
  }
  if (!index.empty()) in.bias_index = {index.data(), c.tokens, 1};
  if (!c.expert_scale.empty()) in.expert_scale = scale.View(1, c.experts);
  in.token_mask = mask;
  in.expert_map = map;
  const AnyMatrix topk_ids = ids.View(c.tokens, slots);
  if (!c.given_ids.empty()) {
    in.given_ids = c.in_place ? topk_ids.ColRange(0, c.top_k)
                              : given.View(c.tokens, c.top_k);
  }
  RouteOutputs out = {topk_ids, weights.View(c.tokens, slots)};
  if (c.identity) out.identity_weights = identity.View(c.tokens, 1);
  out.report = &result->report;
  const Status status = RouteTopK(in, out, c.options, executor);
  result->ids = ids.Values();
  result->weights = weights.Values();
  result->identity = identity.Values();
  return status;
}

}  // namespace switchyard::testing_support
