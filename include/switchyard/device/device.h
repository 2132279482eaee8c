// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Metal's compute API over unified memory on Linux: the same calls in the same
// order, so that an engine's Apple dispatch code ports line by line. The
// spelling is metal-cpp's (`namespace MTL = switchyard::device;` compiles most
// of it as it stands); ownership is std::shared_ptr, errors are text.
//
// Kernels run on the CPU, threadgroup by threadgroup over the device's
// executor. The built-in ones (kernels.h) call the plain API, so their results
// are its results, bit for bit. docs/metal.md has the table of calls and a port
// side by side.
//
// Misuse never throws and never crashes. The first mistake found while encoding
// keeps the whole command buffer from running; one found while executing stops
// the buffer at that dispatch, before a built-in kernel has written anything.
// (Where a kernel of your own or the executor fails half-way, what it wrote
// stays.) Either way the buffer completes with CommandBufferStatusError,
// error() says what was wrong with which argument of which kernel, and the
// queue goes on with the next buffer. Misuse after commit() (a second commit,
// ...) is reported in the same way, without keeping the work from being done.
//
// Threads: one thread at a time per command buffer and its encoders, as on
// Metal; everything else may be used from any thread at any time. But a kernel
// never waits: waitUntilCompleted() in one is an error.

#ifndef SWITCHYARD_DEVICE_DEVICE_H_
#define SWITCHYARD_DEVICE_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "switchyard/device/threadgroup.h"
#include "switchyard/executor.h"

namespace switchyard::device {

// `length` indices from `location` on.
struct Range {
  size_t location = 0;
  size_t length = 0;

  constexpr Range() noexcept = default;
  constexpr Range(size_t loc, size_t len) noexcept
      : location(loc), length(len) {}
  static constexpr Range Make(size_t loc, size_t len) noexcept {
    return Range(loc, len);
  }
};

// The only storage mode: host and kernels see the same bytes.
enum ResourceOptions : uint32_t { ResourceStorageModeShared = 0 };

enum BarrierScope : uint32_t { BarrierScopeBuffers = 1 };

// Dispatches run in the order they were encoded in either type, each spread
// over the executor; a concurrent encoder only promises that they could
// overlap between barriers.
enum DispatchType : uint32_t { DispatchTypeSerial, DispatchTypeConcurrent };

enum CommandBufferStatus : uint32_t {
  CommandBufferStatusNotEnqueued = 0,
  CommandBufferStatusEnqueued = 1,
  CommandBufferStatusCommitted = 2,
  CommandBufferStatusScheduled = 3,  // running
  CommandBufferStatusCompleted = 4,
  CommandBufferStatusError = 5,
};

// Apple GPUs' limits.
constexpr size_t kMaxThreadsPerThreadgroup = 1024;
constexpr size_t kMaxThreadgroupMemoryLength = 32768;
constexpr size_t kThreadExecutionWidth = 32;
constexpr size_t kMaxBufferBindings = 31;
constexpr size_t kMaxThreadgroupMemoryBindings = 31;
constexpr size_t kMaxSetBytesLength = 4096;

class Device;
class CommandQueue;
class CommandBuffer;
struct Pipeline;  // src/device
class Queue;      // src/device

// Memory that kernels and the host share. Kept alive by every command buffer it
// is bound in until that has run (its handlers come later).
class Buffer {
 public:
  using Deallocator = std::function<void(void* pointer, size_t length)>;

  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Valid at once and for the buffer's life. As on Metal, the host leaves alone
  // what committed work uses until that has completed.
  void* contents() const noexcept { return contents_; }
  size_t length() const noexcept { return length_; }

 private:
  friend class Device;
  friend class ComputeCommandEncoder;
  Buffer(void* contents, size_t length, bool read_only) noexcept;

  void* const contents_;
  const size_t length_;
  const bool read_only_;
  bool fresh_ = false;  // what was never written can be told, in checked mode
  Deallocator deallocator_;
  // The command buffer that retained this one last: a copy of a shared_ptr per
  // command buffer rather than per dispatch.
  mutable std::atomic<uint64_t> retained_by_{0};
};

// A kernel, ready to be dispatched.
class ComputePipelineState {
 public:
  ~ComputePipelineState();

  const std::string& label() const noexcept;  // the kernel's name
  size_t maxTotalThreadsPerThreadgroup() const noexcept {
    return kMaxThreadsPerThreadgroup;
  }
  size_t threadExecutionWidth() const noexcept { return kThreadExecutionWidth; }

 private:
  friend class Device;
  friend class ComputeCommandEncoder;
  explicit ComputePipelineState(std::unique_ptr<const Pipeline> pipeline);

