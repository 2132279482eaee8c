// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What the device layer costs above the plain API's calls: dispatches that do
// nothing, and the chain of one decode token (route, SiLU-mul, weighted sum
// with residual and norm) of Qwen3-30B-A3B.

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/contest.h"
#include "bench/inputs.h"
#include "switchyard/combine.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernels.h"
#include "switchyard/route.h"
#include "switchyard/silu_mul.h"

namespace switchyard {
namespace bench {
namespace {

namespace MTL = device;

constexpr size_t kExperts = 128, kTopK = 8, kFfn = 768, kHidden = 2048;
constexpr float kEps = 1e-6f;

// One queue for all, as in an engine.
struct Metal {
  std::shared_ptr<MTL::Device> device = MTL::CreateSystemDefaultDevice();
  std::shared_ptr<MTL::CommandQueue> queue = device->newCommandQueue();

  // Encodes, commits, waits; returns the error.
  template <class Encode>
  std::string Run(const Encode& encode) {
    const std::shared_ptr<MTL::CommandBuffer> buffer = queue->commandBuffer();
    const std::shared_ptr<MTL::ComputeCommandEncoder> encoder =
        buffer->computeCommandEncoder();
    encode(*encoder);
    encoder->endEncoding();
    buffer->commit();
    buffer->waitUntilCompleted();
    return buffer->status() == MTL::CommandBufferStatusCompleted
               ? std::string()
               : buffer->error();
  }
};

Metal& metal() {
  static Metal instance;
  return instance;
}

void CheckError(const std::string& error) {
  if (!error.empty()) throw std::runtime_error(error);
}

Contest MakeEmpty() {
  constexpr size_t kDispatches = 1000;
  struct Data {
    std::shared_ptr<MTL::ComputePipelineState> pipeline =
        metal().device->newComputePipelineState(
            {"empty", [](const MTL::ThreadgroupContext&) {}});
    std::shared_ptr<MTL::Buffer> buffers[3];
    int32_t params[3] = {1, 2, 3};
  };
  const auto data = std::make_shared<Data>();
  for (auto& buffer : data->buffers) buffer = metal().device->newBuffer(4096);
  Contest contest;
  contest.kernel = "device";
  contest.shape = "empty";
  contest.unit = "dispatch";
  contest.units = kDispatches;
  AddRival(contest, Kind::kOurs, "device", {}, [data](size_t) {
    CheckError(metal().Run([&](MTL::ComputeCommandEncoder& encoder) {
      encoder.setComputePipelineState(data->pipeline);
      for (size_t i = 0; i < kDispatches; ++i) {
        for (size_t b = 0; b < 3; ++b) {
          encoder.setBuffer(data->buffers[b], 0, b);
        }
        encoder.setBytes(data->params, sizeof(data->params), 3);
        encoder.dispatchThreadgroups({1, 1, 1}, {32, 1, 1});
      }
    }));
  });
  return contest;
}

// One decode token, from buffers that both sides read and write.
struct Chain {
  using Buffer = std::shared_ptr<MTL::Buffer>;
  Buffer logits = Floats(kExperts), ids = Floats(kTopK),
         weights = Floats(kTopK), gate = Floats(kTopK * kFfn),
         up = Floats(kTopK * kFfn), act = Floats(kTopK * kFfn),
         slots = Floats(kTopK * kHidden), residual = Floats(kHidden),
         norm_weight = Floats(kHidden), normed = Floats(kHidden);
  std::shared_ptr<MTL::ComputePipelineState> route =
      Pipeline("moe_router_topk_softmax_f32");
  std::shared_ptr<MTL::ComputePipelineState> silu =
      Pipeline("silu_mul_stacked_f32");
  std::shared_ptr<MTL::ComputePipelineState> combine =
      Pipeline("weighted_sum_residual_norm_stacked_f32");

  static std::shared_ptr<MTL::ComputePipelineState> Pipeline(const char* name) {
    return metal().device->newComputePipelineState(name);
  }
  static Buffer Floats(size_t count) {
    const Buffer buffer = metal().device->newBuffer(count * sizeof(float));
    for (size_t i = 0; i < count; ++i) At(buffer)[i] = Uniform(11, i, 1.0f);
    return buffer;
  }
  static float* At(const Buffer& buffer) {
    return static_cast<float*>(buffer->contents());
  }

  // Through the plain API.
  Status Call() const {
    const Matrix<float> token_weights(At(weights), 1, kTopK);
    const Matrix<float> token_residual(At(residual), 1, kHidden);
    Status status = RouteTopK(
        {At(logits), 1, kExperts}, RouteOptions(),
        Matrix<int32_t>(static_cast<int32_t*>(ids->contents()), 1, kTopK),
        token_weights);
    if (!status.ok()) return status;
    status = SiluMul({At(gate), kTopK, kFfn}, {At(up), kTopK, kFfn},
                     {At(act), kTopK, kFfn});
    if (!status.ok()) return status;
    CombineInputs inputs;
    inputs.rows = {At(slots), kTopK, kHidden};
    inputs.weights = token_weights;
    inputs.residual = token_residual;
    return WeightedSumRmsNorm(inputs, {At(norm_weight), kHidden}, kEps,
                              token_residual, {At(normed), 1, kHidden});
  }

