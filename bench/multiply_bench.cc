// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Times products of rows with the weights of one expert. Each slot (one of the
// inputs that calls rotate over) has another expert. `multiply` takes quantised
// rows, as in RunExperts(), which quantises each token once for all its
// experts. `multiply_f32` takes f32 rows and quantises them in each call, as
// ggml's mul_mat does.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench.h"
#include "bench/ggml.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "bench/weights.h"
#include "src/base/weight_layout.h"
#include "switchyard/quantize.h"
#include "testing/reference_multiply.h"

namespace switchyard::bench {
namespace {

using testing_support::FormatRows;

struct Shape {
  const char* model;
  size_t out, in;
};
// The shapes of the gate or up product, and of the down product.
constexpr Shape kShapes[] = {{"Qwen3-30B-A3B, gate or up", 768, 2048},
                             {"Qwen3-30B-A3B, down", 2048, 768},
                             {"gpt-oss-120b", 2880, 2880}};
constexpr size_t kRows[] = {1, 2, 4, 32, 128};

// The bytes of the weights of all slots together. They exceed the caches, as
// the weights of a layer do, so that each call reads its weights from memory.
constexpr size_t kMemory = size_t{96} << 20;
constexpr size_t kDistinctExperts = 2;
constexpr size_t kDistinctRows = 4;  // the other rows are copies

size_t ExpertsOf(WeightFormat format, const Shape& shape) {
  const size_t bytes = PackedBytes(format, shape.out, shape.in);
  return std::max<size_t>(4, (kMemory + bytes - 1) / bytes);
}
// Returns the number of slots. Calls with many rows have fewer slots, because
// the program keeps the expected results of all slots.
size_t SlotsOf(WeightFormat format, const Shape& shape, size_t rows) {
  return std::min(ExpertsOf(format, shape), 4096 / rows);
}

// Returns the weights. Consecutive cases with the same format and shape share
// one copy.
std::shared_ptr<const Weights> WeightsOf(WeightFormat format,
                                         const Shape& shape) {
  static std::shared_ptr<const Weights> last;
  if (last == nullptr || last->stored().format != format ||
      last->stored().rows != shape.out || last->stored().cols != shape.in) {
    last = nullptr;
    last = std::make_shared<const Weights>(format, ExpertsOf(format, shape),
                                           shape.out, shape.in, 1,
                                           kDistinctExperts);
  }
  return last;
}

// Returns rows in [-1, 1]. The first value of each row is 1, so that all i8
// rows have the same scale.
std::vector<float> MakeFloats(size_t rows, size_t in) {
  const Aligned<float> distinct = Floats(kDistinctRows * in, 11, 1.0f);
  std::vector<float> floats(rows * in);
  for (size_t r = 0; r < rows; ++r) {
    std::copy_n(distinct.data() + r % kDistinctRows * in, in, &floats[r * in]);
    floats[r * in] = 1.0f;
  }
  return floats;
}

struct Data {
  size_t rows, slots, in, out_columns;
  std::shared_ptr<const Weights> weights;
  std::vector<float> floats;
  FormatRows operands;
  Aligned<float> out;
  // The rivals' weights, and oneDNN's rows, scales and offsets.
  std::shared_ptr<const ggml::Loaded> loaded, loaded_as_stored;
  HugePages onednn_weights;
  std::vector<uint8_t> onednn_rows;
  std::vector<float> onednn_scales, onednn_offsets;

  Data(WeightFormat format, const Shape& shape, size_t rows_in)
      : rows(rows_in),
        slots(SlotsOf(format, shape, rows)),
        in(shape.in),
        out_columns(shape.out),
        weights(WeightsOf(format, shape)),
        floats(MakeFloats(rows, in)),
        operands(testing_support::ProductRowsOf(format), rows, in),
        out(rows * shape.out) {
    Convert();
  }

