// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Metal's compute API over unified memory on Linux: the same calls in the
// same order, so that an engine's Apple dispatch code ports line by line. The
// spelling is metal-cpp's (most metal-cpp code compiles unchanged with
// `namespace MTL = switchyard::device;`); ownership is std::shared_ptr or
// metal-cpp's (see foundation.h), errors are text.
//
// Kernels run on the CPU, threadgroup by threadgroup over the device's
// executor. The built-in kernels (kernels.h) call the plain API, so their
// results have the same bits. device/docs/metal.md has the table of calls and
// a port side by side.
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
// Threads: one thread at a time per command buffer and its encoders, as on
// Metal; everything else may be used from any thread at any time. A kernel
// must not wait: waitUntilCompleted() in a kernel is an error.

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

// library.h, which newLibrary() needs:
class CompileOptions;
class Function;
class Library;

struct DeviceOptions {
  // Runs the threadgroups. Null: MakeTbbExecutor(), or SerialExecutor() in a
  // library without TBB. Shared by all queues of the device.
  std::shared_ptr<Executor> executor;
  // Record when each dispatch started and ended (about 50 ns a dispatch):
  // CommandBuffer::dispatchTimes().
  bool time_dispatches = false;
  // Checked mode, for kernels made by MakeKernel() of kernel.h: every access
  // to memory is checked. Accesses that are out of bounds, read memory that
  // was never written or race with another access become
  // CommandBuffer::findings(), and the first of them the command buffer's
  // error. So do dispatches of a concurrent encoder that conflict without a
  // barrier, built-in ones included. Threadgroups run one after the other,
  // each up to 20 times slower. newBuffer(length) is filled with a pattern
  // instead of zeros, so that reads of unwritten memory are found.
  // device/docs/metal.md lists which mistakes are found and which are missed.
  bool check_kernels = false;
  // If not 0, and with check_kernels: threadgroups and threads run in an
  // order drawn from this seed, and up to 8 threadgroups take turns at
  // barriers.
  uint64_t schedule_seed = 0;
  // In checked mode a command buffer stops after this number of findings; 0:
  // no limit. With 1, the first mistake stops it before it happens.
  size_t max_findings = 20;
  // Findings that checked mode does not report; device/docs/metal.md has the
  // syntax. A malformed suppression is an error of every command buffer.
  std::vector<std::string> suppressions = {};
  // newBuffer(length) is filled with zeros in checked mode too, as on Metal,
  // and reading them is not a finding.
  bool zeroed_buffers = false;
  // Checked mode provides CommandBuffer::neverWritten(), for which it reads
  // every word of every output.
  bool track_never_written = false;
  // The Clang that compiles .metal files: the name of a program in PATH, or a
  // file.
  // Empty: clang++, or the newest clang++-N installed.
  std::string metal_compiler = {};
  // The cache folder for compiled files. Empty: switchyard/ in
  // $XDG_CACHE_HOME or ~/.cache.
  std::string metal_cache = {};
  // The most bytes in the cache folder. When a file is added, the least
  // recently used files are deleted until the rest fits; files that a process
  // is using stay. 0: no limit.
  uint64_t metal_cache_bytes = uint64_t{512} << 20;
  // How long a command buffer waits for an event before it fails.
  uint64_t event_timeout_ms = 60000;
};

