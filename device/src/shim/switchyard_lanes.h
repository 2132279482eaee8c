// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Does the work of simd and quad functions after all their lanes have met.

#ifndef SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_LANES_H_
#define SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_LANES_H_

#include "metal_integer"
#include "switchyard_lane_operations.h"
#include "switchyard_module.h"

namespace switchyard_metal {

// The arguments that one lane gives to a call, and its result.
template <class T>
struct Lane {
  T value;
  T other;  // for fills: the value to fill in
  T result;
  u32 number;    // the lane, distance or mask that the function gets
  u32 modulo;    // for fills: the size of a block of lanes
  bool missing;  // set to true if the requested lane does not exist
};

template <class T>
SWITCHYARD_NOT_CHECKED Lane<T>* LaneAt(void* const* slots, u32 i) {
  return static_cast<Lane<T>*>(slots[i]);
}

// Gives access to the values of the lanes that have met.
template <class T>
struct ValueAt {
  void* const* slots;
  SWITCHYARD_NOT_CHECKED const T* operator()(u32 i) const {
    return slots[i] == nullptr ? nullptr : &LaneAt<T>(slots, i)->value;
  }
};
template <class T>
struct ResultAt {
  void* const* slots;
  SWITCHYARD_NOT_CHECKED void operator()(u32 i, const T& result) const {
    LaneAt<T>(slots, i)->result = result;
  }
};

// Computes a reduction, and gives all lanes the result.
template <class Reduction>
struct ToAll {
  template <class T>
  SWITCHYARD_NOT_CHECKED static void Run(void* const* slots, u32 lanes,
                                         const void*) {
    const T all = Reduction::template Apply<T>(ValueAt<T>{slots}, lanes);
    for (u32 i = 0; i < lanes; ++i) {
      if (slots[i] != nullptr) LaneAt<T>(slots, i)->result = all;
    }
  }
};
template <class Operation>
struct ToEach {
  template <class T>
  SWITCHYARD_NOT_CHECKED static void Run(void* const* slots, u32 lanes,
                                         const void*) {
    Operation::template Run<T>(ValueAt<T>{slots}, lanes, ResultAt<T>{slots});
  }
};

using SumToAll = ToAll<Halve<LaneSum>>;
using ProductToAll = ToAll<Halve<LaneProduct>>;
using MaxToAll = ToAll<Fold<LaneMax>>;
using MinToAll = ToAll<Fold<LaneMin>>;
using AndToAll = ToAll<Fold<LaneAnd>>;
using OrToAll = ToAll<Fold<LaneOr>>;
using XorToAll = ToAll<Fold<LaneXor>>;
using FirstToAll = ToAll<Fold<First>>;
using InclusiveSum = ToEach<Prefix<LaneSum, true>>;
using ExclusiveSum = ToEach<Prefix<LaneSum, false>>;
using InclusiveProduct = ToEach<Prefix<LaneProduct, true>>;
using ExclusiveProduct = ToEach<Prefix<LaneProduct, false>>;

// A shuffle. From::Apply computes from which lane a lane reads.
template <class From>
struct Move {
  template <class T>
  SWITCHYARD_NOT_CHECKED static void Run(void* const* slots, u32 lanes,
                                         const void*) {
    for (u32 i = 0; i < lanes; ++i) {
      if (slots[i] == nullptr) continue;
      Lane<T>* const lane = LaneAt<T>(slots, i);
      const u32 from = From::Apply(i, lane->number, lanes);
      if (from < lanes && slots[from] != nullptr) {
        lane->result = LaneAt<T>(slots, from)->value;
      } else {
        lane->result = T();
        lane->missing = true;
      }
    }
  }
};
// Shuffles by a distance in blocks of `modulo` lanes. A lane that would read
// from outside its block wraps around to the block's other end, and gets the
// `other` value of the lane there.
template <bool kUp>
struct Fill {
  template <class T>
  SWITCHYARD_NOT_CHECKED static void Run(void* const* slots, u32 lanes,
                                         const void*) {
    for (u32 i = 0; i < lanes; ++i) {
      if (slots[i] == nullptr) continue;
      Lane<T>* const lane = LaneAt<T>(slots, i);
      const u32 size = lane->modulo < lanes ? lane->modulo : lanes;
      const u32 at = i % size;
      const u32 by = lane->number;
      const bool inside = kUp ? at >= by : by < size - at;
      const u32 from = i - at + (kUp ? at - by : at + by) +
                       (inside ? 0
                        : kUp  ? size
                               : -size);
      if (from >= lanes || slots[from] == nullptr) {
        lane->result = T();
        lane->missing = true;
      } else if (inside) {
        lane->result = LaneAt<T>(slots, from)->value;
      } else {
        lane->result = LaneAt<T>(slots, from)->other;
      }
    }
  }
};

// Computes a mask: bit l is set if lane l takes part and its value is true.
struct Ballot {
  SWITCHYARD_NOT_CHECKED static void Run(void* const* slots, u32 lanes,
                                         const void*) {
    ulong bits = 0, there = 0;
    for (u32 i = 0; i < lanes; ++i) {
      if (slots[i] == nullptr) continue;
      there |= 1ul << i;
      if (LaneAt<ulong>(slots, i)->value != 0) bits |= 1ul << i;
    }
    for (u32 i = 0; i < lanes; ++i) {
      if (slots[i] == nullptr) continue;
      Lane<ulong>* const lane = LaneAt<ulong>(slots, i);
      lane->result = bits;
      lane->other = there;
      lane->number = i;
    }
  }
};

template <class Operation, class T>
SWITCHYARD_MEETS inline T Meet(T value, T other, u32 number, u32 modulo,
                               const char* name, const char* missing,
                               bool quad) {
  Lane<T> lane{value, other, value, number, modulo, false};
  swy_simd(&lane, &Operation::template Run<T>, nullptr, name, quad);
#ifdef SWITCHYARD_METAL_CHECKED
  if (lane.missing) swy_fail(missing);
#endif
  return lane.result;
}
SWITCHYARD_MEETS inline Lane<ulong> Vote(bool value, const char* name,
                                         bool quad) {
  Lane<ulong> lane{value, 0, 0, 0, 0, false};
  swy_simd(&lane, &Ballot::Run, nullptr, name, quad);
  return lane;
}
// The types simd_vote and quad_vote. They have a bit for each lane; kLanes
// has all bits.
template <class T, T kLanes>
class LaneVote {
 public:
  using vote_t = T;
  explicit constexpr LaneVote(vote_t bits = 0) : bits_(bits) {}
  explicit constexpr operator vote_t() const { return bits_; }
  constexpr bool all() const { return (bits_ & kLanes) == kLanes; }
  constexpr bool any() const { return (bits_ & kLanes) != 0; }

