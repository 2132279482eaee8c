// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/hyper.h"

#include <cmath>

#include "src/check.h"
#include "src/check_rows.h"
#include "src/schedule.h"
#include "src/shapes.h"
#include "src/simd/hyper.h"

namespace switchyard {
namespace {

using internal::Given;
using internal::Role;

// The message of a call whose views do not fit each other, or, if they do,
// `otherwise`.
[[gnu::cold, gnu::noinline]] const char* ShapeError(const HyperInputs& inputs,
                                                    const HyperOutputs& outputs,
                                                    size_t n,
                                                    const char* otherwise) {
  const auto& [streams, block, post, comb, pre, norm_weight] = inputs;
  const auto& [streams_out, scales, out, normed] = outputs;
  const auto needed_if = [](bool needed) {
    return needed ? Role::kInput : Role::kOptional;
  };
  const bool has_block = Given(block) || Given(post) || Given(comb);
  const bool has_norm = Given(normed) || Given(norm_weight);
  const Span<const char> num_streams("", n);
  const internal::Shaped arguments[] = {
      {Role::kInput, num_streams, "num_streams", "1",
       "HyperConnect: options: num_streams: is not that of the other arguments",
       ""},
      SWITCHYARD_SHAPED(HyperConnect, Role::kInput, streams,
                        tokens * num_streams, hidden),
      SWITCHYARD_SHAPED(HyperConnect, needed_if(has_block), block, tokens,
                        hidden),
      SWITCHYARD_SHAPED(HyperConnect, needed_if(has_block), post, tokens,
                        num_streams),
      {Role::kOptional, comb, "tokens", "squared",
       "HyperConnect: comb: is not [tokens, num_streams * num_streams]", ""},
      {Role::kOptional, pre,
       pre.rows == streams.rows ? "tokens * num_streams" : "tokens",
       pre.rows == streams.rows ? "hidden" : "num_streams",
       "HyperConnect: pre: is not [tokens, num_streams] or [tokens * "
       "num_streams, hidden]",
       ""},
      SWITCHYARD_SHAPED(HyperConnect, needed_if(has_norm), norm_weight, 1,
                        hidden),
      {Role::kOptionalOutput, streams_out, "tokens * num_streams", "hidden",
       "HyperConnect: outputs.streams: is not [tokens * num_streams, hidden]",
       ""},
      SWITCHYARD_SHAPED(HyperConnect, Role::kOptionalOutput, scales, tokens, 1),
      SWITCHYARD_SHAPED(HyperConnect, Role::kOptionalOutput, out, tokens,
                        hidden),
      SWITCHYARD_SHAPED(HyperConnect,
                        has_norm ? Role::kOutput : Role::kOptionalOutput,
                        normed, tokens, hidden)};
  return internal::OddOneOut(arguments, otherwise);
}

Status CheckShapes(const HyperInputs& inputs, const HyperOutputs& outputs,
                   size_t n) {
  const auto& [streams, block, post, comb, pre, norm_weight] = inputs;
  SWITCHYARD_CHECK(n != 0 && n <= kMaxStreams,
                   "HyperConnect: options: num_streams is 0 or more than "
                   "kMaxStreams");
  SWITCHYARD_CHECK_FLOATS(HyperConnect, streams);
  SWITCHYARD_CHECK(streams.rows % n == 0,
                   "HyperConnect: streams: rows is not tokens * num_streams");
  const size_t tokens = streams.rows / n, hidden = streams.cols;
  const size_t num_streams = n;
  if (Given(block) || Given(post) || Given(comb)) {
    SWITCHYARD_CHECK_FLOATS(HyperConnect, block);
    SWITCHYARD_CHECK_FLOATS(HyperConnect, post);
    SWITCHYARD_CHECK_SHAPE_FITS(HyperConnect, block, tokens, hidden);
    SWITCHYARD_CHECK_SHAPE_FITS(HyperConnect, post, tokens, num_streams);
  }
  if (Given(comb)) {
    SWITCHYARD_CHECK_FLOATS(HyperConnect, comb);
    SWITCHYARD_CHECK_SHAPE_FITS(HyperConnect, comb, tokens,
                                num_streams * num_streams);
  }
  if (Given(pre)) {
    SWITCHYARD_CHECK_FLOATS(HyperConnect, pre);
    SWITCHYARD_CHECK_FITS((pre.rows == tokens && pre.cols == n) ||
                              (pre.rows == streams.rows && pre.cols == hidden),
                          "HyperConnect: pre: is not [tokens, num_streams] or "
                          "[tokens * num_streams, hidden]");
  }
  {
    const auto& streams_out = outputs.streams;
    const auto& [unused, scales, out, normed] = outputs;
    (void)unused;
    if (Given(streams_out)) {
      SWITCHYARD_CHECK(internal::IsFloat(streams_out.type),
                       "HyperConnect: outputs.streams: has to be f32, bf16 or "
                       "f16");
      SWITCHYARD_CHECK_VIEW(HyperConnect, outputs.streams);
      SWITCHYARD_CHECK_FITS(
          streams_out.rows == streams.rows && streams_out.cols == hidden,
          "HyperConnect: outputs.streams: is not [tokens * num_streams, "
          "hidden]");
    }
    if (Given(scales)) {
      SWITCHYARD_CHECK_FLOATS(HyperConnect, scales);
      SWITCHYARD_CHECK_SHAPE_FITS(HyperConnect, scales, tokens, 1);
    }
    if (Given(out)) {
      SWITCHYARD_CHECK_FLOATS(HyperConnect, out);
      SWITCHYARD_CHECK_SHAPE_FITS(HyperConnect, out, tokens, hidden);
    }
    if (Given(normed) || Given(norm_weight)) {
      SWITCHYARD_CHECK_ROWS(HyperConnect, normed);
      SWITCHYARD_CHECK_FLOATS(HyperConnect, norm_weight);
      SWITCHYARD_CHECK_SHAPE_FITS(HyperConnect, normed, tokens, hidden);
      SWITCHYARD_CHECK_SHAPE_FITS(HyperConnect, norm_weight, 1, hidden);
    }
    const bool collapsed = Given(out) || Given(normed);
    SWITCHYARD_CHECK(Given(pre) || !collapsed,
                     "HyperConnect: pre: not given, with out or normed");
    SWITCHYARD_CHECK(collapsed || !Given(pre),
                     "HyperConnect: pre: given without out and normed");
    SWITCHYARD_CHECK(collapsed || Given(streams_out) || Given(scales) ||
                         streams.rows == 0 || hidden == 0,
                     "HyperConnect: out: not given, nor streams, scales or "
                     "normed");
  }
  return Status();
}

// `to` is the outputs' streams, named so in messages.
Status CheckOverlaps(const HyperInputs& inputs, const HyperOutputs& to) {
  const auto& [streams, block, post, comb, pre, norm_weight] = inputs;
  const auto& [unused, scales, out, normed] = to;
  (void)unused;
  const auto& outputs = to;
  SWITCHYARD_CHECK_APART(HyperConnect, outputs.streams, block, post, comb, pre,
                         norm_weight);
  if (Given(to.streams)) {
    SWITCHYARD_CHECK_APART_OR_SAME(HyperConnect, outputs.streams, streams);
  }
  SWITCHYARD_CHECK_APART(HyperConnect, scales, streams, block, post, comb, pre,
                         norm_weight, outputs.streams);
  SWITCHYARD_CHECK_APART(HyperConnect, out, streams, block, post, comb, pre,
                         norm_weight, outputs.streams, scales);
  SWITCHYARD_CHECK_APART(HyperConnect, normed, streams, block, post, comb, pre,
                         norm_weight, outputs.streams, scales, out);
  SWITCHYARD_CHECK_PARTS_APART(HyperConnect, normed, streams, block, post, comb,
                               pre, norm_weight);
  SWITCHYARD_CHECK_PARTS_APART(HyperConnect, normed, outputs.streams, scales,
                               out);
  return Status();
}

}  // namespace

Status HyperConnect(const HyperInputs& inputs, const HyperOutputs& outputs,
                    const HyperOptions& options, Executor& executor) noexcept {
  SWITCHYARD_CHECK_ISA();
  Status status = CheckShapes(inputs, outputs, options.num_streams);
  if (status.ok()) status = CheckOverlaps(inputs, outputs);
  if (!status.ok()) {
    if (status.code() != internal::kMisfit) return status;
    return Status(
        StatusCode::kInvalidArgument,
        ShapeError(inputs, outputs, options.num_streams, status.message()));
  }
  SWITCHYARD_CHECK(internal::IsUpTo(INFINITY, options.eps),
                   "HyperConnect: options: eps is negative or NaN");
  const size_t hidden = inputs.streams.cols;
  if (hidden == 0) return Status();
  // 0.1 ns an element of a stream and stream: 6 us for H = 4096 of 4.
  const size_t n = options.num_streams;
  return internal::RunRows(executor, inputs.streams.rows / n,
                           100 * hidden * n * (n + 1) / 2, simd::HyperRows(),
                           {inputs, outputs, options});
}

}  // namespace switchyard
