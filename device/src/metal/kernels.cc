// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Kernels and their instantiations, and what can't be in the module.

#include <algorithm>
#include <utility>

#include "device/src/metal/walker.h"

namespace switchyard::device::metal {

bool Walker::Kernel(const Declaration& d, const std::string& scope) {
  if (!d.IsFunction() || d.name == kNone) return false;
  const uint32_t head_end = d.body == kNone ? d.end : d.body;
  bool is_kernel = false;
  std::string host_name, max_threads;
  const char* other = nullptr;
  for (uint32_t i = d.head; i < d.open; i = tokens_.Skip(i)) {
    is_kernel = is_kernel || (tokens_.Is(i, "kernel") && edits_.IsBlank(i));
    const bool is_stage = tokens_.Is(i, "vertex") || tokens_.Is(i, "fragment");
    if (is_stage && i + 1 < d.name)
      other = UnsupportedFunction(tokens_.Text(i));
  }
  std::vector<Attribute> attributes = Attributes(tokens_, d.head, d.open);
  for (const Attribute& a : Attributes(tokens_, d.close, head_end)) {
    attributes.push_back(a);
  }
  for (const Attribute& a : attributes) {
    const std::string_view name = tokens_.Text(a.name);
    if (UnsupportedFunction(name) != nullptr) other = UnsupportedFunction(name);
    is_kernel = is_kernel || name == "kernel";
    if (name == "host_name") {
      host_name = StringValue(tokens_, a.first, a.last);
    } else if (name == "max_total_threads_per_threadgroup") {
      for (uint32_t i = a.first; i < a.last; ++i) {
        max_threads.append(tokens_.Text(i)).append(" ");
      }
    }
  }
  const std::string name(tokens_.Text(d.name));
  if (other != nullptr) {
    if (d.body != kNone) AddUnsupported(other, d.name, name);
    LeaveOut(d, other);
    return true;
  }
  if (!is_kernel || d.body == kNone) return false;

  KernelParameters parameters =
      ReadParameters(tokens_, constants_, d.open + 1, d.close);
  std::string why = parameters.unsupported;
  uint32_t token = parameters.token;
  if (why.empty()) token = FindUnsupported(d.begin, d.end, why);
  if (!why.empty()) {
    parameters.unsupported = why;
    parameters.token = token;
    LeaveOut(d, why);
  }
  const std::string number = std::to_string(next_++);
  const std::string value = " static constexpr unsigned ";
  const uint32_t last = d.end - 1;
  if (d.IsTemplate()) {
    std::string holder;
    if (!max_threads.empty() && why.empty()) {
      holder = "swy_max_threads_" + number;
      edits_.InsertBehind(last, " " + edits_.Text(d.begin, d.head) +
                                    " struct " + holder + " {" + value +
                                    "value = " + max_threads + "; };");
    }
    templates_[tokens_.Text(d.name)].push_back(
        {TemplateParameters(d), std::move(parameters), std::move(holder)});
  } else {
    uint32_t first = d.name;
    while (tokens_.Is(first - 1, "::") && first > d.head + 1) first -= 2;
    std::string id;
    for (uint32_t i = first; i < d.open; ++i) id += tokens_.Text(i);
    if (host_name.empty()) host_name = scope + id;
    if (!why.empty()) {
      AddUnsupported(why, token, host_name);
      return true;
    }
    // Clang makes no code of it if nothing names it.
    if (!IsAskedFor(host_name)) return true;
    const std::string pointer = "swy_kernel_" + number;
    // It is of no use by itself if it is inlined (switchyard_module.h).
    uint32_t type = d.head;
    while (type < d.name && edits_.IsBlank(type)) ++type;
    edits_.PutBefore(type, "inline ");
    // In the program's own scope metal's functions of that name are visible.
    std::string code = " static constexpr auto " + pointer + " = &" +
                       (scope.empty() ? "::" : "") + id + ";";
    if (!max_threads.empty()) {
      const std::string constant = "swy_max_threads_" + number;
      code.append(value).append(constant).append(" = ");
      code.append(max_threads).append(";");
      max_threads = scope + constant;
    }
    edits_.InsertBehind(last, std::move(code));
    AddKernel(std::move(host_name), d.name, std::move(parameters.list),
              scope + pointer, std::move(max_threads));
  }
  if (why.empty()) Body(d.body + 1, d.BodyEnd(tokens_));
  return true;
}

void Walker::Instantiation(const Declaration& d, const std::string& scope) {
  if (d.end < d.head + 3 || d.class_key != kNone) return;
  uint32_t end = d.end - 1;  // behind the name and its arguments
  uint32_t open = kNone;
  while (tokens_.Is(end - 1, "]") && tokens_.Match(end - 1) < end - 1) {
    end = tokens_.Match(end - 1);
  }
  if (tokens_.Is(end - 1, ")")) {
    open = tokens_.Match(end - 1);
    end = open;
  }
  if (end == kNone || end < d.head + 2) return;
  uint32_t name = end - 1;
  if (tokens_.Is(name, ">") && tokens_.Match(name) < name) {
    name = tokens_.Match(name) - 1;
  }
  if (!tokens_.IsIdentifier(name)) return;
  const auto found = templates_.find(tokens_.Text(name));
  if (found == templates_.end()) return;
  const uint32_t close = open == kNone ? kNone : tokens_.Match(open);
  const KernelTemplate* const match =
      FindTemplate(found->second, {name + 2, end - 1}, {open + 1, close});
  if (match == nullptr) {
    edits_.Blank(d.begin, d.end);
    return AddUnsupported("an instantiation of one of several templates", name,
                          std::string(tokens_.Text(name)));
  }
  const KernelTemplate& kernel = *match;
  uint32_t first = name;
  while (tokens_.Is(first - 1, "::") && first > d.head + 2) first -= 2;
  const std::string id = edits_.Text(first, end);
  std::string host_name;
  for (const Attribute& a : Attributes(tokens_, d.begin, d.end)) {
    if (tokens_.Is(a.name, "host_name")) {
      host_name = StringValue(tokens_, a.first, a.last);
    }
  }
  if (host_name.empty()) host_name = scope + id;
  if (!IsAskedFor(host_name)) return edits_.Blank(d.begin, d.end);
  std::string why = kernel.parameters.unsupported;
  uint32_t token = kernel.parameters.token;
  if (why.empty()) token = FindUnsupported(d.begin, d.end, why);
  if (!why.empty()) {
    edits_.Blank(d.begin, d.end);
    return AddUnsupported(why, token, host_name);
  }
  const std::string type = edits_.Text(d.head, first);
  const std::string parameters =
      open == kNone ? "" : edits_.Text(open, close + 1);
  const std::string pointer = "swy_kernel_" + std::to_string(next_++);
  std::string max_threads = kernel.max_threads;
  if (!max_threads.empty()) {
    // Beside the template, wherever that is.
    max_threads = edits_.Text(first, name) + max_threads +
                  edits_.Text(name + 1, end) + "::value";
    const std::string constant = "swy_max_" + pointer;
    edits_.InsertBehind(d.end - 1, " static constexpr unsigned " + constant +
                                       " = " + max_threads + ";");
    max_threads = scope + constant;
  }
  // In its place, and no explicit instantiation beside: Clang would say twice
  // what is wrong with it, and Metal takes it under several names.
  for (uint32_t i = d.begin; i < d.end - 1; ++i) {
    if (i < first || i >= end) edits_.Blank(i);
  }
  edits_.PutBefore(first, "static constexpr auto " + pointer +
                              " = static_cast<" + type +
                              (open == kNone ? "" : "(*)") + parameters +
                              (open == kNone ? "*" : "") + ">(&");
  edits_.InsertBehind(end - 1, ")");
  AddKernel(std::move(host_name), name, kernel.parameters.list, scope + pointer,
            std::move(max_threads));
}

std::vector<Walker::TemplateParameter> Walker::TemplateParameters(
    const Declaration& d) const {
  std::vector<TemplateParameter> result;
  const uint32_t open = d.parameters;
  for (const Piece& p : SplitAtCommas(tokens_, open + 1, tokens_.Match(open))) {
    TemplateParameter parameter;
    parameter.is_type = tokens_.Is(p.first, "typename") ||
                        tokens_.Is(p.first, "class") ||
                        tokens_.Is(p.first, "template");
    for (uint32_t i = p.first; i < p.last; i = tokens_.Skip(i)) {
      parameter.is_optional =
          parameter.is_optional || tokens_.Is(i, "=") || tokens_.Is(i, ".");
      parameter.is_pack = parameter.is_pack || tokens_.Is(i, ".");
    }
    result.push_back(parameter);
  }
  return result;
}

const Walker::KernelTemplate* Walker::FindTemplate(
    const std::vector<KernelTemplate>& all, const Piece& arguments,
    const Piece& parameters) const {
  // More overloads are nobody's, and cost.
  constexpr size_t kMost = 16;
  if (all.size() == 1) return &all[0];
  if (all.size() > kMost) return nullptr;
  std::vector<Piece> given;
  if (arguments.first < arguments.last) {
    given = SplitAtCommas(tokens_, arguments.first, arguments.last);
  }
  const bool has_parameters = parameters.last != kNone;
  const size_t count =
      has_parameters
          ? SplitAtCommas(tokens_, parameters.first, parameters.last).size()
          : 0;
  const KernelTemplate* match = nullptr;
  for (const KernelTemplate& k : all) {
    if (has_parameters && k.parameters.list.size() != count) continue;
    bool fits = true;
    for (size_t i = 0; i < std::max(given.size(), k.arguments.size()); ++i) {
      if (i >= k.arguments.size()) {
        fits = fits && !k.arguments.empty() && k.arguments.back().is_pack;
      } else if (i >= given.size()) {
        // The rest may be deduced from parameters.
        fits = fits && (k.arguments[i].is_optional || has_parameters);
      } else {
        const std::string_view first = tokens_.Text(given[i].first);
        const bool is_value =
            tokens_.list[given[i].first].kind == Token::Kind::kNumber ||
            first == "true" || first == "false" || first == "(";
        const bool is_type =
            IsOneOf(first, {"float", "half", "bfloat", "int", "uint", "bool"});
        fits = fits && !(is_value && k.arguments[i].is_type) &&
               !(is_type && !k.arguments[i].is_type);
      }
    }
    if (!fits) continue;
    if (match != nullptr) return nullptr;
    match = &k;
  }
  return match;
}

bool Walker::IsUnsupported(const Declaration& d) {
  std::string why;
  if (FindUnsupported(d.begin, d.end, why) == kNone) return false;
  LeaveOut(d, why);
  return true;
}

uint32_t Walker::FindUnsupported(uint32_t first, uint32_t last,
                                 std::string& what) const {
  for (uint32_t i = first; i < last; ++i) {
    if (!tokens_.IsIdentifier(i) || edits_.IsBlank(i)) continue;
    if (const char* type = UnsupportedType(tokens_, i)) {
      what = type;
      return i;
    }
    if (left_out_.empty()) continue;
    const auto found = left_out_.find(tokens_.Text(i));
    if (found != left_out_.end() && functions_.count(found->first) == 0 &&
        !tokens_.Is(i - 1, ".") && !tokens_.Is(i - 1, "->")) {
      what = found->second;
      return i;
    }
  }
  return kNone;
}

void Walker::LeaveOut(const Declaration& d, const std::string& why) {
  edits_.Blank(d.begin, d.end);
  uint32_t name = d.name;
  if (d.class_key != kNone && !d.IsFunction()) {
    name = d.class_key + 1;
    while (name < d.end && !tokens_.IsIdentifier(name)) ++name;
  } else if (tokens_.Is(d.head, "using")) {
    name = tokens_.Is(d.head + 2, "=") ? d.head + 1 : kNone;
  } else if (!d.IsFunction()) {
    name = DeclaredName(tokens_, d.head, d.end);
  }
  if (name != kNone && name < d.end) left_out_.emplace(tokens_.Text(name), why);
}

bool Walker::IsAskedFor(const std::string& kernel) {
  if (asked_for_.empty() || asked_for_.count(kernel) != 0) return true;
  result_.not_asked_for.push_back(kernel);
  return false;
}

void Walker::AddKernel(std::string name, uint32_t token,
                       std::vector<TranslatedParameter> parameters,
                       std::string pointer, std::string max_threads) {
  if (!names_.insert(name).second) {
    return SetError("a second kernel of the name '" + name + "'", token);
  }
  const Token& t = tokens_.list[token];
  TranslatedKernel kernel = {std::move(name), tokens_.files[t.file], t.line,
                             std::move(parameters)};
  result_.kernels.push_back(kernel);
  table_.kernels.push_back(
      {std::move(kernel), std::move(pointer), std::move(max_threads)});
}

}  // namespace switchyard::device::metal
