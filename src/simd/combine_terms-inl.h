// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Lists the terms of a token's sum, before the rows are added up.

#if defined(SWITCHYARD_SRC_SIMD_COMBINE_TERMS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_COMBINE_TERMS_INL_H_
#undef SWITCHYARD_SRC_SIMD_COMBINE_TERMS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_COMBINE_TERMS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "src/base/row_format.h"
#include "src/simd/combine.h"

#include "hwy/highway.h"

#include "src/simd/math-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/simdgroup-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// The listed terms of a token's sum: rows of one type, and their weights. Their
// order is: active slots, the identity expert, shared experts. top_k is at most
// 22 in all known models. More than kMaxTerms terms take the slow path.
struct Terms {
  size_t count = 0;
  const void* rows[kMaxTerms];
  float weights[kMaxTerms];

  void Add(float weight, const void* row) {
    weights[count] = weight;
    rows[count] = row;
    ++count;
  }
  void Advance(size_t bytes) {
    for (size_t s = 0; s < count; ++s) {
      rows[s] = static_cast<const char*>(rows[s]) + bytes;
    }
  }
};

// The operands of the steps after the terms: the scales, and the residual (or
// null) that is added to the sum.
struct Tail {
  const void* residual = nullptr;
  Type residual_type = Type::kF32;
  const CombineScales* scales = nullptr;
  // The number of terms at the end (shared experts) that scales.routed does not
  // scale.
  size_t unscaled = 0;
};

HWY_INLINE float Scalar(const ConstAnyMatrix& m, size_t row, size_t col) {
  if (HWY_LIKELY(m.type == Type::kF32)) return m.Row<float>(row)[col];
  return ScalarAt(m, row, col);
}

// Returns a token's element of a matrix with one column or one row.
HWY_INLINE float OfToken(const ConstAnyMatrix& m, size_t token) {
  return m.rows == 1 ? Scalar(m, 0, token) : Scalar(m, token, 0);
}

HWY_INLINE float GateOf(const SharedExpert& shared, size_t token, size_t i) {
  if (shared.kind == SharedGate::kNone) return 1.0f;
  const float gate = shared.num_shared == 1 ? OfToken(shared.gate, token)
                                            : Scalar(shared.gate, token, i);
  if (shared.kind != SharedGate::kLogit) return gate;
  const SimdgroupTag d;
  return hn::GetLane(Sigmoid(d, hn::Set(d, gate)));
}

HWY_INLINE Tail TailOf(const CombineArgs& args, size_t token) {
  const ConstAnyMatrix& residual = args.inputs.residual;
  const size_t unscaled =
      args.shared_listed ? args.inputs.shared.num_shared : 0;
  if (residual.data == nullptr) {
    return {nullptr, Type::kF32, args.scales, unscaled};
  }
  return {RowAt(residual, token), residual.type, args.scales, unscaled};
}

// Where ListTerms() continues in a token's terms.
struct TermCursor {
  size_t next = 0;     // the next slot, or the next term behind the slots
  size_t skipped = 0;  // row indices out of range so far
};

// Fills `terms` with the token's terms from the cursor on, as many as fit.
// Returns true if the token's last term is among them.
HWY_INLINE bool ListTerms(const CombineArgs& args, size_t token,
                          TermCursor& cursor, Terms& terms) {
  const CombineInputs& in = args.inputs;
  const size_t top_k = in.topk_weights.cols;
  const float* const scales = static_cast<const float*>(in.rows.scales.data);
  const unsigned char* const rows = RowAt(in.rows, 0);
  const size_t row_bytes = BytesOf(in.rows.type, in.rows.stride);
  terms.count = 0;
  for (; cursor.next < top_k; ++cursor.next) {
    if (terms.count == kMaxTerms) return false;
    size_t row = token * top_k + cursor.next;
    if (!in.row_index.token_order) {
      const int32_t index = in.row_index.Row<int32_t>(token)[cursor.next];
      row = static_cast<size_t>(index);
      if (index < 0 || row >= in.rows.rows) {
        cursor.skipped += index != -1;
        continue;
      }
    }
    float weight = Scalar(in.topk_weights, token, cursor.next);
    if (scales != nullptr) weight *= scales[row * in.rows.scales.stride];
    terms.Add(weight, rows + row * row_bytes);
  }
  if (args.identity_listed && cursor.next == top_k) {
    if (terms.count == kMaxTerms) return false;
    terms.Add(OfToken(in.identity.weight, token),
              RowAt(in.identity.rows, token));
    ++cursor.next;
  }
  if (!args.shared_listed) return true;
  const size_t first = top_k + args.identity_listed;
  for (; cursor.next < first + in.shared.num_shared; ++cursor.next) {
    if (terms.count == kMaxTerms) return false;
    const size_t i = cursor.next - first;
    terms.Add(GateOf(in.shared, token, i),
              RowAt(in.shared.rows, token * in.shared.num_shared + i));
  }
  return true;
}

// All terms of a token if `all` is true, otherwise its first kMaxTerms terms.
struct TokenTerms {
  Terms terms;
  TermCursor cursor;
  bool all;

  HWY_INLINE void List(const CombineArgs& args, size_t token) {
    cursor = TermCursor();
    all = ListTerms(args, token, cursor, terms);
  }
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_COMBINE_TERMS_INL_H_
