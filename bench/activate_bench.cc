// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/bench.h"
#include "bench/ggml.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "switchyard/activate.h"
#include "testing/reference.h"

namespace switchyard::bench {
namespace {

struct Data {
  size_t rows, cols;
  Aligned<float> gate = Floats(rows * cols, 2);
  Aligned<float> up = Floats(rows * cols, 3);
  Aligned<float> out = Aligned<float>(rows * cols);

  Data(size_t r, size_t c) : rows(r), cols(c) {}
  ActivateInputs In() const {
    return {{gate.data(), rows, cols}, {up.data(), rows, cols}};
  }
  ActivateOutputs Out() { return {{out.data(), rows, cols}}; }
  Status Call(size_t, Executor& executor) {
    return Activate(In(), Out(), {}, executor);
  }
  std::vector<Output> Wanted() {
    Output want(out);
    for (size_t i = 0; i < out.size(); ++i) {
      want.floats.push_back(reference::Silu(static_cast<double>(gate[i])) *
                            static_cast<double>(up[i]));
    }
    return {want};
  }
};

std::string Text(size_t rows, size_t cols) {
  return std::to_string(rows) + "x" + std::to_string(cols);
}
Facts FactsOf(const std::string& name, const char* model, size_t rows,
              size_t cols) {
  return {name, model, "row", static_cast<double>(rows),
          12.0 * static_cast<double>(rows * cols)};
}
Case<Data>::Make Make(size_t rows, size_t cols) {
  return [=] { return std::make_unique<Data>(rows, cols); };
}

// A loop of the probes' over rows.
template <class Loop>
auto Probe(Loop loop) {
  return [loop](Data& d, size_t, size_t begin, size_t end) {
    const size_t at = begin * d.cols;
    loop(d.gate.data() + at, d.up.data() + at, d.out.data() + at,
         (end - begin) * d.cols);
  };
}

void AddGgml(Case<Data>& contest, size_t threads) {
  if (!ggml::Available()) return;
  contest.Add(ggml::Named(threads, {0}), [threads](Data& d) {
    return [&d, silu_mul = ggml::SiluMul(d.rows, d.cols, threads)](size_t) {
      silu_mul(d.gate.data(), d.up.data(), d.out.data());
    };
  });
}

void Add(const ActivationShape& shape) {
  const size_t rows = shape.rows, cols = shape.cols;
  Case<Data> contest(
      FactsOf("activate/" + Text(rows, cols), shape.model, rows, cols),
      Make(rows, cols));
  contest.AddOurs(RunnableIsas(), {0});
  contest.Add({"plain", {0}}, [](Data& d) {
    return [&d](size_t) { plain::Activate(d.In(), d.Out()); };
  });
  contest.Add({"onednn", {0}}, [](Data& d) {
    return onednn::SiluMul(d.rows, d.cols, d.gate.data(), d.up.data(),
                           d.out.data());
  });
  AddGgml(contest, 1);
  contest.AddProbe("probe", rows, Probe(BestProbes().divide));
  contest.AddProbe("probe:streaming", rows,
                   Probe(BestProbes().divide_streaming));
}

void AddOnThreads(const std::string& text, size_t rows, size_t cols,
                  bool idle) {
  Facts facts = FactsOf("activate/" + text, "", rows, cols);
  facts.model = Text(rows, cols);
  AddThreads<Data>(facts, Make(rows, cols), {0}, rows,
                   Probe(BestProbes().divide), idle, AddGgml);
}

const Registration registration([] {
  for (const ActivationShape& shape : kActivations) Add(shape);
  AddOnThreads("F=768/30us", 260, 768, true);
  AddOnThreads("F=768/100us", 750, 768, true);
  for (const auto& [rows, cols] : {std::pair<size_t, size_t>{64, 768},
                                   {512, 768},
                                   {4096, 768},
                                   {64, 2048}}) {
    AddOnThreads(Text(rows, cols), rows, cols, false);
  }
});

}  // namespace
}  // namespace switchyard::bench
