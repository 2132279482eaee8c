// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/hyper.h"
#include "tools/corpus/corpus.h"

namespace switchyard::corpus {
namespace {

constexpr size_t kTokens = 3;

struct Form {
  const char* name;
  bool block, comb, pre, pre_rows;
  Type type = Type::kF32;
  bool unfused = false;
  bool any = false;  // any bits, instead of numbers below 2
};
constexpr Form kForms[] = {
    {"tail", true, true, false, false},
    {"tail, any", true, true, false, false, Type::kF32, false, true},
    {"tail, bf16", true, true, false, false, Type::kBF16},
    {"tail, bf16 unfused", true, true, false, false, Type::kBF16, true},
    {"tail without comb", true, false, false, false},
    {"tail without comb, f16 unfused", true, false, false, false, Type::kF16,
     true},
    {"collapse", false, false, true, false},
    {"collapse, any", false, false, true, false, Type::kF32, false, true},
    {"collapse by rows, bf16", false, false, true, true, Type::kBF16},
    {"both", true, true, true, false},
    {"both, bf16 unfused", true, true, true, false, Type::kBF16, true},
};

void Run(Executor& executor, Digests& digests, const Form& form, size_t n,
         size_t hidden) {
  const auto value = [&form](uint32_t stream) {
    return [any = form.any, stream](size_t i) {
      return any ? AnyFloat(stream, i) : Uniform(stream, i, 2.0f);
    };
  };
  TypedRows streams(form.type, kTokens * n, hidden, 1, value(71)),
      block(form.type, kTokens, hidden, 2, value(72)),
      post(Type::kF32, kTokens, n, 1, value(73)),
      comb(Type::kF32, kTokens, n * n, 3, value(74)),
      pre(Type::kF32, kTokens, n, 0, value(75)),
      pre_rows(form.type, kTokens * n, hidden, 1, value(76)),
      norm_weight(form.type, 1, hidden, 0, value(77)),
      scales(Type::kF32, kTokens, 1), out(form.type, kTokens, hidden, 2),
      normed(form.type, kTokens, hidden, 3);
  HyperInputs in;
  HyperOutputs outputs;
  HyperOptions options;
  options.num_streams = n;
  options.round_like_unfused = form.unfused;
  in.streams = streams.view();
  if (form.block) {
    in.block = block.view();
    in.post = post.view();
    if (form.comb) in.comb = comb.view();
    outputs.streams = streams.view();
    outputs.scales = scales.view();
  }
  if (form.pre) {
    in.pre = form.pre_rows ? pre_rows.view() : pre.view();
    in.norm_weight = norm_weight.view();
    outputs.out = out.view();
    outputs.normed = normed.view();
  }
  digests.Check(HyperConnect(in, outputs, options, executor));
  for (TypedRows* rows : {&streams, &scales, &out, &normed}) {
    AddFloats(digests.floats, rows->view());
  }
}

const Registration registration("hyper", [](std::vector<Case>& cases) {
  for (const Form& form : kForms) {
    cases.push_back(
        {std::string("hyper ") + form.name,
         [&form](Executor& executor, Digests& digests) {
           for (const size_t n : {1u, 2u, 4u, 5u, 16u}) {
             for (const size_t hidden : {1u, 31u, 33u, 129u, 257u, 515u}) {
               Run(executor, digests, form, n, hidden);
             }
           }
           // These rows are longer than the buffer for a row.
           Run(executor, digests, form, 4, 9001);
         }});
  }
});

}  // namespace
}  // namespace switchyard::corpus
