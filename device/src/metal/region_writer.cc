// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/region_writer.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/src/shim/switchyard_abi.h"

namespace switchyard::device::metal {
namespace {

using Transfer = RegionPlan::Transfer;
namespace abi = switchyard_metal;

constexpr char kGroupType[] = "%\"struct.switchyard_metal::Group\"";
constexpr char kCutsType[] = "%\"struct.switchyard_metal::Cuts\"";

std::string Number(size_t n) { return std::to_string(n); }

// The alignment of the memory that Crew passes to regions.
constexpr size_t kContextAlignment = 64;

class RegionWriter {
 public:
  RegionWriter(const LlvmFunction& function, const RegionPlan& plan,
               const RegionNames& names)
      : f_(function), plan_(plan), names_(names) {}

  std::string Write() {
    if (!AssignSlots()) return "";
    for (size_t r = 0; r < plan_.entries.size(); ++r) EmitRegion(r);
    EmitTable();
    return std::move(out_);
  }

 private:
  std::string PointerTo(const std::string& type) const {
    return names_.PointerTo(type);
  }

  // Assigns places in memory, called slots. Spilled values and private arrays
  // get slots in the context, uniform live values in the copy that the
  // threadgroup shares. The first slots are for the barriers of SIMD-groups,
  // and for the number of the next region.
  bool AssignSlots() {
    std::string context = "{ [1024 x { i8*, i8*, i8*, i32 }]";
    if (!names_.typed_pointers) context = "{ [1024 x { ptr, ptr, ptr, i32 }]";
    std::string shared = "{ i32";
    size_t in_context = 1, in_shared = 1;
    types_.resize(f_.values().size());
    slots_.resize(f_.values().size());
    for (size_t v = 0; v < types_.size(); ++v) {
      const Instruction* const definition = f_.definition(v);
      if (definition != nullptr && definition->op == "alloca") {
        // Kernels are not cut if they have an array of variable length, or an
        // alloca in a loop, which may run any number of times.
        const std::vector<std::string_view> parts =
            SplitOutside(std::string_view(definition->code)
                             .substr(definition->code.find("alloca ") + 7),
                         ',');
        size_t bytes = 1;
        if (parts.size() > 1 && BeginsWith(parts[1], "align ")) {
          bytes = ParseNumber(parts[1].substr(6));
        }
        if (f_.block_of(v) != 0 || BeginsWith(parts[0], "inalloca") ||
            parts.size() > (bytes > 1 ? 2 : 1) || bytes > kContextAlignment) {
          return false;
        }
        types_[v] = parts[0];
        context += ", [1024 x " + AlignType(types_[v], bytes) + "]";
        slots_[v] = in_context++;
        continue;
      }
      if (!IsTransferred(v)) continue;
      types_[v] = f_.FindType(v);
      if (types_[v].empty()) return false;
      if (plan_.values[v].transfer == Transfer::kShared) {
        shared += ", " + types_[v];
        slots_[v] = in_shared++;
      } else if (plan_.values[v].transfer != Transfer::kRematerialized) {
        context += ", [1024 x " + types_[v] + "]";
        slots_[v] = in_context++;
      }
    }
    const std::string number = Number(names_.kernel);
    context_type_ = "%swy.context." + number;
    shared_type_ = "%swy.shared." + number;
    out_ += context_type_ + " = type " + context + " }\n" + shared_type_ +
            " = type " + shared + " }\n";
    return true;
  }

