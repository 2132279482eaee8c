// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Clang includes this header before the first line of every .metal file. It
// has the code that the translated source calls: the module's runtime, and
// the functions that describe and call a kernel.

#ifndef SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_MODULE_H_
#define SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_MODULE_H_

#include "switchyard_abi.h"

// In Metal, the brace initializer of a short may contain an int.
#pragma clang diagnostic ignored "-Wc++11-narrowing"

#define __HAVE_BFLOAT__ 1

// Clang defines these macros only if the CPU supports the type _Float16.
#ifndef __FLT16_MAX__
#define __FLT16_MAX__ half(65504.0f)
#define __FLT16_MIN__ half(6.103515625e-05f)
#define __FLT16_EPSILON__ half(9.765625e-04f)
#define __FLT16_DENORM_MIN__ half(5.9604644775390625e-08f)
#define __FLT16_DIG__ 3
#define __FLT16_DECIMAL_DIG__ 5
#define __FLT16_MANT_DIG__ 11
#define __FLT16_MAX_EXP__ 16
#define __FLT16_MIN_EXP__ (-13)
#define __FLT16_MAX_10_EXP__ 4
#define __FLT16_MIN_10_EXP__ (-4)
#define __FLT16_HAS_DENORM__ 1
#define __FLT16_HAS_INFINITY__ 1
#define __FLT16_HAS_QUIET_NAN__ 1
#endif

// This erases coherent(), because CPU memory is always coherent.
#define coherent(scope)

#define __METAL_MEMORY_SCOPE_THREAD__ 0
#define __METAL_MEMORY_SCOPE_THREADGROUP__ 1
#define __METAL_MEMORY_SCOPE_DEVICE__ 2
#define __METAL_MEMORY_SCOPE_SYSTEM__ 3
#define __METAL_MEMORY_SCOPE_SIMDGROUP__ 4

// Marks functions of this runtime that are not the shader's code. In checked
// modules their memory accesses are not reported. The second attribute keeps
// Clang from inlining them into instrumented code. (It has no effect on
// always_inline functions.)
#define SWITCHYARD_NOT_CHECKED                       \
  __attribute__((disable_sanitizer_instrumentation)) \
  __attribute__((no_sanitize("thread")))
// Marks functions in which threads meet. They are inlined, because the place
// of the call in the shader identifies the meeting, and findings name that
// place.
#define SWITCHYARD_MEETS __attribute__((always_inline))
#ifdef SWITCHYARD_METAL_CHECKED
// Marks functions that read the address of their caller, and therefore must
// not be inlined.
#define SWITCHYARD_CALLED SWITCHYARD_NOT_CHECKED __attribute__((noinline))
#else
#define SWITCHYARD_CALLED SWITCHYARD_NOT_CHECKED
#endif

namespace metal {
template <class T, int N>
struct vec;
// In Metal this enumeration needs no header, and it has no
// thread_scope_system.
enum thread_scope : int {
  thread_scope_thread = __METAL_MEMORY_SCOPE_THREAD__,
  thread_scope_threadgroup = __METAL_MEMORY_SCOPE_THREADGROUP__,
  thread_scope_device = __METAL_MEMORY_SCOPE_DEVICE__,
  thread_scope_simdgroup = __METAL_MEMORY_SCOPE_SIMDGROUP__,
};
}  // namespace metal

