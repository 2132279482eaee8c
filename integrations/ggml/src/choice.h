// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A table of the weight types that the plug-in multiplies, with the smallest
// batches for which the plug-in was measured to be faster than ggml.
// claims.h, the report and README.md use the table.

#ifndef SWITCHYARD_GGML_CHOICE_H_
#define SWITCHYARD_GGML_CHOICE_H_

#include <cstdint>
#include <optional>

#include "ggml-backend.h"
#include "ggml.h"
#include "switchyard/expert_weights.h"

namespace switchyard_ggml {

// Kinds of CPUs. They differ in the instructions that oneDNN uses for experts'
// products.
enum class Cpu {
  kAvx512Bf16,  // or AMX: oneDNN multiplies bf16 without converting it
  kAvx512,
  kAvx2,
  kOther,
};

// Returns the kind of this CPU. ONEDNN_MAX_CPU_ISA in the environment can
// lower it.
Cpu ThisCpu();

// The smallest batch for which the plug-in computes the router and the sum of
// experts if ggml computes the experts. With fewer tokens, router and sum
// save less time than another split of the graph costs. If the plug-in also
// computes the experts, router and sum need no further split, so the plug-in
// then computes them for smaller batches too.
constexpr int64_t kMinTokens = 32;

// A ggml type of experts' weights.
struct ExpertType {
  ggml_type type;
  // If set, Switchyard multiplies weights of the type in this format. If
  // empty, oneDNN multiplies them.
  std::optional<switchyard::WeightFormat> format;
  // For each Cpu: the smallest batch for which the plug-in is faster than
  // ggml, if weights are as stored. With `format`, it is a number of tokens.
  // Without, it is a mean number of (token, slot) pairs per expert, because
  // oneDNN converts an expert's weights once for all of its rows.
  double min_batch[4];
};

// Returns the row of the table for `type`, or nullptr if the plug-in cannot
// multiply weights of this type.
const ExpertType* FindExpertType(ggml_type type);

// Returns the mean number of (token, slot) pairs per expert.
constexpr double PairsPerExpert(double tokens, int64_t slots, int64_t experts) {
  return tokens * static_cast<double>(slots) / static_cast<double>(experts);
}

// Returns min_batch of the type for this CPU as a mean number of pairs per
// expert, in a layer with `experts` experts that selects `slots` for each
// token.
double MinPairsPerExpert(ggml_type type, int64_t slots, int64_t experts);

// Returns the smallest number of tokens for which the plug-in multiplies by a
// matrix of the type that is as stored and belongs to no expert.
double MinTokensOfMatrix(ggml_type type);

// True unless SWITCHYARD_GGML_PACK is 0 in the environment.
bool IsPackingAsked();
// True if the device is a GPU.
bool IsGpu(ggml_backend_dev_t device);
// True if the plug-in multiplies matrices: unless SWITCHYARD_GGML_DENSE is 0 in
// the environment, on a CPU that is not kOther, and unless SWITCHYARD_ISA is
// wrong. Otherwise it multiplies only experts.
bool TakesMatrices();
// True if weights of the type are packed while they are loaded: if
// IsPackingAsked(), the type has a packed layout, and this CPU multiplies
// packed weights fast. With a GPU, only if SWITCHYARD_GGML_PACK asks for it,
// because the GPU cannot read packed weights.
bool IsPackedWhenLoaded(ggml_type type);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_CHOICE_H_
