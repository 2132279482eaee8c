// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Lets moe_layer read any bytes as a safetensors file. moe_layer has to find
// tensors that cover the file's data exactly, or report an error.

#include "fuzz/files.h"
#include "programs/moe/checkpoint.h"

using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const TempFolder folder;
  Bytes bytes(data, size);
  // The bytes are the whole file, or only the header. In the second case, the
  // file has the header's correct length and `kind` bytes of data.
  const size_t kind = bytes.Byte();
  const std::string rest = bytes.Rest();
  const std::string file =
      kind == 255 ? rest : Safetensors(rest, std::string(kind, '\1'));
  ReadOrRefuse(folder.path(), [&] {
    const moe_layer::SafetensorsFile tensors(
        folder.Write("model.safetensors", file));
    size_t total = 0, ones = 0;
    for (const auto& [name, tensor] : tensors.tensors()) {
      total += tensor.bytes;
      for (size_t i = 0; i < tensor.bytes; ++i) ones += tensor.data[i] == 1;
    }
    FUZZ_CHECK(
        kind == 255 ? total <= rest.size() : total == kind && ones == kind,
        "the tensors are not the data");
  });
  return 0;
}