  void Encode(MTL::ComputeCommandEncoder& encoder) const {
    const MTL::MoeRouterTopkSoftmaxParams route_params = {kExperts, kTopK, 1};
    encoder.setComputePipelineState(route);
    encoder.setBuffer(logits, 0, 0);
    encoder.setBuffer(ids, 0, 1);
    encoder.setBuffer(weights, 0, 2);
    encoder.setBytes(&route_params, sizeof(route_params), 3);
    encoder.setThreadgroupMemoryLength(4 * (kExperts + 2 * kTopK + 1), 0);
    encoder.dispatchThreadgroups({1, 1, 1}, {32, 1, 1});

    const MTL::SiluMulStackedParams silu_params = {kFfn, kTopK};
    encoder.setComputePipelineState(silu);
    encoder.setBuffer(gate, 0, 0);
    encoder.setBuffer(up, 0, 1);
    encoder.setBuffer(act, 0, 2);
    encoder.setBytes(&silu_params, sizeof(silu_params), 3);
    encoder.dispatchThreadgroups({kFfn / 256, kTopK, 1}, {256, 1, 1});

    const MTL::WeightedSumResidualNormStackedParams combine_params = {
        kHidden, kTopK, kEps};
    encoder.setComputePipelineState(combine);
    encoder.setBuffer(slots, 0, 0);
    encoder.setBuffer(weights, 0, 1);
    encoder.setBuffer(residual, 0, 2);
    encoder.setBuffer(norm_weight, 0, 3);
    encoder.setBuffer(normed, 0, 4);
    encoder.setBytes(&combine_params, sizeof(combine_params), 5);
    encoder.dispatchThreadgroups({1, 1, 1}, {256, 1, 1});
  }

  std::string Run(size_t chains) const {
    return metal().Run([&](MTL::ComputeCommandEncoder& encoder) {
      for (size_t i = 0; i < chains; ++i) Encode(encoder);
    });
  }

  // Empty if both ways give the same bytes.
  std::string Verify() const {
    const std::vector<float> before(At(residual), At(residual) + kHidden);
    const Status status = Call();
    if (!status.ok()) return status.message();
    std::vector<std::vector<char>> expected;
    for (const Buffer& out : {ids, weights, act, residual, normed}) {
      const char* bytes = static_cast<const char*>(out->contents());
      expected.emplace_back(bytes, bytes + out->length());
      if (out != residual) std::memset(out->contents(), 0xFF, out->length());
    }
    std::memcpy(At(residual), before.data(), residual->length());
    const std::string error = Run(1);
    if (!error.empty()) return error;
    size_t i = 0;
    for (const Buffer& out : {ids, weights, act, residual, normed}) {
      if (std::memcmp(out->contents(), expected[i++].data(), out->length())) {
        return "the device's results differ from the plain API's";
      }
    }
    return std::string();
  }
};

// `chains` chains in one command buffer, against as many direct calls: right
// after others, or after a millisecond without any.
Contest MakeChains(size_t chains, bool idle) {
  const auto chain = std::make_shared<Chain>();
  Contest contest;
  contest.kernel = "device";
  contest.shape =
      "chains=" + std::to_string(chains) + (idle ? ", 1 ms idle" : "");
  contest.model = "Qwen3-30B-A3B, one token";
  contest.unit = "chain";
  contest.units = static_cast<double>(chains);
  contest.verify = [chain] { return chain->Verify(); };
  AddRival(contest, Kind::kOurs, "direct calls", {}, [=](size_t) {
    for (size_t i = 0; i < chains; ++i) Check(chain->Call());
  });
  AddRival(contest, Kind::kOurs, "device", {},
           [=](size_t) { CheckError(chain->Run(chains)); });
  // The scheduler takes a while to give the queue's thread a core of its own.
  using Clock = std::chrono::steady_clock;
  const Clock::time_point settled =
      Clock::now() + std::chrono::milliseconds(100);
  while (Clock::now() < settled) CheckError(chain->Run(1));
  // A queue's thread that has been idle sleeps; asked for is one that is warm.
  for (Contender& contender : contest.contenders) {
    if (!idle && &contender != &contest.contenders.back()) continue;
    contender.timed.alone = idle || chains == 1;
    contender.timed.prepare = [=] {
      if (idle) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return;
      }
      for (int i = 0; i < 3; ++i) CheckError(chain->Run(1));
    };
  }
  return contest;
}

}  // namespace

void RegisterDevice() {
  Register("device", "empty", MakeEmpty);
  for (const size_t chains : {size_t{1}, size_t{100}}) {
    Register("device", "chains=" + std::to_string(chains),
             [=] { return MakeChains(chains, false); });
  }
  Register("device", "chains=1, 1 ms idle", [] { return MakeChains(1, true); });
}

}  // namespace bench
}  // namespace switchyard
