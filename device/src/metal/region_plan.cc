// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/region_plan.h"

#include <algorithm>
#include <initializer_list>

namespace switchyard::device::metal {
namespace {

using Crossing = RegionPlan::Crossing;

constexpr size_t kThread = 0;  // the value that is the parameter

bool IsOneOf(Text op, std::initializer_list<Text> all) {
  return std::find(all.begin(), all.end(), op) != all.end();
}

// Computes its result from its operands and nothing else.
bool IsPure(const Instruction& i) {
  return IsOneOf(
      i.op, {"add",           "sub",           "mul",          "udiv",
             "sdiv",          "urem",          "srem",         "shl",
             "lshr",          "ashr",          "and",          "or",
             "xor",           "fadd",          "fsub",         "fmul",
             "fdiv",          "frem",          "fneg",         "icmp",
             "fcmp",          "select",        "trunc",        "zext",
             "sext",          "fptrunc",       "fpext",        "fptoui",
             "fptosi",        "uitofp",        "sitofp",       "ptrtoint",
             "inttoptr",      "bitcast",       "freeze",       "extractelement",
             "insertelement", "shufflevector", "extractvalue", "insertvalue",
             "getelementptr"});
}

class Planner {
 public:
  explicit Planner(const LlvmFunction& function)
      : f_(function), blocks_(function.blocks()) {}

  std::optional<RegionPlan> Plan() {
    FindUniform();
    if (!FindCuts()) return std::nullopt;
    FindLive();
    FindCrossings();
    plan_.stores_pointers = StoresPointers();
    return std::move(plan_);
  }

 private:
  // True if a pointer is into the thread's own description.
  bool IsOfThread(size_t value) const {
    while (value != kThread) {
      const Instruction* const made = f_.definition(value);
      if (made == nullptr || made->uses.size() != 1 ||
          !IsOneOf(made->op, {"getelementptr", "bitcast"})) {
        return false;
      }
      value = made->uses[0];
    }
    return true;
  }
  bool IsPositionOfThread(const Instruction& i) const {
    return i.op == "load" && i.uses.size() == 1 && IsOfThread(i.uses[0]);
  }

  bool IsUniform(const Instruction& i) const {
    const auto all_uniform = [&] {
      return std::all_of(i.uses.begin(), i.uses.end(),
                         [&](size_t v) { return plan_.uniform[v]; });
    };
    if (i.op == "load") {
      if (IsPositionOfThread(i)) {
        // Its only pointer is to what the threadgroup shares.
        const std::string type = f_.TypeOf(i.value);
        return type == "ptr" || (!type.empty() && type.back() == '*');
      }
      const Text rest = Text(i.code).substr(i.code.find("load ") + 5);
      return !BeginsWith(rest, "atomic ") && !BeginsWith(rest, "volatile ") &&
             all_uniform();
    }
    if (i.op == "call") {
      const Text callee = i.Callee();
      return callee == "@swy_threadgroup_variable" ||
             ((callee == "@swy_not_bound" || BeginsWith(callee, "@llvm.")) &&
              all_uniform());
    }
    return IsPure(i) && all_uniform();
  }

  // The blocks from a branch on, where threads that have parted there may be
  // before all have come to the same block.
  std::vector<bool> Parted(size_t branch) const {
    std::vector<bool> in(blocks_.size(), false);
    const size_t join = joins_[branch];
    std::vector<size_t> left = blocks_[branch].successors;
    while (!left.empty()) {
      const size_t b = left.back();
      left.pop_back();
      if (b == join || in[b]) continue;
      in[b] = true;
      left.insert(left.end(), blocks_[b].successors.begin(),
                  blocks_[b].successors.end());
    }
    return in;
  }

  // The joins are immediate postdominators, the nearest blocks that all paths
  // go through; kNoIndex stands where paths end apart.
  void FindJoins() {
    const size_t n = blocks_.size();
    // Sets of postdominators: kernels have tens of blocks, seldom hundreds.
    std::vector<std::vector<bool>> after(n, std::vector<bool>(n, true));
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = n; b-- > 0;) {
        std::vector<bool> all(n, !blocks_[b].successors.empty());
        for (const size_t s : blocks_[b].successors) {
          for (size_t i = 0; i < n; ++i) all[i] = all[i] && after[s][i];
        }
        all[b] = true;
        changed = changed || all != after[b];
        after[b] = std::move(all);
      }
    }
    joins_.assign(n, kNoIndex);
    for (size_t b = 0; b < n; ++b) {
      for (size_t i = 0; i < n; ++i) {
        if (i == b || !after[b][i]) continue;
        // The nearest one is postdominated by all the others.
        const size_t old = joins_[b];
        if (old == kNoIndex || after[i][old]) joins_[b] = i;
      }
    }
  }

