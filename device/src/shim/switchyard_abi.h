// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The interface between a compiled .metal file and the library. Both sides
// compile this header: for the shader, Clang compiles it as C++17 without any
// other header; for the library, device/src/metal includes it. It has only
// plain data and functions, so that neither side needs the other's C++
// library. The contents of this file are part of a module's cache key, so
// different versions never meet.

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
  kBuffer,       // stands for [[buffer(index)]]
  kThreadgroup,  // stands for [[threadgroup(index)]]
  // Stands for [[thread_position_in_grid]]. Each of the next values stands for
  // the attribute with the same name.
  kThreadPositionInGrid,
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
  kThreadsPerSimdgroup,  // stands for [[thread_execution_width]], too
  kSimdgroupsPerThreadgroup,
  kDispatchSimdgroupsPerThreadgroup,
  kQuadgroupsPerThreadgroup,
  kDispatchQuadgroupsPerThreadgroup,
  kGridOrigin,
  kGridSize,
  kUnsupported,  // a kernel with such a parameter cannot run
};

// The values that all threads of a threadgroup share.
struct Group {
  u32 threadgroup_position_in_grid[3];
  u32 threadgroups_per_grid[3];
  u32 threads_per_grid[3];
  u32 threads_per_threadgroup[3];
  u32 dispatch_threads_per_threadgroup[3];
  // The address of each bound buffer plus its offset. An entry is null if
  // nothing is bound.
  void* buffers[kMaxBuffers];
  void* threadgroup_memory[kMaxThreadgroupMemory];
};

struct Thread {
  const Group* group;
  u32 thread_position_in_grid[3];
  u32 thread_position_in_threadgroup[3];
  u32 thread_index_in_threadgroup;
};

// The flags of Metal's mem_flags. They have the same values as on Metal.
enum : u32 {
  kMemNone = 0,
  kMemDevice = 1,
  kMemThreadgroup = 2,
  kMemTexture = 4,
};

// Further bits in the kind of an access:
// * kAligned: the address must be a multiple of the size. Without other bits,
//   the call only checks this and is not an access.
// * kAcquires, kReleases: a fence, which accesses no bytes.
// * kVolatile: a volatile access. A thread may wait for another thread in a
//   loop of volatile accesses, as in a loop of atomic accesses.
enum : u32 {
  kReads = 1,
  kWrites = 2,
  kAtomically = 4,
  kAligned = 8,
  kAcquires = 16,
  kReleases = 32,
  kVolatile = 64
};

// A function that does the work of a simd or quad function. It runs once, on
// the host's stack, for all lanes that meet in the call. For i < `lanes`,
// slots[i] is the argument of lane i, or null if that lane does not take
// part.
using SimdOperation = void (*)(void* const* slots, u32 lanes, const void* arg);

// The functions that the library offers to a running thread. `access` is null
// in unchecked modules, because only checked mode uses it.
struct Runtime {
  void (*threadgroup_barrier)(u32 flags);
  void (*simdgroup_barrier)(u32 flags);
  // Returns after `operation` has run for all lanes that met. Messages use
  // `name`, the simd function's name. If `quad` is true, groups of four lanes
  // meet, and the slots are those of one group.
  void (*simd)(void* slot, SimdOperation operation, const void* arg,
               const char* name, bool quad);
  // Returns the memory of a variable that is declared in threadgroup memory.
  // All threads of the threadgroup get the same memory. `id` identifies the
  // declaration.
  void* (*threadgroup_variable)(const void* id, const char* name, size bytes,
                                size alignment);
  // Called before each access, only in checked modules. `where` is the
  // address of the code.
  void (*access)(const void* address, size bytes, u32 kind, const void* where);
  // Ends the thread with this message, because its next step is undefined.
  void (*fail)(const char* what);
  // Returns the running thread's index in its simdgroup.
  u32 (*lane)();
  // Ends the thread, because it needs the buffer at this index and no buffer
  // is bound there.
  void* (*not_bound)(u32 index);
  // Called only in checked modules, before an integer is divided by zero, or
  // the smallest integer by -1. It returns, and the code then divides by 1.
  void (*divides)(bool by_zero, const void* where);
};

// A region of a kernel that was cut at the points where its threads meet. It
// is a function that runs some threads, one after the other, from one meeting
// to the next. The threads are `width` neighbours in x. `first` is the first
// of them, and `begin` its index. The function returns the next region, or
// kReturned. If the returned value has the bit kLanesMeet, the work of a
// meeting must be done before the next region.
using Region = u32 (*)(const Thread* first, void* context, void* shared,
                       u64 begin, u32 width);
constexpr u32 kMostCutThreads = 1024;
constexpr u32 kLanesMeet = u32{1} << 31;
constexpr u32 kReturned = ~u32{0};
struct Cuts {
  const void* const* regions;
  // The size of the context, which begins with a Meeting for each of
  // kMostCutThreads.
  u64 context_bytes;
  // The size of the block of values that a region reads. A second block of
  // this size holds the values that the region writes.
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
  u32 index;         // used for buffers and threadgroup memory
  const char* text;  // as declared, for listings: "device const float* x"
  // The shim derives the following from the kernel's C++ type.
  u32 bytes;  // the size of the type that it points or refers to
  u32 alignment;
  bool reference;  // if true, all `bytes` must be bound
  bool only_reads;
  // Points to the value in [[function_constant(..)]], which is true if the
  // argument exists. Null if the argument always exists.
  const bool* when;
};

struct Kernel {
  const char* name;  // the host_name, or else the function's name
  const char* file;
  u32 line;
  void (*run)(const Thread& thread);
  Parameter* parameters;
  u32 num_parameters;
  u32 max_total_threads_per_threadgroup;  // 0 if it is not given
  const Cuts* cuts;                       // null if the kernel was not cut
};

// A constant with the attribute [[function_constant(index)]].
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
  const Runtime** runtime;  // the library sets this before the module runs
  const Kernel* kernels;
  u32 num_kernels;
  const FunctionConstant* constants;
  u32 num_constants;
  // Computes the values that depend on function constants. The library calls
  // it after setting the function constants. It is null if the module has no
  // such values.
  void (*set_up)();
};

}  // namespace switchyard_metal

#endif  // SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_ABI_H_
