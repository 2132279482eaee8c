// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/table.h"

#include <algorithm>
#include <iterator>

namespace switchyard::device::metal {
namespace {

using switchyard_metal::Input;

struct NamedInput {
  std::string_view attribute;
  Input input;
  const char* enumerator;
};

#define INPUT(attribute, name) \
  { #attribute, Input::name, #name }
constexpr NamedInput kInputs[] = {
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

constexpr char kNamespace[] = "switchyard_metal::";

// Returns the text as a string literal of C++.
std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + '"';
}

std::string FormatInput(const TranslatedParameter& parameter) {
  const auto named = std::find_if(
      std::begin(kInputs), std::end(kInputs),
      [&](const NamedInput& n) { return n.input == parameter.input; });
  return std::string(kNamespace) + "Input::" +
         (named == std::end(kInputs) ? "kUnsupported" : named->enumerator) +
         ", " + std::to_string(parameter.index);
}

void WriteKernel(const TableKernel& entry, const std::string& number,
                 std::string& code) {
  const std::string ns = kNamespace;
  const std::vector<TranslatedParameter>& parameters = entry.kernel.parameters;
  if (!parameters.empty()) {
    code += "static " + ns + "Parameter swy_parameters_" + number + "[] = {\n";
    for (size_t i = 0; i < parameters.size(); ++i) {
      const std::string& when = parameters[i].when;
      if (!when.empty()) code += ns + "When(&" + when + ", ";
      code += "    " + ns + "Describe<decltype(" + entry.pointer + "), " +
              std::to_string(i) + ">(" + Quote(parameters[i].name) + ", " +
              FormatInput(parameters[i]) + ", " + Quote(parameters[i].text) +
              ")" + (when.empty() ? "" : ")") + ",\n";
    }
    code += "};\n";
  }
  code += "extern \"C\" __attribute__((weak, visibility(\"hidden\"))) const " +
          ns + "Cuts swy_cuts_" + number + ";\n";
  code += "static void swy_run_" + number + "(const " + ns +
          "Thread& thread) {\n  " + ns + "Call<";
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (i != 0) code += ", ";
    code += ns + "In<" + FormatInput(parameters[i]) + ">";
  }
  code += ">(" + entry.pointer + ", thread);\n}\n";
}

}  // namespace

Input FindInput(std::string_view attribute) {
  const auto named = std::find_if(
      std::begin(kInputs), std::end(kInputs),
      [&](const NamedInput& n) { return n.attribute == attribute; });
  return named == std::end(kInputs) ? Input::kUnsupported : named->input;
}

std::string WriteTable(const Table& table) {
  const std::string ns = kNamespace;
  // The table gets a file name of its own, because its errors belong to no
  // line of the shader.
  std::string code = "\n# 1 \"<switchyard>\"\n";
  for (size_t i = 0; i < table.kernels.size(); ++i) {
    const TranslatedKernel& kernel = table.kernels[i].kernel;
    std::string lines;
    WriteKernel(table.kernels[i], std::to_string(i), lines);
    // This line marker makes Clang report errors in a kernel's arguments at
    // the kernel.
    const std::string place =
        "# " + std::to_string(kernel.line) + " " + Quote(kernel.file) + "\n";
    for (size_t at = 0; at < lines.size();) {
      const size_t end = lines.find('\n', at) + 1;
      code += place + lines.substr(at, end - at);
      at = end;
    }
  }
  code += "# 1 \"<switchyard>\"\n";
  if (!table.kernels.empty()) {
    code += "static const " + ns + "Kernel swy_kernels[] = {\n";
    for (size_t i = 0; i < table.kernels.size(); ++i) {
      const TableKernel& entry = table.kernels[i];
      const std::string number = std::to_string(i);
      const size_t count = entry.kernel.parameters.size();
      code += "    {" + Quote(entry.kernel.name) + ", " +
              Quote(entry.kernel.file) + ", " +
              std::to_string(entry.kernel.line) + ", swy_run_" + number + ", " +
              (count == 0 ? "nullptr" : "swy_parameters_" + number) + ", " +
              std::to_string(count) + ", " +
              (entry.max_threads.empty()
                   ? "0"
                   : "static_cast<" + ns + "u32>(" + entry.max_threads + ")") +
              ", &swy_cuts_" + number + "},\n";
    }
    code += "};\n";
  }
  if (!table.constants.empty()) {
    code += "static const " + ns + "FunctionConstant swy_constants[] = {\n";
    for (const TableConstant& c : table.constants) {
      const std::string name = c.scope + c.name;
      code += "    {" + Quote(c.name) + ", " + std::to_string(c.index) + ", " +
              Quote(c.type) + ", &" + name + ", sizeof(" + name + "), &" +
              c.scope + "swy_defined_" + c.name + "},\n";
    }
    code += "};\n";
  }
  if (!table.set_ups.empty()) {
    code += "static void swy_set_up() {\n";
    for (const std::string& name : table.set_ups) {
      code += "  " + name + "();\n";
    }
    code += "}\n";
  }
  code += "extern \"C\" __attribute__((visibility(\"default\"))) const " + ns +
          "Module switchyard_metal_module = {\n    &" + ns + "runtime, " +
          (table.kernels.empty() ? "nullptr" : "swy_kernels") + ", " +
          std::to_string(table.kernels.size()) + ", " +
          (table.constants.empty() ? "nullptr" : "swy_constants") + ", " +
          std::to_string(table.constants.size()) + ", " +
          (table.set_ups.empty() ? "nullptr" : "swy_set_up") + "};\n";
  return code;
}

std::string NameMetalType(std::string type) {
  if (type.compare(0, 7, "metal::") == 0) type = type.substr(7);
  constexpr const char* kNames[][2] = {
      {"uint32_t", "uint"},       {"int32_t", "int"},
      {"uint16_t", "ushort"},     {"int16_t", "short"},
      {"uint8_t", "uchar"},       {"int8_t", "char"},
      {"uint64_t", "ulong"},      {"int64_t", "long"},
      {"size_t", "ulong"},        {"unsigned", "uint"},
      {"unsigned int", "uint"},   {"unsigned short", "ushort"},
      {"unsigned char", "uchar"}, {"unsigned long", "ulong"},
      {"float16_t", "half"},      {"bfloat16_t", "bfloat"},
  };
  for (const auto& name : kNames) {
    if (type == name[0]) return name[1];
  }
  return type;
}

}  // namespace switchyard::device::metal
