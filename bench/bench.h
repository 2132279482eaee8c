// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Times a kernel at one shape, beside all contenders that do the same work.
// Each contender is a Google benchmark called kernel/shape/contender, and is
// verified before its first sample. Calls rotate over several inputs, called
// slots.

#ifndef SWITCHYARD_BENCH_BENCH_H_
#define SWITCHYARD_BENCH_BENCH_H_

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "programs/status_text.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "switchyard/status.h"
#include "switchyard/types.h"

namespace switchyard::bench {

// The memory that a call writes, and its expected content. For a contender
// without same_bits, the verifier compares the values with `floats`, to within
// tolerance * max(1, |x|). If `floats` is empty or the contender has same_bits,
// it compares `exact` byte by byte. `exact` and `floats` have the content for
// each slot, one after the other. In `exact`, bytes that a call does not write
// are kPoison.
struct Output {
  template <class Memory>
  explicit Output(Memory& memory, double within = 1e-5)
      : Output(memory.data(),
               kType<std::remove_pointer_t<decltype(memory.data())>>,
               memory.size(), within) {}
  // Elements are f32, bf16, f16 or integers.
  Output(void* data_in, Type type_in, size_t size_in, double within = 0.0)
      : data(data_in), type(type_in), size(size_in), tolerance(within) {}
  size_t Bytes() const { return BytesOf(type, size); }
  template <class T>
  void AddExact(const std::vector<T>& more) {
    const auto* const bytes =
        reinterpret_cast<const unsigned char*>(more.data());
    exact.insert(exact.end(), bytes, bytes + more.size() * sizeof(T));
  }
  void* data;
  Type type;
  size_t size;  // the number of elements of one slot
  double tolerance;
  std::vector<unsigned char> exact = {};
  std::vector<double> floats = {};
};
constexpr int kPoison = 0xFF;  // a byte; floats of such bytes are NaN

template <class T, class U>
void Append(const std::vector<U>& more, std::vector<T>* to) {
  to->insert(to->end(), more.begin(), more.end());
}

inline void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(program::StatusText(status));
}

struct Facts {
  std::string name;        // kernel/shape
  std::string model = {};  // a model that has this shape
  const char* unit = "row";
  double units = 0.0;      // number of `unit`s, such as rows, per call
  double bytes = 0.0;      // bytes that a call has to move
  size_t slots = 1;        // number of inputs that calls rotate over
  std::string types = {};  // types of the rows: "bf16", "bf16-i8"; empty: f32
  // True if the data takes many megabytes. The program keeps the data of only
  // one such shape at a time.
  bool large = false;
};

// Adds the types to a contender's name. For example, "AVX2:2" with the types
// "bf16" becomes "AVX2@bf16:2".
inline std::string WithTypes(std::string contender, const std::string& types) {
  if (types.empty()) return contender;
  return contender.insert(std::min(contender.find(':'), contender.size()),
                          "@" + types);
}

struct Contender {
  std::string name;                 // the ISA, for the library's kernels
  std::vector<size_t> writes = {};  // indices of the outputs to check
  std::string isa = {};             // the ISA to use; empty: the best
  // True if the results must have exactly the expected bits. If an output has
  // no expected bits (`exact`), all contenders with this flag must give the
  // same bits.
  bool same_bits = false;
  bool idle = false;         // true: times single calls, each after a pause
  void (*rest)() = nullptr;  // puts threads to sleep after a sample
};

// Checks the results of a shape's contenders.
class Verifier {
 public:
  explicit Verifier(const Facts& facts) : slots_(facts.slots) {}
  void Announce() { ++unverified_; }
  // Throws std::runtime_error if a contender's results are wrong. Calls
  // wanted() once, and keeps the expected outputs that it returns until all
  // contenders that Announce() has counted are verified.
  void Verify(const Contender& contender,
              const std::function<std::vector<Output>()>& wanted,
              const std::function<void(size_t)>& call);
  // Drops the kept outputs. Call it when the outputs move to other memory.
  void Forget() { outputs_ = {}; }

 private:
  size_t slots_, unverified_ = 0;
  std::vector<Output> outputs_;
  std::optional<std::pair<std::string, uint64_t>> same_bits_;  // name, digest
};

// Returns the list of failures. Fail() adds a line for a contender that threw
// an exception or had wrong results, with the reason.
std::vector<std::string>& Failures();
void Fail(const std::string& benchmark, const std::string& why);

// Returns the names of all registered benchmarks, in the form
// kernel/shape/contender.
std::vector<std::string>& Names();