  void Convert() {
    Check(Quantize({ConstAnyMatrix(floats.data(), rows, in)}, {Rows(rows)}));
  }
  AnyRows Rows(size_t count) {
    void* const parts[] = {operands.codes.data(), operands.scales.data()};
    size_t part = 0;
    return MapRows(operands.format, count, in,
                   [&](Type type, size_t r, size_t c) {
                     return AnyMatrix(parts[part++], type, r, c, c);
                   });
  }
  ExpertTile Tile(size_t slot) {
    return {ExpertProduct::kDown,
            static_cast<int32_t>(slot),
            0,
            0,
            Rows(rows),
            AnyMatrix(out.data(), rows, out_columns)};
  }
  Status Call(size_t slot, Executor&) {
    return MultiplyTile(weights->packed(), Tile(slot));
  }
  std::vector<Output> Wanted() {
    // The tolerance allows for rivals that round the rows in another way:
    // oneDNN's rows have 7 bits; ggml's rows have f16 scales, or are bf16 or
    // f16.
    const bool is_int8 = weights->stored().format == WeightFormat::kInt8;
    Output sums(out, is_int8 ? 0.05 : 0.02);
    std::vector<float> of_experts[kDistinctExperts];
    for (size_t e = 0; e < weights->distinct(); ++e) {
      const size_t count = std::min(rows, kDistinctRows);
      const std::vector<float> some =
          testing_support::MultiplyNaively(weights->stored(), e, Rows(count), 0,
                                           out_columns)
              .values;
      for (size_t at = 0; at < out.size(); at += some.size()) {
        Append(some, &of_experts[e]);
      }
    }
    for (size_t slot = 0; slot < slots; ++slot) {
      const std::vector<float>& values = of_experts[slot % weights->distinct()];
      sums.AddExact(values);
      Append(values, &sums.floats);
    }
    return {sums};
  }
};

// Makes oneDNN's product. CPUs without VNNI add pairs of u8 * s8 products in 16
// bits. To avoid an overflow, oneDNN's rows have 7 bits: half of a code,
// plus 64.
onednn::Operations OneDnn(Data& d) {
  constexpr int kZero = 64;
  const ExpertWeights& w = d.weights->stored();
  const auto* const codes =
      reinterpret_cast<const int8_t*>(d.operands.codes.data());
  float scale = 0.0f;
  std::copy_n(d.operands.scales.data(), sizeof(scale),
              reinterpret_cast<uint8_t*>(&scale));
  d.onednn_rows.clear();
  for (size_t i = 0; i < d.operands.codes.size(); ++i) {
    d.onednn_rows.push_back(
        static_cast<uint8_t>(std::lrint(codes[i] / 2.0f) + kZero));
  }
  d.onednn_scales.clear();
  d.onednn_offsets.clear();
  for (size_t slot = 0; slot < d.slots; ++slot) {
    for (size_t c = 0; c < w.rows; ++c) {
      const int8_t* const row = w.data.Row<int8_t>(slot) + c * w.cols;
      int sum = 0;
      for (size_t i = 0; i < w.cols; ++i) sum += row[i];
      d.onednn_scales.push_back(w.scales.Row<float>(slot)[c] * 2 * scale);
      d.onednn_offsets.push_back(static_cast<float>(-kZero * sum) *
                                 d.onednn_scales.back());
    }
  }
  return onednn::Multiply(
      {d.rows, d.in, d.out_columns, d.slots, d.onednn_rows.data(),
       w.data.Row<int8_t>(0), d.onednn_scales.data(), d.onednn_offsets.data(),
       d.out.data()},
      &d.onednn_weights);
}

onednn::Operations OneDnnFloats(Data& d) {
  const ExpertWeights& w = d.weights->stored();
  const Type type = w.format == WeightFormat::kBF16 ? Type::kBF16 : Type::kF32;
  return onednn::Multiply({type, d.rows, d.in, d.out_columns, d.slots,
                           d.operands.codes.data(), w.data.data, d.out.data()},
                          &d.onednn_weights);
}

// Returns ggml's product, with weights that are repacked or used as stored.
auto Ggml(Data& d, bool repacked) {
  std::shared_ptr<const ggml::Loaded>& loaded =
      repacked ? d.loaded : d.loaded_as_stored;
  if (loaded == nullptr) loaded = ggml::Load(d.weights->stored(), repacked);
  return [&d, run = ggml::Multiply(loaded, d.rows)](size_t slot) {
    run(slot, d.floats.data(), d.out.data());
  };
}

void Add(WeightFormat format, const char* name, const Shape& shape,
         size_t rows) {
  Facts facts = {"multiply/" + std::string(name) + "/" +
                     std::to_string(shape.out) + "x" +
                     std::to_string(shape.in) + "/rows=" + std::to_string(rows),
                 shape.model};
  facts.units = static_cast<double>(rows);
  facts.bytes = static_cast<double>(PackedBytes(format, shape.out, shape.in));
  facts.slots = SlotsOf(format, shape, rows);
  facts.large = true;
  const auto make = [=] { return std::make_unique<Data>(format, shape, rows); };
  Case<Data> quantised(facts, make);
  std::vector<Isa> isas;
  for (const Isa& isa : RunnableIsas()) {
    if (isa.fma) isas.push_back(isa);
  }
  quantised.AddOurs(isas, {0});
  for (const Isa& isa : MainIsas()) {
    quantised.Add({std::string(isa.name) + ":stored", {0}, isa.name, true},
                  [](Data& d) {
                    return [&d](size_t slot) {
                      Check(MultiplyTile(d.weights->stored(), d.Tile(slot)));
                    };
                  });
  }
  if (format == WeightFormat::kInt8) quantised.Add({"onednn", {0}}, OneDnn);
  if (format == WeightFormat::kF32 ||
      (format == WeightFormat::kBF16 && onednn::SupportsBf16())) {
    quantised.Add({"onednn", {0}}, OneDnnFloats);
  }
  // Only reads the packed weights.
  const auto probe = [](Data& d) {
    return [&d](size_t slot) {
      const ExpertWeights& packed = d.weights->packed();
      BestProbes().move(packed.data.Row<uint8_t>(slot),
                        packed.data.cols / sizeof(float), nullptr, 0);
    };
  };
  quantised.Add({"probe"}, probe);
  if (format == WeightFormat::kInt8) return;  // ggml has no int8

  facts.name.insert(facts.name.find('/'), "_f32");
  Case<Data> floats(facts, make);
  for (const Isa& isa : MainIsas()) {
    floats.Add({isa.name, {0}, isa.name, true}, [](Data& d) {
      return [&d](size_t slot) {
        d.Convert();
        Check(MultiplyTile(d.weights->packed(), d.Tile(slot)));
      };
    });
  }
  if (ggml::Has(format)) {
    const bool repacks = ggml::Repacks(format, shape.out, shape.in);
    floats.Add(ggml::Named(1, {0}),
               [repacks](Data& d) { return Ggml(d, repacks); });
    if (repacks) {
      floats.Add({"ggml:stored", {0}}, [](Data& d) { return Ggml(d, false); });
    }
  }
  floats.Add({"probe"}, probe);
}

const Registration registration([] {
  const auto add = [](WeightFormat format, const char* name) {
    for (const Shape& shape : kShapes) {
      if (!Takes(format, shape.in)) continue;
      for (const size_t rows : kRows) Add(format, name, shape, rows);
    }
  };
#define SWITCHYARD_ADD(format, name, ...) add(WeightFormat::format, name);
  SWITCHYARD_WEIGHT_FORMATS(SWITCHYARD_ADD)
#undef SWITCHYARD_ADD
});

}  // namespace
}  // namespace switchyard::bench
