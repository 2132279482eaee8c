// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Metal's compute API over unified memory on Linux. It has the same calls in
// the same order, so that an engine's dispatch code for Apple ports line by
// line. Names are those of metal-cpp, and most metal-cpp code compiles
// unchanged with `namespace MTL = switchyard::device;`. A std::shared_ptr
// owns an object, or the caller does, as in metal-cpp (see foundation.h).
// Errors are texts.
//
// Kernels run on the CPU: the threads of the device's executor run the
// threadgroups. The built-in kernels (kernels.h) call the functions of the
// C++ API, such as RouteTopK(), and give the same bits. device/docs/metal.md
// has a table of the calls, and shows ported code beside the original.
//
// Misuse never throws and never crashes. The first mistake found while
// encoding keeps the whole command buffer from running. A mistake found while
// executing stops the buffer at that dispatch, before a built-in kernel has
// written anything. (If your kernel or the executor fails half-way, its
// writes remain.) In both cases the buffer completes with
// CommandBufferStatusError, error() names the kernel, the argument and the
// problem, and the queue goes on with the next buffer. Misuse after commit()
// (a second commit, ...) is reported in the same way, but the work is still
// done.
//
// Threads: as on Metal, only one thread at a time may use a command buffer
// and its encoders. Any thread may use all other objects at any time. A
// kernel must not wait: waitUntilCompleted() in a kernel is an error.

#ifndef SWITCHYARD_DEVICE_DEVICE_H_
#define SWITCHYARD_DEVICE_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "switchyard/device/buffer.h"
#include "switchyard/device/command_buffer.h"
#include "switchyard/device/command_encoder.h"
#include "switchyard/device/command_queue.h"
#include "switchyard/device/event.h"
#include "switchyard/device/foundation.h"
#include "switchyard/device/heap.h"
#include "switchyard/device/pipeline.h"
#include "switchyard/device/threadgroup.h"
#include "switchyard/executor.h"

