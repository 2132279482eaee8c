// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The table of weights that are multiplied here, and the batches for which that
// was measured to be faster than ggml's own nodes. Claims, the report and
// README.md follow it.

#ifndef SWITCHYARD_GGML_CHOICE_H_
#define SWITCHYARD_GGML_CHOICE_H_

#include <cstdint>
#include <optional>

#include "ggml.h"
#include "switchyard/expert_weights.h"

namespace switchyard_ggml {

// CPUs by the instructions that oneDNN's products of experts run on.
enum class Cpu {
  kAvx512Bf16,  // or AMX: bf16 is multiplied as it is stored
  kAvx512,
  kAvx2,
  kOther,
};

// This CPU, or less with ONEDNN_MAX_CPU_ISA.
Cpu ThisCpu();

// Router and sum of smaller batches are left alone, unless the experts are
// computed here: there, they save less time than another split of the graph
// costs.
constexpr int64_t kMinTokens = 32;

// One of ggml's types that experts' weights may have.
struct ExpertType {
  ggml_type type;
  // Multiplied by Switchyard's tiles in this format; without it, by oneDNN.
  std::optional<switchyard::WeightFormat> format;
  // The least mean number of (token, slot) pairs per expert for which weights
  // as stored are faster here, by Cpu. 0: any batch, of one token, too.
  double min_pairs[4];
};

// Nullptr if no product here takes the type.
const ExpertType* FindExpertType(ggml_type type);

// The type's least mean number of pairs on this CPU.
double MinPairsPerExpert(ggml_type type);

// SWITCHYARD_GGML_PACK in the environment is not 0.
bool IsPackingAsked();
// Whether weights of the type are packed while they are loaded: that is asked
// for, the type has a packed layout, and this CPU has fast products with it.
bool IsPackedWhenLoaded(ggml_type type);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_CHOICE_H_
