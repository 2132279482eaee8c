// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/region_writer.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/src/shim/switchyard_abi.h"

namespace switchyard::device::metal {
namespace {

using Crossing = RegionPlan::Crossing;
namespace abi = switchyard_metal;

constexpr char kGroupType[] = "%\"struct.switchyard_metal::Group\"";
constexpr char kCutsType[] = "%\"struct.switchyard_metal::Cuts\"";

std::string Number(size_t n) { return std::to_string(n); }

// The crew's memory is aligned so.
constexpr size_t kContextAlignment = 64;

// Writes the regions of one kernel.
class Writer {
 public:
  Writer(const LlvmFunction& function, const RegionPlan& plan,
         const Writing& writing)
      : f_(function), plan_(plan), w_(writing) {}

  std::string Write() {
    if (!FindPlaces()) return "";
    for (size_t r = 0; r < plan_.starts.size(); ++r) WriteRegion(r);
    WriteTable();
    return std::move(out_);
  }

 private:
  // Values and arrays that cross have places in the context or in what is
  // shared. The first ones are for how lanes meet, and for the region that is
  // next.
  bool FindPlaces() {
    std::string context = "{ [1024 x { i8*, i8*, i8*, i32 }]";
    if (!w_.typed_pointers) context = "{ [1024 x { ptr, ptr, ptr, i32 }]";
    std::string shared = "{ i32";
    size_t in_context = 1, in_shared = 1;
    types_.resize(f_.values().size());
    places_.resize(f_.values().size());
    for (size_t v = 0; v < types_.size(); ++v) {
      const Instruction* const made = f_.definition(v);
      if (made != nullptr && made->op == "alloca") {
        // One of another length than one, or elsewhere, may be any number.
        const std::vector<Text> parts = SplitOutside(
            Text(made->code).substr(made->code.find("alloca ") + 7), ',');
        size_t bytes = 1;
        if (parts.size() > 1 && BeginsWith(parts[1], "align ")) {
          bytes = std::strtoul(std::string(parts[1].substr(6)).c_str(), nullptr,
                               10);
        }
        if (f_.block_of(v) != 0 || BeginsWith(parts[0], "inalloca") ||
            parts.size() > (bytes > 1 ? 2 : 1) || bytes > kContextAlignment) {
          return false;
        }
        types_[v] = parts[0];
        context += ", [1024 x " + Aligned(types_[v], bytes) + "]";
        places_[v] = in_context++;
        continue;
      }
      if (!Crosses(v)) continue;
      types_[v] = f_.TypeOf(v);
      if (types_[v].empty()) return false;
      if (plan_.crossing[v].how == Crossing::kShared) {
        shared += ", " + types_[v];
        places_[v] = in_shared++;
      } else if (plan_.crossing[v].how != Crossing::kComputed) {
        context += ", [1024 x " + types_[v] + "]";
        places_[v] = in_context++;
      }
    }
    const std::string number = Number(w_.kernel);
    context_type_ = "%swy.context." + number;
    shared_type_ = "%swy.shared." + number;
    out_ += context_type_ + " = type " + context + " }\n" + shared_type_ +
            " = type " + shared + " }\n";
    return true;
  }

  // A type whose elements in an array are all aligned as "align 16" says, which
  // Clang's accesses count on.
  static std::string Aligned(const std::string& type, size_t bytes) {
    const std::string word = bytes < 16 ? "i" + Number(8 * bytes)
                                        : "<" + Number(bytes / 8) + " x i64>";
    return "{ " + type + ", [0 x " + word + "] }";
  }
  void Line(const std::string& text) { out_ += "  " + text + "\n"; }
  std::string Label(size_t block) const {
    return "%b." + f_.blocks()[block].label;
  }
  // The value itself, the variable that it is in where it crosses, and, of a
  // phi of that kind, the one for what comes in.
  std::string Plain(size_t v) const {
    return v == 0 ? "%thread" : "%v." + f_.values()[v].substr(1);
  }
  std::string Variable(size_t v) const {
    return "%a." + f_.values()[v].substr(1);
  }
  std::string Incoming(size_t v) const {
    return "%in." + f_.values()[v].substr(1);
  }
  bool Crosses(size_t v) const {
    return plan_.crossing[v].how != Crossing::kNone;
  }

