// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/conformance/layers.h"

#include <cstring>
#include <stdexcept>

#include "programs/program.h"
#include "src/calls/names.h"
#include "switchyard/activate.h"
#include "switchyard/combine.h"
#include "switchyard/isa.h"
#include "switchyard/quantize.h"
#include "testing/inputs.h"

namespace switchyard::conformance {
namespace {

using testing_support::FormatRows;
using testing_support::Uniform;
using testing_support::WeightBytes;

void Check(const Status& status) {
  if (!status.ok()) throw std::logic_error(status.message());
}

// Returns random weights that are about as large as trained weights.
WeightBytes MakeWeights(WeightFormat format, size_t rows, size_t cols,
                        uint32_t seed) {
  WeightBytes w;
  w.format = format;
  w.num_experts = Layer::kExperts;
  w.rows = rows;
  w.cols = cols;
  const size_t count = w.num_experts * rows * cols;
  if (format == WeightFormat::kInt8) {
    for (size_t i = 0; i < count; ++i) {
      w.data.push_back(
          static_cast<uint8_t>(testing_support::Hash(seed, i) >> 24));
    }
    for (size_t i = 0; i < w.num_experts * rows; ++i) {
      w.scales.push_back(0x1p-9f + Uniform(seed + 1, i, 0x1p-10f));
    }
    return w;
  }
  std::vector<float> floats(count);
  for (size_t i = 0; i < count; ++i) floats[i] = Uniform(seed, i, 0.5f);
  w.data = testing_support::QuantizeWeightsNaively(format, floats);
  return w;
}

// Returns a view of the codes and scales of `rows`.
AnyRows ViewOf(FormatRows* rows) {
  AnyRows view(AnyMatrix(reinterpret_cast<int8_t*>(rows->codes.data()),
                         rows->rows, rows->cols));
  view.scales = AnyMatrix(reinterpret_cast<float*>(rows->scales.data()),
                          rows->rows, rows->format.NumScales(rows->cols));
  return view;
}

FormatRows Quantized(WeightFormat format, const std::vector<float>& floats,
                     size_t rows) {
  const size_t cols = floats.size() / rows;
  FormatRows made(testing_support::ProductRowsOf(format), rows, cols);
  Check(Quantize({ConstAnyMatrix(floats.data(), rows, cols)}, {ViewOf(&made)}));
  return made;
}

// Multiplies each pair's row of `codes` with the weights of the pair's expert.
// Each row of `codes` belongs to `pairs_per_row` consecutive pairs.
std::vector<float> Product(const WeightBytes& weights, FormatRows codes,
                           const std::vector<int32_t>& ids,
                           size_t pairs_per_row) {
  std::vector<float> product(ids.size() * weights.rows);
  const ExpertWeights view = weights.View();
  for (size_t p = 0; p < ids.size(); ++p) {
    const size_t r = p / pairs_per_row;
    ExpertTile tile = {};
    tile.expert = ids[p];
    tile.rows = ConstAnyRows(ViewOf(&codes)).RowRange(r, r + 1);
    tile.out = AnyMatrix(&product[p * weights.rows], 1, weights.rows);
    Check(MultiplyTile(view, tile));
  }
  return product;
}

std::string Hex(uint32_t value, int digits) {
  std::string text;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    text += "0123456789abcdef"[value >> shift & 15];
  }
  return text;
}
std::string Hex(float value) {
  return Hex(testing_support::CanonicalBits(value), 8);
}

std::string ShapeLine(const char* name, size_t rows, size_t cols) {
  return std::string(name) + " " + std::to_string(rows) + " " +
         std::to_string(cols) + "\n";
}
void PutFloats(const char* name, const std::vector<float>& values, size_t rows,
               std::string* text) {
  const size_t cols = values.size() / rows;
  *text += ShapeLine(name, rows, cols);
  for (size_t i = 0; i < values.size(); ++i) {
    *text += Hex(values[i]) + ((i + 1) % cols == 0 ? '\n' : ' ');
  }
}
// Writes each byte as two hexadecimal digits, without spaces.
void PutBytes(const char* name, const std::vector<uint8_t>& bytes, size_t rows,
              std::string* text) {
  const size_t cols = bytes.size() / rows;
  *text += ShapeLine(name, rows, cols);
  for (size_t i = 0; i < bytes.size(); ++i) {
    *text += Hex(bytes[i], 2);
    if ((i + 1) % cols == 0) *text += '\n';
  }
}
void PutWeights(const std::string& name, const WeightBytes& w,
                std::string* text) {
  const size_t rows = w.num_experts * w.rows;
  PutBytes((name + "_weights").c_str(), w.data, rows, text);
  if (!w.scales.empty()) {
    PutFloats((name + "_weight_scales").c_str(), w.scales, rows, text);
  }
}
void PutCodes(const std::string& name, const FormatRows& rows,
              std::string* text) {
  PutBytes((name + "_codes").c_str(), rows.codes, rows.rows, text);
  std::vector<float> scales(rows.scales.size() / sizeof(float));
  std::memcpy(scales.data(), rows.scales.data(), rows.scales.size());
  PutFloats((name + "_scales").c_str(), scales, rows.rows, text);
}

}  // namespace

