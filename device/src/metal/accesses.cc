// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/accesses.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "device/src/metal/llvm_text.h"

namespace switchyard::device::metal {
namespace {

// Returns the number of bits in a type, or 0 if only the compiler knows the
// number, as for a struct.
size_t BitsOf(std::string_view type) {
  if (type == "ptr" || (!type.empty() && type.back() == '*')) return 64;
  if (type == "half" || type == "bfloat") return 16;
  if (type == "float") return 32;
  if (type == "double") return 64;
  if (BeginsWith(type, "i")) {
    return ParseNumber(type.substr(1));
  }
  if (BeginsWith(type, "<")) {
    const size_t by = type.find(" x ");
    if (by == std::string_view::npos) return 0;
    const size_t bits = BitsOf(type.substr(by + 3, type.size() - by - 4));
    return bits * ParseNumber(type.substr(1));
  }
  return 0;
}

class AccessReader {
 public:
  AccessReader(std::string_view llvm, std::string* out)
      : llvm_(llvm), out_(out) {
    ForEachLine(llvm_, [this](std::string_view line) { ReadGlobals(line); });
  }

  Accesses Run() {
    ForEachLine(llvm_, [this](std::string_view line) {
      Line(line);
      if (out_ != nullptr) Append(line);
    });
    return counts_;
  }

 private:
  // Returns the value of `key` in a line "key: value, ...", or an empty text.
  static std::string_view Field(std::string_view line, std::string_view key) {
    const size_t at = line.find(key);
    if (at == std::string_view::npos) return std::string_view();
    const std::string_view value = line.substr(at + key.size());
    return value.substr(0, value.find_first_of(",)"));
  }

  // Reads a line outside of functions. The line may define the attributes of
  // checked functions ("attributes #4 = { ... sanitize_thread ... }"), a
  // constant, or a source place, a file or a scope (such as !7).
  void ReadGlobals(std::string_view line) {
    if (BeginsWith(line, "attributes #")) {
      if (line.find(" sanitize_thread ") == std::string_view::npos) return;
      checked_.insert(line.substr(11, line.find(' ', 11) - 11));
    } else if (BeginsWith(line, "@")) {
      const size_t equals = FindOutside(line, '=');
      if (equals != line.size() &&
          line.find(" constant ") < line.find(" global ")) {
        constants_.insert(line.substr(0, equals - 1));
      }
    } else if (BeginsWith(line, "!")) {
      const std::string_view name = line.substr(0, line.find(' '));
      if (line.find("!DILocation(") != std::string_view::npos) {
        locations_[name] = {Field(line, "scope: "), Field(line, "inlinedAt: ")};
      } else if (line.find("!DIFile(") != std::string_view::npos) {
        if (line.find("/shim-") != std::string_view::npos)
          shim_files_.insert(name);
      } else if (line.find("!DISubprogram(") != std::string_view::npos ||
                 line.find("!DILexicalBlock") != std::string_view::npos) {
        scopes_[name] = Field(line, "file: ");
      }
    }
  }

  // Returns the place in the shader. If Clang has inlined code of the shim,
  // its calls have places in the shim; the result is then the place where
  // that code was inlined.
  std::string_view InShader(std::string_view place) const {
    for (;;) {
      const auto found = locations_.find(place);
      if (found == locations_.end() || found->second.inlined_at.empty()) break;
      const auto scope = scopes_.find(found->second.scope);
      if (scope == scopes_.end() || shim_files_.count(scope->second) == 0)
        break;
      place = found->second.inlined_at;
    }
    return place;
  }

  void Append(std::string_view line) {
    const size_t place = line.find("!dbg !");
    if (place != std::string_view::npos &&
        line.find("@__tsan_") != std::string_view::npos) {
      out_->append(line.substr(0, place + 5))
          .append(InShader(line.substr(place + 5)))
          .append("\n");
    } else {
      AppendUnaligned(line);
    }
  }

