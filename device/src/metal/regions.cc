// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/regions.h"

#include <cctype>
#include <cstdlib>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "device/src/metal/llvm_function.h"
#include "device/src/metal/region_plan.h"
#include "device/src/metal/region_writer.h"

namespace switchyard::device::metal {
namespace {

std::string Number(size_t n) { return std::to_string(n); }

// The functions of a module, and what they call.
struct Functions {
  struct Function {
    Text text;
    bool calls_unknown = false;  // by a pointer
    std::vector<Text> calls;
  };
  std::unordered_map<Text, Function> all;
  std::vector<std::pair<size_t, Text>> kernels;  // and their names
  std::unordered_map<Text, Text> attributes;     // "#4", "{ ... }"
  size_t metadata = 0, groups = 0;               // first that are not taken
};

// "@_ZL9swy_run_0RKN16switchyard_metal6ThreadE" is kernel 0.
size_t KernelOf(Text name) {
  constexpr Text kRun = "swy_run_";
  const size_t at = name.find(kRun);
  if (at == Text::npos || at + kRun.size() >= name.size() ||
      name.find("switchyard_metal") == Text::npos) {
    return kNoIndex;
  }
  return std::strtoul(name.data() + at + kRun.size(), nullptr, 10);
}

Text NameOf(Text define) {
  const size_t at = define.find('@');
  return define.substr(at, define.find('(', at) - at);
}

bool IsMarker(Text name) {
  return name == kBarrier || name == kSimdgroupBarrier || name == kSimd ||
         name == kVariable || name == kNotBound || name == kFail ||
         name == kLane;
}

bool Meets(Text name) {
  return name == kBarrier || name == kSimdgroupBarrier || name == kSimd;
}

Functions ReadFunctions(Text llvm) {
  Functions read;
  Functions::Function* in = nullptr;
  Text begin;
  ForEachLine(llvm, [&](Text line) {
    if (BeginsWith(line, "define ")) {
      const Text name = NameOf(line);
      in = &read.all[name];
      begin = line;
      if (KernelOf(name) != kNoIndex)
        read.kernels.push_back({KernelOf(name), name});
    } else if (line == "}" && in != nullptr) {
      in->text =
          Text(begin.data(), static_cast<size_t>(line.end() - begin.data()));
      in = nullptr;
    } else if (in != nullptr) {
      const size_t at = line.find("call ");
      if (at == Text::npos) return;
      const Text callee = CalleeOf(line.substr(at));
      if (callee.empty()) {
        in->calls_unknown = true;
      } else {
        in->calls.push_back(callee);
      }
    } else if (BeginsWith(line, "attributes #")) {
      const size_t end = line.find(' ', 11);
      read.attributes[line.substr(11, end - 11)] = line.substr(line.find('{'));
      read.groups = std::max<size_t>(
          read.groups, std::strtoul(line.data() + 12, nullptr, 10) + 1);
    } else if (BeginsWith(line, "!") && line.size() > 1 &&
               std::isdigit(static_cast<unsigned char>(line[1])) != 0) {
      read.metadata = std::max<size_t>(
          read.metadata, std::strtoul(line.data() + 1, nullptr, 10) + 1);
    }
  });
  return read;
}

// True if threads may meet in what a kernel calls, other than in markers.
bool MayMeet(const Functions& functions, Text name,
             std::unordered_set<Text>& seen) {
  const auto found = functions.all.find(name);
  if (found == functions.all.end() || !seen.insert(name).second) return false;
  if (found->second.calls_unknown) return true;
  for (const Text callee : found->second.calls) {
    if (IsMarker(callee) || MayMeet(functions, callee, seen)) return true;
  }
  return false;
}

bool CanBeCut(const Functions& functions, Text name) {
  const Functions::Function& kernel = functions.all.at(name);
  bool meets = false;
  std::unordered_set<Text> seen;
  for (const Text callee : kernel.calls) {
    meets = meets || Meets(callee);
    if (!IsMarker(callee) && MayMeet(functions, callee, seen)) return false;
  }
  return meets && !kernel.calls_unknown;
}

// "#4" of a line that ends with "... #4 {".
Text AttributesOf(Text define) {
  const size_t close = define.rfind(')');
  const size_t at = define.find('#', close);
  if (at == Text::npos) return Text();
  return define.substr(at, define.find_first_of(" {", at) - at);
}

// The result has those that say for which CPU code is made, and `more`.
std::string Attributes(Text all, const std::string& more) {
  std::string kept = "{ " + more;
  for (const Text word : SplitOutside(all.substr(1, all.rfind('}') - 1), ' ')) {
    if (!word.empty() && word[0] == '"') kept.append(" ").append(word);
  }
  return kept + " }";
}

}  // namespace

size_t CutIntoRegions(std::string& llvm, bool cut_any) {
  Functions functions = ReadFunctions(llvm);
  std::string added, again;
  std::unordered_set<size_t> cut;
  Writing writing;
  // The struct's type may be missing where pointers have none.
  const bool has_type = llvm.find(std::string("\n") + kThreadType +
                                  " = type") != std::string::npos;
  writing.thread_type = has_type ? kThreadType : "%swy.thread";
  writing.accesses = "!" + Number(functions.metadata);
  writing.loop = "!" + Number(functions.metadata + 1);
  writing.attributes = "#" + Number(functions.groups);
  Text cpu = "{ }";
  for (const auto& kernel : functions.kernels) {
    const Functions::Function& function = functions.all.at(kernel.second);
    const Text head = function.text.substr(0, function.text.find('\n'));
    const auto found = functions.attributes.find(AttributesOf(head));
    if (found != functions.attributes.end()) cpu = found->second;
    if (!cut_any || !CanBeCut(functions, kernel.second)) continue;
    const auto read = LlvmFunction::Read(function.text, Meets);
    if (!read.has_value()) continue;
    const auto plan = PlanRegions(*read);
    if (!plan.has_value()) continue;
    writing.kernel = kernel.first;
    writing.typed_pointers = head.find("* ") != Text::npos;
    const std::string regions = WriteRegions(*read, *plan, writing);
    if (regions.empty()) continue;
    if (cut.empty() && !has_type) {
      added =
          writing.thread_type + " = type { ptr, [3 x i32], [3 x i32], i32 }\n";
    }
    added += regions;
    cut.insert(kernel.first);
  }
  // The functions that mark the places have done so, and may be inlined.
  const std::string inlined = "#" + Number(functions.groups + 1);
  ForEachLine(llvm, [&](Text line) {
    if (BeginsWith(line, "define ") && IsMarker(NameOf(line))) {
      const Text old = AttributesOf(line);
      const size_t at = line.rfind(old);
      again.append(line.substr(0, at))
          .append(inlined)
          .append(line.substr(at + old.size()));
    } else if (BeginsWith(line, "@swy_cuts_") &&
               cut.count(std::strtoul(line.data() + 10, nullptr, 10)) != 0) {
      return;
    } else {
      again.append(line);
    }
    again.append("\n");
  });
  again += added;
  again += "attributes " + writing.attributes + " = " +
           Attributes(cpu, "nounwind uwtable") + "\n";
  again += "attributes " + inlined + " = " +
           Attributes(cpu, "alwaysinline nounwind convergent") + "\n";
  again += writing.accesses + " = distinct !{}\n";
  again += writing.loop + " = distinct !{" + writing.loop + ", !" +
           Number(functions.metadata + 2) + "}\n";
  again += "!" + Number(functions.metadata + 2) +
           " = !{!\"llvm.loop.parallel_accesses\", " + writing.accesses + "}\n";
  llvm = std::move(again);
  return cut.size();
}

}  // namespace switchyard::device::metal
