// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The pointers of kernels to memory: plain pointers or, in checked mode, a
// CheckedPointer, which checks every access. kernel.h includes this file and
// explains the model.

#ifndef SWITCHYARD_DEVICE_KERNEL_POINTERS_H_
#define SWITCHYARD_DEVICE_KERNEL_POINTERS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "switchyard/device/kernel_memory.h"
#include "switchyard/device/kernel_types.h"
#include "switchyard/device/threadgroup.h"

namespace switchyard::device {

template <class T>
class CheckedElement;
template <class T>
class CheckedMember;
template <class T>
class CheckedPointer;

namespace kernel_internal {

// An overload of SwitchyardMembersOf(), in the namespace of a vector or of a
// struct with SWITCHYARD_MEMBERS, declares the members of that type. The
// function is never defined. C is the type, which is const if its memory is
// const.
template <class C, class T, int N>
struct VecMembers;
template <class C, class T, int N>
VecMembers<C, T, N> SwitchyardMembersOf(C*, const ::metal::vec<T, N>*);

struct NoMembers {
  NoMembers(const View*, ptrdiff_t) {}
};
template <class C, class = void>
struct FindMembers {
  static constexpr bool kFound = false;
  using Type = NoMembers;
};
template <class C>
struct FindMembers<C,
                   std::void_t<decltype(SwitchyardMembersOf(
                       static_cast<C*>(nullptr),
                       static_cast<const std::remove_const_t<C>*>(nullptr)))>> {
  static constexpr bool kFound = true;
  using Type = decltype(SwitchyardMembersOf(
      static_cast<C*>(nullptr),
      static_cast<const std::remove_const_t<C>*>(nullptr)));
};

// The type that checked mode uses for a struct C's member of type M. For
// an array member it is a pointer.
template <class C, class M>
struct MemberOf {
  using Element = std::conditional_t<std::is_const_v<C>, const M, M>;
  using Type = CheckedMember<Element>;
};
template <class C, class M, size_t N>
struct MemberOf<C, M[N]> {
  using Element = std::conditional_t<std::is_const_v<C>, const M, M>;
  using Type = CheckedPointer<Element>;
};

template <class V>
constexpr bool kIsElement = false;
template <class T>
constexpr bool kIsElement<CheckedElement<T>> = true;
template <class T>
constexpr bool kIsElement<CheckedMember<T>> = true;
template <class V>
constexpr bool kIsPointer = false;
template <class T>
constexpr bool kIsPointer<CheckedPointer<T>> = true;
// Returns the value of an element, and any other argument unchanged.
template <class V>
auto ValueOf(V&& value) {
  if constexpr (kIsElement<std::decay_t<V>>) {
    return static_cast<typename std::decay_t<V>::Value>(
        static_cast<const std::decay_t<V>&&>(value));
  } else {
    return value;
  }
}

// The base of CheckedElement and CheckedMember. It refers to an element in
// memory; Load() reads the element and Store() writes it, after a check.
template <class T>
class ElementAccess {
 public:
  using Value = std::remove_const_t<T>;
  ElementAccess(const ElementAccess&) = delete;

 protected:
  ElementAccess(const View* view, ptrdiff_t offset)
      : view_(view), offset_(offset) {}

  Value Load() const {
    if constexpr (kIsWord) {
      CheckRead(*view_, offset_);
    } else {
      CheckAccess(*view_, offset_, sizeof(T), kReads);
    }
    Value value;
    std::memcpy(static_cast<void*>(&value), view_->data + offset_, sizeof(T));
    return value;
  }
  T Store(T value) const {
    static_assert(!std::is_const_v<T>, "what is const is not written");
    if constexpr (kIsWord) {
      CheckWrite(*view_, offset_);
    } else {
      CheckAccess(*view_, offset_, sizeof(T), kWrites);
    }
    std::memcpy(view_->data + offset_, static_cast<const void*>(&value),
                sizeof(T));
    return value;
  }

 private:
  // An alignment of 4 is required, because a pair of halves may lie in two
  // words.
  static constexpr bool kIsWord = sizeof(T) == 4 && alignof(T) == 4;

  const View* const view_;
  const ptrdiff_t offset_;
};

}  // namespace kernel_internal

// The compound operators read the right side before the left side.
#define SWITCHYARD_COMPOUND(op, qualifier)                                   \
  template <class V>                                                         \
  T operator op##=(V&& swy_v) qualifier {                                    \
    const auto swy_right = kernel_internal::ValueOf(std::forward<V>(swy_v)); \
    return this->Store(static_cast<T>(this->Load() op swy_right));           \
  }
