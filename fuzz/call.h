// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Code that the fuzz targets share: memory that reveals wrong accesses, calls
// on every ISA, and calls with an error.

#ifndef SWITCHYARD_FUZZ_CALL_H_
#define SWITCHYARD_FUZZ_CALL_H_

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/bytes.h"
#include "src/base/type_list.h"
#include "src/calls/names.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "switchyard/status.h"
#include "switchyard/views.h"
#include "testing/floats.h"
#include "testing/guarded_pages.h"
#include "testing/spoilt_calls.h"
#include "testing/unwritten.h"

#if defined(__SANITIZE_ADDRESS__)
#define SWITCHYARD_FUZZ_ON_HEAP
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SWITCHYARD_FUZZ_ON_HEAP
#endif
#endif

namespace switchyard::fuzz {

// libFuzzer reports the exception as a crash, and GoogleTest as a failure.
[[noreturn]] inline void Fail(const char* file, int line,
                              const std::string& what) {
  throw std::logic_error(std::string(file) + ":" + std::to_string(line) + ": " +
                         what);
}
#define FUZZ_CHECK(condition, what)                                    \
  do {                                                                 \
    if (!(condition)) {                                                \
      ::switchyard::fuzz::Fail(__FILE__, __LINE__,                     \
                               std::string(#condition ": ") + (what)); \
    }                                                                  \
  } while (false)

// The types of rows of floats. Zero bytes choose f32.
constexpr std::initializer_list<Type> kFloats = {Type::kF32, Type::kBF16,
                                                 Type::kF16};
inline Type FloatType(Bytes& bytes) {
  return kFloats.begin()[bytes.Below(kFloats.size())];
}

// Chooses a type that needs scales, for an argument without scales.
inline Type WithoutScales(Bytes& bytes) {
  constexpr calls::Enumerators<Type> kCodes(internal::kCodeSet);
  return kCodes[bytes.Below(kCodes.size())];
}

// Returns memory that ends at an inaccessible page. Under AddressSanitizer it
// is heap memory, because that also reveals accesses before its start.
inline auto TakeEnded(size_t size) {
#ifdef SWITCHYARD_FUZZ_ON_HEAP
  return std::unique_ptr<unsigned char[]>(new unsigned char[size]);
#else
  using Pages = testing_support::GuardedPages;
  const size_t bytes = (size / Pages::PageSize() + 1) * Pages::PageSize();
  const auto give_back = [=](unsigned char* data) {
    Pages::GiveBack(reinterpret_cast<char*>(data) + size - bytes, bytes);
  };
  return std::unique_ptr<unsigned char[], std::function<void(unsigned char*)>>(
      reinterpret_cast<unsigned char*>(Pages::Take(bytes)) + bytes - size,
      give_back);
#endif
}

// A view in its own memory, which ends with the view. The bytes choose the
// gaps before the view and between its rows. The gaps hold canaries.
class Memory {
 public:
  Memory(Bytes& bytes, Type type, size_t rows, size_t cols)
      : rows_(rows), cols_(cols / BlockOf(type)) {
    All().push_back(this);
    const uint8_t layout = bytes.Byte();
    front_ = layout % 8;
    constexpr size_t kGaps[] = {0, 0, 0, 1, 3, 16, 61, 0};
    stride_ = cols_ + kGaps[layout / 8 % std::size(kGaps)];
    Allocate(type);
  }
  Memory(Bytes& bytes, size_t rows, size_t cols,
         const std::vector<float>& values)
      : Memory(bytes, Type::kF32, rows, cols) {
    numbers_ = values;
    Become(Type::kF32);
  }
  // Makes memory of ids in int32 or int64.
  Memory(Bytes& bytes, Type type, size_t rows, size_t cols,
         const std::vector<int32_t>& values)
      : Memory(bytes, type, rows, cols) {
    if (type == Type::kI64) {
      Fill<int64_t>(values);
    } else {
      Fill<int32_t>(values);
    }
  }

  ~Memory() { All().erase(std::find(All().begin(), All().end(), this)); }
  Memory(const Memory&) = delete;
  // Returns all Memory objects of the current input.
  static std::vector<Memory*>& All() {
    static std::vector<Memory*> all;
    return all;
  }

  // Converts the memory to another type, and rounds the numbers.
  void Become(Type type) {
    Allocate(type);
    for (size_t i = 0; i < numbers_.size(); ++i) {
      testing_support::RoundAt(type, numbers_[i], view().Row<float>(0),
                               Place(i));
    }
    Keep();
  }

  AnyMatrix view() const {
    return {static_cast<void*>(data_.get() + front_ * element_), type_, rows_,
            cols_ * BlockOf(type_), stride_ * BlockOf(type_)};
  }
  template <class T>
  Span<T> span() const {
    return {view().Row<T>(0), rows_ * cols_};  // only for one row
  }
  template <class T>
  std::vector<T> Values() const {
    std::vector<T> values;
    for (size_t r = 0; r < rows_; ++r) {
      const T* const row = view().Row<T>(r);
      values.insert(values.end(), row, row + cols_);
    }
    return values;
  }
  // Returns the values, for any type of floats or codes.
  std::vector<float> Floats() const {
    std::vector<float> values;
    for (size_t i = 0; i < rows_ * cols_; ++i) {
      values.push_back(
          testing_support::WidenAt(type_, view().Row<float>(0), Place(i)));
    }
    return values;
  }
  // Returns the values as int32. Fails if a value does not fit, because no
  // call may return such an id.
  std::vector<int32_t> Ids() const {
    if (type_ != Type::kI64) return Values<int32_t>();
    std::vector<int32_t> ids;
    for (const int64_t id : Values<int64_t>()) {
      FUZZ_CHECK(id == static_cast<int32_t>(id), "not an int32");
      ids.push_back(static_cast<int32_t>(id));
    }
    return ids;
  }

  // Remembers the current content. Restore() restores it, and the checks
  // compare with it.
  void Keep() { kept_.assign(data_.get(), data_.get() + size_); }
  void Restore() { std::copy(kept_.begin(), kept_.end(), data_.get()); }
  bool Holds(const void* p) const {
    return p >= data_.get() && p < data_.get() + size_;
  }
  // CheckUntouched() checks that no byte has changed. CheckOnlyViewWritten()
  // checks that no byte outside of the view has changed.
  void CheckUntouched(const char* name) const { Check(name, true); }
  void CheckOnlyViewWritten(const char* name) const { Check(name, false); }

 private:
  size_t Place(size_t i) const { return i / cols_ * stride_ + i % cols_; }
  void Allocate(Type type) {
    type_ = type;
    element_ = SizeOf(type);
    const size_t used =
        rows_ == 0 || cols_ == 0 ? 0 : (rows_ - 1) * stride_ + cols_;
    size_ = (front_ + used) * element_;
    data_ = TakeEnded(size_);
    constexpr unsigned char kCanary[] = {0xAD, 0xDE, 0xC0, 0x7F};  // a NaN
    for (size_t i = 0; i < size_; ++i) data_[i] = kCanary[i % 4];
    Keep();
  }
  template <class T, class From>
  void Fill(const std::vector<From>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const T value = static_cast<T>(values[i]);
      std::memcpy(view().Row<T>(i / cols_) + i % cols_, &value, sizeof(T));
    }
    Keep();
  }
  void Check(const char* name, bool inside_too) const {
    if (std::equal(kept_.begin(), kept_.end(), data_.get())) return;
    for (size_t i = 0; i < size_; ++i) {
      const size_t e = i / element_;
      const bool inside = e >= front_ && (e - front_) % stride_ < cols_;
      FUZZ_CHECK(data_[i] == kept_[i] || (inside && !inside_too),
                 std::string(name) + ": byte " + std::to_string(i) +
                     " was overwritten");
    }
  }

  Type type_;
  size_t rows_, cols_, element_;  // a block counts as one element
  size_t front_, stride_, size_;  // the first two in elements
  std::vector<float> numbers_;    // the numbers before they are rounded
  decltype(TakeEnded(0)) data_;
  std::vector<unsigned char> kept_;
};

// Checks that `m` holds `f32`, rounded to its type.
inline void CheckRounded(const Memory& m, const std::vector<float>& f32,
                         const char* name) {
  using testing_support::CanonicalBits;
  FUZZ_CHECK(CanonicalBits(m.Floats()) ==
                 CanonicalBits(testing_support::Rounded(m.view().type, f32)),
             std::string(name) + ": not that of f32, rounded");
}

using testing_support::kUnwritten;

// Cuts the work into pieces of any size, and runs the pieces in any order on
// the calling thread.
class PiecesExecutor final : public Executor {
 public:
  explicit PiecesExecutor(Bytes& bytes)
      : concurrency_(1 + bytes.Below(5)), seed_(bytes.Byte()) {}
  size_t Concurrency() const noexcept override { return concurrency_; }
  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    FUZZ_CHECK(grain >= 1, "no grain");
    if (concurrency_ == 1) {
      body(context, 0, 0, count);
      return Status();
    }
    Random random(seed_);
    std::vector<std::pair<size_t, size_t>> pieces;
    for (size_t begin = 0; begin < count;) {
      const size_t end = std::min(count, begin + 1 + random.Below(count));
      pieces.emplace_back(begin, end);
      begin = end;
    }
    for (size_t n = pieces.size(); n > 1; --n) {
      std::swap(pieces[n - 1], pieces[random.Below(n)]);
    }
    for (const auto& [begin, end] : pieces) {
      body(context, random.Below(concurrency_), begin, end);
    }
    return Status();
  }

 private:
  const size_t concurrency_;
  const uint64_t seed_;
};

// Calls run(isa) on every ISA of the machine. run() returns a list of words,
// which has to be the same on all ISAs with FMA.
template <class Run>
void OnEveryIsa(const Run& run) {
  std::optional<std::vector<uint32_t>> first;
  for (const Isa& isa : RunnableIsas()) {
    FUZZ_CHECK(CapIsa(isa.name).ok(), isa.name);
    const std::vector<uint32_t> words = run(isa);
    if (!isa.fma) continue;
    if (!first) first = words;
    FUZZ_CHECK(words == *first,
               std::string(isa.name) + " differs from the first with FMA");
  }
  FUZZ_CHECK(CapIsa(nullptr).ok(), "no cap");
}
inline void Append(std::vector<uint32_t>& words,
                   const std::vector<float>& values) {
  for (const float f : values) {
    words.push_back(testing_support::CanonicalBits(f));
  }
}

// The error that CheckRefused() expects. Spoiler::Spoil() sets it.
inline std::string& ExpectedText() {
  static std::string text;
  return text;
}

// Makes a valid call invalid, by breaking one rule of the call's table in
// src/calls. Sometimes breaks further rules, each of which makes the call
// invalid on its own.
class Spoiler {
 public:
  // Reads its bytes before the call's data. Otherwise short inputs, which end
  // within the data, would all make the same choice here.
  explicit Spoiler(Bytes& bytes) : wanted_(bytes.Below(4) == 1) {
    for (uint8_t& choice : choices_) choice = wanted_ ? bytes.Byte() : 0;
  }
  bool wanted() const { return wanted_; }

