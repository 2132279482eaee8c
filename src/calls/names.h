// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The enumerators of every enumeration in calls, each with its name as text:
// "sqrt_softplus" is Score::kSqrtSoftplus and SWY_SCORE_SQRT_SOFTPLUS. An
// enumerator without a name does not compile, and checks refuse a value that
// has no name.

#ifndef SWITCHYARD_SRC_CALLS_NAMES_H_
#define SWITCHYARD_SRC_CALLS_NAMES_H_

#include <cstddef>
#include <cstdint>

#include "src/base/enumerators.h"
#include "src/base/type_list.h"
#include "src/base/weight_layout.h"
#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/expert_weights.h"
#include "switchyard/layer.h"
#include "switchyard/route.h"
#include "switchyard/status.h"
#include "switchyard/types.h"

namespace switchyard::calls {

// Lists of enumerators that only need names. src/base has all other lists.
#define SWITCHYARD_WEIGHT_LAYOUTS(X) \
  X(kStored, "stored")               \
  X(kPacked, "packed")
#define SWITCHYARD_STATUS_CODES(X)              \
  X(kOk, "ok")                                  \
  X(kInvalidArgument, "invalid_argument")       \
  X(kOutOfMemory, "out_of_memory")              \
  X(kFailedPrecondition, "failed_precondition") \
  X(kInternal, "internal")
#define SWITCHYARD_BUCKET_ORDERS(X) \
  X(kAscending, "ascending")        \
  X(kClaim, "claim")
#define SWITCHYARD_GATE_UP_LAYOUTS(X) \
  X(kSplit, "split")                  \
  X(kConcatenated, "concatenated")    \
  X(kInterleaved, "interleaved")      \
  X(kUngated, "ungated")
#define SWITCHYARD_ACTIVATE_STORES(X) \
  X(kAuto, "auto")                    \
  X(kCached, "cached")                \
  X(kStreaming, "streaming")
#define SWITCHYARD_ACTIVATE_PLACES(X) \
  X(kBefore, "before")                \
  X(kAfter, "after")
#define SWITCHYARD_SHARED_GATES(X) \
  X(kLogit, "logit")               \
  X(kScalar, "scalar")             \
  X(kNone, "none")
#define SWITCHYARD_NORM_KINDS(X)   \
  X(kWeight, "weight")             \
  X(kWeightInF32, "weight_in_f32") \
  X(kPlusOne, "plus_one")          \
  X(kPlusOneFirst, "plus_one_first")
#define SWITCHYARD_EXPERT_PRODUCTS(X) \
  X(kGateUp, "gate_up")               \
  X(kGate, "gate")                    \
  X(kUp, "up")                        \
  X(kDown, "down")

// Defines NameOf() for an enumeration. The switch has no default, so that
// -Werror=switch refuses an enumerator without a name.
#define SWITCHYARD_NAMES(Enum, LIST)         \
  constexpr const char* NameOf(Enum value) { \
    using Listed = Enum;                     \
    switch (value) { LIST(SWITCHYARD_NAME) } \
    return nullptr;                          \
  }
#define SWITCHYARD_NAME(...) SWITCHYARD_CASE(__VA_ARGS__, )
#define SWITCHYARD_CASE(name, text, ...) \
  case Listed::name:                     \
    return text;
SWITCHYARD_NAMES(Score, SWITCHYARD_SCORES)
SWITCHYARD_NAMES(Divisor, SWITCHYARD_DIVISORS)
SWITCHYARD_NAMES(WeightOf, SWITCHYARD_WEIGHTS_OF)
SWITCHYARD_NAMES(BiasPlace, SWITCHYARD_BIAS_PLACES)
SWITCHYARD_NAMES(Activation, SWITCHYARD_ACTIVATIONS)
SWITCHYARD_NAMES(Type, SWITCHYARD_TYPES)
SWITCHYARD_NAMES(WeightFormat, SWITCHYARD_WEIGHT_FORMATS)
SWITCHYARD_NAMES(WeightLayout, SWITCHYARD_WEIGHT_LAYOUTS)
SWITCHYARD_NAMES(StatusCode, SWITCHYARD_STATUS_CODES)
SWITCHYARD_NAMES(BucketOrder, SWITCHYARD_BUCKET_ORDERS)
SWITCHYARD_NAMES(GateUpLayout, SWITCHYARD_GATE_UP_LAYOUTS)
SWITCHYARD_NAMES(ActivateStores, SWITCHYARD_ACTIVATE_STORES)
SWITCHYARD_NAMES(ActivatePlace, SWITCHYARD_ACTIVATE_PLACES)
SWITCHYARD_NAMES(SharedGate, SWITCHYARD_SHARED_GATES)
SWITCHYARD_NAMES(NormKind, SWITCHYARD_NORM_KINDS)
SWITCHYARD_NAMES(ExpertProduct, SWITCHYARD_EXPERT_PRODUCTS)
#undef SWITCHYARD_CASE
#undef SWITCHYARD_NAME
#undef SWITCHYARD_NAMES

// Returns the enumerators of E as a bit set. All values are below 32.
template <class E>
constexpr uint32_t EnumeratorsOf() {
  uint32_t set = 0;
  for (uint32_t value = 0; value < 32; ++value) {
    if (NameOf(static_cast<E>(value)) != nullptr) set |= uint32_t{1} << value;
  }
  return set;
}

// The enumerators of a bit set, in ascending order.
template <class E>
class Enumerators {
 public:
  explicit constexpr Enumerators(uint32_t set) {
    for (uint32_t value = 0; value < 32; ++value) {
      if ((set >> value & 1) != 0) values_[size_++] = static_cast<E>(value);
    }
  }
  constexpr size_t size() const { return size_; }
  constexpr const E* begin() const { return values_; }
  constexpr const E* end() const { return values_ + size_; }
  constexpr E operator[](size_t i) const { return values_[i]; }

 private:
  E values_[32] = {};
  size_t size_ = 0;
};
template <class E>
inline constexpr Enumerators<E> kEnumerators{EnumeratorsOf<E>()};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_NAMES_H_
