// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests labels and debug groups in errors and in times.

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/tests/checked_kernels.h"
#include "device/tests/device_test.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"
#include "switchyard/device/kernels.h"

namespace switchyard::testing_support {
namespace {

class DeviceLabels : public DeviceTest {
 protected:
  DeviceLabels() {
    device_ = NewDevice(true);
    queue_ = device_->newCommandQueue();
  }
  // Encodes a dispatch that fails when it runs.
  void Fails(Encoder& e) {
    e.setComputePipelineState(Pipeline(
        [](const ThreadgroupContext&) { throw std::runtime_error("no"); }));
    DispatchOne(e);
  }
  void Succeeds(Encoder& e) {
    e.setComputePipelineState(Pipeline([](const ThreadgroupContext&) {}));
    DispatchOne(e);
  }
};

TEST_F(DeviceLabels, OfADispatchThatFails) {
  EXPECT_EQ(Run([&](Encoder& e) { Fails(e); }), "user: no");
  EXPECT_EQ(Run([&](Encoder& e) {
              e.setLabel("layer 3");
              EXPECT_EQ(e.label(), "layer 3");
              e.pushDebugGroup("attention");
              Succeeds(e);
              e.pushDebugGroup(std::string("qk"));
              e.insertDebugSignpost("softmax");
              Fails(e);
              e.popDebugGroup();
              e.popDebugGroup();
            }),
            "user: no [encoder \"layer 3\", group \"attention/qk\", after "
            "\"softmax\"]");
  // Errors must not name groups that are closed, or earlier signposts.
  EXPECT_EQ(Run([&](Encoder& e) {
              e.pushDebugGroup("outer");
              e.pushDebugGroup("inner");
              e.insertDebugSignpost("post");
              Succeeds(e);
              e.popDebugGroup();
              Fails(e);
              e.popDebugGroup();
            }),
            "user: no [group \"outer\"]");
}

TEST_F(DeviceLabels, OfQueuesAndCommandBuffers) {
  queue_->setLabel("main");
  EXPECT_EQ(queue_->label(), "main");
  EXPECT_EQ(Run([&](Encoder& e) { Fails(e); }), "user: no [queue \"main\"]");
  const auto run = [&] {
    const auto commands = queue_->commandBuffer();
    commands->setLabel("step 7");
    EXPECT_EQ(commands->label(), "step 7");
    commands->pushDebugGroup("layer 0");
    const auto encoder = commands->computeCommandEncoder();
    encoder->pushDebugGroup("ffn");
    Fails(*encoder);
    encoder->popDebugGroup();
    encoder->endEncoding();
    commands->popDebugGroup();
    CommitAndWait(*commands);
    return commands->error();
  };
  EXPECT_EQ(
      run(),
      "user: no [group \"layer 0/ffn\"] [command buffer \"step 7\", queue "
      "\"main\"]");
  queue_->setLabel("");
  EXPECT_EQ(run(),
            "user: no [group \"layer 0/ffn\"] [command buffer \"step 7\"]");
}

TEST_F(DeviceLabels, OfMistakesInTheEncoding) {
  EXPECT_EQ(Run([](Encoder& e) {
              e.setLabel("first");
              e.setBuffer(nullptr, 0, 31);
            }),
            "setBuffer: index 31 is not below 31 [encoder \"first\"]");
  EXPECT_EQ(Run([](Encoder& e) { e.popDebugGroup(); }),
            "popDebugGroup: no group is open: pushDebugGroup is missing");
  EXPECT_EQ(Run([](Encoder& e) { e.pushDebugGroup("open"); }),
            "endEncoding: debug group \"open\" is open: popDebugGroup is "
            "missing [group \"open\"]");
  const auto commands = queue_->commandBuffer();
  commands->popDebugGroup();
  EXPECT_EQ(commands->error(),
            "popDebugGroup: no group is open: pushDebugGroup is missing");
}

TEST_F(DeviceLabels, InTimes) {
  const auto commands = Encoded(*queue_, [&](Encoder& e) {
    Succeeds(e);
    e.setLabel("layer");
    e.pushDebugGroup("route");
    Succeeds(e);
    e.pushDebugGroup("topk");
    e.insertDebugSignpost("sorted");
    Succeeds(e);
    Succeeds(e);
    e.popDebugGroup();
    Succeeds(e);
    e.popDebugGroup();
  });
  CommitAndWait(*commands);
  std::vector<std::string> places;
  for (const DispatchTime& time : commands->dispatchTimes()) {
    places.push_back(time.encoder + ":" + time.group + ":" + time.signpost);
  }
  EXPECT_EQ(places, (std::vector<std::string>{
                        "::", "layer:route:", "layer:route/topk:sorted",
                        "layer:route/topk:sorted", "layer:route:"}));
}

TEST_F(DeviceLabels, OfBuffers) {
  const auto x = device_->newBuffer(8);
  x->setLabel("hidden");
  EXPECT_EQ(x->label(), "hidden");
  const SiluMulStackedParams params = {256, 1};
  EXPECT_EQ(Run([&](Encoder& e) {
              e.setComputePipelineState(
                  device_->newComputePipelineState("silu_mul_stacked_f32"));
              for (size_t i = 0; i < 3; ++i) e.setBuffer(x, 0, i);
              e.setBytes(&params, sizeof(params), 3);
              e.dispatchThreadgroups(Size(1, 1, 1), Size(256, 1, 1));
            }),
            "silu_mul_stacked_f32: buffer 0 (gate) \"hidden\": [1, 256] needs "
            "1024 bytes, 8 are bound: 1016 too few");
}

TEST_F(DeviceLabels, OfBuffersInCheckedMode) {
  CheckedQueue q;
  const auto x = q.Floats(10), out = q.Floats(64);
  x->setLabel("hidden");
  EXPECT_EQ(q.Run([&](Encoder& e) {
    e.setLabel("layer 1");
    q.Copy(x, out)(e);
  }),
            "copy: threadgroup (0, 0, 0), thread 10: reads buffer 0 "
            "\"hidden\"[10], which has 10 elements [encoder \"layer 1\"]");
  const auto fresh = q.device->newBuffer(1024);
  fresh->setLabel("gate");
  const SiluMulStackedParams params = {256, 1};
  EXPECT_EQ(q.Run([&](Encoder& e) {
    q.DispatchBuiltIn(e, "silu_mul_stacked_f32", params, {fresh, fresh, fresh},
                      1);
  }),
            "silu_mul_stacked_f32: reads buffer 0 (gate) \"gate\"[0], which "
            "nothing has written since newBuffer()");
}

}  // namespace
}  // namespace switchyard::testing_support
