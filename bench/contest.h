// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A kernel at one shape: every ISA of it and its rivals on the same data,
// verified, then timed in the same rounds.

#ifndef SWITCHYARD_BENCH_CONTEST_H_
#define SWITCHYARD_BENCH_CONTEST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "switchyard/status.h"
#include "switchyard/views.h"
#include "testing/rounds.h"

namespace switchyard::bench {

using testing_support::Effort;
using testing_support::MedianSeconds;
using testing_support::Repeat;
using testing_support::Timed;

enum class Kind { kOurs, kPlain, kOneDnn, kProbe };

// 4-byte elements that a call writes, and what they should be: `ints` exactly,
// or `floats` to within tolerance * max(1, |x|). For all slots, one after the
// other; elements that a call leaves alone hold kPoison.
struct Output {
  template <class Memory>
  explicit Output(Memory& memory, double within = 1e-5)
      : data(memory.data()), size(memory.size()), tolerance(within) {}
  template <class T>
  Span<const T> As() const {
    return {static_cast<const T*>(data), size};
  }
  void* data;
  size_t size;
  double tolerance;
  std::vector<int32_t> ints = {};
  std::vector<double> floats = {};
};
constexpr int32_t kPoison = -1;  // as a float, a NaN

template <class T, class U>
void Append(const std::vector<U>& more, std::vector<T>* to) {
  to->insert(to->end(), more.begin(), more.end());
}

struct Contender {
  std::string name;  // the ISA for ours
  Kind kind = Kind::kOurs;
  Timed timed = {};
  std::vector<size_t> writes = {};  // indices of Contest::outputs, checked
  bool same_bits = false;           // as all others of which this is said
  double units = 0.0, bytes = 0.0;  // where they are not the contest's
};

struct Contest {
  std::string model = {};
  const char* unit = "row";
  double units = 0.0;  // per call
  double bytes = 0.0;  // that a call has to move
  size_t slots = 1;    // inputs over which calls rotate
  std::vector<Output> outputs = {};
  std::vector<Contender> contenders = {};
  // Calls of ours on an executor, as Timed::run.
  std::function<std::function<void(size_t)>(Executor&)> ours = {};
  std::function<std::string()> verify = {};  // more to check; empty: all right
};

inline void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

// call(slot) with rotating slots, from 0 on.
template <class Call>
std::function<void(size_t)> Rotate(size_t slots, Call call) {
  return [slots, call, slot = size_t{0}](size_t repeat) mutable {
    for (; repeat != 0; --repeat) {
      call(slot);
      if (++slot == slots) slot = 0;
    }
  };
}

void AddIsas(Contest& contest, const std::vector<size_t>& writes);

// Ours, once per ISA: call(slot, executor) returns a Status.
template <class Call>
void AddOurs(Contest& contest, const std::vector<size_t>& writes, Call call) {
  contest.ours = [slots = contest.slots, call](Executor& executor) {
    return Rotate(slots,
                  [call, &executor](size_t s) { Check(call(s, executor)); });
  };
  AddIsas(contest, writes);
}

// A rival: call(slot).
template <class Call>
void AddRival(Contest& contest, Kind kind, const std::string& name,
              const std::vector<size_t>& writes, Call call) {
  contest.contenders.push_back(
      {name, kind, {Rotate(contest.slots, call)}, writes});
}

struct Figure {
  std::string name;
  Kind kind;
  double seconds;  // per call
  double units;
  double bytes;
  double NsPerUnit() const { return 1e9 * seconds / units; }
};
struct Result {
  std::string kernel, shape, model, unit;
  std::vector<Figure> figures;
};

// What has been measured so far, and what went wrong.
std::vector<Result>& Results();
std::vector<std::string>& Failures();
Effort& DefaultEffort();

struct Ask {
  std::string what;
  double bound;
  bool at_most;   // or at least
  double figure;  // NaN: not measured in this run
  bool Measured() const { return figure == figure; }
  bool Met() const { return at_most ? figure <= bound : figure >= bound; }
};

// What a Registration's ask() reads and appends to: what is asked of the
// kernels' speed, against what was measured.
class Table {
 public:
  Table();

  void AtMost(double bound, double figure, const std::string& what) {
    asks.push_back({what, bound, true, figure});
  }
  void AtLeast(double bound, double figure, const std::string& what) {
    asks.push_back({what, bound, false, figure});
  }

  // The contender's time per unit; NaN if there is none.
  double Ns(const std::string& kernel, const std::string& shape,
            const std::string& contender) const;
  // That of one over that of another.
  double Ratio(const std::string& kernel, const std::string& shape,
               const std::string& one, const std::string& other) const {
    return Ns(kernel, shape, one) / Ns(kernel, shape, other);
  }
  // That of one over that of the fastest of a kind.
  double Ratio(const std::string& kernel, const std::string& shape,
               const std::string& one, Kind kind) const {
    return Ns(kernel, shape, one) / Best(kernel, shape, kind);
  }
  const std::vector<Figure>& Figures(const std::string& kernel,
                                     const std::string& shape) const;

  const std::string best;  // the best ISA
  // The AVX-512 figures asked for are those of the best such ISA; elsewhere
  // there are none.
  const std::string avx512;
  std::vector<Ask> asks;

 private:
  double Best(const std::string& kernel, const std::string& shape,
              Kind kind) const;
};

// Of all registered, and of all on threads.
std::vector<Ask> Asks();

// One per *_bench.cc: add() calls Register() and RegisterThreads(), ask(table)
// says what is asked of the figures.
struct Registration {
  explicit Registration(void (*add_in)(), void (*ask_in)(Table&) = nullptr);
  void (*add)();
  void (*ask)(Table&);
};
std::vector<Registration>& Registrations();

// Registers kernel/shape with Google Benchmark; `make` runs when it is its
// turn.
void Register(const std::string& kernel, const std::string& shape,
              std::function<Contest()> make);

// Each ISA of the same on one and on two threads: with as many tokens as make
// about 30 and 100 us of the best one's serial work, and with `sizes` tokens.
// Nothing without TBB. make(tokens).
void RegisterThreads(const std::string& name, const std::vector<size_t>& sizes,
                     std::function<Contest(size_t tokens)> make);

// The best ISA, and AVX2 if there is a better one.
std::vector<std::string> AskedIsas();

}  // namespace switchyard::bench

#endif  // SWITCHYARD_BENCH_CONTEST_H_
