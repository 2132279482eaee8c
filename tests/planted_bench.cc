// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What switchyard_bench has to notice, in place of its kernels: see
// switchyard_bench_test.cc.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "bench/bench.h"

namespace switchyard::bench {
namespace {

struct Data {
  std::vector<int32_t> ints = std::vector<int32_t>(2);
  std::vector<float> floats = std::vector<float>(2);
  std::vector<Output> Wanted() {
    Output want_ints(ints), want_floats(floats);
    want_ints.ints = {1, 2};
    want_floats.floats = {1.0, 2.0};
    return {want_ints, want_floats};
  }
  void Write(int32_t first, float second) {
    ints = {first, 2};
    floats = {1.0f, second};
  }
};

const Registration registration([] {
  Case<Data> contest({"planted/shape", "Model", "row", 2.0, 8.0},
                     [] { return std::make_unique<Data>(); });
  const auto add = [&](const Contender& contender, int32_t first,
                       float second) {
    contest.Add(contender, [=](Data& d) {
      return [&d, first, second](size_t) { d.Write(first, second); };
    });
  };
  add({"right", {0, 1}, "", true}, 1, 2.0f);
  add({"wrong_int", {0, 1}}, 7, 2.0f);
  add({"wrong_float", {0, 1}}, 1, 2.1f);
  add({"close", {0, 1}}, 1, 2.000001f);
  add({"other_bits", {0, 1}, "", true}, 1, 2.000001f);
  contest.Add({"writes_nothing", {1}}, [](Data&) { return [](size_t) {}; });
  contest.Add({"throws"}, [](Data&) {
    return [](size_t) { throw std::runtime_error("thrown"); };
  });
});

}  // namespace
}  // namespace switchyard::bench
