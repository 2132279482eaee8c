// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/combine.h"
#include "tools/corpus/format_rows.h"

namespace switchyard::corpus {
namespace {

constexpr size_t kTokens = 3;

struct Types {
  const char* name;
  // `rows` and shared.rows have the same type.
  Type rows, weights, residual, norm_weight, out, normed;
};
constexpr Type kF32 = Type::kF32, kBF16 = Type::kBF16, kF16 = Type::kF16;
constexpr Types kF32s = {"", kF32, kF32, kF32, kF32, kF32, kF32};
// These mixes of types occur in engines.
constexpr Types kTypes[] = {
    {"bf16, ", kBF16, kBF16, kBF16, kBF16, kBF16, kBF16},
    {"f16, ", kF16, kF16, kF16, kF16, kF16, kF16},
    {"bf16 by f32, ", kBF16, kF32, kBF16, kF32, kBF16, kBF16},
    {"f16 by f32, ", kF16, kF32, kF16, kF32, kF16, kF16},
    {"bf16 to f32, ", kBF16, kF32, kF32, kF32, kF32, kBF16},
    {"f32 to bf16, ", kF32, kF32, kF32, kF32, kBF16, kBF16},
    {"i8, ", Type::kI8, kF32, kBF16, kF32, kBF16, kBF16},
    {"u8, ", Type::kU8, kF32, kF16, kF32, kF16, kF16},
    {"f8e4m3, ", Type::kF8E4M3, kF32, kBF16, kF32, kBF16, kBF16},
    {"f8e5m2, ", Type::kF8E5M2, kF32, kF32, kF32, kF32, kF32},
};

struct Options {
  Types types = kF32s;
  // The format of normed, instead of types.normed.
  const Format* format = nullptr;
  bool unfused = false;
  bool norm = false;
  bool residual = false;
  bool row_index = false;
  bool shared = false;
  SharedGate gate = SharedGate::kNone;
  bool in_place = false;
  bool any = false;  // any bits, instead of numbers below 2
};

void Run(Executor& executor, Digests& digests, const Options& options,
         size_t top_k, size_t hidden) {
  const auto value = [&options](uint32_t stream) {
    return [any = options.any, stream](size_t i) {
      return any ? AnyFloat(stream, i) : Uniform(stream, i, 2.0f);
    };
  };
  const Types& types = options.types;
  const bool codes = SizeOf(types.rows) == 1;
  const size_t num_rows = kTokens * top_k;
  const auto code = [](size_t i) { return Uniform(41, i, 128.0f); };
  TypedRows rows = codes
                       ? TypedRows(types.rows, num_rows, hidden, 1, code)
                       : TypedRows(types.rows, num_rows, hidden, 1, value(41));
  TypedRows scales(kF32, num_rows, 1, 1,
                   [](size_t i) { return Uniform(48, i, 0.0625f); }),
      weights(types.weights, kTokens, top_k, 2, value(42)),
      shared(codes ? types.residual : types.rows, kTokens, hidden, 3,
             value(43)),
      residual(types.residual, kTokens, hidden, 4, value(44)),
      out(types.out, kTokens, hidden, 5),
      normed(types.normed, kTokens, hidden, 6),
      gate(types.weights, 1, kTokens, 0, value(46)),
      norm_weight(types.norm_weight, 1, hidden, 0, value(47));
  // Some slots are skipped, some rows are stale, and some are used twice.
  Rows<int32_t> row_index(kTokens, top_k, 1, [num_rows](size_t i) {
    const uint32_t hash = Hash(45, i);
    if (hash % 8 == 0) return -1;
    if (hash % 8 == 1) return static_cast<int32_t>(hash);
    return static_cast<int32_t>(hash / 8 % num_rows);
  });

  CombineInputs inputs = {{rows.view(), codes ? scales.view() : AnyMatrix()},
                          weights.view(),
                          RowIndex::kTokenOrder};
  if (options.row_index) inputs.row_index = row_index.view();
  if (options.residual) inputs.residual = residual.view();
  if (options.shared) {
    inputs.shared.rows = shared.view();
    inputs.shared.kind = options.gate;
    if (options.gate != SharedGate::kNone) inputs.shared.gate = gate.view();
  }
  const AnyMatrix sum = !options.in_place
                            ? out.view()
                            : (options.residual ? residual : shared).view();
  Report report;
  CombineOutputs outputs = {sum, {}, &report};
  const FormatMemory quantized(options.format ? *options.format : kFormats[0],
                               kTokens, hidden, 1);
  if (options.norm) {
    inputs.norm_weight = norm_weight.view();
    outputs.normed = normed.view();
    if (options.format != nullptr) outputs.normed = quantized.view();
  }
  CombineOptions combine_options;
  combine_options.round_like_unfused = options.unfused;
  combine_options.allow_skipped = true;
  digests.Check(Combine(inputs, outputs, combine_options, executor));
  if (options.norm && options.format == nullptr) {
    AddFloats(digests.floats, normed.view());
  } else if (options.norm) {
    quantized.AddTo(digests.floats);
  }
  AddFloats(digests.floats, sum);
  digests.exact.Add(static_cast<uint32_t>(report.skipped));
}

void RunAll(Executor& executor, Digests& digests, const Options& options) {
  // One list of terms holds 64 slots. Some cases have more.
  for (const size_t top_k :
       {1u, 2u, 3u, 4u, 6u, 8u, 10u, 16u, 63u, 64u, 65u, 70u}) {
    for (const size_t hidden :
         {1u, 2u, 15u, 16u, 31u, 32u, 33u, 63u, 65u, 100u, 127u, 129u, 515u}) {
      Run(executor, digests, options, top_k, hidden);
    }
  }
  for (const size_t hidden : {1408u, 2048u, 2880u, 4096u, 7168u}) {
    Run(executor, digests, options, 8, hidden);
  }
}

// Runs the sizes at which kernels take another path, with the given types and
// formats.
void RunSome(Executor& executor, Digests& digests, const Options& options) {
  const auto cols = [&options](size_t hidden) {
    return options.format ? options.format->Cols(hidden) : hidden;
  };
  for (const size_t top_k : {1u, 8u, 10u, 65u}) {
    for (const size_t hidden : {1u, 33u, 129u, 515u}) {
      Run(executor, digests, options, top_k, cols(hidden));
    }
  }
  // These rows are longer than the buffer for a row.
  for (const size_t hidden : {2880u, 9001u}) {
    Run(executor, digests, options, 2, cols(hidden));
  }
}

const Registration registration("combine", [](std::vector<Case>& cases) {
  const auto add = [&cases](const std::string& name, const Options& options) {
    for (const bool norm : {false, true}) {
      Options with_norm = options;
      with_norm.norm = norm;
      cases.push_back({"combine " + name + (norm ? ", norm" : ""),
                       [with_norm](Executor& executor, Digests& digests) {
                         RunAll(executor, digests, with_norm);
                       }});
    }
  };
  Options options;
  add("sum", options);
  options.any = true;
  add("sum, any", options);
  options.any = false;
  options.row_index = true;
  add("row index", options);
  options.residual = true;
  add("row index, residual", options);
  options.in_place = true;
  add("row index, residual in place", options);
  options.shared = true;
  options.gate = SharedGate::kLogit;
  add("row index, residual in place, shared by logit", options);
  options.any = true;
  add("row index, residual in place, shared by logit, any", options);
  options = Options();
  options.shared = true;
  options.gate = SharedGate::kScalar;
  add("shared by scalar", options);
  options.gate = SharedGate::kNone;
  options.in_place = true;
  add("shared in place", options);

  const auto add_some = [&cases](const std::string& name, const Options& some) {
    cases.push_back(
        {"combine " + name, [some](Executor& executor, Digests& digests) {
           RunSome(executor, digests, some);
         }});
  };
  for (const Types& types : kTypes) {
    options = Options();
    options.types = types;
    add_some(types.name + std::string("sum"), options);
    options.any = true;
    add_some(types.name + std::string("sum, any"), options);
    options.any = false;
    options.row_index = options.residual = options.norm = true;
    add_some(types.name + std::string("row index, residual, norm"), options);
    options.unfused = true;
    add_some(types.name + std::string("row index, residual, norm, unfused"),
             options);
    options.unfused = false;
    options.in_place = types.residual == types.out;
    options.shared = true;
    options.gate = SharedGate::kLogit;
    add_some(
        types.name + std::string("row index, residual, shared by logit, norm"),
        options);
  }
  for (const Format& format : kFormats) {
    if (format.group == 0 && BlockOf(format.type) == 1) continue;
    options = Options();
    options.types = kTypes[2];
    options.format = &format;
    options.row_index = options.residual = options.in_place = true;
    options.norm = true;
    add_some(options.types.name + std::string("norm to ") + format.name,
             options);
  }
});

}  // namespace
}  // namespace switchyard::corpus