  // These are the blocks in which threads that have parted may be. A phi behind
  // them is uniform if all of these give it the same value.
  struct Parting {
    size_t branch, join;
    std::vector<bool> blocks;
  };
  static bool IsUniformAfter(const Parting& parting, const Instruction& phi) {
    const std::string* value = nullptr;
    for (const auto& each : phi.incoming) {
      if (!parting.blocks[each.block] && each.block != parting.branch) continue;
      if (value != nullptr && *value != each.value) return false;
      value = &each.value;
    }
    return true;
  }
  bool IsUniformPhi(const Instruction& phi, size_t block,
                    const std::vector<Parting>& partings) const {
    for (const auto& each : phi.incoming) {
      const size_t value = f_.Find(each.value);
      if (value != kNoIndex && !plan_.uniform[value]) return false;
    }
    return std::all_of(
        partings.begin(), partings.end(), [&](const Parting& parting) {
          return !parting.blocks[block] &&
                 (parting.join != block || IsUniformAfter(parting, phi));
        });
  }

  // All are, until one is found to come from a thread's position, from its own
  // memory or from a branch at which threads part.
  void FindUniform() {
    plan_.uniform.assign(f_.values().size(), true);
    plan_.uniform[kThread] = false;
    FindJoins();
    std::vector<Parting> partings;
    std::vector<bool> parts(blocks_.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = 0; b < blocks_.size(); ++b) {
        for (const Instruction* i : blocks_[b].code) {
          if (i->value == kNoIndex || !plan_.uniform[i->value]) continue;
          if (i->op == "phi" ? IsUniformPhi(*i, b, partings) : IsUniform(*i)) {
            continue;
          }
          plan_.uniform[i->value] = false;
          changed = true;
        }
        if (parts[b] || blocks_[b].successors.size() < 2 || Decides(b)) {
          continue;
        }
        parts[b] = changed = true;
        partings.push_back({b, joins_[b], Parted(b)});
      }
    }
  }

  // True if all threads go on to the same block.
  bool Decides(size_t block) const {
    const std::vector<size_t>& uses = blocks_[block].end->uses;
    return std::all_of(uses.begin(), uses.end(),
                       [&](size_t v) { return plan_.uniform[v]; });
  }

  // The result has, for each block, the cuts or the function's end that are
  // next on some path.
  std::vector<std::set<size_t>> NextCuts() const {
    constexpr size_t kReturned = kNoIndex;
    std::vector<std::set<size_t>> next(blocks_.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = blocks_.size(); b-- > 0;) {
        std::set<size_t> of;
        if (plan_.is_cut[b]) {
          of.insert(b);
        } else if (blocks_[b].end->op == "ret") {
          of.insert(kReturned);
        } else {
          for (const size_t s : blocks_[b].successors) {
            of.insert(next[s].begin(), next[s].end());
          }
        }
        changed = changed || of != next[b];
        next[b] = std::move(of);
      }
    }
    return next;
  }

  // A region ends where threads meet, and at each branch after which they may
  // meet at different places. False if threads may part there.
  bool FindCuts() {
    plan_.is_cut.assign(blocks_.size(), false);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      plan_.is_cut[b] = blocks_[b].end->op == "call";
    }
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<std::set<size_t>> next = NextCuts();
      for (size_t b = 0; b < blocks_.size(); ++b) {
        const std::vector<size_t>& to = blocks_[b].successors;
        // After different ones, no later cut is common to all paths.
        if (plan_.is_cut[b] || to.empty() ||
            std::all_of(to.begin(), to.end(), [&](size_t s) {
              return next[s] == next[to[0]] || next[s].empty();
            })) {
          continue;
        }
        if (!Decides(b)) return false;
        plan_.is_cut[b] = changed = true;
      }
    }
    plan_.starts.push_back({kNoIndex, 0});
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (!plan_.is_cut[b]) continue;
      const std::set<size_t> successors(blocks_[b].successors.begin(),
                                        blocks_[b].successors.end());
      for (const size_t s : successors) plan_.starts.push_back({b, s});
    }
    return true;
  }

  void FindLive() {
    std::vector<std::set<size_t>> in(blocks_.size());
    const auto on_edge = [&](size_t from, size_t to) {
      std::set<size_t> live = in[to];
      for (const Instruction* i : blocks_[to].code) {
        for (const auto& each : i->incoming) {
          const size_t value = f_.Find(each.value);
          if (each.block == from && value != kNoIndex) live.insert(value);
        }
      }
      return live;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = blocks_.size(); b-- > 0;) {
        std::set<size_t> live;
        for (const size_t s : blocks_[b].successors) {
          live.merge(on_edge(b, s));
        }
        live.insert(blocks_[b].end->uses.begin(), blocks_[b].end->uses.end());
        for (auto i = blocks_[b].code.rbegin(); i != blocks_[b].code.rend();
             ++i) {
          if ((*i)->value != kNoIndex) live.erase((*i)->value);
          live.insert((*i)->uses.begin(), (*i)->uses.end());
        }
        changed = changed || live != in[b];
        in[b] = std::move(live);
      }
    }
    for (const auto& start : plan_.starts) {
      if (start.first == kNoIndex) continue;
      plan_.live[start] = on_edge(start.first, start.second);
    }
  }

  // True if a region may compute it once more. `shared` gets the values that
  // this takes.
  bool IsComputed(size_t value, std::set<size_t>& shared, size_t& steps) const {
    constexpr size_t kMost = 32;
    if (plan_.uniform[value]) {
      shared.insert(value);
      return true;
    }
    const Instruction* const made = f_.definition(value);
    // Arrays of its own are where they are in each region.
    if (value == kThread || (made != nullptr && made->op == "alloca")) {
      return true;
    }
    if (made == nullptr || ++steps > kMost) return false;
    if (IsPositionOfThread(*made)) return true;
    // Each freeze of what is not defined may give something else.
    if (!IsPure(*made) || made->op == "freeze") return false;
    for (const size_t v : made->uses) {
      if (!IsComputed(v, shared, steps)) return false;
    }
    return true;
  }

  void FindCrossings() {
    plan_.crossing.assign(f_.values().size(), {});
    std::map<size_t, std::set<size_t>> takes;
    const auto add = [&](size_t value) {
      const Instruction* const made = f_.definition(value);
      Crossing& crossing = plan_.crossing[value].how;
      // An array of the thread's own has its place in the context anyway.
      if (made == nullptr || made->op == "alloca" ||
          crossing != Crossing::kNone)
        return;
      std::set<size_t> shared;
      size_t steps = 0;
      if (plan_.uniform[value]) {
        crossing = Crossing::kShared;
      } else if (made->op != "phi" && IsComputed(value, shared, steps)) {
        crossing = Crossing::kComputed;
        takes[value] = std::move(shared);
      } else {
        crossing = Crossing::kSaved;
      }
    };
    for (auto& edge : plan_.live) {
      for (const size_t value : edge.second) add(value);
    }
    for (const auto& start : plan_.starts) {
      if (start.first == kNoIndex) continue;
      for (const Instruction* i : blocks_[start.second].code) {
        if (i->op == "phi") add(i->value);
      }
    }
    for (auto& edge : plan_.live) {
      const std::set<size_t> crosses = edge.second;
      for (const size_t value : crosses) {
        for (const size_t v : takes[value]) {
          plan_.crossing[v].how = Crossing::kShared;
          edge.second.insert(v);
        }
      }
    }
  }

  // True if a pointer to an array of the thread's own may be read from memory.
  bool StoresPointers() const {
    std::vector<bool> points(f_.values().size(), false);
    bool stores = false;
    for (bool changed = true; changed && !stores;) {
      changed = false;
      for (const Block& block : blocks_) {
        for (const Instruction* i : block.code) {
          const auto is = [&](size_t v) { return points[v]; };
          const bool uses = std::any_of(i->uses.begin(), i->uses.end(), is) ||
                            std::any_of(i->incoming.begin(), i->incoming.end(),
                                        [&](const auto& each) {
                                          const size_t v = f_.Find(each.value);
                                          return v != kNoIndex && points[v];
                                        });
          if (i->op == "alloca" ||
              (uses && IsOneOf(i->op, {"getelementptr", "bitcast"}))) {
            changed = changed || !points[i->value];
            points[i->value] = true;
            // Saved, it is read by the next region.
            stores = stores || plan_.crossing[i->value].how == Crossing::kSaved;
          } else if (uses && i->op == "store") {
            // The first operand is what is stored.
            stores =
                stores || (i->uses.size() > 1 && points[i->uses[0]]) ||
                (i->uses.size() == 1 &&
                 i->code.find(f_.values()[i->uses[0]]) < i->code.find(','));
          } else if (uses && i->op != "load" &&
                     !BeginsWith(i->Callee(), "@llvm.")) {
            stores = true;
          }
        }
      }
    }
    return stores;
  }

  const LlvmFunction& f_;
  const std::vector<Block>& blocks_;
  std::vector<size_t> joins_;
  RegionPlan plan_;
};

}  // namespace

std::optional<RegionPlan> PlanRegions(const LlvmFunction& function) {
  return Planner(function).Plan();
}

}  // namespace switchyard::device::metal
