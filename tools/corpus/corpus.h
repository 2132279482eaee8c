// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs every kernel, option and layout at awkward sizes. digests.inc has
// digests of the results, so any machine can check the promise of "same
// bits". The inputs come from an integer hash and exact float operations.
// They use neither libm nor <random> distributions.

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
#include "testing/digest.h"
#include "testing/floats.h"
#include "testing/inputs.h"

namespace switchyard::corpus {

using testing_support::AnyFloat;
using testing_support::Digest;
using testing_support::Hash;
using testing_support::Uniform;

// The results of a case.
struct Digests {
  Digest exact;   // equal on every ISA: ids, counts, positions, copies
  Digest floats;  // equal on every ISA with FMA
  Status status;  // the first error
  void Check(const Status& s) {
    if (status.ok()) status = s;
  }
};

struct Case {
  std::string name;
  std::function<void(Executor&, Digests&)> run;
};

// Returns the names of all registered kernels in alphabetical order.
std::vector<std::string> Kernels();
// Returns the cases of `kernels` (empty: of all kernels), in the order of
// digests.inc. Cases that are not in that file come last.
std::vector<Case> Cases(const std::vector<std::string>& kernels = {});

// Each <stem>_corpus.cc has a Registration. add(cases) appends the cases of
// one kernel.
struct Registration {
  Registration(const char* kernel, void (*add)(std::vector<Case>& cases));
};

struct Expected {
  const char* name;
  uint64_t exact;
  uint64_t floats;
};
// Returns the line of digests.inc, or nullptr if the case is not in it.
const Expected* Find(const std::string& name);

// A matrix in its own memory, with a gap after each row.
template <class T>
class Rows {
 public:
  Rows(size_t rows, size_t cols, size_t gap = 0)
      : data_(rows * (cols + gap) + 1), rows_(rows), cols_(cols), gap_(gap) {}
  // Sets elements to element(i), where i counts row by row.
  template <class Element>
  Rows(size_t rows, size_t cols, size_t gap, const Element& element)
      : Rows(rows, cols, gap) {
    const Matrix<T> m = view();
    size_t i = 0;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < cols; ++c) m.Row(r)[c] = element(i++);
    }
  }

  Matrix<T> view() {
    // The view starts at the second element, so that its rows are not aligned
    // to vectors.
    return {data_.data() + 1, rows_, cols_, cols_ + gap_};
  }

 private:
  std::vector<T> data_;
  size_t rows_, cols_, gap_;
};

// A matrix like Rows, with an element type that is known only at run time.
class TypedRows {
 public:
  TypedRows(Type type, size_t rows, size_t cols, size_t gap = 0)
      : bytes_(BytesOf(type, rows * (cols + gap)) + SizeOf(type)),
        type_(type),
        rows_(rows),
        cols_(cols),
        stride_(cols + gap) {}
  // Stores element(i), rounded to the type.
  template <class Element>
  TypedRows(Type type, size_t rows, size_t cols, size_t gap,
            const Element& element)
      : TypedRows(type, rows, cols, gap) {
    testing_support::WithElement(type, [&](auto of_type) {
      using T = decltype(of_type);
      T* row = static_cast<T*>(view().data);
      size_t i = 0;
      for (size_t r = 0; r < rows; ++r, row += stride_) {
        for (size_t c = 0; c < cols; ++c) {
          row[c] = testing_support::Round<T>(element(i++));
        }
      }
    });
  }

  AnyMatrix view() {
    return {static_cast<void*>(bytes_.data() + SizeOf(type_)), type_, rows_,
            cols_, stride_};
  }

 private:
  std::vector<unsigned char> bytes_;
  Type type_;
  size_t rows_, cols_, stride_;
};

// Adds the shape and the elements. These are floats of any size, and are
// added as f32.
void AddFloats(Digest& digest, const ConstAnyMatrix& m);

}  // namespace switchyard::corpus

#endif  // SWITCHYARD_TOOLS_CORPUS_CORPUS_H_
