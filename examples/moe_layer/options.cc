// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "common/program.h"

namespace moe_layer {

using example::InputError;

std::optional<Options> ParseOptions(int argc, const char* const* argv) {
  Options options;
  CLI::App app(
      "Runs one Mixture-of-Experts block on Switchyard's kernels and oneDNN's "
      "GEMMs,\nchecks it against double precision and shows where the time "
      "goes.",
      "moe_layer");
  app.add_option("--checkpoint,checkpoint", options.checkpoint,
                 "Hugging Face folder (default: a generated layer)")
      ->type_name("DIR");
  app.add_option("--layer", options.layer,
                 "Layer of it (default: the first with experts)")
      ->check(CLI::Range(0, INT32_MAX).description(""))
      ->type_name("N");
  app.add_option("--tokens", options.tokens, "Tokens in the batch")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("T");
  example::AddThreadOptions(app, options);
  app.add_option("--repeat", options.repeat,
                 "Timed runs, of which the median is shown")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000))
      ->type_name("R");
  app.add_option("--top-k", options.top_k,
                 "Experts per token (default: the model's)")
      ->check(CLI::Range(1, INT32_MAX).description(""))
      ->type_name("K");
  if (!example::Parse(app, argc, argv)) return std::nullopt;
  if (options.layer.has_value() && options.checkpoint.empty()) {
    throw InputError("--layer: needs --checkpoint");
  }
  return options;
}

}  // namespace moe_layer
