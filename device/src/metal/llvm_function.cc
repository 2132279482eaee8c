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
void ForEachName(std::string_view text, const Function& function) {
  for (size_t at = 0; (at = text.find('%', at)) != std::string_view::npos;) {
    size_t end = at + 1;
    while (end < text.size() && IsNameCharacter(text[end])) ++end;
    function(at, end);
    at = end;
  }
}

// Returns the code without flags: "i32 %1" for "nuw nsw i32 %1".
std::string_view DropFlags(std::string_view code) {
  constexpr std::string_view kFlags[] = {
      "nuw",  "nsw",      "exact",    "fast",     "nnan",    "ninf",
      "nsz",  "arcp",     "afn",      "contract", "reassoc", "disjoint",
      "nneg", "samesign", "inbounds", "nusw",     "atomic",  "volatile"};
  for (;;) {
    const std::string_view word = code.substr(0, code.find(' '));
    if (std::find(std::begin(kFlags), std::end(kFlags), word) ==
        std::end(kFlags)) {
      return code;
    }
    code = code.substr(word.size() + 1);
  }
}

bool IsCast(std::string_view op) {
  return IsOpcode(op, {"trunc", "zext", "sext", "fptrunc", "fpext", "fptoui",
                       "fptosi", "uitofp", "sitofp", "ptrtoint", "inttoptr",
                       "bitcast", "addrspacecast"});
}

// Returns the element type of a vector type: "float" for "<4 x float>".
std::string_view FindElementType(std::string_view vector) {
  const size_t by = vector.find(" x ");
  if (!BeginsWith(vector, "<") || by == std::string_view::npos)
    return std::string_view();
  return vector.substr(by + 3, vector.size() - by - 4);
}

// Returns the instruction's code without its opcode.
std::string_view FindArguments(const Instruction& i) {
  const size_t begin =
      static_cast<size_t>(i.op.data() - i.code.data()) + i.op.size();
  return begin < i.code.size() ? std::string_view(i.code).substr(begin + 1)
                               : std::string_view();
}

}  // namespace

std::string_view Instruction::FindCallee() const {
  return op == "call" ? metal::FindCallee(code) : std::string_view();
}

std::optional<LlvmFunction> LlvmFunction::Read(
    std::string_view text,
    const std::function<bool(std::string_view)>& is_barrier) {
  LlvmFunction read;
  if (!read.ReadAll(text, is_barrier)) return std::nullopt;
  return read;
}

size_t LlvmFunction::Find(std::string_view name) const {
  const auto found = numbers_.find(std::string(name));
  return found == numbers_.end() ? kNoIndex : found->second;
}

std::string LlvmFunction::Replace(
    std::string_view code,
    const std::function<std::string(size_t)>& name) const {
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

bool LlvmFunction::ReadAll(
    std::string_view text,
    const std::function<bool(std::string_view)>& is_barrier) {
  const size_t body = text.find('\n') + 1;
  const std::string_view head = text.substr(0, body);
  const size_t open = head.find('(', head.find('@'));
  const std::string_view parameter =
      head.substr(open + 1, FindOutside(head.substr(open + 1), ')'));
  const std::string thread(parameter.substr(parameter.rfind(' ') + 1));
  if (!BeginsWith(thread, "%")) return false;
  const auto add = [this](std::string name) {
    numbers_[name] = values_.size();
    values_.push_back(std::move(name));
    definitions_.push_back(nullptr);
    blocks_of_.push_back(0);
  };
  add(thread);
  // Each line has one instruction: the lines of a switch are joined.
  std::vector<std::string> lines;
  bool in_switch = false;
  ForEachLine(text.substr(body), [&](std::string_view line) {
    if (in_switch) {
      lines.back().append(line);
      in_switch = line.find(']') == std::string_view::npos;
    } else if (!line.empty() && line != "}") {
      lines.emplace_back(line);
      in_switch = BeginsWith(line, "  switch ") && line.back() == '[';
    }
    if (BeginsWith(line, "  %"))
      add(std::string(line.substr(2, line.find(' ', 2) - 2)));
  });
  std::unordered_map<std::string, size_t> starts, ends;
  // A first block without a label has the next free number: 1 if the parameter
  // is %0, and 0 if the parameter has a name.
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
    Instruction& instruction = *instructions_.back();
    if (!ReadInstruction(line, instruction)) return false;
    if (instruction.code.empty()) continue;
    BasicBlock& block = blocks_.back();
    if (instruction.value != kNoIndex) {
      definitions_[instruction.value] = &instruction;
      blocks_of_[instruction.value] = blocks_.size() - 1;
    }
    const bool at_barrier =
        instruction.op == "call" && is_barrier(instruction.FindCallee());
    if (at_barrier ||
        IsOpcode(instruction.op, {"br", "switch", "ret", "unreachable"})) {
      block.terminator = &instruction;
    } else {
      block.instructions.push_back(&instruction);
    }
    ends[label] = blocks_.size() - 1;
    if (at_barrier) {
      block.successors.push_back(blocks_.size());
      blocks_.push_back(
          {label + "." + std::to_string(++parts), {}, nullptr, {}});
      ends[label] = blocks_.size() - 1;
    }
  }
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].terminator == nullptr || !ReadSuccessors(b, starts))
      return false;
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