#define SWITCHYARD_ELEMENT_OPERATORS(qualifier)                            \
  operator typename Base::Value() const qualifier { return this->Load(); } \
  T operator=(T swy_value) qualifier { return this->Store(swy_value); }    \
  SWITCHYARD_COMPOUND(+, qualifier)                                        \
  SWITCHYARD_COMPOUND(-, qualifier)                                        \
  SWITCHYARD_COMPOUND(*, qualifier)                                        \
  SWITCHYARD_COMPOUND(/, qualifier)                                        \
  SWITCHYARD_COMPOUND(%, qualifier)                                        \
  SWITCHYARD_COMPOUND(&, qualifier)                                        \
  SWITCHYARD_COMPOUND(|, qualifier)                                        \
  SWITCHYARD_COMPOUND(^, qualifier)                                        \
  SWITCHYARD_COMPOUND(<<, qualifier)                                       \
  SWITCHYARD_COMPOUND(>>, qualifier)                                       \
  T operator++() qualifier {                                               \
    return this->Store(static_cast<T>(this->Load() + T(1)));               \
  }                                                                        \
  T operator--() qualifier {                                               \
    return this->Store(static_cast<T>(this->Load() - T(1)));               \
  }                                                                        \
  T operator++(int) qualifier {                                            \
    const T swy_old = this->Load();                                        \
    this->Store(static_cast<T>(swy_old + T(1)));                           \
    return swy_old;                                                        \
  }                                                                        \
  T operator--(int) qualifier {                                            \
    const T swy_old = this->Load();                                        \
    this->Store(static_cast<T>(swy_old - T(1)));                           \
    return swy_old;                                                        \
  }

// An element of a CheckedPointer. A conversion to T reads the element, and an
// assignment writes it. Use the element only in the expression that made it:
// write `float v = p[i]`, because after `auto v = p[i]` uses of v do not
// compile. If T has members, they are members of this class too, and p[i].x
// accesses only x.
template <class T>
class CheckedElement : public kernel_internal::ElementAccess<T>,
                       public kernel_internal::FindMembers<T>::Type {
  using Base = kernel_internal::ElementAccess<T>;
  using Members = typename kernel_internal::FindMembers<T>::Type;

 public:
  SWITCHYARD_ELEMENT_OPERATORS(&&)
  T operator=(CheckedElement&& swy_other) && {
    return this->Store(swy_other.Load());
  }

 private:
  template <class U>
  friend class CheckedPointer;
  CheckedElement(const kernel_internal::View* swy_view, ptrdiff_t swy_offset)
      : Base(swy_view, swy_offset), Members(swy_view, swy_offset) {}
};

// A member of an element, from p[i].member or p->member.
template <class T>
class CheckedMember : public kernel_internal::ElementAccess<T>,
                      public kernel_internal::FindMembers<T>::Type {
  using Base = kernel_internal::ElementAccess<T>;
  using Members = typename kernel_internal::FindMembers<T>::Type;

 public:
  CheckedMember(const kernel_internal::View* swy_view, ptrdiff_t swy_offset)
      : Base(swy_view, swy_offset), Members(swy_view, swy_offset) {}
  SWITCHYARD_ELEMENT_OPERATORS()
  T operator=(const CheckedMember& swy_other) {
    return this->Store(swy_other.Load());
  }
};

#undef SWITCHYARD_ELEMENT_OPERATORS
#undef SWITCHYARD_COMPOUND

namespace kernel_internal {

// True for an element that is a half or a vector. Such an element needs its
// own operators, because the operators of halves and vectors are templates,
// which ignore the element's conversion.
template <class V>
constexpr bool kIsClassElement = false;
template <class T>
constexpr bool kIsClassElement<CheckedElement<T>> = std::is_class_v<T>;
template <class T>
constexpr bool kIsClassElement<CheckedMember<T>> = std::is_class_v<T>;

}  // namespace kernel_internal

#define SWITCHYARD_BINARY(op)                                        \
  template <class A, class B,                                        \
            class = std::enable_if_t<                                \
                kernel_internal::kIsClassElement<std::decay_t<A>> || \
                kernel_internal::kIsClassElement<std::decay_t<B>>>>  \
  auto operator op(A&& a, B&& b) {                                   \
    return kernel_internal::ValueOf(std::forward<A>(a))              \
        op kernel_internal::ValueOf(std::forward<B>(b));             \
  }
SWITCHYARD_BINARY(+)
SWITCHYARD_BINARY(-)
SWITCHYARD_BINARY(*)
SWITCHYARD_BINARY(/)
SWITCHYARD_BINARY(==)
SWITCHYARD_BINARY(!=)
SWITCHYARD_BINARY(<)
SWITCHYARD_BINARY(<=)
SWITCHYARD_BINARY(>)
SWITCHYARD_BINARY(>=)
#undef SWITCHYARD_BINARY

// Stands for T* in checked mode. Indices and pointer arithmetic may go out of
// bounds; only an access is checked. Do not keep the pointer beyond the
// kernel's call.
template <class T>
class CheckedPointer {
  static constexpr bool kHasMembers = kernel_internal::FindMembers<T>::kFound;
  template <class Index>
  using IfIndex =
      std::enable_if_t<!kernel_internal::kIsPointer<std::decay_t<Index>>>;

 public:
  static_assert(kernel_internal::kIsBytes<T>,
                "buffers hold types that can be copied byte by byte");
  static_assert(sizeof(T) <= 4096, "an element has at most 4096 bytes");

