// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every invalid argument of hyper.h and its message; nothing is written.

#include "src/calls/hyper.h"
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
        normed_(3, 5),
        normed_scales_(3, 1),
        normed_sums_(3, 1) {
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
    normed_scales_.ExpectUntouched("normed.scales");
    normed_sums_.ExpectUntouched("normed.sums");
  }

  const std::vector<float> values_;
  Guarded<float> streams_, scales_, out_, normed_, normed_scales_;
  Guarded<int32_t> normed_sums_;
};

TEST_F(HyperErrors, EveryLineOfItsTable) {
  ExpectSpoiltCallsAreRefused<calls::HyperCall>();
  float* const n = normed_.data();
  call_.out.normed = {AnyMatrix(static_cast<void*>(n), Type::kI8, 3, 5, 5),
                      normed_scales_.view(), normed_sums_.view()};
  ExpectSpoiltCallsAreRefused<calls::HyperCall>();
}

TEST_F(HyperErrors, Shapes) {
  const std::string count =
      "options: num_streams is 0 or more than kMaxStreams";
  EXPECT_ERROR(count, c.options.num_streams = 0);
  EXPECT_ERROR(count, c.options.num_streams = kMaxStreams + 1);
  EXPECT_ERROR("streams: rows is not tokens * num_streams",
               c.in.streams.rows = 5);
  EXPECT_ERROR("block: not given", c.in.block = {});
  EXPECT_ERROR("post: not given", c.in.post = {});
  EXPECT_ERROR("block: not given", c.in.block = {}, c.in.post = {});
  EXPECT_SIZE_ERRORS(
      "pre: is not [tokens, num_streams] or [tokens * num_streams, hidden]",
      c.in.pre, 2, 1);
  EXPECT_ERROR("pre: not given, with out or normed", c.in.pre = {});
  EXPECT_ERROR("pre: given without out and normed", c.out.out = {},
               c.out.normed = {}, c.in.norm_weight = {});
  EXPECT_ERROR("normed: not given", c.out.normed = {});
  EXPECT_ERROR("norm_weight: not given", c.in.norm_weight = {});
}

TEST_F(HyperErrors, Overlaps) {
  EXPECT_ERROR("outputs.streams: overlaps streams without being the same view",
               c.in.streams.data = streams_.data() + 1);
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
