// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/llvm_function.h"

#include <cctype>
#include <utility>

namespace switchyard::device::metal {
namespace {

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' ||
         c == '_' || c == '$' || c == '-';
}

// Calls function(begin, end) for each "%name" in the text.
template <class Function>
void ForEachName(Text text, const Function& function) {
  for (size_t at = 0; (at = text.find('%', at)) != Text::npos;) {
    size_t end = at + 1;
    while (end < text.size() && IsNameCharacter(text[end])) ++end;
    function(at, end);
    at = end;
  }
}

// "nuw nsw i32 %1" is "i32 %1".
Text WithoutFlags(Text code) {
  constexpr Text kFlags[] = {
      "nuw",  "nsw",      "exact",    "fast",     "nnan",    "ninf",
      "nsz",  "arcp",     "afn",      "contract", "reassoc", "disjoint",
      "nneg", "samesign", "inbounds", "nusw",     "atomic",  "volatile"};
  for (;;) {
    const Text word = code.substr(0, code.find(' '));
    if (std::find(std::begin(kFlags), std::end(kFlags), word) ==
        std::end(kFlags)) {
      return code;
    }
    code = code.substr(word.size() + 1);
  }
}

bool IsOneOf(Text op, std::initializer_list<Text> all) {
  return std::find(all.begin(), all.end(), op) != all.end();
}

bool IsCast(Text op) {
  return IsOneOf(op, {"trunc", "zext", "sext", "fptrunc", "fpext", "fptoui",
                      "fptosi", "uitofp", "sitofp", "ptrtoint", "inttoptr",
                      "bitcast", "addrspacecast"});
}

// "<4 x float>": "float".
Text ElementOf(Text vector) {
  const size_t by = vector.find(" x ");
  if (!BeginsWith(vector, "<") || by == Text::npos) return Text();
  return vector.substr(by + 3, vector.size() - by - 4);
}

// The rest of its code is behind the op.
Text ArgumentsOf(const Instruction& i) {
  const size_t begin =
      static_cast<size_t>(i.op.data() - i.code.data()) + i.op.size();
  return begin < i.code.size() ? Text(i.code).substr(begin + 1) : Text();
}

}  // namespace

Text Instruction::Callee() const {
  return op == "call" ? CalleeOf(code) : Text();
}

std::optional<LlvmFunction> LlvmFunction::Read(
    Text text, const std::function<bool(Text)>& meets) {
  LlvmFunction read;
  if (!read.ReadAll(text, meets)) return std::nullopt;
  return read;
}

size_t LlvmFunction::Find(Text name) const {
  const auto found = numbers_.find(std::string(name));
  return found == numbers_.end() ? kNoIndex : found->second;
}

std::string LlvmFunction::Replace(
    Text code, const std::function<std::string(size_t)>& name) const {
  std::string result;
  size_t done = 0;
  ForEachName(code, [&](size_t begin, size_t end) {
    const size_t value = Find(code.substr(begin, end - begin));
    if (value == kNoIndex) return;
    result.append(code.substr(done, begin - done)).append(name(value));
    done = end;
  });
  return result.append(code.substr(done));
}

