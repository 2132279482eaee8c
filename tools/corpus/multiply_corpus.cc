// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string>
#include <vector>

#include "src/base/weight_layout.h"
#include "switchyard/expert_weights.h"
#include "testing/reference_multiply.h"
#include "tools/corpus/corpus.h"

namespace switchyard::corpus {
namespace {

using testing_support::FormatRows;
using testing_support::RandomOperands;
using testing_support::RandomWeights;
using testing_support::WeightBytes;

constexpr size_t kExperts = 2;
using testing_support::ColumnsStep;
using testing_support::kProductRows;
using testing_support::ProductRowsOf;

// Returns the numbers of columns in `from` that the format allows. For blocks
// of 256, adds larger ones.
std::vector<size_t> ColumnsOf(WeightFormat format,
                              const std::vector<size_t>& from) {
  std::vector<size_t> all;
  const size_t step = ColumnsStep(format, ProductRowsOf(format));
  for (const size_t cols : from) {
    if (cols % step == 0) all.push_back(cols);
  }
  if (step == 256) all.insert(all.end(), {768, 2048});
  return all;
}

// Packed weights. The library promises their bytes, so the digest includes
// them. The digest takes the codes of a group's blocks first, then their
// scales, and then the rest. This was their order in memory when the digests
// were made.
struct Packed {
  std::vector<uint8_t> memory;
  ExpertWeights weights;

  Packed(const PackWeightsInputs& in, Executor& executor, Digests& digests) {
    const size_t size = PackedWeightsSize(in.weights);
    memory.resize(kExperts * size);
    digests.Check(PackWeights(in, {{memory.data(), kExperts, size}, &weights},
                              {}, executor));
    const internal::WeightTraits traits = internal::TraitsOf(in.weights.format);
    const size_t blocks = internal::WeightBlocks(traits, in.weights.cols);
    const size_t group_bytes = internal::PackedGroupBytes(traits, blocks);
    const size_t block = traits.packed_block(), scales = traits.packed_scales();
    for (size_t g = 0; g < memory.size(); g += group_bytes) {
      const auto add = [&](size_t from, size_t to) {
        for (size_t i = g + from; i < g + to; ++i) {
          digests.exact.Add(uint32_t{memory[i]});
        }
      };
      for (size_t b = 0; b < blocks; ++b) {
        add(b * block + scales, (b + 1) * block);
      }
      for (size_t b = 0; b < blocks; ++b) add(b * block, b * block + scales);
      add(blocks * block, group_bytes);
    }
  }
};

// Computes all products in tiles of `tile` columns, and adds them to the
// digest.
void Multiply(const ExpertWeights& weights, const ConstAnyRows& rows,
              size_t tile, Digests& digests) {
  for (size_t e = 0; e < kExperts; ++e) {
    std::vector<float> out(rows.rows * weights.rows);
    const Matrix<float> all(out.data(), rows.rows, weights.rows);
    for (size_t at = 0; at < weights.rows; at += tile) {
      const size_t end = std::min(at + tile, weights.rows);
      digests.Check(
          MultiplyTile(weights, {ExpertProduct::kDown, static_cast<int32_t>(e),
                                 at, 0, rows, all.ColRange(at, end)}));
    }
    digests.floats.Add(Span<const float>(out));
  }
}

void Run(Executor& executor, Digests& digests, WeightFormat format, bool any) {
  for (const size_t cols : ColumnsOf(format, {32, 100, 256, 1056})) {
    for (const size_t num_rows : {1u, 2u, 3u, 7u, 50u}) {
      const size_t rows = 16 + cols % 71;
      const WeightBytes stored =
          RandomWeights(format, kExperts, rows, cols, 1, any);
      const Packed packed({stored.View()}, executor, digests);
      for (const auto& f : kProductRows) {
        if (f.type == Type::kI8 && f.group == 64) continue;
        if (!Takes(format, f) || cols % ColumnsStep(format, f) != 0) continue;
        FormatRows operands = RandomOperands(f, num_rows, cols, 3, any);
        uint8_t* const parts[] = {operands.codes.data(),
                                  operands.scales.data()};
        size_t part = 0;
        const AnyRows view =
            MapRows(f, num_rows, cols, [&](Type type, size_t r, size_t c) {
              return AnyMatrix(static_cast<void*>(parts[part++]), type, r, c,
                               c);
            });
        Multiply(packed.weights, view, 32, digests);
        Multiply(stored.View(), view, rows, digests);
      }
    }
  }
}

// Quantises floats to weights, and multiplies by them.
void Quantize(Executor& executor, Digests& digests, WeightFormat format) {
  for (const Type type : {Type::kF32, Type::kBF16, Type::kF16}) {
    for (const size_t cols : ColumnsOf(format, {32, 77, 512})) {
      PackWeightsInputs in;
      in.weights.format = format;
      in.weights.rows = 21;
      in.weights.cols = cols;
      TypedRows floats(type, kExperts * 21, cols, 3, [&](size_t i) {
        const float any = AnyFloat(5, i);
        // The library does not promise the payload of a NaN.
        const bool is_told =
            !testing_support::IsFloatFormat(format) || !(any != any);
        return i % 500 == 13 && is_told
                   ? any
                   : Uniform(4, i, i / cols % 7 == 0 ? 0x1p-20f : 2);
      });
      in.floats = floats.view();
      Packed(in, executor, digests);
    }
  }
}

const Registration registration("multiply", [](std::vector<Case>& cases) {
  const auto add = [&cases](WeightFormat format, const std::string& name) {
    for (const bool any : {false, true}) {
      cases.push_back({"multiply " + name + (any ? ", any scales" : ""),
                       [=](Executor& executor, Digests& digests) {
                         Run(executor, digests, format, any);
                       }});
    }
    cases.push_back({"multiply " + name + " of floats",
                     [=](Executor& executor, Digests& digests) {
                       Quantize(executor, digests, format);
                     }});
  };
#define SWITCHYARD_ADD(name, text, ...) add(WeightFormat::name, text);
  SWITCHYARD_WEIGHT_FORMATS(SWITCHYARD_ADD)
#undef SWITCHYARD_ADD
});

}  // namespace
}  // namespace switchyard::corpus