namespace switchyard::device {

// library.h, which callers of newLibrary() include, defines these classes.
class CompileOptions;
class Function;
class Library;

// Options of CreateDevice().
struct DeviceOptions {
  // Runs the threadgroups of all queues of the device. Null means
  // MakeTbbExecutor(), or SerialExecutor() in a library without TBB.
  std::shared_ptr<Executor> executor;
  // Record when each dispatch starts and ends, for
  // CommandBuffer::dispatchTimes(). Recording takes about 50 ns per dispatch.
  bool time_dispatches = false;
  // Checked mode, for kernels made by MakeKernel() of kernel.h: every access
  // to memory is checked. Mistakes become CommandBuffer::findings(), and the
  // first one becomes the command buffer's error. A finding is an access that
  // is out of bounds, that reads memory which was never written, or that
  // races with another access. Dispatches of a concurrent encoder, built-in
  // ones included, that conflict without a barrier are findings too.
  //
  // Threadgroups run one after the other, and each takes up to 20 times as
  // long as without checks. newBuffer(length) is filled with a pattern
  // instead of zeros, so that reads of unwritten memory are found.
  // device/docs/metal.md lists the mistakes that are found, and those that
  // are missed.
  bool check_kernels = false;
  // If this is not 0, checked mode runs threadgroups and threads in an order
  // that it draws from this seed, and up to 8 threadgroups take turns at
  // barriers.
  uint64_t schedule_seed = 0;
  // In checked mode a command buffer stops after this number of findings; 0
  // means no limit. With 1, the first mistake stops the command buffer before
  // the wrong access happens.
  size_t max_findings = 20;
  // Findings that checked mode does not report; device/docs/metal.md has the
  // syntax. A malformed suppression is an error of every command buffer.
  std::vector<std::string> suppressions = {};
  // Fill newBuffer(length) with zeros in checked mode too, as on Metal.
  // Reading these zeros is then not a finding.
  bool zeroed_buffers = false;
  // Make CommandBuffer::neverWritten() available in checked mode. Checked
  // mode then reads every word of every output.
  bool track_never_written = false;
  // The Clang that compiles .metal files: the name of a program in PATH, or
  // the path of a file. Empty means clang++, or the newest clang++-N that is
  // installed.
  std::string metal_compiler = {};
  // The cache folder for compiled files. Empty means switchyard/ in
  // $XDG_CACHE_HOME or ~/.cache.
  std::string metal_cache = {};
  // The largest size of the cache folder in bytes; 0 means no limit. When a
  // file is added, the least recently used files are deleted until the rest
  // fits. Files that a process is using stay.
  uint64_t metal_cache_bytes = uint64_t{512} << 20;
  // How long a command buffer waits for an event before it fails.
  uint64_t event_timeout_ms = 60000;
};

// The GPU families that engines may query. The device supports the families
// up to the M2's, which have simd functions and bfloat, but no tensor
// operations.
enum GPUFamily : Integer {
  GPUFamilyApple1 = 1001,
  GPUFamilyApple2 = 1002,
  GPUFamilyApple3 = 1003,
  GPUFamilyApple4 = 1004,
  GPUFamilyApple5 = 1005,
  GPUFamilyApple6 = 1006,
  GPUFamilyApple7 = 1007,
  GPUFamilyApple8 = 1008,
  GPUFamilyApple9 = 1009,
  GPUFamilyMac1 = 2001,
  GPUFamilyMac2 = 2002,
  GPUFamilyCommon1 = 3001,
  GPUFamilyCommon2 = 3002,
  GPUFamilyCommon3 = 3003,
  GPUFamilyMetal3 = 5001,
  GPUFamilyMetal4 = 5002,
};

// Makes queues, buffers, heaps, events, libraries and pipelines.
// CreateDevice() returns a device.
class Device : public Referencing<Device> {
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
  // Returns the size of the machine's memory.
  uint64_t recommendedMaxWorkingSetSize() const noexcept;
  // Returns the total bytes of all buffers, except for buffers in the
  // caller's memory.
  size_t currentAllocatedSize() const noexcept;
  bool supportsFamily(GPUFamily family) const noexcept {
    return family <= GPUFamilyApple8 ||
           (family >= GPUFamilyMac1 && family <= GPUFamilyMetal3);
  }
  uint64_t registryID() const noexcept { return 1; }
  bool isLowPower() const noexcept { return false; }
  bool isHeadless() const noexcept { return true; }
  bool isRemovable() const noexcept { return false; }

  // Makes a page-aligned buffer of `length` bytes, filled with zeros (except
  // with DeviceOptions::check_kernels). Returns nullptr if length is 0 or
  // memory runs out.
  Ref<Buffer> newBuffer(size_t length, ResourceOptions options =
                                           ResourceStorageModeShared) noexcept;
  // Makes a buffer with a copy of `length` bytes from `pointer`. Returns
  // nullptr if pointer is null, length is 0 or memory runs out.
  Ref<Buffer> newBuffer(
      const void* pointer, size_t length,
      ResourceOptions options = ResourceStorageModeShared) noexcept;
  // Makes a buffer in memory that the caller owns. The caller must keep the
  // memory until `deallocator` has been called. The thread that drops the
  // last reference, which may be a queue's thread, calls `deallocator` once.
  // Without a deallocator, the caller keeps the memory until all work with
  // the buffer has completed.
  //
  // The memory needs no alignment or padding, while Metal needs whole pages.
  // If pointer is null or length is 0, returns nullptr and does not call the
  // deallocator. In metal-cpp, this function is the newBuffer() that takes a
  // deallocator.
  //
  // The function with a const pointer is for a mapped checkpoint: it is an
  // error to bind such a buffer where a kernel writes.
  Ref<Buffer> newBufferWithBytesNoCopy(
      void* pointer, size_t length,
      ResourceOptions options = ResourceStorageModeShared,
      Buffer::Deallocator deallocator = nullptr) noexcept;
  Ref<Buffer> newBufferWithBytesNoCopy(
      const void* pointer, size_t length,
      ResourceOptions options = ResourceStorageModeShared,
      Buffer::Deallocator deallocator = nullptr) noexcept;

