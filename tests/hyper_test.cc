// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/hyper.h"

#include <cmath>
#include <memory>

#include "switchyard/isa.h"
#include "testing/reference_hyper.h"
#include "tests/call_errors.h"
#include "tests/stored_input.h"

namespace switchyard::testing_support {
namespace {

class HyperTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(HyperTest);

constexpr Type AnyType(size_t i) { return kFloatTypes[i % 3]; }

// A random call, its inputs in f32, and what it is to give.
struct Form {
  Form(Random& random, bool strange, size_t tokens_in, size_t n, size_t hidden)
      : tokens(tokens_in) {
    const auto maybe = [&](size_t of) { return random.Below(of) == 0; };
    const bool bf16 = maybe(2);
    const auto type = [&] {
      return bf16 ? Type::kBF16 : AnyType(random.Below(3));
    };
    const auto add = [&](ConstAnyMatrix HyperInputs::*member, size_t rows,
                         size_t cols, float low, float high) {
      inputs.push_back(std::make_unique<StoredInput>(random, rows, cols, low,
                                                     high, strange, type()));
      in.*member = inputs.back()->view();
      exact.*member = inputs.back()->f32();
    };
    add(&HyperInputs::streams, tokens * n, hidden, -2, 2);
    if (!maybe(4)) {
      add(&HyperInputs::block, tokens, hidden, -2, 2);
      add(&HyperInputs::post, tokens, n, 0, 2);
      if (!maybe(3)) add(&HyperInputs::comb, tokens, n * n, -1, 1);
    }
    const auto output = [&](size_t rows, size_t cols) {
      outputs.push_back(std::make_unique<GuardedValues>(
          type(), rows, cols, cols + random.Below(3), random.Below(4)));
      return outputs.back()->view();
    };
    if (!maybe(3)) {
      in_place = maybe(2);
      const AnyMatrix own = output(tokens * n, hidden);
      out.streams = in_place ? inputs[0]->view() : own;
    }
    if (maybe(2)) out.scales = output(tokens, 1);
    if (maybe(2)) {
      if (maybe(3)) {
        add(&HyperInputs::pre, tokens * n, hidden, -1, 1);
      } else {
        add(&HyperInputs::pre, tokens, n, -1, 1);
      }
      const bool norm = maybe(2);
      if (!norm || maybe(2)) out.out = output(tokens, hidden);
      if (norm) {
        add(&HyperInputs::norm_weight, 1, hidden, 0.5f, 1.5f);
        out.normed = output(tokens, hidden);
      }
    }
    // A call without any output is refused.
    if (out.streams.data == nullptr && out.scales.data == nullptr &&
        out.out.data == nullptr && out.normed.data == nullptr) {
      out.scales = output(tokens, 1);
    }
    options.num_streams = n;
    options.eps = maybe(2) ? 1e-6f : 0.5f;
    options.comb_by_row = maybe(3);
    options.norm_plus_one = maybe(2);
    options.round_like_unfused = maybe(3);
  }

  size_t tokens;
  std::vector<std::unique_ptr<StoredInput>> inputs;
  std::vector<std::unique_ptr<GuardedValues>> outputs;
  bool in_place = false;
  HyperInputs in, exact;
  HyperOutputs out;
  HyperOptions options;
};

std::vector<float> ValuesOf(const AnyMatrix& m) {
  std::vector<float> values;
  for (size_t row = 0; row < m.rows; ++row) {
    for (size_t col = 0; col < m.cols; ++col) {
      values.push_back(WidenAt(m.type, m.Row<float>(0), row * m.stride + col));
    }
  }
  return values;
}

void ExpectValues(const AnyMatrix& output, const std::vector<float>& fixed,
                  const std::vector<double>& exact, bool close,
                  const char* name) {
  if (output.data == nullptr) return;
  const std::vector<float> actual = ValuesOf(output);
  if (LastIsa()->fma) {
    ASSERT_EQ(CanonicalBits(actual), CanonicalBits(Rounded(output.type, fixed)))
        << name;
  }
  const double step = output.type == Type::kF32    ? 1e-5
                      : output.type == Type::kBF16 ? 0x1p-8
                                                   : 0x1p-11;
  for (size_t i = 0; close && i < actual.size(); ++i) {
    ASSERT_LE(std::fabs(static_cast<double>(actual[i]) - exact[i]),
              step * std::fabs(exact[i]) + 1e-4)
        << name << " at " << i;
  }
}

template <class Real>
struct All {
  std::vector<Real> streams, scales, out, normed;

  void Add(const reference::HyperRow<Real>& row) {
    streams.insert(streams.end(), row.streams.begin(), row.streams.end());
    scales.push_back(row.scale);
    out.insert(out.end(), row.out.begin(), row.out.end());
    normed.insert(normed.end(), row.normed.begin(), row.normed.end());
  }
};

void RunForm(Form& f, bool strange, Executor& executor) {
  All<float> fixed;
  All<double> exact;
  for (size_t t = 0; t < f.tokens; ++t) {
    fixed.Add(reference::HyperFixed(f.exact, f.options, t, f.in.streams.type));
    exact.Add(reference::Hyper(f.exact, f.options, t));
  }
  ASSERT_OK(HyperConnect(f.in, f.out, f.options, executor));
  const bool close = !strange && !f.options.round_like_unfused;
  ExpectValues(f.out.streams, fixed.streams, exact.streams, close, "streams");
  ExpectValues(f.out.scales, fixed.scales, exact.scales, close, "scales");
  ExpectValues(f.out.out, fixed.out, exact.out, close, "out");
  ExpectValues(f.out.normed, fixed.normed, exact.normed, close, "normed");
  for (const auto& output : f.outputs) output->ExpectIntact("output");
  for (size_t i = f.in_place ? 1 : 0; i < f.inputs.size(); ++i) {
    f.inputs[i]->ExpectUnchanged();
  }
  if (f.in_place) f.inputs[0]->stored().ExpectIntact("streams");
}

TEST_P(HyperTest, AnyForm) {
  constexpr size_t kHidden[] = {1, 2, 31, 32, 33, 64, 127, 255, 256, 257, 520};
  Random random(4);
  for (int i = 0; i < 80; ++i) {
    const bool strange = i % 4 == 3;
    const size_t n = random.Below(2) == 0 ? 4 : 1 + random.Below(kMaxStreams);
    Form f(random, strange, 1 + random.Below(3), n,
           kHidden[random.Below(std::size(kHidden))]);
    SCOPED_TRACE(testing::Message() << "case " << i << ", n " << n);
    RunForm(f, strange, executor());
    if (HasFailure()) return;
  }
}

// More columns than are kept of what streams collapse to.
TEST_P(HyperTest, WideRows) {
  Random random(5);
  for (size_t i = 0; i < 6; ++i) {
    Form f(random, false, 1, 2 + i % 3, 8192 + 100 * i);
    SCOPED_TRACE(testing::Message() << "case " << i);
    RunForm(f, false, executor());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace switchyard::testing_support
