// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/declarations.h"

#include <cstdlib>

namespace switchyard::device::metal {
namespace {

// True if parentheses behind the word do not contain a parameter list.
bool TakesParentheses(std::string_view word) {
  return IsOneOf(word, {"decltype", "__attribute__", "alignas", "noexcept",
                        "__declspec", "sizeof", "static_assert", "alignof",
                        "throw", "typeof", "__typeof__"});
}

bool IsClassKey(std::string_view word) {
  return IsOneOf(word, {"struct", "class", "union", "enum"});
}

bool IsArithmetic(std::string_view word) {
  return IsOneOf(word, {"int", "short", "char", "long", "float", "half", "bool",
                        "unsigned", "signed"});
}

// Skips the initializers of a constructor. Returns the token at which its
// body begins.
uint32_t SkipInitializers(const Text& text, uint32_t i, uint32_t limit) {
  for (++i; i < limit && !text.Is(i, ";"); i = text.Skip(i)) {
    if (!text.Is(i, "{")) continue;
    // This brace either initialises a member, or begins the body.
    const bool is_of_member = text.IsIdentifier(i - 1) || text.Is(i - 1, ">");
    if (!is_of_member) break;
  }
  return i;
}

class Hash {
 public:
  void Add(std::string_view text) {
    for (const char c : text) AddByte(static_cast<unsigned char>(c));
    AddByte(0);
  }
  uint64_t value() const { return value_; }

 private:
  void AddByte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3; }
  uint64_t value_ = 0xcbf29ce484222325;
};

// Replaces names of parameters and template parameters by numbers, because
// two declarations of one function may name them differently.
class NormalizedNames {
 public:
  explicit NormalizedNames(const Text& text) : text_(text) {}

  void AddTemplate(uint32_t first, uint32_t last) {
    for (const Piece& p : text_.SplitAtCommas(first, last)) Add(p);
  }

  void AddParameters(uint32_t first, uint32_t last) {
    for (const Piece& p : text_.SplitAtCommas(first, last)) {
      const uint32_t name = text_.FindDeclaredName(p.first, p.last);
      // If a parameter has only one name, this is the name of its type. A name
      // behind `const` may be the name of a type, too.
      if (name == kNone || name == p.first) continue;
      const std::string_view before = text_.word(name - 1);
      if (before != "::" && before != "const" && before != "struct" &&
          !IsAddressSpace(before) && !IsArithmetic(text_.word(name))) {
        Add(p);
      }
    }
  }

  std::string WriteToken(uint32_t token) const {
    const std::string_view word = text_.edited(token);
    if (text_.IsIdentifier(token) && !text_.IsMember(token) &&
        !text_.Is(token - 1, "::")) {
      const auto found = names_.find(word);
      if (found != names_.end()) return "$" + std::to_string(found->second);
    }
    return std::string(word);
  }

 private:
  void Add(const Piece& piece) {
    const uint32_t name = text_.FindDeclaredName(piece.first, piece.last);
    if (name != kNone) names_.emplace(text_.word(name), names_.size());
  }

  const Text& text_;
  std::unordered_map<std::string_view, size_t> names_;
};

// Evaluates integer expressions and respects the precedence of operators.
class Evaluator {
 public:
  using Values = std::unordered_map<std::string_view, std::optional<uint32_t>>;

  Evaluator(const Text& text, const Values& values, uint32_t first,
            uint32_t last)
      : text_(text), values_(values), at_(first), last_(last) {}

  std::optional<uint32_t> Run() {
    const int64_t value = EvaluateBinary(0, 0);
    if (!ok_ || at_ != last_ || value < 0 || value > 0xffff) return {};
    return static_cast<uint32_t>(value);
  }

 private:
  std::string_view Peek() const {
    return at_ < last_ ? text_.word(at_) : std::string_view();
  }

  int64_t Fail() {
    ok_ = false;
    at_ = last_;
    return 0;
  }

