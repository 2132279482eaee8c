// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "timeline.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "common/program.h"

namespace metal_chain {
namespace {

using nlohmann::ordered_json;

constexpr size_t kBarWidth = 20;

std::string GridText(const MTL::Size& grid) {
  std::string text = std::to_string(grid.width);
  if (grid.height != 1 || grid.depth != 1) {
    text += " x " + std::to_string(grid.height);
  }
  if (grid.depth != 1) text += " x " + std::to_string(grid.depth);
  return text;
}

// From where the dispatch started to where it ended, at least one column.
std::string Bar(const ChainRun& run, const MTL::DispatchTime& dispatch) {
  const double columns =
      static_cast<double>(kBarWidth) / std::max(run.end - run.start, 1e-9);
  const auto column = [&](double time) {
    const double at = std::floor((time - run.start) * columns);
    return static_cast<size_t>(
        std::clamp(at, 0.0, static_cast<double>(kBarWidth - 1)));
  };
  const size_t first = column(dispatch.start), last = column(dispatch.end);
  return std::string(first, ' ') + std::string(last - first + 1, '#');
}

std::string Line(const std::string& kernel, const std::string& grid,
                 const std::string& start, const std::string& duration,
                 const std::string& bar) {
  char text[160];
  std::snprintf(text, sizeof(text), "%-38s %-14s %10s %11s %s", kernel.c_str(),
                grid.c_str(), start.c_str(), duration.c_str(), bar.c_str());
  std::string line = text;
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Microseconds(double seconds) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.1f", seconds * 1e6);
  return text;
}

// Whole nanoseconds, so that an event's end is exactly where the next may
// start.
double Nanoseconds(double seconds) { return std::round(seconds * 1e9); }

ordered_json NameEvent(const char* what, int tid, const std::string& name) {
  return {{"name", what},
          {"ph", "M"},
          {"pid", 1},
          {"tid", tid},
          {"args", {{"name", name}}}};
}

[[noreturn]] void ThrowUnwritable(const std::string& path, int error) {
  throw example::InputError(
      "--trace " + path + ": " +
      (error != 0 ? std::strerror(error) : "not written"));
}

}  // namespace

std::string TimelineText(const ChainRun& run) {
  std::string text = Line("kernel", "grid", "start us", "duration us", "");
  for (const MTL::DispatchTime& dispatch : run.dispatches) {
    text +=
        Line(dispatch.kernel, GridText(dispatch.threadgroups),
             Microseconds(dispatch.start - run.start),
             Microseconds(dispatch.end - dispatch.start), Bar(run, dispatch));
  }
  return text + Line("total", "", "", Microseconds(run.end - run.start), "");
}

std::string TraceJson(const std::vector<NamedRun>& runs) {
  ordered_json events = ordered_json::array();
  events.push_back(NameEvent("process_name", 0, "metal_chain"));
  for (size_t i = 0; i < runs.size(); ++i) {
    const int tid = static_cast<int>(i) + 1;
    events.push_back(NameEvent("thread_name", tid, runs[i].name));
    for (const MTL::DispatchTime& dispatch : runs[i].run.dispatches) {
      const double start = Nanoseconds(dispatch.start - runs[0].run.start);
      const double end = Nanoseconds(dispatch.end - runs[0].run.start);
      events.push_back({{"name", dispatch.kernel},
                        {"cat", "dispatch"},
                        {"ph", "X"},
                        {"ts", start / 1e3},
                        {"dur", (end - start) / 1e3},
                        {"pid", 1},
                        {"tid", tid},
                        {"args", {{"grid", GridText(dispatch.threadgroups)}}}});
    }
  }
  return ordered_json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump(
      1);
}

void RequireWritable(const std::string& path) {
  std::error_code ignored;
  const bool existed =
      std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
  errno = 0;
  if (!std::ofstream(path, std::ios::app)) ThrowUnwritable(path, errno);
  if (!existed) std::filesystem::remove(path, ignored);
}

void WriteTrace(const std::string& path, const std::string& json) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << json << "\n";
  file.close();
  if (!file) ThrowUnwritable(path, errno);
}

}  // namespace metal_chain
