// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Calls of Combine with the options that models need, such as scales, norms
// and shared experts. combine_corpus.cc has the calls of the plain sum.

#include "switchyard/combine.h"
#include "tools/corpus/corpus.h"

namespace switchyard::corpus {
namespace {

constexpr size_t kTokens = 3;

struct Call {
  CombineInputs in = {{}, {}, RowIndex::kTokenOrder};
  CombineOptions options;
};
// The inputs that a form may use in addition to rows, weights and residual.
struct Parts {
  ConstAnyMatrix shared, gate, identity, identity_weight, vectors[7];
};
struct Form {
  const char* name;
  void (*apply)(Call& c, const Parts& p);
  bool out = true;
};

void ShareRows(Call& c, const Parts& p, size_t count = 1) {
  c.in.shared.rows = p.shared;
  c.in.shared.rows.rows = kTokens * count;
  c.in.shared.kind = SharedGate::kNone;
  c.in.shared.num_shared = count;
}

const Form kForms[] = {
    {"average",
     [](Call& c, const Parts& p) {
       ShareRows(c, p);
       c.in.residual = {};
       c.options.scales.block = 0.5f;
     }},
    {"scaled routed",
     [](Call& c, const Parts& p) {
       ShareRows(c, p);
       c.options.scales.routed = 2.5f;
     }},
    {"residual multiplier",
     [](Call& c, const Parts&) { c.options.scales.block = 0.22f; }},
    {"alpha, beta",
     [](Call& c, const Parts&) {
       c.options.scales.residual = 3.55f;
       c.options.scales.block = 0.8f;
     }},
    {"several shared",
     [](Call& c, const Parts& p) {
       ShareRows(c, p, 2);
       c.in.shared.kind = SharedGate::kLogit;
       c.in.shared.gate = p.gate;
     }},
    {"identity",
     [](Call& c, const Parts& p) {
       c.in.identity = {p.identity, p.identity_weight};
     }},
    {"block norm",
     [](Call& c, const Parts& p) {
       ShareRows(c, p);
       c.in.norms.block = p.vectors[0];
       c.options.block_eps = 1e-5f;
     }},
    {"three norms",
     [](Call& c, const Parts& p) {
       ShareRows(c, p);
       c.in.norms = {p.vectors[0], p.vectors[1], p.vectors[2]};
       c.options.block_norm = c.options.norm = NormKind::kWeightInF32;
       c.options.scales.out = 0.75f;
     }},
    {"plus one",
     [](Call& c, const Parts& p) {
       c.in.norms.block = p.vectors[0];
       c.options.block_norm = c.options.norm = NormKind::kPlusOne;
     }},
    {"plus one first",
     [](Call& c, const Parts& p) {
       ShareRows(c, p);
       c.in.norms = {p.vectors[0], p.vectors[1], p.vectors[2]};
       c.options.block_norm = NormKind::kPlusOneFirst;
       c.in.vectors.block_scale = p.vectors[3];
       c.in.vectors.residual_scale = p.vectors[4];
     }},
    {"affine",
     [](Call& c, const Parts& p) {
       c.in.vectors = {p.vectors[3], p.vectors[4], p.vectors[5], p.vectors[6]};
     }},
    {"no rows",
     [](Call& c, const Parts& p) {
       ShareRows(c, p);
       c.in.rows = {};
       c.in.topk_weights = {};
     }},
    {"no out", [](Call&, const Parts&) {}, false},
};

void Run(Executor& executor, Digests& digests, const Form& form, Type type,
         bool unfused, size_t top_k, size_t hidden) {
  const auto value = [](uint32_t stream) {
    return [stream](size_t i) { return Uniform(stream, i, 2.0f); };
  };
  TypedRows rows(type, kTokens * top_k, hidden, 1, value(41)),
      weights(Type::kF32, kTokens, top_k, 2, value(42)),
      residual(type, kTokens, hidden, 3, value(44)),
      norm_weight(type, 1, hidden, 0, value(47)),
      shared(type, 2 * kTokens, hidden, 1, value(61)),
      gate(Type::kF32, kTokens, 2, 1, value(62)),
      identity(type, kTokens, hidden, 2, value(63)),
      identity_weight(Type::kF32, kTokens, 1, 0, value(64)),
      vectors(type, 7, hidden, 1, value(65)), out(type, kTokens, hidden, 4),
      normed(type, kTokens, hidden, 5);
  Call call;
  call.in = {rows.view(), weights.view(), RowIndex::kTokenOrder,
             residual.view(), norm_weight.view()};
  call.options.round_like_unfused = unfused;
  Parts parts = {
      shared.view(), gate.view(), identity.view(), identity_weight.view(), {}};
  for (size_t i = 0; i < 7; ++i) {
    parts.vectors[i] = vectors.view().RowRange(i, i + 1);
  }
  form.apply(call, parts);
  CombineOutputs outputs = {{}, normed.view()};
  if (form.out) outputs.out = out.view();
  digests.Check(Combine(call.in, outputs, call.options, executor));
  AddFloats(digests.floats, normed.view());
  if (form.out) AddFloats(digests.floats, out.view());
}

void RunAll(Executor& executor, Digests& digests, const Form& form, Type type,
            bool unfused) {
  for (const size_t top_k : {1u, 8u, 65u}) {
    for (const size_t hidden : {1u, 33u, 129u, 515u, 1030u}) {
      Run(executor, digests, form, type, unfused, top_k, hidden);
    }
  }
  Run(executor, digests, form, type, unfused, 2, 2880);
  // The rows are longer than the buffer for a row.
  Run(executor, digests, form, type, unfused, 2, 9001);
}

const Registration registration("combine", [](std::vector<Case>& cases) {
  struct Kind {
    const char* name;
    Type type;
    bool unfused;
  };
  for (const Form& form : kForms) {
    for (const Kind& kind : {Kind{"", Type::kF32, false},
                             {", bf16", Type::kBF16, false},
                             {", bf16 unfused", Type::kBF16, true},
                             {", f16 unfused", Type::kF16, true}}) {
      cases.push_back({std::string("combine form ") + form.name + kind.name,
                       [&form, kind](Executor& executor, Digests& digests) {
                         RunAll(executor, digests, form, kind.type,
                                kind.unfused);
                       }});
    }
  }
});

}  // namespace
}  // namespace switchyard::corpus