// Returns an executor with two TBB threads, or null in builds without TBB.
Executor* TwoThreads();
// Calls move(begin, end) for both halves of [0, size).
template <class Move>
void InHalves(Executor& executor, size_t size, Move move) {
  struct Context {
    size_t size;
    Move* move;
  } context = {size, &move};
  Check(executor.ParallelFor(
      2, 1,
      [](void* pointer, size_t, size_t begin, size_t end) {
        const Context& c = *static_cast<Context*>(pointer);
        (*c.move)(c.size * begin / 2, c.size * end / 2);
      },
      &context));
}

// Returns the best ISA, and AVX2 if it runs and is not the best. Benchmarks use
// these two ISAs for shapes that would take too long on all ISAs.
std::vector<Isa> MainIsas();

// Makes the library use `isa`, or the best ISA if `isa` is empty.
void UseIsa(const std::string& isa);

constexpr std::chrono::microseconds kWarmUp{50};
constexpr std::chrono::milliseconds kPause{1};

// Times call(slot). The calls rotate over the slots.
// - Each sample begins with calls that are not timed, because the previous
//   contender has evicted the data from the caches.
// - A sample has at least `batch` calls. `batch` is 0 before the first sample,
//   which sets it to the number of calls in a warm-up; later samples keep the
//   number. Otherwise Google Benchmark would choose the number, and would
//   settle for single calls if the system took the core away at that moment.
// - All contenders of a shape share `slot`. If each sample began at slot 0, the
//   first slots would stay in a cache, and the next contender would read them
//   from there.
template <class Call>
void Time(benchmark::State& state, size_t slots, size_t& slot, int64_t& batch,
          Call& call) {
  using Clock = std::chrono::steady_clock;
  const auto next = [&] {
    call(slot);
    if (++slot == slots) slot = 0;
  };
  const auto warm_up = [&] {
    int64_t calls = 0;
    const Clock::time_point end = Clock::now() + kWarmUp;
    do {
      next();
      ++calls;
    } while (Clock::now() < end);
    return calls;
  };
  if (batch == 0) batch = std::max({warm_up(), warm_up(), warm_up()});
  warm_up();
  while (state.KeepRunningBatch(batch)) {
    for (int64_t i = 0; i < batch; ++i) next();
  }
}

// Times single calls, each after a pause that is long enough for a pool's
// workers to sleep.
template <class Call>
void TimeIdle(benchmark::State& state, Call& call) {
  using Clock = std::chrono::steady_clock;
  call(0);
  for (auto _ : state) {
    std::this_thread::sleep_for(kPause);
    const Clock::time_point start = Clock::now();
    call(0);
    state.SetIterationTime(
        std::chrono::duration<double>(Clock::now() - start).count());
  }
}

// A kernel at one shape, with its contenders. The first contender that runs
// makes the Data, and all contenders share it. Data::Wanted() returns the
// expected outputs. Data::Call(slot, executor) runs the library's kernel.
template <class Data>
class Case {
 public:
  using Make = std::function<std::unique_ptr<Data>()>;

  Case(Facts facts, Make make)
      : shared_(std::make_shared<Shared>(std::move(facts), std::move(make))) {}

  // Adds a contender. setup(data) returns the function call(slot), which is
  // timed. call() may check its results itself, and throw an exception if they
  // are wrong.
  template <class Setup>
  benchmark::internal::Benchmark* Add(const Contender& contender, Setup setup) {
    using Call = decltype(setup(std::declval<Data&>()));
    const std::string name = shared_->facts.name + "/" +
                             WithTypes(contender.name, shared_->facts.types);
    shared_->verifier.Announce();
    Names().push_back(name);
    benchmark::internal::Benchmark* const benchmark =
        benchmark::RegisterBenchmark(
            name.c_str(),
            [name, contender, setup, shared = shared_, batch = int64_t{0},
             call = std::optional<Call>(), made = size_t{0},
             error = std::string()](benchmark::State& state) mutable {
              try {
                if (!error.empty()) throw std::runtime_error(error);
                UseIsa(contender.isa);
                shared->Require();
                if (made != shared->made) {  // the call refers to the data
                  call.reset();
                  call.emplace(setup(*shared->data));
                  if (made == 0) shared->Verify(contender, *call);
                  made = shared->made;
                }
                if (contender.idle) {
                  TimeIdle(state, *call);
                } else {
                  Time(state, shared->facts.slots, shared->slot, batch, *call);
                }
                if (contender.rest != nullptr) contender.rest();
              } catch (const std::exception& e) {
                if (error.empty()) Fail(name, error = e.what());
                state.SkipWithError(error.c_str());
              }
              state.counters["units"] = shared->facts.units;
              state.counters["bytes"] = shared->facts.bytes;
              state.SetLabel(shared->facts.unit + ("; " + shared->facts.model));
            });
    if (contender.idle) benchmark->UseManualTime()->Iterations(1);
    return benchmark;
  }

