// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Random calls of Combine().

#ifndef SWITCHYARD_TESTS_COMBINE_CASE_H_
#define SWITCHYARD_TESTS_COMBINE_CASE_H_

#include "switchyard/combine.h"
#include "tests/call_errors.h"
#include "tests/row_types.h"

namespace switchyard::testing_support {

struct CombineShape {
  size_t tokens = 1;
  size_t top_k = 1;
  size_t hidden = 1;
  bool row_index = false;
  bool shared = false;
  SharedGate kind = SharedGate::kScalar;
  bool residual = false;
};

inline CombineShape EveryPart(size_t tokens, size_t top_k, size_t hidden,
                              SharedGate kind = SharedGate::kScalar) {
  return {tokens, top_k, hidden, true, true, kind, true};
}

class CombineCase {
 public:
  CombineCase(const CombineShape& s, uint64_t seed) : shape(s) {
    Random random(seed);
    const size_t pairs = s.tokens * s.top_k;
    rows = random.Uniforms(pairs * s.hidden, -2.0f, 2.0f);
    weights = random.Uniforms(pairs, -0.5f, 1.0f);
    norm_weight = random.Uniforms(s.hidden, 0.5f, 1.5f);
    for (size_t p = 0; p < pairs; ++p) index.push_back(static_cast<int32_t>(p));
    if (s.row_index) {
      for (size_t p = pairs; p > 1; --p) {
        std::swap(index[p - 1], index[random.Below(p)]);
      }
    }
    if (s.shared) {
      shared = random.Uniforms(s.tokens * s.hidden, -2.0f, 2.0f);
      if (s.kind != SharedGate::kNone) {
        gate = random.Uniforms(s.tokens, -3.0f, 3.0f);
      }
    }
    if (s.residual) {
      residual = random.Uniforms(s.tokens * s.hidden, -4.0f, 4.0f);
    }
  }

  CombineInputs Inputs() const {
    const CombineShape& s = shape;
    CombineInputs in = {{rows.data(), s.tokens * s.top_k, s.hidden},
                        {weights.data(), s.tokens, s.top_k},
                        RowIndex::kTokenOrder};
    if (s.row_index) in.row_index = {index.data(), s.tokens, s.top_k};
    if (s.shared) {
      in.shared.rows = {shared.data(), s.tokens, s.hidden};
      if (s.kind != SharedGate::kNone) in.shared.gate = gate;
      in.shared.kind = s.kind;
    }
    if (s.residual) in.residual = {residual.data(), s.tokens, s.hidden};
    return in;
  }

  bool HasStaleRows() const {
    const auto num_rows = static_cast<int32_t>(index.size());
    return shape.row_index &&
           std::any_of(index.begin(), index.end(), [num_rows](int32_t row) {
             return row < -1 || row >= num_rows;
           });
  }

