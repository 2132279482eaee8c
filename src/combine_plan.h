// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Turns a call of Combine() into the stages that its kernel runs.

#ifndef SWITCHYARD_SRC_COMBINE_PLAN_H_
#define SWITCHYARD_SRC_COMBINE_PLAN_H_

#include "src/base/view_checks.h"
#include "src/simd/combine.h"

namespace switchyard::internal {

inline bool Scales(const CombineScales& scales) {
  return scales.routed != 1.0f || scales.block != 1.0f ||
         scales.residual != 1.0f || scales.out != 1.0f;
}

// Returns the type to which round_like_unfused rounds, M in combine.h.
inline Type RoundedType(const CombineInputs& in, const CombineOutputs& out) {
  if (Given(out.out)) return out.out.type;
  if (Given(in.residual)) return in.residual.type;
  return IsFloat(out.normed.type) ? out.normed.type : Type::kF32;
}

// The result of Combine()'s checks, for RunExperts(), which computes the sums
// itself.
struct CheckedCombine {
  Status status;
  bool is_ordinary;
};
CheckedCombine CheckCombine(const CombineInputs& inputs,
                            const CombineOutputs& outputs,
                            const CombineOptions& options) noexcept;

class CombinePlan {
 public:
  CombinePlan(const CombineInputs& inputs, const CombineOutputs& outputs,
              const CombineOptions& options, bool extras)
      : in_(inputs), options_(options) {
    Type& rows = rows_type_;
    rows = Given(in_.rows) ? in_.rows.type : in_.shared.rows.type;
    const bool shared = Given(in_.shared.rows);
    const bool identity = Given(in_.identity.rows);
    const bool unfused = options.round_like_unfused;
    identity_listed_ = identity && in_.identity.rows.type == rows;
    const size_t num_shared = in_.shared.num_shared;
    shared_listed_ = shared && in_.shared.rows.type == rows && !unfused &&
                     !Given(in_.norms.routed) && !Given(in_.norms.shared) &&
                     num_shared <= simd::kMaxTerms &&
                     identity_listed_ == identity;
    const size_t terms = in_.topk_weights.cols + identity_listed_ +
                         (shared_listed_ ? num_shared : 0);
    const bool out_is_sum =
        Given(outputs.out) && outputs.out.type == Type::kF32;
    const size_t cols =
        Given(outputs.out) ? outputs.out.cols : outputs.normed.cols;
    is_unstaged_ = !unfused && shared_listed_ == shared &&
                   identity_listed_ == identity && terms <= simd::kMaxTerms &&
                   (out_is_sum || cols <= simd::kSumKept) &&
                   !(extras && HasStages());
    scaled_ = Scales(options.scales);
    if (!is_unstaged_ && options.scales.routed != 1.0f) shared_listed_ = false;
    if (!is_unstaged_) Build(outputs);
  }

  // Returns the kernel's arguments, which point to the plan and the call.
  simd::CombineArgs Args(const CombineInputs& inputs,
                         const CombineOutputs& outputs,
                         const CombineOptions& options, size_t hidden,
                         std::atomic<size_t>* skipped) const {
    return {inputs, outputs,    options,        stages(),         scales(),
            hidden, rows_type_, shared_listed_, identity_listed_, skipped};
  }
  const simd::CombineStages* stages() const {
    return is_unstaged_ ? nullptr : &plan_;
  }
  const CombineScales* scales() const {
    return is_unstaged_ && scaled_ ? &options_.scales : nullptr;
  }
  size_t num_stages() const { return is_unstaged_ ? 0 : plan_.num_stages; }
  Type rows_type() const { return rows_type_; }
  bool shared_listed() const { return shared_listed_; }
  bool identity_listed() const { return identity_listed_; }

 private:
  using Stage = simd::CombineStage;

  bool HasStages() const {
    const auto& [routed, shared, block] = in_.norms;
    const auto& [bias, scale, residual_bias, residual_scale] = in_.vectors;
    return Given(routed) || Given(shared) || Given(block) || Given(bias) ||
           Given(scale) || Given(residual_bias) || Given(residual_scale);
  }

