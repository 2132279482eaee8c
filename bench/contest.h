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

#include "bench/rounds.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "switchyard/status.h"

namespace switchyard {
namespace bench {

enum class Kind { kOurs, kPlain, kOneDnn, kProbe };

// 4-byte elements that a call writes, and what they should be: `ints` exactly,
// or `floats` to within tolerance * max(1, |x|). For all slots, one after the
// other; elements that a call leaves alone hold kPoison.
struct Output {
  void* data = nullptr;
  size_t size = 0;
  std::vector<int32_t> ints = {};
  std::vector<double> floats = {};
  double tolerance = 1e-5;
};
constexpr int32_t kPoison = -1;  // as a float, a NaN

struct Contender {
  std::string name;  // the ISA for ours
  Kind kind = Kind::kOurs;
  Timed timed = {};
  std::vector<size_t> writes = {};  // indices of Contest::outputs, checked
  bool same_bits = false;           // as all others of which this is said
  double units = 0.0, bytes = 0.0;  // where they are not the contest's
};

struct Contest {
  std::string kernel;  // "route"
  std::string shape;   // "E=128/k=8/T=512"
  std::string model = {};
  const char* unit = "row";
  double units = 0.0;  // per call
  double bytes = 0.0;  // that a call has to move
  size_t slots = 1;    // inputs over which calls rotate
  std::shared_ptr<void> data = {};
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
  Contender contender;
  contender.name = name;
  contender.kind = kind;
  contender.timed.run = Rotate(contest.slots, call);
  contender.writes = writes;
  contest.contenders.push_back(std::move(contender));
}

// Empty, or what is wrong with whose result.
std::string Verify(const Contest& contest);

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

// One list per stem, in <stem>_bench.cc.
void RegisterRoute();
void RegisterBucket();
void RegisterGather();
void RegisterSiluMul();
void RegisterCombine();
void RegisterDevice();
void RegisterKernels();

}  // namespace bench
}  // namespace switchyard

#endif  // SWITCHYARD_BENCH_CONTEST_H_
