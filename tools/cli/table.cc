// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/table.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace swy {
namespace {

bool ContinuesCharacter(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// The first `count` characters, or the last ones.
std::string First(const std::string& text, size_t count) {
  size_t end = 0;
  for (size_t seen = 0; end < text.size(); ++end) {
    if (!ContinuesCharacter(text[end]) && seen++ == count) break;
  }
  return text.substr(0, end);
}
std::string Last(const std::string& text, size_t count) {
  size_t begin = text.size();
  for (size_t seen = 0; begin > 0 && seen < count;) {
    if (!ContinuesCharacter(text[--begin])) ++seen;
  }
  return text.substr(begin);
}

std::string Quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string Escaped(const std::string& cell) {
  std::string escaped;
  for (const char c : cell) {
    if (c == '|' || c == '\\' || c == '<') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

void AddFormat(CLI::App& command, Format& format) {
  static const std::map<std::string, Format> kFormats = {
      {"text", Format::kText},
      {"md", Format::kMarkdown},
      {"csv", Format::kCsv}};
  command
      .add_option_function<std::string>(
          "--format",
          [&format](const std::string& name) { format = kFormats.at(name); },
          "text, md or csv (default: text)")
      ->check(CLI::IsMember({"text", "md", "csv"}).description(""))
      ->type_name("NAME");
}

std::string TableText(Format format, const std::vector<Row>& rows,
                      size_t numbers) {
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string line;
    for (size_t column = 0; column < rows[i].size(); ++column) {
      const std::string& cell = rows[i][column];
      if (format == Format::kCsv) {
        line += (column == 0 ? "" : ",") + Quoted(cell);
      } else {
        line += (column == 0 ? "| " : " | ") + Escaped(cell);
      }
    }
    text += line + (format == Format::kCsv ? "\n" : " |\n");
    if (i != 0 || format == Format::kCsv) continue;
    for (size_t column = 0; column < rows[0].size(); ++column) {
      text += column < numbers ? "|---" : "|---:";
    }
    text += "|\n";
  }
  return text;
}

size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return !ContinuesCharacter(c); }));
}

std::string PadRight(const std::string& text, size_t width) {
  const size_t has = Width(text);
  return has >= width ? text : text + std::string(width - has, ' ');
}

std::string PadLeft(const std::string& text, size_t width) {
  const size_t has = Width(text);
  return has >= width ? text : std::string(width - has, ' ') + text;
}

std::string Shortened(const std::string& text, size_t width) {
  if (Width(text) <= width) return text;
  // The end tells names apart more often than the beginning.
  const size_t kept = width - 3;
  return First(text, kept / 2) + "..." + Last(text, kept - kept / 2);
}

std::string Number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string TimeText(double nanoseconds) {
  static constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  size_t unit = 0;
  // Below 1e4: what is short stays in ns.
  while (unit + 1 < 4 && nanoseconds >= 9999.5) {
    nanoseconds /= 1e3;
    ++unit;
  }
  const char* const format = nanoseconds < 9.995   ? "%.2f "
                             : nanoseconds < 99.95 ? "%.1f "
                                                   : "%.0f ";
  return Number(format, nanoseconds) + kUnits[unit];
}

}  // namespace swy
