// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "testing/floats.h"
#include "testing/reference_rows.h"

namespace switchyard::bench {
namespace {

using testing_support::FormatRows;

// Returns the tolerance for contenders that round in another way: two units in
// the last place or, in f32, the effect of another order of operations.
double Tolerance(Type type) {
  return type == Type::kBF16 ? 0x1p-6 : type == Type::kF16 ? 0x1p-9 : 1e-5;
}

std::string Word(const char* name) {
  std::string word = name;
  const size_t of = word.find(" of ");
  if (of != std::string::npos) word.replace(of, 4, "_");
  std::replace(word.begin(), word.end(), ' ', '_');
  return word;
}

const Format& FormatOf(const char* name) {
  for (const Format& format : testing_support::kFormats) {
    if (std::strcmp(format.name, name) == 0) return format;
  }
  throw std::logic_error(std::string("no format ") + name);
}

}  // namespace

bool IsF32(const Types& types) { return Text(types).empty(); }

std::string Text(const Types& types) {
  const std::string in = Word(types.in), out = Word(types.out);
  if (in == out) return in == "f32" ? "" : in;
  return in + "-" + out;
}

bool Fit(const Types& types, size_t cols) {
  return cols % BlockOf(FormatOf(types.out).type) == 0;
}

bool Converts(const Types& types) {
  return std::strcmp(types.in, types.out) != 0;
}

std::vector<Isa> IsasFor(const Types& types) {
  if (!IsF32(types)) return MainIsas();
  const Span<const Isa> all = RunnableIsas();
  return {all.begin(), all.end()};
}

Rows::Rows(const char* format, size_t rows, size_t cols)
    : format_(FormatOf(format)),
      rows_(rows),
      cols_(cols),
      codes_(rows * BytesOf(format_.type, cols)),
      scales_(rows * BytesOf(format_.scales, format_.NumScales(cols))),
      sums_(format_.sums ? rows * sizeof(int32_t) : 0) {}

Rows Rows::Make(const char* format, size_t rows, size_t cols, uint32_t stream) {
  Rows made(format, rows, cols);
  if (!made.IsNumbers()) throw std::logic_error("not numbers");
  for (size_t i = 0; i < rows * cols; ++i) {
    testing_support::RoundAt(made.format_.type,
                             testing_support::Uniform(stream, i, 4.0f),
                             made.Data(), i);
  }
  return made;
}

size_t Rows::RowBytes() const {
  return CodeBytes() + BytesOf(format_.scales, format_.NumScales(cols_)) +
         (format_.sums ? sizeof(int32_t) : 0);
}

template <class Any, class Byte>
Any Rows::View(Byte* codes, Byte* scales, Byte* sums, size_t first,
               size_t count) const {
  using Matrix = typename Any::Base;
  const size_t num_scales = format_.NumScales(cols_);
  Any view(Matrix(codes, format_.type, rows_, cols_, cols_));
  if (num_scales != 0) {
    view.scales = Matrix(scales, format_.scales, rows_, num_scales, num_scales);
  }
  if (format_.sums) view.sums = Matrix(sums, Type::kI32, rows_, 1, 1);
  return view.RowRange(first, first + count);
}

ConstAnyRows Rows::In(size_t first, size_t count) const {
  return View<ConstAnyRows>(codes_.data(), scales_.data(), sums_.data(), first,
                            count);
}

AnyRows Rows::Out(size_t first, size_t count) {
  return View<AnyRows>(codes_.data(), scales_.data(), sums_.data(), first,
                       count);
}

std::vector<float> Rows::Values(size_t first, size_t count) const {
  if (!IsNumbers()) throw std::logic_error("not numbers");
  std::vector<float> values(count * cols_);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = testing_support::WidenAt(format_.type, Data(first), i);
  }
  return values;
}

void Rows::AddWanted(const FormatRows& want, const std::vector<double>& close,
                     std::vector<Output>* outputs) {
  const bool numbers = IsNumbers();
  // Codes and blocks are compared as bytes.
  outputs->emplace_back(codes_.data(), numbers ? format_.type : Type::kU8,
                        numbers ? rows_ * cols_ : codes_.size(),
                        Tolerance(format_.type));
  if (numbers) outputs->back().floats = close;
  // Compares f32 results only with `close`, because their bits differ on ISAs
  // without FMA.
  if (format_.type == Type::kF32 && !close.empty()) return;
  outputs->back().AddExact(want.codes);
  const auto add = [&](Aligned<uint8_t>& memory, Type type,
                       const std::vector<uint8_t>& bytes) {
    if (bytes.empty()) return;
    outputs->emplace_back(memory.data(), type, memory.size() / SizeOf(type));
    outputs->back().AddExact(bytes);
  };
  add(scales_, format_.scales, want.scales);
  add(sums_, Type::kI32, want.sums);
}

std::vector<size_t> AllOutputs(const char* format, size_t before) {
  const Format& f = FormatOf(format);
  std::vector<size_t> all(before + 1 + (f.group != 0) + f.sums);
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

}  // namespace switchyard::bench
