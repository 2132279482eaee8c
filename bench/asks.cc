// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/asks.h"

#include <cmath>
#include <limits>

namespace switchyard {
namespace bench {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

void ThreadAsks(Table& table) {
  const std::string& isa = table.best;
  for (const std::string& name : ThreadNames()) {
    for (const bool small : {true, false}) {
      const std::string shape = name + (small ? "/30us" : "/100us");
      // What it came to: the size was chosen beforehand.
      std::string serial;
      for (const Figure& figure : table.Figures("threads", shape)) {
        if (figure.name != isa + ", 1 thread") continue;
        serial = std::to_string(std::lround(1e6 * figure.seconds)) + " us ";
      }
      table.AtLeast(
          small ? 1.6 : 1.85,
          table.Ns("threads", shape, isa + ", 1 thread") /
              table.Ns("threads", shape, isa + ", 2 threads"),
          "two threads, " + shape + ": " + serial + "of serial work, speed-up");
      table.AtMost(1.15,
                   table.Ns("threads_idle", shape, isa + ", 2 threads") /
                       table.Ns("threads_idle", shape, isa + ", 1 thread"),
                   "two threads, " + shape +
                       ", after 1 ms idle: time / that of one thread");
    }
  }
}

}  // namespace

Table::Table(const std::vector<Result>& results)
    : best(RunnableIsas().data[0].name),
      avx512(best.compare(0, 4, "AVX3") == 0 ? best : "AVX-512"),
      results_(results) {}

double Table::Ns(const std::string& kernel, const std::string& shape,
                 const std::string& contender) const {
  for (const Figure& figure : Figures(kernel, shape)) {
    if (figure.name == contender) return figure.NsPerUnit();
  }
  return kNone;
}

double Table::Best(const std::string& kernel, const std::string& shape,
                   Kind kind) const {
  double fastest = kNone;
  for (const Figure& figure : Figures(kernel, shape)) {
    if (figure.kind == kind) fastest = std::fmin(fastest, figure.NsPerUnit());
  }
  return fastest;
}

const std::vector<Figure>& Table::Figures(const std::string& kernel,
                                          const std::string& shape) const {
  static const std::vector<Figure> none;
  for (const Result& result : results_) {
    if (result.kernel == kernel && result.shape == shape) {
      return result.figures;
    }
  }
  return none;
}

std::vector<Ask> Asks(const std::vector<Result>& results) {
  Table table(results);
  for (const Registration& registration : Registrations()) {
    if (registration.ask != nullptr) registration.ask(table);
  }
  ThreadAsks(table);
  return table.asks;
}

}  // namespace bench
}  // namespace switchyard
