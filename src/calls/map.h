// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The tables of MapPairs, MapReplicas and MapCounts. See call.h.

#ifndef SWITCHYARD_SRC_CALLS_MAP_H_
#define SWITCHYARD_SRC_CALLS_MAP_H_

#include "src/calls/bucket.h"
#include "src/calls/call.h"
#include "switchyard/map.h"

namespace switchyard::calls {

// The most destinations to which tokens are copied. Each destination has a bit
// on the stack, which says whether the current token has a copy there.
constexpr size_t kMaxBuckets = 65536;

struct MapSizes : SortSizes {
  size_t kept_top_k;  // the most copies of a token: one per destination
  size_t num_ids;
};
struct MapCall : CallBase<MapInputs, MapOutputs, MapOptions, MapSizes,
                          swy_map_inputs, swy_map_outputs, swy_map_options> {
  static constexpr const char* kName = "MapPairs";
  static constexpr Size<Sizes> kSizes[] = {
      {"tokens", &Sizes::tokens},
      {"top_k", &Sizes::top_k},
      {"num_destinations", &Sizes::buckets},
      {"min(top_k, num_destinations)", &Sizes::kept_top_k}};
  static Sizes Measure(const Inputs& in, const Outputs& out,
                       const Options& options) {
    const size_t top_k = in.topk_ids.cols, buckets = out.pairs.counts.size;
    return {{in.topk_ids.rows, top_k, buckets},
            top_k < buckets ? top_k : buckets,
            in.destinations.size != 0
                ? in.destinations.size
                : buckets * options.experts_per_destination};
  }
  enum Group : uint8_t { kNoGroup, kPairs, kTokens };
  static constexpr Shape kIndex = {"[tokens, top_k]"};
  static constexpr Argument kInputs[] = {
      {INPUT(topk_ids), kIds, {kIndex}},
      {INPUT(destinations), kSpan, {}, kOptional},
      {INPUT(scratch), kSpan, {}, kOptional | kScratch}};
#define ROWS(list, group, most)                                                \
  {OUTPUT(list.offsets), kSpan, {{"num_destinations + 1"}}, kOptional, group}, \
      {OUTPUT(list.rows), kSpan, {{most}}, kNeeded, group},                    \
      {OUTPUT(list.element_counts), kSpan, {{"num_destinations"}}, kOptional}, \
  {                                                                            \
    OUTPUT(list.element_offsets), kSpan, {{"num_destinations + 1"}}, kOptional \
  }
  static constexpr Argument kOutputs[] = {
      {OUTPUT(pairs.counts), kSpan, {{"num_destinations"}}},
      ROWS(pairs, kPairs, ">= tokens * top_k"),
      {OUTPUT(pair_index), kI32, {kIndex}, kOptional},
      {OUTPUT(tokens.counts), kSpan, {{"num_destinations"}}, kOptional},
      ROWS(tokens, kTokens, ">= tokens * min(top_k, num_destinations)"),
      {OUTPUT(copy_index), kI32, {kIndex}, kOptional},
      {OUTPUT(return_index), kI32, {kIndex}, kOptional},
      {OUTPUT(report), {}, {}, kOptional}};
#undef ROWS
  static constexpr Option kOptions[] = {
      {OPTION(experts_per_destination), kAnyValue, true},
      {OPTION(row_elements), kAnyValue, true},
      {OPTION(allow_dropped), kAnyValue, true}};

  static bool HasTable(const Args& c) { return c.in.destinations.size != 0; }
  template <class T>
  static bool Has(const Span<T>& span) {
    return span.size != 0;
  }
  static bool Has(const AnyMatrix& m) { return internal::Given(m); }
  static constexpr auto kFirst = Rule<Args>::kBeforeShapes;
  // The rule that an output is only given with the output that it needs.
#define NEEDS(given, needed, ...)                                         \
  {                                                                       \
    [](const Args& c) { return Has(c.out.needed) || !Has(c.out.given); }, \
        __VA_ARGS__                                                       \
  }
  static constexpr Rule<Args> kRules[] = {
      {HasBuckets<Args>, "pairs.counts: has no destinations", kFirst},
      {HasFewBuckets<Args>, "pairs.counts: more than 2^31 - 1 destinations",
       kFirst},
      kHasFewPairs<Args>,
      {[](const Args& c) {
         return HasTable(c) || c.options.experts_per_destination != 0;
       },
       "destinations: neither destinations nor options.experts_per_destination "
       "is given",
       kFirst},
      {[](const Args& c) {
         size_t ids = 0;
         return HasTable(c) || (!__builtin_mul_overflow(
                                    c.sizes.buckets,
                                    c.options.experts_per_destination, &ids) &&
                                ids <= kMaxInt32);
       },
       "options: experts_per_destination: more than 2^31 - 1 experts", kFirst},
      {[](const Args& c) {
         return !HasTable(c) || c.options.experts_per_destination == 0;
       },
       "options: experts_per_destination: given with destinations", kFirst},
      {[](const Args& c) {
         return !HasTable(c) || c.sizes.num_ids <= kMaxInt32;
       },
       "destinations: more than 2^31 - 1 experts", kFirst},
      {[](const Args& c) {
         size_t elements = 0;
         return !__builtin_mul_overflow(c.sizes.tokens * c.sizes.top_k,
                                        c.options.row_elements, &elements) &&
                elements <= INT64_MAX;
       },
       "options: row_elements: elements overflow 64 bits", kFirst},
      NEEDS(pairs.rows, pairs.offsets, "pairs.rows: given without offsets",
            kFirst),
      NEEDS(pairs.element_offsets, pairs.offsets,
            "pairs.element_offsets: given without offsets", kFirst),
      NEEDS(tokens.counts, tokens.offsets,
            "tokens.offsets: not given, but tokens.counts is", kFirst),
      NEEDS(tokens.offsets, tokens.counts,
            "tokens.counts: not given, but tokens.offsets is", kFirst),
      NEEDS(tokens.rows, tokens.offsets, "tokens.rows: given without offsets",
            kFirst),
      NEEDS(tokens.element_offsets, tokens.offsets,
            "tokens.element_offsets: given without offsets", kFirst),
      NEEDS(tokens.element_counts, tokens.counts,
            "tokens.element_counts: given without counts", kFirst),
      {[](const Args& c) {
         return !Has(c.out.tokens.counts) || c.sizes.buckets <= kMaxBuckets;
       },
       "tokens: more than 65536 destinations", kFirst},
      NEEDS(pair_index, pairs.offsets, "pair_index: given without pairs.rows"),
      NEEDS(copy_index, tokens.offsets,
            "copy_index: given without tokens.rows"),
      NEEDS(return_index, tokens.offsets,
            "return_index: given without tokens.rows")};
#undef NEEDS
};

struct ReplicaSizes : SortSizes {
  size_t max_replicas;
};
struct ReplicaCall
    : CallBase<ReplicaInputs, ReplicaOutputs, ReplicaOptions, ReplicaSizes,
               swy_replica_inputs, swy_replica_outputs, swy_replica_options> {
  static constexpr const char* kName = "MapReplicas";
  static constexpr Size<Sizes> kSizes[] = {
      {"tokens", &Sizes::tokens},
      {"top_k", &Sizes::top_k},
      {"num_experts", &Sizes::buckets},
      {"max_replicas", &Sizes::max_replicas}};
  static Sizes Measure(const Inputs& in, const Outputs&, const Options&) {
    return {{in.topk_ids.rows, in.topk_ids.cols, in.replica_counts.size},
            in.replicas.cols};
  }
  static constexpr Shape kIndex = {"[tokens, top_k]"};
  static constexpr Argument kInputs[] = {
      {INPUT(topk_ids), kIds, {kIndex}, kNeeded, 0, {}, "physical_ids"},
      {INPUT(replicas), kI32, {{"[num_experts, max_replicas]"}}},
      {INPUT(replica_counts), kSpan, {{"num_experts"}}},
      {INPUT(scratch), kSpan, {}, kOptional | kScratch}};
  static constexpr Argument kOutputs[] = {
      {OUTPUT(physical_ids), kI32, {kIndex}},
      {OUTPUT(tokens_per_expert), kSpan, {{"num_experts"}}},
      {OUTPUT(report), {}, {}, kOptional}};
  static constexpr Option kOptions[] = {
      {OPTION(first_replica), kAnyValue, true},
      {OPTION(allow_dropped), kAnyValue, true}};
  static constexpr auto kFirst = Rule<Args>::kBeforeShapes;
  static constexpr Rule<Args> kRules[] = {
      {HasBuckets<Args>, "replica_counts: no experts", kFirst},
      {HasFewBuckets<Args>, "replica_counts: more than 2^31 - 1 experts",
       kFirst},
      kHasFewPairs<Args>,
      {[](const Args& c) { return c.sizes.max_replicas <= kMaxInt32; },
       "replicas: more than 2^31 - 1 columns", kFirst},
      {[](const Args& c) { return c.options.first_replica <= kMaxInt32; },
       "options: first_replica: more than 2^31 - 1", kFirst}};
};

struct CountsSizes {
  size_t ranks;
};
struct CountsCall
    : CallBase<CountsInputs, CountsOutputs, CountsOptions, CountsSizes,
               swy_counts_inputs, swy_counts_outputs, swy_counts_options> {
  static constexpr const char* kName = "MapCounts";
  static constexpr bool kRunsKernel = false;
  static constexpr Size<Sizes> kSizes[] = {{"ranks", &Sizes::ranks}};
  static Sizes Measure(const Inputs& in, const Outputs&, const Options&) {
    return {in.counts.cols};
  }
  static constexpr Types kI32OrI64 = {SetOf(Type::kI32) | SetOf(Type::kI64),
                                      "int32 or int64"};
  static constexpr Argument kInputs[] = {
      {INPUT(counts), kI32OrI64, {{"[ranks, ranks]"}}}};
  static constexpr Argument kOutputs[] = {
      {OUTPUT(recv_counts), kSpan, {{"ranks"}}},
      {OUTPUT(recv_offsets), kSpan, {{"ranks + 1"}}},
      {OUTPUT(send_counts), kSpan, {{"ranks"}}, kOptional},
      {OUTPUT(send_offsets), kSpan, {{"ranks + 1"}}, kOptional},
      {OUTPUT(put_offsets), kSpan, {{"ranks"}}, kOptional},
      {OUTPUT(report), {}, {}, kOptional}};
  static constexpr Option kOptions[] = {{OPTION(rank), kAnyValue, true},
                                        {OPTION(row_elements), kAnyValue, true},
                                        {OPTION(capacity), kAnyValue, true}};
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) { return c.sizes.ranks != 0; }, "counts: no ranks",
       Rule<Args>::kBeforeShapes},
      {[](const Args& c) { return c.options.rank < c.sizes.ranks; },
       "options: rank: not below ranks"}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_MAP_H_
