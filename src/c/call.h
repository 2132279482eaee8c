// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs a call of the C++ API for a C caller.

#ifndef SWITCHYARD_SRC_C_CALL_H_
#define SWITCHYARD_SRC_C_CALL_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "src/c/convert.h"
#include "switchyard/executor.h"

namespace switchyard::c {

// Messages about a caller's struct, for errors that only C callers can make.
struct ArgumentTexts {
  const char* null;
  const char* no_size;
  const char* no_version;
  const char* too_long;
  const char* unknown;
  const char* no_flag;
};
struct Texts {
  ArgumentTexts inputs, outputs, options, report, who;
  const char* no_threads;
};
#define SWITCHYARD_C_ARGUMENT_TEXTS(Function, name)                         \
  {                                                                         \
    Function ": " name ": is null", Function ": " name ": size is not set", \
        Function ": " name ": size is that of no version of the struct",    \
        Function ": " name ": size is above SWY_MAX_STRUCT_SIZE, 4096",     \
        Function ": " name ": has fields that this version does not know",  \
        Function ": " name ": a flag is neither 0 nor 1"                    \
  }
static_assert(SWY_MAX_STRUCT_SIZE == 4096, "The text above names it.");
#define SWITCHYARD_C_TEXTS(Function, who)                               \
  ::switchyard::c::Texts {                                              \
    SWITCHYARD_C_ARGUMENT_TEXTS(Function, "inputs"),                    \
        SWITCHYARD_C_ARGUMENT_TEXTS(Function, "outputs"),               \
        SWITCHYARD_C_ARGUMENT_TEXTS(Function, "options"),               \
        SWITCHYARD_C_ARGUMENT_TEXTS(Function, "report"),                \
        SWITCHYARD_C_ARGUMENT_TEXTS(Function, who),                     \
        Function ": " who ": parallel_for is null, or concurrency is 0" \
  }

inline Status Invalid(const char* message) {
  return Status(StatusCode::kInvalidArgument, message);
}
// Keeps the details of a status for swy_status_details(). A swy_status has no
// room for the number by which a Status refers to its details.
void KeepDetails(const Status& status) noexcept;
inline swy_status ToC(const Status& status) {
  if (!status.ok()) KeepDetails(status);
  return {static_cast<int32_t>(status.code()), status.message()};
}
// Converts the status that a caller's function returned. Uses `no_message` if
// the status has no message.
inline Status StatusOf(const swy_status& status, const char* no_message) {
  if (status.code == SWY_OK) return Status();
  const bool has_none = status.message == nullptr || status.message[0] == '\0';
  return Status(static_cast<StatusCode>(status.code),
                has_none ? no_message : status.message);
}
// Returns an error with the field's name and value as details.
Status NotAFlag(const char* message, const char* field, int32_t value) noexcept;

template <class C>
Status Check(const C* given, const ArgumentTexts& texts) {
  if (given == nullptr) return Invalid(texts.null);
  if (!HasSize(given)) return Invalid(texts.no_size);
  if (!IsOfVersion(given)) return Invalid(texts.no_version);
  if (IsTooLong(given)) return Invalid(texts.too_long);
  if (!IsKnown(given)) return Invalid(texts.unknown);
  return Status();
}

// Returns a field that only C has, or zero if the struct is too short for it.
template <class C, class T>
T AloneIn(const C* given, T C::*field) {
  const T* const at = &(given->*field);
  const auto end = reinterpret_cast<const unsigned char*>(at + 1) -
                   reinterpret_cast<const unsigned char*>(given);
  return static_cast<size_t>(end) <= given->size ? *at : T();
}

// Checks that all flags, which are numbers in C, are 0 or 1.
template <class C>
Status CheckFlags(const C* given, const char* message) {
  int32_t value = 0;
  const Field* const field = FindWrongFlag(given, &value);
  return field == nullptr ? Status() : NotAFlag(message, field->name, value);
}
inline Status CheckFlags(const swy_combine_inputs* given, const char* message) {
  const int32_t value = AloneIn(given, &swy_combine_inputs::token_order);
  return (value & ~1) == 0 ? Status() : NotAFlag(message, "token_order", value);
}

// Returns a C++ struct with default values, which the caller's fields then
// replace.
template <class Cpp>
Cpp Default() {
  if constexpr (std::is_same_v<Cpp, CombineInputs>) {
    return {{}, {}, ConstAnyMatrix()};
  } else {
    return {};
  }
}

// Checks an argument, and converts it from the caller's struct to C++.
template <class C>
class Argument {
 public:
  Argument(const C* given, const ArgumentTexts& texts)
      : status(Check(given, texts)) {
    if (status.ok()) status = CheckFlags(given, texts.no_flag);
    if (status.ok()) ReadFields(given, &value);
  }
  // Uses default values if the caller's pointer is null.
  static Argument OrDefault(const C* given, const ArgumentTexts& texts) {
    return given == nullptr ? Argument() : Argument(given, texts);
  }

