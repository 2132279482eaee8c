// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every kernel, option and layout at awkward sizes, boiled down to digests that
// are kept in digests.inc: the promise of "same bits", checkable on any
// machine. Inputs come from an integer hash, and from it in exact operations
// only: no libm, no <random> distributions.

#ifndef SWITCHYARD_TOOLS_CORPUS_CORPUS_H_
#define SWITCHYARD_TOOLS_CORPUS_CORPUS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {
namespace corpus {

// FNV-1a over 32-bit words.
class Digest {
 public:
  void Add(uint32_t word) {
    value_ = (value_ ^ word) * 0x100000001B3u;
    value_ ^= value_ >> 29;
  }
  // Shape and elements. Every NaN counts as 0x7FC00000: its sign and payload
  // are not part of the promise.
  void Add(Matrix<const float> m);
  void Add(Matrix<const int32_t> m);
  void Add(Span<const int32_t> s) {
    Add(Matrix<const int32_t>(s.data, 1, s.size));
  }

  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xCBF29CE484222325u;
};

struct Digests {
  Digest exact;   // the same on every ISA: ids, counts, positions, copies
  Digest floats;  // the same on every ISA with FMA
};

// A case fails by itself if a call does not return what it should.
struct Case {
  std::string name;
  std::function<Status(Executor&, Digests&)> run;
};

// Of all kernels, in a fixed order.
std::vector<Case> Cases();
// One list per stem, in <stem>_corpus.cc.
void AddBucketCases(std::vector<Case>& cases);
void AddCombineCases(std::vector<Case>& cases);
void AddGatherCases(std::vector<Case>& cases);
void AddRouteCases(std::vector<Case>& cases);
void AddSiluMulCases(std::vector<Case>& cases);

struct Expected {
  const char* name;
  uint64_t exact;
  uint64_t floats;
};
// What digests.inc holds; nullptr if the case is not in it.
const Expected* Find(const std::string& name);

// What the i-th element of stream `seed` is made of.
uint32_t Hash(uint32_t seed, size_t i);
// In [-range, range), `range` a power of two.
float Uniform(uint32_t seed, size_t i, float range);
// Any bit pattern.
float AnyFloat(uint32_t seed, size_t i);

// A matrix in memory of its own, with a gap after each row.
template <class T>
class Rows {
 public:
  Rows(size_t rows, size_t cols, size_t gap = 0)
      : data_(rows * (cols + gap) + 1), rows_(rows), cols_(cols), gap_(gap) {}

  Matrix<T> view() {
    // From the second element on: at no vector's alignment.
    return Matrix<T>(data_.data() + 1, rows_, cols_, cols_ + gap_);
  }
  // element(i) with i counted row by row.
  template <class Element>
  Rows& Fill(const Element& element) {
    const Matrix<T> m = view();
    for (size_t r = 0; r < rows_; ++r) {
      for (size_t c = 0; c < cols_; ++c) m.Row(r)[c] = element(r * cols_ + c);
    }
    return *this;
  }

 private:
  std::vector<T> data_;
  size_t rows_, cols_, gap_;
};

}  // namespace corpus
}  // namespace switchyard

#endif  // SWITCHYARD_TOOLS_CORPUS_CORPUS_H_