  std::string Access() const { return ", !llvm.access.group " + w_.accesses; }
  std::string Load(const std::string& type, const std::string& from) {
    const std::string name = "%u." + Number(next_++);
    Line(name + " = load " + type + ", " + w_.PointerTo(type) + " " + from +
         Access());
    return name;
  }
  void Store(const std::string& type, const std::string& value,
             const std::string& to) {
    Line("store " + type + " " + value + ", " + w_.PointerTo(type) + " " + to +
         Access());
  }
  // The value as an operand of what is written next.
  std::string Use(size_t v) {
    return Crosses(v) ? Load(types_[v], Variable(v)) : Plain(v);
  }
  std::string UseText(Text text) {
    return f_.Replace(text, [this](size_t v) { return Use(v); });
  }
  // A region reads what there was before it, for each row of threads, and
  // writes a copy.
  std::string SharedPlace(size_t field, const char* of = "%made") {
    const std::string name = "%p." + Number(next_++);
    Line(name + " = getelementptr inbounds " + shared_type_ + ", " +
         w_.PointerTo(shared_type_) + " " + of + ", i64 0, i32 " +
         Number(field));
    return name;
  }
  std::string ThreadsPlace(size_t field, const std::string& within = "") {
    const std::string name = "%p." + Number(next_++);
    Line(name + " = getelementptr inbounds " + context_type_ + ", " +
         w_.PointerTo(context_type_) + " %context, i64 0, i32 " +
         Number(field) + ", i64 %t" + within);
    return name;
  }

  // The blocks that the region has, in the function's order.
  std::vector<bool> BlocksFrom(size_t start) const {
    std::vector<bool> in(f_.blocks().size(), false);
    std::vector<size_t> left = {start};
    while (!left.empty()) {
      const size_t b = left.back();
      left.pop_back();
      if (in[b]) continue;
      in[b] = true;
      if (plan_.is_cut[b]) continue;
      left.insert(left.end(), f_.blocks()[b].successors.begin(),
                  f_.blocks()[b].successors.end());
    }
    return in;
  }

  size_t RegionAt(size_t from, size_t to) const {
    const auto found = std::find(plan_.starts.begin(), plan_.starts.end(),
                                 std::make_pair(from, to));
    return static_cast<size_t>(found - plan_.starts.begin());
  }