bool LlvmFunction::ReadAll(Text text, const std::function<bool(Text)>& meets) {
  const size_t body = text.find('\n') + 1;
  const Text head = text.substr(0, body);
  const size_t open = head.find('(', head.find('@'));
  const Text parameter =
      head.substr(open + 1, FindOutside(head.substr(open + 1), ')'));
  const std::string thread(parameter.substr(parameter.rfind(' ') + 1));
  if (!BeginsWith(thread, "%")) return false;
  const auto add = [this](std::string name) {
    numbers_[name] = values_.size();
    values_.push_back(std::move(name));
    made_.push_back(nullptr);
    made_in_.push_back(0);
  };
  add(thread);
  // Lines, of which a switch has several.
  std::vector<std::string> lines;
  bool in_switch = false;
  ForEachLine(text.substr(body), [&](Text line) {
    if (in_switch) {
      lines.back().append(line);
      in_switch = line.find(']') == Text::npos;
    } else if (!line.empty() && line != "}") {
      lines.emplace_back(line);
      in_switch = BeginsWith(line, "  switch ") && line.back() == '[';
    }
    if (BeginsWith(line, "  %"))
      add(std::string(line.substr(2, line.find(' ', 2) - 2)));
  });
  std::unordered_map<std::string, size_t> starts, ends;
  // The first block's number follows that of the parameter.
  blocks_.push_back({thread == "%0" ? "1" : "0", {}, nullptr, {}});
  starts[blocks_[0].label] = 0;
  std::string label = blocks_[0].label;
  size_t parts = 0;
  for (const std::string& line : lines) {
    if (line[0] != ' ') {
      label = line.substr(0, line.find(':'));
      parts = 0;
      if (&line == lines.data()) {
        starts.clear();
        blocks_.clear();
      }
      starts[label] = blocks_.size();
      ends[label] = blocks_.size();
      blocks_.push_back({label, {}, nullptr, {}});
      continue;
    }
    instructions_.push_back(std::make_unique<Instruction>());
    Instruction& made = *instructions_.back();
    if (!ReadInstruction(line, made)) return false;
    if (made.code.empty()) continue;
    Block& block = blocks_.back();
    if (made.value != kNoIndex) {
      made_[made.value] = &made;
      made_in_[made.value] = blocks_.size() - 1;
    }
    const bool meeting = made.op == "call" && meets(made.Callee());
    if (meeting || IsOneOf(made.op, {"br", "switch", "ret", "unreachable"})) {
      block.end = &made;
    } else {
      block.code.push_back(&made);
    }
    ends[label] = blocks_.size() - 1;
    if (meeting) {
      block.successors.push_back(blocks_.size());
      blocks_.push_back(
          {label + "." + std::to_string(++parts), {}, nullptr, {}});
      ends[label] = blocks_.size() - 1;
    }
  }
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].end == nullptr || !ReadSuccessors(b, starts)) return false;
  }
  for (const auto& instruction : instructions_) {
    for (Instruction::Incoming& each : instruction->incoming) {
      const auto found = ends.find(each.label);
      if (found == ends.end()) return false;
      each.block = found->second;
    }
  }
  return true;
}

// One without code is of no account.
bool LlvmFunction::ReadInstruction(Text line, Instruction& made) {
  line = line.substr(line.find_first_not_of(' '));
  if (BeginsWith(line, "#dbg_")) return true;
  if (line[0] == '%') {
    const size_t end = line.find(" = ");
    made.value = Find(line.substr(0, end));
    if (end == Text::npos || made.value == kNoIndex) return false;
    line = line.substr(end + 3);
  }
  std::string code(line);
  // Places, and what is known of memory in one thread.
  for (const char* const name :
       {", !dbg !", ", !noalias !", ", !alias.scope !", ", !tbaa !"}) {
    const size_t at = code.find(name);
    if (at == std::string::npos) continue;
    const size_t end =
        code.find_first_not_of("0123456789", at + Text(name).size());
    code.erase(at, end == std::string::npos ? end : end - at);
  }
  if (code.find("@llvm.dbg.") != std::string::npos ||
      code.find("@llvm.lifetime.") != std::string::npos ||
      code.find("@llvm.experimental.noalias") != std::string::npos) {
    return true;
  }
  made.code = std::move(code);
  Text op = made.code;
  for (const Text word : {"tail ", "musttail ", "notail "}) {
    if (BeginsWith(op, word)) op = op.substr(word.size());
  }
  made.op = op.substr(0, op.find(' '));
  if (IsOneOf(made.op,
              {"invoke", "callbr", "indirectbr", "resume", "va_arg"})) {
    return false;
  }
  if (made.op == "phi") {
    const Text given = ParseOperand(WithoutFlags(ArgumentsOf(made))).value;
    for (const Text entry : SplitOutside(given, ',')) {
      if (entry[0] != '[') continue;
      const size_t comma = entry.rfind(", %");
      if (comma == Text::npos) return false;
      const Text label = entry.substr(comma + 3);
      made.incoming.push_back({std::string(entry.substr(2, comma - 2)),
                               std::string(label.substr(0, label.find(' '))),
                               kNoIndex});
    }
    return true;
  }
  ForEachName(made.code, [&](size_t begin, size_t end) {
    const size_t value = Find(Text(made.code).substr(begin, end - begin));
    const bool is_label =
        begin >= 6 && made.code.compare(begin - 6, 6, "label ") == 0;
    if (value != kNoIndex && !is_label) made.uses.push_back(value);
  });
  return true;
}