  // Returns false if the call stays valid, because the bytes chose a valid call
  // or because the call's table has no rule to break.
  template <class C>
  bool Spoil(typename C::Inputs* in, typename C::Outputs* out,
             typename C::Options* options) const {
    if (!wanted_) return false;
    using Calls = testing_support::SpoiltCalls<C>;
    typename Calls::Call call = {*in, *out, *options};
    std::vector<std::pair<std::string, typename Calls::Spoil>> all;
    Calls spoilt(call, [&all](const auto& texts, const auto& spoil) {
      all.emplace_back(*texts.begin(), spoil);
    });
    spoilt.All();
    const size_t size = all.size();
    if (size == 0) return false;
    spoilt.Certain();
    Bytes bytes(choices_, sizeof(choices_));
    const auto apply = [&](size_t i) {
      all[i].second(call);
      ExpectedText() = all[i].first;
    };
    apply(bytes.Below(size));
    while (bytes.Byte() % 4 == 1) {
      apply(size + bytes.Below(all.size() - size));
    }
    *in = call.in;
    *out = call.out;
    *options = call.options;
    return true;
  }

 private:
  const bool wanted_;
  uint8_t choices_[8];
};

// Checks that the spoilt call returns the function's name and ExpectedText(),
// and that it has written nothing.
inline void CheckRefused(const Status& status, const char* function) {
  const std::string prefix = std::string(function) + ": ";
  FUZZ_CHECK(status.code() == StatusCode::kInvalidArgument,
             prefix + status.message() + " instead of " + ExpectedText());
  FUZZ_CHECK(std::strncmp(status.message(), prefix.c_str(), prefix.size()) == 0,
             status.message());
  for (const Memory* m : Memory::All()) m->CheckUntouched("refused");
}

template <class Outputs>
constexpr auto HasReport(Outputs* out) -> decltype(out->report, true) {
  return true;
}
constexpr bool HasReport(...) { return false; }
// Runs the call with a report, and returns the report.
template <class Outputs, class Run>
Report ReportOf(Outputs* out, const Run& run) {
  Report report = kUnwritten;
  if constexpr (HasReport(static_cast<Outputs*>(nullptr))) {
    out->report = &report;
    run();
    out->report = nullptr;
  } else {
    run();
  }
  return report;
}

// Returns true if the call was spoilt. In that case run() has to refuse it
// and write nothing.
template <class C, class Run>
bool RefusesSpoilt(const Spoiler& spoiler, typename C::Inputs* in,
                   typename C::Outputs* out, typename C::Options* options,
                   const Run& run) {
  if (!spoiler.Spoil<C>(in, out, options)) return false;
  const Report report = ReportOf(out, [&] { CheckRefused(run(), C::kName); });
  FUZZ_CHECK(report == kUnwritten, "the report was written");
  return true;
}

// How a valid call has to end: with kOk if `is_fine`, otherwise with
// kFailedPrecondition. If `report` is given, it has to be the call's report.
struct Outcome {
  bool is_fine = true;
  std::optional<Report> report;
};
// Runs the call on the active ISA. The call has to end as `wanted`, and may
// write only its outputs.
template <class C, class Run>
void RunChecked(const typename C::Inputs& in, typename C::Outputs* out,
                const Outcome& wanted, const Run& run) {
  const std::vector<const void*> written =
      testing_support::SpoiltCalls<C>::Written({in, *out, {}});
  for (Memory* m : Memory::All()) m->Restore();
  Status status;
  const Report report = ReportOf(out, [&] { status = run(); });
  FUZZ_CHECK(
      status.code() ==
          (wanted.is_fine ? StatusCode::kOk : StatusCode::kFailedPrecondition),
      status.message());
  FUZZ_CHECK(!wanted.report || report == *wanted.report, "report");
  for (const Memory* m : Memory::All()) {
    const auto holds = [m](const void* p) { return m->Holds(p); };
    if (std::any_of(written.begin(), written.end(), holds)) {
      m->CheckOnlyViewWritten("output");
    } else {
      m->CheckUntouched("input");
    }
  }
}
// Calls RunChecked() on every ISA, and then check(isa). If check() returns
// results, they have to be the same on all ISAs with FMA.
template <class C, class Run, class Check>
void RunOnEveryIsa(const typename C::Inputs& in, typename C::Outputs* out,
                   const Outcome& wanted, const Run& run, const Check& check) {
  OnEveryIsa([&](const Isa& isa) {
    RunChecked<C>(in, out, wanted, run);
    if constexpr (std::is_void_v<decltype(check(isa))>) {
      check(isa);
      return std::vector<uint32_t>();
    } else {
      return check(isa);
    }
  });
}

}  // namespace switchyard::fuzz

#endif  // SWITCHYARD_FUZZ_CALL_H_
