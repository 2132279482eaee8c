// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Implements isa.h. The ISAs are the targets for which this file is compiled.
// Every kernel file serves the same targets, because all files are compiled
// with the same flags. Only AVX3_DL differs: a file that is not compiled for
// it uses its AVX3 code instead (see targets.h).

// Compiles this file for AVX3_DL, too, because some kernel files have code for
// it.
#define HWY_WANT_AVX3_DL

#include "src/simd/targets.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "src/base/nearest.h"
#include "src/simd/saved_state.h"
#include "switchyard/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/targets.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#if (HWY_TARGETS & HWY_AVX3_DL) && !(HWY_TARGETS & HWY_AVX3) && \
    HWY_STATIC_TARGET != HWY_AVX3_DL
#error "HWY_DISABLED_TARGETS leaves AVX3_DL, but not AVX3, whose code it calls"
#endif

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

bool HasFma() { return HWY_NATIVE_FMA != 0; }

size_t ComputePercent() {
#if HWY_TARGET == HWY_SCALAR
  return 900;
#else
  const size_t lanes =
      hwy::HWY_NAMESPACE::Lanes(hwy::HWY_NAMESPACE::ScalableTag<float>());
  return lanes >= 16 ? 65 : lanes == 8 ? 100 : 250;
#endif
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard {
namespace simd {

namespace {
// The system is known to save ZMM registers if g_cpu_has_bf16 is read, because
// only code for AVX-512 reads it.
bool CpuHasBF16() noexcept {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 &&
         (eax >> 5 & 1) != 0;
#else
  return false;
#endif
}
}  // namespace
const bool g_cpu_has_bf16 = CpuHasBF16();

std::atomic<int64_t> g_last_target{0};
std::atomic<size_t> g_active_index{0};
std::atomic<bool> g_isa_as_asked{false};

namespace {

HWY_EXPORT(HasFma);
HWY_EXPORT(ComputePercent);

constexpr size_t kMaxTargets = 64;

// The targets of a bit set, best first (Highway gives the best the lowest bit).
struct IsaList {
  Isa isas[kMaxTargets] = {};
  int64_t bits[kMaxTargets] = {};
  size_t indices[kMaxTargets] = {};  // each target's index in Highway's tables
  size_t size = 0;

  explicit IsaList(int64_t targets) {
    for (; targets != 0; targets &= targets - 1) {
      const int64_t bit = targets & -targets;
      hwy::ChosenTarget only;
      only.Update(bit);
#if HWY_IDE || ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0)
      const bool fma = HWY_STATIC_DISPATCH(HasFma)();
#else
      const bool fma = HWY_DISPATCH_TABLE(HasFma)[only.GetIndex()]();
#endif
      isas[size] = Isa{hwy::TargetName(bit), fma};
      bits[size] = bit;
      indices[size] = only.GetIndex();
      ++size;
    }
  }

  const Isa* Find(int64_t bit) const {
    for (size_t i = 0; i < size; ++i) {
      if (bits[i] == bit) return &isas[i];
    }
    return nullptr;
  }
  // Returns the index of the ISA called `name`, or `size` if there is none.
  size_t IndexOf(const char* name) const {
    size_t i = 0;
    while (i < size && std::strcmp(name, isas[i].name) != 0) ++i;
    return i;
  }
};

const IsaList& Compiled() {
  static const IsaList list(HWY_TARGETS);
  return list;
}

// Returns the targets that the system lets run. Highway 1.0.3 only asks CPUID,
// which lists AVX2 even if a virtual machine hides the registers. The first
// kernel would then end with SIGILL.
int64_t TargetsWithState(int64_t targets) noexcept {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool has_osxsave =
      __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 27 & 1) != 0;
  uint32_t low = 0, high = 0;
  if (has_osxsave) {
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  }
  const SavedState state =
      SavedStateOf(has_osxsave, uint64_t{high} << 32 | low);
  // Better targets have lower bits, so all bits below AVX2's bit are AVX-512.
  if (!state.avx512) targets &= ~(int64_t{HWY_AVX2} - 1);
  if (!state.avx) targets &= ~int64_t{HWY_AVX2};
#endif
  // The baseline always runs, because library and caller are compiled for it.
  return targets != 0 ? targets : int64_t{HWY_STATIC_TARGET};
}

const IsaList& Runnable() {
  static const IsaList list(
      TargetsWithState(HWY_TARGETS & hwy::SupportedTargets()));
  return list;
}

bool IsCompiled(const char* name) {
  return Compiled().IndexOf(name) < Compiled().size;
}

// Other names for Highway's targets, without '-', '_' and '.'. A given name
// means the first entry that it begins with. "avx512" is in the list because
// otherwise it would mean the nearest name, AVX2, which is two letters away.
struct OtherName {
  std::string_view begin;
  std::string_view isa;
};
constexpr OtherName kOtherNames[] = {
    {"avx512vnni", "AVX3_DL"}, {"avx512vbmi", "AVX3_DL"},
    {"avx512bf16", "AVX3_DL"}, {"avx512", "AVX3"},
    {"avx10", "AVX3_DL"},      {"skylakeavx512", "AVX3"},
    {"icelake", "AVX3_DL"},    {"haswell", "AVX2"},
    {"x8664v4", "AVX3"},       {"x8664v3", "AVX2"},
    {"x8664v2", "SSE4"},       {"fma", "AVX2"},
    {"asimd", "NEON"},         {"none", "SCALAR"},
    {"none", "EMU128"},
};

// Messages for names close to names of compiled ISAs: the text `wrong`, and the
// ISA that was probably meant. They are kept as long as the program runs,
// because a Status points to them. They are made at run time, because Highway's
// target names are only known then.
class DidYouMean {
 public:
  explicit DidYouMean(const char* wrong) : wrong_(wrong) {
    const auto add = [&](const Isa& isa, const char* which) {
      std::snprintf(texts_[size_], sizeof(texts_[size_]),
                    "%s; did you mean %s%s", wrong, isa.name, which);
      names_[size_++] = isa.name;
    };
    // Runnable ISAs come first, because the first of equally close names wins.
    for (size_t i = 0; i < Runnable().size; ++i) add(Runnable().isas[i], "");
    for (size_t i = 0; i < Compiled().size; ++i) {
      if (Runnable().Find(Compiled().bits[i]) == nullptr) {
        add(Compiled().isas[i], ", which this CPU cannot run");
      }
    }
  }
  const char* Message(const char* name) const {
    const size_t other = FindOtherName(name);
    if (other < size_) return texts_[other];
    const size_t nearest = internal::NearestName(
        name, size_, [&](size_t i) { return std::string_view(names_[i]); });
    return nearest < size_ ? texts_[nearest] : wrong_;
  }

 private:
  size_t FindOtherName(const char* name) const {
    char plain[internal::kLongestName + 1];
    size_t size = 0;
    for (const char* c = name; *c != '\0' && size < sizeof(plain); ++c) {
      if (*c == '-' || *c == '_' || *c == '.') continue;
      plain[size++] = *c >= 'A' && *c <= 'Z' ? static_cast<char>(*c + 32) : *c;
    }
    const std::string_view given(plain, size);
    for (const OtherName& other : kOtherNames) {
      if (given.substr(0, other.begin.size()) != other.begin) continue;
      for (size_t i = 0; i < size_; ++i) {
        if (names_[i] == other.isa) return i;
      }
    }
    return size_;
  }

  const char* const wrong_;
  const char* names_[kMaxTargets] = {};
  char texts_[kMaxTargets][160] = {};
  size_t size_ = 0;
};

struct Chosen {
  bool environment_ok = true;

  Chosen() {
    const char* const name = std::getenv("SWITCHYARD_ISA");
    const bool given = name != nullptr && *name != '\0';
    const size_t place = given ? Runnable().IndexOf(name) : 0;
    environment_ok = place < Runnable().size;
    Use(environment_ok ? place : 0);
    g_isa_as_asked.store(environment_ok, std::memory_order_relaxed);
  }
  // Uses the runnable ISA with index `place`.
  void Use(size_t place) {
    g_active_index.store(Runnable().indices[place], std::memory_order_relaxed);
  }
};

Chosen& GetChosen() {
  static Chosen chosen;
  return chosen;
}

}  // namespace

size_t SetUpActiveIndex() noexcept {
  GetChosen();
  return g_active_index.load(std::memory_order_relaxed);
}

}  // namespace simd

Span<const Isa> CompiledIsas() noexcept {
  return {simd::Compiled().isas, simd::Compiled().size};
}

Span<const Isa> RunnableIsas() noexcept {
  return {simd::Runnable().isas, simd::Runnable().size};
}

const Isa& ActiveIsa() noexcept {
  const simd::IsaList& runnable = simd::Runnable();
  const size_t index = simd::ActiveIndex();
  size_t place = 0;
  while (runnable.indices[place] != index) ++place;
  return runnable.isas[place];
}

const Isa* LastIsa() noexcept {
  return simd::Compiled().Find(
      simd::g_last_target.load(std::memory_order_relaxed));
}

Status CapIsa(const char* name) noexcept {
  if (name == nullptr) {
    simd::GetChosen().Use(0);
    return Status();
  }
  const size_t place = simd::Runnable().IndexOf(name);
  if (place < simd::Runnable().size) {
    simd::GetChosen().Use(place);
    return Status();
  }
  if (simd::IsCompiled(name)) {
    return Status(StatusCode::kInvalidArgument,
                  "CapIsa: name: this CPU cannot run that ISA");
  }
  static const simd::DidYouMean did_you_mean(
      "CapIsa: name: the library is not compiled for that ISA");
  return Status(StatusCode::kInvalidArgument, did_you_mean.Message(name));
}

Status EnvironmentIsa() noexcept {
  if (simd::GetChosen().environment_ok) return Status();
  static const simd::DidYouMean did_you_mean(
      "SWITCHYARD_ISA: not an ISA that this CPU and library can run");
  const char* const given = std::getenv("SWITCHYARD_ISA");
  const char* const name = given != nullptr ? given : "";
  return Status(StatusCode::kInvalidArgument,
                simd::IsCompiled(name)
                    ? "SWITCHYARD_ISA: this CPU cannot run that ISA"
                    : did_you_mean.Message(name));
}

namespace simd {

size_t ComputePs(size_t avx2_ps) noexcept {
  return avx2_ps * SWITCHYARD_DISPATCH(ComputePercent)() / 100;
}

}  // namespace simd
}  // namespace switchyard

#endif  // HWY_ONCE
