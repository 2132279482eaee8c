// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_STATUS_TEXT_H_
#define SWITCHYARD_PROGRAMS_STATUS_TEXT_H_

#include <string>

#include "switchyard/status.h"

namespace program {

// Returns the status's message and its details, such as "RouteTopK: topk_ids:
// is not [tokens, top_k]: got [15, 2], needs [16, 2]". Call it right after the
// call that failed, because the thread keeps the details only until its next
// error.
inline std::string StatusText(const switchyard::Status& status) {
  std::string text = status.message();
  if (*status.details() != '\0') text.append(": ").append(status.details());
  return text;
}

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_STATUS_TEXT_H_
