// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/builtin/built_in.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "device/src/core/pipeline.h"
#include "device/tests/checked_kernels.h"
#include "device/tests/device_test.h"
#include "device/tests/raw_bytes.h"
#include "gtest/gtest.h"
#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernels.h"
#include "switchyard/route.h"
#include "switchyard/types.h"
#include "testing/guarded_buffer.h"
#include "testing/inputs.h"
#include "tests/bucket_case.h"
#include "tests/combine_case.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

// The following types hold a built-in kernel and its arguments, in memory
// that reveals wrong accesses.
struct BoundBuffer {
  size_t index;
  BufferPtr buffer;
  size_t offset;
};

// A vector in a device buffer. The vector starts 5 elements after the
// buffer's start, so its address is aligned only to the element size. The
// buffer ends 0 to 2 elements after the vector, at a guard page. The array
// must outlive the work that uses it.
template <class T>
class DeviceArray {
 public:
  // Makes an array of canaries, for a kernel to write. An element may consist
  // of several T.
  DeviceArray(Device& device, size_t size, size_t element = 1)
      : front_(kFront * element),
        memory_(1, size, 0, Behind(size, element)),
        buffer_(device.newBufferWithBytesNoCopy(
            static_cast<void*>(memory_.data() - front_),
            Bytes(size, element))) {}
  // Makes a read-only array. Binding it to an argument that the kernel writes
  // is an error.
  DeviceArray(Device& device, const std::vector<T>& values, size_t element = 1)
      : front_(kFront * element),
        memory_(values, Behind(values.size(), element)),
        buffer_(device.newBufferWithBytesNoCopy(
            static_cast<const void*>(memory_.data() - front_),
            Bytes(values.size(), element))) {}

  BoundBuffer At(size_t index) const {
    return {index, buffer_, front_ * sizeof(T)};
  }
  const BufferPtr& buffer() const { return buffer_; }
  const Guarded<T>& memory() const { return memory_; }
  std::vector<T> Values() const { return memory_.Values(); }

 private:
  static constexpr size_t kFront = 5;
  // Returns how many values of type T follow the vector. An empty vector is
  // followed by one element, because the offset of a binding must be inside
  // the buffer.
  static size_t Behind(size_t size, size_t element) {
    return size == 0 ? element : size / element % 3 * element;
  }
  static size_t Bytes(size_t size, size_t element) {
    return (kFront * element + size + Behind(size, element)) * sizeof(T);
  }

  const size_t front_;
  const Guarded<T> memory_;
  const BufferPtr buffer_;
};

// The contents of the memory that is bound as a kernel's argument.
struct Given {
  enum Kind { kRead, kWritten, kSameAs, kUnbound };
  Kind kind = kUnbound;
  RawBytes before = {};
  RawBytes whole = {};  // the expected contents
  size_t element = 4;   // the element size in bytes
  size_t same_as = 0;   // the index of an argument with the same memory

  // Returns the argument with its floats rounded to `type`.
  Given As(Type type) const {
    return {kind, ToBytes(type, Recast<float>(before)),
            ToBytes(type, Recast<float>(whole)), SizeOf(type), same_as};
  }
};
template <class T>
Given In(const std::vector<T>& values) {
  static_assert(sizeof(T) == 4);
  return {Given::kRead, Recast<unsigned char>(values)};
}
template <class T>
Given Updated(const std::vector<T>& before, const std::vector<T>& whole) {
  static_assert(sizeof(T) == 4);
  return {Given::kWritten, Recast<unsigned char>(before),
          Recast<unsigned char>(whole)};
}
template <class T>
Given Out(const std::vector<T>& whole) {
  return Updated(Recast<T>(std::vector<uint32_t>(whole.size(), kCanary)),
                 whole);
}
Given SameAs(size_t argument) { return {Given::kSameAs, {}, {}, 4, argument}; }

// A built-in kernel, its arguments and the expected results.
struct Job {
  std::string kernel;
  std::vector<uint32_t> params;
  std::vector<Given> arguments;  // in the order of the library's table
  // The rows and columns that grids cover. If cols is 0, grids cover whole
  // rows.
  size_t rows = 1, cols = 0;
  size_t threads = 256;  // the threads per threadgroup
  size_t local_memory = 0;
  // If not empty, the error that is expected instead of results.
  std::string error = {};

  const BuiltIn& BuiltInKernel() const { return *FindBuiltIn(kernel.c_str()); }
  bool OverTiles() const { return BuiltInKernel().grid.kind == Grid::kTiles; }
  Size WholeGrid() const {
    return OverTiles() ? Size(cols, rows, 1) : Size(rows * threads, 1, 1);
  }
};

// The rows and columns of a job that a grid covers.
struct Covered {
  size_t rows;
  size_t cols;
};

enum class Encoding { kThreadgroups, kIndirect, kThreads };

// How a dispatch is encoded. An earlier dispatch of the same command buffer
// writes the grid if it is indirect, and the parameters if params_written is
// set.
struct How {
  Encoding grid;
  bool params_written;
};
constexpr How kEveryHow[] = {
    {Encoding::kThreadgroups, false}, {Encoding::kThreadgroups, true},
    {Encoding::kIndirect, false},     {Encoding::kIndirect, true},
    {Encoding::kThreads, false},      {Encoding::kThreads, true},
};

void Bind(Encoder& encoder, const BoundBuffer& b) {
  encoder.setBuffer(b.buffer, b.offset, b.index);
}

size_t CeilDiv(size_t a, size_t b) { return (a + b - 1) / b; }

// Runs built-in kernels in every way: with direct grids, indirect grids and
// grids in threads, with parameters in bytes and in buffers, and over grids
// that are larger or smaller than the work.
class BuiltInTest : public IsaPoolTest {
 protected:
  void SetUp() override {
    IsaPoolTest::SetUp();
    if (!HasFatalFailure()) Use(executor());
  }
  void TearDown() override {
    EXPECT_TRUE(ran_) << "no kernel of the device ran";
    // TearDown() of the base class checks that a kernel has run on this ISA.
    // The last grid may have been empty, so one kernel runs here.
    float x = 1.0f;
    EXPECT_TRUE(Activate({{&x, 1, 1}, {&x, 1, 1}}, {{&x, 1, 1}}).ok());
    copy_.reset();
    written_.reset();
    queue_.reset();
    device_.reset();
    IsaPoolTest::TearDown();
  }

