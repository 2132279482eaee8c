// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes random calls on rows of floats of any type, and their expected
// results. The fuzzers and tests of HyperConnect, Activate and Combine use
// this file.

#ifndef SWITCHYARD_FUZZ_ANY_FLOATS_H_
#define SWITCHYARD_FUZZ_ANY_FLOATS_H_

#include <cmath>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/call.h"

namespace switchyard::fuzz {

// Choices for the numbers and types of a case. A test makes these choices. A
// fuzzer leaves them to the bytes.
struct Asked {
  bool tame = false;  // numbers are from -1.5 to 1.5
  size_t hidden = 0;
  std::optional<Type> type;  // the type of all arguments
  bool coarse = false;       // numbers are multiples of 1/16
};
// The choices for case i of a test. Three of four cases are tame, and every
// second case has a single type.
inline Asked AskedFor(size_t i) {
  Asked asked;
  asked.tame = i % 4 != 3;
  if (i % 2 == 0) asked.type = kFloats.begin()[i / 2 % kFloats.size()];
  return asked;
}

class AnyFloats {
 public:
  explicit AnyFloats(const Asked& asked_for) : asked(asked_for) {}

  std::vector<float> Numbers(Bytes& b, size_t n) const {
    if (!asked.tame && !asked.coarse) return b.Floats(n);
    std::vector<float> numbers = Random(b.Word()).Uniforms(n, -1.5f, 1.5f);
    for (float& x : numbers) x = asked.coarse ? std::round(x * 80) / 16 : x;
    return numbers;
  }
  Type TypeOf(Bytes& b) const {
    const Type drawn = FloatType(b);
    return asked.type.value_or(drawn);
  }
  // Draws an input. Sets `stored` to the input in its type, and `f32` to the
  // same numbers in f32.
  Memory& Give(Bytes& b, size_t rows, size_t cols, ConstAnyMatrix* stored,
               ConstAnyMatrix* f32) {
    const std::vector<float> numbers = Numbers(b, rows * cols);
    Memory& memory = inputs.emplace_back(b, rows, cols, numbers);
    memory.Become(TypeOf(b));
    values_.push_back(memory.Floats());
    *stored = memory.view();
    *f32 = {values_.back().data(), rows, cols};
    return memory;
  }
  AnyMatrix Output(Bytes& b, size_t rows, size_t cols) {
    const Type type = TypeOf(b);
    return outputs.emplace_back(b, type, rows, cols).view();
  }

  // Expects that an output, if the call has it, has the bits of `fixed` on
  // ISAs with FMA. If the call is tame and does not round intermediate
  // results, the output also has to be close to `exact`.
  void Expect(const AnyMatrix& output, std::vector<float> fixed,
              std::vector<double> exact) {
    if (output.data == nullptr) return;
    for (const Memory* m : Memory::All()) {
      if (m->Holds(output.data)) {
        expected_.push_back({m, std::move(fixed), std::move(exact)});
      }
    }
  }
  // Checks the results on an ISA, and returns them as words.
  std::vector<uint32_t> Check(bool fma, bool is_rounded) const {
    std::vector<uint32_t> words;
    for (const Expected& e : expected_) {
      const std::vector<float> found = e.memory->Floats();
      Append(words, found);
      const Type type = e.memory->view().type;
      if (fma) CheckRounded(*e.memory, e.fixed, "output");
      const double step = type == Type::kF32    ? 1e-5
                          : type == Type::kBF16 ? 0x1p-8
                                                : 0x1p-11;
      for (size_t i = 0; asked.tame && !is_rounded && i < found.size(); ++i) {
        FUZZ_CHECK(std::fabs(double{found[i]} - e.exact[i]) <=
                       step * std::fabs(e.exact[i]) + 2e-4,
                   "output " + std::to_string(i) + ": " +
                       std::to_string(found[i]) + " instead of " +
                       std::to_string(e.exact[i]));
      }
    }
    return words;
  }

  const Asked asked;
  std::deque<Memory> inputs, outputs;

 private:
  struct Expected {
    const Memory* memory;
    std::vector<float> fixed;
    std::vector<double> exact;
  };

  std::deque<std::vector<float>> values_;
  std::vector<Expected> expected_;
};

// Runs the case on every ISA. If the spoiler makes the call invalid, checks
// instead that the call is refused.
template <class Any>
void FuzzAny(Bytes& bytes) {
  const Spoiler spoiler(bytes);
  Any any(bytes);
  const auto run = [&any] { return any.Run(any.executor); };
  if (RefusesSpoilt<typename Any::Call>(spoiler, &any.in, &any.out,
                                        &any.options, run)) {
    return;
  }
  any.ExpectResults();
  RunOnEveryIsa<typename Any::Call>(
      any.in, &any.out, {}, run, [&any](const Isa& isa) {
        return any.Check(isa.fma, any.options.round_like_unfused);
      });
}
// Runs a random case on the active ISA.
template <class Any>
void TestAny(Random& random, const Asked& asked, Executor& who) {
  std::vector<uint8_t> drawn(300);
  for (uint8_t& byte : drawn) byte = static_cast<uint8_t>(random.Below(256));
  Bytes bytes(drawn.data(), drawn.size());
  Any any(bytes, asked);
  any.ExpectResults();
  RunChecked<typename Any::Call>(any.in, &any.out, {},
                                 [&] { return any.Run(who); });
  any.Check(LastIsa()->fma, any.options.round_like_unfused);
}

// Appends the row of a token.
template <class T>
void AppendRow(const std::vector<T>& row, std::vector<T>* all) {
  all->insert(all->end(), row.begin(), row.end());
}

}  // namespace switchyard::fuzz

#endif  // SWITCHYARD_FUZZ_ANY_FLOATS_H_
