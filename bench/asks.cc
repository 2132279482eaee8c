// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/asks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "bench/shapes.h"

namespace switchyard {
namespace bench {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

class Table {
 public:
  explicit Table(const std::vector<Result>& results) : results_(results) {
    const std::string best = RunnableIsas().data[0].name;
    if (best.compare(0, 4, "AVX3") == 0) avx512_ = best;
  }

  void AtMost(double bound, double figure, const std::string& what) {
    asks.push_back({what, bound, true, figure});
  }
  void AtLeast(double bound, double figure, const std::string& what) {
    asks.push_back({what, bound, false, figure});
  }

  // The contender's time per unit.
  double Ns(const std::string& kernel, const std::string& shape,
            const std::string& contender) const {
    for (const Figure& figure : Figures(kernel, shape)) {
      if (figure.name == contender) return figure.NsPerUnit();
    }
    return kNone;
  }
  // The fastest of a kind.
  double Best(const std::string& kernel, const std::string& shape,
              Kind kind) const {
    double best = kNone;
    for (const Figure& figure : Figures(kernel, shape)) {
      if (figure.kind == kind) best = std::fmin(best, figure.NsPerUnit());
    }
    return best;
  }
  const std::vector<Figure>& Figures(const std::string& kernel,
                                     const std::string& shape) const {
    static const std::vector<Figure> none;
    for (const Result& result : results_) {
      if (result.kernel == kernel && result.shape == shape) {
        return result.figures;
      }
    }
    return none;
  }
  // The AVX-512 figures asked for are those of the best such ISA; elsewhere
  // there are none.
  const std::string& avx512() const { return avx512_; }

  std::vector<Ask> asks;

