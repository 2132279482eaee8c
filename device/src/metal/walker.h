// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Walks over the declarations of a shader and translates forms that C++ does
// not have: kernels, function constants, threadgroup variables, and functions
// that differ only in address spaces. Before that, EraseWords() in
// translate.cc erases address spaces and attributes.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_WALKER_H_
#define SWITCHYARD_DEVICE_SRC_METAL_WALKER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "device/src/metal/declarations.h"
#include "device/src/metal/table.h"
#include "device/src/metal/text.h"
#include "device/src/metal/translate.h"

namespace switchyard::device::metal {

struct KernelParameters {
  std::vector<TranslatedParameter> list;
  // The reason why the kernel can't run, and the token that causes it. The
  // reason is empty if the kernel can run.
  std::string unsupported;
  uint32_t token = kNone;
};

class Walker {
 public:
  Walker(Text& text, const std::vector<std::string>& kernels,
         Translation& result)
      : text_(text),
        asked_for_(kernels.begin(), kernels.end()),
        result_(result),
        duplicates_(text) {}

  void Run() { WalkNamespace(0, text_.size(), "", 0); }
  const Table& table() const { return table_; }

 private:
  struct TemplateParameter {
    bool is_type = false, is_optional = false, is_pack = false;
  };
  struct KernelTemplate {
    std::vector<TemplateParameter> arguments;
    KernelParameters parameters;
    std::string max_threads;  // a class template; its value is the maximum
  };

  // The following functions are defined in walker.cc.
  void WalkNamespace(uint32_t first, uint32_t last, const std::string& scope,
                     int depth);
  uint32_t EnterNamespace(uint32_t i, uint32_t last, const std::string& scope,
                          int depth);
  void WalkDeclaration(const Declaration& d, const std::string& scope,
                       int depth);
  void WalkClass(const Declaration& d, const std::string& scope, int depth);
  void WalkMember(const Declaration& d, std::string_view class_name,
                  const std::string& scope, int depth);
  // Returns true if it erased the declaration because an earlier declaration
  // is the same in C++.
  bool EraseIfDuplicate(const Declaration& d, const std::string& scope);
  void AddUnsupported(std::string what, uint32_t token, std::string kernel);
  void SetError(std::string_view what, uint32_t token);

  // Translates program-scope constants and variables in threadgroup memory.
  void WalkVariable(const Declaration& d, const std::string& scope);
  void TranslateFunctionConstants(const Declaration& d,
                                  const std::string& scope);
  bool NeedsFunctionConstants(uint32_t first, uint32_t last) const;
  // Turns a constant's initializer into a function, because function
  // constants have no values yet when the module is loaded.
  void MakeSetUp(const Declaration& d, const std::string& scope);
  // Translates the variables in threadgroup memory in a function's body.
  void WalkBody(uint32_t first, uint32_t last);
  uint32_t FindStatementBegin(uint32_t i, uint32_t first) const;
  // Returns the token behind the variables, or `first` if it finds no
  // variables.
  uint32_t TranslateThreadgroupVariables(uint32_t first, uint32_t last);

  // Returns true if the function is a kernel, or can't be in the module.
  bool TranslateKernel(const Declaration& d, const std::string& scope);
  void TranslateInstantiation(const Declaration& d, const std::string& scope);
  std::vector<TemplateParameter> ReadTemplateParameters(
      const Declaration& d) const;
  // Returns the template that fits the arguments and parameters, or null
  // unless exactly one fits.
  const KernelTemplate* FindTemplate(const std::vector<KernelTemplate>& all,
                                     const Piece& arguments,
                                     const Piece& parameters) const;
  // If a declaration's type is not supported, leaves the declaration out and
  // returns true. Then declarations that use a left-out declaration are left
  // out, too.
  bool LeaveOutIfUnsupported(const Declaration& d);
  // Returns the first token that is not supported and names its feature in
  // `what`, or returns kNone.
  uint32_t FindUnsupported(uint32_t first, uint32_t last,
                           std::string& what) const;
  void LeaveOut(const Declaration& d, const std::string& why);
  // Returns true if the caller asked for the kernel. Otherwise adds it to
  // Translation::not_asked_for, and returns false.
  bool IsAskedFor(const std::string& kernel);
  void AddKernel(std::string name, uint32_t token,
                 std::vector<TranslatedParameter> parameters,
                 std::string pointer, std::string max_threads);

  Text& text_;
  // Empty if the caller asks for all kernels.
  const std::unordered_set<std::string> asked_for_;
  Translation& result_;
  Duplicates duplicates_;
  Constants constants_;
  Table table_;
  // The names of function constants, and of constants that depend on them.
  std::unordered_set<std::string_view> specialized_;
  std::unordered_map<std::string_view, std::vector<KernelTemplate>> templates_;
  std::unordered_set<std::string> names_;  // the names of kernels
  // The names of declarations that were left out, and the reasons. Overloads
  // of a function that was left out may remain in the code.
  std::unordered_map<std::string_view, std::string> left_out_;
  std::unordered_set<std::string_view> functions_;
  uint32_t next_ = 0;  // the number in the next generated name
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_WALKER_H_
