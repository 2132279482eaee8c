// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A function of an LLVM module's text: its blocks, their instructions, and
// which values these make and use.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_LLVM_FUNCTION_H_
#define SWITCHYARD_DEVICE_SRC_METAL_LLVM_FUNCTION_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/src/metal/llvm_text.h"

namespace switchyard::device::metal {

constexpr size_t kNoIndex = static_cast<size_t>(-1);

struct Instruction {
  size_t value = kNoIndex;  // that it makes
  std::string code;         // behind "%1 = ", without places in the source
  Text op;                  // "load", "call", ..., a part of code
  std::vector<size_t> uses;
  // A phi takes each value from a block; both are text as it stands there.
  struct Incoming {
    std::string value, label;
    size_t block = kNoIndex;
  };
  std::vector<Incoming> incoming;

  Instruction() = default;
  Instruction(const Instruction&) = delete;
  Instruction& operator=(const Instruction&) = delete;
  Instruction(Instruction&&) = delete;
  // The function that it calls by name: "@sqrtf", or nothing.
  Text Callee() const;
};

// Ends with a terminator, or where a function is called at which threads meet:
// the next block then is the rest.
struct Block {
  std::string label;
  std::vector<const Instruction*> code;  // without the terminator
  const Instruction* end = nullptr;
  std::vector<size_t> successors;
};

class LlvmFunction {
 public:
  // Reads `text`, from "define" to "}". `meets` tells of a callee whether
  // threads meet in it. Nothing, if there is in it what this does not know.
  static std::optional<LlvmFunction> Read(
      Text text, const std::function<bool(Text callee)>& meets);

  // A value's name is its text: "%12". The first is the one parameter.
  const std::vector<std::string>& values() const { return values_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  const Instruction* definition(size_t value) const { return made_[value]; }
  size_t block_of(size_t value) const { return made_in_[value]; }
  // The text is the one where it is made or used; empty if there is none.
  std::string TypeOf(size_t value) const;
  size_t Find(Text name) const;
  // `code` with each value replaced by what `name` gives for it.
  std::string Replace(Text code,
                      const std::function<std::string(size_t)>& name) const;

 private:
  bool ReadAll(Text text, const std::function<bool(Text)>& meets);
  bool ReadInstruction(Text line, Instruction& made);
  bool ReadSuccessors(size_t block,
                      const std::unordered_map<std::string, size_t>& starts);

  std::vector<std::string> values_;
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<const Instruction*> made_;
  std::vector<size_t> made_in_;
  std::vector<Block> blocks_;
  std::vector<std::unique_ptr<Instruction>> instructions_;
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_LLVM_FUNCTION_H_