// For engines that query it: supported are Apple's GPUs up to the M2's, with
// simd functions and bfloat, and without tensor operations.
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
  // The machine's memory.
  uint64_t recommendedMaxWorkingSetSize() const noexcept;
  // Counts the buffers, except those in memory of the caller.
  size_t currentAllocatedSize() const noexcept;
  bool supportsFamily(GPUFamily family) const noexcept {
    return family <= GPUFamilyApple8 ||
           (family >= GPUFamilyMac1 && family <= GPUFamilyMetal3);
  }
  uint64_t registryID() const noexcept { return 1; }
  bool isLowPower() const noexcept { return false; }
  bool isHeadless() const noexcept { return true; }
  bool isRemovable() const noexcept { return false; }

  // `length` bytes of zeros (except with DeviceOptions::check_kernels),
  // page-aligned. nullptr if length is 0 or memory is out.
  Ref<Buffer> newBuffer(size_t length, ResourceOptions options =
                                           ResourceStorageModeShared) noexcept;
  // A copy of `length` bytes from `pointer`. nullptr as above, or if pointer
  // is null.
  Ref<Buffer> newBuffer(
      const void* pointer, size_t length,
      ResourceOptions options = ResourceStorageModeShared) noexcept;
  // A buffer in memory that the caller owns. The caller keeps the memory
  // until `deallocator` has been called, once, by the thread that drops the
  // last reference (which may be a queue's thread); without a deallocator,
  // until all work with the buffer has completed. The memory needs no
  // alignment or padding, unlike on Metal (page-aligned, whole pages).
  // Returns nullptr, without a call of the deallocator, if pointer is null or
  // length 0. metal-cpp's name for this function is newBuffer() with a
  // deallocator.
  // The const form is for a mapped checkpoint: binding it where a kernel
  // writes is an error.
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

  // nullptr if the size is 0 or memory is out.
  Ref<Heap> newHeap(host_internal::Arg<HeapDescriptor> descriptor) noexcept;
  SizeAndAlign heapBufferSizeAndAlign(size_t length,
                                      ResourceOptions options) const noexcept;
  // nullptr if memory is out.
  Ref<Event> newEvent() noexcept;
  Ref<SharedEvent> newSharedEvent() noexcept;
  Ref<Fence> newFence() noexcept;

  // The built-in kernel of that name (kernels.h). nullptr if it does not
  // exist or memory is out, with the reason in *error unless `error` is null.
  Ref<ComputePipelineState> newComputePipelineState(
      const char* name, host_internal::ErrorOut error = nullptr) noexcept;
  // A kernel that you wrote. nullptr if it has no name or no function.
  Ref<ComputePipelineState> newComputePipelineState(
      KernelFunction kernel, host_internal::ErrorOut error = nullptr) noexcept;

  // The kernels of a .metal file (library.h), given as text or as a file.
  // Clang compiles them for this device, checked or not. That takes seconds,
  // or milliseconds if the same source was compiled before. Returns nullptr
  // if it fails; *error, unless `error` is null, then has Clang's messages
  // with the lines of the file ("program_source" for a text), or the reason
  // why Clang could not run.
  Ref<Library> newLibrary(host_internal::Text source,
                          host_internal::Settings<CompileOptions> options = {},
                          host_internal::ErrorOut error = nullptr) noexcept;
  Ref<Library> newLibraryFromFile(
      host_internal::Text path,
      host_internal::Settings<CompileOptions> options = {},
      host_internal::ErrorOut error = nullptr) noexcept;
  // metal-cpp's spelling of newLibraryFromFile(): error is an Error**, and
  // not a null constant.
  template <class T, class = std::enable_if_t<std::is_same_v<T, Error>>>
  Ref<Library> newLibrary(host_internal::Text path, T** error) noexcept {
    return newLibraryFromFile(path, {}, error);
  }
  // A kernel of a library. The library must be made by a device with the same
  // check_kernels.
  Ref<ComputePipelineState> newComputePipelineState(
      host_internal::Arg<Function> function,
      host_internal::ErrorOut error = nullptr) noexcept;

  // nullptr if memory or threads are out.
  Ref<CommandQueue> newCommandQueue() noexcept;
  // The argument is ignored: a queue takes any number of command buffers.
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
  // Shared with the buffers.
  const std::shared_ptr<std::atomic<size_t>> allocated_;
};

// nullptr if memory is out.
Ref<Device> CreateDevice(const DeviceOptions& options) noexcept;
// CreateDevice with default options. Each call makes a new device with a new
// pool.
Ref<Device> CreateSystemDefaultDevice() noexcept;

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_DEVICE_H_
