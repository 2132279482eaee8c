// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Metal's compute API over unified memory on Linux: the same calls in the same
// order, so that an engine's Apple dispatch code ports line by line. The
// spelling is metal-cpp's (`namespace MTL = switchyard::device;` compiles most
// of it as it stands); ownership is std::shared_ptr or metal-cpp's (see
// foundation.h), errors are text.
//
// Kernels run on the CPU, threadgroup by threadgroup over the device's
// executor. The built-in ones (kernels.h) call the plain API, so their results
// are its results, bit for bit. device/docs/metal.md has the table of calls and
// a port side by side.
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
  // Checked mode, for kernels made by MakeKernel() of kernel.h: every access to
  // memory is looked at, and those that are out of bounds, read what was never
  // written or race with another are CommandBuffer::findings(), the first of
  // them its error; as are dispatches of a concurrent encoder that conflict
  // without a barrier, built-in ones included. Threadgroups run one after the
  // other, up to 20 times slower each. newBuffer(length) gives no zeros but a
  // pattern by which reads of it are found. device/docs/metal.md has what is
  // found and what is not.
  bool check_kernels = false;
  // Not 0, and with check_kernels: threadgroups and threads run in an order
  // drawn from this seed, and up to 8 threadgroups take turns at barriers.
  uint64_t schedule_seed = 0;
  // In checked mode a command buffer stops with as many findings; 0: any
  // number. With 1, the first mistake stops it before it happens.
  size_t max_findings = 20;
  // Findings that are none, for checked mode: device/docs/metal.md has how they
  // are written. One that is wrong is the error of all command buffers.
  std::vector<std::string> suppressions = {};
  // newBuffer(length) gives zeros in checked mode, too, as Metal does, and
  // reads of them are no findings.
  bool zeroed_buffers = false;
  // Whether checked mode is to know CommandBuffer::neverWritten(): it takes a
  // look at every word of every output.
  bool track_never_written = false;
  // The Clang that compiles .metal files: a program of PATH, or its file.
  // Empty: clang++, or the newest clang++-N that there is.
  std::string metal_compiler = {};
  // The folder that keeps what it has compiled. Empty: switchyard/ in
  // $XDG_CACHE_HOME or ~/.cache.
  std::string metal_cache = {};
  // When something is added, what has not been used for longest goes until the
  // folder has no more bytes than that; what a process uses stays. 0: all stay.
  uint64_t metal_cache_bytes = uint64_t{512} << 20;
  // How long a command buffer waits for an event before that is its error.
  uint64_t event_timeout_ms = 60000;
};

// Apple's GPUs up to the M2's, for engines that ask: simd functions, bfloat,
// and no tensor operations.
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
  // Counts buffers that are not the caller's memory.
  size_t currentAllocatedSize() const noexcept;
  bool supportsFamily(GPUFamily family) const noexcept {
    return family <= GPUFamilyApple8 ||
           (family >= GPUFamilyMac1 && family <= GPUFamilyMetal3);
  }
  uint64_t registryID() const noexcept { return 1; }
  bool isLowPower() const noexcept { return false; }
  bool isHeadless() const noexcept { return true; }
  bool isRemovable() const noexcept { return false; }

  // `length` bytes of zeros (but see DeviceOptions::check_kernels),
  // page-aligned. nullptr if length is 0 or memory is out.
  Ref<Buffer> newBuffer(size_t length, ResourceOptions options =
                                           ResourceStorageModeShared) noexcept;
  // A copy of `length` bytes from `pointer`. nullptr as above, or if pointer
  // is.
  Ref<Buffer> newBuffer(
      const void* pointer, size_t length,
      ResourceOptions options = ResourceStorageModeShared) noexcept;
  // Memory that the caller owns and keeps until `deallocator` has been called,
  // once, from the thread that drops the last reference (a queue's thread, it
  // may be); without one, until all work with the buffer has completed. No
  // alignment or padding is asked, unlike on Metal (page-aligned, whole pages).
  // nullptr, and no deallocator call, if pointer is null or length 0.
  // newBuffer() with a deallocator is metal-cpp's name for it.
  // The const form, for a mapped checkpoint: binding it where a kernel writes
  // is an error.
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

  // The built-in kernel of that name (kernels.h). nullptr if there is none or
  // memory is out, and why in *error unless that is null.
  Ref<ComputePipelineState> newComputePipelineState(
      const char* name, host_internal::ErrorOut error = nullptr) noexcept;
  // A kernel of your own. nullptr if it has no name or no function.
  Ref<ComputePipelineState> newComputePipelineState(
      KernelFunction kernel, host_internal::ErrorOut error = nullptr) noexcept;

  // The kernels of a .metal file (library.h): of its text, or of the file.
  // Compiled by Clang for this device, checked or not; seconds, or milliseconds
  // where the same was compiled before. nullptr if that fails, and Clang's
  // messages with the file's own lines ("program_source" for a text), or why it
  // could not be run, in *error unless that is null.
  Ref<Library> newLibrary(host_internal::Text source,
                          host_internal::Settings<CompileOptions> options = {},
                          host_internal::ErrorOut error = nullptr) noexcept;
  Ref<Library> newLibraryFromFile(
      host_internal::Text path,
      host_internal::Settings<CompileOptions> options = {},
      host_internal::ErrorOut error = nullptr) noexcept;
  // metal-cpp's spelling of the latter: error is an Error**, and no null.
  template <class T, class = std::enable_if_t<std::is_same_v<T, Error>>>
  Ref<Library> newLibrary(host_internal::Text path, T** error) noexcept {
    return newLibraryFromFile(path, {}, error);
  }
  // A kernel of such a library, made by a device of the same check_kernels.
  Ref<ComputePipelineState> newComputePipelineState(
      host_internal::Arg<Function> function,
      host_internal::ErrorOut error = nullptr) noexcept;

  // nullptr if there is no memory or no thread left.
  Ref<CommandQueue> newCommandQueue() noexcept;
  // Any number of command buffers, whatever is given.
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
// CreateDevice with default options: a device, and a pool, of its own.
Ref<Device> CreateSystemDefaultDevice() noexcept;

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_DEVICE_H_
