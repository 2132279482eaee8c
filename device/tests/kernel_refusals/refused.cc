// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Contains a kernel that compiles. If the macro REFUSED is a number from 1 to
// 9, the kernel also has a line that must not compile.

#include "switchyard/device/kernel.h"

namespace {

using namespace switchyard::device;

struct Unnamed {
  float key;
};
struct Named {
  float key;
};
SWITCHYARD_MEMBERS(Named, key)
struct NotCopied {
  NotCopied(const NotCopied& other) : key(other.key) {}
  float key;
};

struct Kernel {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto named = buffer<Named>(tg, 0);
    const auto reads = buffer<const float2>(tg, 1);
    auto floats = tg.per_thread(0.0f);
    auto structs = tg.per_thread(Unnamed());
    named->key = reads[0].x;
#if REFUSED == 1
    buffer<Unnamed>(tg, 0)->key = 1.0f;
#elif REFUSED == 2
    simd_sum(structs);
#elif REFUSED == 3
    simd_max(structs);
#elif REFUSED == 4
    simd_xor(floats);
#elif REFUSED == 5
    atomic_buffer<half>(tg, 0).load(0);
#elif REFUSED == 6
    reads[0].x = 1.0f;
#elif REFUSED == 7
    named[0.5] = Named();
#elif REFUSED == 8
    buffer<NotCopied>(tg, 0);
#elif REFUSED == 9
    simd_shuffle(floats, floats);
#endif
    (void)floats;
    (void)structs;
  }
};

}  // namespace

KernelFunction Make() { return MakeKernel("kernel", Kernel()); }
