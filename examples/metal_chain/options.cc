// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "options.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace metal_chain {

std::optional<Options> ParseOptions(int argc, const char* const* argv) {
  Options options;
  CLI::App app(
      "Runs one Mixture-of-Experts layer as an engine for Apple Silicon chains "
      "it:\na decode token and a prefill, each in one command buffer. Checks "
      "every buffer\nagainst the plain API and shows when each dispatch ran.",
      "metal_chain");
  app.add_flag("--full", options.full,
               "A layer of Qwen3-30B-A3B: 2.25 GiB of weights");
  app.add_option("--tokens", options.tokens, "Tokens of the prefill")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  example::AddThreadOptions(app, options);
  app.add_option("--trace", options.trace,
                 "Write the timelines for ui.perfetto.dev")
      ->type_name("FILE");
  if (!example::Parse(app, argc, argv)) return std::nullopt;
  return options;
}

}  // namespace metal_chain
