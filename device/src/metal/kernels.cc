// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The part of Walker for kernels, their parameters and instantiations, and
// for declarations that the C++ code made from a shader cannot have.

#include <algorithm>
#include <utility>

#include "device/src/metal/walker.h"

namespace switchyard::device::metal {
namespace {

using switchyard_metal::Input;

// This limit is higher than the number of inputs that Metal allows.
constexpr size_t kMostParameters = 100;

// Returns the name of the unsupported feature to which the type at token i
// belongs, or null.
const char* NameUnsupportedType(const Text& text, uint32_t i) {
  const std::string_view word = text.word(i);
  const auto starts = [&](std::string_view with) {
    return word.substr(0, with.size()) == with;
  };
  if (text.IsMember(i)) return nullptr;
  if (starts("texture") &&
      IsOneOf(word,
              {"texture1d", "texture1d_array", "texture2d", "texture2d_array",
               "texture2d_ms", "texture2d_ms_array", "texture3d", "texturecube",
               "texturecube_array", "texture_buffer"})) {
    return "textures";
  }
  if (starts("depth") &&
      IsOneOf(word, {"depth2d", "depth2d_array", "depth2d_ms",
                     "depth2d_ms_array", "depthcube", "depthcube_array"})) {
    return "textures";
  }
  // A shader may also use "sampler" as a name, so look at the next token.
  if (word == "sampler" && text.IsIdentifier(i + 1)) return "samplers";
  if (word == "mpp" || word == "tensor_ops" || word == "cooperative_tensor" ||
      (word == "tensor" && text.Is(i + 1, "<"))) {
    return "mpp::tensor_ops";
  }
  if (word == "raytracing" || starts("intersection_") ||
      word == "acceleration_structure" ||
      word == "primitive_acceleration_structure" ||
      word == "instance_acceleration_structure" || word == "ray_data") {
    return "ray tracing";
  }
  if (word == "imageblock" || word == "threadgroup_imageblock") {
    return "imageblocks";
  }
  if (word == "visible_function_table") return "visible function tables";
  if (word == "mesh_grid_properties" || word == "object_data") {
    return "mesh shaders";
  }
  if (word == "command_buffer" || word == "compute_command" ||
      word == "render_command") {
    return "commands encoded by a kernel";
  }
  return nullptr;
}

// Returns the name of the unsupported feature, such as "vertex functions", to
// which a function with this attribute belongs, or null.
const char* NameUnsupportedFunction(std::string_view attribute) {
  if (attribute == "vertex") return "vertex functions";
  if (attribute == "fragment") return "fragment functions";
  if (attribute == "mesh" || attribute == "object") return "mesh shaders";
  if (attribute == "intersection") return "ray tracing";
  if (attribute == "patch") return "tessellation";
  return nullptr;
}

// Reads the parameters of a kernel from tokens first to last - 1.
KernelParameters ReadParameters(const Text& text, const Constants& constants,
                                uint32_t first, uint32_t last) {
  KernelParameters result;
  std::vector<size_t> unplaced;
  bool is_taken[2][switchyard_metal::kMaxBuffers] = {};
  const auto refuse = [&](uint32_t token, std::string why) {
    if (!result.unsupported.empty()) return;
    result.unsupported = std::move(why);
    result.token = token;
  };
  for (const Piece& piece : text.SplitAtCommas(first, last)) {
    if (piece.last == piece.first + 1 && text.Is(piece.first, "void")) break;
    TranslatedParameter parameter;
    const uint32_t name = text.FindDeclaredName(piece.first, piece.last);
    if (name != kNone) parameter.name = text.word(name);
    bool is_pointer = false, in_threadgroup = false;
    uint32_t end = kNone;
    for (uint32_t i = piece.first; i < piece.last; ++i) {
      if (text.IsAttributeList(i)) {
        i = text.match(i);
        continue;
      }
      if (const char* type = NameUnsupportedType(text, i)) refuse(i, type);
      is_pointer =
          is_pointer || text.Is(i, "*") || text.Is(i, "&") || text.Is(i, "[");
      in_threadgroup = in_threadgroup || text.Is(i, "threadgroup");
      if (end != kNone && end != text.token(i).begin) parameter.text += ' ';
      parameter.text += text.word(i);
      end = text.token(i).end();
    }
    bool has_input = false;
    for (const Attribute& a : text.FindAttributes(piece.first, piece.last)) {
      const std::string_view word = text.word(a.name);
      if (word == "function_constant") {
        for (uint32_t i = a.first; i < a.last; ++i) {
          parameter.when += text.word(i);
        }
        continue;
      }
      if (text.IsOfClang(a)) continue;
      const Input input = FindInput(word);
      if (input == Input::kUnsupported) {
        // For a texture or a sampler this changes nothing, because the loop
        // above has already refused its type.
        refuse(a.name, "[[" + std::string(word) + "]]");
        continue;
      }
      has_input = true;
      parameter.input = input;
      if (input > Input::kThreadgroup) continue;
      const std::optional<uint32_t> index =
          constants.Evaluate(text, a.first, a.last);
      if (!index || *index >= switchyard_metal::kMaxBuffers) {
        refuse(a.name, "[[" + std::string(word) +
                           "]] with another index than a number below 31");
        continue;
      }
      parameter.index = *index;
      is_taken[input == Input::kThreadgroup][*index] = true;
    }
    if (!has_input && is_pointer) {
      parameter.input = in_threadgroup ? Input::kThreadgroup : Input::kBuffer;
      unplaced.push_back(result.list.size());
    } else if (!has_input) {
      refuse(piece.first, "parameter '" + parameter.name +
                              "', which no attribute says the input of");
    }
    result.list.push_back(std::move(parameter));
  }
  if (result.list.size() > kMostParameters) {
    refuse(first, "a kernel of so many parameters");
  }
  for (const size_t i : unplaced) {
    TranslatedParameter& parameter = result.list[i];
    bool* const row = is_taken[parameter.input == Input::kThreadgroup];
    bool* const end = row + switchyard_metal::kMaxBuffers;
    bool* const free = std::find(row, end, false);
    if (free == end) {
      refuse(first, "more than 31 buffers");
      break;
    }
    *free = true;
    parameter.index = static_cast<uint32_t>(free - row);
  }
  return result;
}

}  // namespace

bool Walker::TranslateKernel(const Declaration& d, const std::string& scope) {
  if (!d.IsFunction() || d.name == kNone) return false;
  const uint32_t head_end = d.body == kNone ? d.end : d.body;
  bool is_kernel = false;
  std::string host_name, max_threads;
  const char* other = nullptr;
  for (uint32_t i = d.head; i < d.open; i = text_.Skip(i)) {
    is_kernel = is_kernel || (text_.Is(i, "kernel") && text_.IsErased(i));
    const bool is_stage = text_.Is(i, "vertex") || text_.Is(i, "fragment");
    if (is_stage && i + 1 < d.name)
      other = NameUnsupportedFunction(text_.word(i));
  }
  std::vector<Attribute> attributes = text_.FindAttributes(d.head, d.open);
  for (const Attribute& a : text_.FindAttributes(d.close, head_end)) {
    attributes.push_back(a);
  }
  for (const Attribute& a : attributes) {
    const std::string_view name = text_.word(a.name);
    if (NameUnsupportedFunction(name) != nullptr)
      other = NameUnsupportedFunction(name);
    is_kernel = is_kernel || name == "kernel";
    if (name == "host_name") {
      host_name = text_.ReadString(a.first, a.last);
    } else if (name == "max_total_threads_per_threadgroup") {
      for (uint32_t i = a.first; i < a.last; ++i) {
        max_threads.append(text_.word(i)).append(" ");
      }
    }
  }
  const std::string name(text_.word(d.name));
  if (other != nullptr) {
    if (d.body != kNone) AddUnsupported(other, d.name, name);
    LeaveOut(d, other);
    return true;
  }
  if (!is_kernel || d.body == kNone) return false;

  KernelParameters parameters =
      ReadParameters(text_, constants_, d.open + 1, d.close);
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
      text_.InsertBehind(last, " " + text_.edited(d.begin, d.head) +
                                   " struct " + holder + " {" + value +
                                   "value = " + max_threads + "; };");
    }
    templates_[text_.word(d.name)].push_back(
        {ReadTemplateParameters(d), std::move(parameters), std::move(holder)});
  } else {
    uint32_t first = d.name;
    while (text_.Is(first - 1, "::") && first > d.head + 1) first -= 2;
    std::string id;
    for (uint32_t i = first; i < d.open; ++i) id += text_.word(i);
    if (host_name.empty()) host_name = scope + id;
    if (!why.empty()) {
      AddUnsupported(why, token, host_name);
      return true;
    }
    // If the caller did not ask for this kernel, its function stays in the
    // code, but is not in the table.
    if (!IsAskedFor(host_name)) return true;
    const std::string pointer = "swy_kernel_" + number;
    // The kernel becomes an inline function, because Call() inlines it
    // (switchyard_module.h), and an inline function without a caller leaves
    // no code behind.
    uint32_t type = d.head;
    while (type < d.name && text_.IsErased(type)) ++type;
    text_.PutBefore(type, "inline ");
    // At program scope the name needs a ::, because functions in the
    // namespace metal that have the same name are visible there.
    std::string code = " static constexpr auto " + pointer + " = &" +
                       (scope.empty() ? "::" : "") + id + ";";
    if (!max_threads.empty()) {
      const std::string constant = "swy_max_threads_" + number;
      code.append(value).append(constant).append(" = ");
      code.append(max_threads).append(";");
      max_threads = scope + constant;
    }
    text_.InsertBehind(last, std::move(code));
    AddKernel(std::move(host_name), d.name, std::move(parameters.list),
              scope + pointer, std::move(max_threads));
  }
  if (why.empty()) WalkBody(d.body + 1, d.BodyEnd(text_));
  return true;
}

