// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The library of operators torch.ops.switchyard.*. Each source file registers
// its own operators when the library is loaded.

#include <torch/csrc/stable/library.h>

#include "tensors.h"
#include "workspace.h"

namespace switchyard {
namespace python {
namespace {

int64_t WorkspaceLimit(std::optional<int64_t> bytes) {
  if (bytes.has_value()) {
    Check(*bytes >= 0, "workspace_limit", "bytes", "below zero");
    SetKeptBytes(static_cast<size_t>(*bytes));
  }
  return static_cast<int64_t>(KeptBytes());
}

}  // namespace
}  // namespace python
}  // namespace switchyard

STABLE_TORCH_LIBRARY(switchyard, m) {
  m.def("workspace_limit(int? bytes=None) -> int");
}
STABLE_TORCH_LIBRARY_IMPL(switchyard, CompositeExplicitAutograd, m) {
  m.impl("workspace_limit", TORCH_BOX(&switchyard::python::WorkspaceLimit));
}
