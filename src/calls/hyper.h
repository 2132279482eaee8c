// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The table of HyperConnect. See call.h.

#ifndef SWITCHYARD_SRC_CALLS_HYPER_H_
#define SWITCHYARD_SRC_CALLS_HYPER_H_

#include <cmath>

#include "src/base/view_checks.h"
#include "src/calls/call.h"
#include "switchyard/hyper.h"

namespace switchyard::calls {

struct HyperSizes {
  size_t num_streams, tokens, hidden;
};
struct HyperCall
    : CallBase<HyperInputs, HyperOutputs, HyperOptions, HyperSizes,
               swy_hyper_inputs, swy_hyper_outputs, swy_hyper_options> {
  static constexpr const char* kName = "HyperConnect";
  static constexpr Size<Sizes> kSizes[] = {
      {"num_streams", &Sizes::num_streams, true},
      {"tokens", &Sizes::tokens},
      {"hidden", &Sizes::hidden}};
  static Sizes Measure(const Inputs& in, const Outputs&,
                       const Options& options) {
    const size_t n = options.num_streams;
    return {n, n == 0 ? 0 : in.streams.rows / n, in.streams.cols};
  }

  enum Group : uint8_t { kNoGroup, kBlock, kNorm };
  static constexpr Shape kStreams = {"[tokens * num_streams, hidden]"};
  static constexpr Argument kInputs[] = {
      {INPUT(streams), kFloats, {kStreams}, kNeeded, 0, {}, "outputs.streams"},
      {INPUT(block), kFloats, {{"[tokens, hidden]"}}, kNeeded, kBlock},
      {INPUT(post), kFloats, {{"[tokens, num_streams]"}}, kNeeded, kBlock},
      {INPUT(comb),
       kFloats,
       {{"[tokens, num_streams * num_streams]"}},
       kOptional,
       kBlock},
      {INPUT(pre),
       kFloats,
       {{"[tokens, num_streams] or [tokens * num_streams, hidden]"}},
       kOptional},
      {INPUT(norm_weight), kFloats, {{"[1, hidden]"}}, kNeeded, kNorm}};
  static constexpr Argument kOutputs[] = {
      {Named(OUTPUT(streams), "outputs.streams"),
       kFloats,
       {kStreams},
       kOptional},
      {OUTPUT(scales), kFloats, {{"[tokens, 1]"}}, kOptional},
      {OUTPUT(out), kFloats, {{"[tokens, hidden]"}}, kOptional},
      {OUTPUT(normed), kAnyRows, {{"[tokens, hidden]"}}, kNeeded, kNorm}};
  static constexpr Option kOptions[] = {
      {OPTION(num_streams),
       {Range::kFrom1, 0, 0, kMaxStreams, " is 0 or more than kMaxStreams"},
       true},
      {OPTION(eps), UpTo(HUGE_VALF, " is negative or NaN"), true},
      {OPTION(comb_by_row), kAnyValue, true},
      {OPTION(norm_plus_one), kAnyValue, true},
      {OPTION(round_like_unfused), kAnyValue, true}};

  static bool Collapses(const Args& c) {
    return internal::Given(c.out.out) || internal::Given(c.out.normed);
  }
  // True if a row of `streams` has all streams of a token. The shapes of the
  // arguments with one row per token (block, out, normed) show this.
  static bool HasStreamsSideBySide(const Args& c) {
    const ConstAnyMatrix& m = c.in.streams;
    const size_t n = c.sizes.num_streams;
    const auto is_token = [&m, n](size_t rows, size_t cols) {
      return rows != 0 && rows == m.rows && cols != 0 && cols * n == m.cols;
    };
    return n > 1 && (is_token(c.in.block.rows, c.in.block.cols) ||
                     is_token(c.out.out.rows, c.out.out.cols) ||
                     is_token(c.out.normed.rows, c.out.normed.cols));
  }
  static constexpr auto kFirst = Rule<Args>::kBeforeShapes;
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) {
         return c.in.streams.rows == c.sizes.tokens * c.sizes.num_streams;
       },
       "streams: rows is not tokens * num_streams", kFirst},
      {[](const Args& c) { return !HasStreamsSideBySide(c); },
       "streams: is [tokens, num_streams * hidden], and has to be [tokens * "
       "num_streams, hidden]",
       kFirst},
      {[](const Args& c) { return internal::Given(c.in.pre) || !Collapses(c); },
       "pre: not given, but out or normed needs it"},
      {[](const Args& c) { return Collapses(c) || !internal::Given(c.in.pre); },
       "pre: given without out or normed"},
      {[](const Args& c) {
         return Collapses(c) || internal::Given(c.out.streams) ||
                internal::Given(c.out.scales) || c.in.streams.rows == 0 ||
                c.in.streams.cols == 0;
       },
       "out: none of out, streams, scales and normed is given"}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_HYPER_H_