namespace switchyard_metal {

// The library sets this before the module runs. While constructors run, it is
// null.
static const Runtime* runtime = nullptr;

// The following functions wrap those of `runtime`, so that the module's LLVM
// text calls them by name. In unchecked modules they are inlined late,
// because regions.cc cuts kernels at these calls. In checked modules they are
// inlined at once, because the library needs the place of the original call.
#ifdef SWITCHYARD_METAL_CHECKED
#define SWITCHYARD_RUNTIME extern "C" inline __attribute__((always_inline))
#else
#define SWITCHYARD_RUNTIME extern "C" inline __attribute__((noinline))
#endif
SWITCHYARD_RUNTIME SWITCHYARD_NOT_CHECKED void swy_threadgroup_barrier(
    u32 flags) {
  runtime->threadgroup_barrier(flags);
}
SWITCHYARD_RUNTIME SWITCHYARD_NOT_CHECKED void swy_simdgroup_barrier(
    u32 flags) {
  runtime->simdgroup_barrier(flags);
}
SWITCHYARD_RUNTIME SWITCHYARD_NOT_CHECKED void swy_simd(void* slot,
                                                        SimdOperation operation,
                                                        const void* arg,
                                                        const char* name,
                                                        bool quad) {
  runtime->simd(slot, operation, arg, name, quad);
}
SWITCHYARD_RUNTIME SWITCHYARD_NOT_CHECKED void* swy_threadgroup_variable(
    const void* id, const char* name, size bytes, size alignment) {
  return runtime->threadgroup_variable(id, name, bytes, alignment);
}
SWITCHYARD_RUNTIME SWITCHYARD_NOT_CHECKED void swy_fail(const char* what) {
  runtime->fail(what);
}
SWITCHYARD_RUNTIME SWITCHYARD_NOT_CHECKED u32 swy_lane() {
  return runtime->lane();
}
#ifndef SWITCHYARD_METAL_CHECKED
// Kernels that were cut into regions call this instead of swy_simd().
extern "C" inline __attribute__((used)) void swy_note_meeting(
    void* slot, SimdOperation operation, const void* arg, const char*,
    bool quad, void* to) {
  *static_cast<Meeting*>(to) = {slot, operation, arg, quad};
}
#endif

// Parameter types of kernels ------------------------------------------------

template <class F, u32 kIndex>
struct ParameterAt;
template <class R, class First, class... Rest, u32 kIndex>
struct ParameterAt<R (*)(First, Rest...), kIndex> {
  using Type = typename ParameterAt<R (*)(Rest...), kIndex - 1>::Type;
};
template <class R, class First, class... Rest>
struct ParameterAt<R (*)(First, Rest...), 0> {
  using Type = First;
};

template <class F>
struct Function {
  using Type = F;
};
template <class F>
struct Function<F* const> {
  using Type = F*;
};

template <class T>
struct Pointee {
  static constexpr u32 kBytes = sizeof(T);
  static constexpr u32 kAlignment = alignof(T);
  static constexpr bool kOnlyReads = false;
};
template <>
struct Pointee<void> {
  static constexpr u32 kBytes = 1;
  static constexpr u32 kAlignment = 1;
  static constexpr bool kOnlyReads = false;
};
template <class T>
struct Pointee<const T> : Pointee<T> {
  static constexpr bool kOnlyReads = true;
};
template <class T>
struct Pointee<volatile T> : Pointee<T> {};
template <class T>
struct Pointee<const volatile T> : Pointee<const T> {};

template <class T>
constexpr Parameter Pointing(const char* name, Input input, u32 index,
                             const char* text, bool reference) {
  return {name,
          input,
          index,
          text,
          Pointee<T>::kBytes,
          Pointee<T>::kAlignment,
          reference,
          Pointee<T>::kOnlyReads};
}

// Describes a parameter of type P, and converts the bound memory or the
// thread's value to P.
template <class P>
struct Argument {
  static constexpr Parameter Describe(const char* name, Input input, u32 index,
                                      const char* text) {
    return {name, input, index, text, sizeof(P), alignof(P), false, true};
  }
  static SWITCHYARD_NOT_CHECKED P FromValue(u32 value) {
    return static_cast<P>(value);
  }
  static SWITCHYARD_NOT_CHECKED P FromSize(const u32 (&s)[3]) {
    return static_cast<P>(s[0]);
  }
};
template <class P>
struct Argument<const P> : Argument<P> {};
template <class T>
struct Argument<metal::vec<T, 2>> : Argument<T> {
  using P = metal::vec<T, 2>;
  static SWITCHYARD_NOT_CHECKED P FromSize(const u32 (&s)[3]) {
    return P(static_cast<T>(s[0]), static_cast<T>(s[1]));
  }
};
template <class T>
struct Argument<metal::vec<T, 3>> : Argument<T> {
  using P = metal::vec<T, 3>;
  static SWITCHYARD_NOT_CHECKED P FromSize(const u32 (&s)[3]) {
    return P(static_cast<T>(s[0]), static_cast<T>(s[1]), static_cast<T>(s[2]));
  }
};
template <class T>
struct Argument<T*> {
  static constexpr Parameter Describe(const char* name, Input input, u32 index,
                                      const char* text) {
    return Pointing<T>(name, input, index, text, false);
  }
  static SWITCHYARD_NOT_CHECKED T* FromMemory(void* memory) {
    return static_cast<T*>(memory);
  }
};
template <class T>
struct Argument<T* const> : Argument<T*> {};
template <class T>
struct Argument<T&> {
  static constexpr Parameter Describe(const char* name, Input input, u32 index,
                                      const char* text) {
    return Pointing<T>(name, input, index, text, true);
  }
  static SWITCHYARD_NOT_CHECKED T& FromMemory(void* memory) {
    return *static_cast<T*>(memory);
  }
};

template <class P>
inline constexpr bool kPoints = false;
template <class T>
inline constexpr bool kPoints<T*> = true;
template <class T>
inline constexpr bool kPoints<T* const> = true;
template <class T>
inline constexpr bool kPoints<T&> = true;

// The input of a kernel's argument. For memory, kIndex is the index of the
// buffer or of the threadgroup memory.
template <Input kInput, u32 kIndex = 0>
struct In {};

// Describes parameter number kIndex of a kernel with type F.
template <class F, u32 kIndex>
constexpr Parameter Describe(const char* name, Input input, u32 index,
                             const char* text) {
  using P = typename ParameterAt<typename Function<F>::Type, kIndex>::Type;
  return Argument<P>::Describe(name, input, index, text);
}

// Returns how many groups of `per` threads a threadgroup has.
SWITCHYARD_NOT_CHECKED constexpr u32 Count(const u32 (&size)[3], u32 per) {
  return (size[0] * size[1] * size[2] + per - 1) / per;
}

constexpr Parameter When(const bool* constant, Parameter parameter) {
  parameter.when = constant;
  return parameter;
}

// This is declared const, so that Clang drops the call if the kernel does not
// use the argument. That matters because engines do not bind an argument that
// the kernel ignores for some template parameters.
extern "C" inline __attribute__((const, noinline)) SWITCHYARD_NOT_CHECKED void*
swy_not_bound(u32 index) {
  return runtime->not_bound(index);
}

template <class P, Input kInput, u32 kIndex>
SWITCHYARD_NOT_CHECKED P Get(const Thread& t, In<kInput, kIndex>) {
  using A = Argument<P>;
  const Group& group = *t.group;
  const u32 index = t.thread_index_in_threadgroup;
  constexpr bool kIsMemory =
      kInput == Input::kBuffer || kInput == Input::kThreadgroup;
  if constexpr (kIsMemory && !kPoints<P>) {
    static_assert(kPoints<P>,
                  "[[buffer(n)]] and [[threadgroup(n)]] are arguments that are "
                  "pointers or references");
    return P();
  } else if constexpr (kInput == Input::kBuffer) {
    void* const memory = group.buffers[kIndex];
    return A::FromMemory(memory != nullptr ? memory : swy_not_bound(kIndex));
  } else if constexpr (kInput == Input::kThreadgroup) {
    return A::FromMemory(group.threadgroup_memory[kIndex]);
  } else if constexpr (kInput == Input::kThreadPositionInGrid) {
    return A::FromSize(t.thread_position_in_grid);
  } else if constexpr (kInput == Input::kThreadPositionInThreadgroup) {
    return A::FromSize(t.thread_position_in_threadgroup);
  } else if constexpr (kInput == Input::kThreadIndexInThreadgroup) {
    return A::FromValue(index);
  } else if constexpr (kInput == Input::kThreadIndexInSimdgroup) {
    return A::FromValue(index % kSimdWidth);
  } else if constexpr (kInput == Input::kThreadIndexInQuadgroup) {
    return A::FromValue(index % 4);
  } else if constexpr (kInput == Input::kSimdgroupIndexInThreadgroup) {
    return A::FromValue(index / kSimdWidth);
  } else if constexpr (kInput == Input::kQuadgroupIndexInThreadgroup) {
    return A::FromValue(index / 4);
  } else if constexpr (kInput == Input::kThreadgroupPositionInGrid) {
    return A::FromSize(group.threadgroup_position_in_grid);
  } else if constexpr (kInput == Input::kThreadgroupsPerGrid) {
    return A::FromSize(group.threadgroups_per_grid);
  } else if constexpr (kInput == Input::kThreadsPerGrid ||
                       kInput == Input::kGridSize) {
    return A::FromSize(group.threads_per_grid);
  } else if constexpr (kInput == Input::kThreadsPerThreadgroup) {
    return A::FromSize(group.threads_per_threadgroup);
  } else if constexpr (kInput == Input::kDispatchThreadsPerThreadgroup) {
    return A::FromSize(group.dispatch_threads_per_threadgroup);
  } else if constexpr (kInput == Input::kThreadsPerSimdgroup) {
    return A::FromValue(kSimdWidth);
  } else if constexpr (kInput == Input::kSimdgroupsPerThreadgroup) {
    return A::FromValue(Count(group.threads_per_threadgroup, kSimdWidth));
  } else if constexpr (kInput == Input::kDispatchSimdgroupsPerThreadgroup) {
    return A::FromValue(
        Count(group.dispatch_threads_per_threadgroup, kSimdWidth));
  } else if constexpr (kInput == Input::kQuadgroupsPerThreadgroup) {
    return A::FromValue(Count(group.threads_per_threadgroup, 4));
  } else if constexpr (kInput == Input::kDispatchQuadgroupsPerThreadgroup) {
    return A::FromValue(Count(group.dispatch_threads_per_threadgroup, 4));
  } else {
    static_assert(kInput == Input::kGridOrigin);
    constexpr u32 kOrigin[3] = {0, 0, 0};
    return A::FromSize(kOrigin);
  }
}

// Runs the kernel for one thread. The kernel is inlined, so that unused
// arguments cost nothing.
template <class... Inputs, class... P>
__attribute__((always_inline, flatten)) SWITCHYARD_NOT_CHECKED inline void Call(
    void (*function)(P...), const Thread& t) {
  function(Get<P>(t, Inputs())...);
}

// A variable in threadgroup memory ------------------------------------------

template <class Id>
inline char variable_id = 0;

// `Id` is the type of a lambda and therefore unique. So each instantiation of
// a kernel has its own variable.
template <class T, class Id>
SWITCHYARD_NOT_CHECKED T& ThreadgroupVariable(Id, const char* name) {
  return *static_cast<T*>(
      swy_threadgroup_variable(&variable_id<Id>, name, sizeof(T), alignof(T)));
}

}  // namespace switchyard_metal

#ifdef SWITCHYARD_METAL_CHECKED
#include "switchyard_accesses.h"
// In a SWITCHYARD_CALLED function, notes an access at the place of the
// function's caller.
#define SWITCHYARD_NOTE(address, bytes, kind)                                  \
  ::switchyard_metal::Access(address, bytes, kind, __builtin_frame_address(0), \
                             __builtin_return_address(0))
#else
#define SWITCHYARD_NOTE(address, bytes, kind) static_cast<void>(0)
#endif

#endif  // SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_MODULE_H_
