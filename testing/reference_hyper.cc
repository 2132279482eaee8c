// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "testing/reference_hyper.h"

#include <cmath>

#include "testing/floats.h"

namespace switchyard::reference {
namespace {

// Adds up 32 lanes in the library's order.
template <class Real>
Real Fold(std::vector<Real> lanes) {
  for (size_t half = 16; half != 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  }
  return lanes[0];
}
template <class Real>
std::vector<Real> Squares(const Real* row, size_t cols) {
  std::vector<Real> lanes(32, Real(0));
  for (size_t h = 0; h < cols; ++h) {
    lanes[h % 32] = std::fma(row[h], row[h], lanes[h % 32]);
  }
  return lanes;
}

template <class Real, class Round>
HyperRow<Real> Make(const HyperInputs& in, const HyperOptions& options,
                    size_t token, Round m) {
  const size_t n = options.num_streams, cols = in.streams.cols;
  const bool unfused = options.round_like_unfused;
  const auto at = [](const ConstAnyMatrix& view, size_t row, size_t col) {
    return static_cast<Real>(view.As<float>().Row(row)[col]);
  };
  HyperRow<Real> r;
  std::vector<Real> all(32, Real(0));
  for (size_t i = 0; i < n; ++i) {
    for (size_t h = 0; h < cols; ++h) {
      const Real own = at(in.streams, token * n + i, h);
      Real s = own;
      if (in.block.data != nullptr) {
        s = m(m(at(in.post, token, i)) * at(in.block, token, h));
        Real mixed = unfused ? Real(0) : s;
        for (size_t j = 0; j < n && in.comb.data != nullptr; ++j) {
          const Real c = m(
              at(in.comb, token, options.comb_by_row ? i * n + j : j * n + i));
          mixed = std::fma(c, at(in.streams, token * n + j, h), mixed);
        }
        if (in.comb.data == nullptr) {
          s = m(s + own);
        } else {
          s = unfused ? m(s + m(mixed)) : mixed;
        }
      }
      r.streams.push_back(s);
    }
    const std::vector<Real> lanes = Squares(&r.streams[i * cols], cols);
    for (size_t lane = 0; lane < 32; ++lane)
      all[lane] = all[lane] + lanes[lane];
  }
  const Real eps = static_cast<Real>(options.eps);
  r.scale = 1 / std::sqrt(Fold(all) / static_cast<Real>(cols * n) + eps);
  if (in.pre.data == nullptr) return r;
  const bool by_rows =
      in.pre.rows == in.streams.rows && in.pre.cols == in.streams.cols;
  for (size_t h = 0; h < cols; ++h) {
    Real x = 0;
    for (size_t i = 0; i < n; ++i) {
      const Real pre =
          by_rows ? at(in.pre, token * n + i, h) : at(in.pre, token, i);
      const Real s = r.streams[i * cols + h];
      x = i == 0 ? pre * s : std::fma(pre, s, x);
    }
    r.out.push_back(m(x));
  }
  if (in.norm_weight.data == nullptr) return r;
  const Real mean = Fold(Squares(r.out.data(), cols)) / static_cast<Real>(cols);
  const Real scale = 1 / std::sqrt(mean + eps);
  for (size_t h = 0; h < cols; ++h) {
    const Real w = at(in.norm_weight, 0, h);
    r.normed.push_back(r.out[h] * scale * (options.norm_plus_one ? 1 + w : w));
  }
  return r;
}

}  // namespace

HyperRow<double> Hyper(const HyperInputs& inputs, const HyperOptions& options,
                       size_t token) {
  HyperOptions exact = options;
  exact.round_like_unfused = false;
  return Make<double>(inputs, exact, token, [](double x) { return x; });
}
HyperRow<float> HyperFixed(const HyperInputs& inputs,
                           const HyperOptions& options, size_t token,
                           Type rounded) {
  const Type type = options.round_like_unfused ? rounded : Type::kF32;
  return Make<float>(inputs, options, token, [type](float x) {
    return testing_support::Rounded(type, x);
  });
}

}  // namespace switchyard::reference
