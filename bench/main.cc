// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// switchyard_bench: the matrix of kernels, ISAs, shapes and rivals, and what is
// asked of it. Exit codes: 0; 1 if a result is wrong; 2 for wrong input.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "bench/contest.h"
#include "bench/options.h"
#include "bench/rivals.h"
#include "programs/program.h"

namespace switchyard::bench {
namespace {

using Object = nlohmann::ordered_json;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, 10, "model name") == 0) {
      return line.substr(line.find(": ") + 2);
    }
  }
  return "unknown";
}

// "L1 48K, L2 2048K, ..." of the first core's data caches.
std::string Caches() {
  std::string caches;
  for (int i = 0;; ++i) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string type = FirstLine(folder + "type");
    if (type.empty()) return caches;
    if (type == "Instruction") continue;
    caches += (caches.empty() ? "L" : ", L") + FirstLine(folder + "level") +
              " " + FirstLine(folder + "size");
  }
}

constexpr Kind kKinds[] = {Kind::kOurs, Kind::kPlain, Kind::kOneDnn,
                           Kind::kProbe};

const char* KindName(Kind kind) {
  constexpr const char* kNames[] = {"switchyard", "plain", "oneDNN", "probe"};
  return kNames[static_cast<size_t>(kind)];
}

// A comparison with a kind; of ours, with the ISA that every machine has.
std::string Versus(Kind kind) {
  return kind == Kind::kOurs ? "fallback" : KindName(kind);
}

