// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/region_plan.h"

#include <algorithm>
#include <initializer_list>

namespace switchyard::device::metal {
namespace {

using Transfer = RegionPlan::Transfer;

constexpr size_t kThread = 0;  // the index of the parameter's value

// True if the instruction's result depends only on its operands.
bool IsPure(const Instruction& i) {
  return IsOpcode(
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

class RegionPlanner {
 public:
  explicit RegionPlanner(const LlvmFunction& function)
      : f_(function), blocks_(function.blocks()) {}

  std::optional<RegionPlan> Plan() {
    FindUniform();
    if (!FindEnds()) return std::nullopt;
    FindLiveValues();
    ChooseTransfers();
    plan_.private_pointers_escape = PrivatePointersEscape();
    return std::move(plan_);
  }

 private:
  // True for a pointer into the function's parameter, which describes the
  // thread.
  bool PointsIntoThread(size_t value) const {
    while (value != kThread) {
      const Instruction* const definition = f_.definition(value);
      if (definition == nullptr || definition->uses.size() != 1 ||
          !IsOpcode(definition->op, {"getelementptr", "bitcast"})) {
        return false;
      }
      value = definition->uses[0];
    }
    return true;
  }
  // True for a load of the thread's position, or of the pointer to its
  // threadgroup.
  bool LoadsPosition(const Instruction& i) const {
    return i.op == "load" && i.uses.size() == 1 && PointsIntoThread(i.uses[0]);
  }

  bool IsUniform(const Instruction& i) const {
    const auto all_uniform = [&] {
      return std::all_of(i.uses.begin(), i.uses.end(),
                         [&](size_t v) { return plan_.is_uniform[v]; });
    };
    if (i.op == "load") {
      if (LoadsPosition(i)) {
        // The thread's description has only one pointer: the one to the
        // threadgroup.
        const std::string type = f_.FindType(i.value);
        return type == "ptr" || (!type.empty() && type.back() == '*');
      }
      const std::string_view rest =
          std::string_view(i.code).substr(i.code.find("load ") + 5);
      return !BeginsWith(rest, "atomic ") && !BeginsWith(rest, "volatile ") &&
             all_uniform();
    }
    if (i.op == "call") {
      const std::string_view callee = i.FindCallee();
      return callee == "@swy_threadgroup_variable" ||
             ((callee == "@swy_not_bound" || BeginsWith(callee, "@llvm.")) &&
              all_uniform());
    }
    return IsPure(i) && all_uniform();
  }

  // Returns the influence region of a divergent branch. It consists of the
  // blocks between the branch and the block where threads reconverge.
  std::vector<bool> FindInfluence(size_t branch) const {
    std::vector<bool> in(blocks_.size(), false);
    const size_t join = post_dominators_[branch];
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

  // Finds the immediate postdominator of each block: the nearest block that
  // all paths from it go through. Threads reconverge there. It is kNoIndex if
  // paths end in different blocks.
  void FindPostDominators() {
    const size_t n = blocks_.size();
    // Sets of postdominators are fast enough, because kernels have tens of
    // blocks, seldom hundreds.
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
    post_dominators_.assign(n, kNoIndex);
    for (size_t b = 0; b < n; ++b) {
      for (size_t i = 0; i < n; ++i) {
        if (i == b || !after[b][i]) continue;
        // The immediate postdominator is the block that all other
        // postdominators postdominate.
        const size_t old = post_dominators_[b];
        if (old == kNoIndex || after[i][old]) post_dominators_[b] = i;
      }
    }
  }

  struct DivergentBranch {
    size_t block, join;  // the branch's block, and its immediate postdominator
    // True for each block of the influence region.
    std::vector<bool> influence;
  };
  // A phi at the join is uniform if it gets the same value from all blocks of
  // the influence region.
  static bool IsUniformAfter(const DivergentBranch& branch,
                             const Instruction& phi) {
    const std::string* value = nullptr;
    for (const auto& each : phi.incoming) {
      if (!branch.influence[each.block] && each.block != branch.block) continue;
      if (value != nullptr && *value != each.value) return false;
      value = &each.value;
    }
    return true;
  }
  bool IsUniformPhi(const Instruction& phi, size_t block,
                    const std::vector<DivergentBranch>& branches) const {
    for (const auto& each : phi.incoming) {
      const size_t value = f_.Find(each.value);
      if (value != kNoIndex && !plan_.is_uniform[value]) return false;
    }
    return std::all_of(
        branches.begin(), branches.end(), [&](const DivergentBranch& branch) {
          return !branch.influence[block] &&
                 (branch.join != block || IsUniformAfter(branch, phi));
        });
  }

  // Does the divergence analysis. All values count as uniform until one is
  // found to depend on a thread's position, on its own memory or on a
  // divergent branch.
  void FindUniform() {
    plan_.is_uniform.assign(f_.values().size(), true);
    plan_.is_uniform[kThread] = false;
    FindPostDominators();
    std::vector<DivergentBranch> branches;
    std::vector<bool> is_divergent(blocks_.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = 0; b < blocks_.size(); ++b) {
        for (const Instruction* i : blocks_[b].instructions) {
          if (i->value == kNoIndex || !plan_.is_uniform[i->value]) continue;
          if (i->op == "phi" ? IsUniformPhi(*i, b, branches) : IsUniform(*i)) {
            continue;
          }
          plan_.is_uniform[i->value] = false;
          changed = true;
        }
        if (is_divergent[b] || blocks_[b].successors.size() < 2 ||
            IsUniformBranch(b)) {
          continue;
        }
        is_divergent[b] = changed = true;
        branches.push_back({b, post_dominators_[b], FindInfluence(b)});
      }
    }
  }

  // True if all threads take the same successor of the block.
  bool IsUniformBranch(size_t block) const {
    const std::vector<size_t>& uses = blocks_[block].terminator->uses;
    return std::all_of(uses.begin(), uses.end(),
                       [&](size_t v) { return plan_.is_uniform[v]; });
  }

  // For each block, returns the ends that come first on the paths from this
  // block. An end is a block that ends a region, or the end of the function.
  std::vector<std::set<size_t>> FindNextEnds() const {
    constexpr size_t kReturned = kNoIndex;
    std::vector<std::set<size_t>> next(blocks_.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = blocks_.size(); b-- > 0;) {
        std::set<size_t> of;
        if (plan_.ends_region[b]) {
          of.insert(b);
        } else if (blocks_[b].terminator->op == "ret") {
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

  // Marks the blocks that end a region: at a barrier, and at each branch that
  // decides which barrier is next. Returns false if such a branch is
  // divergent.
  bool FindEnds() {
    plan_.ends_region.assign(blocks_.size(), false);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      plan_.ends_region[b] = blocks_[b].ends_with_barrier();
    }
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<std::set<size_t>> next = FindNextEnds();
      for (size_t b = 0; b < blocks_.size(); ++b) {
        const std::vector<size_t>& to = blocks_[b].successors;
        // If the paths from the successors come to different ends first, this
        // branch decides which barrier is next.
        if (plan_.ends_region[b] || to.empty() ||
            std::all_of(to.begin(), to.end(), [&](size_t s) {
              return next[s] == next[to[0]] || next[s].empty();
            })) {
          continue;
        }
        if (!IsUniformBranch(b)) return false;
        plan_.ends_region[b] = changed = true;
      }
    }
    plan_.entries.push_back({kNoIndex, 0});
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (!plan_.ends_region[b]) continue;
      const std::set<size_t> successors(blocks_[b].successors.begin(),
                                        blocks_[b].successors.end());
      for (const size_t s : successors) plan_.entries.push_back({b, s});
    }
    return true;
  }

  // Does the liveness analysis: goes backwards over the blocks until nothing
  // changes.
  void FindLiveValues() {
    std::vector<std::set<size_t>> in(blocks_.size());
    const auto on_edge = [&](size_t from, size_t to) {
      std::set<size_t> live = in[to];
      for (const Instruction* i : blocks_[to].instructions) {
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
        live.insert(blocks_[b].terminator->uses.begin(),
                    blocks_[b].terminator->uses.end());
        for (auto i = blocks_[b].instructions.rbegin();
             i != blocks_[b].instructions.rend(); ++i) {
          if ((*i)->value != kNoIndex) live.erase((*i)->value);
          live.insert((*i)->uses.begin(), (*i)->uses.end());
        }
        changed = changed || live != in[b];
        in[b] = std::move(live);
      }
    }
    for (const auto& entry : plan_.entries) {
      if (entry.first == kNoIndex) continue;
      plan_.live[entry] = on_edge(entry.first, entry.second);
    }
  }

  // True if a region can compute the value again. Adds to `shared` the
  // uniform values that this computation needs.
  bool CanRematerialize(size_t value, std::set<size_t>& shared,
                        size_t& steps) const {
    constexpr size_t kMost = 32;
    if (plan_.is_uniform[value]) {
      shared.insert(value);
      return true;
    }
    const Instruction* const definition = f_.definition(value);
    // Private arrays are available in each region, because the context keeps
    // them at the same place.
    if (value == kThread ||
        (definition != nullptr && definition->op == "alloca")) {
      return true;
    }
    if (definition == nullptr || ++steps > kMost) return false;
    if (LoadsPosition(*definition)) return true;
    // A freeze of an undefined value must not be repeated, because it may
    // give another value each time.
    if (!IsPure(*definition) || definition->op == "freeze") return false;
    for (const size_t v : definition->uses) {
      if (!CanRematerialize(v, shared, steps)) return false;
    }
    return true;
  }

  // Decides how live values reach the next region. Only values that are
  // divergent and cannot be rematerialized are spilled.
  void ChooseTransfers() {
    plan_.values.assign(f_.values().size(), {});
    std::map<size_t, std::set<size_t>> needs;
    const auto add = [&](size_t value) {
      const Instruction* const definition = f_.definition(value);
      Transfer& transfer = plan_.values[value].transfer;
      // The context keeps private arrays in any case.
      if (definition == nullptr || definition->op == "alloca" ||
          transfer != Transfer::kNone)
        return;
      std::set<size_t> shared;
      size_t steps = 0;
      if (plan_.is_uniform[value]) {
        transfer = Transfer::kShared;
      } else if (definition->op != "phi" &&
                 CanRematerialize(value, shared, steps)) {
        transfer = Transfer::kRematerialized;
        needs[value] = std::move(shared);
      } else {
        transfer = Transfer::kSpilled;
      }
    };
    for (auto& edge : plan_.live) {
      for (const size_t value : edge.second) add(value);
    }
    for (const auto& entry : plan_.entries) {
      if (entry.first == kNoIndex) continue;
      for (const Instruction* i : blocks_[entry.second].instructions) {
        if (i->op == "phi") add(i->value);
      }
    }
    for (auto& edge : plan_.live) {
      const std::set<size_t> live = edge.second;
      for (const size_t value : live) {
        for (const size_t v : needs[value]) {
          plan_.values[v].transfer = Transfer::kShared;
          edge.second.insert(v);
        }
      }
    }
  }

  // Does the escape analysis: true if the kernel may load a pointer to a
  // private array from memory.
  bool PrivatePointersEscape() const {
    std::vector<bool> is_private(f_.values().size(),
                                 false);  // has an element for each value
    bool escapes = false;
    for (bool changed = true; changed && !escapes;) {
      changed = false;
      for (const BasicBlock& block : blocks_) {
        for (const Instruction* i : block.instructions) {
          const auto is = [&](size_t v) { return is_private[v]; };
          const bool has_private =
              std::any_of(i->uses.begin(), i->uses.end(), is) ||
              std::any_of(i->incoming.begin(), i->incoming.end(),
                          [&](const auto& each) {
                            const size_t v = f_.Find(each.value);
                            return v != kNoIndex && is_private[v];
                          });
          if (i->op == "alloca" ||
              (has_private && IsOpcode(i->op, {"getelementptr", "bitcast"}))) {
            changed = changed || !is_private[i->value];
            is_private[i->value] = true;
            // A spilled pointer escapes, because the next region loads it
            // from memory.
            escapes = escapes ||
                      plan_.values[i->value].transfer == Transfer::kSpilled;
          } else if (has_private && i->op == "store") {
            // A stored pointer escapes. The first operand of a store is the
            // stored value.
            escapes =
                escapes || (i->uses.size() > 1 && is_private[i->uses[0]]) ||
                (i->uses.size() == 1 &&
                 i->code.find(f_.values()[i->uses[0]]) < i->code.find(','));
          } else if (has_private && i->op != "load" &&
                     !BeginsWith(i->FindCallee(), "@llvm.")) {
            escapes = true;
          }
        }
      }
    }
    return escapes;
  }

  const LlvmFunction& f_;
  const std::vector<BasicBlock>& blocks_;
  std::vector<size_t> post_dominators_;
  RegionPlan plan_;
};

}  // namespace

std::optional<RegionPlan> PlanRegions(const LlvmFunction& function) {
  return RegionPlanner(function).Plan();
}

}  // namespace switchyard::device::metal