// Reads an instruction. Leaves read.code empty if the instruction can be
// ignored. Returns false if the instruction has an unknown form.
bool LlvmFunction::ReadInstruction(std::string_view line, Instruction& read) {
  line = line.substr(line.find_first_not_of(' '));
  if (BeginsWith(line, "#dbg_")) return true;
  if (line[0] == '%') {
    const size_t end = line.find(" = ");
    read.value = Find(line.substr(0, end));
    if (end == std::string_view::npos || read.value == kNoIndex) return false;
    line = line.substr(end + 3);
  }
  std::string code(line);
  // The loop drops the instruction's source place, and also its metadata about
  // aliases, because these are true only within one thread.
  for (const char* const name :
       {", !dbg !", ", !noalias !", ", !alias.scope !", ", !tbaa !"}) {
    const size_t at = code.find(name);
    if (at == std::string::npos) continue;
    const size_t end = code.find_first_not_of(
        "0123456789", at + std::string_view(name).size());
    code.erase(at, end == std::string::npos ? end : end - at);
  }
  if (code.find("@llvm.dbg.") != std::string::npos ||
      code.find("@llvm.lifetime.") != std::string::npos ||
      code.find("@llvm.experimental.noalias") != std::string::npos) {
    return true;
  }
  read.code = std::move(code);
  std::string_view op = read.code;
  for (const std::string_view word : {"tail ", "musttail ", "notail "}) {
    if (BeginsWith(op, word)) op = op.substr(word.size());
  }
  read.op = op.substr(0, op.find(' '));
  if (IsOpcode(read.op,
               {"invoke", "callbr", "indirectbr", "resume", "va_arg"})) {
    return false;
  }
  if (read.op == "phi") {
    const std::string_view given =
        ParseOperand(DropFlags(FindArguments(read))).value;
    for (const std::string_view entry : SplitOutside(given, ',')) {
      if (entry[0] != '[') continue;
      const size_t comma = entry.rfind(", %");
      if (comma == std::string_view::npos) return false;
      const std::string_view label = entry.substr(comma + 3);
      read.incoming.push_back({std::string(entry.substr(2, comma - 2)),
                               std::string(label.substr(0, label.find(' '))),
                               kNoIndex});
    }
    return true;
  }
  ForEachName(read.code, [&](size_t begin, size_t end) {
    const size_t value =
        Find(std::string_view(read.code).substr(begin, end - begin));
    const bool is_label =
        begin >= 6 && read.code.compare(begin - 6, 6, "label ") == 0;
    if (value != kNoIndex && !is_label) read.uses.push_back(value);
  });
  return true;
}