  const std::unique_ptr<const Pipeline> pipeline_;
  mutable std::atomic<uint64_t> retained_by_{0};
};

struct DeviceOptions {
  // Runs the threadgroups. Null: MakeTbbExecutor(), or SerialExecutor() in a
  // library without TBB. Shared by all queues of the device.
  std::shared_ptr<Executor> executor;
  // Record when each dispatch started and ended (about 50 ns a dispatch):
  // CommandBuffer::dispatchTimes().
  bool time_dispatches = false;
  // Checked mode, for kernels made by MakeKernel() of kernel.h: every access to
  // memory is looked at, and the first that is out of bounds, reads what was
  // never written or races with another becomes the command buffer's error, as
  // do dispatches of a concurrent encoder that conflict without a barrier,
  // built-in ones included. Threadgroups run one after the other, up to 20
  // times slower each. newBuffer(length) gives no zeros but a pattern by which
  // reads of it are found. docs/kernels.md has what is found and what is not.
  bool check_kernels = false;
  // Not 0, and with check_kernels: threadgroups and threads run in an order
  // drawn from this seed, and up to 8 threadgroups take turns at barriers.
  uint64_t schedule_seed = 0;
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  ~Device();

  const char* name() const noexcept { return "Switchyard"; }
  bool hasUnifiedMemory() const noexcept { return true; }
  Size maxThreadsPerThreadgroup() const noexcept {
    return Size(kMaxThreadsPerThreadgroup, kMaxThreadsPerThreadgroup,
                kMaxThreadsPerThreadgroup);
  }
  size_t maxThreadgroupMemoryLength() const noexcept {
    return kMaxThreadgroupMemoryLength;
  }
  size_t maxBufferLength() const noexcept { return PTRDIFF_MAX; }

  // `length` bytes of zeros (but see DeviceOptions::check_kernels),
  // page-aligned. nullptr if length is 0 or memory is out.
  std::shared_ptr<Buffer> newBuffer(
      size_t length,
      ResourceOptions options = ResourceStorageModeShared) noexcept;
  // A copy of `length` bytes from `pointer`. nullptr as above, or if pointer
  // is.
  std::shared_ptr<Buffer> newBuffer(
      const void* pointer, size_t length,
      ResourceOptions options = ResourceStorageModeShared) noexcept;
  // Memory that the caller owns and keeps until `deallocator` has been called,
  // once, from the thread that drops the last reference (a queue's thread, it
  // may be); without one, until all work with the buffer has completed. No
  // alignment or padding is asked, unlike on Metal (page-aligned, whole pages).
  // nullptr, and no deallocator call, if pointer is null or length 0.
  // The const form, for a mapped checkpoint: binding it where a kernel writes
  // is an error.
  std::shared_ptr<Buffer> newBufferWithBytesNoCopy(
      void* pointer, size_t length,
      ResourceOptions options = ResourceStorageModeShared,
      Buffer::Deallocator deallocator = nullptr) noexcept;
  std::shared_ptr<Buffer> newBufferWithBytesNoCopy(
      const void* pointer, size_t length,
      ResourceOptions options = ResourceStorageModeShared,
      Buffer::Deallocator deallocator = nullptr) noexcept;

  // The built-in kernel of that name (kernels.h). nullptr if there is none or
  // memory is out, and why in *error unless that is null.
  std::shared_ptr<ComputePipelineState> newComputePipelineState(
      const char* name, std::string* error = nullptr) noexcept;
  // A kernel of your own. nullptr if it has no name or no function.
  std::shared_ptr<ComputePipelineState> newComputePipelineState(
      KernelFunction kernel, std::string* error = nullptr) noexcept;

  // nullptr if there is no memory or no thread left.
  std::shared_ptr<CommandQueue> newCommandQueue() noexcept;

 private:
  friend std::shared_ptr<Device> CreateDevice(const DeviceOptions&) noexcept;
  explicit Device(const DeviceOptions& options);
  std::shared_ptr<Buffer> Allocate(size_t length,
                                   ResourceOptions options) noexcept;
  std::shared_ptr<Buffer> WrapBuffer(void* pointer, size_t length,
                                     bool read_only,
                                     Buffer::Deallocator deallocator) noexcept;

  const DeviceOptions options_;
};

// nullptr if memory is out.
std::shared_ptr<Device> CreateDevice(const DeviceOptions& options) noexcept;
// CreateDevice with default options: a device, and a pool, of its own.
std::shared_ptr<Device> CreateSystemDefaultDevice() noexcept;

// Runs command buffers one after the other, in the order in which they were
// enqueued (or else committed), on a thread of its own or on a thread that
// waits for them. Several queues run at the same time.
//
// Queue and device live on while one of their command buffers does. Dropping
// the last reference to a queue and its command buffers waits for what was
// committed, but never inside the work of this queue or another (kernels,
// handlers, deallocators that it calls), where two queues could wait for each
// other: there it returns at once, what was committed still runs, and the
// queue's thread ends by itself. exit() waits for such threads, unless work
// calls it.
//
// Work runs in the default floating-point environment (threadgroup.h), handlers
// and deallocators in that of the thread they are called on: one that waits, or
// the queue's, which has that of the thread which made the queue.
class CommandQueue : public std::enable_shared_from_this<CommandQueue> {
 public:
  ~CommandQueue();

  const std::shared_ptr<Device>& device() const noexcept { return device_; }
  // nullptr if memory is out.
  std::shared_ptr<CommandBuffer> commandBuffer() noexcept;