  CombineShape shape;
  std::vector<float> rows, weights, norm_weight, shared, gate, residual;
  std::vector<int32_t> index;
};

constexpr float kEps = 1e-6f;

// The results of a call. `normed` is empty if the call does not compute it.
struct CombineResult {
  std::vector<float> out, normed;
  size_t skipped = 0;
};

inline std::vector<uint32_t> CanonicalBits(const CombineResult& r) {
  std::vector<float> all = r.out;
  all.insert(all.end(), r.normed.begin(), r.normed.end());
  return CanonicalBits(all);
}

inline CombineResult CombineF32(const CombineCase& c, bool norm,
                                Executor& executor = SerialExecutor()) {
  const CombineShape& s = c.shape;
  CombineResult r;
  r.out.assign(s.tokens * s.hidden, kNaN);
  Report report = kUnwritten;
  CombineInputs in = c.Inputs();
  CombineOutputs out = {{r.out.data(), s.tokens, s.hidden}, {}, &report};
  if (norm) {
    r.normed.assign(r.out.size(), kNaN);
    in.norm_weight = c.norm_weight;
    out.normed = {r.normed.data(), s.tokens, s.hidden};
  }
  const bool stale = c.HasStaleRows();
  EXPECT_OK(switchyard::Combine(in, out, {kEps, stale}, executor));
  r.skipped = report.skipped;
  report.skipped = kUnwritten.skipped;
  EXPECT_EQ(report, kUnwritten);
  return r;
}

// The type of each argument.
struct CombineTypes {
  Type rows, weights, residual, norm_weight, shared, gate, out, normed;
};
inline std::ostream& operator<<(std::ostream& os, const CombineTypes& t) {
  return os << "rows " << t.rows << ", weights " << t.weights << ", residual "
            << t.residual << ", norm_weight " << t.norm_weight << ", shared "
            << t.shared << ", gate " << t.gate << ", out " << t.out
            << ", normed " << t.normed;
}
constexpr CombineTypes AllOf(Type type) {
  return {type, type, type, type, type, type, type, type};
}
inline std::vector<CombineTypes> EveryMix() {
  constexpr Type kF32 = Type::kF32, kBF16 = Type::kBF16, kF16 = Type::kF16;
  return {
      AllOf(kF32),
      AllOf(kBF16),
      AllOf(kF16),
      // In the first two rows, weights, norm_weight and gate are f32. In the
      // third row, residual and out are f32 as well. In the fourth row, all
      // inputs are f32.
      {kBF16, kF32, kBF16, kF32, kBF16, kF32, kBF16, kBF16},
      {kF16, kF32, kF16, kF32, kF16, kF32, kF16, kF16},
      {kBF16, kF32, kF32, kF32, kBF16, kF32, kF32, kBF16},
      {kF32, kF32, kF32, kF32, kF32, kF32, kBF16, kBF16},
      // The types of neighbouring arguments differ.
      {kF16, kBF16, kBF16, kF16, kF32, kF16, kF16, kBF16},
      {kBF16, kF16, kF32, kBF16, kF16, kBF16, kBF16, kF16},
      // The rows are quantised and have scales.
      {Type::kI8, kF32, kBF16, kF32, kBF16, kF32, kBF16, kBF16},
      {Type::kU8, kBF16, kF16, kF16, kF16, kF16, kF32, kF16},
      {Type::kF8E4M3, kF32, kF32, kF32, kF32, kF32, kF32, kF32},
      {Type::kF8E5M2, kF16, kBF16, kBF16, kBF16, kBF16, kF16, kBF16},
  };
}

// The views of a case in the given types, between guard pages. After each row
// there is a gap of `gap` elements.
class TypedCombine {
 public:
  TypedCombine(const CombineCase& c, const CombineTypes& t, bool norm,
               size_t gap = 1)
      : TypedCombine(AsStored(c, t), t, norm, gap, c.shape) {}

  // Makes Run() write `out` over residual or shared.rows, which must have the
  // type of `out`.
  void RunInPlace(bool on_shared) {
    in_place_ = on_shared ? &shared_ : &residual_;
    out.out = in_place_->view();
  }

  CombineResult Run(Executor& executor = SerialExecutor(),
                    const CombineOptions& options = {kEps, true}) {
    EXPECT_OK(switchyard::Combine(in, out, options, executor));
    const GuardedValues* const written = in_place_ ? in_place_ : &out_;
    written->ExpectIntact("out");
    normed_.ExpectIntact("normed");
    for (const GuardedValues* read : {&residual_, &shared_}) {
      read->ExpectIntact("input");
      if (read == written) continue;
      EXPECT_EQ(CanonicalBits(read->Values()),
                CanonicalBits(read == &shared_ ? f32_.shared : f32_.residual));
    }
    return {written->Values(), normed_.Values(), report_.skipped};
  }
  // Returns the results of the f32 kernel, rounded.
  CombineResult Expected() const {
    CombineResult r = CombineF32(f32_, out.normed.data != nullptr);
    r.out = Rounded(types_.out, r.out);
    r.normed = Rounded(types_.normed, r.normed);
    return r;
  }
  // Returns the case that the f32 kernel computes for comparison. Its numbers
  // are rounded to the types of `in`. Its weights are multiplied by the scales
  // of quantised rows.
  const CombineCase& f32() const { return f32_; }

  CombineInputs in;
  CombineOutputs out;