 private:
  const std::vector<Result>& results_;
  std::string avx512_ = "AVX-512";
};

std::string Router(size_t experts, size_t top_k, size_t tokens) {
  return "E=" + std::to_string(experts) + "/k=" + std::to_string(top_k) +
         "/T=" + std::to_string(tokens);
}

void RouteAsks(Table& table) {
  const std::string& avx512 = table.avx512();
  struct Line {
    size_t experts, top_k;
    double bound;
  };
  const Line lines[] = {
      {8, 2, 1.0}, {64, 8, 1.0}, {128, 8, 0.8}, {256, 8, 0.65}, {512, 10, 0.7}};
  for (const char* kernel : {"route", "route_unnormalised"}) {
    const bool renormalised = std::strcmp(kernel, "route") == 0;
    for (const Line& line : lines) {
      const std::string shape = Router(line.experts, line.top_k, 512);
      table.AtMost(renormalised ? line.bound : 1.05,
                   table.Ns(kernel, shape, avx512) /
                       table.Best(kernel, shape, Kind::kOneDnn),
                   std::string("router, ") + (renormalised ? "" : "not ") +
                       "renormalised, " + shape + ", " + avx512 +
                       " / oneDNN's softmax alone");
    }
  }
  for (const size_t experts : {size_t{64}, size_t{128}, size_t{256}}) {
    const std::string shape = Router(experts, 8, 512);
    table.AtMost(
        1.5,
        table.Ns("route", shape, "AVX2") / table.Ns("route", shape, avx512),
        "router, " + shape + ", AVX2 / " + avx512);
  }
  const std::string one = Router(128, 8, 1);
  table.AtMost(
      0.4,
      table.Ns("route", one, avx512) / table.Best("route", one, Kind::kOneDnn),
      "router, " + one + ", rows rotating, " + avx512 +
          " / oneDNN's softmax alone");
}

// Any number of experts; hard rows.
void RouteRangeAsks(Table& table) {
  for (const std::string& isa : AskedIsas()) {
    for (const size_t top_k : kTopKs) {
      const std::string shape = isa + "/k=" + std::to_string(top_k);
      double worst = kNone;
      size_t at = 0;
      for (const OddExperts& odd : kOddExperts) {
        const auto ns = [&](size_t experts) {
          return table.Ns("route_experts", shape,
                          "E=" + std::to_string(experts));
        };
        const double ratio = ns(odd.experts) / ns(odd.power_of_two);
        if (!(ratio <= worst)) {
          worst = ratio;
          at = odd.experts;
        }
      }
      table.AtMost(1.5, worst,
                   "router, " + shape +
                       ", ns per expert / that of the nearest power of two, "
                       "worst at E=" +
                       std::to_string(at));
    }
    for (const char* shape : {"E=8/k=2", "E=64/k=8", "E=128/k=8", "E=256/k=8",
                              "E=384/k=8", "E=512/k=10"}) {
      const std::string name = isa + "/" + shape;
      const double random = table.Ns("route_rows", name, "random");
      double worst = kNone;
      std::string at;
      for (const Figure& figure : table.Figures("route_rows", name)) {
        if (figure.NsPerUnit() / random <= worst) continue;
        worst = figure.NsPerUnit() / random;
        at = figure.name;
      }
      table.AtMost(4.0, worst,
                   "router, " + name + ", worst row / random row: " + at);
    }
  }
}

void BucketAsks(Table& table) {
  const std::string isa = RunnableIsas().data[0].name;
  struct Line {
    size_t experts, top_k;
    double bound;
  };
  const Line lines[] = {
      {8, 2, 1.0}, {16, 2, 1.0}, {64, 8, 1.25}, {128, 8, 1.25}, {256, 8, 1.25}};
  for (const char* kernel : {"bucket_packed", "bucket_strided"}) {
    for (const Line& line : lines) {
      for (const size_t tokens : kBucketTokens) {
        if (tokens == 1) continue;
        for (const char* spread : {"uniform", "zipf"}) {
          const std::string shape =
              Router(line.experts, line.top_k, tokens) + "/" + spread;
          table.AtMost(line.bound, table.Ns(kernel, shape, isa),
                       std::string(kernel) + ", " + shape + ", ns a pair");
        }
      }
    }
  }
  const std::string one = Router(128, 8, 1) + "/uniform";
  const auto call_ns = [&](const char* kernel) {
    return 8.0 * table.Ns(kernel, one, isa);
  };
  table.AtMost(25.0, call_ns("bucket_strided"),
               "bucket_strided, " + one + ", ns a call");
  table.AtMost(60.0, call_ns("bucket_packed"),
               "bucket_packed with dispatch arguments, " + one + ", ns a call");
}

void SiluMulAsks(Table& table) {
  const std::string& avx512 = table.avx512();
  for (const char* shape : {"8x768", "64x2048"}) {
    const double ours = table.Ns("silu_mul", shape, avx512);
    table.AtMost(1.15, ours / table.Ns("silu_mul", shape, "probe"),
                 std::string("silu_mul, ") + shape + ", " + avx512 +
                     " / load, divide, store");
    table.AtMost(1.6, table.Ns("silu_mul", shape, "AVX2") / ours,
                 std::string("silu_mul, ") + shape + ", AVX2 / " + avx512);
  }
  table.AtMost(1.05,
               table.Ns("silu_mul", "4096x1536", avx512) /
                   table.Best("silu_mul", "4096x1536", Kind::kProbe),
               "silu_mul, 4096x1536, " + avx512 +
                   " / the better probe, plain or streaming");
}

void CombineAsks(Table& table) {
  const std::string isa = RunnableIsas().data[0].name;
  for (const char* kernel : {"combine", "combine_indexed"}) {
    for (const size_t tokens : kCombineTokens) {
      for (const HiddenShape& hidden : kHiddens) {
        const std::string shape = "T=" + std::to_string(tokens) +
                                  "/H=" + std::to_string(hidden.hidden);
        table.AtMost(1.05,
                     table.Ns(kernel, shape, isa) /
                         table.Best(kernel, shape, Kind::kProbe),
                     std::string(kernel) + ", " + shape + ", " + isa +
                         " / the fastest probe");
      }
    }
  }
}

void ThreadAsks(Table& table) {
  const std::string isa = RunnableIsas().data[0].name;
  for (const char* name :
       {"route E=128 k=8", "bucket_packed E=128 k=8", "gather H=2048 k=8",
        "silu_mul F=768", "combine H=2048 k=8"}) {
    for (const char* us : {"30us", "100us"}) {
      const std::string shape = std::string(name) + "/" + us;
      // What it came to: the size was chosen beforehand.
      std::string serial;
      for (const Figure& figure : table.Figures("threads", shape)) {
        if (figure.name != isa + ", 1 thread") continue;
        serial = std::to_string(std::lround(1e6 * figure.seconds)) + " us ";
      }
      table.AtLeast(
          std::strcmp(us, "30us") == 0 ? 1.6 : 1.85,
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

void DeviceAsks(Table& table) {
  table.AtMost(60.0, table.Ns("device", "empty", "device"),
               "device layer, 1000 empty dispatches, ns each");
  const auto above = [&](const char* shape) {
    return table.Ns("device", shape, "device") -
           table.Ns("device", shape, "direct calls");
  };
  table.AtMost(500.0, above("chains=100"),
               "device layer, 100 chains in a buffer, ns each above direct "
               "calls");
  table.AtMost(3000.0, above("chains=1"),
               "device layer, one chain with commit and wait, ns above direct "
               "calls");
  for (const char* shape :
       {"streaming", "weighted sum, k=8", "row reduction"}) {
    table.AtMost(20.0,
                 table.Ns("kernel", shape, "checked") /
                     table.Ns("kernel", shape, "unchecked"),
                 std::string("checked mode, ") + shape + ", times unchecked");
  }
}

}  // namespace

std::vector<Ask> Asks(const std::vector<Result>& results) {
  Table table(results);
  RouteAsks(table);
  RouteRangeAsks(table);
  BucketAsks(table);
  SiluMulAsks(table);
  CombineAsks(table);
  ThreadAsks(table);
  DeviceAsks(table);
  return table.asks;
}

}  // namespace bench
}  // namespace switchyard
