// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes arbitrary sequences of calls of the device layer, from up to three
// threads on two queues, with checked mode on and off. Every committed buffer
// must complete, and an error must have a message. Every handler and every
// deallocator must run once. When CI replays the corpus under
// ThreadSanitizer, nothing may race.

#include <atomic>
#include <stdexcept>
#include <thread>

#include "fuzz/call.h"
#include "switchyard/activate.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"
#include "switchyard/device/kernels.h"

using namespace switchyard;          // NOLINT(build/namespaces)
using namespace switchyard::device;  // NOLINT(build/namespaces)
using namespace switchyard::fuzz;    // NOLINT(build/namespaces)

namespace {

constexpr size_t kQueues = 2;
constexpr size_t kBuffers = 4;

constexpr const char* kBuiltIns[] = {
    "moe_router_topk_softmax_f32",
    "moe_compute_ids_tpe_f32",
    "silu_mul_stacked_f32",
    "silu_mul_batched_f32",
    "weighted_sum_stacked_f32",
    "weighted_sum_residual_stacked_f32",
    "weighted_sum_batched_f32",
    "weighted_sum_residual_norm_stacked_f32",
    "weighted_sum_residual_norm_batched_f32",
    "moe_softmax_topk_f32",
    "moe_weighted_reduce_f32",
};

struct Shared {
  explicit Shared(Bytes& bytes) : executor(new PiecesExecutor(bytes)) {
    DeviceOptions options;
    options.executor = executor;
    options.check_kernels = bytes.Flag();
    options.time_dispatches = bytes.Flag();
    options.schedule_seed = bytes.Flag() ? 1u + bytes.Byte() : 0;
    checked = options.check_kernels;
    device = CreateDevice(options);
    for (auto& queue : queues) queue = device->newCommandQueue();
    for (size_t i = 0; i < kQueues * kBuffers; ++i) {
      const size_t length = 4 * (1 + bytes.Below(600));
      std::vector<uint32_t> words(length / 4, bytes.Byte() % 8u);
      if (i % kBuffers == 3) {
        auto* const own = new uint32_t[length / 4]();
        ++live;
        buffers.push_back(device->newBufferWithBytesNoCopy(
            static_cast<void*>(own), length, ResourceStorageModeShared,
            [this](void* pointer, size_t) {
              delete[] static_cast<uint32_t*>(pointer);
              --live;
            }));
      } else {
        buffers.push_back(device->newBuffer(words.data(), length));
      }
      FUZZ_CHECK(buffers.back() != nullptr, "no buffer");
    }
    for (const char* name : kBuiltIns) {
      pipelines.push_back(device->newComputePipelineState(name));
      FUZZ_CHECK(pipelines.back() != nullptr, name);
    }
    // The next two pipelines are users' kernels: one stays inside its
    // buffers, and the other fails.
    KernelFunction add;
    add.name = "add";
    add.threadgroup = [](const ThreadgroupContext& context) {
      for (uint32_t& word : context.buffer<uint32_t>(0)) ++word;
    };
    pipelines.push_back(device->newComputePipelineState(add));
    add.name = "fail";
    add.threadgroup = [](const ThreadgroupContext&) {
      throw std::runtime_error("as agreed");
    };
    pipelines.push_back(device->newComputePipelineState(add));
    // This kernel may race, or access memory outside of its buffers. It is
    // added only in checked mode, which detects both.
    if (checked) {
      const auto shift = [](auto& tg) {
        const auto x = buffer<uint32_t>(tg, 0);
        const auto y = buffer<uint32_t>(tg, 1);
        tg.for_each_thread([&](auto t) {
          const size_t i = t.thread_position_in_grid().width;
          const uint32_t value = x[i];
          y[i + 1] = value;
        });
      };
      pipelines.push_back(
          device->newComputePipelineState(MakeKernel("shift", shift)));
    }
  }

  const std::shared_ptr<Executor> executor;
  bool checked = false;
  std::shared_ptr<Device> device;
  std::shared_ptr<CommandQueue> queues[kQueues];
  std::vector<std::shared_ptr<Buffer>> buffers;  // kBuffers for each queue
  std::vector<std::shared_ptr<ComputePipelineState>> pipelines;
  std::atomic<int> live{0};
};

// The objects that one thread uses.
struct Work {
  std::shared_ptr<CommandBuffer> commands;
  std::shared_ptr<ComputeCommandEncoder> encoder;
  size_t queue = 0;
  // True if the encoder's pipeline is a user's kernel.
  bool own_kernel = false;
  bool enqueued = false, committed = false;
  std::shared_ptr<std::atomic<int>> handled =
      std::make_shared<std::atomic<int>>(0);
  int handlers = 0;
};

class Script {
 public:
  Script(Shared& shared, const uint8_t* data, size_t size)
      : shared_(shared), bytes_(data, size) {}