 private:
  static bool IsCode(Type rows) { return SizeOf(rows) == 1; }
  static float Scale(size_t row) { return Uniform(77, row, 0.125f); }
  static std::vector<float> Scales(size_t n) {
    std::vector<float> scales;
    for (size_t row = 0; row < n; ++row) scales.push_back(Scale(row));
    return scales;
  }
  static CombineCase AsStored(CombineCase c, const CombineTypes& t) {
    if (IsCode(t.rows)) {
      for (float& x : c.rows) x *= 40.0f;
    }
    c.rows = Rounded(t.rows, c.rows);
    c.weights = Rounded(t.weights, c.weights);
    c.residual = Rounded(t.residual, c.residual);
    c.norm_weight = Rounded(t.norm_weight, c.norm_weight);
    c.shared = Rounded(t.shared, c.shared);
    c.gate = Rounded(t.gate, c.gate);
    return c;
  }
  // The numbers in `c` are already rounded to the types `t`. If the shape does
  // not have an optional argument, the argument has no rows.
  TypedCombine(const CombineCase& c, const CombineTypes& t, bool norm,
               size_t gap, const CombineShape& s)
      : in(c.Inputs()),
        f32_(c),
        types_(t),
        rows_(t.rows, s.tokens * s.top_k, s.hidden, s.hidden + gap, gap % 4,
              c.rows),
        scales_(Type::kF32, s.tokens * s.top_k, 1, 1 + gap, 0,
                Scales(s.tokens * s.top_k)),
        weights_(t.weights, s.tokens, s.top_k, s.top_k + gap, gap % 4,
                 c.weights),
        residual_(t.residual, s.residual ? s.tokens : 0, s.hidden,
                  s.hidden + 2 * gap, gap % 4, c.residual),
        norm_weight_(t.norm_weight, 1, s.hidden, 0, gap % 4, c.norm_weight),
        shared_(t.shared, s.shared ? s.tokens : 0, s.hidden, s.hidden + 3 * gap,
                gap % 4, c.shared),
        gate_(t.gate, c.gate.size(), 1, 1 + gap, gap % 4, c.gate),
        out_(t.out, s.tokens, s.hidden, s.hidden + 4 * gap, gap % 4),
        normed_(t.normed, norm ? s.tokens : 0, s.hidden, s.hidden + 5 * gap,
                gap % 4) {
    in.rows = {rows_.view(), IsCode(t.rows) ? scales_.view() : AnyMatrix()};
    in.topk_weights = weights_.view();
    if (s.row_index) in.row_index = {f32_.index.data(), s.tokens, s.top_k};
    if (s.residual) in.residual = residual_.view();
    if (s.shared) in.shared.rows = shared_.view();
    if (!c.gate.empty()) in.shared.gate = gate_.view();
    out.out = out_.view();
    out.report = &report_;
    if (norm) {
      in.norm_weight = norm_weight_.view();
      out.normed = normed_.view();
    }
    const size_t num_rows = f32_.index.size();
    for (size_t p = 0; p < num_rows && IsCode(t.rows); ++p) {
      const auto row = static_cast<size_t>(f32_.index[p]);
      if (row < num_rows) f32_.weights[p] *= Scale(row);
    }
  }

  CombineCase f32_;
  const CombineTypes types_;
  const GuardedValues rows_, scales_, weights_, residual_, norm_weight_,
      shared_, gate_, out_, normed_;
  Report report_;
  const GuardedValues* in_place_ = nullptr;
};

inline void ExpectSame(const CombineResult& actual,
                       const CombineResult& expected) {
  EXPECT_EQ(CanonicalBits(actual.out), CanonicalBits(expected.out));
  EXPECT_EQ(CanonicalBits(actual.normed), CanonicalBits(expected.normed));
  EXPECT_EQ(actual.skipped, expected.skipped);
}

// Returns the results of the f32 kernel, and checks the results of every
// other mix of types.
inline CombineResult Combine(const CombineCase& c, bool norm,
                             Executor& executor = SerialExecutor()) {
  for (const CombineTypes& types : EveryMix()) {
    SCOPED_TRACE(types);
    TypedCombine typed(c, types, norm);
    ExpectSame(typed.Run(executor), typed.Expected());
  }
  return CombineF32(c, norm, executor);
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_COMBINE_CASE_H_
