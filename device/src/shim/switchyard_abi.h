// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Between a compiled .metal file and the library that runs it. Compiled by
// both: as C++17 without any other header by the Clang that compiles the
// shader, and as part of device/src/metal. Plain data and functions, so that
// neither side needs the other's C++ library. A module is cached by the
// contents of this file, too: there is one version of it.

#ifndef SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_ABI_H_
#define SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_ABI_H_

namespace switchyard_metal {

using u32 = __UINT32_TYPE__;
using u64 = __UINT64_TYPE__;
using size = __SIZE_TYPE__;

constexpr u32 kSimdWidth = 32;
constexpr u32 kMaxBuffers = 31;
constexpr u32 kMaxThreadgroupMemory = 31;

// The kind of a kernel's parameter: the name of its [[...]].
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
  kUnsupported,  // the kernel can't be run
};

// Values that the threads of a threadgroup share.
struct Group {
  u32 threadgroup_position_in_grid[3];
  u32 threadgroups_per_grid[3];
  u32 threads_per_grid[3];
  u32 threads_per_threadgroup[3];
  u32 dispatch_threads_per_threadgroup[3];
  // The bindings, null for none; buffers begin at their offset.
  void* buffers[kMaxBuffers];
  void* threadgroup_memory[kMaxThreadgroupMemory];
};

struct Thread {
  const Group* group;
  u32 thread_position_in_grid[3];
  u32 thread_position_in_threadgroup[3];
  u32 thread_index_in_threadgroup;
};

// mem_flags of Metal, by their values there.
enum : u32 {
  kMemNone = 0,
  kMemDevice = 1,
  kMemThreadgroup = 2,
  kMemTexture = 4,
};

// kAligned: the address has to be a multiple of the bytes; alone it is no
// access. kAcquires, kReleases: a fence, of no bytes. kVolatile: a loop may
// wait for another thread by such accesses, as by atomic ones.
enum : u32 {
  kReads = 1,
  kWrites = 2,
  kAtomically = 4,
  kAligned = 8,
  kAcquires = 16,
  kReleases = 32,
  kVolatile = 64
};

// The work of the lanes of a simdgroup or quad that meet in one call, done once
// on the host's stack. slots[i], of `lanes`, is lane i's argument, null if it
// is not in the call.
using SimdOperation = void (*)(void* const* slots, u32 lanes, const void* arg);

// The library's services for a running thread. An entry is null if the module
// was compiled unchecked and the entry is of use only in checked mode:
// `access`.
struct Runtime {
  void (*threadgroup_barrier)(u32 flags);
  void (*simdgroup_barrier)(u32 flags);
  // Returns when `operation` has run for all lanes that met. `name` is the
  // function's, for messages. `quad`: lanes of four meet, and slots and lanes
  // are theirs.
  void (*simd)(void* slot, SimdOperation operation, const void* arg,
               const char* name, bool quad);
  // The memory of one declaration of threadgroup memory in a kernel, the same
  // for each thread of the threadgroup. `id` is the declaration's own.
  void* (*threadgroup_variable)(const void* id, const char* name, size bytes,
                                size alignment);
  // Only in modules compiled to be checked, before the access. `where` is the
  // address of the code.
  void (*access)(const void* address, size bytes, u32 kind, const void* where);
  // The thread does what is not defined: ends it with that text.
  void (*fail)(const char* what);
  // The running thread's index in its simdgroup.
  u32 (*lane)();
  // The thread needs the buffer at that index, and there is none: ends it.
  void* (*not_bound)(u32 index);
  // Only in checked modules: an integer is divided by zero, or the least one by
  // -1. Returns, and the code divides by 1.
  void (*divides)(bool by_zero, const void* where);
};

// A kernel that is cut where its threads meet: each region is a function of
// some threads one after the other, from where all are to where they meet next.
// `first` is the first of `width` threads that are next to each other in x,
// `begin` its index. It returns the region that comes next, with kLanesMeet if
// before that the work of a meeting has to be done, or kReturned.
using Region = u32 (*)(const Thread* first, void* context, void* shared,
                       u64 begin, u32 width);
constexpr u32 kMostCutThreads = 1024;
constexpr u32 kLanesMeet = u32{1} << 31;
constexpr u32 kReturned = ~u32{0};
struct Cuts {
  const void* const* regions;
  u64 context_bytes;  // begins with a Meeting for each of kMostCutThreads
  u64 shared_bytes;   // of what it reads, and once more of what it makes
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
  u32 index;         // of buffers and threadgroup memory
  const char* text;  // as declared, for listings: "device const float* x"
  // Filled in by the shim from the kernel's C++ type:
  u32 bytes;  // of what a pointer or reference points to
  u32 alignment;
  bool reference;  // so all of its bytes are needed
  bool only_reads;
  // The value of [[function_constant(..)]]: whether the argument exists; null
  // if it always does.
  const bool* when;
};

struct Kernel {
  const char* name;  // host_name, or the function's
  const char* file;
  u32 line;
  void (*run)(const Thread& thread);
  Parameter* parameters;
  u32 num_parameters;
  u32 max_total_threads_per_threadgroup;  // 0: not given
  const Cuts* cuts;                       // null: it is not cut
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

// The struct that a module exports under the name switchyard_metal_module.
struct Module {
  const Runtime** runtime;  // to be set before anything runs
  const Kernel* kernels;
  u32 num_kernels;
  const FunctionConstant* constants;
  u32 num_constants;
  // Sets what is made of function constants, once they are set; null if
  // nothing is.
  void (*set_up)();
};

}  // namespace switchyard_metal

#endif  // SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_ABI_H_