  // Lowers alignments above 8 bytes to 8. GPUs accept vectors that are
  // aligned only like their elements. With an alignment of 8, no instruction
  // of this CPU faults on such vectors.
  void AppendUnaligned(std::string_view line) {
    const bool is_access = line.find(" load ") != std::string_view::npos ||
                           BeginsWith(line, "  store ") ||
                           line.find("@llvm.mem") != std::string_view::npos;
    for (size_t at;
         is_access && (at = line.find(" align ")) != std::string_view::npos;) {
      const size_t end =
          std::min(line.find_first_not_of("0123456789", at + 7), line.size());
      const bool is_more = end - at > 8;  // the alignment is 16, 32, ...
      out_->append(line.substr(0, is_more ? at : end));
      if (is_more) out_->append(" align 8");
      line = line.substr(end);
    }
    out_->append(line).append("\n");
  }

  void Line(std::string_view line) {
    if (BeginsWith(line, "define ")) {
      in_checked_ = false;
      definitions_.clear();
      const size_t close = line.rfind(')');
      for (const std::string_view word :
           SplitOutside(line.substr(close + 1), ' ')) {
        in_checked_ = in_checked_ || checked_.count(word) != 0;
      }
      calls_.clear();
      return;
    }
    if (line == "}") in_checked_ = false;
    if (!in_checked_ || !BeginsWith(line, "  ")) return;
    std::string_view code = line.substr(line.find_first_not_of(' '));
    if (BeginsWith(code, "#dbg_") ||
        code.find("call void @llvm.dbg.") != std::string_view::npos) {
      return;
    }
    std::string_view name;
    if (code[0] == '%') {
      const size_t equals = FindOutside(code, '=');
      if (equals != code.size()) {
        name = code.substr(0, equals - 1);
        code = code.substr(equals + 2);
      }
    }
    if (BeginsWith(code, "load ") || BeginsWith(code, "store ")) {
      Access(code, line);
    } else if (code.find("@llvm.mem") != std::string_view::npos) {
      Memory(code, line);
    } else if (IsUnknownAccess(code)) {
      Refuse(line);
    } else if (BeginsWith(code, "alloca ") ||
               BeginsWith(code, "getelementptr ") ||
               BeginsWith(code, "bitcast ")) {
      definitions_[name] = code;
      // A bitcast may stand between the call and the access.
      if (BeginsWith(code, "bitcast ")) return;
    }
    if (code.find("@__tsan_aligned(") != std::string_view::npos) return;
    if (code.find("call ") != std::string_view::npos &&
        code.find("@__tsan_") != std::string_view::npos) {
      calls_.push_back(code);
    } else {
      calls_.clear();
    }
  }

  // True for accesses that Clang always replaces with calls. If the text still
  // has such an access, Line() refuses the text.
  static bool IsUnknownAccess(std::string_view code) {
    return code.find("@llvm.masked.") != std::string_view::npos ||
           BeginsWith(code, "atomicrmw ") || BeginsWith(code, "cmpxchg ");
  }

  void Access(std::string_view code, std::string_view line) {
    const bool is_load = code[0] == 'l';
    code = code.substr(is_load ? 5 : 6);
    for (const std::string_view word : {"atomic ", "volatile "}) {
      if (BeginsWith(code, word)) code = code.substr(word.size());
    }
    const std::vector<std::string_view> parts = SplitOutside(code, ',');
    if (parts.size() < 2) Refuse(line);
    const std::string_view type =
        is_load ? parts[0] : ParseOperand(parts[0]).type;
    const Operand pointer = ParseOperand(parts[1]);
    if (pointer.value.empty()) Refuse(line);
    const size_t bits = BitsOf(type);
    const std::string of(pointer.type);
    Note({is_load, pointer,
          bits != 0
              ? std::to_string((bits + 7) / 8)
              : "ptrtoint (" + of + " getelementptr (" + std::string(type) +
                    ", " + of + " null, i64 1) to i64)",
          // Clang's calls for accesses of up to 8 bytes imply this alignment.
          std::min<size_t>(bits / 8, 8)},
         parts, line);
  }

