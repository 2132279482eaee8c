// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/compare.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "programs/arguments.h"
#include "programs/program.h"
#include "programs/statistics.h"
#include "tools/cli/verdict.h"

namespace swy {
namespace {

using program::InputError;
using program::Printable;

constexpr int kTooSlow = 1;
constexpr size_t kNameColumns = 42;

std::vector<Results> ReadAll(const std::vector<std::string>& paths,
                             Clock clock) {
  std::vector<Results> all;
  for (const std::string& path : paths) all.push_back(ReadResults(path, clock));
  return all;
}

// "old  a.json and 2 more, 2026-01-31T12:00:00+00:00, AMD EPYC 9354"
std::string SideText(const char* which, const std::vector<Results>& files) {
  std::string text = Shortened(files[0].path, 40);
  if (files.size() > 1) {
    text += " and " + std::to_string(files.size() - 1) + " more";
  }
  for (const std::string& part : {files[0].date, files[0].cpu}) {
    if (!part.empty()) text += ", " + part;
  }
  return Shortened(which + ("  " + Printable(text)), kColumns) + "\n";
}

// A name that is too long has a line of its own.
std::string PairText(const Pair& pair) {
  std::string name = Shortened(Printable(pair.name), kColumns);
  if (Width(name) > kNameColumns) name += "\n" + std::string(kNameColumns, ' ');
  return PadRight(name, kNameColumns) + PadLeft(TimeText(pair.old_time), 10) +
         PadLeft(TimeText(pair.new_time), 10) +
         PadLeft(Number("%.3f", pair.Ratio()), 8) + "  " +
         VerdictText(pair.verdict) + "\n";
}

// "only in old: NAME", each on a line; the rest of many as a number.
std::string ListText(const char* what, const std::vector<std::string>& names) {
  constexpr size_t kShown = 10;
  std::string text;
  const size_t shown = names.size() > kShown + 1 ? kShown : names.size();
  for (size_t i = 0; i < shown; ++i) {
    text += Shortened(what + (": " + Printable(names[i])), kColumns) + "\n";
  }
  if (shown < names.size()) {
    text += std::string(what) + ": " + std::to_string(names.size() - shown) +
            " more\n";
  }
  return text;
}

size_t Count(const Matched& matched, Verdict verdict) {
  return static_cast<size_t>(
      std::count_if(matched.pairs.begin(), matched.pairs.end(),
                    [&](const Pair& p) { return p.verdict == verdict; }));
}

double MedianRatio(const Matched& matched) {
  std::vector<double> ratios;
  for (const Pair& pair : matched.pairs) ratios.push_back(pair.Ratio());
  return program::Median(ratios);
}

std::string SummaryText(const Matched& matched) {
  std::string text =
      (matched.pairs.empty()
           ? std::string()
           : Number("median ratio %.3f: ", MedianRatio(matched))) +
      std::to_string(Count(matched, Verdict::kFaster)) + " faster, " +
      std::to_string(Count(matched, Verdict::kSlower)) + " slower, " +
      std::to_string(Count(matched, Verdict::kSame)) + " the same";
  if (const size_t count = Count(matched, Verdict::kUnknown)) {
    text += "\n" + std::to_string(count) +
            " unknown (?): fewer than 3 repetitions or no time";
  }
  text += "\n";
  std::string rest;
  const auto add = [&rest](const std::vector<std::string>& names,
                           const char* what) {
    if (names.empty()) return;
    rest += (rest.empty() ? "" : ", ") + std::to_string(names.size()) + what;
  };
  add(matched.only_old, " only in old");
  add(matched.only_new, " only in new");
  add(matched.failed_old, " failed in old");
  add(matched.failed_new, " failed in new");
  return rest.empty() ? text : text + rest + "\n";
}

std::string Text(const CompareOptions& options, const Matched& matched,
                 const std::vector<Results>& old_files,
                 const std::vector<Results>& new_files) {
  std::string text = SideText("old", old_files) + SideText("new", new_files);
  const std::string &old_cpu = old_files[0].cpu, &new_cpu = new_files[0].cpu;
  if (!old_cpu.empty() && !new_cpu.empty() && old_cpu != new_cpu) {
    text += "These are different machines.\n";
  }
  text += "\n" +
          PadRight(matched.per_unit ? "time of a unit, median" : "time, median",
                   kNameColumns) +
          "       old       new   ratio\n";
  for (const Pair& pair : matched.pairs) {
    if (options.changed && pair.verdict == Verdict::kSame) continue;
    text += PairText(pair);
  }
  text += ListText("only in old", matched.only_old) +
          ListText("only in new", matched.only_new) +
          ListText("failed in old", matched.failed_old) +
          ListText("failed in new", matched.failed_new) + "\n";
  text += SummaryText(matched);
  if (old_files.size() == 1 && new_files.size() == 1) {
    text +=
        "One process a side: what differs from process to process is not seen. "
        "With three\nruns each: swy compare --old a?.json --new b?.json\n";
  }
  return text;
}

std::string TableOf(const CompareOptions& options, const Matched& matched) {
  std::vector<Row> rows = {
      {"name", "verdict", "old_ns", "new_ns", "ratio", "p", "old_n", "new_n"}};
  for (const Pair& pair : matched.pairs) {
    if (options.changed && pair.verdict == Verdict::kSame) continue;
    rows.push_back({Printable(pair.name), VerdictText(pair.verdict),
                    Number("%.6g", pair.old_time),
                    Number("%.6g", pair.new_time), Number("%.4f", pair.Ratio()),
                    pair.p == pair.p ? Number("%.2g", pair.p) : "",
                    std::to_string(pair.old_count),
                    std::to_string(pair.new_count)});
  }
  const auto add = [&](const std::vector<std::string>& names,
                       const char* what) {
    for (const std::string& name : names) {
      rows.push_back({Printable(name), what, "", "", "", "", "", ""});
    }
  };
  add(matched.only_old, "only in old");
  add(matched.only_new, "only in new");
  add(matched.failed_old, "failed in old");
  add(matched.failed_new, "failed in new");
  return TableText(options.format, rows, 2);
}

// What --fail-above finds fault with: empty if nothing.
std::string Fault(const Matched& matched, double percent) {
  std::vector<const Pair*> slower;
  for (const Pair& pair : matched.pairs) {
    if (pair.verdict == Verdict::kSlower &&
        pair.Ratio() > 1.0 + percent / 100.0) {
      slower.push_back(&pair);
    }
  }
  if (slower.empty()) {
    return matched.failed_new.empty() ? "" : "failed: " + matched.failed_new[0];
  }
  const Pair& worst = **std::max_element(
      slower.begin(), slower.end(),
      [](const Pair* a, const Pair* b) { return a->Ratio() < b->Ratio(); });
  return std::to_string(slower.size()) + " more than " + Number("%g", percent) +
         " % slower; the most: " + worst.name +
         Number(", ratio %.3f", worst.Ratio());
}

// Where code and data happen to lie in a process is worth up to 5 %; of three
// processes and more the medians are compared.
double NoiseOf(const CompareOptions& options,
               const std::vector<std::string>& old_paths,
               const std::vector<std::string>& new_paths) {
  const size_t fewest = std::min(old_paths.size(), new_paths.size());
  return options.noise.value_or(fewest < 3 ? 5.0 : 2.0) / 100.0;
}

}  // namespace

CLI::App* AddCompare(CLI::App& app, CompareOptions& options) {
  CLI::App* const compare = app.add_subcommand(
      "compare", "Tell what is slower or faster in another run");
  compare
      ->add_option("files", options.files,
                   "JSON of swy bench or any Google Benchmark")
      ->type_name("OLD NEW");
  const char* const kSeveral = "Several, one per process";
  compare->add_option("--old", options.old_files, kSeveral)->type_name("FILE");
  compare->add_option("--new", options.new_files, kSeveral)->type_name("FILE");
  compare
      ->add_option("--noise", options.noise,
                   "Least difference, in percent (default: 5, or 2)")
      ->check(program::Within(0, 1000))
      ->type_name("P");
  compare
      ->add_option("--fail-above", options.fail_above,
                   "Exit with 1 if any is P percent slower, or failed")
      ->check(program::Within(0, 1'000'000))
      ->type_name("P");
  compare->add_flag("--changed", options.changed, "Leave out what is the same");
  compare->add_flag_callback(
      "--cpu-time", [&options] { options.clock = Clock::kCpu; },
      "Compare CPU time instead of real time");
  AddFormat(*compare, options.format);
  compare->footer(
      "A difference is noise unless it is at least --noise, and the "
      "repetitions differ:\n"
      "Mann-Whitney U test, p < 0.01; of 3 or 4 a gap as wide as the wider "
      "range; of\n"
      "fewer it says ?. From 3 files a side on, one per process, their medians "
      "have to\n"
      "differ so, too, and 2 percent count, else 5. Ratios are new / old: "
      "below 1 is\n"
      "faster.\n"
      "Example, of three runs each: swy compare --old a?.json --new b?.json");
  return compare;
}

int Compare(const CompareOptions& options) {
  std::vector<std::string> old_paths = options.old_files;
  std::vector<std::string> new_paths = options.new_files;
  if (options.files.size() == 2 && old_paths.empty() && new_paths.empty()) {
    old_paths = {options.files[0]};
    new_paths = {options.files[1]};
  } else if (!options.files.empty() || old_paths.empty() || new_paths.empty()) {
    throw InputError(
        "compare: takes OLD NEW, or --old FILE ... --new FILE ...");
  }
  const std::vector<Results> old_files = ReadAll(old_paths, options.clock);
  const std::vector<Results> new_files = ReadAll(new_paths, options.clock);
  const Matched matched =
      Match(old_files, new_files, NoiseOf(options, old_paths, new_paths));
  if (matched.pairs.empty() && matched.failed_new.empty()) {
    throw InputError(old_paths[0] + ", " + new_paths[0] +
                     ": no benchmark is in both");
  }
  std::fputs((options.format == Format::kText
                  ? Text(options, matched, old_files, new_files)
                  : TableOf(options, matched))
                 .c_str(),
             stdout);
  if (!options.fail_above.has_value()) return 0;
  const std::string fault = Fault(matched, *options.fail_above);
  if (fault.empty()) return 0;
  program::FlushOutput();
  std::fputs(program::ErrorLine("swy", fault).c_str(), stderr);
  return kTooSlow;
}

}  // namespace swy