 private:
  friend class Device;
  CommandQueue(std::shared_ptr<Device> device, std::shared_ptr<Queue> queue);

  const std::shared_ptr<Device> device_;
  const std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

// When a dispatch ran, in seconds of std::chrono::steady_clock.
struct DispatchTime {
  std::string kernel;
  Size threadgroups;  // an indirect dispatch's as it was read
  double start;
  double end;
};

class ComputeCommandEncoder;

class CommandBuffer {
 public:
  using CompletedHandler = std::function<void(CommandBuffer* buffer)>;

  ~CommandBuffer();

  // One encoder at a time: end it before the next, and before commit().
  // nullptr if memory is out.
  std::shared_ptr<ComputeCommandEncoder> computeCommandEncoder(
      DispatchType type = DispatchTypeSerial) noexcept;

  // Takes the next place in the queue, for work still being encoded. The queue
  // waits for it to be committed, or dropped. Once only, and before commit().
  void enqueue() noexcept;
  // Hands the work to the queue and returns. Its encoders have to be ended:
  // one that was dropped without endEncoding() makes this an error.
  void commit() noexcept;
  // Returns when the work is done and the handlers have returned. What the
  // queue has not started yet, this buffer and earlier ones with their
  // handlers, may run on this thread. Before commit() it returns at once, and
  // that is an error which keeps the work from running. In a handler of this
  // buffer it returns at once; later buffers may be waited for there, and those
  // of other queues whose handlers do not wait for this one's.
  void waitUntilCompleted() noexcept;
  // Called after the work, in the order added, before waitUntilCompleted
  // returns; must be added before commit(). A handler that throws makes the
  // buffer an error.
  void addCompletedHandler(CompletedHandler handler) noexcept;

  // Completed turns into Error on misuse after the work, a second commit() say.
  CommandBufferStatus status() const noexcept;
  // "kernel: argument: what is wrong", empty without an error. Known before
  // commit() for mistakes in the encoding.
  std::string error() const;
  // When the work started and ended, in seconds of std::chrono::steady_clock;
  // both 0 until it has ended.
  double GPUStartTime() const noexcept;
  double GPUEndTime() const noexcept;
  // One per dispatch that ran, in order, once the buffer has completed; empty
  // without DeviceOptions::time_dispatches.
  std::vector<DispatchTime> dispatchTimes() const;

 private:
  friend class CommandQueue;
  friend class ComputeCommandEncoder;
  friend class Queue;
  struct State;
  // What a user's references share: this, and the queue kept alive.
  struct Handle;
  explicit CommandBuffer(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

// Encodes dispatches into a command buffer. Bindings stay from dispatch to
// dispatch; setBytes copies at once; a buffer's contents are read when the
// dispatch executes.
class ComputeCommandEncoder {
 public:
  ~ComputeCommandEncoder();
  ComputeCommandEncoder(const ComputeCommandEncoder&) = delete;
  ComputeCommandEncoder& operator=(const ComputeCommandEncoder&) = delete;

  void setComputePipelineState(
      const std::shared_ptr<ComputePipelineState>& pipeline) noexcept;
  // A null buffer unbinds. offset in bytes, less than the buffer's length.
  void setBuffer(const std::shared_ptr<Buffer>& buffer, size_t offset,
                 size_t index) noexcept;
  // Moves the binding of setBuffer.
  void setBufferOffset(size_t offset, size_t index) noexcept;
  // range.length buffers and offsets, for the indices of the range.
  void setBuffers(const std::shared_ptr<Buffer> buffers[],
                  const size_t offsets[], Range range) noexcept;
  // At most 4096 bytes.
  void setBytes(const void* bytes, size_t length, size_t index) noexcept;
  // In bytes, any length; all of them together at most 32768. Built-in kernels
  // need none and take what is set.
  void setThreadgroupMemoryLength(size_t length, size_t index) noexcept;

  // A grid of zero threadgroups does nothing.
  void dispatchThreadgroups(Size threadgroups_per_grid,
                            Size threads_per_threadgroup) noexcept;
  // Three uint32 from `offset` (bytes, a multiple of 4), read when the dispatch
  // executes: an earlier one may write them.
  void dispatchThreadgroups(const std::shared_ptr<Buffer>& indirect_buffer,
                            size_t offset,
                            Size threads_per_threadgroup) noexcept;
  // As many threadgroups as cover the threads; those at the edge may be short.
  void dispatchThreads(Size threads_per_grid,
                       Size threads_per_threadgroup) noexcept;

  // Orders dispatches of a concurrent encoder. They run in order here; checked
  // mode tells where one of these is missing.
  void memoryBarrier(BarrierScope scope) noexcept;
  void memoryBarrier(const std::shared_ptr<Buffer> resources[],
                     size_t count) noexcept;

  DispatchType dispatchType() const noexcept;
  void endEncoding() noexcept;

 private:
  friend class CommandBuffer;
  struct State;
  ComputeCommandEncoder(std::shared_ptr<CommandBuffer> buffer,
                        DispatchType type);

  const std::unique_ptr<State> state_;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_DEVICE_H_