  // Makes a device with this executor and uses it from now on.
  void Use(Executor& pool) {
    DeviceOptions options;
    options.executor = std::shared_ptr<Executor>(&pool, [](Executor*) {});
    device_ = CreateDevice(options);
    ASSERT_NE(device_, nullptr);
    queue_ = device_->newCommandQueue();
    ASSERT_NE(queue_, nullptr);
    written_ = device_->newBuffer(kWrittenBytes);
    ASSERT_NE(written_, nullptr);
    KernelFunction copy;
    copy.name = "copy";
    copy.threadgroup = [](const ThreadgroupContext& context) {
      const Span<const unsigned char> from =
          context.buffer<const unsigned char>(kCopyFrom);
      std::memcpy(context.buffer<unsigned char>(kCopyTo).data, from.data,
                  from.size);
    };
    copy_ = device_->newComputePipelineState(copy);
    ASSERT_NE(copy_, nullptr);
  }

  Device& device() { return *device_; }
  CommandQueue& queue() { return *queue_; }

  // The memory for the arguments of one dispatch of a job.
  class Memory {
   public:
    Memory(Device& device, const Job& job) {
      for (const Given& given : job.arguments) {
        if (given.kind == Given::kRead) {
          arrays_.push_back(
              std::make_shared<Array>(device, given.before, given.element));
        } else if (given.kind == Given::kWritten) {
          arrays_.push_back(std::make_shared<Array>(device, given.before.size(),
                                                    given.element));
          arrays_.back()->memory().Fill(given.before);
        } else {
          arrays_.push_back(nullptr);
        }
      }
      for (size_t i = 0; i < arrays_.size(); ++i) {
        const Given& given = job.arguments[i];
        if (given.kind == Given::kSameAs) arrays_[i] = arrays_[given.same_as];
      }
    }
    bool Has(size_t argument) const { return arrays_[argument] != nullptr; }
    BoundBuffer At(size_t argument, size_t index) const {
      return arrays_[argument]->At(index);
    }
    // Expects the plain API's values in the part that the grid covers, and
    // unchanged memory in the rest.
    void Expect(const Job& job, Covered covered) const {
      for (size_t i = 0; i < arrays_.size(); ++i) {
        const Given& given = job.arguments[i];
        if (given.kind != Given::kWritten) continue;
        const char* const name = job.BuiltInKernel().arguments[i].name;
        arrays_[i]->memory().ExpectIntact(name);
        RawBytes expected = given.before;
        ASSERT_EQ(given.whole.size(), expected.size()) << name;
        const size_t size = given.element;
        const size_t cols =
            job.rows == 0 ? 0 : expected.size() / size / job.rows;
        const size_t written = std::min(covered.cols, cols);
        for (size_t r = 0; r < covered.rows; ++r) {
          std::copy_n(given.whole.data() + r * cols * size, written * size,
                      expected.data() + r * cols * size);
        }
        const RawBytes actual = arrays_[i]->Values();
        if (actual == expected) continue;
        for (size_t at = 0; at < actual.size(); at += size) {
          uint32_t was = 0, wanted = 0;
          std::memcpy(&was, &actual[at], size);
          std::memcpy(&wanted, &expected[at], size);
          ASSERT_EQ(was, wanted) << name << "[" << at / size / cols << ", "
                                 << at / size % cols << "]";
        }
      }
    }

   private:
    using Array = DeviceArray<unsigned char>;
    std::vector<std::shared_ptr<Array>> arrays_;
  };

  // Runs the job over a grid of `threads` threads. Unless the grid is encoded
  // in threads, it is rounded up to whole threadgroups.
  void Expect(const Job& job, How how, Size threads, Covered covered) {
    SCOPED_TRACE(testing::Message()
                 << job.kernel << ", [" << job.rows << ", " << job.cols << "], "
                 << threads.width << " x " << threads.height << " x "
                 << threads.depth << " threads, way "
                 << static_cast<int>(how.grid) << how.params_written);
    const Memory memory(*device_, job);
    const auto commands = Encoded(
        *queue_, [&](Encoder& e) { Encode(e, job, memory, how, threads); });
    ASSERT_EQ(Finish(*commands), covered.rows == 0 ? "" : job.error);
    memory.Expect(job, job.error.empty() ? covered : Covered{0, 0});
  }
  void ExpectWhole(const Job& job) {
    Expect(job, kEveryHow[0], job.WholeGrid(), {job.rows, SIZE_MAX});
  }
  // Runs the job in every way, over grids that cover the work exactly, more
  // than the work, a part of it, and nothing.
  void ExpectPlain(const Job& job) {
    if (job.OverTiles()) {
      ForTileGrids(job);
    } else {
      ForRowGrids(job);
    }
  }

  // Commits, waits, and checks that kernels ran on the test's ISA. Returns
  // the error.
  std::string Finish(CommandBuffer& commands) {
    // If the kernel reads `written_` before the earlier dispatch has written
    // it, the kernel gets these wrong values.
    std::memset(written_->contents(), 0xFF, kWrittenBytes);
    {
      const ScopedIsa fresh(GetParam().isa);  // this resets LastIsa()
      commands.commit();
      commands.waitUntilCompleted();
      if (LastIsa() != nullptr) {
        ran_ = true;
        EXPECT_EQ(LastIsa()->name, GetParam().isa);
      }
    }
    // Restores the cap on the ISA, which the end of ScopedIsa has lifted.
    EXPECT_TRUE(CapIsa(GetParam().isa.c_str()).ok());
    EXPECT_EQ(commands.status(), commands.error().empty()
                                     ? CommandBufferStatusCompleted
                                     : CommandBufferStatusError);
    return commands.error();
  }