// "-" for a figure there is none of.
std::string Number(double value) {
  if (!(value == value)) return "-";
  char text[32];
  const char* const format = value < 10.0     ? "%.2f"
                             : value < 1000.0 ? "%.1f"
                                              : "%.0f";
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// Time per unit over the fastest of a kind; over the last ISA for kOurs, where
// contenders are ISAs.
double RatioTo(const Result& result, const Figure& figure, Kind kind) {
  const std::string fallback =
      RunnableIsas().data[RunnableIsas().size - 1].name;
  const Figure* other = nullptr;
  for (const Figure& f : result.figures) {
    if (f.kind != kind || (kind == Kind::kOurs && f.name != fallback)) continue;
    if (other == nullptr || f.NsPerUnit() < other->NsPerUnit()) other = &f;
  }
  return other == nullptr ? std::nan("")
                          : figure.NsPerUnit() / other->NsPerUnit();
}

// One row per shape, one column per contender; then what the first of ours, the
// best ISA, comes to against the others.
void AddTable(std::string& text, const std::vector<const Result*>& results) {
  std::vector<std::string> names;
  std::set<Kind> kinds;
  bool has_bytes = false;
  for (const Result* result : results) {
    for (const Figure& figure : result->figures) {
      if (std::find(names.begin(), names.end(), figure.name) == names.end()) {
        names.push_back(figure.name);
      }
      kinds.insert(figure.kind);
      has_bytes |= figure.bytes > 0.0;
    }
  }
  if (kinds.count(Kind::kPlain) == 0) kinds.erase(Kind::kOurs);
  std::vector<std::string> columns = {"shape"};
  columns.insert(columns.end(), names.begin(), names.end());
  if (has_bytes) columns.push_back("GB/s");
  for (const Kind kind : kinds) columns.push_back("/ " + Versus(kind));
  text += "|";
  for (const std::string& column : columns) text += " " + column + " |";
  text += "\n|";
  for (size_t i = 0; i < columns.size(); ++i) text += "---|";
  text += "\n";
  for (const Result* result : results) {
    text += "| " + result->shape + (result->model.empty() ? "" : ", ") +
            result->model + " |";
    for (const std::string& name : names) {
      double ns = std::nan("");
      for (const Figure& figure : result->figures) {
        if (figure.name == name) ns = figure.NsPerUnit();
      }
      text += " " + Number(ns) + " |";
    }
    const Figure& best = result->figures.front();
    if (has_bytes)
      text += " " + Number(1e-9 * best.bytes / best.seconds) + " |";
    for (const Kind kind : kinds) {
      text += " " + Number(RatioTo(*result, best, kind)) + " |";
    }
    text += "\n";
  }
}

// Where and with what the figures were taken.
Object DescribeMachine() {
  const std::time_t now = std::time(nullptr);
  char date[32];  // UTC
  std::strftime(date, sizeof(date), "%Y-%m-%d %H:%M", std::gmtime(&now));
  std::string isas;
  for (const Isa& isa : RunnableIsas()) {
    isas += (isas.empty() ? "" : ", ") + std::string(isa.name);
  }
  // Averages over 1, 5 and 15 minutes.
  std::string load = FirstLine("/proc/loadavg");
  load.resize(load.find(' ', load.find(' ', load.find(' ') + 1) + 1));
  return {{"date", date},
          {"cpu", CpuModel()},
          {"cores", std::thread::hardware_concurrency()},
          {"caches", Caches()},
          {"isas", isas},
          {"load", load},
          {"compiler", BENCH_COMPILER},
          {"highway", BENCH_HIGHWAY},
          {"tbb", BENCH_TBB[0] == '\0' ? "none" : BENCH_TBB},
          {"onednn", onednn::Version()}};
}

std::string Json(const Object& machine, const std::vector<Result>& results,
                 const std::vector<Ask>& asks) {
  Object json;
  json["machine"] = machine;
  json["results"] = Object::array();
  for (const Result& result : results) {
    Object figures = Object::array();
    for (const Figure& figure : result.figures) {
      Object line = {{"contender", figure.name},
                     {"kind", KindName(figure.kind)},
                     {"seconds_per_call", figure.seconds},
                     {"units_per_call", figure.units},
                     {"ns_per_unit", figure.NsPerUnit()}};
      if (figure.bytes > 0.0) {
        line["gb_per_second"] = 1e-9 * figure.bytes / figure.seconds;
      }
      for (const Kind kind : kKinds) {
        const double ratio = RatioTo(result, figure, kind);
        if (figure.kind != Kind::kOurs || !(ratio == ratio)) continue;
        line["ratio_to_" + Versus(kind)] = ratio;
      }
      figures.push_back(line);
    }
    json["results"].push_back({{"kernel", result.kernel},
                               {"shape", result.shape},
                               {"model", result.model},
                               {"unit", result.unit},
                               {"figures", figures}});
  }
  json["asks"] = Object::array();
  for (const Ask& ask : asks) {
    Object line = {{"what", ask.what},
                   {ask.at_most ? "at_most" : "at_least", ask.bound}};
    if (ask.Measured()) {
      line["figure"] = ask.figure;
      line["met"] = ask.Met();
    }
    json["asks"].push_back(line);
  }
  return json.dump(1) + "\n";
}

std::string Markdown(const Object& machine, const std::vector<Result>& results,
                     const std::vector<Ask>& asks) {
  std::string text = "# Benchmarks\n\n";
  const auto of = [&](const char* key) {
    return machine[key].get<std::string>();
  };
  text += of("cpu") + ", " + machine["cores"].dump() + " cores (" +
          of("caches") + "), " + of("isas") + "; " + of("compiler") +
          ", Highway " + of("highway") + ", TBB " + of("tbb") + ", oneDNN " +
          of("onednn") + "; " + of("date") + " UTC, load average " +
          of("load") + ".\n\n";
  text +=
      "Medians; all contenders of a shape in one process, in a new random\n"
      "order each round, verified beforehand. One thread unless said. GB/s "
      "and\n"
      "ratios are those of the first column, the best ISA; ratios are its "
      "time\n"
      "over the other's: below 1 is faster. `fallback` is the last ISA; where "
      "a\n"
      "rival or a probe comes in several forms, the fastest counts. The JSON\n"
      "file has the ratios of every ISA.\n";
  if (!asks.empty()) {
    text +=
        "\n## What is asked\n\n"
        "| ask | bound | reached | |\n|---|---|---|---|\n";
  }
  for (const Ask& ask : asks) {
    text += "| " + ask.what + " | " + (ask.at_most ? "<= " : ">= ") +
            Number(ask.bound) + " | " + Number(ask.figure) + " | " +
            (!ask.Measured() ? "not run"
             : ask.Met()     ? "met"
                             : "**not met**") +
            " |\n";
  }
  std::vector<std::pair<std::string, std::vector<const Result*>>> tables;
  for (const Result& result : results) {
    const std::string title = result.kernel + ", ns per " + result.unit;
    auto table = std::find_if(tables.begin(), tables.end(),
                              [&](const auto& t) { return t.first == title; });
    if (table == tables.end()) table = tables.insert(table, {title, {}});
    table->second.push_back(&result);
  }
  for (const auto& [title, rows] : tables) {
    text += "\n## " + title + "\n\n";
    AddTable(text, rows);
  }
  return text;
}

// Those that this run has figures for. Without a filter those without are worth
// a word: the machine lacks what they ask about.
std::vector<Ask> AsksOf(const Options& options) {
  std::vector<Ask> asks = Asks();
  if (!options.filter.empty()) {
    asks.erase(std::remove_if(asks.begin(), asks.end(),
                              [](const Ask& ask) { return !ask.Measured(); }),
               asks.end());
  }
  return asks;
}

void PrintAsks(const std::vector<Ask>& asks) {
  if (asks.empty()) return;
  std::printf("\n");
  size_t measured = 0, met = 0;
  for (const Ask& ask : asks) {
    if (!ask.Measured()) continue;
    ++measured;
    met += ask.Met() ? 1 : 0;
    std::printf("%-8s %8.4g %s %-5g %s\n", ask.Met() ? "met" : "NOT MET",
                ask.figure, ask.at_most ? "<=" : ">=", ask.bound,
                ask.what.c_str());
  }
  std::printf("%zu of %zu asks met", met, measured);
  if (measured < asks.size()) {
    std::printf(", %zu not run", asks.size() - measured);
  }
  std::printf("\n");
}

int Run(int argc, char** argv) {
  const std::optional<Options> options = ParseOptions(argc, argv);
  if (!options.has_value()) return 0;
  DefaultEffort() = options->effort;
  const Object machine = DescribeMachine();
  for (const Registration& each : Registrations()) each.add();
  RunBenchmarks(*options);
  if (options->list) return 0;

  const std::vector<Ask> asks = AsksOf(*options);
  PrintAsks(asks);
  for (const std::string& failure : Failures()) {
    std::fprintf(stderr, "FAILED: %s\n", failure.c_str());
  }
  if (!options->json.empty()) {
    program::WriteFile("--json", options->json, Json(machine, Results(), asks));
  }
  if (!options->markdown.empty()) {
    program::WriteFile("--markdown", options->markdown,
                       Markdown(machine, Results(), asks));
  }
  return Failures().empty() ? 0 : 1;
}

}  // namespace
}  // namespace switchyard::bench

int main(int argc, char** argv) {
  return program::RunMain("switchyard_bench", 1,
                          [=] { return switchyard::bench::Run(argc, argv); });
}