  // Returns a struct type that contains `type` and is aligned to `bytes`
  // bytes. In an array of such structs, each element is aligned. Clang's
  // accesses, such as a load with "align 16", rely on this alignment.
  static std::string AlignType(const std::string& type, size_t bytes) {
    const std::string word = bytes < 16 ? "i" + Number(8 * bytes)
                                        : "<" + Number(bytes / 8) + " x i64>";
    return "{ " + type + ", [0 x " + word + "] }";
  }
  void Emit(const std::string& text) { out_ += "  " + text + "\n"; }
  std::string NameLabel(size_t block) const {
    return "%b." + f_.blocks()[block].label;
  }
  // The following functions return names: of a value, of a live value's
  // variable, and of the variable that holds a live phi's next value.
  std::string NameValue(size_t v) const {
    return v == 0 ? "%thread" : "%v." + f_.values()[v].substr(1);
  }
  std::string NameVariable(size_t v) const {
    return "%a." + f_.values()[v].substr(1);
  }
  std::string NameIncoming(size_t v) const {
    return "%in." + f_.values()[v].substr(1);
  }
  bool IsTransferred(size_t v) const {
    return plan_.values[v].transfer != Transfer::kNone;
  }

  std::string AccessGroup() const {
    return ", !llvm.access.group " + names_.accesses;
  }
  std::string EmitLoad(const std::string& type, const std::string& from) {
    const std::string name = "%u." + Number(next_++);
    Emit(name + " = load " + type + ", " + PointerTo(type) + " " + from +
         AccessGroup());
    return name;
  }
  void EmitStore(const std::string& type, const std::string& value,
                 const std::string& to) {
    Emit("store " + type + " " + value + ", " + PointerTo(type) + " " + to +
         AccessGroup());
  }
  // Emits code that loads a live value, and returns the operand's name. Other
  // values need no load.
  std::string EmitUse(size_t v) {
    return IsTransferred(v) ? EmitLoad(types_[v], NameVariable(v))
                            : NameValue(v);
  }
  std::string EmitUses(std::string_view text) {
    return f_.Replace(text, [this](size_t v) { return EmitUse(v); });
  }
  // Returns the address of a uniform live value. `of` names the copy: %shared
  // has the old values, and %made the new ones. There are two copies, because a
  // region runs once for each row of threads, and each run reads the old
  // values.
  std::string EmitSharedSlot(size_t field, const char* of = "%made") {
    const std::string name = "%p." + Number(next_++);
    Emit(name + " = getelementptr inbounds " + shared_type_ + ", " +
         PointerTo(shared_type_) + " " + of + ", i64 0, i32 " + Number(field));
    return name;
  }
  // Returns the address of this thread's element of a spilled value or a
  // private array.
  std::string EmitSpillSlot(size_t field, const std::string& within = "") {
    const std::string name = "%p." + Number(next_++);
    Emit(name + " = getelementptr inbounds " + context_type_ + ", " +
         PointerTo(context_type_) + " %context, i64 0, i32 " + Number(field) +
         ", i64 %t" + within);
    return name;
  }

  // Finds the blocks of the region that begins with block `start`.
  std::vector<bool> FindBlocks(size_t start) const {
    std::vector<bool> in(f_.blocks().size(), false);
    std::vector<size_t> left = {start};
    while (!left.empty()) {
      const size_t b = left.back();
      left.pop_back();
      if (in[b]) continue;
      in[b] = true;
      if (plan_.ends_region[b]) continue;
      left.insert(left.end(), f_.blocks()[b].successors.begin(),
                  f_.blocks()[b].successors.end());
    }
    return in;
  }

  size_t FindRegion(size_t from, size_t to) const {
    const auto found = std::find(plan_.entries.begin(), plan_.entries.end(),
                                 std::make_pair(from, to));
    return static_cast<size_t>(found - plan_.entries.begin());
  }

