// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A benchmark program in which contenders with planted defects run instead of
// the kernels. (A contender is an implementation that the benchmarks
// compare.) switchyard_bench_test.cc tests that the program reports the
// defects.

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
    want_ints.AddExact<int32_t>({1, 2});
    want_floats.floats = {1.0, 2.0};
    return {want_ints, want_floats};
  }
  void Write(int32_t first, float second) {
    ints = {first, 2};
    floats = {1.0f, second};
  }
};

// The data of a contender: two bf16 numbers, 1.0 and 2.0, and two codes.
struct TypedData {
  std::vector<BFloat16> numbers = std::vector<BFloat16>(2);
  std::vector<uint8_t> codes = std::vector<uint8_t>(2);
  std::vector<Output> Wanted() {
    Output want_numbers(numbers, 0x1p-7), want_codes(codes);
    want_numbers.AddExact<uint16_t>({0x3F80, 0x4000});
    want_numbers.floats = {1.0, 2.0};
    want_codes.AddExact<uint8_t>({3, 4});
    return {want_numbers, want_codes};
  }
  void Write(uint16_t second, uint8_t code) {
    numbers = {{0x3F80}, {second}};
    codes = {3, code};
  }
};

void AddTyped() {
  Case<TypedData> contest(
      {"planted/shape", "Model", "row", 2.0, 8.0, 1, "bf16-u8"},
      [] { return std::make_unique<TypedData>(); });
  const auto add = [&](const Contender& contender, uint16_t second,
                       uint8_t code) {
    contest.Add(contender, [=](TypedData& d) {
      return [&d, second, code](size_t) { d.Write(second, code); };
    });
  };
  add({"right", {0, 1}, "", true}, 0x4000, 4);
  add({"wrong_bit:2", {0, 1}, "", true}, 0x4001, 4);
  add({"wrong_code", {0, 1}}, 0x4000, 5);
  // This contender does not promise exact bits, so it may round differently.
  add({"close", {0, 1}}, 0x4001, 4);
  add({"far", {0, 1}}, 0x4003, 4);
  contest.Add({"writes_nothing", {1}},
              [](TypedData&) { return [](size_t) {}; });
}

// The constructor throws if two objects exist at the same time. Rotate()
// throws if its slot is smaller than the slot of the call before.
struct LargeData {
  static inline int count = 0;
  size_t last_slot = 0;
  std::vector<int32_t> ints = std::vector<int32_t>(1);
  LargeData() {
    if (++count > 1) throw std::runtime_error("two at a time");
  }
  ~LargeData() { --count; }
  std::vector<Output> Wanted() {
    Output want(ints);
    want.AddExact<int32_t>({5});
    return {want};
  }
  void Rotate(size_t slot) {
    if (slot < last_slot) throw std::runtime_error("a slot again");
    last_slot = slot;
  }
};

// The contenders of one shape do not run one after the other. Between them
// runs a contender of another shape, with its own data.
void AddLarge() {
  const auto make = [] { return std::make_unique<LargeData>(); };
  Facts facts = {"planted_large/first", "Model", "row", 1.0, 4.0};
  facts.large = true;
  Case<LargeData> first(facts, make);
  facts.name = "planted_large/second";
  facts.slots = size_t{1} << 40;
  Case<LargeData> second(facts, make);
  for (const char* name : {"before", "after"}) {
    first.Add({name, {0}},
              [](LargeData& d) { return [&d](size_t) { d.ints[0] = 5; }; });
    second.Add({name}, [](LargeData& d) {
      return [&d](size_t slot) { d.Rotate(slot); };
    });
  }
}

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
  AddTyped();
  AddLarge();
});

}  // namespace
}  // namespace switchyard::bench
