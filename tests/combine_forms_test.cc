// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Everything that Combine has, in any combination: to the bit of its formula in
// f32 where there are FMAs, close to it in double precision elsewhere.

#include <cmath>
#include <memory>

#include "switchyard/combine.h"
#include "switchyard/isa.h"
#include "testing/reference_combine.h"
#include "tests/call_errors.h"
#include "tests/stored_input.h"

namespace switchyard::testing_support {
namespace {

class CombineFormsTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(CombineFormsTest);

// A random call, its inputs in f32, and what they are to give.
struct Form {
  Form(Random& random_in, bool strange_in, size_t hidden_in)
      : random(random_in),
        strange(strange_in),
        tokens(1 + random.Below(4)),
        top_k(random.Below(4) == 0 ? 0 : 1 + random.Below(9)),
        hidden(hidden_in),
        one_type(random.Below(2) == 0),
        the_type(AnyType()) {
    const auto maybe = [&](size_t of) { return random.Below(of) == 0; };
    const auto add = [&](ConstAnyMatrix* stored, ConstAnyMatrix* f32,
                         size_t rows, size_t cols, float low, float high) {
      StoredInput& a = Make(rows, cols, low, high);
      *stored = a.view();
      *f32 = a.f32();
      return &a;
    };
    if (top_k != 0) {
      const bool by_index = maybe(2);
      const size_t num_rows = tokens * top_k;
      ConstAnyMatrix rows, rows_f32;
      add(&rows, &rows_f32, num_rows, hidden, -2.0f, 2.0f);
      in.rows = rows, exact.rows = rows_f32;
      add(&in.topk_weights, &exact.topk_weights, tokens, top_k, -0.5f, 1.0f);
      for (size_t p = 0; p < num_rows; ++p) {
        index.push_back(static_cast<int32_t>(random.Below(num_rows + 1)) - 1);
      }
      if (by_index) {
        in.row_index = exact.row_index = {index.data(), tokens, top_k};
      }
    }
    if (maybe(3)) {
      add(&in.identity.rows, &exact.identity.rows, tokens, hidden, -2, 2);
      const bool row = maybe(2);
      add(&in.identity.weight, &exact.identity.weight, row ? 1 : tokens,
          row ? tokens : 1, -1, 1);
    }
    if (maybe(2) || (top_k == 0 && in.identity.rows.data == nullptr)) {
      const size_t n = maybe(3) ? 2 + random.Below(2) : 1;
      in.shared.num_shared = n;
      in.shared.kind = maybe(2) ? SharedGate::kNone : SharedGate::kScalar;
      exact.shared = in.shared;
      shared =
          add(&in.shared.rows, &exact.shared.rows, tokens * n, hidden, -2, 2);
      if (in.shared.kind != SharedGate::kNone) {
        add(&in.shared.gate, &exact.shared.gate, tokens, n, -1, 1);
      }
    }
    const auto vector = [&](ConstAnyMatrix* stored, ConstAnyMatrix* f32,
                            size_t of) {
      if (maybe(of)) add(stored, f32, 1, hidden, -0.5f, 1.5f);
    };
    if (top_k != 0) vector(&in.norms.routed, &exact.norms.routed, 4);
    if (shared != nullptr) vector(&in.norms.shared, &exact.norms.shared, 3);
    vector(&in.norms.block, &exact.norms.block, 3);
    vector(&in.vectors.block_bias, &exact.vectors.block_bias, 4);
    vector(&in.vectors.block_scale, &exact.vectors.block_scale, 4);
    if (maybe(2)) {
      residual = add(&in.residual, &exact.residual, tokens, hidden, -4, 4);
      vector(&in.vectors.residual_bias, &exact.vectors.residual_bias, 4);
      vector(&in.vectors.residual_scale, &exact.vectors.residual_scale, 4);
    }
    const auto scale = [&](float* f) {
      if (maybe(3)) *f = random.Uniform(-2.0f, 2.0f);
    };
    scale(&options.scales.routed);
    scale(&options.scales.block);
    scale(&options.scales.residual);
    scale(&options.scales.out);
    options.eps = maybe(2) ? 1e-6f : 0.5f;
    options.block_eps = maybe(2) ? 1e-6f : 0.25f;
    options.norm = NormKind(random.Below(3));
    options.block_norm = NormKind(random.Below(4));
    options.round_like_unfused = maybe(3);
    const bool norm = maybe(2);
    if (norm) add(&in.norm_weight, &exact.norm_weight, 1, hidden, 0.5f, 1.5f);
    PlaceOutputs(norm, norm && maybe(3));
  }