  [[gnu::cold]] void Build(const CombineOutputs& outputs) {
    plan_.rounded =
        options_.round_like_unfused ? RoundedType(in_, outputs) : Type::kF32;
    const CombineScales& scales = options_.scales;
    const BlockNorms& norms = in_.norms;
    if (Given(in_.identity.rows) && !identity_listed_) {
      PerToken(Stage::kMulAdd, false, in_.identity.rows);
    }
    Round(false);
    Scale(false, scales.routed);
    const bool shared = Given(in_.shared.rows) && !shared_listed_;
    const bool is_joined =  // computed in the other tile, and then added
        Given(norms.shared) || options_.round_like_unfused;
    if (Given(norms.routed)) NormFirst(false, norms.routed);
    if (Given(norms.shared)) {
      LoadShared();
      NormFirst(true, norms.shared);
    }
    if (Given(norms.routed) || Given(norms.shared)) {
      EndPhase(Given(norms.routed), Given(norms.shared));
    }
    if (Given(norms.routed)) NormSecond(false, norms.routed);
    if (shared && is_joined) {
      LoadShared();
      if (Given(norms.shared)) {
        if (options_.block_norm == NormKind::kPlusOneFirst) {
          NormFirst(true, norms.shared);
        }
        NormSecond(true, norms.shared);
      }
      Join();
      Round(false);
    } else if (shared) {
      Add(Stage::kShared, false);
    }
    if (Given(norms.block)) {
      NormFirst(false, norms.block);
      EndPhase(true, false);
      NormSecond(false, norms.block);
    }
    Vector(Stage::kAdd, false, in_.vectors.block_bias);
    Vector(Stage::kMul, false, in_.vectors.block_scale);
    Scale(false, scales.block);
    if (Given(in_.residual)) AddResidual();
    if (Given(in_.residual) && plan_.rounded == Type::kF32) {
      plan_.stages[plan_.num_stages - 1].sum = scales.out;
    } else {
      Scale(false, scales.out);
    }
    EndPhase(Given(outputs.normed), false);
  }

  void AddResidual() {
    const CombineVectors& vectors = in_.vectors;
    const bool affine =
        Given(vectors.residual_bias) || Given(vectors.residual_scale);
    const bool rounded = plan_.rounded != Type::kF32;
    const float factor = options_.scales.residual;
    if (affine || (rounded && factor != 1.0f)) {
      PerToken(Stage::kLoad, true, in_.residual);
      Vector(Stage::kAdd, true, vectors.residual_bias);
      Vector(Stage::kMul, true, vectors.residual_scale);
      Scale(true, factor);
      Join();
    } else {
      PerToken(Stage::kAdd, false, in_.residual).x = factor;
    }
    Round(false);
  }
  void Join() {
    const float factor = TakeFactor(true);
    Add(Stage::kJoin, false).x = factor;
  }
  void LoadShared() {
    Add(Stage::kGated, true);
    Round(true);
  }
  // Adds the stage that a norm of kind kPlusOneFirst has before its sum of
  // squares.
  void NormFirst(bool other, const ConstAnyMatrix& weight) {
    if (options_.block_norm != NormKind::kPlusOneFirst) return;
    Vector(Stage::kMulPlus, other, weight);
  }
  void NormSecond(bool other, const ConstAnyMatrix& weight) {
    Flush(other);
    switch (options_.block_norm) {
      case NormKind::kWeight:
        if (plan_.rounded != Type::kF32) {
          Add(Stage::kScale, other).norm = true;
          Round(other);
          Vector(Stage::kMul, other, weight);
        } else {
          Vector(Stage::kMul, other, weight, true);
        }
        return;
      case NormKind::kWeightInF32:
        Vector(Stage::kMul, other, weight, true);
        return;
      case NormKind::kPlusOne:
        Vector(Stage::kMulPlus, other, weight, true);
        return;
      case NormKind::kPlusOneFirst:
        Add(Stage::kScale, other).norm = true;
        Round(other);
    }
  }

  // Adds a stage, which also multiplies the tile by its pending factor.
  Stage& Add(Stage::Op op, bool other, const ConstAnyMatrix* operand = nullptr,
             bool per_token = false) {
    const float v = TakeFactor(other);
    Stage& stage = plan_.stages[plan_.num_stages++];
    stage = {op, other, false, per_token, operand, v, 1.0f, 1.0f};
    return stage;
  }
  float TakeFactor(bool other) {
    const float factor = factor_[other];
    factor_[other] = 1.0f;
    return factor;
  }
  void Flush(bool other) {
    if (factor_[other] != 1.0f) Add(Stage::kScale, other);
  }
  void Round(bool other) {
    if (plan_.rounded != Type::kF32) Add(Stage::kRound, other);
  }
  // Makes `factor` the pending factor of a tile: the tile's next stage also
  // multiplies by it. If the product is rounded, adds an extra stage instead.
  void Scale(bool other, float factor) {
    if (factor == 1.0f) return;
    Flush(other);
    factor_[other] = factor;
    if (plan_.rounded != Type::kF32) Flush(other);
    Round(other);
  }
  void Vector(Stage::Op op, bool other, const ConstAnyMatrix& vector,
              bool norm = false) {
    if (!Given(vector)) return;
    Add(op, other, &vector).norm = norm;
    Round(other);
  }
  Stage& PerToken(Stage::Op op, bool other, const ConstAnyMatrix& rows) {
    return Add(op, other, &rows, true);
  }
  void EndPhase(bool block_squares, bool other_squares) {
    Flush(false);
    plan_.phases[plan_.num_phases++] = {plan_.num_stages, block_squares,
                                        other_squares};
  }

  const CombineInputs& in_;
  const CombineOptions& options_;
  simd::CombineStages plan_;
  float factor_[2] = {1.0f, 1.0f};
  Type rows_type_;
  bool shared_listed_, identity_listed_, is_unstaged_, scaled_;
};

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_COMBINE_PLAN_H_
