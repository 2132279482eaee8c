// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "choice.h"

#include <limits>
#include <oneapi/dnnl/dnnl.hpp>

namespace switchyard_ggml {
namespace {

constexpr int64_t kNever = std::numeric_limits<int32_t>::max();

struct Choice {
  Cpu cpu;
  ggml_type type;
  int64_t min_pairs_per_expert;
};

// README.md has the measurements and their command. What has no line, such as
// quantised types, is slower here or was not measured. f16 on AVX2 becomes f32
// for each batch, and stock multiplies it faster than bf16: 0.84 of stock's
// speed at 4 pairs, 0.98 to 1.01 at 8, 1.10 at 12.
constexpr Choice kChoices[] = {
    {Cpu::kAvx512Bf16, GGML_TYPE_BF16, 4}, {Cpu::kAvx512Bf16, GGML_TYPE_F16, 4},
    {Cpu::kAvx512, GGML_TYPE_BF16, 4},     {Cpu::kAvx512, GGML_TYPE_F16, 4},
    {Cpu::kAvx2, GGML_TYPE_BF16, 4},       {Cpu::kAvx2, GGML_TYPE_F16, 12},
};

bool Has(dnnl::cpu_isa isa) {
  static const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto wanted = static_cast<unsigned>(isa);
  return (has & wanted) == wanted;
}

}  // namespace

Cpu ThisCpu() {
  if (Has(dnnl::cpu_isa::avx512_core_bf16)) return Cpu::kAvx512Bf16;
  if (Has(dnnl::cpu_isa::avx512_core)) return Cpu::kAvx512;
  return Has(dnnl::cpu_isa::avx2) ? Cpu::kAvx2 : Cpu::kOther;
}

int64_t MinPairsPerExpert(ggml_type type, Cpu cpu) {
  for (const Choice& choice : kChoices) {
    if (choice.cpu == cpu && choice.type == type) {
      return choice.min_pairs_per_expert;
    }
  }
  return kNever;
}

}  // namespace switchyard_ggml
