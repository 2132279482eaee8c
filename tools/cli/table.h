// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What bench and compare print, for people and for programs.

#ifndef SWITCHYARD_TOOLS_CLI_TABLE_H_
#define SWITCHYARD_TOOLS_CLI_TABLE_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace swy {

constexpr size_t kColumns = 80;  // of a terminal

enum class Format { kText, kMarkdown, kCsv };
// --format text|md|csv
void AddFormat(CLI::App& command, Format& format);

using Row = std::vector<std::string>;
// rows[0] is the header; columns from `numbers` on hold numbers. Markdown or
// CSV (RFC 4180, with \n).
std::string TableText(Format format, const std::vector<Row>& rows,
                      size_t numbers);

// Columns that UTF-8 takes, a character each.
size_t Width(const std::string& text);
// Padded with blanks to `width`.
std::string PadRight(const std::string& text, size_t width);
std::string PadLeft(const std::string& text, size_t width);
// At most `width` wide: "..." in place of the middle.
std::string Shortened(const std::string& text, size_t width);

// "%.2f" and the like.
std::string Number(const char* format, double value);
// "39.8 ns", "1.25 ms": three or four digits.
std::string TimeText(double nanoseconds);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_TABLE_H_
