// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes mistakes in dispatches of each built-in kernel. The error message
// must be right, and no buffer may change.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "device/tests/device_test.h"
#include "device/tests/kernel_cases.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "testing/guarded_buffer.h"

namespace switchyard::testing_support {
namespace {

class DeviceKernelErrors : public DeviceTest,
                           public testing::WithParamInterface<KernelCase> {
 protected:
  DeviceKernelErrors() {
    for (const Arg& arg : c_.args) {
      // Each buffer has one more element than needed, for offsets. It is
      // filled with a value that cannot be a result.
      buffers_.push_back(device_->newBuffer(arg.Bytes() + arg.Element()));
      Fill(buffers_.size() - 1, kCanary);
    }
  }
  void Fill(size_t i, uint32_t word) {
    const size_t length = buffers_[i]->length();
    const std::vector<uint32_t> words(length / 4 + 1, word);
    std::memcpy(buffers_[i]->contents(), words.data(), length);
  }
  std::vector<RawBytes> Contents() const {
    std::vector<RawBytes> all;
    for (const BufferPtr& buffer : buffers_) {
      all.push_back(testing_support::Contents<unsigned char>(buffer));
    }
    return all;
  }
  void SetParams(Encoder& encoder, const std::vector<int32_t>& params) {
    encoder.setBytes(params.data(), 4 * params.size(), c_.kernel->params.index);
  }
  // Binds the buffers at their second element, so that the bound length is
  // exactly the required one.
  void Bind(Encoder& encoder) {
    encoder.setComputePipelineState(
        device_->newComputePipelineState(c_.name()));
    SetParams(encoder, c_.params);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      encoder.setBuffer(buffers_[i], c_.args[i].Element(), c_.args[i].index);
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
    const std::vector<RawBytes> contents = Contents();
    ExpectBetweenOthers(std::string(c_.name()) + ": " + error, [&](Encoder& e) {
      Bind(e);
      dispatch(e);
    });
    EXPECT_EQ(Contents(), contents);
  }
  // Binds valid buffers, calls `spoil` to make a mistake, dispatches, and
  // expects the error.
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

// Checks the kernels' names and the types of their arguments, in the order of
// the lists in kernels.h; 'r' is the row type.
TEST(DeviceKernels, NamesAndTypes) {
  const std::pair<const char*, const char*> kOverRows[] = {
      {"moe_router_topk_softmax", "rif"},
      {"moe_softmax_topk", "ruf"},
      {"silu_mul_stacked", "rrr"},
      {"silu_mul_batched", "rrr"},
      {"weighted_sum_stacked", "rfr"},
      {"weighted_sum_residual_stacked", "rfr"},
      {"weighted_sum_batched", "rfr"},
      {"weighted_sum_residual_norm_stacked", "rfrrr"},
      {"weighted_sum_residual_norm_batched", "rfrrr"},
      {"moe_weighted_reduce", "frrrrr"},
  };
  const std::pair<const char*, Type> kSuffixes[] = {
      {"_f32", Type::kF32}, {"_f16", Type::kF16}, {"_bf16", Type::kBF16}};
  std::map<std::string, std::vector<Type>> expected, actual;
  expected["moe_compute_ids_tpe_f32"] = {Type::kI32, Type::kI32, Type::kI32,
                                         Type::kU32, Type::kU32};
  for (const auto& [stem, letters] : kOverRows) {
    for (const auto& [suffix, rows] : kSuffixes) {
      std::vector<Type>& types = expected[stem + std::string(suffix)];
      for (const char letter : std::string(letters)) {
        types.push_back(letter == 'r'   ? rows
                        : letter == 'f' ? Type::kF32
                        : letter == 'i' ? Type::kI32
                                        : Type::kU32);
      }
    }
  }
  for (const KernelCase& c : KernelCases()) {
    for (const Arg& arg : c.args) actual[c.name()].push_back(arg.type);
    std::string error;
    const auto pipeline =
        NewDevice()->newComputePipelineState(c.name(), &error);
    ASSERT_NE(pipeline, nullptr) << error;
    EXPECT_EQ(pipeline->label(), c.name());
  }
  EXPECT_EQ(actual.size(), KernelCases().size());
  EXPECT_TRUE(actual == expected);
}

// Without a mistake, the dispatch has no error.
TEST_P(DeviceKernelErrors, NoneUnspoilt) {
  const std::vector<RawBytes> before = Contents();
  ExpectRuns([&](Encoder& e) { Dispatch(e); });
  const std::vector<RawBytes> after = Contents();
  for (size_t i = 0; i < c_.args.size(); ++i) {
    SCOPED_TRACE(c_.args[i].name);
    EXPECT_TRUE(std::equal(
        before[i].begin(),
        before[i].begin() + static_cast<ptrdiff_t>(c_.args[i].Element()),
        after[i].begin()));
    if (!c_.args[i].written) {
      EXPECT_EQ(after[i], before[i]);
    }
  }
  // Arguments that are not written may be bound to read-only buffers.
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

// Kernels do not read arguments that they only write: results must not depend
// on the old contents of the outputs.
TEST_P(DeviceKernelErrors, OutputsAreNotRead) {
  std::vector<RawBytes> results[2];
  const uint32_t fills[2] = {0x40404040, 0x41414141};
  for (size_t run = 0; run < 2; ++run) {
    for (size_t i = 0; i < c_.args.size(); ++i) {
      Fill(i, fills[run]);
      if (!c_.args[i].read) continue;
      const RawBytes ones = c_.args[i].Numbers(1.0f, buffers_[i]->length());
      std::memcpy(buffers_[i]->contents(), ones.data(), ones.size());
    }
    ExpectRuns([&](Encoder& e) { Dispatch(e); });
    results[run] = Contents();
  }
  for (size_t i = 0; i < c_.args.size(); ++i) {
    for (size_t at = 0; at < results[0][i].size(); ++at) {
      const unsigned a = results[0][i][at], b = results[1][i][at];
      if (a == 0x40 && b == 0x41) continue;  // this byte was not written
      EXPECT_EQ(a, b) << c_.args[i].name << ", byte " << at;
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
    const size_t element = arg.Element();
    if (arg.Bytes() <= element) continue;
    ExpectFailsWith(
        Name(i) + Needs(arg, arg.Bytes() - element),
        [&](Encoder& e) { e.setBufferOffset(2 * element, arg.index); });
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
    const size_t element = c_.args[i].Element();
    for (size_t offset = 1; offset < element; ++offset) {
      ExpectFailsWith(
          Name(i) + ": its address is not a multiple of " +
              std::to_string(element),
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

// A kernel must reject a grid with several threadgroups in a dimension, if
// these threadgroups would race on Metal. kernels.h names the dimensions that
// may be larger than one.
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

// A grid without threadgroups does nothing, even with invalid bindings.
TEST_P(DeviceKernelErrors, NoneInAnEmptyGrid) {
  const std::vector<RawBytes> contents = Contents();
  for (const Size empty : {Size(0, 1, 1), Size(1, 0, 1), Size(1, 1, 0)}) {
    ExpectRuns([&](Encoder& e) {
      e.setBuffer(nullptr, 0, c_.kernel->params.index);
      e.dispatchThreadgroups(empty, Size(c_.width, 1, 1));
      e.dispatchThreads(empty, Size(c_.width, 1, 1));
    });
  }
  EXPECT_EQ(Contents(), contents);
}

// The next tests are about errors that only some built-in kernels have. The
// plain API finds most of these errors. The kernel itself finds the others,
// such as shapes that overflow. No buffer may change.

// In these tests `spoil` changes the parameters and buffers of a valid
// dispatch.
class DevicePlainErrors : public DeviceTest {
 protected:
  struct Spoilt {
    std::vector<int32_t> params;
    std::vector<BufferPtr> buffers;
    std::vector<size_t> offsets;
    Size grid;
  };
  // Calls ExpectFails() for every row type.
  void ExpectAllFail(const std::string& stem, const std::string& error,
                     const std::function<void(Spoilt&)>& spoil) {
    for (const RowType& type : kRowTypes) {
      ExpectFails(stem + type.suffix, error, spoil);
    }
  }
  void ExpectFails(const std::string& kernel, const std::string& error,
                   const std::function<void(Spoilt&)>& spoil) {
    const std::vector<KernelCase>& cases = KernelCases();
    const auto found = std::find_if(
        cases.begin(), cases.end(),
        [&](const KernelCase& one) { return one.name() == kernel; });
    ASSERT_NE(found, cases.end()) << kernel;
    const KernelCase& c = *found;
    Spoilt spoilt;
    spoilt.params = c.params;
    spoilt.grid = c.grid;
    for (size_t i = 0; i < c.args.size(); ++i) {
      // The buffer is also large enough for the shapes that `spoil` sets.
      spoilt.buffers.push_back(device_->newBuffer(4096));
      spoilt.offsets.push_back(0);
      int32_t* words = static_cast<int32_t*>(spoilt.buffers[i]->contents());
      std::fill_n(words, 1024,
                  c.args[i].written ? static_cast<int32_t>(kCanary) : 0);
    }
    spoil(spoilt);
    std::vector<std::vector<char>> contents;
    for (const BufferPtr& b : spoilt.buffers) {
      contents.push_back(Contents<char>(b));
    }
    ExpectBetweenOthers(kernel + ": " + error, [&](Encoder& e) {
      e.setComputePipelineState(device_->newComputePipelineState(c.name()));
      e.setBytes(spoilt.params.data(), 4 * spoilt.params.size(),
                 c.kernel->params.index);
      for (size_t i = 0; i < c.args.size(); ++i) {
        e.setBuffer(spoilt.buffers[i], spoilt.offsets[i], c.args[i].index);
      }
      e.dispatchThreadgroups(spoilt.grid, Size(c.width, 1, 1));
    });
    for (size_t i = 0; i < contents.size(); ++i) {
      EXPECT_EQ(Contents<char>(spoilt.buffers[i]), contents[i])
          << c.args[i].name;
    }
  }
};

TEST_F(DevicePlainErrors, ShapesBeyondTheAddressSpace) {
  ExpectFails("moe_router_topk_softmax_f32",
              "buffer 0 (logits): [576460752303423487, 2147483647] overflows "
              "the address space",
              [](Spoilt& s) {
                s.params[0] = INT32_MAX;
                s.grid = Size(SIZE_MAX / 32, 1, 1);
              });
  // The matrix has 2^62 elements of four bytes, so its size wraps to 0.
  ExpectFails(
      "moe_router_topk_softmax_f32",
      "buffer 0 (logits): [72057594037927936, 64] overflows the address "
      "space",
      [](Spoilt& s) {
        s.params[0] = 64;
        s.grid = Size(size_t{1} << 56, 1, 1);
      });
  ExpectFails("weighted_sum_batched_f32",
              "buffer 0 (slots): [4611686014132420609, 2147483647] overflows "
              "the address space",
              [](Spoilt& s) {
                s.params = {INT32_MAX, INT32_MAX, INT32_MAX};
              });
  ExpectFails("silu_mul_stacked_f32",
              "buffer 0 (gate): [2147483647, 2147483647] needs "
              "18446744056529682436 bytes, 4096 are bound: "
              "18446744056529678340 too few",
              [](Spoilt& s) {
                s.params = {INT32_MAX, INT32_MAX};
              });
  ExpectFails("silu_mul_stacked_f16",
              "buffer 0 (gate): [2147483647, 2147483647] needs "
              "9223372028264841218 bytes, 4096 are bound: "
              "9223372028264837122 too few",
              [](Spoilt& s) {
                s.params = {INT32_MAX, INT32_MAX};
              });
  // The matrix has 2^63 elements of two bytes, so its size wraps to 0.
  ExpectFails("moe_router_topk_softmax_bf16",
              "buffer 0 (logits): [144115188075855872, 64] overflows the "
              "address space",
              [](Spoilt& s) {
                s.params[0] = 64;
                s.grid = Size(size_t{1} << 57, 1, 1);
              });
}

TEST_F(DevicePlainErrors, Route) {
  ExpectAllFail("moe_router_topk_softmax",
                "RouteTopK: topk_ids: top_k (cols) exceeds the experts",
                [](Spoilt& s) { s.params[1] = 6; });
  ExpectAllFail("moe_router_topk_softmax",
                "RouteTopK: topk_ids: top_k (cols) is 0",
                [](Spoilt& s) { s.params[1] = 0; });
  ExpectAllFail("moe_router_topk_softmax",
                "RouteTopK: topk_ids: overlaps logits",
                [](Spoilt& s) { s.buffers[1] = s.buffers[0]; });
  ExpectAllFail("moe_softmax_topk", "params: n_experts is 0",
                [](Spoilt& s) { s.params[1] = 0; });
  ExpectAllFail("moe_softmax_topk",
                "RouteTopK: topk_weights: overlaps topk_ids",
                [](Spoilt& s) { s.buffers[2] = s.buffers[1]; });
}

TEST_F(DevicePlainErrors, Bucket) {
  const char* const kernel = "moe_compute_ids_tpe_f32";
  // All three pairs belong to the same expert, 0.
  ExpectFails(kernel, "params: row_stride is 2, and an expert has 3 pairs",
              [](Spoilt& s) { s.params[1] = 2; });
  ExpectFails(kernel, "params: row_stride is 0",
              [](Spoilt& s) { s.params[1] = 0; });
  ExpectFails(kernel, "BucketStrided: tokens_per_expert: has no experts",
              [](Spoilt& s) { s.params[0] = 0; });
  ExpectFails(kernel, "BucketStrided: tokens_per_expert: overlaps topk_ids",
              [](Spoilt& s) { s.buffers[1] = s.buffers[0]; });
  // Here row_stride is too small, too. The kernel then saves tpe, to restore
  // it on an error. The message must still name the overlap.
  ExpectFails(kernel, "BucketStrided: tokens_per_expert: overlaps topk_ids",
              [](Spoilt& s) {
                s.buffers[1] = s.buffers[0];
                s.params[1] = 2;
              });
  const std::string overlap =
      "buffers 3 and 4 (args) overlap another buffer or each other";
  for (const size_t other : {0u, 1u, 2u, 4u}) {
    ExpectFails(kernel, overlap,
                [&](Spoilt& s) { s.buffers[3] = s.buffers[other]; });
  }
  for (const size_t other : {0u, 1u, 2u}) {
    ExpectFails(kernel, overlap, [&](Spoilt& s) {
      s.buffers[4] = s.buffers[other];
      s.offsets[4] = 8;  // the last element overlaps
    });
  }
}

TEST_F(DevicePlainErrors, SiluMul) {
  ExpectAllFail("silu_mul_stacked",
                "Activate: out: overlaps gate without being the same view",
                [](Spoilt& s) {
                  s.buffers[2] = s.buffers[0];
                  s.offsets[2] = 4;
                });
  ExpectAllFail("silu_mul_batched",
                "Activate: out: overlaps up without being the same view",
                [](Spoilt& s) {
                  s.buffers[2] = s.buffers[1];
                  s.offsets[1] = 4;
                });
}

TEST_F(DevicePlainErrors, Combine) {
  ExpectAllFail("weighted_sum_stacked",
                "Combine: topk_weights: top_k (cols) is 0",
                [](Spoilt& s) { s.params[1] = 0; });
  ExpectAllFail("weighted_sum_residual_stacked", "Combine: out: overlaps rows",
                [](Spoilt& s) { s.buffers[2] = s.buffers[0]; });
  ExpectAllFail("weighted_sum_batched", "Combine: out: overlaps topk_weights",
                [](Spoilt& s) { s.buffers[2] = s.buffers[1]; });
  ExpectAllFail("weighted_sum_residual_norm_stacked",
                "Combine: options: eps is negative or NaN",
                [](Spoilt& s) { s.params[2] = static_cast<int32_t>(kCanary); });
  ExpectAllFail("weighted_sum_residual_norm_batched",
                "Combine: normed: overlaps out",
                [](Spoilt& s) { s.buffers[4] = s.buffers[2]; });
  ExpectAllFail("moe_weighted_reduce",
                "Combine: out: overlaps residual without being the same view",
                [](Spoilt& s) {
                  s.buffers[5] = s.buffers[4];
                  s.offsets[4] = 4;
                });
}

}  // namespace
}  // namespace switchyard::testing_support