  // Reads a line such as "call void @llvm.memcpy.p0.p0.i64(ptr align 4 %1,
  // ptr %2, i64 5, i1 false)".
  void Memory(std::string_view code, std::string_view line) {
    const size_t open = code.find('(', code.find("@llvm.mem"));
    const size_t close = FindOutside(code, '!', open);
    const std::vector<std::string_view> behind =
        SplitOutside(code.substr(close), ',');
    const std::vector<std::string_view> given = SplitOutside(
        code.substr(open + 1, code.rfind(')', close) - open - 1), ',');
    if (given.size() < 3) Refuse(line);
    const bool is_copy = code.find("@llvm.memset") == std::string_view::npos;
    const std::string bytes(ParseOperand(given[2]).value);
    for (size_t i = is_copy ? 2 : 1; i-- > 0;) {
      std::vector<std::string_view> parts = behind;
      const size_t align = given[i].find("align ");
      if (align != std::string_view::npos) {
        const size_t end = given[i].find(' ', align + 6);
        parts.push_back(given[i].substr(align, end - align));
      }
      const Operand pointer = {given[i].substr(0, given[i].find(' ')),
                               given[i].substr(FindValue(given[i]))};
      Note({i == 1, pointer, bytes, 1}, parts, line);
    }
  }

  // Finds where the value begins in an argument such as "i8* align 4 %1". The
  // value may be a constant expression, which contains blanks: "i8* align 4
  // bitcast ([2 x i32]* @table to i8*)".
  static size_t FindValue(std::string_view argument) {
    const size_t expression =
        std::min(argument.find(" bitcast ("), argument.find(" getelementptr "));
    return std::min(expression, argument.rfind(' ')) + 1;
  }

  struct Noted {
    bool is_load;
    Operand pointer;
    std::string bytes;
    size_t told;  // the alignment that Clang's call implies
  };
  void Note(const Noted& access, const std::vector<std::string_view>& parts,
            std::string_view line) {
    const std::string_view pointer = access.pointer.value;
    ++counts_.all;
    if (IsOwnOrConstant(pointer, access.is_load)) {
      ++counts_.need_none;
      return;
    }
    size_t alignment = 0;
    for (const std::string_view part : parts) {
      if (!BeginsWith(part, "align ")) continue;
      alignment = ParseNumber(part.substr(6));
    }
    if (out_ != nullptr && alignment > access.told) {
      Call("aligned", access.pointer, std::to_string(alignment), parts);
    }
    if (IsCalled(pointer)) {
      ++counts_.by_clang;
    } else if (out_ == nullptr) {
      Refuse(line);
    } else {
      ++counts_.added;
      Call(access.is_load ? "read_range" : "write_range", access.pointer,
           access.bytes, parts);
    }
  }

  // True if one of the __tsan_ calls directly before the access has the right
  // argument: the pointer, a bitcast of it, or a constant expression that
  // contains it.
  bool IsCalled(std::string_view pointer) const {
    const auto is = [&](std::string_view value) {
      for (size_t at = 0;
           (at = value.find(pointer, at)) != std::string_view::npos; ++at) {
        const size_t end = at + pointer.size();
        const std::string_view ends =
            end < value.size() ? value.substr(end, 1) : " ";
        if (ends == " " || ends == ")" || ends == ",") return true;
      }
      return false;
    };
    for (const std::string_view call : calls_) {
      const size_t begin = call.find('(', call.find("@__tsan_")) + 1;
      const std::string_view given =
          ParseOperand(
              call.substr(begin, FindOutside(call, ',', begin) - begin))
              .value;
      if (is(given)) return true;
      const auto found = definitions_.find(NameIn(given));
      if (found != definitions_.end() &&
          BeginsWith(found->second, "bitcast ") && is(found->second)) {
        return true;
      }
    }
    return false;
  }