  // Emits a region as a function. The function loops over the threads of a
  // row, and runs the region for each.
  void EmitRegion(size_t r) {
    const auto& entry = plan_.entries[r];
    in_region_ = FindBlocks(entry.second);
    next_ = 0;
    EmitHead(r);
    const auto found = plan_.live.find(entry);
    const std::set<size_t> live =
        found == plan_.live.end() ? std::set<size_t>() : found->second;
    std::unordered_map<size_t, std::string> shared;
    for (const size_t v : live) {
      if (plan_.values[v].transfer == Transfer::kShared) {
        shared[v] = EmitLoad(types_[v], EmitSharedSlot(slots_[v], "%shared"));
      }
    }
    Emit("br label %swy.loop");
    out_ += "swy.loop:\n";
    Emit("%x = phi i32 [ 0, %swy.entry ], [ %x.next, %swy.latch ]");
    Emit("%x.wide = zext i32 %x to i64");
    Emit("%t = add nuw nsw i64 %begin, %x.wide");
    EmitThread();
    EmitLiveValues(live, shared);
    if (entry.first != kNoIndex) {
      EmitIncoming(entry.first, entry.second);
    }
    Emit("br label " + NameLabel(entry.second));
    size_t end = kNoIndex;
    for (size_t b = 0; b < in_region_.size(); ++b) {
      if (!in_region_[b]) continue;
      EmitBlock(b);
      if (plan_.ends_region[b]) end = b;
    }
    out_ += "swy.latch:\n";
    Emit("%x.next = add nuw nsw i32 %x, 1");
    Emit("%x.more = icmp ult i32 %x.next, %width");
    Emit("br i1 %x.more, label %swy.loop, label %swy.exit, !llvm.loop " +
         names_.loop);
    out_ += "swy.exit:\n";
    EmitResult(end);
    out_ += "}\n";
  }

  // Emits the function's head and the beginning of its entry block. The loads
  // of live values follow.
  void EmitHead(size_t r) {
    const std::string i8 = PointerTo("i8"),
                      thread = PointerTo(names_.thread_type);
    out_ += "define internal i32 @swy_region_" + Number(names_.kernel) + "_" +
            Number(r) + "(" + thread + " %first, " + i8 +
            (plan_.private_pointers_escape ? "" : " noalias") +
            " %context.bytes, " + i8 +
            " noalias %shared.bytes, i64 %begin, i32 %width) " +
            names_.attributes + " {\nswy.entry:\n";
    Emit("%thread = alloca " + names_.thread_type);
    for (size_t v = 0; v < types_.size(); ++v) {
      if (!IsTransferred(v)) continue;
      Emit(NameVariable(v) + " = alloca " + types_[v]);
      if (f_.definition(v)->op == "phi") {
        Emit(NameIncoming(v) + " = alloca " + types_[v]);
      }
    }
    Emit("%context = bitcast " + i8 + " %context.bytes to " +
         PointerTo(context_type_));
    Emit("%shared = bitcast " + i8 + " %shared.bytes to " +
         PointerTo(shared_type_));
    Emit("%made = getelementptr inbounds " + shared_type_ + ", " +
         PointerTo(shared_type_) + " %shared, i64 1");
    for (size_t field = 0; field < kFields; ++field) {
      Emit("%first." + Number(field) + " = " + FormatField("%first", field));
      const std::string type = FindFieldType(field);
      Emit("%f." + Number(field) + " = load " + type + ", " + PointerTo(type) +
           " %first." + Number(field));
    }
  }

  // Emits code that makes the description of the loop's current thread, and
  // computes the addresses of its private arrays.
  void EmitThread() {
    for (size_t field = 0; field < kFields; ++field) {
      std::string value = "%f." + Number(field);
      // Fields 1, 4 and 7 (two positions, and the index) depend on x.
      if (field == 1 || field == 4 || field == 7) {
        value = "%at." + Number(field);
        Emit(value + " = add nuw i32 %f." + Number(field) + ", %x");
      }
      Emit("%own." + Number(field) + " = " + FormatField("%thread", field));
      EmitStore(FindFieldType(field), value, "%own." + Number(field));
    }
    for (size_t v = 0; v < types_.size(); ++v) {
      if (f_.definition(v) == nullptr || f_.definition(v)->op != "alloca")
        continue;
      const std::string place = EmitSpillSlot(slots_[v], ", i32 0");
      Emit(NameValue(v) + " = bitcast " + PointerTo(types_[v]) + " " + place +
           " to " + PointerTo(types_[v]));
    }
  }

