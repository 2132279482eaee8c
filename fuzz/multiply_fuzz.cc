// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares PackWeights and MultiplyTile with their definitions, bit for bit on
// every ISA with FMA. Weights and rows may have any bytes. Also checks that
// invalid calls are refused.

#include <cmath>
#include <cstring>

#include "fuzz/format_memory.h"
#include "src/calls/expert_weights.h"
#include "switchyard/expert_weights.h"
#include "testing/reference_multiply.h"

using namespace switchyard;                   // NOLINT(build/namespaces)
using namespace switchyard::fuzz;             // NOLINT(build/namespaces)
using namespace switchyard::testing_support;  // NOLINT(build/namespaces)

namespace {

void Fill(const Memory& memory, const void* bytes) {
  const AnyMatrix view = memory.view();
  const size_t row_bytes = view.cols * SizeOf(view.type);
  for (size_t r = 0; r < view.rows && row_bytes != 0; ++r) {
    std::memcpy(view.RowRange(r, r + 1).data,
                static_cast<const uint8_t*>(bytes) + r * row_bytes, row_bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Spoiler spoiler(bytes);
  const auto& formats = calls::kEnumerators<WeightFormat>;
  const WeightFormat format = formats[bytes.Below(formats.size())];
  Format operands = kProductRows[bytes.Below(std::size(kProductRows))];
  if (!Takes(format, operands)) operands = ProductRowsOf(format);
  const size_t step = ColumnsStep(format, operands);
  const size_t cols = step == 1 ? 1 + bytes.Size({0, 31, 32, 127, 255}, 300)
                                : step * (1 + bytes.Below(step == 32 ? 12 : 3));
  const size_t rows = 1 + bytes.Size({0, 14, 15, 16, 31, 32}, 70);
  const size_t num_experts = 1 + bytes.Below(3);
  const size_t num_rows = bytes.Size({1, 2, 5, 6, 7, 48, 49}, 60);
  const bool any = bytes.Flag();
  const uint32_t seed = bytes.Word() % 1000000;
  PiecesExecutor executor(bytes);

  WeightBytes stored =
      RandomWeights(format, num_experts, rows, cols, seed, any);
  for (size_t n = bytes.Below(8); n > 0; --n) {
    stored.data[bytes.Below(stored.data.size())] = bytes.Byte();
  }
  const ExpertWeights view = stored.View();
  Memory codes(bytes, Type::kU8, num_experts, view.data.cols);
  Fill(codes, stored.data.data());
  codes.Keep();
  Memory scales(bytes, num_experts, rows,
                format == WeightFormat::kInt8
                    ? stored.scales
                    : std::vector<float>(num_experts * rows));
  PackWeightsInputs in;
  in.weights = view;
  in.weights.data = codes.view();
  if (format == WeightFormat::kInt8) in.weights.scales = scales.view();
  const size_t packed_size = PackedWeightsSize(view);
  Memory packed(bytes, Type::kU8, num_experts, packed_size);
  ExpertWeights packed_view;
  PackWeightsOutputs out = {packed.view(), &packed_view};
  PackWeightsOptions options;
  const auto run = [&] { return PackWeights(in, out, options, executor); };
  if (RefusesSpoilt<calls::PackWeightsCall>(spoiler, &in, &out, &options,
                                            run)) {
    return 0;
  }
  std::vector<uint8_t> wanted;
  for (size_t e = 0; e < num_experts; ++e) {
    const std::vector<uint8_t> one = PackNaively(view, e);
    wanted.insert(wanted.end(), one.begin(), one.end());
  }
  RunOnEveryIsa<calls::PackWeightsCall>(in, &out, {}, run, [&](const Isa&) {
    FUZZ_CHECK(packed.Values<uint8_t>() == wanted, "packed bytes");
  });

  const FormatRows values = RandomOperands(operands, num_rows, cols, seed + 7,
                                           any, seed % 2 == 0 ? -128 : -127);
  const FormatMemory x(bytes, values);
  const size_t expert = bytes.Below(num_experts);
  const size_t first = 16 * bytes.Below((rows + 15) / 16);
  const size_t count = 1 + bytes.Below(rows - first);
  Memory product(bytes, Type::kF32, num_rows, count);
  const NaiveProduct exact =
      MultiplyNaively(view, expert, x.view(), first, count);
  for (const ExpertWeights& weights : {in.weights, packed_view}) {
    OnEveryIsa([&](const Isa& isa) {
      product.Restore();
      const Status status = MultiplyTile(
          weights, {ExpertProduct::kDown, static_cast<int32_t>(expert), first,
                    0, x.view(), product.view()});
      FUZZ_CHECK(status.ok(), status.message());
      product.CheckOnlyViewWritten("product");
      const std::vector<float> found = product.Floats();
      if (isa.fma) {
        FUZZ_CHECK(CanonicalBits(found) == CanonicalBits(exact.values),
                   isa.name);
      } else if (!any) {
        for (size_t i = 0; i < found.size(); ++i) {
          // Changed bytes can be infinite or NaN, or can make an intermediate
          // sum overflow.
          if (!std::isfinite(exact.values[i]) || !(exact.bounds[i] < 1e30f)) {
            continue;
          }
          FUZZ_CHECK(std::fabs(found[i] - exact.values[i]) <= exact.bounds[i],
                     isa.name);
        }
      }
      return CanonicalBits(found);
    });
  }
  return 0;
}
