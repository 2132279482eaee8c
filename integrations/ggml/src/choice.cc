// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "choice.h"

#include <cstdlib>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "switchyard/isa.h"

namespace switchyard_ggml {
namespace {

using switchyard::WeightFormat;

constexpr double kNever = std::numeric_limits<double>::infinity();

// README.md has the measurements and their commands. On CPUs that were not
// measured (kOther), ggml runs all experts.
//
// f16 on AVX2: the plug-in converts the weights to f32 for each batch, and
// stock llama.cpp multiplies f16 faster than bf16. So the plug-in has 0.84 of
// stock's speed at 4 (token, slot) pairs per expert, 0.98 to 1.01 at 8, and
// 1.10 at 12.
//
// Quantised types were measured as stored, on AVX-512 and with AVX2. At one
// token, q8_0 has 0.96 to 0.99 of stock's speed, and 1.07 to 1.2 at two. q4_K
// and q6_K have 1.04 to 1.17 on AVX-512. On AVX2 they have 0.98 to 1.06 at one
// token, which is no gain, and 1.1 to 1.2 at two. Matrices gain another 3 to
// 25 % from two tokens on, and those in q4_0 also at one token.
constexpr ExpertType kTypes[] = {
    {GGML_TYPE_BF16, {}, {4, 4, 4, kNever}},
    {GGML_TYPE_F16, {}, {4, 4, 12, kNever}},
    {GGML_TYPE_Q8_0, WeightFormat::kQ8_0, {2, 2, 2, kNever}},
    {GGML_TYPE_Q4_0, WeightFormat::kQ4_0, {1, 1, 1, kNever}},
    {GGML_TYPE_MXFP4, WeightFormat::kMXFP4, {1, 1, 1, kNever}},
    {GGML_TYPE_Q4_K, WeightFormat::kQ4_K, {1, 1, 2, kNever}},
    {GGML_TYPE_Q6_K, WeightFormat::kQ6_K, {1, 1, 2, kNever}},
};

bool Has(dnnl::cpu_isa isa) {
  static const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto wanted = static_cast<unsigned>(isa);
  return (has & wanted) == wanted;
}

bool IsNotZero(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr || std::string(value) != "0";
}

}  // namespace

Cpu ThisCpu() {
  if (Has(dnnl::cpu_isa::avx512_core_bf16)) return Cpu::kAvx512Bf16;
  if (Has(dnnl::cpu_isa::avx512_core)) return Cpu::kAvx512;
  return Has(dnnl::cpu_isa::avx2) ? Cpu::kAvx2 : Cpu::kOther;
}

const ExpertType* FindExpertType(ggml_type type) {
  for (const ExpertType& row : kTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

double MinPairsPerExpert(ggml_type type, int64_t slots, int64_t experts) {
  const ExpertType* row = FindExpertType(type);
  if (row == nullptr) return kNever;
  const double least = row->min_batch[static_cast<int>(ThisCpu())];
  return row->format ? PairsPerExpert(least, slots, experts) : least;
}

double MinTokensOfMatrix(ggml_type type) {
  const ExpertType* row = FindExpertType(type);
  if (row == nullptr || !row->format) return kNever;
  return row->min_batch[static_cast<int>(ThisCpu())];
}

bool IsPackingAsked() {
  static const bool asked = IsNotZero("SWITCHYARD_GGML_PACK");
  return asked;
}

bool IsGpu(ggml_backend_dev_t device) {
  const enum ggml_backend_dev_type type = ggml_backend_dev_type(device);
  return type == GGML_BACKEND_DEVICE_TYPE_GPU ||
         type == GGML_BACKEND_DEVICE_TYPE_IGPU;
}

bool TakesMatrices() {
  static const bool asked = IsNotZero("SWITCHYARD_GGML_DENSE");
  return asked && ThisCpu() != Cpu::kOther && switchyard::EnvironmentIsa().ok();
}

bool IsPackedWhenLoaded(ggml_type type) {
  const ExpertType* row = FindExpertType(type);
  if (row == nullptr || !row->format || !IsPackingAsked() ||
      ThisCpu() == Cpu::kOther || !switchyard::EnvironmentIsa().ok()) {
    return false;
  }
  if (std::getenv("SWITCHYARD_GGML_PACK") != nullptr) return true;
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    if (IsGpu(ggml_backend_dev_get(i))) return false;
  }
  return true;
}

}  // namespace switchyard_ggml
