// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Which enumerators of switchyard.h are which of the C++ API. Both have the
// same values, and one that C++ has alone makes the compiler warn.

#ifndef SWITCHYARD_SRC_C_ENUMS_H_
#define SWITCHYARD_SRC_C_ENUMS_H_

#include "src/c/fields.h"

namespace switchyard::c {

// T(C enumeration, C++ enumeration, enumerators).
#define SWITCHYARD_C_ENUMS(T, X)                                             \
  T(swy_status_code, StatusCode,                                             \
    X(SWY_OK, kOk) X(SWY_INVALID_ARGUMENT, kInvalidArgument)                 \
        X(SWY_OUT_OF_MEMORY, kOutOfMemory)                                   \
            X(SWY_FAILED_PRECONDITION, kFailedPrecondition)                  \
                X(SWY_INTERNAL, kInternal))                                  \
  T(swy_type, Type,                                                          \
    X(SWY_F32, kF32) X(SWY_BF16, kBF16) X(SWY_F16, kF16) X(SWY_I32, kI32)    \
        X(SWY_U32, kU32) X(SWY_I64, kI64) X(SWY_I8, kI8) X(SWY_U8, kU8)      \
            X(SWY_F8E4M3, kF8E4M3) X(SWY_F8E5M2, kF8E5M2) X(SWY_E8M0, kE8M0) \
                X(SWY_Q8_0, kQ8_0) X(SWY_Q8_1, kQ8_1) X(SWY_Q8_K, kQ8_K))    \
  T(swy_score, Score,                                                        \
    X(SWY_SCORE_SOFTMAX, kSoftmax) X(SWY_SCORE_SIGMOID, kSigmoid)            \
        X(SWY_SCORE_SQRT_SOFTPLUS, kSqrtSoftplus) X(SWY_SCORE_RAW, kRaw)     \
            X(SWY_SCORE_SPARSEMIXER, kSparsemixer))                          \
  T(swy_bias_place, BiasPlace,                                               \
    X(SWY_BIAS_ON_SCORE, kScore) X(SWY_BIAS_ON_LOGIT, kLogit))               \
  T(swy_weight_of, WeightOf,                                                 \
    X(SWY_WEIGHT_OF_SCORE, kScore)                                           \
        X(SWY_WEIGHT_OF_SOFTMAX_OF_SELECTED, kSoftmaxOfSelected)             \
            X(SWY_WEIGHT_OF_SIGMOID_OF_SELECTED, kSigmoidOfSelected))        \
  T(swy_divisor, Divisor,                                                    \
    X(SWY_DIVISOR_MAX_OF_SUM_AND_SHARE, kMaxOfSumAndShare)                   \
        X(SWY_DIVISOR_SUM, kSum) X(SWY_DIVISOR_SUM_PLUS_EPS, kSumPlusEps)    \
            X(SWY_DIVISOR_MAX_OF_SUM_AND_EPS, kMaxOfSumAndEps))              \
  T(swy_bucket_order, BucketOrder,                                           \
    X(SWY_ORDER_ASCENDING, kAscending) X(SWY_ORDER_CLAIM, kClaim))           \
  T(swy_activation, Activation,                                              \
    X(SWY_SILU, kSilu) X(SWY_GELU, kGelu) X(SWY_GELU_TANH, kGeluTanh)        \
        X(SWY_RELU, kRelu) X(SWY_RELU2, kRelu2) X(SWY_IDENTITY, kIdentity)   \
            X(SWY_SWIGLU_OAI, kSwigluOai) X(SWY_SITU, kSitu))                \
  T(swy_gate_up_layout, GateUpLayout,                                        \
    X(SWY_SPLIT, kSplit) X(SWY_CONCATENATED, kConcatenated)                  \
        X(SWY_INTERLEAVED, kInterleaved) X(SWY_UNGATED, kUngated))           \
  T(swy_activate_place, ActivatePlace,                                       \
    X(SWY_BEFORE, kBefore) X(SWY_AFTER, kAfter))                             \
  T(swy_activate_stores, ActivateStores,                                     \
    X(SWY_STORES_AUTO, kAuto) X(SWY_STORES_CACHED, kCached)                  \
        X(SWY_STORES_STREAMING, kStreaming))                                 \
  T(swy_shared_gate, SharedGate,                                             \
    X(SWY_GATE_LOGIT, kLogit) X(SWY_GATE_SCALAR, kScalar)                    \
        X(SWY_GATE_NONE, kNone))                                             \
  T(swy_norm_kind, NormKind,                                                 \
    X(SWY_NORM_WEIGHT, kWeight) X(SWY_NORM_WEIGHT_IN_F32, kWeightInF32)      \
        X(SWY_NORM_PLUS_ONE, kPlusOne)                                       \
            X(SWY_NORM_PLUS_ONE_FIRST, kPlusOneFirst))

// The enumerator of C, or -1 for what is none.
#define SWITCHYARD_C_CASE(c_name, name) \
  case E::name:                         \
    return c_name;
#define SWITCHYARD_C_ENUM(CEnum, Enum, list) \
  constexpr int InC(Enum value) {            \
    using E = Enum;                          \
    switch (value) { list }                  \
    return -1;                               \
  }
SWITCHYARD_C_ENUMS(SWITCHYARD_C_ENUM, SWITCHYARD_C_CASE)
#undef SWITCHYARD_C_ENUM
#undef SWITCHYARD_C_CASE

// The constants.
static_assert(SWY_MAX_STREAMS == kMaxStreams, "");
static_assert(SWY_ACTIVATE_STREAMING_BYTES == kActivateStreamingBytes, "");
static_assert(SWY_NO_CAPACITY == AlignedOptions::kNoCapacity, "");
static_assert(SWY_TIGHT_STRIDE == StridedBuckets::kTightStride, "");

#define SWITCHYARD_C_SAME(c_name, name)                    \
  static_assert(InC(E::name) == static_cast<int>(E::name), \
                #c_name " is not " #name);
#define SWITCHYARD_C_SAME_ENUM(CEnum, Enum, list) \
  namespace same_##CEnum {                        \
    using E = Enum;                               \
    list                                          \
  }
SWITCHYARD_C_ENUMS(SWITCHYARD_C_SAME_ENUM, SWITCHYARD_C_SAME)
#undef SWITCHYARD_C_SAME_ENUM
#undef SWITCHYARD_C_SAME

}  // namespace switchyard::c

#endif  // SWITCHYARD_SRC_C_ENUMS_H_
