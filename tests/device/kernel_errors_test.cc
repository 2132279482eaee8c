// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What fails a dispatch of each built-in kernel: its text, and that no buffer
// has changed.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "testing/guarded_buffer.h"
#include "tests/device/device_test.h"
#include "tests/device/kernel_cases.h"

namespace switchyard::testing_support {
namespace {

class DeviceKernelErrors : public DeviceTest,
                           public testing::WithParamInterface<KernelCase> {
 protected:
  DeviceKernelErrors() {
    for (const Arg& arg : c_.args) {
      // Four bytes more, for offsets; with what nobody takes for a result.
      buffers_.push_back(device_->newBuffer(arg.Bytes() + 4));
      int32_t* const words = static_cast<int32_t*>(buffers_.back()->contents());
      std::fill_n(words, arg.Bytes() / 4 + 1, static_cast<int32_t>(kCanary));
    }
  }
  std::vector<std::vector<int32_t>> Contents() const {
    std::vector<std::vector<int32_t>> all;
    for (const BufferPtr& buffer : buffers_) {
      all.push_back(testing_support::Contents<int32_t>(buffer));
    }
    return all;
  }
  void SetParams(Encoder& encoder, const std::vector<int32_t>& params) {
    encoder.setBytes(params.data(), 4 * params.size(), c_.kernel->params.index);
  }
  // Exactly as long as they need to be.
  void Bind(Encoder& encoder) {
    encoder.setComputePipelineState(
        device_->newComputePipelineState(c_.name()));
    SetParams(encoder, c_.params);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      encoder.setBuffer(buffers_[i], 4, c_.args[i].index);
    }
  }
  void Dispatch(Encoder& encoder) {
    encoder.dispatchThreadgroups(c_.grid, Size(c_.width, 1, 1));
  }
  void ExpectRuns(const Encode& dispatch) {
    ExpectBetweenOthers("", [&](Encoder& e) {
      Bind(e);
      dispatch(e);
    });
  }
  void ExpectFails(const std::string& error, const Encode& dispatch) {
    const std::vector<std::vector<int32_t>> contents = Contents();
    ExpectBetweenOthers(std::string(c_.name()) + ": " + error, [&](Encoder& e) {
      Bind(e);
      dispatch(e);
    });
    EXPECT_EQ(Contents(), contents);
  }
  // Spoils a binding, then dispatches.
  void ExpectFailsWith(const std::string& error, const Encode& spoil) {
    ExpectFails(error, [&](Encoder& e) {
      spoil(e);
      Dispatch(e);
    });
  }
  std::string Name(size_t i) const {
    return "buffer " + std::to_string(c_.args[i].index) + " (" +
           c_.args[i].name + ")";
  }
  std::string ParamsName() const {
    return "buffer " + std::to_string(c_.kernel->params.index) + " (params)";
  }
  static std::string Needs(const Arg& arg, size_t bound) {
    return ": [" + std::to_string(arg.rows) + ", " + std::to_string(arg.cols) +
           "] needs " + std::to_string(arg.Bytes()) + " bytes, " +
           std::to_string(bound) +
           " are bound: " + std::to_string(arg.Bytes() - bound) + " too few";
  }

