// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/activate.h"
#include "testing/formats.h"
#include "testing/reference_rows.h"
#include "tests/row_types.h"
#include "tests/rows_case.h"

namespace switchyard::testing_support {
namespace {

class ActivateFormatsTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(ActivateFormatsTest);

// Every format, from every type: what converts the rows that f32 gives.
TEST_P(ActivateFormatsTest, EveryFormat) {
  Random random(12);
  for (const size_t cols :
       {1u, 31u, 33u, 64u, 100u, 512u, 768u, 5000u, 20480u}) {
    const size_t rows = cols < 1000 ? 3 : 2;
    std::vector<float> gate = random.Uniforms(rows * cols, -20.0f, 20.0f);
    std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
    gate[cols / 2] = 88.0f;
    up[rows * cols - 1] = cols % 2 == 0 ? kInf : 0.25f;  // poisons a group
    for (const Type in : kFloatTypes) {
      Stored gates(in, gate), ups(in, up);
      std::vector<float> acted(rows * cols);
      ASSERT_OK(Activate({gates.View(rows, cols), ups.View(rows, cols)},
                         {{acted.data(), rows, cols}}));
      for (const Format& format : kFormats) {
        if (format.Cols(cols) != cols) continue;
        SCOPED_TRACE(testing::Message()
                     << in << " to " << format.name << ", " << cols);
        const GuardedValues g(in, rows, cols, cols + 1, 1, gate);
        const GuardedValues u(in, rows, cols, cols + 3, 2, up);
        const GuardedRows out(format, rows, cols, 1, 3);
        ASSERT_OK(Activate({g.view(), u.view()}, {out.view()}));
        out.ExpectIntact("out");
        ExpectSameRows(out.Values(),
                       reference::Quantize(acted, rows, cols, format));
      }
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
