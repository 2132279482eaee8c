// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares MakeDispatchArgs with its formula in 128 bits. Also checks that
// invalid calls are refused.

#include "fuzz/call.h"
#include "switchyard/bucket.h"

using namespace switchyard;        // NOLINT(build/namespaces)
using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const auto number = [&]() -> size_t {
    const size_t low = bytes.Word();
    const size_t kinds[] = {low % 1000, low, low << 32 | bytes.Word(),
                            SIZE_MAX - low % 100};
    return kinds[bytes.Below(std::size(kinds))];
  };
  const DispatchInputs in = {number(), number(), number()};
  DispatchOptions options;
  if (bytes.Flag()) {
    options.tile_pairs = static_cast<uint32_t>(number());
    options.tile_features = static_cast<uint32_t>(number());
  }
  constexpr size_t kSizes[] = {3, 3, 3, 0, 2, 4};
  Memory args(bytes, Type::kU32, 1, kSizes[bytes.Below(std::size(kSizes))]);
  DispatchOutputs out = {args.span<uint32_t>()};
  if (bytes.Below(8) == 1) out.args.data = nullptr;

  __extension__ using Wide = unsigned __int128;
  const auto tiles = [](size_t n, uint32_t tile) {
    return tile == 0 ? Wide{0} : (Wide{n} + tile - 1) / tile;
  };
  const Wide exact[] = {
      std::max(Wide{1}, tiles(in.max_rows, options.tile_pairs)),
      tiles(in.features, options.tile_features), Wide{in.num_experts}};
  const bool fine = out.args.data != nullptr && out.args.size == 3 &&
                    in.num_experts != 0 && options.tile_pairs != 0 &&
                    options.tile_features != 0 &&
                    std::all_of(std::begin(exact), std::end(exact),
                                [](Wide count) { return count <= UINT32_MAX; });
  const Status status = MakeDispatchArgs(in, out, options);
  if (!fine) {
    CheckRefused(status, "MakeDispatchArgs");
    return 0;
  }
  FUZZ_CHECK(status.ok(), status.message());
  args.CheckOnlyViewWritten("args");
  const std::vector<uint32_t> values = args.Values<uint32_t>();
  FUZZ_CHECK(std::equal(values.begin(), values.end(), std::begin(exact)),
             "args");
  return 0;
}
