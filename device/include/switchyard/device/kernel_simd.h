// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The simd functions. One call computes the results of all simdgroups of the
// threadgroup. Call them outside of for_each_thread(); checked mode reports
// calls inside. Lanes that do not exist or have returned are absent and take
// no part. If all lanes of a simdgroup are absent, the result is T(). Shaders
// use the same code for these operations, in switchyard_lane_operations.h.
// kernel.h includes this file and explains the model.

#ifndef SWITCHYARD_DEVICE_KERNEL_SIMD_H_
#define SWITCHYARD_DEVICE_KERNEL_SIMD_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "switchyard/device/kernel_threads.h"
#include "switchyard/device/metal/switchyard_lane_operations.h"

namespace switchyard::device {

namespace kernel_internal {

template <class T>
constexpr bool kIsNumber = switchyard_metal::kIsScalar<T>;
// True if values of type T can be added: numbers except bool, and vectors of
// such numbers.
template <class T>
constexpr bool kHasSum = kIsNumber<switchyard_metal::ElementOf<T>> &&
                         !std::is_same_v<switchyard_metal::ElementOf<T>, bool>;

// The values of a simdgroup: operator() returns the address of a lane's
// value, or null if the lane is absent.
template <class T>
struct PresentLanes {
  const T* values;
  uint32_t present;
  const T* operator()(uint32_t lane) const {
    return (present >> lane & 1) != 0 ? values + lane : nullptr;
  }
};

struct Simd {
  // For each simdgroup that has a present lane, calls the function `of` with
  // the result to set, the simdgroup's lanes and its number. Returns all
  // results.
  template <class R, class T, class Function>
  static PerSimdgroup<R> ForEach(const PerThread<T>& v, const Function& of) {
    const Threads& threads = Note(v);
    PerSimdgroup<R> result;
    for (size_t s = 0; s < threads.simdgroups; ++s) {
      const uint32_t present = threads.Lanes(s);
      if (present == 0) continue;
      of(result.values_[s],
         PresentLanes<T>{v.values_ + s * kSimdWidth, present}, s);
    }
    return result;
  }
  template <class Reduction, class T>
  static PerSimdgroup<T> Reduce(const PerThread<T>& v) {
    return ForEach<T>(v, [](T& result, const auto& lanes, size_t) {
      result = Reduction::template Apply<T>(lanes, uint32_t{kSimdWidth});
    });
  }
  template <class Prefix, class T>
  static PerThread<T> Each(const PerThread<T>& v) {
    PerThread<T> result(Note(v), T());
    ForEach<T>(v, [&result](T&, const auto& lanes, size_t s) {
      Prefix::template Run<T>(lanes, uint32_t{kSimdWidth},
                              [&result, s](uint32_t lane, const T& value) {
                                result.values_[s * kSimdWidth + lane] = value;
                              });
    });
    return result;
  }
  // Gives each thread the value of the lane that From::Apply() computes from
  // number(thread). An absent lane gives T(); in checked mode it is an error,
  // unless `function` is null.
  template <class From, class T, class Number>
  static PerThread<T> Shuffle(const PerThread<T>& v, const char* function,
                              const Number& number) {
    const Threads& threads = Note(v);
    PerThread<T> result(threads, T());
    for (size_t i = 0; i < threads.count; ++i) {
      if (!threads.IsLeft(i)) continue;
      const size_t lane =
          From::Apply(static_cast<uint32_t>(i % kSimdWidth),
                      static_cast<uint32_t>(number(i)), uint32_t{kSimdWidth});
      const size_t source = i - i % kSimdWidth + lane;
      if (lane < kSimdWidth && source < threads.count &&
          threads.IsLeft(source)) {
        result.values_[i] = v.values_[source];
      } else if (threads.checked != nullptr && function != nullptr) {
        LaneIsNotThere(*threads.checked, function, i / kSimdWidth, lane);
      }
    }
    return result;
  }
  template <class T>
  static RunningThread* Checked(const PerThread<T>& v) {
    return v.threads_->checked;
  }
  template <class T>
  static const T& At(const PerThread<T>& v, size_t thread) {
    return v.values_[thread];
  }