  Status status;
  CppOf<C> value = Default<CppOf<C>>();

 private:
  Argument() = default;
};

// The report of a call. The caller gets only the fields that the call has set.
class Reporting {
 public:
  Reporting(swy_report* given, const ArgumentTexts& texts) : given_(given) {
    if (given == nullptr) return;
    status = Check(given, texts);
    for (const Field& field : FieldsOf<swy_report>()) {
      *At<size_t>(&report_, field.offset) = kUnset;
    }
  }
  Reporting(const Reporting&) = delete;
  Report* report() { return given_ == nullptr ? nullptr : &report_; }
  // Gives the caller the fields that were set. Leaves the other fields alone.
  void Tell() {
    if (given_ == nullptr) return;
    for (const Field& field : FieldsOf<swy_report>()) {
      const size_t value = *At<size_t>(&report_, field.offset);
      if (value != kUnset && field.c_end <= given_->size) {
        *At<size_t>(given_, field.c_offset) = value;
      }
    }
  }

  Status status;

 private:
  // Marks a field that is not set. It is larger than any count.
  static constexpr size_t kUnset = static_cast<size_t>(-1);
  swy_report* const given_;
  Report report_;
};

// Returns the field `report` of the outputs, or null if they have none.
template <class C>
constexpr const Field* FindReport() {
  for (const Field& field : FieldsOf<C>()) {
    if (field.kind == calls::Kind::kReport) return &field;
  }
  return nullptr;
}

// Runs run(inputs, outputs, options), a call of the C++ API.
template <class In, class Out, class Options, class Run>
swy_status Call(const Texts& texts, const In* inputs, const Out* outputs,
                const Options* options, const Run& run) noexcept {
  Argument<In> in(inputs, texts.inputs);
  if (!in.status.ok()) return ToC(in.status);
  Argument<Out> out(outputs, texts.outputs);
  if (!out.status.ok()) return ToC(out.status);
  auto opt = Argument<Options>::OrDefault(options, texts.options);
  if (!opt.status.ok()) return ToC(opt.status);
  constexpr const Field* kReport = FindReport<Out>();
  const bool has_report = kReport != nullptr && kReport->c_end <= outputs->size;
  Reporting reporting(
      has_report ? *At<swy_report*>(outputs, kReport->c_offset) : nullptr,
      texts.report);
  if (!reporting.status.ok()) return ToC(reporting.status);
  if (has_report)
    *At<Report*>(&out.value, kReport->offset) = reporting.report();
  const Status status = run(in.value, out.value, opt.value);
  reporting.Tell();
  return ToC(status);
}

// The caller's thread pool as an Executor.
class CallbackExecutor final : public Executor {
 public:
  explicit CallbackExecutor(const swy_executor& given) : given_(given) {}
  size_t Concurrency() const noexcept override { return given_.concurrency; }
  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    return StatusOf(
        given_.parallel_for(given_.context, count, grain, body, context),
        "Executor: parallel_for failed without a message");
  }
  size_t ForkNs() const noexcept override {
    constexpr size_t kEnd =
        offsetof(swy_executor, fork_ns) + sizeof(given_.fork_ns);
    const bool says = given_.size >= kEnd && given_.fork_ns != nullptr;
    return says ? given_.fork_ns(given_.context) : kForkNs;
  }

 private:
  const swy_executor& given_;
};

// Runs run(executor), on the calling thread alone if no executor is given.
template <class Run>
Status WithExecutor(const Texts& texts, const swy_executor* given,
                    const Run& run) {
  if (given == nullptr) return run(SerialExecutor());
  Status status = Check(given, texts.who);
  if (!status.ok()) return status;
  // The end of the struct's first version. Later versions may be longer.
  constexpr size_t kEnd =
      offsetof(swy_executor, parallel_for) + sizeof(given->parallel_for);
  if (given->size < kEnd || given->parallel_for == nullptr ||
      given->concurrency == 0) {
    return Invalid(texts.no_threads);
  }
  CallbackExecutor executor(*given);
  return run(executor);
}

}  // namespace switchyard::c

#endif  // SWITCHYARD_SRC_C_CALL_H_