  // Adds the library's kernel on each of `isas`, on one thread or on two. Adds
  // nothing for two threads in builds without TBB.
  template <class Isas>
  void AddOurs(const Isas& isas, const std::vector<size_t>& writes,
               size_t threads = 1, bool idle = false) {
    Executor* const executor = threads == 1 ? &SerialExecutor() : TwoThreads();
    if (executor == nullptr) return;
    for (const Isa& isa : isas) {
      const std::string name = isa.name;
      Add({name + (threads == 1 ? "" : ":2"), writes, name, isa.fma, idle},
          [executor](Data& d) {
            return
                [&d, executor](size_t slot) { Check(d.Call(slot, *executor)); };
          });
    }
  }

  // Adds a probe, a loop over the same memory. It calls move(data, slot, begin,
  // end) for [0, size) or, on two threads, for each half of this range.
  template <class Move>
  void AddProbe(const std::string& name, size_t size, Move move,
                size_t threads = 1) {
    if (threads == 1) {
      Add({name}, [=](Data& d) {
        return [&d, size, move](size_t slot) { move(d, slot, 0, size); };
      });
    } else if (Executor* const executor = TwoThreads()) {
      Add({name + ":2"}, [=](Data& d) {
        return [&d, size, move, executor](size_t slot) {
          InHalves(*executor, size, [&](size_t begin, size_t end) {
            move(d, slot, begin, end);
          });
        };
      });
    }
  }

 private:
  struct Shared : std::enable_shared_from_this<Shared> {
    Shared(Facts f, Make m) : facts(std::move(f)), verifier(facts), make(m) {}
    // Makes the data unless it exists. A large shape first frees the data of
    // the last large shape.
    void Require() {
      if (data != nullptr) return;
      if (facts.large) {
        static std::weak_ptr<Shared> last;
        if (const auto other = last.lock()) other->data.reset();
        last = this->weak_from_this();
      }
      verifier.Forget();
      data = make();
      ++made;
    }
    template <class Call>
    void Verify(const Contender& contender, const Call& call) {
      verifier.Verify(
          contender, [this] { return data->Wanted(); },
          [&call](size_t each) { call(each); });
    }
    const Facts facts;
    Verifier verifier;
    const Make make;
    std::unique_ptr<Data> data;
    size_t made = 0;  // how often the data was made
    size_t slot = 0;
  };
  std::shared_ptr<Shared> shared_;
};

// Adds the library's kernel on one and on two threads. Also adds a probe,
// because its gain shows how much time a second core's caches alone save. With
// `idle`, also times single calls of the kernel after pauses. facts.name starts
// with the kernel's name. rivals(case, threads) adds other contenders.
template <class Data, class Move>
void AddThreads(const Facts& facts, const typename Case<Data>::Make& make,
                const std::vector<size_t>& writes, size_t size, Move move,
                bool idle,
                const std::function<void(Case<Data>&, size_t)>& rivals = {}) {
  if (TwoThreads() == nullptr) return;
  const auto named = [&](const char* prefix) {
    Facts changed = facts;
    changed.name = prefix + facts.name;
    return changed;
  };
  Case<Data> warm(named("threads/"), make);
  Case<Data> paused(named("threads_idle/"), make);
  for (const size_t threads : {size_t{1}, size_t{2}}) {
    warm.AddOurs(MainIsas(), writes, threads);
    if (rivals) rivals(warm, threads);
    warm.AddProbe("probe", size, move, threads);
    if (idle) paused.AddOurs(MainIsas(), writes, threads, true);
  }
}

// Registers functions of a *_bench.cc before main(). add() adds the file's
// cases. The optional add_at() adds the cases of a shape from the command line.
struct LayerShape;
struct Registration {
  explicit Registration(void (*add)());
  explicit Registration(void (*add_at)(const LayerShape&));
};
// Registers all cases. If `shapes` is not empty, registers only the cases of
// these shapes.
void RegisterAll(const std::vector<LayerShape>& shapes);

}  // namespace switchyard::bench

#endif  // SWITCHYARD_BENCH_BENCH_H_
