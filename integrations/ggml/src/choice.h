// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The weight types that the plug-in multiplies, and the batches for which it
// was measured to be faster than ggml's own nodes. Claims, the report and
// README.md follow this table.

#ifndef SWITCHYARD_GGML_CHOICE_H_
#define SWITCHYARD_GGML_CHOICE_H_

#include <cstdint>
#include <optional>

#include "ggml.h"
#include "switchyard/expert_weights.h"

namespace switchyard_ggml {

// CPUs by the instructions that oneDNN uses for experts' products.
enum class Cpu {
  kAvx512Bf16,  // or AMX: multiplies bf16 without converting it
  kAvx512,
  kAvx2,
  kOther,
};

// The kind of this CPU. ONEDNN_MAX_CPU_ISA can lower it.
Cpu ThisCpu();

// Smaller batches leave the router and the sum to ggml, because they save
// less time than another split of the graph costs. If the experts run here,
// no further split is needed, and smaller batches are claimed too.
constexpr int64_t kMinTokens = 32;

// A ggml type of experts' weights.
struct ExpertType {
  ggml_type type;
  // The format that Switchyard's tiles multiply. If empty, oneDNN multiplies.
  std::optional<switchyard::WeightFormat> format;
  // The least mean number of (token, slot) pairs per expert for which weights
  // as stored are faster here, by Cpu. 0: any batch, even one token.
  double min_pairs[4];
};

// Nullptr if no product here supports the type.
const ExpertType* FindExpertType(ggml_type type);

// The type's least mean number of pairs on this CPU.
double MinPairsPerExpert(ggml_type type);

// Whether SWITCHYARD_GGML_PACK is set in the environment, and not 0.
bool IsPackingAsked();
// Whether weights of the type are packed while they are loaded: packing is
// asked for, the type has a packed layout, and this CPU multiplies it fast.
bool IsPackedWhenLoaded(ggml_type type);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_CHOICE_H_
