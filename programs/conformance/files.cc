// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/conformance/files.h"

#include "programs/conformance/cases.h"
#include "programs/conformance/layers.h"
#include "programs/conformance/text.h"

namespace switchyard::conformance {

std::vector<File> MakeFiles() {
  std::vector<File> files;
  for (const Case& c : MakeCases()) {
    files.push_back({"routing", c.name + ".txt", Write(c)});
  }
  for (const Layer& layer : MakeLayers()) {
    files.push_back({"layers", layer.name + ".txt", Write(layer)});
  }
  return files;
}

}  // namespace switchyard::conformance