  // Emits the variables of the live values. A uniform value is loaded once,
  // before the loop.
  void EmitLiveValues(const std::set<size_t>& live,
                      const std::unordered_map<size_t, std::string>& shared) {
    rematerialized_.clear();
    for (const size_t v : live) {
      switch (plan_.values[v].transfer) {
        case Transfer::kShared:
          EmitStore(types_[v], shared.at(v), NameVariable(v));
          break;
        case Transfer::kSpilled:
          EmitStore(types_[v], EmitLoad(types_[v], EmitSpillSlot(slots_[v])),
                    NameVariable(v));
          break;
        case Transfer::kRematerialized:
          EmitStore(types_[v], Rematerialize(v, shared), NameVariable(v));
          break;
        case Transfer::kNone:
          break;
      }
    }
  }

  // The number of fields in a thread's description: its threadgroup, two
  // positions of three numbers each, and its index.
  static constexpr size_t kFields = 8;
  std::string FindFieldType(size_t field) const {
    return field != 0 ? "i32" : PointerTo(kGroupType);
  }
  std::string FormatField(const std::string& of, size_t field) const {
    const char* const kPlaces[kFields] = {"0",        "1, i64 0", "1, i64 1",
                                          "1, i64 2", "2, i64 0", "2, i64 1",
                                          "2, i64 2", "3"};
    return "getelementptr inbounds " + names_.thread_type + ", " +
           PointerTo(names_.thread_type) + " " + of + ", i64 0, i32 " +
           kPlaces[field];
  }

  // Emits code at the start of the region that computes the value again.
  std::string Rematerialize(
      size_t v, const std::unordered_map<size_t, std::string>& shared) {
    if (v == 0) return "%thread";
    if (f_.definition(v)->op == "alloca") return NameValue(v);
    const auto found = shared.find(v);
    if (found != shared.end()) return found->second;
    std::string& name = rematerialized_[v];
    if (!name.empty()) return name;
    const Instruction& definition = *f_.definition(v);
    const std::string code = f_.Replace(
        definition.code, [&](size_t u) { return Rematerialize(u, shared); });
    name = "%r." + f_.values()[v].substr(1);
    Emit(name + " = " + code + (definition.op == "load" ? AccessGroup() : ""));
    return name;
  }

  // Emits code for the edge from block `from` to block `to`, which prepares
  // the new values of the phis in `to`. It stores the new value of a live phi
  // in a variable. For another phi, it loads the new value if that is a live
  // value.
  void EmitIncoming(size_t from, size_t to) {
    for (const Instruction* phi : f_.blocks()[to].instructions) {
      if (phi->op != "phi") continue;
      const std::string* const value = FindIncoming(*phi, from);
      if (value == nullptr) continue;
      const size_t v = f_.Find(*value);
      if (IsTransferred(phi->value)) {
        EmitStore(types_[phi->value], v == kNoIndex ? *value : EmitUse(v),
                  NameIncoming(phi->value));
      } else if (v != kNoIndex && IsTransferred(v)) {
        Emit(NamePhiOperand(*phi, from) + " = load " + types_[v] + ", " +
             PointerTo(types_[v]) + " " + NameVariable(v) + AccessGroup());
      }
    }
  }

  static const std::string* FindIncoming(const Instruction& phi, size_t from) {
    for (const Instruction::Incoming& each : phi.incoming) {
      if (each.block == from) return &each.value;
    }
    return nullptr;
  }
  std::string NamePhiOperand(const Instruction& phi, size_t from) const {
    const std::string* const value = FindIncoming(phi, from);
    const size_t v = f_.Find(*value);
    if (v == kNoIndex) return *value;
    if (!IsTransferred(v)) return NameValue(v);
    return "%i." + f_.values()[phi.value].substr(1) + "." +
           f_.blocks()[from].label;
  }

