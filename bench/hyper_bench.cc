// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Times HyperConnect in the forms that engines call, beside a loop that only
// moves the same bytes.

#include <memory>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "switchyard/hyper.h"
#include "testing/reference_hyper.h"

namespace switchyard::bench {
namespace {

constexpr size_t kStreams = 4;  // as in DeepSeek-V4

enum class Form { kBehind, kBefore, kBoth };
struct Named {
  Form form;
  const char* name;
};
constexpr Named kForms[] = {{Form::kBehind, "behind_a_block"},
                            {Form::kBefore, "before_a_block"},
                            {Form::kBoth, "both"}};

struct Data {
  Form form;
  size_t tokens, hidden;
  Aligned<float> streams, block, post, comb, pre, norm_weight;
  Aligned<float> mixed, scales, out, normed;

  Data(Form f, size_t t, size_t h)
      : form(f),
        tokens(t),
        hidden(h),
        streams(Floats(t * kStreams * h, 5)),
        block(Floats(t * h, 6)),
        post(Floats(t * kStreams, 7, 1.0f)),
        comb(Floats(t * kStreams * kStreams, 8, 0.5f)),
        pre(Floats(t * kStreams, 9, 1.0f)),
        norm_weight(Floats(h, 10)),
        mixed(Mixes() ? streams.size() : 0),
        scales(Mixes() ? t : 0),
        out(Collapses() ? t * h : 0),
        normed(Collapses() ? t * h : 0) {}

  bool Mixes() const { return form != Form::kBefore; }
  bool Collapses() const { return form != Form::kBehind; }

  HyperInputs In() const {
    HyperInputs in = {{streams.data(), tokens * kStreams, hidden}};
    if (Mixes()) {
      in.block = {block.data(), tokens, hidden};
      in.post = {post.data(), tokens, kStreams};
      in.comb = {comb.data(), tokens, kStreams * kStreams};
    }
    if (Collapses()) {
      in.pre = {pre.data(), tokens, kStreams};
      in.norm_weight = {norm_weight.data(), 1, hidden};
    }
    return in;
  }
  HyperOutputs Out() {
    HyperOutputs to;
    if (Mixes()) {
      to.streams = {mixed.data(), tokens * kStreams, hidden};
      to.scales = {scales.data(), tokens, 1};
    }
    if (Collapses()) {
      to.out = {out.data(), tokens, hidden};
      to.normed = AnyMatrix(normed.data(), tokens, hidden);
    }
    return to;
  }
  static HyperOptions Options() {
    HyperOptions options;
    options.num_streams = kStreams;
    return options;
  }
  Status Call(size_t /*slot*/, Executor& executor) {
    return HyperConnect(In(), Out(), Options(), executor);
  }

  // Return the number of matrices [tokens, hidden] that a call reads, or
  // writes.
  size_t Reads() const { return kStreams + (Mixes() ? 1 : 0); }
  size_t Writes() const {
    return (Mixes() ? kStreams : 0) + (Collapses() ? 2 : 0);
  }
  std::vector<size_t> OutputsWritten() const {
    return form == Form::kBehind   ? std::vector<size_t>{0, 1}
           : form == Form::kBefore ? std::vector<size_t>{2, 3}
                                   : std::vector<size_t>{0, 1, 2, 3};
  }

  std::vector<Output> Wanted() {
    std::vector<Output> outputs = {Output(mixed, 1e-4), Output(scales, 1e-4),
                                   Output(out, 1e-4), Output(normed, 1e-4)};
    for (size_t t = 0; t < tokens; ++t) {
      const auto row = reference::Hyper(In(), Options(), t);
      if (Mixes()) Append(row.streams, &outputs[0].floats);
      if (Mixes()) outputs[1].floats.push_back(row.scale);
      if (Collapses()) Append(row.out, &outputs[2].floats);
      if (Collapses()) Append(row.normed, &outputs[3].floats);
    }
    return outputs;
  }
};

// Moves the bytes of tokens [begin, end), one view after the other.
void Move(Data& d, size_t begin, size_t end) {
  const auto move = BestProbes().move;
  const size_t n = (end - begin) * d.hidden, at = begin * d.hidden;
  const size_t all = n * kStreams, first = at * kStreams;
  float* const mixed = d.Mixes() ? d.mixed.data() + first : nullptr;
  move(d.streams.data() + first, all, mixed, d.Mixes() ? all : 0);
  if (d.Mixes()) move(d.block.data() + at, n, nullptr, 0);
  if (!d.Collapses()) return;
  move(nullptr, 0, d.out.data() + at, n);
  move(nullptr, 0, d.normed.data() + at, n);
}

void Add(const Named& form, size_t tokens, size_t hidden) {
  const Data d(form.form, 0, hidden);
  const Facts facts = {
      std::string("hyper/") + form.name + "/" + HiddenText(tokens, hidden),
      "DeepSeek-V4", "row", static_cast<double>(tokens),
      static_cast<double>(tokens * (d.Reads() + d.Writes()) * hidden *
                          sizeof(float))};
  Case<Data> contest(facts, [form = form.form, tokens, hidden] {
    return std::make_unique<Data>(form, tokens, hidden);
  });
  contest.AddOurs(MainIsas(), d.OutputsWritten());
  contest.Add({"plain", d.OutputsWritten()}, [](Data& data) {
    return [&data](size_t) {
      plain::HyperConnect(data.In(), data.Out(), Data::Options());
    };
  });
  contest.AddProbe("probe:sequential", tokens,
                   [](Data& data, size_t, size_t begin, size_t end) {
                     Move(data, begin, end);
                   });
  contest.AddProbe("probe:by_token", tokens,
                   [](Data& data, size_t, size_t begin, size_t end) {
                     for (size_t t = begin; t < end; ++t) Move(data, t, t + 1);
                   });
}

const Registration registration([] {
  for (const Named& form : kForms) {
    for (const size_t tokens : {1u, 64u, 512u}) Add(form, tokens, 4096);
  }
});

}  // namespace
}  // namespace switchyard::bench
