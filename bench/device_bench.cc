// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What the device layer costs above the plain API's calls: dispatches that do
// nothing, and the chain of one decode token (route, activate, combine with
// residual and norm) of Qwen3-30B-A3B. Then a user's own kernels, thread by
// thread: what checked mode costs, one thread against one thread.

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/contest.h"
#include "bench/inputs.h"
#include "switchyard/activate.h"
#include "switchyard/combine.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"
#include "switchyard/device/kernels.h"
#include "switchyard/route.h"

namespace switchyard::bench {
namespace {

namespace MTL = device;

constexpr size_t kExperts = 128, kTopK = 8, kFfn = 768, kHidden = 2048;
constexpr float kEps = 1e-6f;

using Buffer = std::shared_ptr<MTL::Buffer>;
using Pipeline = std::shared_ptr<MTL::ComputePipelineState>;
using Encoder = MTL::ComputeCommandEncoder;

float* At(const Buffer& buffer) {
  return static_cast<float*>(buffer->contents());
}

// A device with a queue.
struct Metal {
  std::shared_ptr<MTL::Device> device;
  std::shared_ptr<MTL::CommandQueue> queue = device->newCommandQueue();

  Buffer Floats(size_t count, uint32_t stream) const {
    const Buffer made = device->newBuffer(count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
      At(made)[i] = testing_support::Uniform(stream, i, 1.0f);
    }
    return made;
  }
  // Encodes, commits, waits; throws the error.
  template <class Encode>
  void Run(const Encode& encode) const {
    const auto commands = queue->commandBuffer();
    const auto encoder = commands->computeCommandEncoder();
    encode(*encoder);
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    if (commands->status() != MTL::CommandBufferStatusCompleted) {
      throw std::runtime_error(commands->error());
    }
  }
};

// One queue for all, as in an engine.
const Metal& metal() {
  static const Metal instance = {MTL::CreateSystemDefaultDevice()};
  return instance;
}

// A dispatch of the buffers from index 0 on and, behind them, the params.
template <class Params>
void Encode(Encoder& encoder, const Pipeline& pipeline,
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
             metal().Run([&](Encoder& encoder) {
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
  static Buffer Floats(size_t count) { return metal().Floats(count, 11); }

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
                    RowIndex::kTokenOrder,
                    {At(residual), 1, kHidden},
                    {At(norm_weight), 1, kHidden}},
                   {{At(residual), 1, kHidden}, {At(normed), 1, kHidden}},
                   {kEps});
  }

  void Encode(Encoder& encoder) const {
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
    metal().Run([&](Encoder& encoder) {
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

using device::buffer;
using device::params;
using device::threadgroup_array;

// out[i] = 2.5 x[i] + out[i], an element per thread.
struct Streaming {
  static constexpr const char* kName = "streaming";
  static constexpr uint32_t kColumns = 1 << 18;
  static constexpr size_t kIn = kColumns, kOut = kColumns,
                          kThreadgroups = kColumns / 256;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto n = params<uint32_t>(tg, 3);
    const auto x = buffer<const float>(tg, 0);
    const auto out = buffer<float>(tg, 2);
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_position_in_grid().width;
      if (i >= n) return;
      out[i] = 2.5f * x[i] + out[i];
    });
  }
};

// A weighted sum of 8 rows, a column per thread.
struct Weighted {
  static constexpr const char* kName = "weighted sum, k=8";
  static constexpr uint32_t kColumns = 2048;
  static constexpr size_t kIn = 8 * kColumns, kOut = kColumns,
                          kThreadgroups = kColumns / 256;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto n = params<uint32_t>(tg, 3);
    const auto x = buffer<const float>(tg, 0);
    const auto weights = buffer<const float>(tg, 1);
    const auto out = buffer<float>(tg, 2);
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_position_in_grid().width;
      if (i >= n) return;
      float sum = 0.0f;
      for (size_t s = 0; s < 8; ++s) sum += weights[s] * x[s * n + i];
      out[i] = sum;
    });
  }
};

// Sums of squares of 64 rows, a threadgroup each.
struct Reduction {
  static constexpr const char* kName = "row reduction";
  static constexpr uint32_t kColumns = 2048;
  static constexpr size_t kIn = 64 * kColumns, kOut = 64, kThreadgroups = 64;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto n = params<uint32_t>(tg, 3);
    const size_t row = tg.threadgroup_position_in_grid.width;
    const auto x = buffer<const float>(tg, 0) + row * n;
    const auto out = buffer<float>(tg, 2);
    const auto part = threadgroup_array<float, 8>(tg);
    auto sum = tg.per_thread(0.0f);
    tg.for_each_thread([&](auto t) {
      for (size_t i = t.thread_index_in_threadgroup; i < n; i += 256) {
        sum[t] += x[i] * x[i];
      }
    });
    const auto total = simd_sum(sum);
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_simdgroup != 0) return;
      part[t.simdgroup_index_in_threadgroup] = total[t];
    });
    tg.threadgroup_barrier();
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_threadgroup != 0) return;
      float all = 0.0f;
      for (size_t s = 0; s < 8; ++s) all += part[s];
      out[row] = all;
    });
  }
};

template <class Kernel>
void RegisterKernel() {
  Register("kernel", Kernel::kName, [] {
    Contest contest;
    contest.unit = "element";
    contest.units = static_cast<double>(Kernel::kIn);
    for (const bool checked : {false, true}) {
      MTL::DeviceOptions options;
      options.executor =
          std::shared_ptr<Executor>(&SerialExecutor(), [](Executor*) {});
      options.check_kernels = checked;
      const Metal serial = {MTL::CreateDevice(options)};
      AddRival(contest, Kind::kOurs, checked ? "checked" : "unchecked", {},
               [serial, x = serial.Floats(Kernel::kIn, 13),
                weights = serial.Floats(8, 13),
                out = serial.Floats(Kernel::kOut, 13),
                pipeline = serial.device->newComputePipelineState(
                    MTL::MakeKernel(Kernel::kName, Kernel{}))](size_t) {
                 serial.Run([&](Encoder& encoder) {
                   Encode(encoder, pipeline, {&x, &weights, &out},
                          Kernel::kColumns, {Kernel::kThreadgroups, 1, 1},
                          {256, 1, 1});
                 });
               });
    }
    return contest;
  });
}

template <class Kernel>
void AskKernel(Table& table) {
  table.AtMost(
      20.0,
      table.Ns("kernel", Kernel::kName, "checked") /
          table.Ns("kernel", Kernel::kName, "unchecked"),
      std::string("checked mode, ") + Kernel::kName + ", times unchecked");
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
      RegisterKernel<Streaming>();
      RegisterKernel<Weighted>();
      RegisterKernel<Reduction>();
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
      AskKernel<Streaming>(table);
      AskKernel<Weighted>(table);
      AskKernel<Reduction>(table);
    });

}  // namespace
}  // namespace switchyard::bench