  int64_t EvaluatePrimary(int depth) {
    const std::string_view word = Peek();
    if (word.empty() || depth > 50) return Fail();
    ++at_;
    if (word == "(") {
      const int64_t value = EvaluateBinary(0, depth + 1);
      if (Peek() != ")") return Fail();
      ++at_;
      return value;
    }
    if (word == "+") return EvaluatePrimary(depth + 1);
    if (word == "-") return -EvaluatePrimary(depth + 1);
    if (text_.IsIdentifier(at_ - 1)) return EvaluateName();
    if (!text_.IsNumber(at_ - 1)) return Fail();
    std::string digits(word);
    while (!digits.empty() && (digits.back() == 'u' || digits.back() == 'U' ||
                               digits.back() == 'l' || digits.back() == 'L')) {
      digits.pop_back();
    }
    char* end = nullptr;
    const int64_t value = std::strtoll(digits.c_str(), &end, 0);
    return digits.empty() || *end != '\0' || value > 0xffffff ? Fail() : value;
  }

  // Evaluates a name, with or without its scope.
  int64_t EvaluateName() {
    while (Peek() == "::" && at_ + 1 < last_) at_ += 2;
    const auto found = values_.find(text_.word(at_ - 1));
    if (found == values_.end() || !found->second) return Fail();
    return *found->second;
  }

  // Evaluates operators that have the precedence `level` or a higher one.
  int64_t EvaluateBinary(int level, int depth) {
    if (level == 3) return EvaluatePrimary(depth);
    int64_t value = EvaluateBinary(level + 1, depth);
    for (;;) {
      const std::string_view op = Peek();
      const bool is_shift = op == "<" && text_.Is(at_ + 1, "<");
      if (level == 0 ? !is_shift
                     : op.empty() ||
                           (level == 1 ? op != "+" && op != "-"
                                       : op != "*" && op != "/" && op != "%")) {
        return value;
      }
      at_ += is_shift ? 2 : 1;
      const int64_t right = EvaluateBinary(level + 1, depth);
      if (value > 0xffffff || value < -0xffffff) return Fail();
      if ((op == "/" || op == "%") && right == 0) return Fail();
      if (is_shift && (right < 0 || right > 20 || value < 0)) return Fail();
      if (is_shift) value <<= right;
      if (op == "+") value += right;
      if (op == "-") value -= right;
      if (op == "*") value *= right;
      if (op == "/") value /= right;
      if (op == "%") value %= right;
    }
  }

  const Text& text_;
  const Values& values_;
  uint32_t at_;
  const uint32_t last_;
  bool ok_ = true;
};

}  // namespace

Declaration ReadDeclaration(const Text& text, uint32_t begin, uint32_t limit) {
  Declaration d;
  d.begin = begin;
  uint32_t i = begin;
  while (text.Is(i, "template") && i < limit) {
    if (!text.Is(i + 1, "<")) {
      d.is_instantiation = true;
      ++i;
      break;
    }
    if (text.Opens(i + 1)) {
      if (text.match(i + 1) > i + 2) d.parameters = i + 1;
      i = text.match(i + 1) + 1;
    } else {  // for template <>, whose < has no match
      ++i;
      while (i < limit && !text.Is(i, ">") && !text.Is(i, ";")) ++i;
      ++i;
    }
  }
  d.head = i;
  for (; i < limit; i = text.Skip(i)) {
    const std::string_view word = text.word(i);
    if (word == ";") {
      d.end = i + 1;
      return d;
    }
    if (word == "{") {
      if (d.open != kNone && (d.initializer == kNone || d.body != kNone)) {
        d.body = i;
        d.end = text.match(i) + 1;
        return d;
      }
      if (d.class_key != kNone && d.initializer == kNone && d.body == kNone) {
        d.body = i;
      }
    } else if (word == "(" && d.open == kNone && d.initializer == kNone &&
               d.body == kNone && !TakesParentheses(text.word(i - 1))) {
      uint32_t name = i - 1;
      if (text.Is(name, ">") && text.match(name) < name) {
        name = text.match(name) - 1;
      }
      d.name = text.IsIdentifier(name) ? name : kNone;
      d.open = i;
      d.close = text.match(i);
    } else if (word == "=" && d.initializer == kNone) {
      d.initializer = i;
    } else if (word == ":" && d.open != kNone && d.initializer == kNone) {
      d.initializer = i;
      i = SkipInitializers(text, i, limit);
      if (text.Is(i, "{") && i < limit) {
        d.body = i;
        d.end = text.match(i) + 1;
        return d;
      }
      --i;
    } else if (word == "operator" && d.open == kNone &&
               d.initializer == kNone) {
      d.name = i;
      uint32_t open = i + 1;
      if (text.Is(open, "(")) open += 2;
      while (open < limit && !text.Is(open, "(") && !text.Is(open, ";")) {
        ++open;
      }
      if (open < limit && text.Is(open, "(")) {
        d.open = open;
        d.close = text.match(open);
        i = open;
      } else {
        i = open - 1;
      }
    } else if (IsClassKey(word) && d.open == kNone && d.class_key == kNone &&
               d.initializer == kNone) {
      d.class_key = i;
    }
  }
  d.end = limit;
  return d;
}