  Ref<Buffer> newBuffer(void* pointer, size_t length, ResourceOptions options,
                        Buffer::Deallocator deallocator) noexcept {
    return newBufferWithBytesNoCopy(pointer, length, options,
                                    std::move(deallocator));
  }
  Ref<Buffer> newBuffer(const void* pointer, size_t length,
                        ResourceOptions options,
                        Buffer::Deallocator deallocator) noexcept {
    return newBufferWithBytesNoCopy(pointer, length, options,
                                    std::move(deallocator));
  }

  // Returns nullptr if the size is 0 or memory runs out.
  Ref<Heap> newHeap(host_internal::Arg<HeapDescriptor> descriptor) noexcept;
  SizeAndAlign heapBufferSizeAndAlign(size_t length,
                                      ResourceOptions options) const noexcept;
  // Returns nullptr if memory runs out.
  Ref<Event> newEvent() noexcept;
  Ref<SharedEvent> newSharedEvent() noexcept;
  Ref<Fence> newFence() noexcept;

  // Returns the built-in kernel of that name (kernels.h). If it does not
  // exist or memory runs out, returns nullptr and stores the reason in *error,
  // unless `error` is null.
  Ref<ComputePipelineState> newComputePipelineState(
      const char* name, host_internal::ErrorOut error = nullptr) noexcept;
  // Makes a pipeline of a kernel that you wrote in C++. Returns nullptr if it
  // has no name or no function.
  Ref<ComputePipelineState> newComputePipelineState(
      KernelFunction kernel, host_internal::ErrorOut error = nullptr) noexcept;

  // Compiles a .metal file (library.h), given as a text or as a file, with
  // Clang. The kernels are for devices with the same check_kernels. Compiling
  // takes seconds, or milliseconds if the same source was compiled before.
  //
  // Returns nullptr on failure. Unless `error` is null, *error then has
  // Clang's messages with the lines of the file ("program_source" for a
  // text), or the reason why Clang could not run.
  Ref<Library> newLibrary(host_internal::Text source,
                          host_internal::Settings<CompileOptions> options = {},
                          host_internal::ErrorOut error = nullptr) noexcept;
  Ref<Library> newLibraryFromFile(
      host_internal::Text path,
      host_internal::Settings<CompileOptions> options = {},
      host_internal::ErrorOut error = nullptr) noexcept;
  // metal-cpp's name for newLibraryFromFile(). `error` must be an Error**,
  // and not a null constant.
  template <class T, class = std::enable_if_t<std::is_same_v<T, Error>>>
  Ref<Library> newLibrary(host_internal::Text path, T** error) noexcept {
    return newLibraryFromFile(path, {}, error);
  }
  // Makes a pipeline of a kernel of a library. A device with the same
  // check_kernels must have made the library.
  Ref<ComputePipelineState> newComputePipelineState(
      host_internal::Arg<Function> function,
      host_internal::ErrorOut error = nullptr) noexcept;

  // Returns nullptr if memory or threads cannot be allocated.
  Ref<CommandQueue> newCommandQueue() noexcept;
  // Ignores its argument, because a queue takes any number of command
  // buffers.
  Ref<CommandQueue> newCommandQueue(UInteger) noexcept {
    return newCommandQueue();
  }

 private:
  friend Ref<Device> CreateDevice(const DeviceOptions&) noexcept;
  explicit Device(const DeviceOptions& options);
  std::shared_ptr<Buffer> Allocate(size_t length,
                                   ResourceOptions options) noexcept;
  std::shared_ptr<Buffer> WrapBuffer(void* pointer, size_t length,
                                     bool read_only,
                                     Buffer::Deallocator deallocator) noexcept;

  const DeviceOptions options_;
  // The total bytes of all buffers. The buffers share the counter, and
  // subtract their bytes when they are destroyed.
  const std::shared_ptr<std::atomic<size_t>> allocated_;
};

// Returns nullptr if memory runs out.
Ref<Device> CreateDevice(const DeviceOptions& options) noexcept;
// Calls CreateDevice() with default options. Each call makes a new device
// with new threads.
Ref<Device> CreateSystemDefaultDevice() noexcept;

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_DEVICE_H_
