// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Lets moe_layer read any bytes as config.json and as
// model.safetensors.index.json. moe_layer has to find a usable shape or
// report an error.

#include "fuzz/files.h"
#include "programs/moe/checkpoint.h"
#include "programs/moe/model_config.h"
#include "switchyard/route.h"

using namespace switchyard::fuzz;  // NOLINT(build/namespaces)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const TempFolder plain, indexed;
  Bytes bytes(data, size);
  if (bytes.Byte() == 'i') {
    static const bool made = [] {
      indexed.Write("config.json", "{}");
      indexed.Write("a.safetensors",
                    Safetensors("{\"t\":{\"dtype\":\"U8\",\"shape\":[1],"
                                "\"data_offsets\":[0,1]}}",
                                "x"));
      return true;
    }();
    FUZZ_CHECK(made, "");
    indexed.Write("model.safetensors.index.json", bytes.Rest());
    ReadOrRefuse(indexed.path(), [&] {
      moe_layer::Checkpoint checkpoint(indexed.path());
      const auto found = checkpoint.Find("t", {1});
      FUZZ_CHECK(*found.tensor->data == 'x', found.file);
    });
    return 0;
  }
  plain.Write("model.safetensors", Safetensors("{}", ""));
  plain.Write("config.json", bytes.Rest());
  ReadOrRefuse(plain.path(), [&] {
    const moe_layer::Checkpoint checkpoint(plain.path());
    const moe_layer::ModelConfig config(checkpoint.ConfigPath(),
                                        checkpoint.config());
    const moe_layer::MoeShape& shape = config.shape();
    for (const size_t n : {shape.hidden, shape.intermediate, shape.num_experts,
                           shape.top_k, config.num_layers()}) {
      FUZZ_CHECK(n >= 1 && n <= INT32_MAX, std::to_string(n));
    }
    FUZZ_CHECK(shape.top_k <= shape.num_experts, "top_k");
    FUZZ_CHECK(shape.norm_eps >= 0.0f && shape.norm_eps <= 1.0f, "eps");
    FUZZ_CHECK(shape.shared_intermediate <= INT32_MAX, "shared");
    FUZZ_CHECK(shape.activate.limit >= 0.0f, "limit");
    // The library has to accept the options in a call without tokens.
    float logit = 0;
    int32_t id = 0;
    const switchyard::Matrix<float> of_experts(&logit, 1, shape.NumLogits());
    switchyard::RouteInputs in = {
        switchyard::Matrix<float>(&logit, 0, shape.NumLogits())};
    if (shape.route.needs_correction_bias) in.correction_bias = of_experts;
    if (shape.route.needs_expert_scale) in.expert_scale = of_experts;
    const switchyard::Status routed = switchyard::RouteTopK(
        in,
        {switchyard::Matrix<int32_t>(&id, 0, shape.top_k),
         switchyard::Matrix<float>(&logit, 0, shape.top_k)},
        shape.route);
    FUZZ_CHECK(routed.ok(), routed.message());
    const size_t layer = config.SelectLayer({});
    FUZZ_CHECK(layer < config.num_layers(), std::to_string(layer));
    FUZZ_CHECK(config.WhyNot(layer).empty(), config.WhyNot(layer));
  });
  return 0;
}
