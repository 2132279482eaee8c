// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/constants.h"

#include <cstdlib>
#include <string>

namespace switchyard::device::metal {
namespace {

// Integer expressions by precedence.
class Evaluator {
 public:
  using Values = std::unordered_map<std::string_view, std::optional<uint32_t>>;

  Evaluator(const Tokens& tokens, const Values& values, uint32_t first,
            uint32_t last)
      : tokens_(tokens), values_(values), at_(first), last_(last) {}

  std::optional<uint32_t> Run() {
    const int64_t value = Binary(0, 0);
    if (!ok_ || at_ != last_ || value < 0 || value > 0xffff) return {};
    return static_cast<uint32_t>(value);
  }

 private:
  std::string_view Peek() const {
    return at_ < last_ ? tokens_.Text(at_) : std::string_view();
  }

  int64_t Fail() {
    ok_ = false;
    at_ = last_;
    return 0;
  }

  int64_t Primary(int depth) {
    const std::string_view text = Peek();
    if (text.empty() || depth > 50) return Fail();
    ++at_;
    if (text == "(") {
      const int64_t value = Binary(0, depth + 1);
      if (Peek() != ")") return Fail();
      ++at_;
      return value;
    }
    if (text == "+") return Primary(depth + 1);
    if (text == "-") return -Primary(depth + 1);
    if (tokens_.list[at_ - 1].kind == Token::Kind::kIdentifier) return Name();
    if (tokens_.list[at_ - 1].kind != Token::Kind::kNumber) return Fail();
    std::string digits(text);
    while (!digits.empty() && (digits.back() == 'u' || digits.back() == 'U' ||
                               digits.back() == 'l' || digits.back() == 'L')) {
      digits.pop_back();
    }
    char* end = nullptr;
    const int64_t value = std::strtoll(digits.c_str(), &end, 0);
    return digits.empty() || *end != '\0' || value > 0xffffff ? Fail() : value;
  }

  // Qualified or not.
  int64_t Name() {
    while (Peek() == "::" && at_ + 1 < last_) at_ += 2;
    const auto found = values_.find(tokens_.Text(at_ - 1));
    if (found == values_.end() || !found->second) return Fail();
    return *found->second;
  }

  // The operators of `level` and above.
  int64_t Binary(int level, int depth) {
    if (level == 3) return Primary(depth);
    int64_t value = Binary(level + 1, depth);
    for (;;) {
      const std::string_view op = Peek();
      const bool shift = op == "<" && tokens_.Is(at_ + 1, "<");
      if (level == 0 ? !shift
                     : op.empty() ||
                           (level == 1 ? op != "+" && op != "-"
                                       : op != "*" && op != "/" && op != "%")) {
        return value;
      }
      at_ += shift ? 2 : 1;
      const int64_t right = Binary(level + 1, depth);
      if (value > 0xffffff || value < -0xffffff) return Fail();
      if ((op == "/" || op == "%") && right == 0) return Fail();
      if (shift && (right < 0 || right > 20 || value < 0)) return Fail();
      if (shift) value <<= right;
      if (op == "+") value += right;
      if (op == "-") value -= right;
      if (op == "*") value *= right;
      if (op == "/") value /= right;
      if (op == "%") value %= right;
    }
  }

  const Tokens& tokens_;
  const Values& values_;
  uint32_t at_;
  const uint32_t last_;
  bool ok_ = true;
};

}  // namespace

void Constants::Add(std::string_view name, std::optional<uint32_t> value) {
  const auto [found, is_new] = values_.emplace(name, value);
  // The name is in two scopes, and nobody finds out which one is meant.
  if (!is_new && found->second != value) found->second.reset();
}

void Constants::AddEnumerators(const Tokens& tokens, uint32_t open) {
  std::optional<uint32_t> next = 0;
  const uint32_t close = tokens.Match(open);
  for (uint32_t i = open + 1; i < close;) {
    const uint32_t name = i;
    uint32_t end = i, equals = kNone;
    for (; end < close && !tokens.Is(end, ","); end = tokens.Skip(end)) {
      if (equals == kNone && tokens.Is(end, "=")) equals = end;
    }
    if (equals != kNone) next = Evaluate(tokens, equals + 1, end);
    if (tokens.IsIdentifier(name)) Add(tokens.Text(name), next);
    if (next) next = *next + 1;
    i = end + 1;
  }
}

std::optional<uint32_t> Constants::Evaluate(const Tokens& tokens,
                                            uint32_t first,
                                            uint32_t last) const {
  return Evaluator(tokens, values_, first, last).Run();
}

}  // namespace switchyard::device::metal
