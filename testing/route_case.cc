// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "testing/route_case.h"

#include <string>
#include <type_traits>
#include <vector>

#include "testing/floats.h"

namespace switchyard::testing_support {
namespace {

// Memory for ids of any type.
struct Ids {
  Ids(Type type_in, size_t n_in)
      : type(type_in), n(n_in), words(n_in * SizeOf(type_in) / 8 + 1) {
    for (size_t i = 0; i < n; ++i) Set(i, 7);
  }
  AnyMatrix View(size_t rows, size_t cols) {
    return {static_cast<void*>(words.data()), type, rows, cols, cols};
  }
  // Calls f with a pointer to id i, which has the type of the ids.
  template <class F>
  void At(size_t i, const F& f) {
    void* const data = words.data();
    switch (type) {
      case Type::kI64:
        return f(static_cast<int64_t*>(data) + i);
      case Type::kU32:
        return f(static_cast<uint32_t*>(data) + i);
      case Type::kU16:
        return f(static_cast<uint16_t*>(data) + i);
      case Type::kU8:
        return f(static_cast<uint8_t*>(data) + i);
      default:
        return f(static_cast<int32_t*>(data) + i);
    }
  }
  void Set(size_t i, int64_t id) {
    // An id that does not fit becomes another invalid id.
    const bool fits = type == Type::kI64 || id == static_cast<int32_t>(id);
    At(i, [&](auto* to) {
      *to = static_cast<std::decay_t<decltype(*to)>>(fits ? id : -5);
    });
  }
  // Returns the ids as int32, and -1 for an id with all bits set.
  std::vector<int32_t> Values() {
    std::vector<int32_t> values(n);
    for (size_t i = 0; i < n; ++i) {
      At(i, [&](const auto* from) {
        using Id = std::decay_t<decltype(*from)>;
        const bool is_mark = *from == static_cast<Id>(-1);
        values[i] = is_mark ? -1 : static_cast<int32_t>(*from);
      });
    }
    return values;
  }
  Type type;
  size_t n;
  std::vector<uint64_t> words;
};

std::string Difference(const std::string& what, const std::vector<uint32_t>& a,
                       const std::vector<uint32_t>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    return "replay: " + what + " " + std::to_string(i) + ": " +
           std::to_string(b[i]) + " instead of " + std::to_string(a[i]);
  }
  return "";
}
std::vector<uint32_t> Words(const std::vector<int32_t>& ids) {
  return {ids.begin(), ids.end()};
}

}  // namespace

Status RunRouteCase(const RouteCase& c, Executor& executor,
                    RouteResult* result) {
  const size_t slots = c.top_k + c.options.num_shared_experts;
  Stored logits(c.logit_type, c.logits), bias(c.bias_type, c.bias),
      scale(c.bias_type, c.expert_scale),
      weights(c.weight_type, std::vector<float>(c.tokens * slots, -7.0f)),
      identity(c.weight_type, std::vector<float>(c.tokens, -7.0f));
  Ids ids(c.id_type, c.tokens * slots), given(c.given_type, c.given_ids.size()),
      record(c.record_type, c.tokens * c.top_k);
  for (size_t i = 0; i < c.given_ids.size(); ++i) {
    given.Set(i, c.given_ids[i]);
    if (c.in_place) ids.Set(i / c.top_k * slots + i % c.top_k, c.given_ids[i]);
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
  if (c.records) out.record = record.View(c.tokens, c.top_k);
  const Status status = RouteTopK(in, out, c.options, executor);
  result->ids = ids.Values();
  result->weights = weights.Values();
  result->identity = identity.Values();
  result->record = c.records ? record.Values() : std::vector<int32_t>();
  return status;
}

std::string WrongReplay(const RouteCase& c, const RouteResult& result,
                        Executor& executor) {
  RouteCase again = c;
  RouteOptions& o = again.options;
  if (o.num_expert_group > 1) o.num_expert_group = 1, o.topk_group = 0;
  o.select_on_rounded_score = false;
  if (!o.bias_in_weight) again.bias.clear(), again.bias_index.clear();
  again.in_place = false;
  again.given_type = c.record_type;
  const int64_t mark = SizeOf(c.record_type) <= 2
                           ? static_cast<int64_t>(MostExperts(c.record_type))
                           : -1;
  again.given_ids.clear();
  for (const int32_t id : result.record) {
    again.given_ids.push_back(id < 0 ? mark : id);
  }
  RouteResult replayed;
  const Status status = RunRouteCase(again, executor, &replayed);
  if (!status.ok()) return std::string("replay: ") + status.message();
  std::string wrong = WrongRouteCase(again, replayed);
  if (!wrong.empty()) return "replay: " + wrong;
  wrong = Difference("id", Words(result.ids), Words(replayed.ids));
  if (!wrong.empty()) return wrong;
  wrong =
      Difference("recorded id", Words(result.record), Words(replayed.record));
  if (!wrong.empty()) return wrong;
  wrong = Difference("bits of weight", CanonicalBits(result.weights),
                     CanonicalBits(replayed.weights));
  if (!wrong.empty()) return wrong;
  return Difference("bits of identity weight", CanonicalBits(result.identity),
                    CanonicalBits(replayed.identity));
}

}  // namespace switchyard::testing_support
