// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/conformance/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>
#include <utility>

#include "programs/program.h"

namespace switchyard::conformance {
namespace {

constexpr std::string_view kHeader = "switchyard-router 1";

template <class Number>
std::string ToText(Number value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return std::string(text, end);
}

// The shape of a block, which is a named matrix of numbers in the text.
struct Shape {
  size_t rows, cols;
};

// Calls visit(name, values, shape) for each block of a case, in the order of
// the text. A shape with 0 rows stands for any number of rows.
template <class AnyCase, class Visit>
void ForEachBlock(AnyCase& c, size_t columns, size_t slots,
                  const Visit& visit) {
  visit("logits", c.logits, Shape{c.tokens, columns});
  visit("correction_bias", c.correction_bias, Shape{0, c.num_experts});
  visit("bias_index", c.bias_index, Shape{1, c.tokens});
  visit("expert_scale", c.expert_scale, Shape{1, c.num_experts});
  visit("token_mask", c.token_mask, Shape{1, c.tokens});
  visit("ids", c.ids, Shape{c.tokens, slots});
  visit("weights", c.weights, Shape{c.tokens, slots});
  visit("identity_weights", c.identity_weights, Shape{1, c.tokens});
}

std::string ValueText(int32_t value) { return ToText(value); }
std::string ValueText(float value) { return TextOf(value); }

template <class T>
void PutBlock(const char* name, const std::vector<T>& values, size_t cols,
              std::string* text) {
  if (values.empty()) return;
  *text += std::string(name) + " " + ToText(values.size() / cols) + " " +
           ToText(cols) + "\n";
  for (size_t i = 0; i < values.size(); ++i) {
    *text += ValueText(values[i]);
    *text += (i + 1) % cols == 0 ? '\n' : ' ';
  }
}

// Reads a text line by line, and remembers the number of the line for errors.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  // Moves to the next line that is not blank, and sets `line` to it without
  // the blanks around it. Returns false at the end of the text.
  bool Next(std::string_view* line) {
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      std::string_view next = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      while (!next.empty() && IsBlank(next.back())) next.remove_suffix(1);
      while (!next.empty() && IsBlank(next.front())) next.remove_prefix(1);
      if (next.empty()) continue;
      *line = next;
      return true;
    }
    return false;
  }
  std::string_view Require(const char* wanted) {
    std::string_view line;
    if (!Next(&line)) Throw(std::string("the text ends before ") + wanted);
    return line;
  }
  [[noreturn]] void Throw(const std::string& wrong) const {
    throw program::InputError("line " + ToText(number_) + ": " + wrong);
  }

  // Removes the first word from the line and returns it.
  static std::string_view Word(std::string_view* line) {
    const size_t end = std::min(line->find_first_of(" \t"), line->size());
    const std::string_view word = line->substr(0, end);
    line->remove_prefix(end);
    while (!line->empty() && IsBlank(line->front())) line->remove_prefix(1);
    return word;
  }
  template <class Number>
  Number Parse(std::string_view word, std::string_view name) const {
    Number value{};
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, value);
    if (word.empty() || error != std::errc() || stop != end) {
      Throw(std::string(name) + ": \"" + std::string(word) +
            "\" is not a number of its kind");
    }
    return value;
  }

  // Reads the rows of a block, after the line with its name and shape.
  template <class T>
  Shape ReadBlock(std::string_view name, std::string_view shape,
                  std::vector<T>* values) {
    const size_t rows = Parse<size_t>(Word(&shape), name);
    const size_t cols = Parse<size_t>(Word(&shape), name);
    if (!shape.empty() || rows == 0 || cols == 0) {
      Throw(std::string(name) + ": is not followed by rows and columns");
    }
    if (!values->empty()) Throw(std::string(name) + ": comes twice");
    for (size_t r = 0; r < rows; ++r) {
      std::string_view line = Require("the last row of a block");
      size_t read = 0;
      while (!line.empty()) {
        values->push_back(Parse<T>(Word(&line), name));
        ++read;
      }
      if (read != cols) {
        Throw(std::string(name) + ": a row has " + ToText(read) +
              " values, not " + ToText(cols));
      }
    }
    return {rows, cols};
  }

 private:
  static bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

  std::string_view rest_;
  size_t number_ = 0;
};

void RequireHeader(std::string_view line, const Lines& lines) {
  if (line != kHeader) {
    lines.Throw("is not \"" + std::string(kHeader) + "\"");
  }
}

