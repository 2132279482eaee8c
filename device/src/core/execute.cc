// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the dispatches of a command buffer in order.

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

#include "device/src/core/checked_mode.h"
#include "device/src/core/commands.h"
#include "device/src/core/grid_runner.h"
#include "device/src/core/pipeline.h"
#include "device/src/core/running_dispatch.h"

namespace switchyard::device {
namespace {

size_t Ceil(size_t threads, size_t per_threadgroup) {
  return threads / per_threadgroup + (threads % per_threadgroup != 0 ? 1 : 0);
}
size_t Times(size_t threadgroups, size_t threads) {
  size_t product = 0;
  return __builtin_mul_overflow(threadgroups, threads, &product) ? SIZE_MAX
                                                                 : product;
}

// Computes the size of the grid in threadgroups and in threads. The encoder
// has recorded only one of the two. A number of threads that overflows
// becomes SIZE_MAX.
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

std::string ReadIndirect(const Dispatch& dispatch, CheckedMode& checked) {
  using Fresh = CheckedMode::Fresh;
  if (dispatch.indirect == nullptr) return std::string();
  const std::string error = checked.Touch(
      "the indirect arguments", {dispatch.indirect, 1, 12, 12}, false,
      dispatch.indirect_fresh ? Fresh::kAnyWord : Fresh::kIgnore);
  return error.empty() ? error : dispatch.pipeline->name + ": " + error;
}

std::string ExecuteOne(RunningDispatch running) {
  const Size& threads = running.threads;
  const Pipeline& pipeline = *running.dispatch.pipeline;
  if (threads.width == SIZE_MAX || threads.height == SIZE_MAX ||
      threads.depth == SIZE_MAX) {
    running.GridOverflows();
  } else if (pipeline.blit != Blit::kNone) {
    RunBlit(pipeline.blit, running);
  } else if (pipeline.built_in != nullptr) {
    RunBuiltIn(*pipeline.built_in, running);
  } else {
    GridRunner::Run(running);
  }
  return std::move(running.error);
}

std::string ExecuteAll(const Commands& commands, const Execution& execution) {
  CheckedMode* const checked = execution.checked;
  std::vector<DispatchTime>* const times = execution.times;
  auto event = commands.events.begin();
  const auto run_events = [&](size_t before_dispatch) {
    std::string error;
    for (; event != commands.events.end() && error.empty() &&
           event->before_dispatch <= before_dispatch;
         ++event) {
      error = event->Run(execution.event_timeout_ms);
    }
    return error;
  };
  const EncodedPlace nowhere;
  for (const Dispatch& dispatch : commands.dispatches) {
    const size_t index =
        static_cast<size_t>(&dispatch - commands.dispatches.data());
    std::string error = run_events(index);
    if (!error.empty()) return error;
    const EncodedPlace& place =
        dispatch.place == 0 ? nowhere : commands.places[dispatch.place];
    if (checked != nullptr) {
      checked->BeginDispatch(index);
      error = ReadIndirect(dispatch, *checked);
      if (!error.empty()) return error + place.Text();
    }
    Size threads, threadgroups;
    GetGrid(dispatch, &threadgroups, &threads);
    const double start = times != nullptr ? Now() : 0.0;
    if (threads.width != 0 && threads.height != 0 && threads.depth != 0) {
      const Binding* const bindings =
          commands.bindings.data() + dispatch.first_binding;
      error = ExecuteOne({dispatch, threads, threadgroups, bindings,
                          execution.executor, execution.scratch, checked,
                          execution.warnings, place});
      if (!error.empty()) return error + place.Text();
      if (checked != nullptr && checked->stopped()) return error;
    }
    if (times != nullptr) {
      times->push_back({dispatch.pipeline->name, threadgroups, start, Now(),
                        place.encoder, place.group, place.signpost});
    }
  }
  return run_events(SIZE_MAX);
}

}  // namespace

std::string EncodedPlace::Text() const {
  std::string text;
  const auto add = [&text](const char* what, const std::string& name) {
    if (name.empty()) return;
    text += text.empty() ? " [" : ", ";
    text += what + (" \"" + name + "\"");
  };
  add("encoder", encoder);
  add("group", group);
  add("after", signpost);
  return text.empty() ? text : text + "]";
}

std::string EventCommand::Run(uint64_t timeout_ms) const {
  Signal();
  if (!wait || event->Wait(value, timeout_ms)) return std::string();
  const std::string label = event->label();
  return "encodeWait: the event" +
         (label.empty() ? label : " \"" + label + "\"") + " is at " +
         std::to_string(event->Value()) + " after " +
         std::to_string(timeout_ms) + " ms, and " + std::to_string(value) +
         " is waited for";
}

std::string Execute(const Commands& commands, const Execution& execution) {
  if (execution.checked == nullptr) return ExecuteAll(commands, execution);
  CheckedMode& checked = *execution.checked;
  if (!checked.problem().empty()) return checked.problem();
  // The destructor calls End() even if an exception leaves this function.
  struct Checking {
    CheckedMode& mode;
    ~Checking() { mode.End(); }
  };
  const Checking checking = {checked};
  checked.Begin(commands);
  const std::string error = ExecuteAll(commands, execution);
  checked.Finish();
  return checked.findings().empty() ? error : checked.findings().front().text;
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

}  // namespace switchyard::device