  void EmitBlock(size_t b) {
    const BasicBlock& block = f_.blocks()[b];
    out_ += NameLabel(b).substr(1) + ":\n";
    for (const Instruction* i : block.instructions) {
      if (i->op == "phi" && !IsTransferred(i->value)) EmitPhi(*i);
    }
    for (const Instruction* i : block.instructions) {
      if (i->op == "alloca" || (i->op == "phi" && !IsTransferred(i->value)))
        continue;
      if (i->op == "phi") {
        const std::string& type = types_[i->value];
        EmitStore(type, EmitLoad(type, NameIncoming(i->value)),
                  NameVariable(i->value));
        continue;
      }
      std::string code = EmitOperands(*i);
      // swy_lane() would ask the runtime, which does not know which thread of
      // a work-item loop runs. So the loop computes the lane itself.
      if (i->FindCallee() == kLane) code = "and i32 %at.7, 31";
      if (i->op == "load" || i->op == "store") code += AccessGroup();
      Emit((i->value == kNoIndex ? "" : NameValue(i->value) + " = ") + code);
      if (i->value != kNoIndex && IsTransferred(i->value)) {
        EmitStore(types_[i->value], NameValue(i->value),
                  NameVariable(i->value));
      }
    }
    if (plan_.ends_region[b]) return EmitEnd(b);
    if (block.terminator->op == "ret") return Emit("br label %swy.latch");
    const std::set<size_t> successors(block.successors.begin(),
                                      block.successors.end());
    for (const size_t s : successors) EmitIncoming(b, s);
    std::string code = EmitOperands(*block.terminator);
    for (size_t at = 0; (at = code.find("label %", at)) != std::string::npos;) {
      at += 7;
      code.insert(at, "b.");
    }
    Emit(code);
  }

  std::string EmitOperands(const Instruction& i) {
    return f_.Replace(i.code, [this](size_t v) { return EmitUse(v); });
  }

  void EmitPhi(const Instruction& phi) {
    std::string entries;
    for (const Instruction::Incoming& each : phi.incoming) {
      if (!in_region_[each.block] || plan_.ends_region[each.block]) continue;
      entries += (entries.empty() ? "[ " : ", [ ") +
                 NamePhiOperand(phi, each.block) + ", " +
                 NameLabel(each.block) + " ]";
    }
    Emit(NameValue(phi.value) + " = phi " + f_.FindType(phi.value) + " " +
         entries);
  }

  // Emits code for the end of a region. It spills values that are defined in
  // the region and live behind it, and stores which region is next.
  void EmitEnd(size_t b) {
    const BasicBlock& block = f_.blocks()[b];
    std::set<size_t> live;
    for (const size_t s : block.successors) {
      const std::set<size_t>& at_entry = plan_.live.at({b, s});
      live.insert(at_entry.begin(), at_entry.end());
    }
    for (const size_t v : live) {
      if (f_.definition(v) == nullptr || !in_region_[f_.block_of(v)]) continue;
      if (plan_.values[v].transfer == Transfer::kShared) {
        EmitStore(types_[v], EmitUse(v), EmitSharedSlot(slots_[v]));
      } else if (plan_.values[v].transfer == Transfer::kSpilled) {
        EmitStore(types_[v], EmitUse(v), EmitSpillSlot(slots_[v]));
      }
    }
    const Instruction& end = *block.terminator;
    if (end.op == "br") {
      const std::string_view condition = SplitOutside(end.code, ',')[0];
      EmitStore("i32",
                EmitSelect(EmitUses(condition.substr(condition.rfind(' ') + 1)),
                           b, block.successors[0],
                           Number(FindRegion(b, block.successors[1]))),
                EmitSharedSlot(0));
    } else if (end.op == "switch") {
      // The code is "switch i32 %1, label %2 [ i32 7, label %3 ... ]".
      const std::string_view code = end.code;
      const std::string value = EmitUses(code.substr(
          code.find(" %") + 1, code.find(',') - code.find(" %") - 1));
      const std::string_view type = ParseOperand(code.substr(7)).type;
      std::string next = Number(FindRegion(b, block.successors[0]));
      size_t at = code.find('[');
      for (size_t s = 1; s < block.successors.size(); ++s) {
        const size_t begin = code.find(type, at) + type.size() + 1;
        at = code.find("label", begin);
        const std::string is = "%u." + Number(next_++);
        Emit(is + " = icmp eq " + std::string(type) + " " + value + ", " +
             std::string(code.substr(begin, code.find(',', begin) - begin)));
        next = EmitSelect(is, b, block.successors[s], next);
      }
      EmitStore("i32", next, EmitSharedSlot(0));
    } else if (end.FindCallee() == kSimd) {
      // The call gets one more argument: the slot where it notes its
      // operation.
      const std::string meeting = EmitSpillSlot(0);
      const std::string type = names_.typed_pointers ? "{ i8*, i8*, i8*, i32 }"
                                                     : "{ ptr, ptr, ptr, i32 }";
      const std::string bytes = PointerTo("i8");
      Emit("%meeting = bitcast " + PointerTo(type) + " " + meeting + " to " +
           bytes);
      std::string code = EmitOperands(end);
      code.replace(code.find(kSimd), std::string_view(kSimd).size(),
                   "@swy_note_meeting");
      code.insert(code.rfind(')'), ", " + bytes + " %meeting");
      Emit(code);
    }
    Emit("br label %swy.latch");
  }

