// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/bench.h"
#include "bench/ggml.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "bench/rows.h"
#include "switchyard/activate.h"
#include "testing/reference_activate.h"
#include "testing/reference_rows.h"

namespace switchyard::bench {
namespace {

struct Data {
  Types types;
  size_t rows, cols;
  ActivateOptions options = {};
  Rows gate = Rows::Make(types.in, rows, cols, 2);
  Rows up = Rows::Make(types.in, rows, cols, 3);
  Rows out = Rows(types.out, rows, cols);

  Data(const Types& t, size_t r, size_t c, const ActivateOptions& o = {})
      : types(t), rows(r), cols(c), options(o) {}
  ActivateInputs In() const { return {gate.In(), up.In()}; }
  ActivateOutputs Out() { return {out.Out()}; }
  Status Call(size_t, Executor& executor) {
    return Activate(In(), Out(), options, executor);
  }
  std::vector<Output> Wanted() {
    const std::vector<float> gates = gate.Values(), ups = up.Values();
    std::vector<double> close;
    for (size_t i = 0; i < gates.size(); ++i) {
      close.push_back(
          reference::Activated(options, gates[i], ups[i], true).value);
    }
    std::vector<float> exact(IsF32(types) ? 0 : gates.size());
    if (!exact.empty()) {
      Check(Activate({{gates.data(), rows, cols}, {ups.data(), rows, cols}},
                     {{exact.data(), rows, cols}}, options));
    }
    std::vector<Output> outputs;
    out.AddWanted(
        reference::Quantize(exact, exact.size() / cols, cols, out.format()),
        close, &outputs);
    return outputs;
  }
};

std::string Text(size_t rows, size_t cols) {
  return std::to_string(rows) + "x" + std::to_string(cols);
}
Facts FactsOf(const std::string& name, const char* model, const Types& types,
              size_t rows, size_t cols) {
  const Rows in(types.in, 1, cols), out(types.out, 1, cols);
  return {name,
          model,
          "row",
          static_cast<double>(rows),
          static_cast<double>(rows * (2 * in.RowBytes() + out.RowBytes())),
          1,
          Text(types)};
}
Case<Data>::Make Make(const Types& types, size_t rows, size_t cols) {
  return [=] { return std::make_unique<Data>(types, rows, cols); };
}

// Returns a probe that runs a loop of BestProbes() over f32 rows.
template <class Loop>
auto Probe(Loop loop) {
  return [loop](Data& d, size_t, size_t begin, size_t end) {
    loop(d.gate.Data<float>(begin), d.up.Data<float>(begin),
         d.out.Data<float>(begin), (end - begin) * d.cols);
  };
}

// Adds ggml's SiLU and product, in f32 or f16.
void AddGgml(Case<Data>& contest, size_t threads) {
  if (!ggml::Available()) return;
  contest.Add(ggml::Named(threads, {0}), [threads](Data& d) {
    return [&d, silu_mul = ggml::SiluMul(d.gate.format().type, d.rows, d.cols,
                                         threads)](size_t) {
      silu_mul(d.gate.Data(), d.up.Data(), d.out.Data());
    };
  });
}

void Add(const ActivationShape& shape, const Types& types) {
  const size_t rows = shape.rows, cols = shape.cols;
  Case<Data> contest(
      FactsOf("activate/" + Text(rows, cols), shape.model, types, rows, cols),
      Make(types, rows, cols));
  contest.AddOurs(IsasFor(types), AllOutputs(types.out));
  const std::string text = Text(types);
  const bool bf16 = text == "bf16";
  if (text.empty() || bf16) {
    contest.Add({"plain", {0}}, [](Data& d) {
      return [&d](size_t) { plain::Activate(d.In(), d.Out()); };
    });
  }
  if (text.empty() || (bf16 && onednn::SupportsBf16())) {
    contest.Add({"onednn", {0}}, [](Data& d) {
      return onednn::SiluMul(d.gate.format().type, d.rows, d.cols,
                             d.gate.Data(), d.up.Data(), d.out.Data());
    });
  }
  if (text.empty() || text == "f16") AddGgml(contest, 1);
  if (text.empty()) {
    contest.AddProbe("probe", rows, Probe(BestProbes().divide));
    contest.AddProbe("probe:streaming", rows,
                     Probe(BestProbes().divide_streaming));
  }
}

// Adds an activation other than SiLU. Also adds SiLU on the same rows, to
// compare the times.
void AddOther(const char* name, Activation activation, float limit,
              const ActivationShape& shape, const Types& types) {
  const size_t rows = shape.rows, cols = shape.cols;
  ActivateOptions options;
  options.activation = activation;
  options.limit = limit;
  Case<Data> contest(
      FactsOf(std::string("activate_") + name + "/" + Text(rows, cols),
              shape.model, types, rows, cols),
      [=] { return std::make_unique<Data>(types, rows, cols, options); });
  contest.AddOurs(MainIsas(), AllOutputs(types.out));
  for (const Isa& isa : MainIsas()) {
    contest.Add({std::string(isa.name) + ":silu", {}, isa.name, isa.fma},
                [](Data& d) {
                  return [&d](size_t) { Check(Activate(d.In(), d.Out())); };
                });
  }
  contest.Add({"plain", {0}}, [](Data& d) {
    return [&d](size_t) { plain::Activate(d.In(), d.Out(), d.options); };
  });
}

void AddOnThreads(const std::string& text, size_t rows, size_t cols,
                  bool idle) {
  Facts facts = FactsOf("activate/" + text, "", kF32, rows, cols);
  facts.model = Text(rows, cols);
  AddThreads<Data>(facts, Make(kF32, rows, cols), {0}, rows,
                   Probe(BestProbes().divide), idle, AddGgml);
}

const Registration registration([] {
  for (const ActivationShape& shape : kActivations) {
    for (const Types& types : kActivateTypes) Add(shape, types);
  }
  constexpr Types kOthersTypes[] = {{"f32", "f32"}, {"bf16", "bf16"}};
  for (const Types& types : kOthersTypes) {
    for (const ActivationShape& shape : {kActivations[0], kActivations[1]}) {
      AddOther("limited", Activation::kSilu, 3.0f, shape, types);
      AddOther("gelu", Activation::kGelu, 0.0f, shape, types);
      AddOther("gelu_tanh", Activation::kGeluTanh, 0.0f, shape, types);
      AddOther("relu2", Activation::kRelu2, 0.0f, shape, types);
      AddOther("swiglu_oai", Activation::kSwigluOai, 3.0f, shape, types);
      AddOther("situ", Activation::kSitu, 0.0f, shape, types);
    }
  }
  AddOnThreads("F=768/30us", 260, 768, true);
  AddOnThreads("F=768/100us", 750, 768, true);
  for (const auto& [rows, cols] : {std::pair<size_t, size_t>{64, 768},
                                   {512, 768},
                                   {4096, 768},
                                   {64, 2048}}) {
    AddOnThreads(Text(rows, cols), rows, cols, false);
  }
});

const Registration asked([](const LayerShape& shape) {
  for (const Types& types : kActivateTypes) {
    if (!Fit(types, shape.intermediate)) continue;
    Add({"", shape.tokens * shape.top_k, shape.intermediate}, types);
  }
});

}  // namespace
}  // namespace switchyard::bench
