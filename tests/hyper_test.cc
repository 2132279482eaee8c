// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "fuzz/any_hyper.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

class HyperTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(HyperTest);

TEST_P(HyperTest, AnyForm) {
  Random random(4);
  for (size_t i = 0; i < 200; ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i);
    fuzz::TestAny<fuzz::AnyHyper>(random, fuzz::AskedFor(i), executor());
  }
}

// Rows are longer than the buffer for the collapsed streams.
TEST_P(HyperTest, WideRows) {
  Random random(5);
  for (size_t i = 0; i < 6; ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i);
    fuzz::TestAny<fuzz::AnyHyper>(random, {true, 8192 + 100 * i, {}},
                                  executor());
  }
}

}  // namespace
}  // namespace switchyard::testing_support