// Reads the rest of a case after its header line.
Case ReadCase(Lines* lines) {
  Case c;
  std::vector<std::pair<std::string, Shape>> shapes;
  for (;;) {
    std::string_view line = lines->Require("\"end\"");
    const std::string key(Lines::Word(&line));
    const auto is_new = [&](bool is_unset) {
      if (!is_unset) lines->Throw(key + ": comes twice");
    };
    if (key == "end") break;
    if (key == "case") {
      is_new(c.name.empty());
      c.name = line;
    } else if (key == "about") {
      is_new(c.about.empty());
      c.about = line;
    } else if (key == "families") {
      is_new(c.families.empty());
      while (!line.empty()) c.families.emplace_back(Lines::Word(&line));
    } else if (key == "tokens") {
      is_new(c.tokens == 0);
      c.tokens = lines->Parse<size_t>(line, key);
    } else if (key == "num_experts") {
      is_new(c.num_experts == 0);
      c.num_experts = lines->Parse<size_t>(line, key);
    } else if (key == "top_k") {
      is_new(c.top_k == 0);
      c.top_k = lines->Parse<size_t>(line, key);
    } else if (key == "tolerance") {
      c.tolerance = static_cast<double>(lines->Parse<float>(line, key));
    } else if (key == "option") {
      const std::string option(Lines::Word(&line));
      c.options.emplace_back(option, line);
    } else {
      bool is_block = false;
      ForEachBlock(c, 0, 0, [&](const char* name, auto& values, Shape) {
        if (key != name) return;
        is_block = true;
        shapes.emplace_back(name, lines->ReadBlock(key, line, &values));
      });
      if (!is_block) lines->Throw(key + ": is not a key of a case");
    }
  }
  if (c.name.empty()) lines->Throw("case: is missing");
  if (c.logits.empty()) lines->Throw("logits: is missing");
  if (c.ids.empty()) lines->Throw("ids: is missing");
  if (c.weights.empty()) lines->Throw("weights: is missing");
  if (!(c.tolerance > 0)) lines->Throw("tolerance: is not above 0");
  ForEachBlock(
      c, c.Columns(), c.Slots(), [&](const char* name, auto&, Shape expected) {
        for (const auto& [read, shape] : shapes) {
          if (read != name) continue;
          const bool has_rows =
              expected.rows == 0 || shape.rows == expected.rows;
          if (has_rows && shape.cols == expected.cols) continue;
          lines->Throw(read + ": is " + ToText(shape.rows) + " by " +
                       ToText(shape.cols) + ", not " + ToText(expected.rows) +
                       " by " + ToText(expected.cols));
        }
      });
  return c;
}

Answer ReadAnswer(Lines* lines) {
  Answer answer;
  for (;;) {
    std::string_view line = lines->Require("\"end\"");
    const std::string key(Lines::Word(&line));
    if (key == "end") break;
    if (key == "case") {
      answer.name = line;
    } else if (key == "unsupported") {
      answer.unsupported = line.empty() ? "no reason given" : line;
    } else if (key == "ids") {
      lines->ReadBlock(key, line, &answer.ids);
    } else if (key == "weights") {
      lines->ReadBlock(key, line, &answer.weights);
    } else if (key == "identity_weights") {
      lines->ReadBlock(key, line, &answer.identity_weights);
    } else {
      lines->Throw(key + ": is not a key of an answer");
    }
  }
  if (answer.name.empty()) lines->Throw("case: is missing");
  return answer;
}

template <class Read>
auto ReadAll(const std::string& text, const Read& read) {
  std::vector<decltype(read(nullptr))> all;
  Lines lines(text);
  std::string_view line;
  while (lines.Next(&line)) {
    RequireHeader(line, lines);
    all.push_back(read(&lines));
  }
  return all;
}

}  // namespace

std::string TextOf(float value) {
  return std::isnan(value) ? "nan" : ToText(value);
}

std::string Write(const Case& c) {
  std::string text = std::string(kHeader) + "\ncase " + c.name + "\n";
  if (!c.about.empty()) text += "about " + c.about + "\n";
  if (!c.families.empty()) text += "families";
  for (const std::string& family : c.families) text += " " + family;
  if (!c.families.empty()) text += "\n";
  text += "tokens " + ToText(c.tokens) + "\nnum_experts " +
          ToText(c.num_experts) + "\ntop_k " + ToText(c.top_k) +
          "\ntolerance " + TextOf(static_cast<float>(c.tolerance)) + "\n";
  for (const auto& [name, value] : c.options) {
    text.append("option ").append(name).append(" ").append(value).append("\n");
  }
  ForEachBlock(c, c.Columns(), c.Slots(),
               [&](const char* name, const auto& values, Shape shape) {
                 PutBlock(name, values, shape.cols, &text);
               });
  return text + "end\n";
}

Case Read(const std::string& text) {
  std::vector<Case> cases = ReadCases(text);
  if (cases.size() != 1) {
    throw program::InputError("the text has " + ToText(cases.size()) +
                              " cases, not one");
  }
  return std::move(cases[0]);
}

std::vector<Case> ReadCases(const std::string& text) {
  return ReadAll(text, [](Lines* lines) { return ReadCase(lines); });
}

std::string Write(const Answer& answer, size_t slots) {
  std::string text = std::string(kHeader) + "\ncase " + answer.name + "\n";
  if (!answer.unsupported.empty()) {
    text += "unsupported " + answer.unsupported + "\n";
  } else {
    PutBlock("ids", answer.ids, slots, &text);
    PutBlock("weights", answer.weights, slots, &text);
    PutBlock("identity_weights", answer.identity_weights,
             answer.identity_weights.size(), &text);
  }
  return text + "end\n";
}

std::vector<Answer> ReadAnswers(const std::string& text) {
  return ReadAll(text, [](Lines* lines) { return ReadAnswer(lines); });
}

}  // namespace switchyard::conformance
