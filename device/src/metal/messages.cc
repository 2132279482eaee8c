// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/messages.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

namespace switchyard::device::metal {
namespace {

// The beginning of a message: "file:line:column: error: text".
struct Head {
  std::string file, text;  // " error: text"
  size_t line = 0, column = 0;
};

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

bool Parse(const std::string& line, Head* head) {
  for (const char* const kind :
       {": error: ", ": fatal error: ", ": note: ", ": warning: "}) {
    const size_t end = line.find(kind);
    const size_t column = line.rfind(':', end - 1);
    if (end == std::string::npos || column == std::string::npos) continue;
    const size_t number = column == 0 ? column : line.rfind(':', column - 1);
    if (number == std::string::npos) continue;
    const std::string at = line.substr(number + 1, column - number - 1);
    const std::string in = line.substr(column + 1, end - column - 1);
    if (!IsNumber(at) || !IsNumber(in)) continue;
    *head = {line.substr(0, number), line.substr(end + 1), std::stoul(at),
             std::stoul(in)};
    return true;
  }
  return false;
}

void Replace(std::string& text, const std::string& from,
             const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

// Replaces each name<A, ...> by A.
void ReplaceByFirst(std::string& text, const std::string& name) {
  for (size_t at = 0; (at = text.find(name + "<", at)) != std::string::npos;) {
    const size_t first = at + name.size() + 1;
    size_t end = first, comma = std::string::npos;
    for (int depth = 1; end < text.size(); ++end) {
      depth += text[end] == '<' ? 1 : text[end] == '>' ? -1 : 0;
      if (depth == 0) break;
      if (depth == 1 && text[end] == ',') comma = std::min(comma, end);
    }
    if (end == text.size()) return;
    const std::string of = text.substr(first, std::min(comma, end) - first);
    text.replace(at, end + 1 - at, of);
  }
}

std::string OfMetal(std::string text) {
  Replace(text, "switchyard_metal::", "");
  for (const char* const name : {"Small", "SmallArm", "SmallFloat"}) {
    Replace(text, std::string(name) + "<HalfFormat>", "half");
    Replace(text, std::string(name) + "<BfloatFormat>", "bfloat");
  }
  Replace(text, " (aka 'half')", "");
  Replace(text, " (aka 'bfloat')", "");
  ReplaceByFirst(text, "Swizzle");
  return text;
}

// Maps each byte of `shown`, a translated line, to a byte of `line`, the
// shader's line. The result is an estimate, because the translation inserts
// text and replaces tokens by blanks, and several blanks may have become one.
std::vector<size_t> Aligned(const std::string& shown, const std::string& line) {
  std::vector<size_t> at;
  size_t j = 0;
  while (at.size() < shown.size()) {
    const size_t i = at.size();
    const auto skip = [&](const char* what) {
      const std::string text = what;
      if (shown.compare(i, text.size(), text) != 0) return false;
      at.insert(at.end(), text.size(), j);
      return true;
    };
    if (skip("switchyard_metal::Either(") ||
        skip(", switchyard_metal::Arm())")) {
      continue;
    }
    // The loop skips blanks of `line` that `shown` lacks.
    while (j < line.size() && line[j] == ' ' && shown[i] != ' ') ++j;
    at.push_back(std::min(j, line.empty() ? 0 : line.size() - 1));
    const bool same = j < line.size() && line[j] == shown[i];
    j += same || (shown[i] == ' ' && j < line.size()) ? 1 : 0;
  }
  return at;
}

class MessageReader {
 public:
  MessageReader(const std::string& shim, const TextOf& text_of)
      : shim_(shim), text_of_(text_of) {}

  std::string Run(const std::string& messages) {
    std::istringstream lines(messages);
    std::string line;
    Head head;
    bool skipped = false, fresh = false, is_of_shim = false;
    while (std::getline(lines, line)) {
      if (Parse(line, &head)) {
        Flush();
        skipped = head.file.compare(0, shim_.size(), shim_) == 0;
        fresh = true;
        const bool is_note = head.text.compare(0, 7, " note: ") == 0;
        is_of_shim = skipped && !is_note;
        if (!is_note) FlushShim();
        if (is_of_shim)
          in_shim_ = line + "\n", in_shim_text_ = AssertTextOf(head.text);
        if (skipped) continue;
        // An error in the shim is shown at the place in the shader that led to
        // the error. The first note with a place in the shader names it. So
        // this note is shown with the text of the error.
        if (!in_shim_.empty()) head.text = in_shim_text_;
        in_shim_.clear();
        if (includes_.find("<built-in>") == std::string::npos) {
          result_ += includes_;
        }
        includes_.clear();
        head_ = head;
        has_head_ = true;
      } else if (line.compare(0, 17, "In file included ") == 0) {
        Flush();
        skipped = fresh = is_of_shim = false;
        includes_ += line + "\n";  // dropped later if they name <built-in>
      } else if (line.find(" generated.") != std::string::npos) {
        Flush();
        FlushShim();
        skipped = fresh = is_of_shim = false;
        result_ += line + "\n";
      } else if (is_of_shim) {
        in_shim_ += line + "\n";
      } else if (!skipped) {
        if (fresh) shown_ = line;
        if (!fresh) marks_.push_back(line);
        fresh = false;
      }
    }
    Flush();
    FlushShim();
    return result_;
  }

 private:
  std::string LineOf(const std::string& file, size_t number) {
    auto found = files_.find(file);
    if (found == files_.end()) {
      std::istringstream text(text_of_(file));
      std::vector<std::string> lines;
      for (std::string line; std::getline(text, line);) lines.push_back(line);
      found = files_.emplace(file, std::move(lines)).first;
    }
    const std::vector<std::string>& lines = found->second;
    return number == 0 || number > lines.size() ? "" : lines[number - 1];
  }

  // Returns the text of a static_assert in the shim. Clang's message is
  // "static_assert failed due to requirement 'kPoints<float>' \"text\"" or
  // "...': text".
  static std::string AssertTextOf(const std::string& error) {
    const size_t due = error.find(" failed due to requirement '");
    if (due == std::string::npos) return error;
    for (const char* const before : {"' \"", "': "}) {
      const size_t at = error.rfind(before);
      if (at == std::string::npos || at < due) continue;
      std::string text = error.substr(at + 3);
      if (!text.empty() && text.back() == '"') text.pop_back();
      return " error: " + text;
    }
    return error;
  }

  // If in_shim_ still has an error, writes it unchanged. Clang found the
  // error in the shim, and no note said which place in the shader led to it.
  void FlushShim() {
    result_ += in_shim_;
    in_shim_.clear();
  }

  // Writes one message and the lines that belong to it.
  void Flush() {
    if (has_head_) {
      const std::string line = LineOf(head_.file, head_.line);
      if (!shown_.empty() && !line.empty() && line != shown_ &&
          head_.column <= shown_.size()) {
        const std::vector<size_t> at = Aligned(shown_, line);
        head_.column = at[head_.column - 1] + 1;
        shown_ = line;
        marks_ = {std::string(head_.column - 1, ' ') + '^'};
      }
      result_ += head_.file + ":" + std::to_string(head_.line) + ":" +
                 std::to_string(head_.column) + ":" + OfMetal(head_.text) +
                 "\n";
    }
    if (!shown_.empty()) result_ += shown_ + "\n";
    for (const std::string& mark : marks_) result_ += mark + "\n";
    has_head_ = false;
    shown_.clear();
    marks_.clear();
  }

  const std::string& shim_;
  const TextOf& text_of_;
  std::string result_;
  std::map<std::string, std::vector<std::string>> files_;
  std::string includes_;
  // The current error in the shim, until a note gives a place in the shader:
  // in_shim_ has all lines of the message, in_shim_text_ only the text of its
  // first line.
  std::string in_shim_, in_shim_text_;
  Head head_;
  bool has_head_ = false;
  std::string shown_;               // the line of code that the message shows
  std::vector<std::string> marks_;  // the lines below it, such as carets
};

}  // namespace

std::string MakeReadable(const std::string& messages, const std::string& shim,
                         const TextOf& text_of) {
  return MessageReader(shim, text_of).Run(messages);
}

std::string ReadableOfLinker(const std::string& messages) {
  const std::string undefined = ": undefined reference to `";
  std::istringstream lines(messages);
  std::string result, line;
  while (std::getline(lines, line)) {
    const size_t at = line.find(undefined);
    const size_t name = at + undefined.size(), end = line.rfind('\'');
    if (at == std::string::npos || end == std::string::npos || end < name) {
      continue;
    }
    const size_t program = line.rfind(": ", at - 1);
    const size_t place = program == std::string::npos ? 0 : program + 2;
    const std::string told = line.substr(place, at - place) + ": error: '" +
                             line.substr(name, end - name) +
                             "' is declared and used, but not defined\n";
    if (result.find(told) == std::string::npos) result += told;
  }
  return result.empty() ? messages : result;
}

}  // namespace switchyard::device::metal
