// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The operators torch.ops.switchyard.*, registered when the library is loaded.

#include <torch/csrc/stable/library.h>

#include "exchange.h"
#include "experts.h"
#include "packed.h"
#include "route.h"
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
  m.def(
      "experts(Tensor hidden, Tensor topk_ids, Tensor topk_weights, Tensor up, "
      "Tensor down, Tensor? up_bias=None, Tensor? down_bias=None, "
      "str activation='silu', str layout='concatenated', "
      "bool transposed=False, float alpha=1.702, float beta=4.0, "
      "float linear_beta=25.0, float limit=0.0, bool limit_after=False, "
      "bool allow_dropped=False, int packed=0, Tensor? gate=None) -> Tensor");
  m.def(
      "route(Tensor logits, str preset, int top_k, "
      "Tensor? correction_bias=None, Tensor? expert_scale=None, *, "
      "str options='', ScalarType? dtype=None) -> (Tensor, Tensor, Tensor)");
  m.def(
      "activate(Tensor up, str activation='silu', "
      "str layout='concatenated', float alpha=1.702, float beta=4.0, "
      "float linear_beta=25.0, float limit=0.0, bool limit_after=False) "
      "-> Tensor");
  m.def(
      "map_pairs(Tensor topk_ids, int num_destinations, "
      "int experts_per_destination, Tensor(a!)? experts=None) "
      "-> (Tensor, Tensor, Tensor, Tensor)");
  m.def(
      "gather_rows(Tensor tokens, Tensor pairs, Tensor(a!) rows, int top_k=1, "
      "Tensor? token_scales=None, Tensor(b!)? row_scales=None, "
      "Tensor? row_index=None) -> ()");
  m.def(
      "combine(Tensor rows, Tensor topk_weights, Tensor row_index, "
      "Tensor? row_scales=None, ScalarType? dtype=None) -> Tensor");
  m.def("presets() -> str");
  m.def("preset(str family, str config) -> str");
  m.def("keep_packed(Tensor[] up, Tensor[] down) -> int");
  m.def("drop_packed(int packed) -> ()");
  m.def("workspace_limit(int? bytes=None) -> int");
}
STABLE_TORCH_LIBRARY_IMPL(switchyard, CPU, m) {
  m.impl("experts", TORCH_BOX(&switchyard::python::Experts));
  m.impl("activate", TORCH_BOX(&switchyard::python::ActivateRows));
  m.impl("route", TORCH_BOX(&switchyard::python::Route));
  m.impl("map_pairs", TORCH_BOX(&switchyard::python::MapToDestinations));
  m.impl("gather_rows", TORCH_BOX(&switchyard::python::GatherInto));
  m.impl("combine", TORCH_BOX(&switchyard::python::CombineRows));
}
STABLE_TORCH_LIBRARY_IMPL(switchyard, CompositeExplicitAutograd, m) {
  m.impl("keep_packed", TORCH_BOX(&switchyard::python::KeepPacked));
  m.impl("drop_packed", TORCH_BOX(&switchyard::python::DropPacked));
  m.impl("presets", TORCH_BOX(&switchyard::python::PresetsAsText));
  m.impl("preset", TORCH_BOX(&switchyard::python::ConfiguredPreset));
  m.impl("workspace_limit", TORCH_BOX(&switchyard::python::WorkspaceLimit));
}