  // Returns the name at the beginning of a value: "%4" for "%4)".
  static std::string_view NameIn(std::string_view value) {
    return value.substr(0, value.find_first_of(" ),"));
  }

  // True if the pointer is to a thread's own variable (alloca), or to a
  // constant that is loaded. Such accesses need no check, and Clang puts no
  // __tsan_ calls before them.
  bool IsOwnOrConstant(std::string_view pointer, bool is_load) const {
    for (int steps = 0; steps < 1000; ++steps) {
      if (BeginsWith(pointer, "getelementptr ") ||
          BeginsWith(pointer, "bitcast ")) {
        // The pointer may be a constant expression with a global's name.
        const size_t at = pointer.find('@');
        if (at == std::string_view::npos) return false;
        pointer = NameIn(pointer.substr(at));
      }
      if (BeginsWith(pointer, "@")) {
        return is_load && constants_.count(pointer) != 0;
      }
      const auto found = definitions_.find(pointer);
      if (found == definitions_.end()) return false;
      const std::string_view code = found->second;
      if (BeginsWith(code, "alloca ")) return true;
      if (BeginsWith(code, "bitcast ")) {
        pointer = ParseOperand(code.substr(8)).value;
        pointer = pointer.substr(0, pointer.rfind(" to "));
      } else {
        const std::vector<std::string_view> parts = SplitOutside(code, ',');
        if (parts.size() < 2) return false;
        pointer = ParseOperand(parts[1]).value;
      }
    }
    return false;
  }

  // Adds the line "call void @__tsan_name(pointer, i64 value)", with the
  // source place of the access.
  void Call(const char* name, const Operand& pointer, const std::string& value,
            const std::vector<std::string_view>& parts) {
    std::string place;
    for (const std::string_view part : parts) {
      if (!BeginsWith(part, "!dbg ")) continue;
      place = ", !dbg " + std::string(InShader(part.substr(5)));
    }
    const std::string of(pointer.type), at(pointer.value);
    std::string address = of + " " + at;
    if (of != "ptr" && of != "i8*") {
      const std::string cast = "%swy.access." + std::to_string(next_++);
      out_->append("  " + cast + " = bitcast " + of + " " + at + " to i8*" +
                   place + "\n");
      address = "i8* " + cast;
    }
    out_->append(std::string("  call void @__tsan_") + name + "(" + address +
                 ", i64 " + value + ")" + place + "\n");
  }

  [[noreturn]] void Refuse(std::string_view line) const {
    throw std::runtime_error(
        "metal_compiler: an access that checked mode would not see:" +
        std::string(line));
  }

  const std::string_view llvm_;
  std::string* const out_;  // null if accesses are only counted
  Accesses counts_;
  std::unordered_set<std::string_view> checked_, constants_, shim_files_;
  struct Location {
    std::string_view scope, inlined_at;
  };
  std::unordered_map<std::string_view, Location> locations_;
  std::unordered_map<std::string_view, std::string_view>
      scopes_;  // from a scope to its file
  bool in_checked_ = false;
  std::unordered_map<std::string_view, std::string_view> definitions_;
  size_t next_ = 0;  // the number in the next name
  // The calls directly before the current line.
  std::vector<std::string_view> calls_;
};

}  // namespace

Accesses InstrumentRest(std::string& llvm) {
  std::string out;
  out.reserve(llvm.size() + llvm.size() / 16);
  const Accesses counts = AccessReader(llvm, &out).Run();
  const Accesses after = CountAccesses(out);
  if (after.all != counts.all ||
      after.by_clang != counts.by_clang + counts.added) {
    throw std::runtime_error("metal_compiler: checked mode would see " +
                             std::to_string(after.by_clang) + " of " +
                             std::to_string(counts.all) + " accesses");
  }
  llvm = std::move(out);
  return counts;
}

Accesses CountAccesses(const std::string& llvm) {
  return AccessReader(llvm, nullptr).Run();
}

}  // namespace switchyard::device::metal
