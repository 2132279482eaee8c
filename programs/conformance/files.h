// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes the files of the conformance vectors.

#ifndef SWITCHYARD_PROGRAMS_CONFORMANCE_FILES_H_
#define SWITCHYARD_PROGRAMS_CONFORMANCE_FILES_H_

#include <string>
#include <vector>

namespace switchyard::conformance {

struct File {
  std::string folder;  // "routing" or "layers"
  std::string name;    // such as "ties.txt"
  std::string text;
};

// Returns a file for each case of MakeCases() and each layer of MakeLayers().
// Throws if one of these functions throws.
std::vector<File> MakeFiles();

}  // namespace switchyard::conformance

#endif  // SWITCHYARD_PROGRAMS_CONFORMANCE_FILES_H_