 private:
  vote_t bits_;
};
// Returns the running thread's index in its simdgroup.
inline u32 ThisLane() { return swy_lane(); }

}  // namespace switchyard_metal

// Macros that define functions. `prefix` is simd or quad.
#define SWITCHYARD_REDUCTION(name, Operation, prefix, kQuad)    \
  template <class A, class T = switchyard_metal::IfAny<A>>      \
  SWITCHYARD_MEETS inline T prefix##_##name(const A& data) {    \
    const T value = data;                                       \
    return switchyard_metal::Meet<switchyard_metal::Operation>( \
        value, value, 0, 0, #prefix "_" #name, "", kQuad);      \
  }
#define SWITCHYARD_SHUFFLE(name, Operation, prefix, kQuad)                  \
  template <class A, class T = switchyard_metal::IfAny<A>>                  \
  SWITCHYARD_MEETS inline T prefix##_##name(const A& data, ushort number) { \
    const T value = data;                                                   \
    return switchyard_metal::Meet<                                          \
        switchyard_metal::Move<switchyard_metal::Operation>>(               \
        value, value, number, 0, #prefix "_" #name,                         \
        #prefix "_" #name " reads from a lane that does not exist", kQuad); \
  }
#define SWITCHYARD_FILL(name, kUp, prefix, kQuad)                             \
  template <class A, class B, class T = switchyard_metal::IfAny<A>>           \
  SWITCHYARD_MEETS inline T prefix##_##name(const A& data, const B& filling,  \
                                            ushort delta,                     \
                                            ushort modulo = kQuad ? 4 : 32) { \
    const T value = data;                                                     \
    const T other = static_cast<T>(filling);                                  \
    return switchyard_metal::Meet<switchyard_metal::Fill<kUp>>(               \
        value, other, delta, modulo, #prefix "_" #name,                       \
        #prefix "_" #name " reads from a lane that does not exist", kQuad);   \
  }
// Calls the macro X for each function with the function's name, its
// operation, and the other arguments.
#define SWITCHYARD_REDUCTIONS(X, ...)                        \
  X(sum, SumToAll, __VA_ARGS__)                              \
  X(product, ProductToAll, __VA_ARGS__)                      \
  X(max, MaxToAll, __VA_ARGS__)                              \
  X(min, MinToAll, __VA_ARGS__)                              \
  X(prefix_inclusive_sum, InclusiveSum, __VA_ARGS__)         \
  X(prefix_exclusive_sum, ExclusiveSum, __VA_ARGS__)         \
  X(prefix_inclusive_product, InclusiveProduct, __VA_ARGS__) \
  X(prefix_exclusive_product, ExclusiveProduct, __VA_ARGS__) \
  X(broadcast_first, FirstToAll, __VA_ARGS__)
#define SWITCHYARD_BIT_REDUCTIONS(X, ...) \
  X(and, AndToAll, __VA_ARGS__)           \
  X(or, OrToAll, __VA_ARGS__)             \
  X(xor, XorToAll, __VA_ARGS__)
#define SWITCHYARD_SHUFFLES(X, ...)                  \
  X(broadcast, FromLane, __VA_ARGS__)                \
  X(shuffle, FromLane, __VA_ARGS__)                  \
  X(shuffle_xor, FromXor, __VA_ARGS__)               \
  X(shuffle_up, FromBelow, __VA_ARGS__)              \
  X(shuffle_down, FromAbove, __VA_ARGS__)            \
  X(shuffle_rotate_up, FromBelowAround, __VA_ARGS__) \
  X(shuffle_rotate_down, FromAboveAround, __VA_ARGS__)
#define SWITCHYARD_FILLS(X, ...)            \
  X(shuffle_and_fill_up, true, __VA_ARGS__) \
  X(shuffle_and_fill_down, false, __VA_ARGS__)
#define SWITCHYARD_LANE_FUNCTIONS(prefix, kQuad)                             \
  SWITCHYARD_REDUCTIONS(SWITCHYARD_REDUCTION, prefix, kQuad)                 \
  SWITCHYARD_BIT_REDUCTIONS(SWITCHYARD_REDUCTION, prefix, kQuad)             \
  SWITCHYARD_SHUFFLES(SWITCHYARD_SHUFFLE, prefix, kQuad)                     \
  SWITCHYARD_FILLS(SWITCHYARD_FILL, prefix, kQuad)                           \
  SWITCHYARD_MEETS inline bool prefix##_all(bool value) {                    \
    const auto vote = switchyard_metal::Vote(value, #prefix "_all", kQuad);  \
    return vote.result == vote.other;                                        \
  }                                                                          \
  SWITCHYARD_MEETS inline bool prefix##_any(bool value) {                    \
    return switchyard_metal::Vote(value, #prefix "_any", kQuad).result != 0; \
  }                                                                          \
  SWITCHYARD_MEETS inline bool prefix##_is_first() {                         \
    const auto vote =                                                        \
        switchyard_metal::Vote(true, #prefix "_is_first", kQuad);            \
    return ctz(vote.other) == vote.number;                                   \
  }                                                                          \
  SWITCHYARD_MEETS inline prefix##_vote prefix##_ballot(bool value) {        \
    return prefix##_vote(static_cast<prefix##_vote::vote_t>(                 \
        switchyard_metal::Vote(value, #prefix "_ballot", kQuad).result));    \
  }                                                                          \
  SWITCHYARD_MEETS inline prefix##_vote prefix##_active_threads_mask() {     \
    return prefix##_vote(static_cast<prefix##_vote::vote_t>(                 \
        switchyard_metal::Vote(true, #prefix "_active_threads_mask", kQuad)  \
            .result));                                                       \
  }

#endif  // SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_LANES_H_
