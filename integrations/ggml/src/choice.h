// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Batches that are computed here: those that were measured to be faster than
// ggml's own nodes.

#ifndef SWITCHYARD_GGML_CHOICE_H_
#define SWITCHYARD_GGML_CHOICE_H_

#include <cstdint>

#include "ggml.h"

namespace switchyard_ggml {

// CPUs by what oneDNN's products of experts run on.
enum class Cpu {
  kAvx512Bf16,  // or AMX: bf16 is multiplied as it is stored
  kAvx512,
  kAvx2,
  kOther,
};

// This CPU, or less with ONEDNN_MAX_CPU_ISA.
Cpu ThisCpu();

// Router and sum of smaller batches are left alone: there, what is saved is
// less than what another split of the graph costs.
constexpr int64_t kMinTokens = 32;

// The mean number of (token, slot) pairs per expert from which on experts of
// this type are faster here on the CPU.
int64_t MinPairsPerExpert(ggml_type type, Cpu cpu);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_CHOICE_H_
