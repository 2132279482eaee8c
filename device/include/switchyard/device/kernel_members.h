// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Gives checked kernels access to single members of vectors and structs.
// kernel.h includes this file.

#ifndef SWITCHYARD_DEVICE_KERNEL_MEMBERS_H_
#define SWITCHYARD_DEVICE_KERNEL_MEMBERS_H_

#include <cstddef>

#include "switchyard/device/kernel_memory.h"
#include "switchyard/device/kernel_pointers.h"

namespace switchyard::device {

namespace kernel_internal {

template <class C, class T>
struct VecMembers<C, T, 2> {
  typename MemberOf<C, T>::Type x, y;
  VecMembers(const View* view, ptrdiff_t offset)
      : x(view, offset), y(view, offset + ptrdiff_t{sizeof(T)}) {}
};
template <class C, class T>
struct VecMembers<C, T, 3> : VecMembers<C, T, 2> {
  typename MemberOf<C, T>::Type z;
  VecMembers(const View* view, ptrdiff_t offset)
      : VecMembers<C, T, 2>(view, offset),
        z(view, offset + 2 * ptrdiff_t{sizeof(T)}) {}
};
template <class C, class T>
struct VecMembers<C, T, 4> : VecMembers<C, T, 3> {
  typename MemberOf<C, T>::Type w;
  VecMembers(const View* view, ptrdiff_t offset)
      : VecMembers<C, T, 3>(view, offset),
        w(view, offset + 3 * ptrdiff_t{sizeof(T)}) {}
};

}  // namespace kernel_internal

}  // namespace switchyard::device

// Lists the members of a struct, at most 12, so that checked kernels can
// access them. p->key and p[i].key then read or write only that member, and
// p[i].values[j] reads or writes one element of an array member. Put the
// macro after the struct, in the struct's namespace:
//
//   struct Pair { uint32_t key; float values[4]; };
//   SWITCHYARD_MEMBERS(Pair, key, values)
#define SWITCHYARD_MEMBERS(Struct, ...)                                     \
  template <class SwitchyardC>                                              \
  struct SwitchyardMembers_##Struct {                                       \
    using SwitchyardStruct = Struct;                                        \
    SWITCHYARD_EACH(SWITCHYARD_DECLARE_MEMBER, __VA_ARGS__)                 \
    SwitchyardMembers_##Struct(                                             \
        const ::switchyard::device::kernel_internal::View* switchyard_view, \
        ptrdiff_t switchyard_at)                                            \
        : SWITCHYARD_EACH(SWITCHYARD_MAKE_MEMBER, __VA_ARGS__)              \
              switchyard_offset(switchyard_at) {}                           \
    const ptrdiff_t switchyard_offset;                                      \
  };                                                                        \
  template <class SwitchyardC>                                              \
  SwitchyardMembers_##Struct<SwitchyardC> SwitchyardMembersOf(SwitchyardC*, \
                                                              const Struct*);
#define SWITCHYARD_DECLARE_MEMBER(member)                   \
  typename ::switchyard::device::kernel_internal::MemberOf< \
      SwitchyardC, decltype(SwitchyardStruct::member)>::Type member;
#define SWITCHYARD_MAKE_MEMBER(member)                                     \
  member(switchyard_view, switchyard_at + static_cast<ptrdiff_t>(offsetof( \
                                              SwitchyardStruct, member))),
// Expands to f(m) for each member m.
#define SWITCHYARD_EACH(f, ...)                                          \
  SWITCHYARD_PICK(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0) \
  (f, __VA_ARGS__, 0)
#define SWITCHYARD_PICK(a, b, c, d, e, f, g, h, i, j, k, l, count, ...) \
  SWITCHYARD_EACH_##count
#define SWITCHYARD_EACH_1(f, m, ...) f(m)
#define SWITCHYARD_EACH_2(f, m, ...) f(m) SWITCHYARD_EACH_1(f, __VA_ARGS__)
#define SWITCHYARD_EACH_3(f, m, ...) f(m) SWITCHYARD_EACH_2(f, __VA_ARGS__)
#define SWITCHYARD_EACH_4(f, m, ...) f(m) SWITCHYARD_EACH_3(f, __VA_ARGS__)
#define SWITCHYARD_EACH_5(f, m, ...) f(m) SWITCHYARD_EACH_4(f, __VA_ARGS__)
#define SWITCHYARD_EACH_6(f, m, ...) f(m) SWITCHYARD_EACH_5(f, __VA_ARGS__)
#define SWITCHYARD_EACH_7(f, m, ...) f(m) SWITCHYARD_EACH_6(f, __VA_ARGS__)
#define SWITCHYARD_EACH_8(f, m, ...) f(m) SWITCHYARD_EACH_7(f, __VA_ARGS__)
#define SWITCHYARD_EACH_9(f, m, ...) f(m) SWITCHYARD_EACH_8(f, __VA_ARGS__)
#define SWITCHYARD_EACH_10(f, m, ...) f(m) SWITCHYARD_EACH_9(f, __VA_ARGS__)
#define SWITCHYARD_EACH_11(f, m, ...) f(m) SWITCHYARD_EACH_10(f, __VA_ARGS__)
#define SWITCHYARD_EACH_12(f, m, ...) f(m) SWITCHYARD_EACH_11(f, __VA_ARGS__)

#endif  // SWITCHYARD_DEVICE_KERNEL_MEMBERS_H_
