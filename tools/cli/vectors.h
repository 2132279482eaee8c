// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_VECTORS_H_
#define SWITCHYARD_TOOLS_CLI_VECTORS_H_

#include <CLI/CLI.hpp>
#include <string>

namespace swy {

// Adds `swy vectors DIR`.
CLI::App* AddVectors(CLI::App& app, std::string& folder);

// Writes the conformance vectors to the folders `folder`/routing and
// `folder`/layers, which it makes. Throws program::InputError before it
// writes anything if one of the folders has a file that is not a vector,
// because a reader of the folder would take that file for a vector.
int WriteVectors(const std::string& folder);

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_VECTORS_H_