Duplicates::Found Duplicates::Add(const std::string& scope,
                                  const Declaration& d, Piece* earlier) {
  const uint32_t body_end = d.body == kNone ? d.end : d.BodyEnd(text_) + 1;
  uint32_t head_end = d.body == kNone ? d.end : d.body;
  if (d.initializer < head_end) head_end = d.initializer;
  NormalizedNames names(text_);
  if (d.IsTemplate()) {
    names.AddTemplate(d.parameters + 1, text_.match(d.parameters));
  }
  if (d.IsFunction()) names.AddParameters(d.open + 1, d.close);
  std::string key = scope + '\n';
  Hash original;
  bool names_thread = false, names_other = false;
  for (uint32_t i = d.begin; i < head_end; ++i) {
    const std::string_view word = text_.word(i);
    if (word == "__attribute__" && text_.Opens(i + 1)) {
      i = text_.match(i + 1);
      continue;
    }
    if (word == "inline" || word == "static" || word == "constexpr") continue;
    if (word == "=" && d.IsFunction() && i > d.open && i < d.close) {
      while (i + 1 < d.close && !text_.Is(i + 1, ",")) {
        i = text_.Skip(i + 1) - 1;
      }
      continue;
    }
    if (IsAddressSpace(word)) {
      original.Add(word);
      (word == "thread" ? names_thread : names_other) = true;
    }
    if (text_.IsErased(i)) continue;
    const std::string written = names.WriteToken(i);
    // Declarations may leave out a parameter's name, so it is no part of the
    // key.
    if (d.IsFunction() && i > d.open && i < d.close && written[0] == '$' &&
        (text_.Is(i + 1, ",") || text_.Is(i + 1, ")") || text_.Is(i + 1, "[") ||
         text_.Is(i + 1, "=")) &&
        i > d.open + 1 && !text_.Is(i - 1, ",") && !text_.Is(i - 1, "<")) {
      continue;
    }
    original.Add(written);
    key += written;
    key += ' ';
  }
  Hash body;
  for (uint32_t i = head_end; i < body_end; ++i) {
    if (!text_.IsErased(i)) body.Add(names.WriteToken(i));
  }
  key += d.body == kNone ? ';' : '{';
  const Seen now = {original.value(),
                    body.value(),
                    {d.begin, d.end},
                    names_thread && !names_other};
  const auto [found, is_new] = seen_.emplace(std::move(key), now);
  Seen& seen = found->second;
  if (is_new || seen.original == now.original) return Found::kNew;
  if (seen.body == now.body) return Found::kSame;
  if (!now.is_thread || seen.is_thread) return Found::kDifferent;
  *earlier = seen.tokens;
  seen = now;
  return Found::kReplaces;
}

void Constants::Add(std::string_view name, std::optional<uint32_t> value) {
  const auto [found, is_new] = values_.emplace(name, value);
  // Two scopes use the name for different values. The translation does not
  // resolve scopes, so the name's value is unknown.
  if (!is_new && found->second != value) found->second.reset();
}

void Constants::AddEnumerators(const Text& text, uint32_t open) {
  std::optional<uint32_t> next = 0;
  const uint32_t close = text.match(open);
  for (uint32_t i = open + 1; i < close;) {
    const uint32_t name = i;
    uint32_t end = i, equals = kNone;
    for (; end < close && !text.Is(end, ","); end = text.Skip(end)) {
      if (equals == kNone && text.Is(end, "=")) equals = end;
    }
    if (equals != kNone) next = Evaluate(text, equals + 1, end);
    if (text.IsIdentifier(name)) Add(text.word(name), next);
    if (next) next = *next + 1;
    i = end + 1;
  }
}

std::optional<uint32_t> Constants::Evaluate(const Text& text, uint32_t first,
                                            uint32_t last) const {
  return Evaluator(text, values_, first, last).Run();
}

}  // namespace switchyard::device::metal
