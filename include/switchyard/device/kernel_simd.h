// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The simd functions, for every simdgroup of the threadgroup; called outside
// for_each_thread(), which checked mode makes sure of. Lanes that do not
// exist or have returned take no part; a simdgroup without lanes gets T().
// Included by kernel.h, where the whole is explained.

#ifndef SWITCHYARD_DEVICE_KERNEL_SIMD_H_
#define SWITCHYARD_DEVICE_KERNEL_SIMD_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "switchyard/device/kernel_floats.h"
#include "switchyard/device/kernel_threads.h"
#include "switchyard/device/kernel_vectors.h"

namespace switchyard::device {

namespace kernel_internal {

// What can be added up: not bool.
template <class T>
constexpr bool kHasSum = kIsNumber<T> && !std::is_same_v<T, bool>;
template <class T, size_t N>
constexpr bool kHasSum<Vec<T, N>> = kHasSum<T>;

// What sums and products are made of: integers wrap around, as on a GPU, and
// narrow ones are not promoted to signed ones.
template <class T, bool kIsInteger = std::is_integral_v<T>>
struct Term {
  using Type = T;
  static T Add(const T& a, const T& b) { return static_cast<T>(a + b); }
  static T Multiply(const T& a, const T& b) { return static_cast<T>(a * b); }
};
template <class T>
struct Term<T, true> {
  using Type = std::make_unsigned_t<T>;
  static Type Add(Type a, Type b) { return static_cast<Type>(a + b); }
  static Type Multiply(Type a, Type b) {
    return static_cast<Type>(uint64_t{a} * b);
  }
};

struct Simd {
  // of(result, values, lanes, simdgroup) for each simdgroup: `values` are its
  // lanes', bit l of `lanes` tells whether lane l takes part.
  template <class R, class T, class Function>
  static PerSimdgroup<R> ForEach(const PerThread<T>& v, const Function& of) {
    const Threads& threads = Note(v);
    PerSimdgroup<R> result;
    for (size_t s = 0; s < threads.simdgroups; ++s) {
      of(result.values_[s], v.values_ + s * kSimdWidth, threads.Lanes(s), s);
    }
    return result;
  }
  template <class T, class Better>
  static PerSimdgroup<T> Best(const PerThread<T>& v, const Better& better) {
    return ForEach<T>(v, [&](T& best, const T* values, uint32_t lanes, size_t) {
      bool first = true;
      for (size_t i = 0; i < kSimdWidth; ++i) {
        if ((lanes >> i & 1) == 0) continue;
        if (first || IsNan(best) || better(values[i], best)) best = values[i];
        first = false;
      }
    });
  }
  // Lane l + 16 is put to lane l, then l + 8, 4, 2, 1.
  template <class T, class Put>
  static PerSimdgroup<T> Fold(const PerThread<T>& v, const T& identity,
                              const Put& put) {
    using Type = typename Term<T>::Type;
    return ForEach<T>(
        v, [&](T& result, const T* values, uint32_t lanes, size_t) {
          if (lanes == 0) return;
          Type terms[kSimdWidth];
          for (size_t i = 0; i < kSimdWidth; ++i) {
            terms[i] =
                static_cast<Type>((lanes >> i & 1) != 0 ? values[i] : identity);
          }
          for (size_t width = kSimdWidth / 2; width != 0; width /= 2) {
            for (size_t i = 0; i < width; ++i) {
              terms[i] = put(terms[i], terms[i + width]);
            }
          }
          result = static_cast<T>(terms[0]);
        });
  }
  template <class T, class Put>
  static PerThread<T> Prefix(const PerThread<T>& v, bool inclusive,
                             const T& identity, const Put& put) {
    using Type = typename Term<T>::Type;
    const Threads& threads = Note(v);
    PerThread<T> result(threads, T());
    Type so_far = static_cast<Type>(identity);
    for (size_t i = 0; i < threads.count; ++i) {
      if (i % kSimdWidth == 0) so_far = static_cast<Type>(identity);
      if (!threads.IsLeft(i)) continue;
      const Type with = put(so_far, static_cast<Type>(v.values_[i]));
      result.values_[i] = static_cast<T>(inclusive ? with : so_far);
      so_far = with;
    }
    return result;
  }
  // Each thread gets the value of lane from(thread, its own lane). One that is
  // not there gives T(), and is an error in checked mode if `function` is
  // given.
  template <class T, class From>
  static PerThread<T> Shuffle(const PerThread<T>& v, const char* function,
                              const From& from) {
    const Threads& threads = Note(v);
    PerThread<T> result(threads, T());
    for (size_t i = 0; i < threads.count; ++i) {
      if (!threads.IsLeft(i)) continue;
      const size_t lane = from(i, i % kSimdWidth);
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
  static const Threads& Of(const PerThread<T>& v) {
    return *v.threads_;
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

// A number wins over NaN, as in Metal.
template <class T>
PerSimdgroup<T> simd_max(const PerThread<T>& v) {
  static_assert(kernel_internal::kIsNumber<T>, "simd_max is of numbers");
  return kernel_internal::Simd::Best(
      v, [](const auto& a, const auto& b) { return a > b; });
}
template <class T>
PerSimdgroup<T> simd_min(const PerThread<T>& v) {
  static_assert(kernel_internal::kIsNumber<T>, "simd_min is of numbers");
  return kernel_internal::Simd::Best(
      v, [](const auto& a, const auto& b) { return a < b; });
}

// Lane l + 16 is added to lane l, then l + 8, 4, 2, 1; Metal leaves the order
// open. What is not there counts as 0, or 1 in a product.
template <class T>
PerSimdgroup<T> simd_sum(const PerThread<T>& v) {
  static_assert(kernel_internal::kHasSum<T>,
                "simd_sum is of numbers and vectors of them");
  return kernel_internal::Simd::Fold(v, T(), kernel_internal::Term<T>::Add);
}
template <class T>
PerSimdgroup<T> simd_product(const PerThread<T>& v) {
  static_assert(kernel_internal::kHasSum<T>,
                "simd_product is of numbers and vectors of them");
  return kernel_internal::Simd::Fold(v, T(1),
                                     kernel_internal::Term<T>::Multiply);
}

// Of the lanes up to each one, added one after the other; exclusive, without
// its own.
template <class T>
PerThread<T> simd_prefix_inclusive_sum(const PerThread<T>& v) {
  static_assert(kernel_internal::kHasSum<T>,
                "simd_prefix_inclusive_sum is of numbers and vectors of them");
  return kernel_internal::Simd::Prefix(v, true, T(),
                                       kernel_internal::Term<T>::Add);
}
template <class T>
PerThread<T> simd_prefix_exclusive_sum(const PerThread<T>& v) {
  static_assert(kernel_internal::kHasSum<T>,
                "simd_prefix_exclusive_sum is of numbers and vectors of them");
  return kernel_internal::Simd::Prefix(v, false, T(),
                                       kernel_internal::Term<T>::Add);
}
template <class T>
PerThread<T> simd_prefix_inclusive_product(const PerThread<T>& v) {
  static_assert(
      kernel_internal::kHasSum<T>,
      "simd_prefix_inclusive_product is of numbers and vectors of them");
  return kernel_internal::Simd::Prefix(v, true, T(1),
                                       kernel_internal::Term<T>::Multiply);
}
template <class T>
PerThread<T> simd_prefix_exclusive_product(const PerThread<T>& v) {
  static_assert(
      kernel_internal::kHasSum<T>,
      "simd_prefix_exclusive_product is of numbers and vectors of them");
  return kernel_internal::Simd::Prefix(v, false, T(1),
                                       kernel_internal::Term<T>::Multiply);
}

// Bit by bit.
template <class T>
PerSimdgroup<T> simd_and(const PerThread<T>& v) {
  static_assert(std::is_integral_v<T>, "simd_and is of integers");
  return kernel_internal::Simd::Fold(
      v, static_cast<T>(~T()),
      [](auto a, auto b) { return static_cast<decltype(a)>(a & b); });
}
template <class T>
PerSimdgroup<T> simd_or(const PerThread<T>& v) {
  static_assert(std::is_integral_v<T>, "simd_or is of integers");
  return kernel_internal::Simd::Fold(
      v, T(), [](auto a, auto b) { return static_cast<decltype(a)>(a | b); });
}
template <class T>
PerSimdgroup<T> simd_xor(const PerThread<T>& v) {
  static_assert(std::is_integral_v<T>, "simd_xor is of integers");
  return kernel_internal::Simd::Fold(
      v, T(), [](auto a, auto b) { return static_cast<decltype(a)>(a ^ b); });
}

// The value of lane `lane`. One that is not there gives T(), and is an error in
// checked mode.
template <class T>
PerSimdgroup<T> simd_broadcast(const PerThread<T>& v, size_t lane) {
  kernel_internal::RunningThread* const checked =
      kernel_internal::Simd::Of(v).checked;
  return kernel_internal::Simd::ForEach<T>(
      v, [=](T& result, const T* values, uint32_t lanes, size_t simdgroup) {
        if (lane < kernel_internal::kSimdWidth && (lanes >> lane & 1) != 0) {
          result = values[lane];
        } else if (checked != nullptr && lanes != 0) {
          kernel_internal::LaneIsNotThere(*checked, "simd_broadcast", simdgroup,
                                          lane);
        }
      });
}
// Of the first lane that is there.
template <class T>
PerSimdgroup<T> simd_broadcast_first(const PerThread<T>& v) {
  return kernel_internal::Simd::ForEach<T>(
      v, [](T& result, const T* values, uint32_t lanes, size_t) {
        for (size_t i = kernel_internal::kSimdWidth; i-- > 0;) {
          if ((lanes >> i & 1) != 0) result = values[i];
        }
      });
}

// Each lane gets the value of lane `its own index ^ mask`, T() if that is not
// there (undefined on Metal).
template <class T>
PerThread<T> simd_shuffle_xor(const PerThread<T>& v, size_t mask) {
  return kernel_internal::Simd::Shuffle(
      v, nullptr, [mask](size_t, size_t lane) { return lane ^ mask; });
}
// The value of the lane that each names, or that all do. One that is not there
// is an error in checked mode, here and below, and gives T() unchecked.
template <class T, class Lane>
PerThread<T> simd_shuffle(const PerThread<T>& v, const PerThread<Lane>& lanes) {
  static_assert(std::is_integral_v<Lane>, "lanes are integers");
  return kernel_internal::Simd::Shuffle(
      v, "simd_shuffle", [&lanes](size_t thread, size_t) {
        return static_cast<size_t>(kernel_internal::Simd::At(lanes, thread));
      });
}
template <class T>
PerThread<T> simd_shuffle(const PerThread<T>& v, size_t lane) {
  return kernel_internal::Simd::Shuffle(
      v, "simd_shuffle", [lane](size_t, size_t) { return lane; });
}
// Of `delta` lanes below or above; where there are not so many in a simdgroup,
// the lane's own. Rotated, they come from the other end.
template <class T>
PerThread<T> simd_shuffle_up(const PerThread<T>& v, size_t delta) {
  return kernel_internal::Simd::Shuffle(
      v, "simd_shuffle_up", [delta](size_t, size_t lane) {
        return delta <= lane ? lane - delta : lane;
      });
}
template <class T>
PerThread<T> simd_shuffle_down(const PerThread<T>& v, size_t delta) {
  return kernel_internal::Simd::Shuffle(
      v, "simd_shuffle_down", [delta](size_t, size_t lane) {
        return delta < kernel_internal::kSimdWidth - lane ? lane + delta : lane;
      });
}
template <class T>
PerThread<T> simd_shuffle_rotate_up(const PerThread<T>& v, size_t delta) {
  return kernel_internal::Simd::Shuffle(
      v, "simd_shuffle_rotate_up", [delta](size_t, size_t lane) {
        return (lane - delta) % kernel_internal::kSimdWidth;
      });
}
template <class T>
PerThread<T> simd_shuffle_rotate_down(const PerThread<T>& v, size_t delta) {
  return kernel_internal::Simd::Shuffle(
      v, "simd_shuffle_rotate_down", [delta](size_t, size_t lane) {
        return (lane + delta) % kernel_internal::kSimdWidth;
      });
}

// Bit l is set if lane l is there and its value is not 0.
template <class T>
PerSimdgroup<uint64_t> simd_ballot(const PerThread<T>& v) {
  return kernel_internal::Simd::ForEach<uint64_t>(
      v, [](uint64_t& bits, const T* values, uint32_t lanes, size_t) {
        for (size_t i = 0; i < kernel_internal::kSimdWidth; ++i) {
          if ((lanes >> i & 1) != 0 && values[i] != T()) {
            bits |= uint64_t{1} << i;
          }
        }
      });
}
// Whether that is so of every lane that is there, or of one.
template <class T>
PerSimdgroup<bool> simd_all(const PerThread<T>& v) {
  return kernel_internal::Simd::ForEach<bool>(
      v, [](bool& all, const T* values, uint32_t lanes, size_t) {
        all = true;
        for (size_t i = 0; i < kernel_internal::kSimdWidth; ++i) {
          all = all && ((lanes >> i & 1) == 0 || values[i] != T());
        }
      });
}
template <class T>
PerSimdgroup<bool> simd_any(const PerThread<T>& v) {
  return kernel_internal::Simd::ForEach<bool>(
      v, [](bool& any, const T* values, uint32_t lanes, size_t) {
        for (size_t i = 0; i < kernel_internal::kSimdWidth; ++i) {
          any = any || ((lanes >> i & 1) != 0 && values[i] != T());
        }
      });
}

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_KERNEL_SIMD_H_
