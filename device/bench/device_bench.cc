// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares the device layer with direct calls of the plain API: for empty
// dispatches, and for the chain of one decode token (route, activate, combine
// with residual and norm) of Qwen3-30B-A3B.
//
// Then measures users' kernels, as ports to kernel.h and as .metal text. The
// results show the cost of checked mode, and how much slower the text is than
// its port. Each side uses one thread.

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/bench.h"
#include "bench/inputs.h"
#include "device/bench/device_kernels.h"
#include "switchyard/activate.h"
#include "switchyard/combine.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"
#include "switchyard/device/kernels.h"
#include "switchyard/device/library.h"
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

// A device and its queue.
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
  // Encodes, commits and waits. Throws the command buffer's error, if any.
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

// All contenders share one queue, as the parts of an engine do.
const Metal& metal() {
  static const Metal instance = {MTL::CreateSystemDefaultDevice()};
  return instance;
}

// Encodes a dispatch: binds the buffers from index 0 on, and the params at
// the next index.
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

// The base of cases that verify results themselves: the benchmark does not
// compare the results of their contenders.
struct Unchecked {
  std::vector<Output> Wanted() { return {}; }
};

struct Empty : Unchecked {
  static constexpr size_t kDispatches = 1000;
  Pipeline pipeline = metal().device->newComputePipelineState(
      {"empty", [](const MTL::ThreadgroupContext&) {}});
  Buffer a = metal().device->newBuffer(4096),
         b = metal().device->newBuffer(4096),
         c = metal().device->newBuffer(4096);

  void Run() const {
    metal().Run([&](Encoder& encoder) {
      const int32_t params[3] = {1, 2, 3};
      for (size_t i = 0; i < kDispatches; ++i) {
        Encode(encoder, pipeline, {&a, &b, &c}, params, {1, 1, 1}, {32, 1, 1});
      }
    });
  }
};

void AddEmpty() {
  Case<Empty> contest({"device/empty", "", "dispatch", Empty::kDispatches},
                      [] { return std::make_unique<Empty>(); });
  contest.Add({"device"}, [](Empty& d) { return [&d](size_t) { d.Run(); }; })
      ->UseRealTime();
}

// The buffers and kernels of one decode token: router, activation and
// combine, one after the other. Both contenders use the same buffers.
struct Chain : Unchecked {
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

  // Calls the plain API.
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

  // Throws if the two contenders give different bytes.
  void Verify() const {
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
        throw std::runtime_error("other results than the plain API's");
      }
    }
  }
};

// Compares `chains` chains in one command buffer with as many direct calls.
// With `idle`, each measurement follows an idle millisecond; otherwise it
// follows the previous one at once.
void AddChains(size_t chains, bool idle) {
  Case<Chain> contest(
      {"device/chains=" + std::to_string(chains) + (idle ? "_idle" : ""),
       "Qwen3-30B-A3B, one token", "chain", static_cast<double>(chains)},
      [] { return std::make_unique<Chain>(); });
  Contender direct = {"direct"}, device = {"device"};
  direct.idle = device.idle = idle;
  contest.Add(direct, [chains](Chain& chain) {
    return [&chain, chains](size_t) {
      for (size_t i = 0; i < chains; ++i) Check(chain.Call());
    };
  });
  benchmark::internal::Benchmark* const queued =
      contest.Add(device, [chains](Chain& chain) {
        chain.Verify();
        // The scheduler needs some time to give the queue's thread a core.
        using Clock = std::chrono::steady_clock;
        const Clock::time_point settled =
            Clock::now() + std::chrono::milliseconds(100);
        while (Clock::now() < settled) chain.Run(1);
        return [&chain, chains](size_t) { chain.Run(chains); };
      });
  if (!idle) queued->UseRealTime();
}

template <class Kernel>
struct Custom : Unchecked {
  // The device uses one thread, so that one thread is compared with one
  // thread.
  static Metal Make(bool checked) {
    MTL::DeviceOptions options;
    options.executor =
        std::shared_ptr<Executor>(&SerialExecutor(), [](Executor*) {});
    options.check_kernels = checked;
    return {MTL::CreateDevice(options)};
  }
  Custom(bool checked, bool text) : serial(Make(checked)) {
    if (!text) {
      pipeline = serial.device->newComputePipelineState(
          MTL::MakeKernel(Kernel::kName, Kernel{}));
      return;
    }
    std::string error;
    const auto library = serial.device->newLibrary(
        (std::string("#include <metal_stdlib>\nusing namespace metal;\n") +
         Kernel::kText)
            .c_str(),
        {}, &error);
    if (library == nullptr) throw std::runtime_error(error);
    pipeline = serial.device->newComputePipelineState(
        library->newFunction(Kernel::kName, &error), &error);
    if (pipeline == nullptr) throw std::runtime_error(error);
  }

  void Run() const {
    serial.Run([&](Encoder& encoder) {
      Encode(encoder, pipeline, {&x, &weights, &out}, Kernel::kColumns,
             {Kernel::kThreadgroups, 1, 1}, {256, 1, 1});
    });
  }

  Metal serial;
  Buffer x = serial.Floats(Kernel::kIn, 13), weights = serial.Floats(8, 13),
         out = serial.Floats(Kernel::kOut, 13);
  Pipeline pipeline;
};

// True if this machine has a Clang that compiles .metal texts.
bool CompilesTexts() {
  return MTL::CreateSystemDefaultDevice()->newLibrary("") != nullptr;
}

template <class Kernel>
void AddKernel(bool texts) {
  struct Named {
    const char* name;
    bool checked, text;
  };
  for (const Named& named :
       {Named{"unchecked", false, false}, Named{"checked", true, false},
        Named{"metal", false, true}, Named{"metal_checked", true, true}}) {
    if (named.text && !texts) continue;
    Case<Custom<Kernel>> contest({std::string("kernel/") + Kernel::kName, "",
                                  "element", static_cast<double>(Kernel::kIn)},
                                 [named] {
                                   return std::make_unique<Custom<Kernel>>(
                                       named.checked, named.text);
                                 });
    contest
        .Add({named.name},
             [](Custom<Kernel>& d) { return [&d](size_t) { d.Run(); }; })
        ->UseRealTime();
  }
}

const Registration registration([] {
  AddEmpty();
  AddChains(1, false);
  AddChains(100, false);
  AddChains(1, true);
  const bool texts = CompilesTexts();
  AddKernel<Streaming>(texts);
  AddKernel<Weighted>(texts);
  AddKernel<Reduction>(texts);
});

}  // namespace
}  // namespace switchyard::bench