  void WriteRegion(size_t r) {
    const auto& start = plan_.starts[r];
    in_ = BlocksFrom(start.second);
    next_ = 0;
    const std::string i8 = w_.PointerTo("i8"),
                      thread = w_.PointerTo(w_.thread_type);
    out_ += "define internal i32 @swy_region_" + Number(w_.kernel) + "_" +
            Number(r) + "(" + thread + " %first, " + i8 +
            (plan_.stores_pointers ? "" : " noalias") + " %context.bytes, " +
            i8 + " noalias %shared.bytes, i64 %begin, i32 %width) " +
            w_.attributes + " {\nswy.entry:\n";
    Line("%thread = alloca " + w_.thread_type);
    for (size_t v = 0; v < types_.size(); ++v) {
      if (!Crosses(v)) continue;
      Line(Variable(v) + " = alloca " + types_[v]);
      if (f_.definition(v)->op == "phi") {
        Line(Incoming(v) + " = alloca " + types_[v]);
      }
    }
    Line("%context = bitcast " + i8 + " %context.bytes to " +
         w_.PointerTo(context_type_));
    Line("%shared = bitcast " + i8 + " %shared.bytes to " +
         w_.PointerTo(shared_type_));
    Line("%made = getelementptr inbounds " + shared_type_ + ", " +
         w_.PointerTo(shared_type_) + " %shared, i64 1");
    std::vector<std::string> fields;
    for (size_t field = 0; field < kFields; ++field) {
      fields.push_back("%f." + Number(field));
      Line("%first." + Number(field) + " = " + Field("%first", field));
      const std::string type = FieldType(field);
      Line(fields.back() + " = load " + type + ", " + w_.PointerTo(type) +
           " %first." + Number(field));
    }
    static const std::set<size_t> kNothing;
    const auto found = plan_.live.find(start);
    const std::set<size_t>& live =
        found == plan_.live.end() ? kNothing : found->second;
    std::unordered_map<size_t, std::string> shared;
    for (const size_t v : live) {
      if (plan_.crossing[v].how == Crossing::kShared) {
        shared[v] = Load(types_[v], SharedPlace(places_[v], "%shared"));
      }
    }
    Line("br label %swy.loop");
    out_ += "swy.loop:\n";
    Line("%x = phi i32 [ 0, %swy.entry ], [ %x.next, %swy.latch ]");
    Line("%x.wide = zext i32 %x to i64");
    Line("%t = add nuw nsw i64 %begin, %x.wide");
    for (size_t field = 0; field < kFields; ++field) {
      std::string value = fields[field];
      if (field == 1 || field == 4 || field == 7) {  // of x, and the index
        value = "%at." + Number(field);
        Line(value + " = add nuw i32 " + fields[field] + ", %x");
      }
      Line("%own." + Number(field) + " = " + Field("%thread", field));
      Store(FieldType(field), value, "%own." + Number(field));
    }
    for (size_t v = 0; v < types_.size(); ++v) {
      if (f_.definition(v) == nullptr || f_.definition(v)->op != "alloca")
        continue;
      const std::string place = ThreadsPlace(places_[v], ", i32 0");
      Line(Plain(v) + " = bitcast " + w_.PointerTo(types_[v]) + " " + place +
           " to " + w_.PointerTo(types_[v]));
    }
    computed_.clear();
    for (const size_t v : live) {
      switch (plan_.crossing[v].how) {
        case Crossing::kShared:
          Store(types_[v], shared[v], Variable(v));
          break;
        case Crossing::kSaved:
          Store(types_[v], Load(types_[v], ThreadsPlace(places_[v])),
                Variable(v));
          break;
        case Crossing::kComputed:
          Store(types_[v], Compute(v, shared), Variable(v));
          break;
        case Crossing::kNone:
          break;
      }
    }
    if (start.first != kNoIndex) {
      WriteIncoming(start.first, start.second);
    }
    Line("br label " + Label(start.second));
    size_t end = kNoIndex;
    for (size_t b = 0; b < in_.size(); ++b) {
      if (!in_[b]) continue;
      WriteBlock(b);
      if (plan_.is_cut[b]) end = b;
    }
    out_ += "swy.latch:\n";
    Line("%x.next = add nuw nsw i32 %x, 1");
    Line("%x.more = icmp ult i32 %x.next, %width");
    Line("br i1 %x.more, label %swy.loop, label %swy.exit, !llvm.loop " +
         w_.loop);
    out_ += "swy.exit:\n";
    WriteResult(end);
    out_ += "}\n";
  }

  // A thread's description: what it shares, three numbers, three, its index.
  static constexpr size_t kFields = 8;
  std::string FieldType(size_t field) const {
    return field != 0 ? "i32" : w_.PointerTo(kGroupType);
  }
  std::string Field(const std::string& of, size_t field) const {
    const char* const kPlaces[kFields] = {"0",        "1, i64 0", "1, i64 1",
                                          "1, i64 2", "2, i64 0", "2, i64 1",
                                          "2, i64 2", "3"};
    return "getelementptr inbounds " + w_.thread_type + ", " +
           w_.PointerTo(w_.thread_type) + " " + of + ", i64 0, i32 " +
           kPlaces[field];
  }

  // Computes a value once more, where the region begins.
  std::string Compute(size_t v,
                      const std::unordered_map<size_t, std::string>& shared) {
    if (v == 0) return "%thread";
    if (f_.definition(v)->op == "alloca") return Plain(v);
    const auto found = shared.find(v);
    if (found != shared.end()) return found->second;
    std::string& name = computed_[v];
    if (!name.empty()) return name;
    const Instruction& made = *f_.definition(v);
    const std::string code =
        f_.Replace(made.code, [&](size_t u) { return Compute(u, shared); });
    name = "%r." + f_.values()[v].substr(1);
    Line(name + " = " + code + (made.op == "load" ? Access() : ""));
    return name;
  }

  // Writes what the phis of `to` get on the edge: stores to those that are
  // variables, and loads of what others need.
  void WriteIncoming(size_t from, size_t to) {
    for (const Instruction* phi : f_.blocks()[to].code) {
      if (phi->op != "phi") continue;
      const std::string* const value = ComesIn(*phi, from);
      if (value == nullptr) continue;
      const size_t v = f_.Find(*value);
      if (Crosses(phi->value)) {
        Store(types_[phi->value], v == kNoIndex ? *value : Use(v),
              Incoming(phi->value));
      } else if (v != kNoIndex && Crosses(v)) {
        Line(PhiOperand(*phi, from) + " = load " + types_[v] + ", " +
             w_.PointerTo(types_[v]) + " " + Variable(v) + Access());
      }
    }
  }

