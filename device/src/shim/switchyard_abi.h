// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The interface between a compiled .metal file and the library. Both sides
// compile this header: the shader's Clang, as C++17 without any other header,
// and device/src/metal. It has only plain data and functions, so that neither
// side needs the other's C++ library. The cache key of a module includes the
// contents of this file, so versions never mix.

#ifndef SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_ABI_H_
#define SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_ABI_H_

namespace switchyard_metal {

using u32 = __UINT32_TYPE__;
using u64 = __UINT64_TYPE__;
using size = __SIZE_TYPE__;

constexpr u32 kSimdWidth = 32;
constexpr u32 kMaxBuffers = 31;
constexpr u32 kMaxThreadgroupMemory = 31;

// The kind of a kernel's parameter, named like its [[attribute]].
enum class Input : u32 {
  kBuffer,                // [[buffer(index)]]
  kThreadgroup,           // [[threadgroup(index)]]
  kThreadPositionInGrid,  // [[thread_position_in_grid]], ...
  kThreadPositionInThreadgroup,
  kThreadIndexInThreadgroup,
  kThreadIndexInSimdgroup,
  kThreadIndexInQuadgroup,
  kSimdgroupIndexInThreadgroup,
  kQuadgroupIndexInThreadgroup,
  kThreadgroupPositionInGrid,
  kThreadgroupsPerGrid,
  kThreadsPerGrid,
  kThreadsPerThreadgroup,
  kDispatchThreadsPerThreadgroup,
  kThreadsPerSimdgroup,  // and [[thread_execution_width]]
  kSimdgroupsPerThreadgroup,
  kDispatchSimdgroupsPerThreadgroup,
  kQuadgroupsPerThreadgroup,
  kDispatchQuadgroupsPerThreadgroup,
  kGridOrigin,
  kGridSize,
  kUnsupported,  // the kernel cannot run
};

// Values shared by the threads of a threadgroup.
struct Group {
  u32 threadgroup_position_in_grid[3];
  u32 threadgroups_per_grid[3];
  u32 threads_per_grid[3];
  u32 threads_per_threadgroup[3];
  u32 dispatch_threads_per_threadgroup[3];
  // The bindings; null: nothing is bound. Buffers begin at their offset.
  void* buffers[kMaxBuffers];
  void* threadgroup_memory[kMaxThreadgroupMemory];
};

struct Thread {
  const Group* group;
  u32 thread_position_in_grid[3];
  u32 thread_position_in_threadgroup[3];
  u32 thread_index_in_threadgroup;
};

// Metal's mem_flags, with the same values as there.
enum : u32 {
  kMemNone = 0,
  kMemDevice = 1,
  kMemThreadgroup = 2,
  kMemTexture = 4,
};

// The other kinds:
// * kAligned: the address must be a multiple of the size. Without other bits,
//   it is only this check, not an access.
// * kAcquires, kReleases: a fence; it has no bytes.
// * kVolatile: such accesses may wait in a loop for another thread, like
//   atomic ones.
enum : u32 {
  kReads = 1,
  kWrites = 2,
  kAtomically = 4,
  kAligned = 8,
  kAcquires = 16,
  kReleases = 32,
  kVolatile = 64
};

// The work of a simd or quad function, done once on the host's stack for all
// lanes that meet in the call. slots[i], i < `lanes`, is the argument of lane
// i, or null if that lane does not take part.
using SimdOperation = void (*)(void* const* slots, u32 lanes, const void* arg);

// The library's services for a running thread. `access` is null in unchecked
// modules, because only checked mode uses it.
struct Runtime {
  void (*threadgroup_barrier)(u32 flags);
  void (*simdgroup_barrier)(u32 flags);
  // Returns after `operation` has run for all lanes that met. `name` is the
  // function's name, for messages. If `quad` is true, groups of four lanes
  // meet, and the slots are those of one group.
  void (*simd)(void* slot, SimdOperation operation, const void* arg,
               const char* name, bool quad);
  // Returns the memory of a variable declared in threadgroup memory; all
  // threads of the threadgroup get the same. `id` identifies the declaration.
  void* (*threadgroup_variable)(const void* id, const char* name, size bytes,
                                size alignment);
  // Called before each access, only in checked modules. `where` is the
  // address of the code.
  void (*access)(const void* address, size bytes, u32 kind, const void* where);
  // Ends the thread with this message, because its next step is undefined.
  void (*fail)(const char* what);
  // The running thread's index in its simdgroup.
  u32 (*lane)();
  // Ends the thread, because it needs the buffer at this index and none is
  // bound.
  void* (*not_bound)(u32 index);
  // Called only in checked modules, before an integer division by zero or of
  // the smallest integer by -1. Returns; the code then divides by 1.
  void (*divides)(bool by_zero, const void* where);
};

// A kernel cut into regions at the points where its threads meet. A region is
// a function that runs some threads, one after the other, from one meeting to
// the next. `first` is the first of `width` threads that are neighbours in x;
// `begin` is its index. Returns the next region, or kReturned. If the bit
// kLanesMeet is set, the work of a meeting has to be done first.
using Region = u32 (*)(const Thread* first, void* context, void* shared,
                       u64 begin, u32 width);
constexpr u32 kMostCutThreads = 1024;
constexpr u32 kLanesMeet = u32{1} << 31;
constexpr u32 kReturned = ~u32{0};
struct Cuts {
  const void* const* regions;
  u64 context_bytes;  // starts with a Meeting for each of kMostCutThreads
  // For the values a region reads, and again for those it makes.
  u64 shared_bytes;
};
struct Meeting {
  void* slot;
  SimdOperation operation;
  const void* arg;
  u32 quad;
};

struct Parameter {
  const char* name;
  Input input;
  u32 index;         // for buffers and threadgroup memory
  const char* text;  // as declared, for listings: "device const float* x"
  // Filled in by the shim from the kernel's C++ type:
  u32 bytes;  // size of the type pointed or referred to
  u32 alignment;
  bool reference;  // then all `bytes` must be bound
  bool only_reads;
  // The value of [[function_constant(..)]]: true if the argument exists. Null
  // if the argument always exists.
  const bool* when;
};

struct Kernel {
  const char* name;  // the host_name, or the function's name
  const char* file;
  u32 line;
  void (*run)(const Thread& thread);
  Parameter* parameters;
  u32 num_parameters;
  u32 max_total_threads_per_threadgroup;  // 0: not given
  const Cuts* cuts;                       // null: not cut
};

// [[function_constant(index)]]
struct FunctionConstant {
  const char* name;
  u32 index;
  const char* type;  // "bool", "int", "uint", "half", "float", "short2", ...
  void* value;
  u32 bytes;
  bool* defined;
};

// Each module exports this struct as switchyard_metal_module.
struct Module {
  const Runtime** runtime;  // must be set before the module runs
  const Kernel* kernels;
  u32 num_kernels;
  const FunctionConstant* constants;
  u32 num_constants;
  // Computes the values that depend on function constants; called after these
  // are set. Null if the module has no such values.
  void (*set_up)();
};

}  // namespace switchyard_metal

#endif  // SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_ABI_H_
