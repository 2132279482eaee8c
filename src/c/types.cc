// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/types.h"

#include <cstdio>
#include <memory>
#include <new>
#include <utility>

#include "src/c/call.h"
#include "switchyard/isa.h"

namespace switchyard::c {
namespace {

static_assert(SWY_MAX_STREAMS == kMaxStreams, "");
static_assert(SWY_ACTIVATE_STREAMING_BYTES == kActivateStreamingBytes, "");
static_assert(SWY_NO_CAPACITY == AlignedOptions::kNoCapacity, "");
static_assert(SWY_TIGHT_STRIDE == StridedBuckets::kTightStride, "");
static_assert(sizeof(swy_block_q8_0) == sizeof(BlockQ8_0) &&
                  sizeof(swy_block_q8_1) == sizeof(BlockQ8_1) &&
                  sizeof(swy_block_q8_k) == sizeof(BlockQ8_K),
              "blocks differ");

// The last error that was returned on this thread.
thread_local Status t_last_error;
// The details of errors that only the C ABI reports. They are kept here,
// because a shared library of the C++ API exports no function to keep them.
thread_local struct {
  const char* message;
  char text[kMaxDetails + 1];
} t_flag = {};

Type ToType(int32_t type) {
  Type converted;
  Convert(&type, &converted);
  return converted;
}
AnyMatrix ToMatrix(const swy_matrix& m) {
  AnyMatrix converted;
  Convert(&m, &converted);
  return converted;
}
swy_matrix ToC(const AnyMatrix& m) {
  swy_matrix converted;
  Convert(&m, &converted);
  return converted;
}
swy_isa ToC(const Isa* isa) {
  if (isa == nullptr) return {nullptr, 0};
  return {isa->name, isa->fma};
}
swy_isa At(Span<const Isa> isas, size_t index) {
  return ToC(index < isas.size ? isas.data + index : nullptr);
}

// The library's pool as a swy_executor, which is the type of a caller's pool.
struct TbbExecutor : swy_executor {
  explicit TbbExecutor(std::unique_ptr<Executor> pool_in)
      : swy_executor{sizeof(swy_executor), pool_in.get(),
                     pool_in->Concurrency(), ParallelFor, ForkNs},
        pool(std::move(pool_in)) {}
  static swy_status ParallelFor(void* context, size_t count, size_t grain,
                                swy_body body, void* body_context) {
    return c::ToC(static_cast<Executor*>(context)->ParallelFor(
        count, grain, body, body_context));
  }
  static size_t ForkNs(void* context) {
    return static_cast<const Executor*>(context)->ForkNs();
  }
  const std::unique_ptr<Executor> pool;
};

}  // namespace

void KeepDetails(const Status& status) noexcept {
  // An error that passed through a callback in C has lost its details, but this
  // thread may still have them.
  const bool has_passed = !status.ok() && *status.details() == '\0' &&
                          status.code() == t_last_error.code() &&
                          status.message() == t_last_error.message();
  if (!has_passed) t_last_error = status;
}
Status NotAFlag(const char* message, const char* field,
                int32_t value) noexcept {
  t_flag.message = message;
  std::snprintf(t_flag.text, sizeof(t_flag.text), "got %s %d", field,
                static_cast<int>(value));
  return Invalid(message);
}

}  // namespace switchyard::c

using namespace switchyard::c;

const char* swy_status_details(swy_status status) noexcept {
  const bool is_last =
      status.code == static_cast<int32_t>(t_last_error.code()) &&
      status.message == t_last_error.message();
  if (!is_last) return "";
  return status.message == t_flag.message && t_flag.message != nullptr
             ? t_flag.text
             : t_last_error.details();
}

size_t swy_size_of(int32_t type) noexcept {
  return switchyard::SizeOf(ToType(type));
}
size_t swy_block_of(int32_t type) noexcept {
  return switchyard::BlockOf(ToType(type));
}
size_t swy_bytes_of(int32_t type, size_t values) noexcept {
  return switchyard::BytesOf(ToType(type), values);
}

swy_matrix swy_row_range(swy_matrix m, size_t begin, size_t end) noexcept {
  return ToC(ToMatrix(m).RowRange(begin, end));
}
swy_matrix swy_col_range(swy_matrix m, size_t begin, size_t end) noexcept {
  return ToC(ToMatrix(m).ColRange(begin, end));
}

const swy_executor* swy_tbb_executor_create(int32_t max_concurrency) noexcept {
  auto pool = switchyard::MakeTbbExecutor(max_concurrency);
  if (pool == nullptr) return nullptr;
  return new (std::nothrow) TbbExecutor(std::move(pool));
}
void swy_tbb_executor_destroy(const swy_executor* executor) noexcept {
  delete static_cast<const TbbExecutor*>(executor);
}

swy_isa swy_compiled_isa(size_t index) noexcept {
  return At(switchyard::CompiledIsas(), index);
}
swy_isa swy_runnable_isa(size_t index) noexcept {
  return At(switchyard::RunnableIsas(), index);
}
swy_isa swy_active_isa() noexcept { return ToC(&switchyard::ActiveIsa()); }
swy_isa swy_last_isa() noexcept { return ToC(switchyard::LastIsa()); }
swy_status swy_cap_isa(const char* name) noexcept {
  return ToC(switchyard::CapIsa(name));
}
swy_status swy_environment_isa() noexcept {
  return ToC(switchyard::EnvironmentIsa());
}
