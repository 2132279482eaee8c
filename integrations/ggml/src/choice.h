// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A table of the weight types that the plug-in multiplies, and of the
// smallest batches for which it was measured to be faster than ggml.
// claims.h, the report and README.md use this table.

#ifndef SWITCHYARD_GGML_CHOICE_H_
#define SWITCHYARD_GGML_CHOICE_H_

#include <cstdint>
#include <optional>

#include "ggml.h"
#include "switchyard/expert_weights.h"

namespace switchyard_ggml {

// Kinds of CPUs. They differ in the instructions that oneDNN uses for experts'
// products.
enum class Cpu {
  kAvx512Bf16,  // also AMX: oneDNN multiplies bf16 without converting it
  kAvx512,
  kAvx2,
  kOther,
};

// The kind of this CPU. ONEDNN_MAX_CPU_ISA can lower it.
Cpu ThisCpu();

// With fewer tokens than this, router and sum are left to ggml, because they
// save less time than another split of the graph costs. If the plug-in also
// computes the experts, no further split is needed, so smaller batches are
// claimed too.
constexpr int64_t kMinTokens = 32;

// A ggml type of experts' weights.
struct ExpertType {
  ggml_type type;
  // If set, Switchyard multiplies the weights in this format. If empty, oneDNN
  // multiplies them.
  std::optional<switchyard::WeightFormat> format;
  // For each Cpu: the smallest batch for which the plug-in is faster than
  // ggml with weights as stored, as a mean number of (token, slot) pairs per
  // expert. 0 means any batch, even one token.
  double min_pairs[4];
};

// Returns nullptr if the plug-in cannot multiply weights of this type.
const ExpertType* FindExpertType(ggml_type type);

// Returns min_pairs of the type for this CPU.
double MinPairsPerExpert(ggml_type type);

// Whether SWITCHYARD_GGML_PACK is set in the environment, and not 0.
bool IsPackingAsked();
// True if weights of the type are packed while they are loaded. This is so if
// IsPackingAsked(), the type has a packed layout, and this CPU multiplies it
// fast.
bool IsPackedWhenLoaded(ggml_type type);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_CHOICE_H_