bool LlvmFunction::ReadSuccessors(
    size_t block, const std::unordered_map<std::string, size_t>& starts) {
  BasicBlock& from = blocks_[block];
  if (from.ends_with_barrier()) return true;
  const std::string_view code = from.terminator->code;
  for (size_t at = 0;
       (at = code.find("label %", at)) != std::string_view::npos;) {
    size_t end = at += 7;
    while (end < code.size() && IsNameCharacter(code[end])) ++end;
    const auto found = starts.find(std::string(code.substr(at, end - at)));
    if (found == starts.end()) return false;
    from.successors.push_back(found->second);
  }
  return true;
}

std::string LlvmFunction::FindType(size_t value) const {
  const Instruction* const definition = definitions_[value];
  if (definition == nullptr) return "";
  const std::string_view op = definition->op,
                         rest = DropFlags(FindArguments(*definition));
  const std::vector<std::string_view> parts = SplitOutside(rest, ',');
  const auto type = [&](size_t part) {
    return part < parts.size() ? std::string(ParseOperand(parts[part]).type)
                               : "";
  };
  if (op == "load") return std::string(parts[0]);
  if (IsOpcode(op,
               {"phi",  "add",  "sub",    "mul",           "udiv",       "sdiv",
                "urem", "srem", "shl",    "lshr",          "ashr",       "and",
                "or",   "xor",  "fadd",   "fsub",          "fmul",       "fdiv",
                "frem", "fneg", "freeze", "insertelement", "insertvalue"})) {
    return type(0);
  }
  if (op == "select" || op == "atomicrmw") return type(1);
  if (IsCast(op)) {
    const size_t to = parts[0].rfind(" to ");
    return to == std::string_view::npos ? ""
                                        : std::string(parts[0].substr(to + 4));
  }
  if (op == "icmp" || op == "fcmp") {
    const std::string_view compared =
        ParseOperand(parts[0].substr(parts[0].find(' ') + 1)).type;
    if (!BeginsWith(compared, "<")) return "i1";
    return std::string(compared.substr(0, compared.find(" x "))) + " x i1>";
  }
  if (op == "getelementptr" && type(1) == "ptr") return "ptr";
  if (op == "extractelement")
    return std::string(FindElementType(ParseOperand(parts[0]).type));
  if (op == "shufflevector" && parts.size() > 2) {
    const std::string_view mask = ParseOperand(parts[2]).type;
    return std::string(mask.substr(0, mask.find(" x ") + 3)) +
           std::string(FindElementType(ParseOperand(parts[0]).type)) + ">";
  }
  if (op == "call") {
    // In "noundef float @sqrtf(" the type is the word before the name. Only a
    // vector type has brackets.
    const size_t at = FindOutside(rest, '@');
    if (at == rest.size() || at < 2) return "";
    std::string_view before = rest.substr(0, at - 1);
    const size_t vector = before.rfind('<');
    if (before.back() == '>' && vector != std::string_view::npos)
      return std::string(before.substr(vector));
    before = before.substr(before.rfind(' ') + 1);
    return before.back() == ')' || before.back() == '}' || before.back() == ']'
               ? ""
               : std::string(before);
  }
  // The definition does not give the type, so look for an instruction that
  // uses the value. In its text the type stands before the value.
  const std::string& name = values_[value];
  for (const auto& user : instructions_) {
    if (user->op == "phi") {
      for (const Instruction::Incoming& each : user->incoming) {
        if (each.value == name) return FindType(user->value);
      }
    }
    if (std::find(user->uses.begin(), user->uses.end(), value) ==
            user->uses.end() ||
        !IsOpcode(user->op, {"load", "store", "getelementptr", "bitcast"})) {
      continue;
    }
    for (const std::string_view part :
         SplitOutside(DropFlags(FindArguments(*user)), ',')) {
      const Operand operand = ParseOperand(part);
      const std::string_view used =
          operand.value.substr(0, operand.value.find(' '));
      if (used == name) return std::string(operand.type);
    }
  }
  return "";
}

}  // namespace switchyard::device::metal
