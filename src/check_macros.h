// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Argument checks, one by one, of the calls that have no table in src/calls
// yet: sorts, maps, work lists. O(1), before anything is written, with a
// literal message "Function: argument: what is wrong".
//
// A front end binds its arguments to the names that the header gives them,
//   const auto& [topk_ids, ...] = inputs;
// and the macros make function and argument part of the message:
//   SWITCHYARD_CHECK_IDS(BucketPacked, topk_ids);
// Use only inside functions that return Status.

#ifndef SWITCHYARD_SRC_CHECK_MACROS_H_
#define SWITCHYARD_SRC_CHECK_MACROS_H_

#include <atomic>

#include "src/view_checks.h"
#include "switchyard/isa.h"
#include "switchyard/status.h"
#include "switchyard/types.h"

#define SWITCHYARD_CHECK(condition, message)                                  \
  do {                                                                        \
    if (__builtin_expect(!(condition), 0)) {                                  \
      return ::switchyard::Status(::switchyard::StatusCode::kInvalidArgument, \
                                  (message));                                 \
    }                                                                         \
  } while (false)
// The same of a needed argument, which may be wrong because it is missing.
#define SWITCHYARD_CHECK_NEEDED(fn, m, condition, text)    \
  SWITCHYARD_CHECK(condition,                              \
                   ::switchyard::internal::WrongOrMissing( \
                       m, #fn ": " #m ": " text, #fn ": " #m ": not given"))

// What the data itself shows, when all is written: an answer that the caller
// has to have allowed.
#define SWITCHYARD_CHECK_DATA(condition, message)                    \
  do {                                                               \
    if (__builtin_expect(!(condition), 0)) {                         \
      return ::switchyard::Status(                                   \
          ::switchyard::StatusCode::kFailedPrecondition, (message)); \
    }                                                                \
  } while (false)

// Not the ISA that was asked for: do nothing.
#define SWITCHYARD_CHECK_ISA()                                                \
  do {                                                                        \
    if (::switchyard::simd::g_isa_as_asked.load(std::memory_order_relaxed)) { \
      break;                                                                  \
    }                                                                         \
    const ::switchyard::Status isa = ::switchyard::EnvironmentIsa();          \
    if (!isa.ok()) return isa;                                                \
  } while (false)

// A view by itself: data, stride, size in bytes.
#define SWITCHYARD_CHECK_VIEW(fn, m)                                    \
  do {                                                                  \
    if (__builtin_expect(::switchyard::internal::IsPlain(m), 1)) break; \
    SWITCHYARD_CHECK(!::switchyard::internal::IsNull(m),                \
                     #fn ": " #m ": data is null");                     \
    SWITCHYARD_CHECK(!::switchyard::internal::RowsOverlap(m),           \
                     #fn ": " #m ": stride is smaller than cols");      \
    SWITCHYARD_CHECK(::switchyard::internal::Fits(m),                   \
                     #fn ": " #m ": size overflows the address space"); \
  } while (false)
// The same for an AnyMatrix that has to be of one type, `name`d in the message.
#define SWITCHYARD_CHECK_TYPED(fn, m, type_in, name)                          \
  do {                                                                        \
    SWITCHYARD_CHECK((m).type == (type_in), #fn ": " #m ": has to be " name); \
    SWITCHYARD_CHECK_VIEW(fn, m);                                             \
  } while (false)
#define SWITCHYARD_CHECK_IDS(fn, m)                                            \
  do {                                                                         \
    SWITCHYARD_CHECK_NEEDED(fn, m, ::switchyard::internal::IsIdType((m).type), \
                            "has to be int32, uint32 or int64");               \
    SWITCHYARD_CHECK_VIEW(fn, m);                                              \
  } while (false)

#define SWITCHYARD_CHECK_SHAPE(fn, m, num_rows, num_cols)            \
  SWITCHYARD_CHECK((m).rows == (num_rows) && (m).cols == (num_cols), \
                   #fn ": " #m ": is not [" #num_rows ", " #num_cols "]")

// An output shares no byte with any of the others, up to nine.
#define SWITCHYARD_CHECK_APART(fn, out, ...)                                   \
  do {                                                                         \
    if (::switchyard::internal::ApartFrom(out, __VA_ARGS__)) break;            \
    SWITCHYARD_APART_PICK(__VA_ARGS__, SWITCHYARD_APART_9, SWITCHYARD_APART_8, \
                          SWITCHYARD_APART_7, SWITCHYARD_APART_6,              \
                          SWITCHYARD_APART_5, SWITCHYARD_APART_4,              \
                          SWITCHYARD_APART_3, SWITCHYARD_APART_2,              \
                          SWITCHYARD_APART_1, )                                \
    (fn, out, __VA_ARGS__);                                                    \
  } while (false)
#define SWITCHYARD_APART_PICK(a, b, c, d, e, f, g, h, i, macro, ...) macro
#define SWITCHYARD_APART_1(fn, out, m)                          \
  SWITCHYARD_CHECK(!::switchyard::internal::MayOverlap(out, m), \
                   #fn ": " #out ": overlaps " #m)
#define SWITCHYARD_APART_2(fn, out, m, ...) \
  SWITCHYARD_APART_1(fn, out, m);           \
  SWITCHYARD_APART_1(fn, out, __VA_ARGS__)
#define SWITCHYARD_APART_3(fn, out, m, ...) \
  SWITCHYARD_APART_1(fn, out, m);           \
  SWITCHYARD_APART_2(fn, out, __VA_ARGS__)
#define SWITCHYARD_APART_4(fn, out, m, ...) \
  SWITCHYARD_APART_1(fn, out, m);           \
  SWITCHYARD_APART_3(fn, out, __VA_ARGS__)
#define SWITCHYARD_APART_5(fn, out, m, ...) \
  SWITCHYARD_APART_1(fn, out, m);           \
  SWITCHYARD_APART_4(fn, out, __VA_ARGS__)
#define SWITCHYARD_APART_6(fn, out, m, ...) \
  SWITCHYARD_APART_1(fn, out, m);           \
  SWITCHYARD_APART_5(fn, out, __VA_ARGS__)
#define SWITCHYARD_APART_7(fn, out, m, ...) \
  SWITCHYARD_APART_1(fn, out, m);           \
  SWITCHYARD_APART_6(fn, out, __VA_ARGS__)
#define SWITCHYARD_APART_8(fn, out, m, ...) \
  SWITCHYARD_APART_1(fn, out, m);           \
  SWITCHYARD_APART_7(fn, out, __VA_ARGS__)
#define SWITCHYARD_APART_9(fn, out, m, ...) \
  SWITCHYARD_APART_1(fn, out, m);           \
  SWITCHYARD_APART_8(fn, out, __VA_ARGS__)

namespace switchyard {

namespace simd {
// Once the ISA is chosen, on first use, and unless the environment asked for
// one that cannot run: src/simd/targets.cc.
extern std::atomic<bool> g_isa_as_asked;
}  // namespace simd

namespace internal {

// In a function of its own: as an expression in the check, it took a call of
// Combine 12 of 1632 instructions, because of what it kept in registers.
template <class M>
[[gnu::cold, gnu::noinline]] const char* WrongOrMissing(const M& m,
                                                        const char* wrong,
                                                        const char* missing) {
  return Given(m) ? wrong : missing;
}

// Whether all pairs of these are apart.
template <class... Views>
[[gnu::always_inline]] inline bool AllApart(const Views&... views) {
  const Interval at[] = {Interval(views)...};
  bool apart = true;
  for (size_t i = 0; i < sizeof...(views); ++i) {
    for (size_t j = 0; j < i; ++j) {
      apart &= (at[i].end <= at[j].begin) | (at[j].end <= at[i].begin);
    }
  }
  return apart;
}

}  // namespace internal
}  // namespace switchyard

#endif  // SWITCHYARD_SRC_CHECK_MACROS_H_