  static const std::string* ComesIn(const Instruction& phi, size_t from) {
    for (const Instruction::Incoming& each : phi.incoming) {
      if (each.block == from) return &each.value;
    }
    return nullptr;
  }
  std::string PhiOperand(const Instruction& phi, size_t from) const {
    const std::string* const value = ComesIn(phi, from);
    const size_t v = f_.Find(*value);
    if (v == kNoIndex) return *value;
    if (!Crosses(v)) return Plain(v);
    return "%i." + f_.values()[phi.value].substr(1) + "." +
           f_.blocks()[from].label;
  }

  void WriteBlock(size_t b) {
    const Block& block = f_.blocks()[b];
    out_ += Label(b).substr(1) + ":\n";
    for (const Instruction* i : block.code) {
      if (i->op == "phi" && !Crosses(i->value)) WritePhi(*i);
    }
    for (const Instruction* i : block.code) {
      if (i->op == "alloca" || (i->op == "phi" && !Crosses(i->value))) continue;
      if (i->op == "phi") {
        const std::string& type = types_[i->value];
        Store(type, Load(type, Incoming(i->value)), Variable(i->value));
        continue;
      }
      std::string code = Code(*i);
      // The library knows of no thread that runs.
      if (i->Callee() == kLane) code = "and i32 %at.7, 31";
      if (i->op == "load" || i->op == "store") code += Access();
      Line((i->value == kNoIndex ? "" : Plain(i->value) + " = ") + code);
      if (i->value != kNoIndex && Crosses(i->value)) {
        Store(types_[i->value], Plain(i->value), Variable(i->value));
      }
    }
    if (plan_.is_cut[b]) return WriteCut(b);
    if (block.end->op == "ret") return Line("br label %swy.latch");
    const std::set<size_t> successors(block.successors.begin(),
                                      block.successors.end());
    for (const size_t s : successors) WriteIncoming(b, s);
    std::string code = Code(*block.end);
    for (size_t at = 0; (at = code.find("label %", at)) != std::string::npos;) {
      at += 7;
      code.insert(at, "b.");
    }
    Line(code);
  }

  std::string Code(const Instruction& i) {
    return f_.Replace(i.code, [this](size_t v) { return Use(v); });
  }

  void WritePhi(const Instruction& phi) {
    std::string entries;
    for (const Instruction::Incoming& each : phi.incoming) {
      if (!in_[each.block] || plan_.is_cut[each.block]) continue;
      entries += (entries.empty() ? "[ " : ", [ ") +
                 PhiOperand(phi, each.block) + ", " + Label(each.block) + " ]";
    }
    Line(Plain(phi.value) + " = phi " + f_.TypeOf(phi.value) + " " + entries);
  }

