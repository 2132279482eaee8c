// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "states.h"

#include <cstdint>
#include <vector>

#include "programs/for_each.h"
#include "programs/hash_uniform.h"
#include "programs/program.h"
#include "switchyard/quantize.h"
#include "weight_tensor.h"

namespace moe_layer {

using program::HashUniform;
using program::InputError;
using switchyard::Type;

RowBuffer ConvertRows(const switchyard::ConstAnyRows& rows, Type type,
                      switchyard::Executor& executor) {
  RowBuffer converted(type, rows.rows, rows.cols);
  program::Check(
      switchyard::Quantize({rows}, {converted.rows()}, {}, executor));
  return converted;
}

RowBuffer GenerateHidden(size_t tokens, size_t hidden, Type type,
                         switchyard::Executor& executor) {
  const RowBuffer states(Type::kF32, tokens, hidden);
  // The number of the first stream of hidden states. It is large, because
  // weights use the streams with small numbers.
  constexpr uint32_t kFirst = 0x80000000u;
  const uint32_t common = program::HashKey(kFirst);
  program::ForEach(executor, tokens, 8, [&](size_t t) {
    const uint32_t own =
        program::HashKey(kFirst + 1 + static_cast<uint32_t>(t));
    auto* row = states.rows().Row<float>(t);
    for (uint32_t h = 0; h < hidden; ++h) {
      // The sum has a variance of 1, because a uniform value in [-1, 1) times
      // sqrt(3) has a variance of 1, and 0.4^2 + 0.917^2 is 1.
      row[h] = 1.7320508f *
               (0.4f * HashUniform(common, h) + 0.917f * HashUniform(own, h));
    }
  });
  return ConvertRows(states.rows(), type, executor);
}

size_t CountStates(const std::string& path, size_t hidden) {
  const MappedFile file(path);
  const size_t row = sizeof(float) * hidden;
  if (file.size() == 0 || file.size() % row != 0) {
    throw InputError("--input " + path + ": " + std::to_string(file.size()) +
                     " bytes are no rows of " + std::to_string(hidden) +
                     " floats");
  }
  if (file.size() / row > 1'000'000) {
    throw InputError("--input " + path + ": more than 1000000 rows");
  }
  return file.size() / row;
}

RowBuffer ReadStates(const std::string& path, size_t hidden, Type type,
                     switchyard::Executor& executor) {
  const MappedFile file(path);
  const size_t tokens = CountStates(path, hidden);
  WeightTensor states;
  states.shape = {tokens, hidden};
  states.stored = file.data();
  states.name = "--input " + path;
  states.kind = "states";
  const RowBuffer floats(Type::kF32, tokens, hidden);
  states.Read(floats.rows());
  return ConvertRows(floats.rows(), type, executor);
}

std::string StatesBytes(const switchyard::ConstAnyMatrix& states,
                        switchyard::Executor& executor) {
  const RowBuffer floats = ConvertRows(states, Type::kF32, executor);
  return {reinterpret_cast<const char*>(floats.rows().Row<float>(0)),
          sizeof(float) * states.rows * states.cols};
}

}  // namespace moe_layer
