// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A function in an LLVM module's text: its basic blocks, their instructions,
// and the values that the instructions define and use.

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
  size_t value = kNoIndex;  // the value that it defines, or kNoIndex
  std::string code;         // the text behind "%1 = ", without !dbg
  std::string_view op;      // "load", "call", ...: a part of `code`
  std::vector<size_t> uses;
  // The values of a phi. Each has the label of the block that it comes from.
  struct Incoming {
    std::string value, label;
    size_t block = kNoIndex;
  };
  std::vector<Incoming> incoming;

  Instruction() = default;
  Instruction(const Instruction&) = delete;
  Instruction& operator=(const Instruction&) = delete;
  Instruction(Instruction&&) = delete;
  // Returns the function that a call names, such as "@sqrtf". Returns an
  // empty text for other instructions.
  std::string_view FindCallee() const;
};

// A basic block. It ends with LLVM's terminator or with a barrier, which is a
// call in which threads wait for each other. So a block of LLVM with a
// barrier is cut in two.
struct BasicBlock {
  std::string label;
  // All instructions but the last.
  std::vector<const Instruction*> instructions;
  // The last instruction: a terminator or a barrier.
  const Instruction* terminator = nullptr;
  std::vector<size_t> successors;

  bool ends_with_barrier() const { return terminator->op == "call"; }
};

class LlvmFunction {
 public:
  // Reads `text`, from "define" to "}". `is_barrier` tells which functions
  // are barriers. Returns nothing if the text has an unknown form.
  static std::optional<LlvmFunction> Read(
      std::string_view text,
      const std::function<bool(std::string_view callee)>& is_barrier);

  // Returns the names of values, such as "%12". The first value is the
  // function's only parameter.
  const std::vector<std::string>& values() const { return values_; }
  const std::vector<BasicBlock>& blocks() const { return blocks_; }
  const Instruction* definition(size_t value) const {
    return definitions_[value];
  }
  size_t block_of(size_t value) const { return blocks_of_[value]; }
  // Returns the type of a value, from the text of its definition or of a use.
  // Returns an empty text if neither has the type.
  std::string FindType(size_t value) const;
  // Returns the index of the value with this name, or kNoIndex.
  size_t Find(std::string_view name) const;
  // Returns `code` with each value's name replaced by name(value).
  std::string Replace(std::string_view code,
                      const std::function<std::string(size_t)>& name) const;

 private:
  bool ReadAll(std::string_view text,
               const std::function<bool(std::string_view)>& is_barrier);
  bool ReadInstruction(std::string_view line, Instruction& read);
  bool ReadSuccessors(size_t block,
                      const std::unordered_map<std::string, size_t>& starts);

  std::vector<std::string> values_;
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<const Instruction*> definitions_;
  std::vector<size_t> blocks_of_;
  std::vector<BasicBlock> blocks_;
  std::vector<std::unique_ptr<Instruction>> instructions_;
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_LLVM_FUNCTION_H_
