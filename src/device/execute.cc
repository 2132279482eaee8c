// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the dispatches of a command buffer, one after the other.

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "src/device/call.h"
#include "src/device/commands.h"
#include "src/device/threadgroups.h"

namespace switchyard {
namespace device {
namespace {

size_t Ceil(size_t threads, size_t per_threadgroup) {
  return threads / per_threadgroup + (threads % per_threadgroup != 0 ? 1 : 0);
}
size_t Times(size_t threadgroups, size_t threads) {
  size_t product = 0;
  return __builtin_mul_overflow(threadgroups, threads, &product) ? SIZE_MAX
                                                                 : product;
}

// Both forms of the grid, whichever was encoded. Threads stop at SIZE_MAX.
void GetGrid(const Dispatch& dispatch, Size* threadgroups, Size* threads) {
  const Size per = dispatch.ThreadsPerThreadgroup();
  Size grid = dispatch.grid;
  if (dispatch.in_threads) {
    *threads = grid;
    *threadgroups =
        Size(Ceil(grid.width, per.width), Ceil(grid.height, per.height),
             Ceil(grid.depth, per.depth));
    return;
  }
  if (dispatch.indirect != nullptr) {
    uint32_t args[3];
    std::memcpy(args, dispatch.indirect, sizeof(args));
    grid = Size(args[0], args[1], args[2]);
  }
  *threadgroups = grid;
  *threads = Size(Times(grid.width, per.width), Times(grid.height, per.height),
                  Times(grid.depth, per.depth));
}

std::string ReadIndirect(const Dispatch& dispatch,
                         kernel_internal::Checker& checker) {
  using Fresh = kernel_internal::Checker::Fresh;
  if (dispatch.indirect == nullptr) return std::string();
  const std::string error = checker.Touch(
      "the indirect arguments", {dispatch.indirect, 1, 12, 12}, false,
      dispatch.indirect_fresh ? Fresh::kAnyWord : Fresh::kIgnore);
  return error.empty() ? error : dispatch.pipeline->name + ": " + error;
}

std::string ExecuteOne(const Dispatch& dispatch, Size threads,
                       Size threadgroups, const Binding* bindings,
                       Executor& executor, std::vector<int32_t>& scratch,
                       kernel_internal::Checker* checker) {
  Call call(dispatch, threads, threadgroups, bindings, executor, scratch,
            checker);
  if (threads.width == SIZE_MAX || threads.height == SIZE_MAX ||
      threads.depth == SIZE_MAX) {
    call.GridOverflows();
  } else if (dispatch.pipeline->run != nullptr) {
    dispatch.pipeline->run(call);
  } else {
    Threadgroups::Run(call);
  }
  return call.error();
}

}  // namespace

std::string Execute(const Commands& commands, Executor& executor,
                    std::vector<int32_t>& scratch,
                    std::vector<DispatchTime>* times,
                    kernel_internal::Checker* checker) {
  // Also when memory is out.
  struct Checking {
    kernel_internal::Checker* const checker;
    ~Checking() {
      if (checker != nullptr) checker->End();
    }
  };
  const Checking checking = {checker};
  if (checker != nullptr) checker->Begin(commands);
  for (const Dispatch& dispatch : commands.dispatches) {
    if (checker != nullptr) {
      checker->BeginDispatch(
          static_cast<size_t>(&dispatch - commands.dispatches.data()));
      const std::string error = ReadIndirect(dispatch, *checker);
      if (!error.empty()) return error;
    }
    Size threads, threadgroups;
    GetGrid(dispatch, &threadgroups, &threads);
    const double start = times != nullptr ? Now() : 0.0;
    if (threads.width != 0 && threads.height != 0 && threads.depth != 0) {
      std::string error =
          ExecuteOne(dispatch, threads, threadgroups,
                     commands.bindings.data() + dispatch.first_binding,
                     executor, scratch, checker);
      if (!error.empty()) return error;
    }
    if (times != nullptr) {
      times->push_back({dispatch.pipeline->name, threadgroups, start, Now()});
    }
  }
  return std::string();
}

double Now() noexcept {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string Format(const char* format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  return text;
}

}  // namespace device
}  // namespace switchyard