  const KernelCase& c_ = GetParam();
  std::vector<BufferPtr> buffers_;
};
INSTANTIATE_TEST_SUITE_P(Kernels, DeviceKernelErrors,
                         testing::ValuesIn(KernelCases()), KernelName);

// That the errors below are of what is spoilt.
TEST_P(DeviceKernelErrors, NoneUnspoilt) {
  const std::vector<std::vector<int32_t>> before = Contents();
  ExpectRuns([&](Encoder& e) { Dispatch(e); });
  const std::vector<std::vector<int32_t>> after = Contents();
  for (size_t i = 0; i < c_.args.size(); ++i) {
    SCOPED_TRACE(c_.args[i].name);
    EXPECT_EQ(after[i][0], before[i][0]);
    if (!c_.args[i].written) {
      EXPECT_EQ(after[i], before[i]);
    }
  }
  // Read-only is enough where nothing is written.
  ExpectRuns([&](Encoder& e) {
    for (size_t i = 0; i < c_.args.size(); ++i) {
      if (c_.args[i].written) continue;
      const void* const constant = buffers_[i]->contents();
      e.setBuffer(
          device_->newBufferWithBytesNoCopy(constant, c_.args[i].Bytes()), 0,
          c_.args[i].index);
    }
    Dispatch(e);
  });
}

// What the table says is only written is not read: whatever it held, the words
// that the kernel writes are the same.
TEST_P(DeviceKernelErrors, OutputsAreNotRead) {
  std::vector<std::vector<int32_t>> results[2];
  const int32_t fills[2] = {0x40000000, 0x40490FDB};
  for (size_t run = 0; run < 2; ++run) {
    for (size_t i = 0; i < c_.args.size(); ++i) {
      const Arg& arg = c_.args[i];
      const int32_t one = arg.type == Type::kF32 ? 0x3F800000 : 1;
      std::fill_n(static_cast<int32_t*>(buffers_[i]->contents()),
                  arg.Bytes() / 4 + 1, arg.read ? one : fills[run]);
    }
    ExpectRuns([&](Encoder& e) { Dispatch(e); });
    results[run] = Contents();
  }
  for (size_t i = 0; i < c_.args.size(); ++i) {
    for (size_t w = 0; w < results[0][i].size(); ++w) {
      const int32_t a = results[0][i][w], b = results[1][i][w];
      if (a == fills[0] && b == fills[1]) continue;  // not written
      EXPECT_EQ(a, b) << c_.args[i].name << "[" << w << "]";
    }
  }
}

TEST_P(DeviceKernelErrors, Unbound) {
  for (size_t i = 0; i < c_.args.size(); ++i) {
    ExpectFailsWith(Name(i) + " is not bound", [&](Encoder& e) {
      e.setBuffer(nullptr, 0, c_.args[i].index);
    });
  }
  ExpectFailsWith(ParamsName() + " is not bound", [&](Encoder& e) {
    e.setBuffer(nullptr, 0, c_.kernel->params.index);
  });
}

TEST_P(DeviceKernelErrors, TooSmall) {
  for (size_t i = 0; i < c_.args.size(); ++i) {
    const Arg& arg = c_.args[i];
    const size_t offset = 8;  // of arg.Bytes() + 4
    if (arg.Bytes() <= 4) continue;
    ExpectFailsWith(Name(i) + Needs(arg, arg.Bytes() - 4), [&](Encoder& e) {
      e.setBufferOffset(offset, c_.args[i].index);
    });
    const BufferPtr one_byte_short =
        device_->newBuffer(buffers_[i]->contents(), arg.Bytes() - 1);
    ExpectFailsWith(Name(i) + Needs(arg, arg.Bytes() - 1), [&](Encoder& e) {
      e.setBuffer(one_byte_short, 0, c_.args[i].index);
    });
  }
  const size_t bytes = 4 * c_.params.size();
  ExpectFailsWith(ParamsName() + ": [1, " + std::to_string(bytes) + "] needs " +
                      std::to_string(bytes) + " bytes, " +
                      std::to_string(bytes - 1) + " are bound: 1 too few",
                  [&](Encoder& e) {
                    e.setBytes(c_.params.data(), bytes - 1,
                               c_.kernel->params.index);
                  });
}

TEST_P(DeviceKernelErrors, Misaligned) {
  for (size_t i = 0; i < c_.args.size(); ++i) {
    for (const size_t offset : {1u, 2u, 3u}) {
      ExpectFailsWith(
          Name(i) + ": its address is not a multiple of 4",
          [&](Encoder& e) { e.setBufferOffset(offset, c_.args[i].index); });
    }
  }
}

TEST_P(DeviceKernelErrors, ReadOnlyOutput) {
  for (size_t i = 0; i < c_.args.size(); ++i) {
    if (!c_.args[i].written) continue;
    const std::string error = Name(i) + " is written, and is read-only";
    const void* const constant = buffers_[i]->contents();
    const auto buffer =
        device_->newBufferWithBytesNoCopy(constant, c_.args[i].Bytes());
    ExpectFailsWith(
        error, [&](Encoder& e) { e.setBuffer(buffer, 0, c_.args[i].index); });
    ExpectFailsWith(error, [&](Encoder& e) {
      e.setBytes(constant, c_.args[i].Bytes(), c_.args[i].index);
    });
  }
}

TEST_P(DeviceKernelErrors, DimensionsOutOfRange) {
  for (const Dimension& field : c_.kernel->dimensions) {
    if (field.name == nullptr || field.kind == Dimension::kFlag) break;
    const bool is_unsigned = field.kind != Dimension::kSigned;
    for (const int32_t bad : {-1, INT32_MIN}) {
      const std::string value = std::to_string(
          is_unsigned ? int64_t{static_cast<uint32_t>(bad)} : int64_t{bad});
      ExpectFailsWith(
          std::string("params: ") + field.name +
              (is_unsigned ? " is above 2^31 - 1 (" : " is negative (") +
              value + ")",
          [&](Encoder& e) {
            std::vector<int32_t> params = c_.params;
            params[KernelCase::Word(field)] = bad;
            SetParams(e, params);
          });
    }
  }
}

TEST_P(DeviceKernelErrors, WrongThreadgroup) {
  const size_t width = c_.width;
  for (const Size wrong :
       {Size(2 * width, 1, 1), Size(width / 2, 1, 1), Size(width, 2, 1),
        Size(width, 1, 2), Size(1, width, 1)}) {
    ExpectFails("threadsPerThreadgroup: " + std::to_string(wrong.width) +
                    " x " + std::to_string(wrong.height) + " x " +
                    std::to_string(wrong.depth) + ", has to be " +
                    std::to_string(width) + " x 1 x 1",
                [&](Encoder& e) { e.dispatchThreadgroups(c_.grid, wrong); });
  }
}

// Threadgroups in dimensions where they would race on Metal. Which may have
// more is in each kernel's comment.
TEST_P(DeviceKernelErrors, GridDimensionsThatHaveToBeOne) {
  const Size& g = c_.grid;
  const auto grid = [this](Size size) {
    return [this, size](Encoder& e) {
      e.dispatchThreadgroups(size, Size(c_.width, 1, 1));
    };
  };
  ExpectFails("grid: depth is 2, has to be 1",
              grid(Size(g.width, g.height, 2)));
  if (c_.OverRows() || c_.OfOneRow()) {
    ExpectFails("grid: height is 3, has to be 1", grid(Size(g.width, 3, 1)));
  }
  if (c_.OverRows() && c_.OfOneRow()) {
    ExpectFails("grid: width is 2, has to be 1", grid(Size(2, 1, 1)));
  }
  if (c_.OverRows()) {
    const size_t threads = g.width * c_.width - 1;
    ExpectFails("grid: " + std::to_string(threads) +
                    " threads leave a threadgroup of " +
                    std::to_string(c_.width) + " short",
                [&](Encoder& e) {
                  e.dispatchThreads(Size(threads, 1, 1), Size(c_.width, 1, 1));
                });
  }
}

// A grid without threadgroups does nothing, whatever is bound.
TEST_P(DeviceKernelErrors, NoneInAnEmptyGrid) {
  const std::vector<std::vector<int32_t>> contents = Contents();
  for (const Size empty : {Size(0, 1, 1), Size(1, 0, 1), Size(1, 1, 0)}) {
    ExpectRuns([&](Encoder& e) {
      e.setBuffer(nullptr, 0, c_.kernel->params.index);
      e.dispatchThreadgroups(empty, Size(c_.width, 1, 1));
      e.dispatchThreads(empty, Size(c_.width, 1, 1));
    });
  }
  EXPECT_EQ(Contents(), contents);
}

}  // namespace
}  // namespace switchyard::testing_support
