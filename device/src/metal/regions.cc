// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/regions.h"

#include <cctype>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "device/src/metal/llvm_function.h"
#include "device/src/metal/region_plan.h"
#include "device/src/metal/region_writer.h"

namespace switchyard::device::metal {
namespace {

std::string Number(size_t n) { return std::to_string(n); }

// The functions of a module, and the functions that each function calls.
struct Functions {
  struct Function {
    std::string_view text;
    bool calls_unknown = false;  // true if it calls a function by pointer
    std::vector<std::string_view> calls;
  };
  std::unordered_map<std::string_view, Function> all;
  // Each kernel's number and name.
  std::vector<std::pair<size_t, std::string_view>> kernels;
  std::unordered_map<std::string_view, std::string_view>
      attributes;                   // "#4", "{ ... }"
  size_t metadata = 0, groups = 0;  // the first numbers that are free
};

// Returns the number in a kernel's name: 0 for
// "@_ZL9swy_run_0RKN16switchyard_metal6ThreadE".
size_t ParseKernelNumber(std::string_view name) {
  constexpr std::string_view kRun = "swy_run_";
  const size_t at = name.find(kRun);
  if (at == std::string_view::npos || at + kRun.size() >= name.size() ||
      name.find("switchyard_metal") == std::string_view::npos) {
    return kNoIndex;
  }
  return ParseNumber(name.substr(at + kRun.size()));
}

std::string_view FindName(std::string_view define) {
  const size_t at = define.find('@');
  return define.substr(at, define.find('(', at) - at);
}

// True for functions of the shim that Clang must not inline before this pass,
// because the pass looks for their calls.
bool IsMarker(std::string_view name) {
  return name == kBarrier || name == kSimdgroupBarrier || name == kSimd ||
         name == kVariable || name == kNotBound || name == kFail ||
         name == kLane;
}

// True for barriers. A SIMD-group function is a barrier, too, because lanes
// exchange values in it.
bool IsBarrier(std::string_view name) {
  return name == kBarrier || name == kSimdgroupBarrier || name == kSimd;
}

Functions ReadFunctions(std::string_view llvm) {
  Functions read;
  Functions::Function* in = nullptr;
  std::string_view begin;
  ForEachLine(llvm, [&](std::string_view line) {
    if (BeginsWith(line, "define ")) {
      const std::string_view name = FindName(line);
      in = &read.all[name];
      begin = line;
      if (ParseKernelNumber(name) != kNoIndex)
        read.kernels.push_back({ParseKernelNumber(name), name});
    } else if (line == "}" && in != nullptr) {
      in->text = std::string_view(
          begin.data(), static_cast<size_t>(line.end() - begin.data()));
      in = nullptr;
    } else if (in != nullptr) {
      const size_t at = line.find("call ");
      if (at == std::string_view::npos) return;
      const std::string_view callee = FindCallee(line.substr(at));
      if (callee.empty()) {
        in->calls_unknown = true;
      } else {
        in->calls.push_back(callee);
      }
    } else if (BeginsWith(line, "attributes #")) {
      const size_t end = line.find(' ', 11);
      read.attributes[line.substr(11, end - 11)] = line.substr(line.find('{'));
      read.groups = std::max(read.groups, ParseNumber(line.substr(12)) + 1);
    } else if (BeginsWith(line, "!") && line.size() > 1 &&
               std::isdigit(static_cast<unsigned char>(line[1])) != 0) {
      read.metadata = std::max(read.metadata, ParseNumber(line.substr(1)) + 1);
    }
  });
  return read;
}

// True if a function that a kernel calls may reach a barrier.
bool MayReachBarrier(const Functions& functions, std::string_view name,
                     std::unordered_set<std::string_view>& seen) {
  const auto found = functions.all.find(name);
  if (found == functions.all.end() || !seen.insert(name).second) return false;
  if (found->second.calls_unknown) return true;
  for (const std::string_view callee : found->second.calls) {
    if (IsMarker(callee) || MayReachBarrier(functions, callee, seen))
      return true;
  }
  return false;
}

bool CanBeCut(const Functions& functions, std::string_view name) {
  const Functions::Function& kernel = functions.all.at(name);
  bool has_barrier = false;
  std::unordered_set<std::string_view> seen;
  for (const std::string_view callee : kernel.calls) {
    has_barrier = has_barrier || IsBarrier(callee);
    if (!IsMarker(callee) && MayReachBarrier(functions, callee, seen))
      return false;
  }
  return has_barrier && !kernel.calls_unknown;
}

// Returns the attributes at the end of a function's first line: "#4" if it
// ends with "... #4 {".
std::string_view FindAttributes(std::string_view define) {
  const size_t close = define.rfind(')');
  const size_t at = define.find('#', close);
  if (at == std::string_view::npos) return std::string_view();
  return define.substr(at, define.find_first_of(" {", at) - at);
}

// Returns an attribute group that consists of `more` and of those attributes
// in `all` that have quotes, such as "target-cpu".
std::string SelectAttributes(std::string_view all, const std::string& more) {
  std::string kept = "{ " + more;
  for (const std::string_view word :
       SplitOutside(all.substr(1, all.rfind('}') - 1), ' ')) {
    if (!word.empty() && word[0] == '"') kept.append(" ").append(word);
  }
  return kept + " }";
}

}  // namespace

size_t CutIntoRegions(std::string& llvm, bool cut_any) {
  Functions functions = ReadFunctions(llvm);
  std::string added, again;
  std::unordered_set<size_t> cut;
  RegionNames names;
  // If pointers have no types in this LLVM text, the text may lack the type
  // of the struct Thread.
  const bool has_type = llvm.find(std::string("\n") + kThreadType +
                                  " = type") != std::string::npos;
  names.thread_type = has_type ? kThreadType : "%swy.thread";
  names.accesses = "!" + Number(functions.metadata);
  names.loop = "!" + Number(functions.metadata + 1);
  names.attributes = "#" + Number(functions.groups);
  std::string_view cpu = "{ }";
  for (const auto& kernel : functions.kernels) {
    const Functions::Function& function = functions.all.at(kernel.second);
    const std::string_view head =
        function.text.substr(0, function.text.find('\n'));
    const auto found = functions.attributes.find(FindAttributes(head));
    if (found != functions.attributes.end()) cpu = found->second;
    if (!cut_any || !CanBeCut(functions, kernel.second)) continue;
    const auto read = LlvmFunction::Read(function.text, IsBarrier);
    if (!read.has_value()) continue;
    const auto plan = PlanRegions(*read);
    if (!plan.has_value()) continue;
    names.kernel = kernel.first;
    names.typed_pointers = head.find("* ") != std::string_view::npos;
    const std::string regions = WriteRegions(*read, *plan, names);
    if (regions.empty()) continue;
    if (cut.empty() && !has_type) {
      added =
          names.thread_type + " = type { ptr, [3 x i32], [3 x i32], i32 }\n";
    }
    added += regions;
    cut.insert(kernel.first);
  }
  // From here on Clang may inline the functions that the pass looked for.
  const std::string inlined = "#" + Number(functions.groups + 1);
  ForEachLine(llvm, [&](std::string_view line) {
    if (BeginsWith(line, "define ") && IsMarker(FindName(line))) {
      const std::string_view old = FindAttributes(line);
      const size_t at = line.rfind(old);
      again.append(line.substr(0, at))
          .append(inlined)
          .append(line.substr(at + old.size()));
    } else if (BeginsWith(line, "@swy_cuts_") &&
               cut.count(ParseNumber(line.substr(10))) != 0) {
      return;
    } else {
      again.append(line);
    }
    again.append("\n");
  });
  again += added;
  again += "attributes " + names.attributes + " = " +
           SelectAttributes(cpu, "nounwind uwtable") + "\n";
  again += "attributes " + inlined + " = " +
           SelectAttributes(cpu, "alwaysinline nounwind convergent") + "\n";
  again += names.accesses + " = distinct !{}\n";
  again += names.loop + " = distinct !{" + names.loop + ", !" +
           Number(functions.metadata + 2) + "}\n";
  again += "!" + Number(functions.metadata + 2) +
           " = !{!\"llvm.loop.parallel_accesses\", " + names.accesses + "}\n";
  llvm = std::move(again);
  return cut.size();
}

}  // namespace switchyard::device::metal
