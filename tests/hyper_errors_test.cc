// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every invalid argument of hyper.h and its message; nothing is written.

#include "switchyard/hyper.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {
namespace {

class HyperErrors : public CallErrors<HyperInputs, HyperOutputs, HyperOptions> {
 protected:
  HyperErrors()
      : CallErrors("HyperConnect", HyperConnect),
        values_(64),
        streams_(6, 5),
        scales_(3, 1),
        out_(3, 5),
        normed_(3, 5) {
    const float* const v = values_.data();
    call_.in = {{v, 6, 5}, {v, 3, 5}, {v, 3, 2},
                {v, 3, 4}, {v, 3, 2}, {v, 1, 5}};
    call_.out = {streams_.view(), scales_.view(), out_.view(), normed_.view()};
    call_.options.num_streams = 2;
  }
  void ExpectUntouched() const override {
    streams_.ExpectUntouched("streams");
    scales_.ExpectUntouched("scales");
    out_.ExpectUntouched("out");
    normed_.ExpectUntouched("normed");
  }

  const std::vector<float> values_;
  Guarded<float> streams_, scales_, out_, normed_;
};

TEST_F(HyperErrors, Views) {
  ExpectViewErrors("streams", [](Call& c) { return &c.in.streams; });
  ExpectViewErrors("block", [](Call& c) { return &c.in.block; });
  ExpectViewErrors("post", [](Call& c) { return &c.in.post; });
  ExpectViewErrors("comb", [](Call& c) { return &c.in.comb; });
  ExpectViewErrors("pre", [](Call& c) { return &c.in.pre; });
  ExpectViewErrors("norm_weight", [](Call& c) { return &c.in.norm_weight; });
  ExpectViewErrors("outputs.streams", [](Call& c) { return &c.out.streams; });
  ExpectViewErrors("scales", [](Call& c) { return &c.out.scales; });
  ExpectViewErrors("out", [](Call& c) { return &c.out.out; });
  ExpectViewErrors(
      "normed", [](Call& c) { return &c.out.normed; }, kTakesRows);
}

TEST_F(HyperErrors, Shapes) {
  const std::string count =
      "options: num_streams is 0 or more than kMaxStreams";
  EXPECT_ERROR(count, c.options.num_streams = 0);
  EXPECT_ERROR(count, c.options.num_streams = kMaxStreams + 1);
  EXPECT_ERROR("streams: rows is not tokens * num_streams",
               c.in.streams.rows = 5);
  EXPECT_SIZE_ERRORS("block: is not [tokens, hidden]", c.in.block, 2, 4);
  EXPECT_ERROR("block: not given", c.in.block = {});
  EXPECT_SIZE_ERRORS("post: is not [tokens, num_streams]", c.in.post, 2, 1);
  EXPECT_ERROR("post: not given", c.in.post = {});
  EXPECT_SIZE_ERRORS("comb: is not [tokens, num_streams * num_streams]",
                     c.in.comb, 2, 3);
  EXPECT_ERROR("block: not given", c.in.block = {}, c.in.post = {});
  EXPECT_SIZE_ERRORS(
      "pre: is not [tokens, num_streams] or [tokens * num_streams, hidden]",
      c.in.pre, 2, 1);
  EXPECT_ERROR("pre: not given, with out or normed", c.in.pre = {});
  EXPECT_ERROR("pre: given without out and normed", c.out.out = {},
               c.out.normed = {}, c.in.norm_weight = {});
  EXPECT_SIZE_ERRORS("outputs.streams: is not [tokens * num_streams, hidden]",
                     c.out.streams, 5, 4);
  EXPECT_SIZE_ERRORS("scales: is not [tokens, 1]", c.out.scales, 2, 0);
  EXPECT_SIZE_ERRORS("out: is not [tokens, hidden]", c.out.out, 2, 4);
  EXPECT_SIZE_ERRORS("normed: is not [tokens, hidden]", c.out.normed, 2, 4);
  EXPECT_ERROR("normed: not given", c.out.normed = {});
  EXPECT_SIZE_ERRORS("norm_weight: is not [1, hidden]", c.in.norm_weight, 2, 4);
  EXPECT_ERROR("norm_weight: not given", c.in.norm_weight = {});
  for (const float eps : {-1e-9f, -kInf, kNaN}) {
    EXPECT_ERROR("options: eps is negative or NaN", c.options.eps = eps);
  }
}

TEST_F(HyperErrors, Overlaps) {
  float* const s = streams_.data();
  float* const o = out_.data();
  EXPECT_ERROR("outputs.streams: overlaps streams without being the same view",
               c.in.streams.data = s + 1);
  const auto over = [&](const std::string& output, float* data) {
    EXPECT_ERROR(output + ": overlaps block", c.in.block.data = data);
    EXPECT_ERROR(output + ": overlaps post", c.in.post.data = data);
    EXPECT_ERROR(output + ": overlaps comb", c.in.comb.data = data);
    EXPECT_ERROR(output + ": overlaps pre", c.in.pre.data = data);
    EXPECT_ERROR(output + ": overlaps norm_weight",
                 c.in.norm_weight.data = data);
  };
  over("outputs.streams", s);
  over("scales", scales_.data());
  over("out", o);
  over("normed", normed_.data());
  EXPECT_ERROR("scales: overlaps streams", c.in.streams.data = scales_.data());
  EXPECT_ERROR("out: overlaps streams", c.in.streams.data = o);
  EXPECT_ERROR("normed: overlaps streams", c.in.streams.data = normed_.data());
  EXPECT_ERROR("scales: overlaps outputs.streams", c.out.scales.data = s);
  EXPECT_ERROR("out: overlaps outputs.streams", c.out.out.data = s);
  EXPECT_ERROR("out: overlaps scales", c.out.out.data = scales_.data());
  EXPECT_ERROR("normed: overlaps outputs.streams", c.out.normed.data = s);
  EXPECT_ERROR("normed: overlaps scales", c.out.normed.data = scales_.data());
  EXPECT_ERROR("normed: overlaps out", c.out.normed.data = o);
  const AnyMatrix i8(static_cast<void*>(normed_.data()), Type::kI8, 3, 5, 5);
  const auto part_over = [&](const std::string& name, const void* data) {
    void* const there = const_cast<void*>(data);
    EXPECT_ERROR("normed.scales: overlaps " + name,
                 c.out.normed = {i8, AnyMatrix(there, Type::kF32, 3, 1, 1)});
    EXPECT_ERROR("normed.sums: overlaps " + name,
                 c.out.normed = {i8, AnyMatrix(normed_.data() + 8, 3, 1),
                                 AnyMatrix(there, Type::kI32, 3, 1, 1)});
  };
  const std::vector<float> other(64);
  const std::pair<std::string, ConstAnyMatrix HyperInputs::*> inputs[] = {
      {"streams", &HyperInputs::streams},
      {"block", &HyperInputs::block},
      {"post", &HyperInputs::post},
      {"comb", &HyperInputs::comb},
      {"pre", &HyperInputs::pre},
      {"norm_weight", &HyperInputs::norm_weight}};
  for (const auto& [name, input] : inputs) {
    const void* const data =
        std::exchange((call_.in.*input).data, other.data());
    part_over(name, other.data());
    (call_.in.*input).data = data;
  }
  part_over("outputs.streams", s);
  part_over("scales", scales_.data());
  part_over("out", o);
}

TEST_F(HyperErrors, NothingToDoIsFine) {
  HyperOptions options;
  options.num_streams = 4;
  EXPECT_OK(HyperConnect({}, {}, options));
}

TEST_F(HyperErrors, AnExecutorThatFailsIsReported) {
  ExpectExecutorErrorsAreReported();
}

}  // namespace
}  // namespace switchyard::testing_support
