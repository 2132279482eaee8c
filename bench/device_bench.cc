// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What the device layer costs above the plain API's calls: dispatches that do
// nothing, and the chain of one decode token (route, activate, combine with
// residual and norm) of Qwen3-30B-A3B.

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/asks.h"
#include "bench/contest.h"
#include "bench/inputs.h"
#include "switchyard/activate.h"
#include "switchyard/combine.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernels.h"
#include "switchyard/route.h"

namespace switchyard {
namespace bench {
namespace {

namespace MTL = device;

constexpr size_t kExperts = 128, kTopK = 8, kFfn = 768, kHidden = 2048;
constexpr float kEps = 1e-6f;

using Buffer = std::shared_ptr<MTL::Buffer>;
using Pipeline = std::shared_ptr<MTL::ComputePipelineState>;

// One queue for all, as in an engine.
struct Metal {
  std::shared_ptr<MTL::Device> device = MTL::CreateSystemDefaultDevice();
  std::shared_ptr<MTL::CommandQueue> queue = device->newCommandQueue();

  // Encodes, commits, waits; throws the error.
  template <class Encode>
  void Run(const Encode& encode) {
    const std::shared_ptr<MTL::CommandBuffer> buffer = queue->commandBuffer();
    const std::shared_ptr<MTL::ComputeCommandEncoder> encoder =
        buffer->computeCommandEncoder();
    encode(*encoder);
    encoder->endEncoding();
    buffer->commit();
    buffer->waitUntilCompleted();
    if (buffer->status() != MTL::CommandBufferStatusCompleted) {
      throw std::runtime_error(buffer->error());
    }
  }
};

Metal& metal() {
  static Metal instance;
  return instance;
}

// A dispatch of the buffers from index 0 on and, behind them, the params.
template <class Params>
void Encode(MTL::ComputeCommandEncoder& encoder, const Pipeline& pipeline,
            std::initializer_list<const Buffer*> buffers, const Params& params,
            const MTL::Size& grid, const MTL::Size& threads) {
  encoder.setComputePipelineState(pipeline);
  size_t index = 0;
  for (const Buffer* buffer : buffers) encoder.setBuffer(*buffer, 0, index++);
  encoder.setBytes(&params, sizeof(params), index);
  encoder.dispatchThreadgroups(grid, threads);
}

Contest MakeEmpty() {
  constexpr size_t kDispatches = 1000;
  const Pipeline pipeline = metal().device->newComputePipelineState(
      {"empty", [](const MTL::ThreadgroupContext&) {}});
  const auto buffer = [] { return metal().device->newBuffer(4096); };
  Contest contest;
  contest.unit = "dispatch";
  contest.units = kDispatches;
  AddRival(contest, Kind::kOurs, "device", {},
           [pipeline, a = buffer(), b = buffer(), c = buffer()](size_t) {
             metal().Run([&](MTL::ComputeCommandEncoder& encoder) {
               const int32_t params[3] = {1, 2, 3};
               for (size_t i = 0; i < kDispatches; ++i) {
                 Encode(encoder, pipeline, {&a, &b, &c}, params, {1, 1, 1},
                        {32, 1, 1});
               }
             });
           });
  return contest;
}

// One decode token, from buffers that both sides read and write.
struct Chain {
  Buffer logits = Floats(kExperts), ids = Floats(kTopK),
         weights = Floats(kTopK), gate = Floats(kTopK * kFfn),
         up = Floats(kTopK * kFfn), act = Floats(kTopK * kFfn),
         slots = Floats(kTopK * kHidden), residual = Floats(kHidden),
         norm_weight = Floats(kHidden), normed = Floats(kHidden);
  Pipeline route = Find("moe_router_topk_softmax_f32");
  Pipeline silu = Find("silu_mul_stacked_f32");
  Pipeline combine = Find("weighted_sum_residual_norm_stacked_f32");

  static Pipeline Find(const char* name) {
    return metal().device->newComputePipelineState(name);
  }
  static Buffer Floats(size_t count) {
    const Buffer buffer = metal().device->newBuffer(count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
      At(buffer)[i] = testing_support::Uniform(11, i, 1.0f);
    }
    return buffer;
  }
  static float* At(const Buffer& buffer) {
    return static_cast<float*>(buffer->contents());
  }