  void Run() {
    for (int steps = 0; !bytes_.empty() && steps < 400; ++steps) Step();
    Settle();
    for (Work& work : works_) Wait(work);
  }

 private:
  void Step() {
    Work& work = works_[bytes_.Below(std::size(works_))];
    const size_t op = bytes_.Below(12);
    if (op == 0 || work.commands == nullptr) return Begin(work);
    CommandBuffer& commands = *work.commands;
    switch (op) {
      case 1:
        work.encoder = commands.computeCommandEncoder(
            bytes_.Flag() ? DispatchTypeConcurrent : DispatchTypeSerial);
        return;
      case 2:
        return Commit(work);
      case 3:
        return Wait(work);
      case 4:
        if (!work.committed) work.enqueued = true;
        return commands.enqueue();
      case 5:
        return AddHandler(work);
      case 6:
        return Silu(work.queue);
      case 7:
        (void)commands.error();
        (void)commands.GPUEndTime();
        (void)commands.dispatchTimes();
        FUZZ_CHECK(commands.status() <= CommandBufferStatusError, "status");
        return;
      default:
        if (work.encoder != nullptr) Encode(work);
    }
  }
  void Begin(Work& work) {
    work = Work();
    work.queue = bytes_.Below(kQueues);
    work.commands = shared_.queues[work.queue]->commandBuffer();
    FUZZ_CHECK(work.commands != nullptr, "no command buffer");
    work.encoder = work.commands->computeCommandEncoder();
  }
  void Commit(Work& work) {
    if (bytes_.Below(8) != 1 && work.encoder != nullptr) {
      work.encoder->endEncoding();
    }
    work.encoder = nullptr;
    work.commands->commit();
    work.committed = true;
  }
  // Commits or drops all enqueued command buffers. Call this before a wait,
  // because other threads may wait for buffers that are later in the same
  // queue.
  void Settle() {
    for (Work& work : works_) {
      if (work.commands == nullptr || work.committed) continue;
      if (!work.enqueued) continue;
      if (bytes_.Flag()) {
        work = Work();
      } else {
        Commit(work);
      }
    }
  }
  void Wait(Work& work) {
    Settle();
    if (work.commands == nullptr) return;
    work.commands->waitUntilCompleted();
    if (!work.committed) return;
    const CommandBufferStatus status = work.commands->status();
    const std::string error = work.commands->error();
    FUZZ_CHECK(status == (error.empty() ? CommandBufferStatusCompleted
                                        : CommandBufferStatusError),
               error);
    FUZZ_CHECK(*work.handled == work.handlers, "handlers");
  }
  void AddHandler(Work& work) {
    const auto handled = work.handled;
    const bool waits = bytes_.Flag();
    if (!work.committed) ++work.handlers;
    work.commands->addCompletedHandler([handled, waits](CommandBuffer* done) {
      ++*handled;
      if (waits) done->waitUntilCompleted();
    });
  }

