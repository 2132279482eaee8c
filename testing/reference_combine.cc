// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "testing/reference_combine.h"

#include <algorithm>
#include <cmath>

#include "testing/floats.h"
#include "testing/reference.h"

namespace switchyard::reference {
namespace {

template <class Real>
class Former {
 public:
  using Row = std::vector<Real>;

  Former(const CombineInputs& inputs, const CombineOptions& options,
         size_t token, Type rounded, bool of_magnitudes = false)
      : in_(inputs),
        options_(options),
        token_(token),
        rounded_(rounded),
        of_magnitudes_(of_magnitudes),
        hidden_(std::max({in_.rows.cols, in_.shared.rows.cols,
                          in_.identity.rows.cols, in_.residual.cols})) {}

  CombineRow<Real> Run() const {
    const CombineScales& scales = options_.scales;
    Row block = Routed();
    Round(&block);
    Scale(&block, scales.routed);
    BlockNorm(&block, in_.norms.routed);
    if (in_.shared.rows.data != nullptr) AddShared(&block);
    BlockNorm(&block, in_.norms.block);
    Vector(&block, in_.vectors.block_bias,
           [](Real a, Real b) { return a + b; });
    Vector(&block, in_.vectors.block_scale,
           [](Real a, Real b) { return a * b; });
    Scale(&block, scales.block);
    if (in_.residual.data != nullptr) {
      Row residual = LoadRow(in_.residual, token_);
      Vector(&residual, in_.vectors.residual_bias,
             [](Real a, Real b) { return a + b; });
      Vector(&residual, in_.vectors.residual_scale,
             [](Real a, Real b) { return a * b; });
      Scale(&residual, scales.residual);
      for (size_t h = 0; h < hidden_; ++h) block[h] = residual[h] + block[h];
      Round(&block);
    }
    Scale(&block, scales.out);
    Row normed;
    if (in_.norm_weight.data != nullptr) {
      normed = Norm(block, in_.norm_weight, options_.norm, options_.eps);
    }
    return {block, normed};
  }

  Row Norm(Row row, const ConstAnyMatrix& weight, NormKind kind,
           float eps) const {
    const Row w = LoadRow(weight, 0);
    if (kind == NormKind::kPlusOneFirst) {
      for (size_t h = 0; h < hidden_; ++h) row[h] = M(row[h] * (1 + w[h]));
    }
    Real lanes[32] = {};
    for (size_t h = 0; h < hidden_; ++h) {
      lanes[h % 32] = std::fma(row[h], row[h], lanes[h % 32]);
    }
    for (size_t half = 16; half != 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
    }
    const Real mean = lanes[0] / static_cast<Real>(hidden_);
    const Real scale = 1 / std::sqrt(mean + static_cast<Real>(eps));
    for (size_t h = 0; h < hidden_; ++h) {
      const Real scaled = row[h] * scale;
      switch (kind) {
        case NormKind::kWeight:
          row[h] = M(scaled) * w[h];
          break;
        case NormKind::kWeightInF32:
          row[h] = scaled * w[h];
          break;
        case NormKind::kPlusOne:
          row[h] = scaled * (1 + w[h]);
          break;
        case NormKind::kPlusOneFirst:
          row[h] = scaled;
      }
    }
    return row;
  }