 private:
  template <class T>
  static const Threads& Note(const PerThread<T>& v) {
    if (v.threads_->checked != nullptr) NoteSimdFunction(*v.threads_->checked);
    return *v.threads_;
  }
};

}  // namespace kernel_internal

#define SWITCHYARD_REDUCTION(name, Operation, is_allowed, text)      \
  template <class T>                                                 \
  PerSimdgroup<T> name(const PerThread<T>& v) {                      \
    static_assert(is_allowed, #name " is of " text);                 \
    using namespace switchyard_metal; /* NOLINT(build/namespaces) */ \
    return kernel_internal::Simd::Reduce<Operation>(v);              \
  }
// If one value is NaN, the other one wins, as in Metal.
SWITCHYARD_REDUCTION(simd_max, Fold<LaneMax>, kernel_internal::kIsNumber<T>,
                     "numbers")
SWITCHYARD_REDUCTION(simd_min, Fold<LaneMin>, kernel_internal::kIsNumber<T>,
                     "numbers")
// In sums, absent lanes count as 0, and in products as 1.
SWITCHYARD_REDUCTION(simd_sum, Halve<LaneSum>, kernel_internal::kHasSum<T>,
                     "numbers and vectors of them")
SWITCHYARD_REDUCTION(simd_product, Halve<LaneProduct>,
                     kernel_internal::kHasSum<T>, "numbers and vectors of them")
SWITCHYARD_REDUCTION(simd_and, Fold<LaneAnd>, std::is_integral_v<T>, "integers")
SWITCHYARD_REDUCTION(simd_or, Fold<LaneOr>, std::is_integral_v<T>, "integers")
SWITCHYARD_REDUCTION(simd_xor, Fold<LaneXor>, std::is_integral_v<T>, "integers")
// simd_broadcast_first returns the value of the first lane that is present.
SWITCHYARD_REDUCTION(simd_broadcast_first, Fold<First>, true, "")
#undef SWITCHYARD_REDUCTION

// Prefix sums and products in the order of the lanes. In the exclusive
// functions, a lane's result leaves out the lane's own value.
#define SWITCHYARD_PREFIX(name, Operation, kInclusive)                         \
  template <class T>                                                           \
  PerThread<T> name(const PerThread<T>& v) {                                   \
    static_assert(kernel_internal::kHasSum<T>,                                 \
                  #name " is of numbers and vectors of them");                 \
    return kernel_internal::Simd::Each<                                        \
        switchyard_metal::Prefix<switchyard_metal::Operation, kInclusive>>(v); \
  }
SWITCHYARD_PREFIX(simd_prefix_inclusive_sum, LaneSum, true)
SWITCHYARD_PREFIX(simd_prefix_exclusive_sum, LaneSum, false)
SWITCHYARD_PREFIX(simd_prefix_inclusive_product, LaneProduct, true)
SWITCHYARD_PREFIX(simd_prefix_exclusive_product, LaneProduct, false)
#undef SWITCHYARD_PREFIX

// Returns the value of lane `lane`. An absent lane gives T(), and is an error
// in checked mode.
template <class T>
PerSimdgroup<T> simd_broadcast(const PerThread<T>& v, size_t lane) {
  kernel_internal::RunningThread* const checked =
      kernel_internal::Simd::Checked(v);
  return kernel_internal::Simd::ForEach<T>(
      v, [=](T& result, const auto& lanes, size_t simdgroup) {
        const T* const value = lane < kernel_internal::kSimdWidth
                                   ? lanes(static_cast<uint32_t>(lane))
                                   : nullptr;
        if (value != nullptr) {
          result = *value;
        } else if (checked != nullptr) {
          kernel_internal::LaneIsNotThere(*checked, "simd_broadcast", simdgroup,
                                          lane);
        }
      });
}

// Gives each thread the value of another lane. The thread chooses the lane in
// `lanes`; the overload below reads the same lane `number` for all threads.
// Here and in the functions below, an absent lane is an error in checked
// mode, and gives T() without checks.
template <class T, class Lane>
PerThread<T> simd_shuffle(const PerThread<T>& v, const PerThread<Lane>& lanes) {
  static_assert(std::is_integral_v<Lane>, "lanes are integers");
  return kernel_internal::Simd::Shuffle<switchyard_metal::FromLane>(
      v, "simd_shuffle", [&lanes](size_t thread) {
        return kernel_internal::Simd::At(lanes, thread);
      });
}
#define SWITCHYARD_SHUFFLE(name, From, text)                       \
  template <class T>                                               \
  PerThread<T> name(const PerThread<T>& v, size_t number) {        \
    return kernel_internal::Simd::Shuffle<switchyard_metal::From>( \
        v, text, [number](size_t) { return number; });             \
  }
SWITCHYARD_SHUFFLE(simd_shuffle, FromLane, "simd_shuffle")
// Returns the value of lane (own index ^ mask). If that lane is absent,
// returns T(); here this is not an error.
SWITCHYARD_SHUFFLE(simd_shuffle_xor, FromXor, nullptr)
// Returns the value of the lane that is `number` lanes below (up) or above
// (down). If that lane would lie outside of the simdgroup, returns the value of
// the calling lane. The rotate functions wrap around to the other end of the
// simdgroup.
SWITCHYARD_SHUFFLE(simd_shuffle_up, FromBelow, "simd_shuffle_up")
SWITCHYARD_SHUFFLE(simd_shuffle_down, FromAbove, "simd_shuffle_down")
SWITCHYARD_SHUFFLE(simd_shuffle_rotate_up, FromBelowAround,
                   "simd_shuffle_rotate_up")
SWITCHYARD_SHUFFLE(simd_shuffle_rotate_down, FromAboveAround,
                   "simd_shuffle_rotate_down")
#undef SWITCHYARD_SHUFFLE

// Returns a mask: bit l is set if lane l is present and its value is not 0.
template <class T>
PerSimdgroup<uint64_t> simd_ballot(const PerThread<T>& v) {
  return kernel_internal::Simd::ForEach<uint64_t>(
      v, [](uint64_t& bits, const auto& lanes, size_t) {
        for (uint32_t i = 0; i < kernel_internal::kSimdWidth; ++i) {
          const T* const value = lanes(i);
          if (value != nullptr && *value != T()) bits |= uint64_t{1} << i;
        }
      });
}
// simd_all returns true if the value is not 0 in every lane that is present,
// and simd_any if it is not 0 in at least one present lane.
template <class T>
PerSimdgroup<bool> simd_all(const PerThread<T>& v) {
  return kernel_internal::Simd::ForEach<bool>(
      v, [](bool& all, const auto& lanes, size_t) {
        all = true;
        for (uint32_t i = 0; i < kernel_internal::kSimdWidth; ++i) {
          const T* const value = lanes(i);
          all = all && (value == nullptr || *value != T());
        }
      });
}
template <class T>
PerSimdgroup<bool> simd_any(const PerThread<T>& v) {
  return kernel_internal::Simd::ForEach<bool>(
      v, [](bool& any, const auto& lanes, size_t) {
        for (uint32_t i = 0; i < kernel_internal::kSimdWidth; ++i) {
          const T* const value = lanes(i);
          any = any || (value != nullptr && *value != T());
        }
      });
}

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNEL_SIMD_H_
