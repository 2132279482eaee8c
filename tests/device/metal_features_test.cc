// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The kernels of metal_features_*.cc, unchecked and checked: the results are
// right, the same bits in every mode, and checked mode has nothing to say.

#include "tests/device/metal_features.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/metal_text.h"

namespace switchyard::testing_support {
namespace {

class Runner {
 public:
  explicit Runner(Mode mode) : device_(NewDevice(false, mode)) {}

  std::shared_ptr<Library> Texts(const std::string& file) {
    return texts_.Get(file);
  }
  // The contents of the buffers afterwards; empty if it could not be run.
  std::vector<Bytes> Run(const Feature& feature) {
    const auto library = texts_.Get(feature.file());
    if (library == nullptr) return {};
    FunctionConstantValues values;
    for (const Feature::Constant& c : feature.constants()) {
      values.setConstantValue(c.value.data(), c.type, c.index);
    }
    std::string error;
    const auto function =
        feature.constants().empty()
            ? library->newFunction(feature.kernel().c_str(), &error)
            : library->newFunction(feature.kernel().c_str(), values, &error);
    EXPECT_NE(function, nullptr) << error;
    if (function == nullptr) return {};
    const auto pipeline = device_->newComputePipelineState(function, &error);
    EXPECT_NE(pipeline, nullptr) << error;
    if (pipeline == nullptr) return {};

    std::vector<BufferPtr> buffers;
    const auto queue = device_->newCommandQueue();
    const auto commands = Encoded(*queue, [&](Encoder& e) {
      e.setComputePipelineState(pipeline);
      for (const Feature::Memory& memory : feature.memory()) {
        buffers.push_back(
            device_->newBuffer(memory.before.data(), memory.before.size()));
        e.setBuffer(buffers.back(), 0, buffers.size() - 1);
      }
      for (size_t i = 0; i < feature.threadgroup_memory().size(); ++i) {
        e.setThreadgroupMemoryLength(feature.threadgroup_memory()[i], i);
      }
      e.dispatchThreads(feature.grid(), feature.threads());
    });
    commands->commit();
    commands->waitUntilCompleted();
    EXPECT_EQ(commands->error(), "");
    std::vector<Bytes> after;
    for (const BufferPtr& buffer : buffers) {
      after.push_back(buffer == nullptr ? Bytes()
                                        : Contents<unsigned char>(buffer));
    }
    return after;
  }

 private:
  const std::shared_ptr<Device> device_;
  MetalTexts texts_{device_};
};

class MetalFeatures : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override { SWITCHYARD_NEEDS_CLANG(); }
  Runner runner_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Mode, MetalFeatures, testing::ValuesIn(kModes),
                         ModeName);

// Every kernel of the texts is run.
TEST_P(MetalFeatures, AreAll) {
  std::map<std::string, std::set<std::string>> listed;
  for (const Feature& feature : Features()) {
    listed[feature.file()].insert(feature.kernel());
  }
  EXPECT_GE(listed.size(), 10u);
  for (const auto& [file, kernels] : listed) {
    const auto library = runner_.Texts(file);
    ASSERT_NE(library, nullptr);
    EXPECT_TRUE(library->unsupported().empty()) << file;
    const auto names = library->functionNames();
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), kernels)
        << file;
  }
}

// Results that are within bounds only are the same in every mode.
TEST(MetalFeaturesModes, LeaveWhatIsRightAndAgree) {
  SWITCHYARD_NEEDS_CLANG();
  std::vector<std::vector<Bytes>> first;
  for (const Mode& mode : kModes) {
    Runner runner(mode);
    for (size_t i = 0; i < Features().size(); ++i) {
      const Feature& feature = Features()[i];
      SCOPED_TRACE(std::string(feature.file()) + ".metal, " + feature.kernel());
      const std::vector<Bytes> after = runner.Run(feature);
      EXPECT_EQ(after.size(), feature.memory().size());
      for (size_t m = 0; m < after.size(); ++m) {
        const auto& wrong = feature.memory()[m].wrong;
        EXPECT_EQ(wrong ? wrong(after[m]) : "", "") << "buffer " << m;
      }
      if (i == first.size()) {
        first.push_back(after);
      } else if (!feature.in_any_order()) {
        EXPECT_EQ(after, first[i]) << feature.kernel();
      }
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