  CheckedPointer(const kernel_internal::View* view, ptrdiff_t offset)
      : view_(view), offset_(offset) {}
  operator CheckedPointer<const T>() const {  // NOLINT(runtime/explicit)
    return CheckedPointer<const T>(view_, offset_);
  }

  // Returns a CheckedElement<T>, or the value if T is const and has no
  // members.
  template <class Index>
  decltype(auto) operator[](Index&& index) const {
    const ptrdiff_t offset = kernel_internal::OffsetOf<T>(
        *view_, offset_, kernel_internal::ValueOf(std::forward<Index>(index)));
    if constexpr (std::is_const_v<T> && !kHasMembers) {
      return static_cast<std::remove_const_t<T>>(
          CheckedElement<T>(view_, offset));
    } else {
      return CheckedElement<T>(view_, offset);
    }
  }
  decltype(auto) operator*() const { return (*this)[0]; }

  // The result of operator->, for p->member.
  class Arrow {
   public:
    Arrow(const kernel_internal::View* view, ptrdiff_t offset)
        : members_(view, offset) {}
    auto* operator->() { return &members_; }

   private:
    typename kernel_internal::FindMembers<T>::Type members_;
  };
  Arrow operator->() const {
    static_assert(kHasMembers,
                  "checked mode has to know the members of a struct: behind "
                  "it, SWITCHYARD_MEMBERS(Struct, member, ...)");
    return Arrow(view_, offset_);
  }

  template <class Index>
  CheckedPointer& operator+=(Index&& index) {
    const ptrdiff_t moved = kernel_internal::OffsetOf<T>(
        *view_, offset_, kernel_internal::ValueOf(std::forward<Index>(index)));
    constexpr ptrdiff_t kMost = kernel_internal::kMostElements * 4096;
    if (moved < -kMost || moved > kMost) {
      kernel_internal::IndexOverflows(*view_, sizeof(T));
    }
    offset_ = moved;
    return *this;
  }
  template <class Index>
  CheckedPointer& operator-=(Index&& index) {
    const ptrdiff_t i = static_cast<ptrdiff_t>(
        kernel_internal::ValueOf(std::forward<Index>(index)));
    return *this += i < -kernel_internal::kMostElements
                        ? kernel_internal::kMostElements
                        : -i;
  }
  CheckedPointer& operator++() { return *this += 1; }
  CheckedPointer& operator--() { return *this -= 1; }
  CheckedPointer operator++(int) {
    const CheckedPointer old = *this;
    ++*this;
    return old;
  }
  CheckedPointer operator--(int) {
    const CheckedPointer old = *this;
    --*this;
    return old;
  }
  template <class Index, class = IfIndex<Index>>
  friend CheckedPointer operator+(CheckedPointer p, Index&& index) {
    return p += std::forward<Index>(index);
  }
  template <class Index, class = IfIndex<Index>>
  friend CheckedPointer operator-(CheckedPointer p, Index&& index) {
    return p -= std::forward<Index>(index);
  }

  // Returns the distance of the two pointers in elements. It has a meaning
  // only within one buffer.
  template <class U>
  ptrdiff_t operator-(CheckedPointer<U> other) const {
    static_assert(std::is_same_v<const T, const U>,
                  "a difference of pointers to the same type");
    return (Address() - other.Address()) / static_cast<ptrdiff_t>(sizeof(T));
  }
#define SWITCHYARD_COMPARISON(op)                   \
  template <class U>                                \
  bool operator op(CheckedPointer<U> other) const { \
    return Address() op other.Address();            \
  }
  SWITCHYARD_COMPARISON(==)
  SWITCHYARD_COMPARISON(!=)
  SWITCHYARD_COMPARISON(<)
  SWITCHYARD_COMPARISON(<=)
  SWITCHYARD_COMPARISON(>)
  SWITCHYARD_COMPARISON(>=)
#undef SWITCHYARD_COMPARISON

 private:
  template <class U>
  friend class CheckedPointer;
  template <class U, class V>
  friend CheckedPointer<U> pointer_cast(CheckedPointer<V> p);
  template <class Pointer>
  friend class AtomicPointer;

  ptrdiff_t Address() const {
    return static_cast<ptrdiff_t>(reinterpret_cast<intptr_t>(view_->data)) +
           offset_;
  }

  const kernel_internal::View* view_;
  ptrdiff_t offset_;
};

// Converts p to a pointer to another type, as MSL's `(threadgroup int*)p`
// does. As in C++, do not read an object of one type as another type.
template <class U, class T>
U* pointer_cast(T* p) {
  return reinterpret_cast<U*>(p);
}
template <class U, class T>
CheckedPointer<U> pointer_cast(CheckedPointer<T> p) {
  static_assert(std::is_const_v<U> || !std::is_const_v<T>,
                "pointer_cast: what is const stays const");
  const uintptr_t address = reinterpret_cast<uintptr_t>(p.view_->data) +
                            static_cast<uintptr_t>(p.offset_);
  if (address % alignof(U) != 0) {
    kernel_internal::NotAligned(*p.view_, p.offset_, alignof(U));
  }
  return CheckedPointer<U>(p.view_, p.offset_);
}

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNEL_POINTERS_H_
