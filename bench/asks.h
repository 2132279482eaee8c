// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What is asked of the kernels' speed, against what was measured.

#ifndef SWITCHYARD_BENCH_ASKS_H_
#define SWITCHYARD_BENCH_ASKS_H_

#include <string>
#include <vector>

#include "bench/contest.h"

namespace switchyard {
namespace bench {

struct Ask {
  std::string what;
  double bound;
  bool at_most;   // or at least
  double figure;  // NaN: not measured in this run
  bool Measured() const { return figure == figure; }
  bool Met() const { return at_most ? figure <= bound : figure >= bound; }
};

// What a Registration's ask() reads and appends to.
class Table {
 public:
  explicit Table(const std::vector<Result>& results);

  void AtMost(double bound, double figure, const std::string& what) {
    asks.push_back({what, bound, true, figure});
  }
  void AtLeast(double bound, double figure, const std::string& what) {
    asks.push_back({what, bound, false, figure});
  }

  // The contender's time per unit; NaN if there is none.
  double Ns(const std::string& kernel, const std::string& shape,
            const std::string& contender) const;
  // The fastest of a kind.
  double Best(const std::string& kernel, const std::string& shape,
              Kind kind) const;
  const std::vector<Figure>& Figures(const std::string& kernel,
                                     const std::string& shape) const;

  const std::string best;  // the best ISA
  // The AVX-512 figures asked for are those of the best such ISA; elsewhere
  // there are none.
  const std::string avx512;
  std::vector<Ask> asks;

 private:
  const std::vector<Result>& results_;
};

// Of all registered, and of all on threads.
std::vector<Ask> Asks(const std::vector<Result>& results);

}  // namespace bench
}  // namespace switchyard

#endif  // SWITCHYARD_BENCH_ASKS_H_