bool LlvmFunction::ReadSuccessors(
    size_t block, const std::unordered_map<std::string, size_t>& starts) {
  Block& from = blocks_[block];
  if (from.end->op == "call") return true;
  const Text code = from.end->code;
  for (size_t at = 0; (at = code.find("label %", at)) != Text::npos;) {
    size_t end = at += 7;
    while (end < code.size() && IsNameCharacter(code[end])) ++end;
    const auto found = starts.find(std::string(code.substr(at, end - at)));
    if (found == starts.end()) return false;
    from.successors.push_back(found->second);
  }
  return true;
}

std::string LlvmFunction::TypeOf(size_t value) const {
  const Instruction* const made = made_[value];
  if (made == nullptr) return "";
  const Text op = made->op, rest = WithoutFlags(ArgumentsOf(*made));
  const std::vector<Text> parts = SplitOutside(rest, ',');
  const auto type = [&](size_t part) {
    return part < parts.size() ? std::string(ParseOperand(parts[part]).type)
                               : "";
  };
  if (op == "load") return std::string(parts[0]);
  if (IsOneOf(op,
              {"phi",  "add",  "sub",    "mul",           "udiv",       "sdiv",
               "urem", "srem", "shl",    "lshr",          "ashr",       "and",
               "or",   "xor",  "fadd",   "fsub",          "fmul",       "fdiv",
               "frem", "fneg", "freeze", "insertelement", "insertvalue"})) {
    return type(0);
  }
  if (op == "select" || op == "atomicrmw") return type(1);
  if (IsCast(op)) {
    const size_t to = parts[0].rfind(" to ");
    return to == Text::npos ? "" : std::string(parts[0].substr(to + 4));
  }
  if (op == "icmp" || op == "fcmp") {
    const Text compared =
        ParseOperand(parts[0].substr(parts[0].find(' ') + 1)).type;
    if (!BeginsWith(compared, "<")) return "i1";
    return std::string(compared.substr(0, compared.find(" x "))) + " x i1>";
  }
  if (op == "getelementptr" && type(1) == "ptr") return "ptr";
  if (op == "extractelement")
    return std::string(ElementOf(ParseOperand(parts[0]).type));
  if (op == "shufflevector" && parts.size() > 2) {
    const Text mask = ParseOperand(parts[2]).type;
    return std::string(mask.substr(0, mask.find(" x ") + 3)) +
           std::string(ElementOf(ParseOperand(parts[0]).type)) + ">";
  }
  if (op == "call") {
    // "noundef float @sqrtf(": the word before the name, which has brackets
    // only if it is a vector's.
    const size_t at = FindOutside(rest, '@');
    if (at == rest.size() || at < 2) return "";
    Text before = rest.substr(0, at - 1);
    const size_t vector = before.rfind('<');
    if (before.back() == '>' && vector != Text::npos)
      return std::string(before.substr(vector));
    before = before.substr(before.rfind(' ') + 1);
    return before.back() == ')' || before.back() == '}' || before.back() == ']'
               ? ""
               : std::string(before);
  }
  // Its users have the type in front of it.
  const std::string& name = values_[value];
  for (const auto& user : instructions_) {
    if (user->op == "phi") {
      for (const Instruction::Incoming& each : user->incoming) {
        if (each.value == name) return TypeOf(user->value);
      }
    }
    if (std::find(user->uses.begin(), user->uses.end(), value) ==
            user->uses.end() ||
        !IsOneOf(user->op, {"load", "store", "getelementptr", "bitcast"})) {
      continue;
    }
    for (const Text part :
         SplitOutside(WithoutFlags(ArgumentsOf(*user)), ',')) {
      const Operand operand = ParseOperand(part);
      const Text used = operand.value.substr(0, operand.value.find(' '));
      if (used == name) return std::string(operand.type);
    }
  }
  return "";
}

}  // namespace switchyard::device::metal
