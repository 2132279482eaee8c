// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares RouteTopK with the reference, row by row on every ISA.
// route_case.h checks calls with any options. Also checks that invalid calls
// are refused.

#include "fuzz/call.h"
#include "src/calls/route.h"
#include "switchyard/route.h"
#include "testing/reference.h"
#include "testing/route_case.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)
using switchyard::testing_support::CanReplay;
using switchyard::testing_support::DrawRouteCase;
using switchyard::testing_support::kScores;
using switchyard::testing_support::RouteCase;
using switchyard::testing_support::RouteResult;
using switchyard::testing_support::RunRouteCase;
using switchyard::testing_support::WrongReplay;
using switchyard::testing_support::WrongRouteCase;

namespace {

void AnyOptions(Bytes& bytes) {
  const RouteCase c = DrawRouteCase(bytes);
  PiecesExecutor executor(bytes);
  OnEveryIsa([&](const Isa& isa) {
    RouteResult result;
    const Status status = RunRouteCase(c, executor, &result);
    FUZZ_CHECK(status.ok(), status.message());
    const std::string wrong = WrongRouteCase(c, result);
    FUZZ_CHECK(wrong.empty(), std::string(isa.name) + ", " + wrong);
    if (CanReplay(c)) {
      const std::string other = WrongReplay(c, result, executor);
      FUZZ_CHECK(other.empty(), std::string(isa.name) + ", " + other);
    }
    std::vector<uint32_t> words(result.ids.begin(), result.ids.end());
    Append(words, result.weights);
    Append(words, result.identity);
    return words;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  if (bytes.Byte() >= 128) {
    AnyOptions(bytes);
    return 0;
  }
  Spoiler spoiler(bytes);
  const size_t tokens = bytes.Size({1, 2, 0}, 7);
  const size_t experts =
      bytes.Size({8, 64, 128, 256, 512}, 300) + bytes.Below(2);
  if (experts == 0) return 0;
  const size_t top_k =
      std::min(experts, 1 + bytes.Size({0, 7, 3, 31, 32}, experts));
  constexpr Type kIds[] = {Type::kI32, Type::kU32, Type::kI64};
  const Type id_type = kIds[bytes.Below(3)];
  RouteOptions options;
  options.renormalize = bytes.Flag();
  constexpr float kClamps[] = {0x1p-14f, 0.0f, -0.0f, 1.0f, 0.5f, 1e-41f};
  options.clamp = kClamps[bytes.Below(std::size(kClamps))];
  PiecesExecutor executor(bytes);
  Memory logits(bytes, tokens, experts, bytes.Floats(tokens * experts));
  Memory ids(bytes, id_type, tokens, top_k);
  Memory weights(bytes, Type::kF32, tokens, top_k);
  logits.Become(FloatType(bytes));
  weights.Become(FloatType(bytes));
  RouteInputs in = {logits.view()};
  RouteOutputs out = {ids.view(), weights.view()};

  const auto run = [&] { return RouteTopK(in, out, options, executor); };
  if (RefusesSpoilt<calls::RouteCall>(spoiler, &in, &out, &options, run)) {
    return 0;
  }

  // Results of other types have to equal the f32 kernel's results, rounded.
  const std::vector<float> all = logits.Floats();
  std::vector<int32_t> f32_ids(tokens * top_k);
  std::vector<float> f32_weights(tokens * top_k);
  std::optional<std::vector<int32_t>> first;
  const auto check = [&](const Isa& isa) {
    const std::vector<int32_t> all_ids = ids.Ids();
    FUZZ_CHECK(RouteTopK({{all.data(), tokens, experts}},
                         {{f32_ids.data(), tokens, top_k},
                          {f32_weights.data(), tokens, top_k}},
                         options, executor)
                   .ok(),
               "f32");
    FUZZ_CHECK(all_ids == f32_ids, "other ids than those of f32");
    CheckRounded(weights, f32_weights, "weights");
    if (!first) first = all_ids;
    FUZZ_CHECK(all_ids == *first, std::string(isa.name) + ": other ids");
    for (size_t t = 0; t < tokens; ++t) {
      const auto row = [t](const auto& values, size_t cols) {
        const auto begin = values.begin() + static_cast<ptrdiff_t>(t * cols);
        return std::vector(begin, begin + static_cast<ptrdiff_t>(cols));
      };
      const std::string wrong =
          reference::WrongRoute(row(all, experts), options, row(all_ids, top_k),
                                row(f32_weights, top_k), isa.fma);
      FUZZ_CHECK(wrong.empty(), std::string(isa.name) + ", row " +
                                    std::to_string(t) + ", " + wrong);
    }
    std::vector<uint32_t> words(all_ids.begin(), all_ids.end());
    Append(words, weights.Floats());
    return words;
  };
  RunOnEveryIsa<calls::RouteCall>(in, &out, {}, run, check);
  return 0;
}