  // In place now and then.
  void PlaceOutputs(bool norm, bool no_out) {
    for (int i = 0; i < 2; ++i) {
      const Type type = AnyType();
      outputs.push_back(std::make_unique<GuardedValues>(
          type, tokens, hidden, hidden + random.Below(3), random.Below(4)));
    }
    const GuardedValues* place = nullptr;
    if (residual != nullptr && random.Below(3) == 0) {
      place = &residual->stored();
    } else if (shared != nullptr && in.shared.num_shared == 1 &&
               random.Below(3) == 0) {
      place = &shared->stored();
    }
    const GuardedValues* const first = place ? place : outputs[0].get();
    if (!no_out) {
      written = first;
      out.out = first->view();
    }
    if (norm) {
      normed = no_out ? first : outputs[1].get();
      out.normed = normed->view();
    }
  }

  Type AnyType() {
    return one_type && !inputs.empty() ? the_type
                                       : kFloatTypes[random.Below(3)];
  }
  StoredInput& Make(size_t rows, size_t cols, float low, float high) {
    inputs.push_back(std::make_unique<StoredInput>(random, rows, cols, low,
                                                   high, strange, AnyType()));
    return *inputs.back();
  }
  Type Rounded() const {
    return out.out.data != nullptr       ? out.out.type
           : in.residual.data != nullptr ? in.residual.type
                                         : out.normed.type;
  }

  Random& random;
  const bool strange;
  const size_t tokens, top_k, hidden;
  const bool one_type;
  std::vector<std::unique_ptr<StoredInput>> inputs;
  const Type the_type;
  std::vector<std::unique_ptr<GuardedValues>> outputs;
  std::vector<int32_t> index;
  StoredInput* shared = nullptr;
  StoredInput* residual = nullptr;
  const GuardedValues* written = nullptr;
  const GuardedValues* normed = nullptr;
  CombineInputs in = {{}, {}, RowIndex::kTokenOrder};
  CombineInputs exact = {{}, {}, RowIndex::kTokenOrder};
  CombineOutputs out;
  CombineOptions options;
};

// An output, against bits or, without FMA, numbers.
void ExpectValues(const Form& f, const GuardedValues* output,
                  const std::vector<float>& fixed,
                  const std::vector<double>& exact, const char* name) {
  if (output == nullptr) return;
  output->ExpectIntact(name);
  const std::vector<float> actual = output->Values();
  const Type type = output->view().type;
  if (LastIsa()->fma) {
    ASSERT_EQ(CanonicalBits(actual),
              CanonicalBits(testing_support::Rounded(type, fixed)))
        << name;
  }
  if (f.strange || f.options.round_like_unfused) return;
  const double step = type == Type::kF32    ? 1e-5
                      : type == Type::kBF16 ? 0x1p-8
                                            : 0x1p-11;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double error = std::fabs(static_cast<double>(actual[i]) - exact[i]);
    ASSERT_LE(error, step * std::fabs(exact[i]) + 2e-4) << name << " at " << i;
  }
}

void RunForm(Form& f, Executor& executor) {
  std::vector<float> out, normed;
  std::vector<double> exact_out, exact_normed;
  const auto append = [](const auto& from, auto* to) {
    to->insert(to->end(), from.begin(), from.end());
  };
  for (size_t t = 0; t < f.tokens; ++t) {
    const auto fixed =
        reference::CombineFormFixed(f.exact, f.options, t, f.Rounded());
    append(fixed.out, &out);
    append(fixed.normed, &normed);
    const auto exact = reference::CombineForm(f.exact, f.options, t);
    append(exact.out, &exact_out);
    append(exact.normed, &exact_normed);
  }
  ASSERT_OK(switchyard::Combine(f.in, f.out, f.options, executor));
  ExpectValues(f, f.written, out, exact_out, "out");
  ExpectValues(f, f.normed, normed, exact_normed, "normed");
  for (const auto& input : f.inputs) {
    if (&input->stored() == f.written || &input->stored() == f.normed) continue;
    input->ExpectUnchanged();
  }
}

TEST_P(CombineFormsTest, AnyForm) {
  constexpr size_t kHidden[] = {1,   2,   31,  32,  33,  64,
                                127, 200, 511, 512, 513, 1030};
  Random random(14);
  for (int i = 0; i < 100; ++i) {
    Form f(random, i % 4 == 3, kHidden[random.Below(std::size(kHidden))]);
    SCOPED_TRACE(testing::Message() << "case " << i);
    RunForm(f, executor());
    if (HasFailure()) return;
  }
}

// More columns than are kept.
TEST_P(CombineFormsTest, WideRows) {
  Random random(15);
  for (int i = 0; i < 6; ++i) {
    Form f(random, false, 8192 + 700 * static_cast<size_t>(i));
    SCOPED_TRACE(testing::Message() << "case " << i);
    RunForm(f, executor());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace switchyard::testing_support
