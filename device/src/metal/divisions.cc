// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/divisions.h"

#include <utility>
#include <vector>

#include "device/src/metal/llvm_text.h"

namespace switchyard::device::metal {
namespace {

// An integer type, such as "i32", or "<4 x i32>" with 4 elements.
struct IntegerType {
  size_t elements = 0;  // 0 if it is not a vector
  size_t bits = 0;      // 0 if it is not an integer
};

IntegerType TypeOf(std::string_view type) {
  IntegerType result;
  if (BeginsWith(type, "<")) {
    result.elements = ParseNumber(type.substr(1));
    const size_t by = type.find(" x ");
    if (by == std::string_view::npos) return {};
    type = type.substr(by + 3);
  }
  if (BeginsWith(type, "i")) result.bits = ParseNumber(type.substr(1));
  return result;
}

// Returns the least integer with this number of bits, -2^(bits - 1), in
// decimal digits.
std::string LeastOf(size_t bits) {
  std::string digits = "1";  // the last digit first
  for (size_t bit = 1; bit < bits; ++bit) {
    int carry = 0;
    for (char& digit : digits) {
      const int twice = 2 * (digit - '0') + carry;
      digit = static_cast<char>('0' + twice % 10);
      carry = twice / 10;
    }
    if (carry != 0) digits += '1';
  }
  return "-" + std::string(digits.rbegin(), digits.rend());
}

// True if the divisor is a constant other than 0 and -1. Then the division
// can't trap.
bool IsHarmless(std::string_view divisor) {
  if (divisor.empty() || divisor == "0" || divisor == "-1") return false;
  if (divisor[0] == '-') divisor = divisor.substr(1);
  return divisor.find_first_not_of("0123456789") == std::string_view::npos;
}

class Rewriter {
 public:
  Rewriter(bool checked, std::string* out) : checked_(checked), out_(out) {}

  size_t count() const { return count_; }

  // Appends the line. If it is a division that may trap, also appends
  // instructions that make it safe.
  void Line(std::string_view line) {
    if (!Divide(line)) out_->append(line).append("\n");
  }

 private:
  // If the line is a division such as "  %7 = sdiv exact i32 %5, %6, !dbg
  // !12", appends it in a safe form and returns true. Returns false for other
  // lines, and if the divisor can't trap.
  bool Divide(std::string_view line) {
    const size_t equals = line.find(" = ");
    if (equals == std::string_view::npos || !BeginsWith(line, "  %"))
      return false;
    std::string_view rest = line.substr(equals + 3);
    const std::string_view op = rest.substr(0, rest.find(' '));
    const bool is_signed = op == "sdiv" || op == "srem";
    if (!is_signed && op != "udiv" && op != "urem") return false;
    rest = rest.substr(op.size() + 1);
    if (BeginsWith(rest, "exact ")) rest = rest.substr(6);
    const std::vector<std::string_view> parts = SplitOutside(rest, ',');
    if (parts.size() < 2) return false;
    const Operand dividend = ParseOperand(parts[0]);
    const std::string_view divisor = parts[1];
    const IntegerType type = TypeOf(dividend.type);
    if (type.bits == 0 || IsHarmless(divisor)) return false;
    place_.clear();
    for (const std::string_view part : parts) {
      if (BeginsWith(part, "!dbg ")) place_ = ", " + std::string(part);
    }
    const std::string of(dividend.type);
    const std::string flags = Flags(type);
    const std::string zero =
        Make("icmp eq " + of + " " + std::string(divisor) + ", " +
             (type.elements == 0 ? "0" : "zeroinitializer"));
    std::string overflow = type.elements == 0 ? "false" : "zeroinitializer";
    std::string traps = zero;
    if (is_signed) {
      const std::string minus =
          Make("icmp eq " + of + " " + std::string(divisor) + ", " +
               Constant(type, "-1"));
      const std::string least =
          Make("icmp eq " + of + " " + std::string(dividend.value) + ", " +
               Constant(type, LeastOf(type.bits)));
      overflow = Make("and " + flags + " " + minus + ", " + least);
      traps = Make("or " + flags + " " + zero + ", " + overflow);
    }
    if (checked_) {
      const std::string call = "  call void @__tsan_division(i1 zeroext " +
                               Any(type, zero) + ", i1 zeroext ";
      out_->append(call + Any(type, overflow) + ")" + place_ + "\n");
    }
    const std::string safe =
        Make("select " + flags + " " + traps + ", " + of + " " +
             Constant(type, "1") + ", " + of + " " + std::string(divisor));
    const size_t at = static_cast<size_t>(divisor.data() - line.data());
    out_->append(line.substr(0, at))
        .append(safe)
        .append(line.substr(at + divisor.size()))
        .append("\n");
    ++count_;
    return true;
  }

  std::string Make(const std::string& code) {
    std::string name = "%swy.division." + std::to_string(next_++);
    out_->append("  " + name + " = " + code + place_ + "\n");
    return name;
  }

  static std::string Flags(const IntegerType& type) {
    if (type.elements == 0) return "i1";
    return "<" + std::to_string(type.elements) + " x i1>";
  }

  static std::string Constant(const IntegerType& type,
                              const std::string& value) {
    if (type.elements == 0) return value;
    const std::string element = "i" + std::to_string(type.bits) + " " + value;
    std::string all = "<" + element;
    for (size_t i = 1; i < type.elements; ++i) all += ", " + element;
    return all + ">";
  }

  // Emits code that is true if a flag of any element is true, and returns the
  // name of its result.
  std::string Any(const IntegerType& type, const std::string& flags) {
    if (type.elements == 0) return flags;
    const std::string bits = "i" + std::to_string(type.elements);
    return Make("icmp ne " + bits + " " +
                Make("bitcast " + Flags(type) + " " + flags + " to " + bits) +
                ", 0");
  }

  const bool checked_;
  std::string* const out_;
  std::string place_;  // the division's source place, its !dbg
  size_t count_ = 0, next_ = 0;
};

}  // namespace

size_t DefineDivisions(std::string& llvm, bool checked) {
  std::string out;
  out.reserve(llvm.size() + llvm.size() / 16);
  Rewriter rewriter(checked, &out);
  ForEachLine(llvm, [&](std::string_view line) { rewriter.Line(line); });
  llvm = std::move(out);
  return rewriter.count();
}

}  // namespace switchyard::device::metal
