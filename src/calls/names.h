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

#define SWITCHYARD_TEXT(name, text, ...) \
  case Listed::name:                     \
    return text;
constexpr const char* NameOf(Score score) {
  using Listed = Score;
  switch (score) { SWITCHYARD_SCORES(SWITCHYARD_TEXT) }
  return nullptr;
}
constexpr const char* NameOf(Divisor divisor) {
  using Listed = Divisor;
  switch (divisor) { SWITCHYARD_DIVISORS(SWITCHYARD_TEXT) }
  return nullptr;
}
constexpr const char* NameOf(WeightOf weight_of) {
  using Listed = WeightOf;
  switch (weight_of) { SWITCHYARD_WEIGHTS_OF(SWITCHYARD_TEXT) }
  return nullptr;
}
constexpr const char* NameOf(BiasPlace place) {
  using Listed = BiasPlace;
  switch (place) { SWITCHYARD_BIAS_PLACES(SWITCHYARD_TEXT) }
  return nullptr;
}
constexpr const char* NameOf(Activation activation) {
  using Listed = Activation;
  switch (activation) { SWITCHYARD_ACTIVATIONS(SWITCHYARD_TEXT) }
  return nullptr;
}
constexpr const char* NameOf(Type type) {
  using Listed = Type;
  switch (type) { SWITCHYARD_TYPES(SWITCHYARD_TEXT) }
  return nullptr;
}
constexpr const char* NameOf(WeightFormat format) {
  using Listed = WeightFormat;
  switch (format) { SWITCHYARD_WEIGHT_FORMATS(SWITCHYARD_TEXT) }
  return nullptr;
}
#undef SWITCHYARD_TEXT
constexpr const char* NameOf(WeightLayout layout) {
  switch (layout) {
    case WeightLayout::kStored:
      return "stored";
    case WeightLayout::kPacked:
      return "packed";
  }
  return nullptr;
}
constexpr const char* NameOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid_argument";
    case StatusCode::kOutOfMemory:
      return "out_of_memory";
    case StatusCode::kFailedPrecondition:
      return "failed_precondition";
    case StatusCode::kInternal:
      return "internal";
  }
  return nullptr;
}
constexpr const char* NameOf(BucketOrder order) {
  switch (order) {
    case BucketOrder::kAscending:
      return "ascending";
    case BucketOrder::kClaim:
      return "claim";
  }
  return nullptr;
}
constexpr const char* NameOf(GateUpLayout layout) {
  switch (layout) {
    case GateUpLayout::kSplit:
      return "split";
    case GateUpLayout::kConcatenated:
      return "concatenated";
    case GateUpLayout::kInterleaved:
      return "interleaved";
    case GateUpLayout::kUngated:
      return "ungated";
  }
  return nullptr;
}
constexpr const char* NameOf(ActivateStores stores) {
  switch (stores) {
    case ActivateStores::kAuto:
      return "auto";
    case ActivateStores::kCached:
      return "cached";
    case ActivateStores::kStreaming:
      return "streaming";
  }
  return nullptr;
}
constexpr const char* NameOf(ActivatePlace place) {
  switch (place) {
    case ActivatePlace::kBefore:
      return "before";
    case ActivatePlace::kAfter:
      return "after";
  }
  return nullptr;
}
constexpr const char* NameOf(SharedGate kind) {
  switch (kind) {
    case SharedGate::kLogit:
      return "logit";
    case SharedGate::kScalar:
      return "scalar";
    case SharedGate::kNone:
      return "none";
  }
  return nullptr;
}
constexpr const char* NameOf(NormKind norm) {
  switch (norm) {
    case NormKind::kWeight:
      return "weight";
    case NormKind::kWeightInF32:
      return "weight_in_f32";
    case NormKind::kPlusOne:
      return "plus_one";
    case NormKind::kPlusOneFirst:
      return "plus_one_first";
  }
  return nullptr;
}
constexpr const char* NameOf(ExpertProduct product) {
  switch (product) {
    case ExpertProduct::kGateUp:
      return "gate_up";
    case ExpertProduct::kGate:
      return "gate";
    case ExpertProduct::kUp:
      return "up";
    case ExpertProduct::kDown:
      return "down";
  }
  return nullptr;
}
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
