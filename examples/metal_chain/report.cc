// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "programs/machine.h"
#include "switchyard/isa.h"

namespace metal_chain {
namespace {

using nlohmann::ordered_json;

constexpr size_t kBarWidth = 15;

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
                 const std::string& duration, const std::string& bar) {
  char text[160];
  std::snprintf(text, sizeof(text), "%-38s %-14s %10s %s", kernel.c_str(),
                grid.c_str(), duration.c_str(), bar.c_str());
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

ordered_json ChainJson(const Chain& chain) {
  ordered_json dispatches = ordered_json::array();
  for (const MTL::DispatchTime& dispatch : chain.run.dispatches) {
    const MTL::Size& grid = dispatch.threadgroups;
    dispatches.push_back(
        {{"kernel", dispatch.kernel},
         {"group", dispatch.group},
         {"threadgroups", {grid.width, grid.height, grid.depth}},
         {"start_seconds", dispatch.start - chain.run.start},
         {"seconds", dispatch.end - dispatch.start}});
  }
  return {{"chain", chain.name},
          {"tokens", chain.tokens},
          {"seconds", chain.run.end - chain.run.start},
          {"dispatches", dispatches},
          {"buffers", chain.comparison.buffers},
          {"bytes", chain.comparison.bytes},
          {"differences", chain.comparison.differences}};
}

}  // namespace

std::string TimelineText(const ChainRun& run) {
  std::string text = Line("kernel", "grid", "us", "");
  std::string group;
  for (const MTL::DispatchTime& dispatch : run.dispatches) {
    if (dispatch.group != group) text += Line(dispatch.group + ":", "", "", "");
    group = dispatch.group;
    text +=
        Line(dispatch.kernel, GridText(dispatch.threadgroups),
             Microseconds(dispatch.end - dispatch.start), Bar(run, dispatch));
  }
  return text + Line("total", "", Microseconds(run.end - run.start), "");
}

std::string TraceJson(const std::vector<Chain>& chains) {
  ordered_json events = ordered_json::array();
  events.push_back(NameEvent("process_name", 0, "metal_chain"));
  for (size_t i = 0; i < chains.size(); ++i) {
    const int tid = static_cast<int>(i) + 1;
    events.push_back(NameEvent("thread_name", tid, chains[i].name));
    for (const MTL::DispatchTime& dispatch : chains[i].run.dispatches) {
      const double start = Nanoseconds(dispatch.start - chains[0].run.start);
      const double end = Nanoseconds(dispatch.end - chains[0].run.start);
      events.push_back({{"name", dispatch.kernel},
                        {"cat", "dispatch"},
                        {"ph", "X"},
                        {"ts", start / 1e3},
                        {"dur", (end - start) / 1e3},
                        {"pid", 1},
                        {"tid", tid},
                        {"args",
                         {{"grid", GridText(dispatch.threadgroups)},
                          {"group", dispatch.group}}}});
    }
  }
  return ordered_json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump(
             1) +
         "\n";
}

std::string ReportJson(const Layer& layer, size_t threads,
                       const std::vector<Chain>& chains) {
  const Shape& shape = layer.shape;
  ordered_json json;
  json["context"] = program::Context("metal_chain");
  json["isa"] = switchyard::LastIsa()->name;
  json["threads"] = threads;
  json["peak_memory_bytes"] = program::PeakMemory();
  json["layer"] = {{"experts", shape.experts},
                   {"top_k", shape.top_k},
                   {"hidden", shape.hidden},
                   {"intermediate", shape.intermediate},
                   {"weight_bytes", layer.num_floats * sizeof(float)}};
  json["chains"] = ordered_json::array();
  for (const Chain& chain : chains) json["chains"].push_back(ChainJson(chain));
  return json.dump(1) + "\n";
}

}  // namespace metal_chain