  // Through the plain API.
  Status Call() const {
    Status status =
        RouteTopK({{At(logits), 1, kExperts}},
                  {{static_cast<int32_t*>(ids->contents()), 1, kTopK},
                   {At(weights), 1, kTopK}});
    if (!status.ok()) return status;
    status = Activate({{At(gate), kTopK, kFfn}, {At(up), kTopK, kFfn}},
                      {{At(act), kTopK, kFfn}});
    if (!status.ok()) return status;
    return Combine({{At(slots), kTopK, kHidden},
                    {At(weights), 1, kTopK},
                    {},
                    {At(residual), 1, kHidden},
                    {At(norm_weight), 1, kHidden}},
                   {{At(residual), 1, kHidden}, {At(normed), 1, kHidden}},
                   {kEps});
  }

  void Encode(MTL::ComputeCommandEncoder& encoder) const {
    using bench::Encode;
    encoder.setThreadgroupMemoryLength(4 * (kExperts + 2 * kTopK + 1), 0);
    Encode(encoder, route, {&logits, &ids, &weights},
           MTL::MoeRouterTopkSoftmaxParams{kExperts, kTopK, 1}, {1, 1, 1},
           {32, 1, 1});
    Encode(encoder, silu, {&gate, &up, &act},
           MTL::SiluMulStackedParams{kFfn, kTopK}, {kFfn / 256, kTopK, 1},
           {256, 1, 1});
    Encode(encoder, combine,
           {&slots, &weights, &residual, &norm_weight, &normed},
           MTL::WeightedSumResidualNormStackedParams{kHidden, kTopK, kEps},
           {1, 1, 1}, {256, 1, 1});
  }

  void Run(size_t chains) const {
    metal().Run([&](MTL::ComputeCommandEncoder& encoder) {
      for (size_t i = 0; i < chains; ++i) Encode(encoder);
    });
  }

  // Empty if both ways give the same bytes.
  std::string Verify() const {
    const std::vector<float> before(At(residual), At(residual) + kHidden);
    Check(Call());
    std::vector<std::vector<char>> expected;
    for (const Buffer& out : {ids, weights, act, residual, normed}) {
      const char* bytes = static_cast<const char*>(out->contents());
      expected.emplace_back(bytes, bytes + out->length());
      if (out != residual) std::memset(out->contents(), 0xFF, out->length());
    }
    std::memcpy(At(residual), before.data(), residual->length());
    Run(1);
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
  contest.model = "Qwen3-30B-A3B, one token";
  contest.unit = "chain";
  contest.units = static_cast<double>(chains);
  contest.verify = [chain] { return chain->Verify(); };
  AddRival(contest, Kind::kOurs, "direct calls", {}, [=](size_t) {
    for (size_t i = 0; i < chains; ++i) Check(chain->Call());
  });
  AddRival(contest, Kind::kOurs, "device", {},
           [=](size_t) { chain->Run(chains); });
  // The scheduler takes a while to give the queue's thread a core of its own.
  using Clock = std::chrono::steady_clock;
  const Clock::time_point settled =
      Clock::now() + std::chrono::milliseconds(100);
  while (Clock::now() < settled) chain->Run(1);
  // A queue's thread that has been idle sleeps; asked for is one that is warm.
  for (Contender& contender : contest.contenders) {
    if (!idle && &contender != &contest.contenders.back()) continue;
    contender.timed.alone = idle || chains == 1;
    contender.timed.prepare = [=] {
      if (idle) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return;
      }
      for (int i = 0; i < 3; ++i) chain->Run(1);
    };
  }
  return contest;
}

const Registration registration(
    [] {
      Register("device", "empty", MakeEmpty);
      for (const size_t chains : {size_t{1}, size_t{100}}) {
        Register("device", "chains=" + std::to_string(chains),
                 [=] { return MakeChains(chains, false); });
      }
      Register("device", "chains=1, 1 ms idle",
               [] { return MakeChains(1, true); });
    },
    [](Table& table) {
      table.AtMost(60.0, table.Ns("device", "empty", "device"),
                   "device layer, 1000 empty dispatches, ns each");
      const auto above = [&](const char* shape) {
        return table.Ns("device", shape, "device") -
               table.Ns("device", shape, "direct calls");
      };
      table.AtMost(500.0, above("chains=100"),
                   "device layer, 100 chains in a buffer, ns each above direct "
                   "calls");
      table.AtMost(3000.0, above("chains=1"),
                   "device layer, one chain with commit and wait, ns above "
                   "direct calls");
    });

}  // namespace
}  // namespace bench
}  // namespace switchyard
