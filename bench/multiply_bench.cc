// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "src/simd/weight_layout.h"
#include "switchyard/expert_weights.h"
#include "testing/reference_multiply.h"

namespace switchyard::bench {
namespace {

using testing_support::FormatRows;
using testing_support::kWholeRow;
using testing_support::WeightBytes;

// A half of a gate and up product of Qwen3-30B-A3B.
constexpr size_t kOut = 768, kIn = 2048;

// Rows times the weights of one expert, another one in each slot.
struct Data {
  size_t slots, num_rows;
  WeightBytes stored;
  Aligned<uint8_t> memory;
  ExpertWeights packed;
  FormatRows operands;
  Aligned<float> out;

  Data(WeightFormat format, size_t rows, size_t slots_in)
      : slots(slots_in),
        num_rows(rows),
        stored(
            testing_support::RandomWeights(format, slots, kOut, kIn, 1, false)),
        memory(slots * PackedWeightsSize(stored.View())),
        operands(testing_support::RandomOperands(
            testing_support::ProductRowsOf(format), rows, kIn, 2, false)),
        out(rows * kOut) {
    Check(
        PackWeights({stored.View()},
                    {{memory.data(), slots, memory.size() / slots}, &packed}));
  }

  ConstAnyRows Rows() const {
    const void* const parts[] = {operands.codes.data(), operands.scales.data()};
    size_t part = 0;
    return MapRows(operands.format, num_rows, kIn,
                   [&](Type type, size_t r, size_t c) {
                     return ConstAnyMatrix(parts[part++], type, r, c, c);
                   });
  }
  ExpertTile Tile(size_t slot) {
    return {ExpertProduct::kDown,
            static_cast<int32_t>(slot),
            0,
            0,
            Rows(),
            AnyMatrix(out.data(), num_rows, kOut)};
  }
  Status Call(size_t slot, Executor&) {
    return MultiplyTile(packed, Tile(slot));
  }
  std::vector<Output> Wanted() {
    Output sums(out);
    for (size_t slot = 0; slot < slots; ++slot) {
      sums.AddExact(
          testing_support::MultiplyNaively(stored.View(), slot, Rows(), 0, kOut)
              .values);
    }
    return {sums};
  }
};

void Add(WeightFormat format, const char* name, size_t rows, size_t slots) {
  ExpertWeights shape;
  shape.format = format;
  shape.rows = kOut;
  shape.cols = kIn;
  const size_t bytes = PackedWeightsSize(shape);
  Case<Data> contest(
      {"multiply/" + std::string(name) + "/rows=" + std::to_string(rows),
       "Qwen3-30B-A3B", "row", static_cast<double>(rows),
       static_cast<double>(bytes), slots},
      [=] { return std::make_unique<Data>(format, rows, slots); });
  std::vector<Isa> isas;
  for (const Isa& isa : RunnableIsas()) {
    if (isa.fma) isas.push_back(isa);
  }
  contest.AddOurs(isas, {0});
  for (const Isa& isa : MainIsas()) {
    contest.Add({std::string(isa.name) + ":stored", {0}, isa.name, true},
                [](Data& d) {
                  return [&d](size_t slot) {
                    Check(MultiplyTile(d.stored.View(), d.Tile(slot)));
                  };
                });
  }
  // The packed weights, read.
  contest.Add({"probe"}, [](Data& d) {
    return [&d](size_t slot) {
      const size_t size = d.memory.size() / d.slots;
      BestProbes().move(d.memory.data() + slot * size, size / sizeof(float),
                        nullptr, 0);
    };
  });
}

const Registration registration([] {
  // One row reads weights that no cache has.
  const auto add = [](WeightFormat format, const char* name) {
    Add(format, name, 1, 64);
    Add(format, name, 4, 16);
    Add(format, name, 32, 2);
  };
#define SWITCHYARD_ADD(format, name, ...) add(WeightFormat::format, name);
  SWITCHYARD_WEIGHT_FORMATS(SWITCHYARD_ADD)
#undef SWITCHYARD_ADD
});

}  // namespace
}  // namespace switchyard::bench