  // Saves what crosses, if the region has made it.
  void WriteCut(size_t b) {
    const Block& block = f_.blocks()[b];
    std::set<size_t> crosses;
    for (const size_t s : block.successors) {
      const std::set<size_t>& live = plan_.live.at({b, s});
      crosses.insert(live.begin(), live.end());
    }
    for (const size_t v : crosses) {
      if (f_.definition(v) == nullptr || !in_[f_.block_of(v)]) continue;
      if (plan_.crossing[v].how == Crossing::kShared) {
        Store(types_[v], Use(v), SharedPlace(places_[v]));
      } else if (plan_.crossing[v].how == Crossing::kSaved) {
        Store(types_[v], Use(v), ThreadsPlace(places_[v]));
      }
    }
    const Instruction& end = *block.end;
    if (end.op == "br") {
      const Text condition = SplitOutside(end.code, ',')[0];
      Store(
          "i32",
          Select(UseText(condition.substr(condition.rfind(' ') + 1)), b,
                 block.successors[0], Number(RegionAt(b, block.successors[1]))),
          SharedPlace(0));
    } else if (end.op == "switch") {
      // "switch i32 %1, label %2 [ i32 7, label %3 ... ]"
      const Text code = end.code;
      const std::string value = UseText(code.substr(
          code.find(" %") + 1, code.find(',') - code.find(" %") - 1));
      const Text type = ParseOperand(code.substr(7)).type;
      std::string next = Number(RegionAt(b, block.successors[0]));
      size_t at = code.find('[');
      for (size_t s = 1; s < block.successors.size(); ++s) {
        const size_t begin = code.find(type, at) + type.size() + 1;
        at = code.find("label", begin);
        const std::string is = "%u." + Number(next_++);
        Line(is + " = icmp eq " + std::string(type) + " " + value + ", " +
             std::string(code.substr(begin, code.find(',', begin) - begin)));
        next = Select(is, b, block.successors[s], next);
      }
      Store("i32", next, SharedPlace(0));
    } else if (end.Callee() == kSimd) {
      // The call gets one more argument, the place where it is noted.
      const std::string meeting = ThreadsPlace(0);
      const std::string type = w_.typed_pointers ? "{ i8*, i8*, i8*, i32 }"
                                                 : "{ ptr, ptr, ptr, i32 }";
      const std::string bytes = w_.PointerTo("i8");
      Line("%meeting = bitcast " + w_.PointerTo(type) + " " + meeting + " to " +
           bytes);
      std::string code = Code(end);
      code.replace(code.find(kSimd), Text(kSimd).size(), "@swy_note_meeting");
      code.insert(code.rfind(')'), ", " + bytes + " %meeting");
      Line(code);
    }
    Line("br label %swy.latch");
  }

  std::string Select(const std::string& condition, size_t from, size_t to,
                     const std::string& otherwise) {
    const std::string name = "%u." + Number(next_++);
    Line(name + " = select i1 " + condition + ", i32 " +
         Number(RegionAt(from, to)) + ", i32 " + otherwise);
    return name;
  }

  void WriteResult(size_t end) {
    if (end == kNoIndex) return Line("ret i32 " + Number(abi::kReturned));
    const Block& block = f_.blocks()[end];
    if (block.end->op != "call") {
      const std::string place = SharedPlace(0);
      Line("%next = load i32, " + w_.PointerTo("i32") + " " + place);
      return Line("ret i32 %next");
    }
    const size_t next = RegionAt(end, block.successors[0]);
    Line("ret i32 " +
         Number(next | (block.end->Callee() == kSimd ? abi::kLanesMeet : 0)));
  }

  void WriteTable() {
    const std::string kernel = Number(w_.kernel),
                      count = Number(plan_.starts.size());
    const std::string i8 = w_.PointerTo("i8");
    const std::string array = "[" + count + " x " + i8 + "]";
    out_ += "@swy_regions_" + kernel + " = internal constant " + array + " [";
    for (size_t r = 0; r < plan_.starts.size(); ++r) {
      const std::string name = "@swy_region_" + kernel + "_" + Number(r);
      out_ += (r == 0 ? "" : ", ") + i8 + " bitcast (" +
              (w_.typed_pointers ? "i32 (" + w_.PointerTo(w_.thread_type) +
                                       ", i8*, i8*, i64, i32)*"
                                 : std::string("ptr")) +
              " " + name + " to " + i8 + ")";
    }
    const auto size = [&](const std::string& type) {
      return "i64 ptrtoint (" + w_.PointerTo(type) + " getelementptr (" + type +
             ", " + w_.PointerTo(type) + " null, i32 1) to i64)";
    };
    out_ += "]\n@swy_cuts_" + kernel + " = hidden constant " + kCutsType +
            " { " + w_.PointerTo(i8) + " getelementptr inbounds (" + array +
            ", " + w_.PointerTo(array) + " @swy_regions_" + kernel +
            ", i64 0, i64 0), " + size(context_type_) + ", " +
            size(shared_type_) + " }\n";
  }

  const LlvmFunction& f_;
  const RegionPlan& plan_;
  const Writing& w_;
  std::string context_type_, shared_type_;
  std::vector<std::string> types_;  // of values that cross, and of arrays
  std::vector<size_t> places_;
  std::vector<bool> in_;  // the blocks of the region that is written
  std::unordered_map<size_t, std::string> computed_;
  size_t next_ = 0;  // of names
  std::string out_;
};

}  // namespace

std::string WriteRegions(const LlvmFunction& function, const RegionPlan& plan,
                         const Writing& writing) {
  return Writer(function, plan, writing).Write();
}

}  // namespace switchyard::device::metal