Layer::Layer(WeightFormat format)
    : name(calls::NameOf(format)),
      gate(MakeWeights(format, kIntermediate, kHidden, 1)),
      up(MakeWeights(format, kIntermediate, kHidden, 3)),
      down(MakeWeights(format, kHidden, kIntermediate, 5)),
      hidden_codes(testing_support::kProductRows[0], 0, 0),
      activated(kPairs * kIntermediate),
      activated_codes(testing_support::kProductRows[0], 0, 0),
      output(kTokens * kHidden) {
  for (size_t i = 0; i < kTokens * kHidden; ++i) {
    hidden.push_back(Uniform(7, i, 2.0f));
  }
  for (size_t t = 0; t < kTokens; ++t) {
    ids.push_back(static_cast<int32_t>(3 * t % kExperts));
    ids.push_back(static_cast<int32_t>((5 * t + 3) % kExperts));
  }
  for (size_t p = 0; p < kPairs; ++p) {
    weights.push_back(0.5f + Uniform(8, p, 0.25f));
  }

  hidden_codes = Quantized(format, hidden, kTokens);
  gate_product = Product(gate, hidden_codes, ids, kTopK);
  up_product = Product(up, hidden_codes, ids, kTopK);
  const auto pairs = [](auto& values) {
    return AnyMatrix(values.data(), kPairs, values.size() / kPairs);
  };
  Check(Activate({pairs(gate_product), pairs(up_product)}, {pairs(activated)}));
  activated_codes = Quantized(format, activated, kPairs);
  down_product = Product(down, activated_codes, ids, 1);
  Check(Combine({pairs(down_product), AnyMatrix(weights.data(), kTokens, kTopK),
                 RowIndex::kTokenOrder},
                {AnyMatrix(output.data(), kTokens, kHidden)}));
}

std::vector<Layer> MakeLayers() {
  if (!ActiveIsa().fma) {
    throw program::InputError(
        "layers: the active ISA has no fused multiply-add, so its bits differ");
  }
  std::vector<Layer> layers;
  for (const WeightFormat format :
       {WeightFormat::kInt8, WeightFormat::kQ4_0, WeightFormat::kMXFP4}) {
    layers.emplace_back(format);
  }
  return layers;
}

std::string Write(const Layer& layer) {
  std::string text = "switchyard-layer 1\nlayer " + layer.name + "\n";
  const std::pair<const char*, size_t> sizes[] = {
      {"tokens", Layer::kTokens},
      {"top_k", Layer::kTopK},
      {"num_experts", Layer::kExperts},
      {"hidden_size", Layer::kHidden},
      {"intermediate_size", Layer::kIntermediate}};
  for (const auto& [size, value] : sizes) {
    text.append(size).append(" ").append(std::to_string(value)).append("\n");
  }
  PutFloats("hidden", layer.hidden, Layer::kTokens, &text);
  text += ShapeLine("topk_ids", Layer::kTokens, Layer::kTopK);
  for (size_t p = 0; p < Layer::kPairs; ++p) {
    text += std::to_string(layer.ids[p]) +
            ((p + 1) % Layer::kTopK == 0 ? '\n' : ' ');
  }
  PutFloats("topk_weights", layer.weights, Layer::kTokens, &text);
  PutWeights("gate", layer.gate, &text);
  PutWeights("up", layer.up, &text);
  PutWeights("down", layer.down, &text);
  PutCodes("hidden", layer.hidden_codes, &text);
  PutFloats("gate", layer.gate_product, Layer::kPairs, &text);
  PutFloats("up", layer.up_product, Layer::kPairs, &text);
  PutFloats("activated", layer.activated, Layer::kPairs, &text);
  PutCodes("activated", layer.activated_codes, &text);
  PutFloats("down", layer.down_product, Layer::kPairs, &text);
  PutFloats("output", layer.output, Layer::kTokens, &text);
  return text + "end\n";
}

}  // namespace switchyard::conformance