 private:
  Row LoadRow(const ConstAnyMatrix& m, size_t row) const {
    const float* const from = m.As<float>().Row(row);
    Row values(from, from + hidden_);
    for (Real& x : values) x = of_magnitudes_ ? std::fabs(x) : x;
    return values;
  }
  static Real OfToken(const ConstAnyMatrix& m, size_t token) {
    const Matrix<const float> f = m.As<float>();
    return m.cols == 1 ? *f.Row(token) : f.data[token];
  }
  void AddTerm(Real weight, const ConstAnyMatrix& rows, size_t row,
               Row* sum) const {
    if (of_magnitudes_) weight = std::fabs(weight);
    const Row values = LoadRow(rows, row);
    for (size_t h = 0; h < hidden_; ++h) {
      (*sum)[h] = std::fma(weight, values[h], (*sum)[h]);
    }
  }
  Row Routed() const {
    Row sum(hidden_, Real(0));
    const size_t top_k = in_.topk_weights.cols;
    for (size_t s = 0; s < top_k; ++s) {
      size_t row = token_ * top_k + s;
      if (!in_.row_index.token_order) {
        row = static_cast<size_t>(
            int64_t{in_.row_index.As<int32_t>().Row(token_)[s]});
      }
      if (row >= in_.rows.rows) continue;
      AddTerm(in_.topk_weights.As<float>().Row(token_)[s], in_.rows, row, &sum);
    }
    if (in_.identity.rows.data != nullptr) {
      AddTerm(OfToken(in_.identity.weight, token_), in_.identity.rows, token_,
              &sum);
    }
    return sum;
  }
  void AddShared(Row* block) const {
    const SharedExpert& shared = in_.shared;
    const bool apart =
        in_.norms.shared.data != nullptr || options_.round_like_unfused;
    Row sum(hidden_);
    for (size_t i = 0; i < shared.num_shared; ++i) {
      Real gate = 1;
      if (shared.kind != SharedGate::kNone) {
        gate = shared.num_shared == 1
                   ? OfToken(shared.gate, token_)
                   : static_cast<Real>(shared.gate.As<float>().Row(token_)[i]);
        if (shared.kind == SharedGate::kLogit) {
          gate = static_cast<Real>(Sigmoid(static_cast<double>(gate)));
        }
      }
      const size_t row = token_ * shared.num_shared + i;
      if (apart && i == 0) {
        sum = LoadRow(shared.rows, row);
        for (Real& x : sum) x = gate * x;
      } else {
        AddTerm(gate, shared.rows, row, apart ? &sum : block);
      }
    }
    if (!apart) return;
    Round(&sum);
    BlockNorm(&sum, in_.norms.shared);
    for (size_t h = 0; h < hidden_; ++h) (*block)[h] = (*block)[h] + sum[h];
    Round(block);
  }

  Real M(Real x) const {
    if (!options_.round_like_unfused) return x;
    return testing_support::Rounded(rounded_, static_cast<float>(x));
  }
  void Round(Row* row) const {
    for (Real& x : *row) x = M(x);
  }
  void Scale(Row* row, float factor) const {
    if (factor == 1.0f) return;
    for (Real& x : *row) x = M(x * static_cast<Real>(factor));
  }
  template <class F>
  void Vector(Row* row, const ConstAnyMatrix& vector, F f) const {
    if (vector.data == nullptr) return;
    const Row values = LoadRow(vector, 0);
    for (size_t h = 0; h < hidden_; ++h) (*row)[h] = M(f((*row)[h], values[h]));
  }
  void BlockNorm(Row* row, const ConstAnyMatrix& weight) const {
    if (weight.data == nullptr) return;
    *row = Norm(*row, weight, options_.block_norm, options_.block_eps);
    Round(row);
  }
  const CombineInputs& in_;
  const CombineOptions& options_;
  const size_t token_;
  const Type rounded_;
  const bool of_magnitudes_;
  const size_t hidden_;
};

}  // namespace

CombineRow<double> CombineForm(const CombineInputs& inputs,
                               const CombineOptions& options, size_t token) {
  CombineOptions exact = options;
  exact.round_like_unfused = false;
  return Former<double>(inputs, exact, token, Type::kF32).Run();
}
CombineRow<float> CombineFormFixed(const CombineInputs& inputs,
                                   const CombineOptions& options, size_t token,
                                   Type rounded) {
  return Former<float>(inputs, options, token, rounded).Run();
}

std::vector<Sum> CombineSums(const CombineInputs& inputs, size_t token) {
  const auto run = [&](bool of_magnitudes) {
    return Former<double>(inputs, {}, token, Type::kF32, of_magnitudes)
        .Run()
        .out;
  };
  std::vector<Sum> sums;
  const std::vector<double> values = run(false), magnitudes = run(true);
  for (size_t h = 0; h < values.size(); ++h) {
    sums.push_back({values[h], magnitudes[h]});
  }
  return sums;
}
std::vector<float> CombineNormFixed(const std::vector<float>& row,
                                    const ConstAnyMatrix& weight, float eps) {
  CombineInputs inputs;
  inputs.residual = row;
  return Former<float>(inputs, {}, 0, Type::kF32)
      .Norm(row, weight, NormKind::kWeight, eps);
}

}  // namespace switchyard::reference
