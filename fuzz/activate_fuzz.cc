// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Activate against the formula in double precision, in place and not, in every
// layout, on every ISA; and refusals.

#include <cmath>

#include "fuzz/call.h"
#include "switchyard/activate.h"
#include "testing/reference.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

namespace {

std::string Text(float f) {
  char text[32];
  std::snprintf(text, sizeof(text), "%a", static_cast<double>(f));
  return text;
}

// The spacing of floats at |x|.
double Ulp(double x) {
  const double least = 0x1p-126;
  const double size = std::max(least, std::fabs(x));
  return std::ldexp(1.0, std::ilogb(size) - 23);
}

// silu is within 2.5 ulp with FMA, a few more without; then the product.
bool IsClose(float gate, float up, float out, bool fma) {
  const double silu = reference::Silu(static_cast<double>(gate));
  const double exact = silu * static_cast<double>(up);
  if (std::isnan(exact)) return std::isnan(out);
  const double off = (fma ? 2.5 : 8.0) * Ulp(silu);
  if (std::isinf(exact)) {
    // silu(2^-149) is rounded to 0, and 0 * inf is NaN.
    return static_cast<double>(out) == exact ||
           (std::isnan(out) && std::isinf(up) && std::fabs(silu) <= off);
  }
  const double bound =
      off * std::fabs(static_cast<double>(up)) + 0.5 * Ulp(exact);
  const double error = std::fabs(static_cast<double>(out) - exact);
  // At the end of the range either neighbour may be infinity.
  const double most = static_cast<double>(std::numeric_limits<float>::max());
  if (std::isinf(out)) return std::fabs(exact) + 2 * bound >= most;
  // At -87.33655 the last value before -0 may go either way.
  return error <= bound || (std::fabs(gate + 87.33655f) < 1e-4f &&
                            error <= 1e-36 * std::fabs(up));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Spoiler spoiler(bytes);
  ActivateOptions options;
  options.layout = static_cast<GateUpLayout>(bytes.Below(3));
  options.stores = static_cast<ActivateStores>(bytes.Below(3));
  const bool split = options.layout == GateUpLayout::kSplit;
  const size_t rows = bytes.Size({1, 2, 0}, 6);
  const size_t cols = bytes.Size({0, 1, 16, 32, 64, 128}, 200);
  // Not in place, over gate, over up.
  const size_t place = bytes.Below(3);
  const bool interleaved = options.layout == GateUpLayout::kInterleaved;
  PiecesExecutor executor(bytes);
  const size_t gate_cols = split ? cols : 2 * cols;
  const std::vector<float> gates = bytes.Floats(rows * gate_cols);
  const std::vector<float> ups = split ? bytes.Floats(rows * cols) : gates;
  Memory gate(bytes, rows, gate_cols, gates);
  Memory up(bytes, rows, split ? cols : 0, split ? ups : std::vector<float>());
  Memory own(bytes, Type::kF32, rows, cols);
  ActivateInputs in = {gate.view(), split ? up.view() : AnyMatrix()};
  ActivateOutputs out = {own.view()};
  Memory* written = &own;
  if (place != 0 && !interleaved) {
    written = split && place == 2 ? &up : &gate;
    out.out = written->view();
    if (!split) {
      const size_t first = place == 1 ? 0 : cols;
      out.out = out.out.ColRange(first, first + cols);
    }
  }

  if (spoiler.wanted()) {
    spoiler.View(in.gate, {Type::kF32});
    if (split) spoiler.View(in.up, {Type::kF32});
    spoiler.View(out.out, {Type::kF32});
    spoiler.Add([&](Bytes&) { ++out.out.rows; });
    spoiler.Add([&](Bytes&) { out.out.cols = ++out.out.stride; });
    spoiler.Add([&](Bytes&) { ++in.gate.rows; });
    spoiler.Add([&](Bytes&) { in.gate.cols = ++in.gate.stride; });
    if (split && rows * cols != 0) {
      spoiler.Add([&](Bytes&) { in.up = {}; });
      // One element on in the same rows: neither apart nor the same.
      if (cols > 1) {
        spoiler.Add([&](Bytes& b) {
          out.out = (b.Flag() ? gate : up).view();
          out.out.data = out.out.Row<float>(0) + 1;
        });
      }
    }
    if (!split && rows * cols != 0) {
      spoiler.Add([&](Bytes&) { in.up = own.view(); });
      // A single column further on is the other half, which is fine.
      if (interleaved || cols > 1) {
        spoiler.Add([&](Bytes&) {
          out.out = gate.view().ColRange(0, cols);
          if (!interleaved) out.out.data = out.out.Row<float>(0) + 1;
        });
      }
    }
    spoiler.Add([&](Bytes& b) {
      const auto wrong = static_cast<uint8_t>(3 + b.Below(253));
      const size_t which = b.Below(3);
      if (which == 0) options.activation = static_cast<Activation>(wrong);
      if (which == 1) options.layout = static_cast<GateUpLayout>(wrong);
      if (which == 2) options.stores = static_cast<ActivateStores>(wrong);
    });
    spoiler.Apply();
    CheckRefused(Activate(in, out, options, executor), "Activate", kUnwritten);
    for (const Memory* m : {&gate, &up, &own}) m->CheckUntouched("memory");
    return 0;
  }

  const auto gate_at = [&](size_t r, size_t i) {
    return gates[r * gate_cols + (interleaved ? 2 * i : i)];
  };
  const auto up_at = [&](size_t r, size_t i) {
    if (split) return ups[r * cols + i];
    return gates[r * gate_cols + (interleaved ? 2 * i + 1 : cols + i)];
  };
  OnEveryIsa([&](const Isa& isa) {
    for (Memory* m : {&gate, &up, &own}) m->Restore();
    const Status status = Activate(in, out, options, executor);
    FUZZ_CHECK(status.ok(), status.message());
    for (const Memory* m : {&gate, &up, &own}) {
      if (m != written) m->CheckUntouched("memory");
    }
    written->CheckOnlyViewWritten("out");
    std::vector<float> values;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t i = 0; i < cols; ++i) {
        const float actual = out.out.Row<float>(r)[i];
        FUZZ_CHECK(IsClose(gate_at(r, i), up_at(r, i), actual, isa.fma),
                   std::string(isa.name) + ": silu(" + Text(gate_at(r, i)) +
                       ") * " + Text(up_at(r, i)) + " = " + Text(actual));
        values.push_back(actual);
      }
    }
    // The half of a fused gate and up that out is not.
    if (written == &gate && !split) {
      const size_t other = place == 1 ? cols : 0;
      for (size_t r = 0; r < rows; ++r) {
        FUZZ_CHECK(cols == 0 || std::memcmp(gate.view().Row<float>(r) + other,
                                            &gates[r * gate_cols + other],
                                            cols * sizeof(float)) == 0,
                   "the other half was written");
      }
    }
    std::vector<uint32_t> words;
    Append(words, values);
    return words;
  });
  return 0;
}
