// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/signatures.h"

#include <algorithm>
#include <iterator>

namespace switchyard::device::metal {
namespace {

using switchyard_metal::Input;

struct Named {
  std::string_view attribute;
  Input input;
  const char* enumerator;
};

#define INPUT(attribute, name) \
  { #attribute, Input::name, #name }
constexpr Named kInputs[] = {
    INPUT(buffer, kBuffer),
    INPUT(threadgroup, kThreadgroup),
    INPUT(thread_position_in_grid, kThreadPositionInGrid),
    INPUT(thread_position_in_threadgroup, kThreadPositionInThreadgroup),
    INPUT(thread_index_in_threadgroup, kThreadIndexInThreadgroup),
    INPUT(thread_index_in_simdgroup, kThreadIndexInSimdgroup),
    INPUT(thread_index_in_quadgroup, kThreadIndexInQuadgroup),
    INPUT(simdgroup_index_in_threadgroup, kSimdgroupIndexInThreadgroup),
    INPUT(quadgroup_index_in_threadgroup, kQuadgroupIndexInThreadgroup),
    INPUT(threadgroup_position_in_grid, kThreadgroupPositionInGrid),
    INPUT(threadgroups_per_grid, kThreadgroupsPerGrid),
    INPUT(threads_per_grid, kThreadsPerGrid),
    INPUT(threads_per_threadgroup, kThreadsPerThreadgroup),
    INPUT(dispatch_threads_per_threadgroup, kDispatchThreadsPerThreadgroup),
    INPUT(threads_per_simdgroup, kThreadsPerSimdgroup),
    INPUT(thread_execution_width, kThreadsPerSimdgroup),
    INPUT(simdgroups_per_threadgroup, kSimdgroupsPerThreadgroup),
    INPUT(dispatch_simdgroups_per_threadgroup,
          kDispatchSimdgroupsPerThreadgroup),
    INPUT(quadgroups_per_threadgroup, kQuadgroupsPerThreadgroup),
    INPUT(dispatch_quadgroups_per_threadgroup,
          kDispatchQuadgroupsPerThreadgroup),
    INPUT(grid_origin, kGridOrigin),
    INPUT(grid_size, kGridSize),
};
#undef INPUT

// More than all that Metal has.
constexpr size_t kMostParameters = 100;

}  // namespace

bool IsOneOf(std::string_view word,
             std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool IsAttributeList(const Tokens& tokens, uint32_t i) {
  return tokens.Is(i, "[") && tokens.Is(i + 1, "[") && tokens.Opens(i) &&
         tokens.Opens(i + 1) && tokens.Match(i + 1) + 1 == tokens.Match(i);
}

std::vector<Piece> SplitAtCommas(const Tokens& tokens, uint32_t first,
                                 uint32_t last) {
  std::vector<Piece> pieces;
  uint32_t begin = first;
  for (uint32_t i = first; i < last; i = tokens.Skip(i)) {
    if (!tokens.Is(i, ",")) continue;
    pieces.push_back({begin, i});
    begin = i + 1;
  }
  if (begin < last) pieces.push_back({begin, last});
  return pieces;
}

std::vector<Attribute> Attributes(const Tokens& tokens, uint32_t first,
                                  uint32_t last) {
  std::vector<Attribute> result;
  for (uint32_t i = first; i < last; ++i) {
    if (!IsAttributeList(tokens, i)) continue;
    const uint32_t end = tokens.Match(i + 1);
    for (const Piece& piece : SplitAtCommas(tokens, i + 2, end)) {
      uint32_t name = piece.first;
      while (tokens.Is(name + 1, "::") && name + 2 < piece.last) name += 2;
      Attribute attribute = {name, name, name};
      if (tokens.Is(name + 1, "(") && tokens.Opens(name + 1)) {
        attribute.first = name + 2;
        attribute.last = tokens.Match(name + 1);
      }
      result.push_back(attribute);
    }
    i = end + 1;
  }
  return result;
}

bool IsOfClang(const Tokens& tokens, const Attribute& attribute) {
  return tokens.Is(attribute.name - 1, "::") ||
         IsOneOf(tokens.Text(attribute.name),
                 {"maybe_unused", "nodiscard", "noreturn", "deprecated",
                  "fallthrough", "likely", "unlikely", "no_unique_address"});
}

uint32_t DeclaredName(const Tokens& tokens, uint32_t first, uint32_t last) {
  uint32_t name = kNone;
  for (uint32_t i = first; i < last; i = tokens.Skip(i)) {
    if (tokens.Is(i, "__attribute__") || tokens.Is(i, "alignas")) {
      if (tokens.Opens(i + 1)) i = tokens.Match(i + 1);
    } else if (tokens.IsIdentifier(i)) {
      name = i;
    } else if (tokens.Is(i, "=") || tokens.Is(i, "{")) {
      break;
    } else if (tokens.Is(i, "[") && !IsAttributeList(tokens, i)) {
      break;
    } else if (tokens.Is(i, "(") && !tokens.Is(i - 1, "decltype") &&
               (tokens.Is(i + 1, "&") || tokens.Is(i + 1, "*"))) {
      last = tokens.Match(i);
      name = kNone;
      ++i;  // into (*name)
    }
  }
  return name;
}

bool IsAddressSpace(std::string_view word) {
  return IsOneOf(word, {"device", "constant", "threadgroup", "thread"});
}

std::string StringValue(const Tokens& tokens, uint32_t first, uint32_t last) {
  std::string value;
  for (uint32_t i = first; i < last; ++i) {
    if (tokens.list[i].kind != Token::Kind::kString) continue;
    const std::string_view text = tokens.Text(i);
    for (size_t c = text.find('"') + 1; c < text.size() && text[c] != '"';
         ++c) {
      if (text[c] == '\\' && c + 1 < text.size()) ++c;
      value += text[c];
    }
  }
  return value;
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + '"';
}

const char* UnsupportedType(const Tokens& tokens, uint32_t i) {
  const std::string_view word = tokens.Text(i);
  const auto starts = [&](std::string_view with) {
    return word.substr(0, with.size()) == with;
  };
  const bool used = !tokens.Is(i - 1, ".") && !tokens.Is(i - 1, "->");
  if (!used) return nullptr;
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
  // A word that a shader may use for something else, too.
  if (word == "sampler" && tokens.IsIdentifier(i + 1)) return "samplers";
  if (word == "mpp" || word == "tensor_ops" || word == "cooperative_tensor" ||
      (word == "tensor" && tokens.Is(i + 1, "<"))) {
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

const char* UnsupportedFunction(std::string_view attribute) {
  if (attribute == "vertex") return "vertex functions";
  if (attribute == "fragment") return "fragment functions";
  if (attribute == "mesh" || attribute == "object") return "mesh shaders";
  if (attribute == "intersection") return "ray tracing";
  if (attribute == "patch") return "tessellation";
  return nullptr;
}

KernelParameters ReadParameters(const Tokens& tokens,
                                const Constants& constants, uint32_t first,
                                uint32_t last) {
  KernelParameters result;
  std::vector<size_t> unplaced;
  bool taken[2][switchyard_metal::kMaxBuffers] = {};
  const auto refuse = [&](uint32_t token, std::string why) {
    if (!result.unsupported.empty()) return;
    result.unsupported = std::move(why);
    result.token = token;
  };
  for (const Piece& piece : SplitAtCommas(tokens, first, last)) {
    if (piece.last == piece.first + 1 && tokens.Is(piece.first, "void")) break;
    TranslatedParameter parameter;
    const uint32_t name = DeclaredName(tokens, piece.first, piece.last);
    if (name != kNone) parameter.name = tokens.Text(name);
    bool pointer = false, threadgroup = false;
    uint32_t end = kNone;
    for (uint32_t i = piece.first; i < piece.last; ++i) {
      if (IsAttributeList(tokens, i)) {
        i = tokens.Match(i);
        continue;
      }
      if (const char* type = UnsupportedType(tokens, i)) refuse(i, type);
      pointer = pointer || tokens.Is(i, "*") || tokens.Is(i, "&") ||
                tokens.Is(i, "[");
      threadgroup = threadgroup || tokens.Is(i, "threadgroup");
      if (end != kNone && end != tokens.list[i].begin) parameter.text += ' ';
      parameter.text += tokens.Text(i);
      end = tokens.list[i].begin + tokens.list[i].size;
    }
    bool known = false;
    for (const Attribute& a : Attributes(tokens, piece.first, piece.last)) {
      const std::string_view word = tokens.Text(a.name);
      if (word == "function_constant") {
        for (uint32_t i = a.first; i < a.last; ++i) {
          parameter.when += tokens.Text(i);
        }
        continue;
      }
      if (IsOfClang(tokens, a)) continue;
      const auto found =
          std::find_if(std::begin(kInputs), std::end(kInputs),
                       [&](const Named& n) { return n.attribute == word; });
      if (found == std::end(kInputs)) {
        // Textures and samplers have been named by their types.
        refuse(a.name, "[[" + std::string(word) + "]]");
        continue;
      }
      known = true;
      parameter.input = found->input;
      if (found->input > Input::kThreadgroup) continue;
      const std::optional<uint32_t> index =
          constants.Evaluate(tokens, a.first, a.last);
      if (!index || *index >= switchyard_metal::kMaxBuffers) {
        refuse(a.name, "[[" + std::string(word) +
                           "]] with another index than a number below 31");
        continue;
      }
      parameter.index = *index;
      taken[found->input == Input::kThreadgroup][*index] = true;
    }
    if (!known && pointer) {
      parameter.input = threadgroup ? Input::kThreadgroup : Input::kBuffer;
      unplaced.push_back(result.list.size());
    } else if (!known) {
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
    bool* const row = taken[parameter.input == Input::kThreadgroup];
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

const char* InputName(switchyard_metal::Input input) {
  for (const Named& named : kInputs) {
    if (named.input == input) return named.enumerator;
  }
  return "kUnsupported";
}

}  // namespace switchyard::device::metal