  void Encode(Encoder& encoder, const Job& job, const Memory& memory, How how,
              Size threads) {
    const void* const params = job.params.data();
    const size_t params_length = 4 * job.params.size();
    const BuiltIn& kernel = job.BuiltInKernel();
    std::string error;
    const auto pipeline =
        device_->newComputePipelineState(job.kernel.c_str(), &error);
    ASSERT_NE(pipeline, nullptr) << error;
    const Size per(job.threads, 1, 1);
    const size_t width = CeilDiv(threads.width, per.width);
    const uint32_t grid[3] = {static_cast<uint32_t>(width),
                              static_cast<uint32_t>(threads.height),
                              static_cast<uint32_t>(threads.depth)};
    if (how.grid == Encoding::kIndirect) {
      EncodeCopy(encoder, grid, sizeof(grid), kGridOffset);
    }
    if (how.params_written) {
      EncodeCopy(encoder, params, params_length, kParamsOffset);
    }
    encoder.setComputePipelineState(pipeline);
    for (size_t i = 0; i < job.arguments.size(); ++i) {
      if (!memory.Has(i)) continue;
      const BoundBuffer b = memory.At(i, kernel.arguments[i].index);
      // An engine may bind a buffer together with its offset, set the offset
      // later, or bind several buffers at once. Each case tests one way.
      if (how.grid == Encoding::kThreadgroups) {
        Bind(encoder, b);
      } else if (how.grid == Encoding::kIndirect) {
        encoder.setBuffer(b.buffer, 0, b.index);
        encoder.setBufferOffset(b.offset, b.index);
      } else {
        encoder.setBuffers(&b.buffer, &b.offset, Range(b.index, 1));
      }
    }
    if (how.params_written) {
      encoder.setBuffer(written_, kParamsOffset, kernel.params.index);
    } else {
      encoder.setBytes(params, params_length, kernel.params.index);
    }
    // Built-in kernels ignore threadgroup memory, so its length is set in
    // only half of the cases.
    encoder.setThreadgroupMemoryLength(
        how.params_written ? job.local_memory : 0, 0);
    if (how.grid == Encoding::kThreadgroups) {
      encoder.dispatchThreadgroups(Size(width, threads.height, threads.depth),
                                   per);
    } else if (how.grid == Encoding::kIndirect) {
      encoder.dispatchThreadgroups(written_, kGridOffset, per);
    } else {
      encoder.dispatchThreads(threads, per);
    }
  }

 private:
  // No built-in kernel uses these binding indices.
  static constexpr size_t kCopyFrom = 29, kCopyTo = 30;
  static constexpr size_t kWrittenBytes = 256;
  static constexpr size_t kParamsOffset = 4, kGridOffset = 132;