  size_t Index() {
    return bytes_.Below(8) == 7 ? bytes_.Byte() : bytes_.Below(7);
  }
  size_t Offset() { return 4 * bytes_.Below(24) + (bytes_.Below(16) == 15); }
  Size Grid() {
    return Size(bytes_.Below(5), bytes_.Below(8) == 7 ? 2 : 1,
                bytes_.Below(8) == 7 ? bytes_.Below(3) : 1);
  }
  Size PerGroup() {
    constexpr size_t kThreads[] = {256, 32, 1, 8, 0, 1024, 1025};
    return Size(kThreads[bytes_.Below(std::size(kThreads))], 1, 1);
  }
  std::shared_ptr<Buffer> AnyBuffer(const Work& work) {
    const size_t which = bytes_.Below(kBuffers + 1);
    if (which == kBuffers) return nullptr;
    return shared_.buffers[work.queue * kBuffers + which];
  }
  void Encode(Work& work) {
    ComputeCommandEncoder& e = *work.encoder;
    switch (bytes_.Below(11)) {
      case 0: {
        const size_t which = bytes_.Below(shared_.pipelines.size());
        work.own_kernel = which >= std::size(kBuiltIns);
        return e.setComputePipelineState(shared_.pipelines[which]);
      }
      case 1: {
        const auto buffer = AnyBuffer(work);
        const size_t offset = Offset();
        return e.setBuffer(buffer, offset, Index());
      }
      case 2: {
        int32_t params[8];
        for (int32_t& p : params) {
          p = bytes_.Byte() % 16;
          if (p == 15) p = static_cast<int32_t>(bytes_.Word());
        }
        const size_t length = bytes_.Below(8) == 7 ? bytes_.Below(33) : 32;
        return e.setBytes(params, length, Index());
      }
      case 3: {
        const Size grid = Grid();
        return e.dispatchThreadgroups(grid, PerGroup());
      }
      case 4: {
        // The words in a buffer may describe a grid so large that it takes
        // years. Built-in kernels limit the grid to their shapes, but users'
        // kernels do not.
        if (work.own_kernel) return;
        const auto buffer = AnyBuffer(work);
        const size_t offset = Offset();
        return e.dispatchThreadgroups(buffer, offset, PerGroup());
      }
      case 5: {
        const Size threads(bytes_.Below(600), bytes_.Below(3), 1);
        return e.dispatchThreads(threads, PerGroup());
      }
      case 6:
        return e.memoryBarrier(BarrierScopeBuffers);
      case 7: {
        const auto buffer = AnyBuffer(work);
        return e.memoryBarrier(&buffer, 1);
      }
      case 8: {
        const size_t offset = Offset();
        return e.setBufferOffset(offset, Index());
      }
      case 9: {
        const size_t length = bytes_.Byte() * 256u;
        return e.setThreadgroupMemoryLength(length, Index());
      }
      default:
        return e.endEncoding();
    }
  }

  // Encodes a valid dispatch between arbitrary ones. The dispatch must give
  // the same results as the plain API.
  void Silu(size_t queue) {
    Settle();
    const SiluMulStackedParams params = {
        static_cast<int32_t>(1 + bytes_.Below(300)), 2};
    const size_t cols = static_cast<size_t>(params.ffn);
    const std::vector<float> gate = bytes_.Floats(2 * cols);
    const std::vector<float> up = bytes_.Floats(2 * cols);
    std::vector<float> out(2 * cols);
    Device& device = *shared_.device;
    const size_t length = out.size() * sizeof(float);
    const auto g = device.newBuffer(gate.data(), length);
    const auto u = device.newBuffer(up.data(), length);
    const auto o = device.newBuffer(length);
    const auto commands = shared_.queues[queue]->commandBuffer();
    const auto e = commands->computeCommandEncoder();
    e->setComputePipelineState(shared_.pipelines[2]);
    e->setBuffer(g, 0, 0);
    e->setBuffer(u, 0, 1);
    e->setBuffer(o, 0, 2);
    e->setBytes(&params, sizeof(params), 3);
    e->dispatchThreadgroups(Size((cols + 255) / 256, 2, 1), Size(256, 1, 1));
    e->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    FUZZ_CHECK(commands->status() == CommandBufferStatusCompleted,
               commands->error());
    const Status status =
        Activate({{gate.data(), 2, cols}, {up.data(), 2, cols}},
                 {{out.data(), 2, cols}});
    FUZZ_CHECK(
        status.ok() && std::memcmp(out.data(), o->contents(), length) == 0,
        "not what Activate gives");
  }

  Shared& shared_;
  Bytes bytes_;
  Work works_[3];
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, std::min<size_t>(size, 32));
  const size_t num_threads = 1 + bytes.Below(3);
  Shared shared(bytes);
  const uint8_t* const script = data + std::min<size_t>(size, 32);
  const size_t length = size - std::min<size_t>(size, 32);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < num_threads; ++i) {
    const size_t begin = length * i / num_threads;
    const size_t end = length * (i + 1) / num_threads;
    threads.emplace_back([&shared, script, begin, end] {
      Script(shared, script + begin, end - begin).Run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  shared.buffers.clear();
  for (auto& queue : shared.queues) queue.reset();
  FUZZ_CHECK(shared.live == 0, "a deallocator did not come");
  return 0;
}