void Walker::TranslateInstantiation(const Declaration& d,
                                    const std::string& scope) {
  if (d.end < d.head + 3 || d.class_key != kNone) return;
  uint32_t end = d.end - 1;  // behind the name and its template arguments
  uint32_t open = kNone;
  while (text_.Is(end - 1, "]") && text_.match(end - 1) < end - 1) {
    end = text_.match(end - 1);
  }
  if (text_.Is(end - 1, ")")) {
    open = text_.match(end - 1);
    end = open;
  }
  if (end == kNone || end < d.head + 2) return;
  uint32_t name = end - 1;
  if (text_.Is(name, ">") && text_.match(name) < name) {
    name = text_.match(name) - 1;
  }
  if (!text_.IsIdentifier(name)) return;
  const auto found = templates_.find(text_.word(name));
  if (found == templates_.end()) return;
  const uint32_t close = open == kNone ? kNone : text_.match(open);
  const KernelTemplate* const match =
      FindTemplate(found->second, {name + 2, end - 1}, {open + 1, close});
  if (match == nullptr) {
    text_.Erase(d.begin, d.end);
    return AddUnsupported("an instantiation of one of several templates", name,
                          std::string(text_.word(name)));
  }
  const KernelTemplate& kernel = *match;
  uint32_t first = name;
  while (text_.Is(first - 1, "::") && first > d.head + 2) first -= 2;
  const std::string id = text_.edited(first, end);
  std::string host_name;
  for (const Attribute& a : text_.FindAttributes(d.begin, d.end)) {
    if (text_.Is(a.name, "host_name")) {
      host_name = text_.ReadString(a.first, a.last);
    }
  }
  if (host_name.empty()) host_name = scope + id;
  if (!IsAskedFor(host_name)) return text_.Erase(d.begin, d.end);
  std::string why = kernel.parameters.unsupported;
  uint32_t token = kernel.parameters.token;
  if (why.empty()) token = FindUnsupported(d.begin, d.end, why);
  if (!why.empty()) {
    text_.Erase(d.begin, d.end);
    return AddUnsupported(why, token, host_name);
  }
  const std::string type = text_.edited(d.head, first);
  const std::string parameters =
      open == kNone ? "" : text_.edited(open, close + 1);
  const std::string pointer = "swy_kernel_" + std::to_string(next_++);
  std::string max_threads = kernel.max_threads;
  if (!max_threads.empty()) {
    // The constant is in the template's namespace.
    max_threads = text_.edited(first, name) + max_threads +
                  text_.edited(name + 1, end) + "::value";
    const std::string constant = "swy_max_" + pointer;
    text_.InsertBehind(d.end - 1, " static constexpr unsigned " + constant +
                                      " = " + max_threads + ";");
    max_threads = scope + constant;
  }
  // A pointer to the function replaces the explicit instantiation. Clang
  // would report the errors of an instantiation twice. Also, Metal allows
  // several names for one kernel.
  for (uint32_t i = d.begin; i < d.end - 1; ++i) {
    if (i < first || i >= end) text_.Erase(i);
  }
  text_.PutBefore(first, "static constexpr auto " + pointer +
                             " = static_cast<" + type +
                             (open == kNone ? "" : "(*)") + parameters +
                             (open == kNone ? "*" : "") + ">(&");
  text_.InsertBehind(end - 1, ")");
  AddKernel(std::move(host_name), name, kernel.parameters.list, scope + pointer,
            std::move(max_threads));
}

