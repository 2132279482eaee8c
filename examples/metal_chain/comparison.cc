// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "comparison.h"

#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace metal_chain {
namespace {

// Rows of `cols`, or of row r its first lengths[r] unless `lengths` is null.
template <class T>
void Compare(const char* name, const BufferPtr& device,
             const std::vector<T>& host, size_t cols, Comparison* result,
             const std::vector<int32_t>* lengths = nullptr) {
  const T* const found = static_cast<const T*>(device->contents());
  const size_t rows = host.size() / cols;
  size_t wrong_rows = 0;
  std::ostringstream text;
  text.precision(9);
  for (size_t r = 0; r < rows; ++r) {
    const size_t length =
        lengths == nullptr ? cols : static_cast<size_t>((*lengths)[r]);
    const T* const a = found + r * cols;
    const T* const b = host.data() + r * cols;
    result->bytes += length * sizeof(T);
    if (std::memcmp(a, b, length * sizeof(T)) == 0 || ++wrong_rows > 1) {
      continue;
    }
    size_t c = 0;
    while (std::memcmp(a + c, b + c, sizeof(T)) == 0) ++c;
    text << name << ": row " << r << ", column " << c << ": " << a[c]
         << " instead of " << b[c] << "; ";
  }
  ++result->buffers;
  if (wrong_rows == 0) return;
  text << wrong_rows << " of " << rows << (rows == 1 ? " row" : " rows");
  result->differences.push_back(text.str());
}

}  // namespace

Comparison CompareDecode(const Shape& shape, const Activations& device,
                         const HostActivations& host) {
  Comparison result;
  Compare("logits", device.logits, host.logits, shape.experts, &result);
  Compare("ids", device.ids, host.ids, shape.top_k, &result);
  Compare("weights", device.weights, host.weights, shape.top_k, &result);
  Compare("gate", device.gate, host.gate, shape.intermediate, &result);
  Compare("up", device.up, host.up, shape.intermediate, &result);
  Compare("activated", device.activated, host.activated, shape.intermediate,
          &result);
  Compare("down", device.down, host.down, shape.hidden, &result);
  Compare("residual", device.residual, host.residual, shape.hidden, &result);
  Compare("normed", device.normed, host.normed, shape.hidden, &result);
  return result;
}

Comparison ComparePrefill(const Shape& shape, const Activations& device,
                          const HostActivations& host) {
  Comparison result = CompareDecode(shape, device, host);
  Compare("tokens_per_expert", device.tokens_per_expert, host.tokens_per_expert,
          shape.experts, &result);
  Compare("buckets", device.buckets, host.buckets, RowStride(host.ids.size()),
          &result, &host.tokens_per_expert);
  Compare("gate_up_args", device.gate_up_args, host.gate_up_args, 3, &result);
  Compare("down_args", device.down_args, host.down_args, 3, &result);
  return result;
}

}  // namespace metal_chain
