// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_PRESETS_H_
#define SWITCHYARD_TOOLS_CLI_PRESETS_H_

#include <CLI/CLI.hpp>

namespace swy {

CLI::App* AddPresets(CLI::App& app, bool& markdown);

// `swy presets`: prints a line for each model family, or the tables of
// docs/models.md.
int PrintPresets(bool markdown);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_PRESETS_H_
