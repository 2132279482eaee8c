// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Goes through the declarations of a shader, whose address spaces and
// attributes are blank by then, and rewrites what C++ has not.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_WALKER_H_
#define SWITCHYARD_DEVICE_SRC_METAL_WALKER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "device/src/metal/constants.h"
#include "device/src/metal/declarations.h"
#include "device/src/metal/edits.h"
#include "device/src/metal/lexer.h"
#include "device/src/metal/signatures.h"
#include "device/src/metal/table.h"
#include "device/src/metal/translate.h"

namespace switchyard::device::metal {

class Walker {
 public:
  Walker(const Tokens& tokens, Edits& edits,
         const std::vector<std::string>& kernels, Translation& result)
      : tokens_(tokens),
        edits_(edits),
        asked_for_(kernels.begin(), kernels.end()),
        result_(result),
        duplicates_(tokens, edits) {}

  void Run() { Namespace(0, tokens_.size(), "", 0); }
  const Table& table() const { return table_; }

 private:
  struct TemplateParameter {
    bool is_type = false, is_optional = false, is_pack = false;
  };
  struct KernelTemplate {
    std::vector<TemplateParameter> arguments;
    KernelParameters parameters;
    std::string max_threads;  // the name of a template that has it
  };

  // walker.cc
  void Namespace(uint32_t first, uint32_t last, const std::string& scope,
                 int depth);
  uint32_t EnterNamespace(uint32_t i, uint32_t last, const std::string& scope,
                          int depth);
  void AtNamespace(const Declaration& d, const std::string& scope, int depth);
  void Class(const Declaration& d, const std::string& scope, int depth);
  void Member(const Declaration& d, std::string_view class_name,
              const std::string& scope, int depth);
  // Blanks it if it is there already: then there is nothing more to do.
  bool IsDuplicate(const Declaration& d, const std::string& scope);
  void AddUnsupported(std::string what, uint32_t token, std::string kernel);
  void SetError(std::string_view what, uint32_t token);
  std::string Place(uint32_t token) const;

  // variables.cc
  void Variable(const Declaration& d, const std::string& scope);
  void FunctionConstants(const Declaration& d, const std::string& scope);
  bool NeedsFunctionConstants(uint32_t first, uint32_t last) const;
  void SetUp(const Declaration& d, const std::string& scope);
  // Walks a function's body for its variables in threadgroup memory.
  void Body(uint32_t first, uint32_t last);
  uint32_t StatementBegin(uint32_t i, uint32_t first) const;
  // Returns behind it, or i if there is no such variable.
  uint32_t ThreadgroupVariables(uint32_t first, uint32_t last);

  // kernels.cc
  // Whether it is one, or something else that can't be in the module.
  bool Kernel(const Declaration& d, const std::string& scope);
  void Instantiation(const Declaration& d, const std::string& scope);
  std::vector<TemplateParameter> TemplateParameters(const Declaration& d) const;
  // The one that those template arguments and parameters may be of, null if
  // that can't be told.
  const KernelTemplate* FindTemplate(const std::vector<KernelTemplate>& all,
                                     const Piece& arguments,
                                     const Piece& parameters) const;
  // Leaves it out, and what uses it, if it is of a type that is not supported.
  bool IsUnsupported(const Declaration& d);
  // The token that is not supported, or kNone.
  uint32_t FindUnsupported(uint32_t first, uint32_t last,
                           std::string& what) const;
  void LeaveOut(const Declaration& d, const std::string& why);
  // Notes those that are not.
  bool IsAskedFor(const std::string& kernel);
  void AddKernel(std::string name, uint32_t token,
                 std::vector<TranslatedParameter> parameters,
                 std::string pointer, std::string max_threads);

  const Tokens& tokens_;
  Edits& edits_;
  const std::unordered_set<std::string> asked_for_;  // empty: all kernels
  Translation& result_;
  Duplicates duplicates_;
  Constants constants_;
  Table table_;
  // Function constants, and what is made of them.
  std::unordered_set<std::string_view> specialized_;
  std::unordered_map<std::string_view, std::vector<KernelTemplate>> templates_;
  std::unordered_set<std::string> names_;  // of kernels
  // The names that have been left out, and why; functions of the name may
  // remain.
  std::unordered_map<std::string_view, std::string> left_out_;
  std::unordered_set<std::string_view> functions_;
  uint32_t next_ = 0;  // number for a name
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_WALKER_H_
