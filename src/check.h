// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Argument checks of the plain API: O(1), before anything is written, with a
// literal message "Function: argument: what is wrong".
//
// A front end binds its arguments to the names that the header gives them,
//   const auto& [rows, topk_weights, ...] = inputs;
// and the macros make function and argument part of the message:
//   SWITCHYARD_CHECK_F32(Combine, rows);
// Use only inside functions that return Status.

#ifndef SWITCHYARD_SRC_CHECK_H_
#define SWITCHYARD_SRC_CHECK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "switchyard/isa.h"
#include "switchyard/status.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

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
#define SWITCHYARD_CHECK_FLOATS(fn, m)                            \
  do {                                                            \
    SWITCHYARD_CHECK(::switchyard::internal::IsFloat((m).type),   \
                     #fn ": " #m ": has to be f32, bf16 or f16"); \
    SWITCHYARD_CHECK_VIEW(fn, m);                                 \
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

// The row function for the types that the arguments before it have.
#define SWITCHYARD_CHECK_KERNEL(fn, rows_function) \
  SWITCHYARD_CHECK((rows_function) != nullptr,     \
                   #fn ": no kernel for the types of its arguments")

// An option is one of an enumeration whose members `list` has, each once.
#define SWITCHYARD_CHECK_LISTED(fn, option, Enum, list)                   \
  do {                                                                    \
    bool listed = false;                                                  \
    using Listed = ::switchyard::Enum;                                    \
    const Listed value = options.option;                                  \
    list(SWITCHYARD_IS_LISTED);                                           \
    SWITCHYARD_CHECK(listed,                                              \
                     #fn ": options: " #option " is not a known " #Enum); \
  } while (false)
#define SWITCHYARD_IS_LISTED(name, ...) listed |= value == Listed::name;

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

// Where in-place is allowed: disjoint, or exactly the same view.
#define SWITCHYARD_CHECK_APART_OR_SAME(fn, out, m)                  \
  SWITCHYARD_CHECK(::switchyard::internal::ApartFrom(out, m) ||     \
                       ::switchyard::internal::SameView(out, m) ||  \
                       !::switchyard::internal::MayOverlap(out, m), \
                   #fn ": " #out ": overlaps " #m                   \
                       " without being the same view")

namespace switchyard {

namespace simd {
// Once the ISA is chosen, on first use, and unless the environment asked for
// one that cannot run: src/simd/targets.cc.
extern std::atomic<bool> g_isa_as_asked;
}  // namespace simd

namespace internal {

// Bytes of that many elements of a view's.
template <class T>
constexpr size_t Bytes(const Matrix<T>&, size_t elements) {
  return elements * sizeof(T);
}
template <class V>
constexpr size_t Bytes(const BasicAnyMatrix<V>& m, size_t elements) {
  return BytesOf(m.type, elements);
}
// How many elements have no more than PTRDIFF_MAX bytes.
template <class T>
constexpr size_t MostElements(const Matrix<T>&) {
  return static_cast<size_t>(PTRDIFF_MAX) / sizeof(T);
}
template <class V>
constexpr size_t MostElements(const BasicAnyMatrix<V>& m) {
  const size_t size = SizeOf(m.type);
  return size == 0
             ? 0
             : (static_cast<size_t>(PTRDIFF_MAX) / size) << BlockBits(m.type);
}

constexpr bool IsFloat(Type type) {
  return type == Type::kF32 || type == Type::kBF16 || type == Type::kF16;
}
constexpr bool IsIdType(Type type) {
  return type == Type::kI32 || type == Type::kU32 || type == Type::kI64;
}

// Whether 0 <= x <= most. By the bits: comparing a NaN would trap where the
// caller has unmasked floating-point exceptions.
inline bool IsUpTo(float most, float x) {
  uint32_t bits, most_bits;
  std::memcpy(&bits, &x, sizeof(x));
  std::memcpy(&most_bits, &most, sizeof(most));
  return bits <= most_bits || bits == 0x80000000;  // -0
}

// An optional argument that is there. One made from an empty vector is not.
template <class M>
bool Given(const M& m) {
  return m.data != nullptr || m.cols != 0 || m.rows > 1;
}
template <class T>
bool Given(const Span<T>& s) {
  return s.data != nullptr || s.size != 0;
}

// In a function of its own: as an expression in the check, it took a call of
// Combine 12 of 1632 instructions, because of what it kept in registers.
template <class M>
[[gnu::cold, gnu::noinline]] const char* WrongOrMissing(const M& m,
                                                        const char* wrong,
                                                        const char* missing) {
  return Given(m) ? wrong : missing;
}

// Lets ordinary views through by a look at a few bits: not null, fewer than
// 2^30 rows and elements of stride (so below 2^63 bytes), in the lower half of
// the address space. The exact checks take six times as long: for all views of
// a call, as long as a small kernel.
static_assert(sizeof(size_t) == 8, "IsPlain counts on 64 bits");
template <class M>
bool IsPlain(const M& m) {
  return m.data != nullptr && m.stride >= m.cols &&
         ((m.rows | m.stride) >> 30 |
          reinterpret_cast<uintptr_t>(m.data) >> 63) == 0;
}
template <class T>
bool IsPlain(const Span<T>& s) {
  return s.data != nullptr &&
         (s.size >> 30 | reinterpret_cast<uintptr_t>(s.data) >> 63) == 0;
}

template <class M>
bool IsNull(const M& m) {
  return m.data == nullptr && m.rows != 0 && m.cols != 0;
}
template <class T>
bool IsNull(const Span<T>& s) {
  return s.data == nullptr && s.size != 0;
}

template <class M>
bool RowsOverlap(const M& m) {
  return m.rows > 1 && m.stride < m.cols;
}
template <class T>
bool RowsOverlap(const Span<T>&) {
  return false;
}

// The last byte's offset fits ptrdiff_t and the address does not wrap. Like all
// that only odd views come to, this is in check.cc, once: in each front end's
// object it was 50 KB of the archive.
bool Fits(const AnyMatrix& m);
bool Fits(const ConstAnyMatrix& m);
bool Fits(const void* data, size_t elements, size_t element_bytes);
template <class T>
bool Fits(const Span<T>& s) {
  return Fits(s.data, s.size, sizeof(T));
}

// What a view occupies: `rows` pieces of `row_bytes`, `stride_bytes` apart.
struct Region {
  uintptr_t begin = 0;
  size_t rows = 0;
  size_t row_bytes = 0;
  size_t stride_bytes = 0;  // 0 for a single row, whatever the view says

  explicit Region(const ConstAnyMatrix& m);
  template <class T>
  explicit Region(const Span<T>& s)
      : begin(reinterpret_cast<uintptr_t>(s.data)),
        rows(1),
        row_bytes(s.size * sizeof(T)) {}

  bool Empty() const { return rows == 0 || row_bytes == 0; }
  uintptr_t End() const {
    return begin + (rows - 1) * stride_bytes + row_bytes;
  }
};

// From a view's first byte to behind its last.
struct Interval {
  uintptr_t begin;
  uintptr_t end;

  template <class M>
  explicit Interval(const M& m)
      : begin(reinterpret_cast<uintptr_t>(m.data)), end(begin) {
    if (m.rows != 0) {
      end += Bytes(m, m.cols + (m.rows == 1 ? 0 : (m.rows - 1) * m.stride));
    }
  }
  template <class T>
  explicit Interval(const Span<T>& s)
      : begin(reinterpret_cast<uintptr_t>(s.data)),
        end(begin + s.size * sizeof(T)) {}
};

// Whether two views whose intervals meet may share a byte. Views of equal
// stride (a single row takes the other's) are disjoint if their columns modulo
// the stride are, as in a fused gate|up matrix; for others the intervals stand.
bool MayOverlap(Region a, Region b);

// Whether the byte interval of `view` meets none of the others'. Almost always
// so, and then MayOverlap() is not needed, which for all pairs of a call takes
// as long as a small kernel.
template <class View, class... Others>
[[gnu::always_inline]] inline bool ApartFrom(const View& view,
                                             const Others&... others) {
  const Interval x(view);
  const auto apart = [x](const Interval& y) {
    return (x.end <= y.begin) | (y.end <= x.begin);
  };
  return (apart(Interval(others)) & ...);
}

// The same for each pair of them.
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

// Whether two views may share a byte, by all that is known of them.
bool MayOverlap(const AnyMatrix& a, const AnyMatrix& b);
bool MayOverlap(const AnyMatrix& a, const ConstAnyMatrix& b);
template <class T>
bool MayOverlap(const AnyMatrix& a, const Span<T>& b) {
  return !ApartFrom(a, b) && MayOverlap(Region(a), Region(b));
}
template <class T, class M>
bool MayOverlap(const Span<T>& a, const M& b) {
  return !ApartFrom(a, b) && MayOverlap(Region(a), Region(b));
}

// The same elements: what "in place" means.
template <class V, class W>
bool SameView(const BasicAnyMatrix<V>& a, const BasicAnyMatrix<W>& b) {
  return static_cast<const void*>(a.data) == static_cast<const void*>(b.data) &&
         a.type == b.type && a.rows == b.rows && a.cols == b.cols &&
         (a.rows <= 1 || a.stride == b.stride);
}

}  // namespace internal
}  // namespace switchyard

#endif  // SWITCHYARD_SRC_CHECK_H_