  // Tests grids whose tiles have one row and 256 columns. Kernels for a
  // single row allow only one threadgroup in y.
  void ForTileGrids(const Job& job) {
    const size_t rows = job.rows, cols = job.cols;
    const size_t more = rows == 1 ? 1 : rows + 3;
    const Size grids[] = {
        Size(cols, rows, 1),    Size(cols + 700, more, 1),
        Size(256, rows, 1),     Size(cols, 1, 1),
        Size(300, rows / 2, 1), Size(cols - cols / 3, rows, 1),
        Size(0, rows, 1),       Size(cols, rows, 0),
    };
    for (const Size& threads : grids) {
      for (const How& how : kEveryHow) {
        const size_t width = how.grid == Encoding::kThreads
                                 ? threads.width
                                 : CeilDiv(threads.width, 256) * 256;
        Covered covered = {std::min(threads.height, rows),
                           std::min(width, cols)};
        if (threads.depth == 0) covered = {0, 0};
        Expect(job, how, threads, covered);
        if (HasFatalFailure()) return;
      }
    }
  }
  // Tests grids with one threadgroup per row, and smaller and larger grids.
  // Kernels ignore surplus threadgroups only if the parameters give the
  // number of rows, so other kernels get no larger grid.
  void ForRowGrids(const Job& job) {
    const uint8_t rows = job.BuiltInKernel().grid.rows;
    const bool cut_off = rows != kOne && rows != kGridWidth;
    for (const size_t grid :
         std::set<size_t>{job.rows, job.rows / 2, 1, 0, job.rows + 5}) {
      if (grid > job.rows && !cut_off) continue;
      for (const How& how : kEveryHow) {
        Expect(job, how, Size(grid * job.threads, 1, 1),
               {std::min(grid, job.rows), SIZE_MAX});
        if (HasFatalFailure()) return;
      }
    }
  }
  void EncodeCopy(Encoder& encoder, const void* from, size_t length,
                  size_t offset) {
    encoder.setComputePipelineState(copy_);
    encoder.setBytes(from, length, kCopyFrom);
    encoder.setBuffer(written_, offset, kCopyTo);
    DispatchOne(encoder);
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<CommandQueue> queue_;
  BufferPtr written_;
  std::shared_ptr<ComputePipelineState> copy_;
  bool ran_ = false;
};

enum class Kernel { kStacked, kBatched };
constexpr Kernel kBoth[] = {Kernel::kStacked, Kernel::kBatched};

enum class Place { kOwn, kGate, kUp };

Job SiluMulJob(Kernel kernel, const RowType& type, size_t rows, size_t cols,
               Place out = Place::kOwn) {
  Random random(rows * 10007 + cols);
  std::vector<float> gate = random.Uniforms(rows * cols, -30.0f, 30.0f);
  std::vector<float> up = random.Uniforms(rows * cols, -2.0f, 2.0f);
  std::vector<float> whole(rows * cols);
  RoundEach(type.type, &gate);
  RoundEach(type.type, &up);
  EXPECT_TRUE(Activate({{gate.data(), rows, cols}, {up.data(), rows, cols}},
                       {{whole.data(), rows, cols}})
                  .ok());
  const int32_t r = static_cast<int32_t>(rows);
  const int32_t c = static_cast<int32_t>(cols);
  const bool stacked = kernel == Kernel::kStacked;
  Job job = {
      std::string(stacked ? "silu_mul_stacked" : "silu_mul_batched") +
          type.suffix,
      stacked ? Words<SiluMulStackedParams>({{c, r}})
              : Words<SiluMulBatchedParams>({{r, c}}),
      {In(gate).As(type.type), In(up).As(type.type), Out(whole).As(type.type)}};
  if (out != Place::kOwn) {
    job.arguments[2] =
        Updated(out == Place::kGate ? gate : up, whole).As(type.type);
    job.arguments[out == Place::kGate ? 0 : 1] = SameAs(2);
  }
  job.rows = rows;
  job.cols = cols;
  return job;
}

template <class Function>
void ForEachKernel(const Function& function) {
  for (const Kernel kernel : kBoth) {
    for (const RowType& type : kRowTypes) function(kernel, type);
  }
}

using DeviceSiluMulTest = BuiltInTest;
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(DeviceSiluMulTest);

TEST_P(DeviceSiluMulTest, EqualsThePlainApi) {
  ForEachKernel([this](Kernel kernel, const RowType& type) {
    for (const Covered shape :
         {Covered{1, 1}, Covered{1, 1001}, Covered{3, 255}, Covered{2, 256},
          Covered{5, 257}, Covered{9, 31}, Covered{4, 700},
          // These grids cover nothing.
          Covered{0, 300}, Covered{3, 0}}) {
      ExpectPlain(SiluMulJob(kernel, type, shape.rows, shape.cols));
    }
  });
}

TEST_P(DeviceSiluMulTest, InPlaceOnGateAndOnUp) {
  ForEachKernel([this](Kernel kernel, const RowType& type) {
    ExpectPlain(SiluMulJob(kernel, type, 5, 701, Place::kGate));
    ExpectPlain(SiluMulJob(kernel, type, 5, 701, Place::kUp));
  });
}

TEST_P(DeviceSiluMulTest, EveryThreadOfTheDevicesExecutor) {
  executor().Rendezvous();
  // The job takes far longer than seven grains of 30 us (a grain is the least
  // work of a thread), so all threads get work.
  ExpectWhole(SiluMulJob(Kernel::kBatched, kRowTypes[0], 1021, 1001));
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
}

struct RouteShape {
  size_t tokens, experts, top_k;
};

// The shapes include some that exceed the limits of the original shaders:
// top_k above 32 and above 64, and a number of experts that is not a power of
// two. In the last shape, the clamp of the renormalisation has an effect.
constexpr RouteShape kShapes[] = {
    {1, 1, 1},   {3, 16, 4},    {5, 60, 4},    {7, 60, 33},
    {4, 100, 3}, {6, 128, 128}, {9, 257, 100}, {2, 65536, 1},
};

std::vector<float> Logits(const RouteShape& s, Type type = Type::kF32) {
  Random random(s.experts);
  std::vector<float> logits =
      random.Uniforms(s.tokens * s.experts, -9.0f, 9.0f);
  if (s.experts > 1000) std::fill(logits.begin(), logits.end(), 1.0f);
  if (s.tokens >= 4) {
    float* const row = &logits[2 * s.experts];
    row[s.experts / 2] = kNaN;
    row[s.experts] = kInf;  // the next row has infinities
    std::fill_n(&logits[s.experts], s.experts, -kInf);
  }
  RoundEach(type, &logits);
  return logits;
}

struct Routed {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

Routed Plain(const RouteShape& s, const std::vector<float>& logits,
             bool renormalize) {
  Routed r = {std::vector<int32_t>(s.tokens * s.top_k),
              std::vector<float>(s.tokens * s.top_k)};
  RouteOptions options;
  options.renormalize = renormalize;
  const Status status = RouteTopK({{logits.data(), s.tokens, s.experts}},
                                  {{r.ids.data(), s.tokens, s.top_k},
                                   {r.weights.data(), s.tokens, s.top_k}},
                                  options);
  EXPECT_TRUE(status.ok()) << status.message();
  return r;
}

enum class RouteKernel { kRouter, kRouterAsIs, kSoftmaxTopk };

// Returns a job with logits that the type can represent.
Job RouteJob(RouteKernel kernel, const RouteShape& s,
             const std::vector<float>& logits,
             const RowType& type = kRowTypes[0]) {
  const Routed plain = Plain(s, logits, kernel != RouteKernel::kRouterAsIs);
  Job job = {
      std::string("moe_router_topk_softmax") + type.suffix,
      // renormalize is true for any value except 0.
      Words<MoeRouterTopkSoftmaxParams>(
          {{static_cast<int32_t>(s.experts), static_cast<int32_t>(s.top_k),
            kernel == RouteKernel::kRouter ? 1 << s.tokens : 0}}),
      {In(logits).As(type.type), Out(plain.ids), Out(plain.weights)}};
  job.rows = s.tokens;
  job.threads = 32;
  job.local_memory = 580;  // the size that the original shader asks for
  if (kernel == RouteKernel::kSoftmaxTopk) {
    job.kernel = std::string("moe_softmax_topk") + type.suffix;
    job.params = Words<MoeSoftmaxTopkParams>(
        {{static_cast<uint32_t>(s.tokens), static_cast<uint32_t>(s.experts),
          static_cast<uint32_t>(s.top_k), kNaN}});
    job.threads = std::min<size_t>(s.experts, 128);
    job.local_memory = 0;
  }
  return job;
}

using DeviceRouteTest = BuiltInTest;
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(DeviceRouteTest);

TEST_P(DeviceRouteTest, RouterEqualsThePlainApi) {
  for (const RowType& type : kRowTypes) {
    for (const RouteShape& s : kShapes) {
      const std::vector<float> logits = Logits(s, type.type);
      ExpectPlain(RouteJob(RouteKernel::kRouter, s, logits, type));
      ExpectPlain(RouteJob(RouteKernel::kRouterAsIs, s, logits, type));
    }
  }
}

TEST_P(DeviceRouteTest, SoftmaxTopkEqualsThePlainApi) {
  for (const RowType& type : kRowTypes) {
    for (const RouteShape& s : kShapes) {
      ExpectPlain(
          RouteJob(RouteKernel::kSoftmaxTopk, s, Logits(s, type.type), type));
    }
    // This job has no tokens.
    ExpectPlain(RouteJob(RouteKernel::kSoftmaxTopk, {0, 60, 4}, {}, type));
  }
}

TEST_P(DeviceRouteTest, EveryThreadOfTheDevicesExecutor) {
  // The job takes far longer than seven grains of 30 us.
  const RouteShape s = {8191, 60, 4};
  executor().Rendezvous();
  ExpectWhole(RouteJob(RouteKernel::kRouterAsIs, s, Logits(s)));
  EXPECT_EQ(executor().DistinctThreads(), executor().ExpectedThreads());
}

// Indices of the kernel's arguments.
enum : size_t { kSelected, kTpe, kIds, kGateUpArgs, kDownArgs };

// In a table of expected results, this value marks an entry that the kernel
// must not write.
constexpr int32_t kNothing = static_cast<int32_t>(kCanary);

// The tables that the kernel writes.
struct Tables {
  std::vector<int32_t> tpe, ids;
  std::vector<uint32_t> gate_up_args, down_args;
};

Job BucketJob(const std::vector<int32_t>& selected, size_t experts,
              size_t row_stride, const Tables& tables, int32_t m_gate_up = 768,
              int32_t m_down = 2049) {
  return {"moe_compute_ids_tpe_f32",
          Words<MoeComputeIdsTpeParams>(
              {{static_cast<int32_t>(experts), static_cast<int32_t>(row_stride),
                static_cast<int32_t>(selected.size()), m_gate_up, m_down}}),
          {In(selected), Out(tables.tpe), Out(tables.ids),
           Out(tables.gate_up_args), Out(tables.down_args)}};
}

// Returns a job whose expected tables are the plain API's results for
// `selected`. Entries that the plain API does not write stay kNothing.
Job BucketJob(const std::vector<int32_t>& selected, size_t experts,
              size_t row_stride, size_t m_gate_up = 768, size_t m_down = 2049) {
  Tables t = {std::vector<int32_t>(experts, kNothing),
              std::vector<int32_t>(experts * row_stride, kNothing),
              std::vector<uint32_t>(3), std::vector<uint32_t>(3)};
  Report report;
  Status status = BucketStrided({{selected.data(), selected.size(), 1}},
                                {t.tpe, t.ids, row_stride, false, &report},
                                {BucketOrder::kAscending, true});
  EXPECT_TRUE(status.ok()) << status.message();
  status =
      MakeDispatchArgs({report.max_rows, experts, m_gate_up}, {t.gate_up_args});
  EXPECT_TRUE(status.ok()) << status.message();
  status = MakeDispatchArgs({report.max_rows, experts, m_down}, {t.down_args});
  EXPECT_TRUE(status.ok()) << status.message();
  return BucketJob(selected, experts, row_stride, t,
                   static_cast<int32_t>(m_gate_up),
                   static_cast<int32_t>(m_down));
}

size_t BusiestCount(const std::vector<int32_t>& selected, size_t experts) {
  return reference::Bucket(selected, experts).max_rows;
}

using DeviceBucketTest = BuiltInTest;
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(DeviceBucketTest);

TEST_P(DeviceBucketTest, EqualsThePlainApi) {
  for (const Shape& s : {Shape{1, 1, 1}, Shape{5, 3, 8}, Shape{7, 4, 60},
                         Shape{31, 33, 60}, Shape{1000, 8, 129}}) {
    for (const Load load :
         {Load::kUniform, Load::kZipf, Load::kOneExpert, Load::kStrangers}) {
      const size_t pairs = s.tokens * s.top_k;
      const std::vector<int32_t> ids = MakeIds(pairs, s.experts, load, pairs);
      // row_stride has three values: the number of pairs, which is always
      // large enough, the smallest value that works, and one more.
      const size_t tight = std::max<size_t>(1, BusiestCount(ids, s.experts));
      for (const size_t stride : {pairs, tight, tight + 1}) {
        SCOPED_TRACE(testing::Message() << s << ", stride " << stride);
        ExpectPlain(BucketJob(ids, s.experts, stride));
      }
    }
  }
}

TEST_P(DeviceBucketTest, NoPairsOrNoGrid) {
  // With 0 pairs, a row_stride of total_pairs is legal, and the table of ids
  // is empty.
  const Tables none = {std::vector<int32_t>(8), {}, {1, 12, 8}, {1, 33, 8}};
  ExpectPlain(BucketJob({}, 8, 0, none));
  const Job three = BucketJob({1, 2, 3}, 4, 3);
  for (const How& how : kEveryHow) {
    for (const Size& grid :
         {Size(0, 1, 1), Size(256, 0, 1), Size(256, 1, 0), Size()}) {
      Expect(three, how, grid, {0, 0});
    }
  }
  ExpectPlain(BucketJob({}, 8, 5));
  ExpectPlain(BucketJob({-1, 8, 1 << 24}, 8, 3));  // all ids are invalid
}

// A GEMM reads its grid from the arguments gate_up_args or down_args, which
// the bucket kernel has written. Exactly one threadgroup must visit each
// combination of a valid pair and a row tile.
TEST_P(DeviceBucketTest, ArgsGiveTheGridOfALaterDispatch) {
  const size_t experts = 6, pairs = 701, stride = pairs;
  const std::vector<int32_t> ids =
      MakeIds(pairs, experts, Load::kStrangers, 31);
  const Job job = BucketJob(ids, experts, stride);
  const Memory tables(device(), job);
  KernelFunction gemm;
  gemm.name = "gemm";
  gemm.threadgroup = [&](const ThreadgroupContext& context) {
    const Size& position = context.threadgroup_position_in_grid;
    const Span<const int32_t> tpe = context.buffer<const int32_t>(0);
    const Span<const int32_t> table = context.buffer<const int32_t>(1);
    const Span<int32_t> visits = context.buffer<int32_t>(2);
    const size_t count = static_cast<size_t>(tpe.data[position.depth]);
    for (size_t s = 32 * position.width;
         s < std::min(count, 32 * (position.width + 1)); ++s) {
      const int32_t pair = table.data[position.depth * stride + s];
      visits.data[static_cast<size_t>(pair) *
                      context.threadgroups_per_grid.height +
                  position.height] += 1;
    }
  };
  const auto consumer = device().newComputePipelineState(gemm);
  const size_t tiles[2] = {12, 33};
  const DeviceArray<int32_t> up(device(), pairs * tiles[0]);
  const DeviceArray<int32_t> down(device(), pairs * tiles[1]);
  up.memory().Fill(std::vector<int32_t>(pairs * tiles[0]));
  down.memory().Fill(std::vector<int32_t>(pairs * tiles[1]));

  const auto commands = Encoded(queue(), [&](Encoder& e) {
    Encode(e, job, tables, kEveryHow[0], job.WholeGrid());
    e.setComputePipelineState(consumer);
    Bind(e, tables.At(kTpe, 0));
    Bind(e, tables.At(kIds, 1));
    for (const bool is_down : {false, true}) {
      const BoundBuffer args = tables.At(is_down ? kDownArgs : kGateUpArgs, 0);
      Bind(e, (is_down ? down : up).At(2));
      e.dispatchThreadgroups(args.buffer, args.offset, Size(128, 1, 1));
    }
  });
  ASSERT_EQ(Finish(*commands), "");
  tables.Expect(job, {1, SIZE_MAX});
  for (const bool is_down : {false, true}) {
    const std::vector<int32_t> visits = (is_down ? down : up).Values();
    const size_t height = tiles[is_down];
    for (size_t i = 0; i < visits.size(); ++i) {
      const int32_t id = ids[i / height];
      const bool kept = id >= 0 && id < static_cast<int32_t>(experts);
      ASSERT_EQ(visits[i], kept ? 1 : 0) << i;
    }
  }
  up.memory().ExpectIntact("up");
  down.memory().ExpectIntact("down");
}

// A built-in kernel reads its grid from gate_up_args. One expert, 70 pairs
// and 300 features give a grid of 3 x 5 x 1 tiles. This grid covers 768 of
// the 900 columns in each of the 5 rows.
TEST_P(DeviceBucketTest, ArgsGiveTheGridOfABuiltInKernel) {
  const size_t pairs = 70, rows = 5, cols = 900;
  const Job bucket = BucketJob(std::vector<int32_t>(pairs), 1, pairs, 300, 64);
  const Memory tables(device(), bucket);
  Random random(32);
  const std::vector<float> gate = random.Uniforms(rows * cols, -9.0f, 9.0f);
  const std::vector<float> up = random.Uniforms(rows * cols, -9.0f, 9.0f);
  std::vector<float> whole(rows * cols);
  ASSERT_TRUE(Activate({{gate.data(), rows, cols}, {up.data(), rows, cols}},
                       {{whole.data(), rows, cols}})
                  .ok());
  const Job silu = {"silu_mul_stacked_f32",
                    Words<SiluMulStackedParams>({{cols, rows}}),
                    {In(gate), In(up), Out(whole)},
                    rows,
                    cols};
  const Memory memory(device(), silu);
  const BoundBuffer args = tables.At(kGateUpArgs, 0);

  const auto commands = Encoded(queue(), [&](Encoder& e) {
    Encode(e, bucket, tables, kEveryHow[1], bucket.WholeGrid());
    // This grid is empty, but all bindings are in place.
    Encode(e, silu, memory, kEveryHow[0], Size(0, 1, 1));
    e.dispatchThreadgroups(args.buffer, args.offset, Size(256, 1, 1));
  });
  ASSERT_EQ(Finish(*commands), "");
  memory.Expect(silu, {rows, 3 * 256});
}

TEST_P(DeviceBucketTest, RowStrideTooSmallChangesNothing) {
  for (const Shape& s :
       {Shape{1, 2, 1}, Shape{31, 33, 60}, Shape{60013, 2, 128}}) {
    const size_t pairs = s.tokens * s.top_k;
    const std::vector<int32_t> ids =
        MakeIds(pairs, s.experts, Load::kZipf, pairs);
    const size_t busiest = BusiestCount(ids, s.experts);
    for (const size_t stride : {busiest - 1, busiest / 2}) {
      const Tables tables = {std::vector<int32_t>(s.experts),
                             std::vector<int32_t>(s.experts * stride),
                             std::vector<uint32_t>(3),
                             std::vector<uint32_t>(3)};
      Job job = BucketJob(ids, s.experts, stride, tables);
      job.error = "moe_compute_ids_tpe_f32: params: row_stride is " +
                  std::to_string(stride) + ", and an expert has " +
                  std::to_string(busiest) + " pairs";
      ExpectPlain(job);
    }
    ExpectPlain(BucketJob(ids, s.experts, busiest));  // the queue still works
  }
}

TEST_P(DeviceBucketTest, EveryThreadOfTheDevicesExecutor) {
  // The job takes several grains of 30 us for each of 7 threads, because a
  // pair takes about 1 ns.
  const size_t pairs = 480001, experts = 128;
  const std::vector<int32_t> ids =
      MakeIds(pairs, experts, Load::kStrangers, 33);
  const Job job = BucketJob(ids, experts, BusiestCount(ids, experts) + 3);
  executor().Rendezvous();
  ExpectWhole(job);
  // If the executor has one thread, the sort runs on the calling thread
  // without using the executor, so the executor counts 0 threads.
  EXPECT_EQ(std::max<size_t>(1, executor().DistinctThreads()),
            executor().ExpectedThreads());
}

CombineShape MakeShape(size_t tokens, size_t top_k, size_t hidden) {
  CombineShape s;
  s.tokens = tokens;
  s.top_k = top_k;
  s.hidden = hidden;
  return s;
}

std::vector<CombineShape> Stacked() {
  return {MakeShape(1, 1, 1), MakeShape(1, 33, 257), MakeShape(1, 8, 1001),
          MakeShape(1, 2, 700), MakeShape(1, 3, 256)};
}
std::vector<CombineShape> Batched() {
  return {MakeShape(1, 1, 1),   MakeShape(5, 3, 257),  MakeShape(3, 33, 33),
          MakeShape(4, 2, 700), MakeShape(2, 8, 1001), MakeShape(0, 2, 300),
          MakeShape(3, 2, 0)};
}

// The sizes that the parameter struct contains.
struct Sizes {
  int32_t tokens, top_k, hidden;
  explicit Sizes(const CombineShape& s)
      : tokens(static_cast<int32_t>(s.tokens)),
        top_k(static_cast<int32_t>(s.top_k)),
        hidden(static_cast<int32_t>(s.hidden)) {}
};

CombineCase MakeCase(const CombineShape& s, uint64_t seed, Type type) {
  CombineCase c(s, seed);
  for (auto* values :
       {&c.rows, &c.residual, &c.norm_weight, &c.shared, &c.gate}) {
    RoundEach(type, values);
  }
  return c;
}

// Returns the plain API's results.
std::vector<float> Sums(const CombineCase& c) {
  const CombineShape& s = c.shape;
  std::vector<float> sums(s.tokens * s.hidden);
  EXPECT_OK(
      switchyard::Combine(c.Inputs(), {{sums.data(), s.tokens, s.hidden}}));
  return sums;
}

// Returns a job for a kernel whose tiles are 256 columns wide.
Job TileJob(const char* stem, const RowType& type, const CombineShape& s,
            std::vector<uint32_t> params, std::vector<Given> arguments) {
  return {stem + std::string(type.suffix), std::move(params),
          std::move(arguments), s.tokens, s.hidden};
}

// Returns a job for weighted_sum_[residual_]stacked.
Job StackedJob(CombineShape s, const RowType& type, bool residual) {
  s.residual = residual;
  const CombineCase c = MakeCase(s, 21 + s.hidden, type.type);
  const std::vector<float> whole = Sums(c);
  const Sizes n(s);
  return TileJob(
      residual ? "weighted_sum_residual_stacked" : "weighted_sum_stacked", type,
      s, Words<WeightedSumStackedParams>({{n.hidden, n.top_k}}),
      {In(c.rows).As(type.type), In(c.weights),
       (residual ? Updated(c.residual, whole) : Out(whole)).As(type.type)});
}

Job BatchedJob(const CombineShape& s, const RowType& type) {
  const CombineCase c = MakeCase(s, 21 + s.hidden, type.type);
  const Sizes n(s);
  return TileJob(
      "weighted_sum_batched", type, s,
      Words<WeightedSumBatchedParams>({{n.tokens, n.top_k, n.hidden}}),
      {In(c.rows).As(type.type), In(c.weights), Out(Sums(c)).As(type.type)});
}

// Returns a job for weighted_sum_residual_norm_[stacked|batched].
Job NormJob(CombineShape s, const RowType& type, float eps, bool batched) {
  s.residual = true;
  const CombineCase c = MakeCase(s, 22 + s.hidden, type.type);
  std::vector<float> whole(s.tokens * s.hidden), normed(whole.size());
  CombineInputs inputs = c.Inputs();
  inputs.norm_weight = c.norm_weight;
  EXPECT_TRUE(switchyard::Combine(inputs,
                                  {{whole.data(), s.tokens, s.hidden},
                                   {normed.data(), s.tokens, s.hidden}},
                                  {eps})
                  .ok());
  const Sizes n(s);
  return {std::string(batched ? "weighted_sum_residual_norm_batched"
                              : "weighted_sum_residual_norm_stacked") +
              type.suffix,
          batched ? Words<WeightedSumResidualNormBatchedParams>(
                        {{n.tokens, n.top_k, n.hidden, eps}})
                  : Words<WeightedSumResidualNormStackedParams>(
                        {{n.hidden, n.top_k, eps}}),
          {In(c.rows).As(type.type), In(c.weights),
           Updated(c.residual, whole).As(type.type),
           In(c.norm_weight).As(type.type), Out(normed).As(type.type)},
          s.tokens};
}

// With kUnwanted, add_residual is 0, and a buffer that is too short is bound
// for the residual.
enum class Residual { kNone, kUnwanted, kIs, kIsOut };

Job ReduceJob(CombineShape s, const RowType& type, Residual kind,
              bool shared_is_out) {
  s.shared = true;
  s.kind = SharedGate::kLogit;
  s.residual = kind == Residual::kIs || kind == Residual::kIsOut;
  const CombineCase c = MakeCase(s, 23 + s.hidden, type.type);
  // The plain API takes null data as a missing shared expert. A matrix
  // without columns has null data too, so the plain API is not called for it.
  std::vector<float> whole;
  if (s.tokens * s.hidden != 0) whole = Sums(c);
  Given shared = In(c.shared), residual = In(c.residual), out = Out(whole);
  if (shared_is_out) out = Updated(c.shared, whole);
  if (kind == Residual::kIsOut) out = Updated(c.residual, whole);
  std::vector<Given> arguments = {
      In(c.weights),        In(c.rows).As(type.type), In(c.gate).As(type.type),
      shared.As(type.type), residual.As(type.type),   out.As(type.type)};
  if (shared_is_out) arguments[3] = SameAs(5);
  if (kind == Residual::kNone) arguments[4] = {};
  if (kind == Residual::kIsOut) arguments[4] = SameAs(5);
  const auto u32 = [](size_t size) { return static_cast<uint32_t>(size); };
  return TileJob("moe_weighted_reduce", type, s,
                 Words<MoeWeightedReduceParams>(
                     {{u32(s.tokens), u32(s.top_k), u32(s.hidden),
                       // Any value except 0 makes the kernel add the
                       // residual.
                       s.residual ? u32(s.hidden) : 0u}}),
                 std::move(arguments));
}

using DeviceCombineTest = BuiltInTest;
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(DeviceCombineTest);

TEST_P(DeviceCombineTest, StackedSumsEqualThePlainApi) {
  for (const RowType& type : kRowTypes) {
    for (const CombineShape& s : Stacked()) {
      ExpectPlain(StackedJob(s, type, false));
      ExpectPlain(StackedJob(s, type, true));
    }
  }
}

TEST_P(DeviceCombineTest, BatchedSumEqualsThePlainApi) {
  for (const RowType& type : kRowTypes) {
    for (const CombineShape& s : Batched()) ExpectPlain(BatchedJob(s, type));
  }
}

TEST_P(DeviceCombineTest, NormsEqualThePlainApi) {
  for (const RowType& type : kRowTypes) {
    for (const float eps : {0.0f, 1e-6f, 0.25f}) {
      for (const CombineShape& s : Stacked()) {
        ExpectPlain(NormJob(s, type, eps, false));
      }
      for (const CombineShape& s : Batched()) {
        ExpectPlain(NormJob(s, type, eps, true));
      }
    }
  }
}

TEST_P(DeviceCombineTest, WeightedReduceEqualsThePlainApi) {
  for (const RowType& type : kRowTypes) {
    for (const CombineShape& s : Batched()) {
      ExpectPlain(ReduceJob(s, type, Residual::kNone, false));
      ExpectPlain(ReduceJob(s, type, Residual::kIs, false));
    }
    const CombineShape s = MakeShape(5, 3, 257);
    ExpectPlain(ReduceJob(s, type, Residual::kIsOut, false));
    ExpectPlain(ReduceJob(s, type, Residual::kNone, true));
    ExpectPlain(ReduceJob(s, type, Residual::kIs, true));
    ExpectPlain(ReduceJob(s, type, Residual::kUnwanted, false));
  }
}

TEST_P(DeviceCombineTest, EveryThreadOfTheDevicesExecutor) {
  // Each job takes several grains of 30 us for each of 7 threads.
  const CombineShape s = MakeShape(301, 4, 2001);
  const RowType& f32 = kRowTypes[0];
  for (const Job& job : {BatchedJob(s, f32), NormJob(s, f32, kEps, true),
                         ReduceJob(s, f32, Residual::kIsOut, false)}) {
    // Each job gets a new executor, because an executor counts threads over
    // its whole lifetime.
    const std::unique_ptr<RecordingExecutor> pool =
        MakeExecutor(GetParam().pool);
    Use(*pool);
    pool->Rendezvous();
    ExpectWhole(job);
    EXPECT_EQ(pool->DistinctThreads(), pool->ExpectedThreads()) << job.kernel;
    Use(executor());  // releases the device's references to the pool
  }
}

// The grid of a built-in kernel may be smaller than the shapes in the
// parameters. Such a grid is legal, but checked mode warns.

using Warnings = std::vector<std::string>;

class DeviceWarnings : public testing::Test {
 protected:
  // Runs silu_mul_batched over [rows, cols], and returns the warnings.
  Warnings Silu(uint32_t rows, uint32_t cols, Size grid, size_t times = 1,
                bool check = true) {
    CheckedQueue q(NewDevice(false, {check, 0}));
    const SiluMulBatchedParams params = {static_cast<int32_t>(rows),
                                         static_cast<int32_t>(cols)};
    const BufferPtr x = q.Floats(rows * cols);
    const auto commands = Encoded(*q.queue, [&](Encoder& e) {
      e.setLabel("mlp");
      e.setComputePipelineState(
          q.device->newComputePipelineState("silu_mul_batched_f32"));
      CheckedQueue::SetBuffers(e, {x, x, x});
      e.setBytes(&params, sizeof(params), 3);
      for (size_t i = 0; i < times; ++i) {
        e.dispatchThreadgroups(grid, Size(256, 1, 1));
      }
    });
    EXPECT_EQ(commands->warnings(), Warnings());
    commands->commit();
    commands->waitUntilCompleted();
    EXPECT_EQ(commands->error(), "");
    return commands->warnings();
  }
};

TEST_F(DeviceWarnings, AGridThatIsTooSmall) {
  EXPECT_EQ(Silu(7, 512, Size(2, 7, 1)), Warnings());
  // Grids that are larger than the work give no warning, because they are
  // common.
  EXPECT_EQ(Silu(7, 512, Size(3, 9, 1)), Warnings());
  EXPECT_EQ(Silu(7, 512, Size(2, 5, 1)),
            Warnings({"silu_mul_batched_f32: the grid covers 5 of 7 rows "
                      "[encoder \"mlp\"]"}));
  EXPECT_EQ(Silu(7, 512, Size(1, 7, 1), 3),  // gives a single warning
            Warnings({"silu_mul_batched_f32: the grid covers 256 of 512 "
                      "columns [encoder \"mlp\"]"}));
}

TEST_F(DeviceWarnings, AGridThatIsSwapped) {
  EXPECT_EQ(Silu(7, 512, Size(7, 2, 1)),
            Warnings({"silu_mul_batched_f32: the grid covers 2 of 7 rows: its "
                      "width and height are swapped [encoder \"mlp\"]"}));
  EXPECT_EQ(Silu(2, 1500, Size(2, 6, 1)),
            Warnings({"silu_mul_batched_f32: the grid covers 512 of 1500 "
                      "columns: its width and height are swapped [encoder "
                      "\"mlp\"]"}));
}

TEST_F(DeviceWarnings, OnlyInCheckedMode) {
  EXPECT_EQ(Silu(7, 512, Size(2, 5, 1), 1, false), Warnings());
}

// An indirect grid gives no warning, because an earlier dispatch has computed
// it.
TEST_F(DeviceWarnings, NotOfIndirectGrids) {
  CheckedQueue q;
  const SiluMulBatchedParams params = {7, 512};
  const uint32_t args[3] = {2, 5, 1};
  const BufferPtr x = q.Floats(7 * 512);
  const auto commands = Encoded(*q.queue, [&](Encoder& e) {
    e.setComputePipelineState(
        q.device->newComputePipelineState("silu_mul_batched_f32"));
    CheckedQueue::SetBuffers(e, {x, x, x});
    e.setBytes(&params, sizeof(params), 3);
    e.dispatchThreadgroups(q.device->newBuffer(args, sizeof(args)), 0,
                           Size(256, 1, 1));
  });
  commands->commit();
  commands->waitUntilCompleted();
  EXPECT_EQ(commands->error(), "");
  EXPECT_EQ(commands->warnings(), Warnings());
}

}  // namespace
}  // namespace switchyard::testing_support
