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
  app.add_option("--threads", options.threads, "Threads (default: all cores)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.add_option("--isa", options.isa,
                 "Use no better instruction set than this one")
      ->type_name("NAME");
  app.add_option("--trace", options.trace,
                 "Write the timelines for ui.perfetto.dev")
      ->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    throw InputError(error.what());
  }
  if (app.count("--isa") != 0 && options.isa.empty()) {
    throw InputError("--isa: empty");
  }
  if (app.count("--trace") != 0 && options.trace.empty()) {
    throw InputError("--trace: empty");
  }
  return options;
}

}  // namespace metal_chain