std::vector<Walker::TemplateParameter> Walker::ReadTemplateParameters(
    const Declaration& d) const {
  std::vector<TemplateParameter> result;
  const uint32_t open = d.parameters;
  for (const Piece& p : text_.SplitAtCommas(open + 1, text_.match(open))) {
    TemplateParameter parameter;
    parameter.is_type = text_.Is(p.first, "typename") ||
                        text_.Is(p.first, "class") ||
                        text_.Is(p.first, "template");
    for (uint32_t i = p.first; i < p.last; i = text_.Skip(i)) {
      parameter.is_optional =
          parameter.is_optional || text_.Is(i, "=") || text_.Is(i, ".");
      parameter.is_pack = parameter.is_pack || text_.Is(i, ".");
    }
    result.push_back(parameter);
  }
  return result;
}

const Walker::KernelTemplate* Walker::FindTemplate(
    const std::vector<KernelTemplate>& all, const Piece& arguments,
    const Piece& parameters) const {
  // No shader has more than 16 overloads of a template. The limit bounds the
  // time for comparing the overloads.
  constexpr size_t kMost = 16;
  if (all.size() == 1) return &all[0];
  if (all.size() > kMost) return nullptr;
  std::vector<Piece> given;
  if (arguments.first < arguments.last) {
    given = text_.SplitAtCommas(arguments.first, arguments.last);
  }
  const bool has_parameters = parameters.last != kNone;
  const size_t count =
      has_parameters
          ? text_.SplitAtCommas(parameters.first, parameters.last).size()
          : 0;
  const KernelTemplate* match = nullptr;
  for (const KernelTemplate& k : all) {
    if (has_parameters && k.parameters.list.size() != count) continue;
    bool fits = true;
    for (size_t i = 0; i < std::max(given.size(), k.arguments.size()); ++i) {
      if (i >= k.arguments.size()) {
        fits = fits && !k.arguments.empty() && k.arguments.back().is_pack;
      } else if (i >= given.size()) {
        // The compiler may deduce the remaining arguments from the
        // parameters.
        fits = fits && (k.arguments[i].is_optional || has_parameters);
      } else {
        const std::string_view first = text_.word(given[i].first);
        const bool is_value = text_.IsNumber(given[i].first) ||
                              first == "true" || first == "false" ||
                              first == "(";
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

bool Walker::LeaveOutIfUnsupported(const Declaration& d) {
  std::string why;
  if (FindUnsupported(d.begin, d.end, why) == kNone) return false;
  LeaveOut(d, why);
  return true;
}

uint32_t Walker::FindUnsupported(uint32_t first, uint32_t last,
                                 std::string& what) const {
  for (uint32_t i = first; i < last; ++i) {
    if (!text_.IsIdentifier(i) || text_.IsErased(i)) continue;
    if (const char* type = NameUnsupportedType(text_, i)) {
      what = type;
      return i;
    }
    if (left_out_.empty()) continue;
    const auto found = left_out_.find(text_.word(i));
    if (found != left_out_.end() && functions_.count(found->first) == 0 &&
        !text_.IsMember(i)) {
      what = found->second;
      return i;
    }
  }
  return kNone;
}

void Walker::LeaveOut(const Declaration& d, const std::string& why) {
  text_.Erase(d.begin, d.end);
  uint32_t name = d.name;
  if (d.class_key != kNone && !d.IsFunction()) {
    name = d.class_key + 1;
    while (name < d.end && !text_.IsIdentifier(name)) ++name;
  } else if (text_.Is(d.head, "using")) {
    name = text_.Is(d.head + 2, "=") ? d.head + 1 : kNone;
  } else if (!d.IsFunction()) {
    name = text_.FindDeclaredName(d.head, d.end);
  }
  if (name != kNone && name < d.end) left_out_.emplace(text_.word(name), why);
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
  const Token& t = text_.token(token);
  TranslatedKernel kernel = {std::move(name), text_.files()[t.file], t.line,
                             std::move(parameters)};
  result_.kernels.push_back(kernel);
  table_.kernels.push_back(
      {std::move(kernel), std::move(pointer), std::move(max_threads)});
}

}  // namespace switchyard::device::metal