  std::string EmitSelect(const std::string& condition, size_t from, size_t to,
                         const std::string& otherwise) {
    const std::string name = "%u." + Number(next_++);
    Emit(name + " = select i1 " + condition + ", i32 " +
         Number(FindRegion(from, to)) + ", i32 " + otherwise);
    return name;
  }

  void EmitResult(size_t end) {
    if (end == kNoIndex) return Emit("ret i32 " + Number(abi::kReturned));
    const BasicBlock& block = f_.blocks()[end];
    if (!block.ends_with_barrier()) {
      const std::string place = EmitSharedSlot(0);
      Emit("%next = load i32, " + PointerTo("i32") + " " + place);
      return Emit("ret i32 %next");
    }
    const size_t next = FindRegion(end, block.successors[0]);
    Emit("ret i32 " + Number(next | (block.terminator->FindCallee() == kSimd
                                         ? abi::kLanesMeet
                                         : 0)));
  }

  void EmitTable() {
    const std::string kernel = Number(names_.kernel),
                      count = Number(plan_.entries.size());
    const std::string i8 = PointerTo("i8");
    const std::string array = "[" + count + " x " + i8 + "]";
    out_ += "@swy_regions_" + kernel + " = internal constant " + array + " [";
    for (size_t r = 0; r < plan_.entries.size(); ++r) {
      const std::string name = "@swy_region_" + kernel + "_" + Number(r);
      out_ += (r == 0 ? "" : ", ") + i8 + " bitcast (" +
              (names_.typed_pointers ? "i32 (" + PointerTo(names_.thread_type) +
                                           ", i8*, i8*, i64, i32)*"
                                     : std::string("ptr")) +
              " " + name + " to " + i8 + ")";
    }
    const auto size = [&](const std::string& type) {
      return "i64 ptrtoint (" + PointerTo(type) + " getelementptr (" + type +
             ", " + PointerTo(type) + " null, i32 1) to i64)";
    };
    out_ += "]\n@swy_cuts_" + kernel + " = hidden constant " + kCutsType +
            " { " + PointerTo(i8) + " getelementptr inbounds (" + array + ", " +
            PointerTo(array) + " @swy_regions_" + kernel + ", i64 0, i64 0), " +
            size(context_type_) + ", " + size(shared_type_) + " }\n";
  }

  const LlvmFunction& f_;
  const RegionPlan& plan_;
  const RegionNames& names_;
  std::string context_type_, shared_type_;
  // The types of live values and private arrays.
  std::vector<std::string> types_;
  std::vector<size_t> slots_;
  std::vector<bool> in_region_;  // true for each block of the current region
  std::unordered_map<size_t, std::string> rematerialized_;
  size_t next_ = 0;  // the number in the next name
  std::string out_;
};

}  // namespace

std::string WriteRegions(const LlvmFunction& function, const RegionPlan& plan,
                         const RegionNames& names) {
  return RegionWriter(function, plan, names).Write();
}

}  // namespace switchyard::device::metal
