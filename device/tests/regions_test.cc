// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests kernels that the compiler cuts at the points where their threads meet
// (device/src/metal/regions.h). Cut kernels must give the same results as
// uncut kernels, which checked mode runs.

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device/src/metal/compile.h"
#include "device/tests/device_test.h"
#include "device/tests/metal_text.h"
#include "gtest/gtest.h"
#include "switchyard/device/library.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

const std::vector<std::string> kCut = {"tiles",      "tree",
                                       "nested",     "swap",
                                       "uneven",     "read_bound",
                                       "ways",       "constant_way",
                                       "own_memory", "argument_memory",
                                       "lanes",      "matrices",
                                       "deep",       "rewrites",
                                       "reads_back", "second_pointer",
                                       "half_words"};
const std::vector<std::string> kUncut = {"some_meet", "as_many_as", "alone"};

class Runner {
 public:
  // Runs the kernels in metal/regions.metal, or those in `text` if it is not
  // empty.
  explicit Runner(bool check_kernels, const std::string& text = "",
                  const std::string& cache = "")
      : device_(NewDevice(check_kernels, cache)), texts_(device_) {
    std::string error;
    if (!text.empty()) library_ = device_->newLibrary(text.c_str(), {}, &error);
    EXPECT_EQ(error, "");
  }

  // Runs a kernel. Returns the words of `out`, and for a random kernel also
  // the words of its other buffers. On failure, sets *error.
  std::vector<uint32_t> operator()(const std::string& kernel, Size groups,
                                   Size threads, std::string* error = nullptr) {
    FunctionConstantValues values;
    const bool is_set = groups.width % 2 == 1;
    values.setConstantValue(&is_set, DataTypeBool, 0);
    const auto function = library_ != nullptr
                              ? library_->newFunction(kernel.c_str())
                              : texts_.Get("regions", kernel, &values);
    if (function == nullptr) return {};
    const auto pipeline = device_->newComputePipelineState(function);
    std::vector<uint32_t> in(size_t{1} << 14);
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<uint32_t>((i + 1) * 2654435761u >> 5);
    }
    const uint32_t n = 24;
    const auto input = NewBuffer(*device_, in);
    const auto out = NewBuffer(*device_, std::vector<uint32_t>(in.size(), 1));
    const auto commands = device_->newCommandQueue()->commandBuffer();
    const auto encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline);
    encoder->setBuffer(input, 0, 0);
    encoder->setBuffer(out, 0, 1);
    encoder->setBytes(&n, sizeof(n), 2);
    encoder->setThreadgroupMemoryLength(1024, 0);
    // Random kernels write to `out` and to four more buffers. Each of these
    // buffers is bound at two indices, for pointers to different types.
    std::vector<BufferPtr> written = {out};
    if (library_ != nullptr) {
      const std::vector<uint32_t> elements = {1, 0, 2, 3};
      encoder->setBytes(elements.data(), sizeof(elements[0]) * 4, 3);
      for (const size_t index : {4u, 6u, 8u, 10u}) {
        // With this mask, a word is two small positive numbers in any 16-bit
        // format of floats.
        for (uint32_t& word : in) word = (word & 0x3fff3fff) | 0x10001000;
        written.push_back(NewBuffer(*device_, in));
        encoder->setBuffer(written.back(), 0, index);
        encoder->setBuffer(written.back(), 0, index + 1);
      }
    }
    encoder->dispatchThreads(groups, threads);
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    if (error != nullptr) {
      *error = commands->error();
    } else {
      EXPECT_EQ(commands->error(), "") << kernel;
    }
    std::vector<uint32_t> words;
    for (const BufferPtr& buffer : written) {
      const std::vector<uint32_t> more = Contents<uint32_t>(buffer);
      words.insert(words.end(), more.begin(), more.end());
    }
    return words;
  }

 private:
  static std::shared_ptr<Device> NewDevice(bool check_kernels,
                                           const std::string& cache) {
    DeviceOptions options;
    options.check_kernels = check_kernels;
    options.metal_cache = cache;
    return CreateDevice(options);
  }

  std::shared_ptr<Device> device_;
  MetalTexts texts_;
  std::shared_ptr<Library> library_;
};

size_t CountCut(const std::vector<std::string>& kernels) {
  const TempFolder cache;
  metal::CompileRequest request;
  request.path = MetalPath("regions");
  request.kernels = kernels;
  request.cache = cache.path();
  return metal::Compile(request).kernels_cut;
}

TEST(Regions, AreThereWhereAllThreadsMeetAtTheSamePlaces) {
  SWITCHYARD_NEEDS_CLANG();
  EXPECT_EQ(CountCut(kCut), kCut.size());
  EXPECT_EQ(CountCut(kUncut), 0u);
}

// Compiles with two faulty Clangs: one rejects the generated text, and the
// other lacks an option that keeps accesses from being joined.
TEST(Regions, AreLeftOutWhereTheyDoNotCompile) {
  SWITCHYARD_NEEDS_CLANG();
  for (const char* const refused :
       {"  case $each in */llvm)\n"
        "    grep -q swy_region_ \"$each\" && exit 1 ;;\n  esac\n",
        "  [ $each = -enable-interleaved-mem-accesses=false ] && exit 1\n"}) {
    const TempFolder folder;
    const std::string clang = folder.File("clang++");
    std::ofstream(clang) << "#!/bin/sh\nfor each; do\n"
                         << refused << "done\nexec " << metal::FindCompiler("")
                         << " \"$@\"\n";
    chmod(clang.c_str(), 0700);
    metal::CompileRequest request;
    request.path = MetalPath("regions");
    request.kernels = {"tree"};
    request.cache = folder.path();
    request.compiler = clang;
    const metal::Compiled compiled = metal::Compile(request);
    EXPECT_EQ(compiled.kernels_cut, 0u) << refused;
    EXPECT_NE(compiled.module, nullptr) << refused;
  }
}

TEST(Regions, GiveWhatTheKernelGivesUncut) {
  SWITCHYARD_NEEDS_CLANG();
  Runner cut(false), uncut(true);
  std::vector<std::string> kernels = kCut;
  kernels.insert(kernels.end(), kUncut.begin(), kUncut.end());
  for (const std::string& kernel : kernels) {
    const Size threads(16, 8, 1);
    for (const size_t width : {size_t{48}, size_t{64}}) {
      const Size all(width, 16, 1);
      const std::vector<uint32_t> out = cut(kernel, all, threads);
      EXPECT_EQ(out, uncut(kernel, all, threads)) << kernel;
      // Checks that all threads have written values.
      const auto written = std::count_if(
          out.begin(), out.begin() + static_cast<ptrdiff_t>(width) * 16,
          [](uint32_t word) { return word != 1; });
      EXPECT_GT(written, static_cast<ptrdiff_t>(width) * 15) << kernel;
    }
  }
}

TEST(Regions, TakeThreadgroupsThatAreSmallerAtTheEdge) {
  SWITCHYARD_NEEDS_CLANG();
  Runner cut(false), uncut(true);
  const Size all(41, 13, 1), threads(16, 8, 1);
  for (const char* const kernel : {"uneven", "tree"}) {
    EXPECT_EQ(cut(kernel, all, threads), uncut(kernel, all, threads)) << kernel;
  }
  for (const Size each : {Size(1, 128, 1), Size(128, 1, 1), Size(2, 64, 1)}) {
    const Size two(each.width * 2, each.height * 2, 1);
    EXPECT_EQ(cut("nested", two, each), uncut("nested", two, each))
        << each.width;
  }
  const Size rest(9, 7, 5);
  EXPECT_EQ(cut("deep", rest, {5, 3, 2}), uncut("deep", rest, {5, 3, 2}));
}

TEST(Regions, EndWithTheErrorOfTheKernelUncut) {
  SWITCHYARD_NEEDS_CLANG();
  Runner cut(false), uncut(true);
  std::string error, expected;
  const Size all(32, 8, 1), threads(16, 8, 1);
  cut("needs_unbound", all, threads, &error);
  uncut("needs_unbound", all, threads, &expected);
  EXPECT_NE(error, "");
  EXPECT_EQ(error, expected);
  // After the failure, the next run must work again.
  EXPECT_EQ(cut("tree", all, threads), uncut("tree", all, threads));
}

// Generates random kernels without races. Threads exchange numbers only at
// points where all of them meet; these points are nested in branches and
// loops. Between two meetings a thread accesses only its own elements, by
// every kind of access.
class Writer {
 public:
  explicit Writer(uint32_t seed) : random_(seed) {}

  // Returns the declarations that all kernels use.
  static std::string Head() {
    return R"(#include <metal_stdlib>
using namespace metal;
#define MEET \
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device)
static uint Mix(uint a, uint b) { return (a ^ b) * 2654435761u + (a >> 7); }
// Computes so much that Clang vectorises the loop, but not more.
static uint Stir(uint a) {
  for (uint k = 0; k < 5; ++k) a = (a << 3) ^ (a >> 2);
  return a;
}
// Returns a positive number that all float types hold exactly.
static float Small(uint a) { return float(a & 127) + 1; }
struct Mixed {
  uint a;
  uint pad;
  uint2 v;
  ushort b[2];
  bfloat c;
  half d;
};
)";
  }

  std::string Kernel(const std::string& name) {
    loops_ = 0;
    // The nesting is mostly shallow. Clang vectorises shallow kernels, but
    // takes long to compile deep ones.
    const int depth = std::max(0, static_cast<int>(Below(6)) - 3);
    left_ = 6 + 4 * depth;
    return "kernel void " + name +
           R"((device const uint* in [[buffer(0)]], device uint* out [[buffer(1)]],
    constant uint& n [[buffer(2)]], constant uint4& e [[buffer(3)]],
    device uint2* q2 [[buffer(4)]], device uint* w2 [[buffer(5)]],
    device uint4* q4 [[buffer(6)]], device uint* w4 [[buffer(7)]],
    device Mixed* s [[buffer(8)]], device uint* ws [[buffer(9)]],
    device bfloat4* h [[buffer(10)]], device ushort* wh [[buffer(11)]],
    uint2 at [[thread_position_in_grid]],
    uint group [[threadgroup_position_in_grid]],
    uint i [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup uint x[64];
  threadgroup uint2 t2[64];
  threadgroup uint4 t4[64];
  threadgroup Mixed ts[64];
  threadgroup uint* wt2 = (threadgroup uint*)t2;
  uint m[4] = {1, i, 3, at.x};
  uint2 r[2] = {uint2(i, 1), uint2(2, i)};
  uint4 o = uint4(i, 5, 6, 7);
  Mixed z = {i, 1, uint2(2, 3), {4, 5}, bfloat(6), half(7)};
  in += 64 * group; out += 64 * group;
  q2 += 64 * group; w2 += 128 * group;
  q4 += 64 * group; w4 += 256 * group;
  s += 64 * group; ws += 384 * group;
  h += 64 * group; wh += 256 * group;
  t2[i] = uint2(i, 9); t4[i] = uint4(i, 9, 8, 7); ts[i] = z;
  uint a = in[i], b = i, c = lane, u = n + group;
  float f = float(i);
)" + Exchange("b += x[63 - i];") +
           Statements(depth, true) + Accesses() + "  MEET;\n" +
           "  out[i] = Mix(a, b) + c * 3 + u + uint(f) + m[0] + m[1] * 5 + "
           "m[2] "
           "* 7 + m[3] * 11 + Mix(r[0].x ^ r[0].y, r[1].x ^ r[1].y) + Mix(o.x "
           "^ "
           "o.y, o.z ^ o.w) + Mix(z.a ^ z.v.x, z.v.y + z.b[0] + z.b[1]) + "
           "uint(float(z.c)) + uint(float(z.d)) + Mix(t2[i].x, t2[i].y) + "
           "Mix(t4[i].x ^ t4[i].y, t4[i].z ^ t4[i].w) + Mix(ts[i].a ^ "
           "ts[i].v.x, ts[i].v.y + ts[i].b[0] + ts[i].b[1]);\n}\n";
  }

 private:
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  std::string Number(uint32_t n) { return std::to_string(Below(n)); }
  std::string Own() { return std::string(1, "abc"[Below(3)]); }
  std::string OneOf(const std::vector<std::string>& all) {
    return all[Below(static_cast<uint32_t>(all.size()))];
  }

  // Returns an index of an element, as a text. In most cases the index has
  // the same form in all threads, so that Clang sees accesses to an array
  // with a stride.
  std::string Element(uint32_t of) {
    const std::string from =
        OneOf({"e.x", "e.y", "e.z", "e.w", "n", "u", Own(), "e.x", "e.w"});
    return "(" + from + " & " + std::to_string(of - 1) + ")";
  }
  std::string Of2(const std::string& vector) {
    return vector + OneOf({".x", ".y", "[" + Element(2) + "]"});
  }
  std::string Of4(const std::string& vector) {
    return vector + OneOf({".x", ".y", ".z", ".w", "[" + Element(4) + "]",
                           "[" + Element(4) + "]"});
  }
  std::string OfStruct(const std::string& of) {
    return of + OneOf({".a", Of2(".v"), Of2(".v"), ".b[" + Element(2) + "]"});
  }
  // Returns one of the thread's own elements as a text. The element is an
  // integer.
  std::string Place(uint32_t memory) {
    switch (memory) {
      case 0:
        return OneOf({Of2("q2[i]"), "w2[2 * ulong(i) + " + Element(2) + "]",
                      "w2[2 * ulong(i) + " + Number(2) + "]"});
      case 1:
        return OneOf({Of4("q4[i]"), Of4("q4[i]"),
                      "w4[4 * ulong(i) + " + Element(4) + "]",
                      "((device uint*)&q4[i])[" + Element(4) + "]"});
      case 2:
        return OneOf({OfStruct("s[i]"), OfStruct("s[i]"),
                      "ws[6 * ulong(i) + " + Element(4) + "]"});
      case 3:
        return OneOf({Of2("t2[i]"), "wt2[2 * ulong(i) + " + Element(2) + "]"});
      case 4:
        return Of4("t4[i]");
      case 5:
        return OfStruct("ts[i]");
      case 6:
        return OneOf({"m[" + Element(4) + "]", Of2("r[" + Element(2) + "]"),
                      Of4("o"), OfStruct("z"), "(&m[1])[" + Element(2) + "]",
                      "*((thread uint*)r + " + Element(4) + ")"});
      default:
        return "wh[4 * ulong(i) + " + Element(4) + "]";
    }
  }
  std::string Access(uint32_t memory) {
    const std::string own = Own();
    constexpr uint32_t kFloats = 7;
    if (memory == kFloats || (Below(6) == 0 && (memory == 2 || memory == 5))) {
      std::string place = OneOf({Of4("h[i]"), Of4("h[i]"), Place(kFloats)});
      if (memory != kFloats) {
        place = (memory == 2 ? "s[i]" : "ts[i]") + OneOf({".c", ".d"});
      }
      const bool is_bits = place[0] == 'w';
      if (Below(2) == 0) {
        return own + " = Stir(" + own + " + uint(" +
               (is_bits ? place : "float(" + place + ")") + "));";
      }
      const std::string type = is_bits                          ? "ushort"
                               : place.find(".d") != place.npos ? "half"
                                                                : "bfloat";
      return place + " = " + type + "(" + (is_bits ? "0x4000 + uint" : "") +
             "(Small(" + own + ")));";
    }
    const std::string place = Place(memory);
    switch (Below(9)) {
      case 0:
        return place + " += " + own + ";";
      case 1:
        return place + " = " + Place(memory) + ";";
      case 2:
      case 3:
      case 4:
        return place + " = Stir(" + own + " + " + Number(9) + ");";
      case 5:
        if (memory == 0) return "q2[i] = q2[i].yx;";
        if (memory == 1) return "q4[i].zw = uint2(" + own + ", q4[i].x);";
        if (memory == 2) return "z = s[i];";
        if (memory == 5) return "z.v.y = " + own + "; ts[i] = z;";
        [[fallthrough]];
      default:
        return own + " = Stir(" + Own() + " ^ " + place + ");";
    }
  }
  std::string Accesses() {
    std::string text = " ";
    const uint32_t memory = Below(8);
    for (uint32_t n = 2 + Below(5); n > 0; --n) {
      text += " " + Access(Below(8) == 0 ? Below(8) : memory);
    }
    return text + "\n";
  }

  // Returns random statements. `all` is true if all threads of a threadgroup
  // reach them.
  std::string Statements(int depth, bool all) {
    std::string text;
    for (uint32_t n = 2 + Below(4); n > 0 && left_ > 0; --n, --left_) {
      text += Statement(depth, all);
    }
    return text;
  }
  std::string Block(int depth, bool all) {
    return "{\n" + Statements(depth - 1, all) + "  }\n";
  }
  std::string Exchange(const std::string& take) {
    return "  x[i] = " + Own() + ";\n  MEET;\n  " + take + "\n  MEET;\n";
  }
  std::string Statement(int depth, bool all) {
    const std::string own = Own(), loop = "k" + std::to_string(loops_++);
    switch (all && Below(3) == 0 ? 7 : Below(all ? 21 : 12)) {
      case 0:
        return "  " + own + " = Mix(" + Own() + ", " + Own() + " + " +
               Number(9) + ");\n";
      case 1:
        return "  m[" + Own() + " % 4] = " + Own() + "; " + own + " ^= m[" +
               Own() + " % 4];\n";
      case 2:
        return "  f = f * 0.5f + float(" + own + " % 100);\n";
      case 3:
        return "  " + own + " += u + uint(f);\n";
      case 4:
      case 5:
        if (depth == 0) return "";
        return "  if (" + own + " % 3 == u % " + std::to_string(2 + Below(3)) +
               ") " + Block(depth, false) +
               (Below(2) == 0 ? "" : "  else " + Block(depth, false));
      case 6:
        if (depth == 0) return "";
        return "  for (uint " + loop + " = 0; " + loop + " < " + own +
               " % 4; ++" + loop + ") " + Block(depth, false);
      case 7:
      case 8:
      case 9:
      case 10:
      case 11:
        // The accesses stand alone. If a MEET follows, no other accesses lie
        // between two meetings.
        return Accesses() + (all && Below(4) != 0 ? "  MEET;\n" : "");
      case 12:
        return Exchange(own + " = Mix(" + own + ", x[(i + " + Number(64) +
                        ") % 64]);");
      case 13:
        return Exchange(own + " = Mix(" + own + ", " +
                        OneOf({Of2("q2[63 - i]"), Of4("q4[63 - i]"),
                               OfStruct("ts[63 - i]"), Of2("t2[63 - i]")}) +
                        ");");
      case 14:
        return Exchange("u += x[" + Number(64) + "] % 3;");
      case 15:
        return "  u = u * " + Number(5) + " + 1;\n";
      case 16:
        return "  " + own + " += simd_sum(" + Own() + " % 50) + " +
               "simd_shuffle_xor(" + Own() + ", " + Number(32) +
               ") + quad_max(" + Own() + ");\n";
      case 17:
      case 18:
        if (depth == 0) return "";
        return "  if ((u + " + Number(5) + ") % 3 == 0) " + Block(depth, true) +
               (Below(2) == 0 ? "" : "  else " + Block(depth, true));
      case 19:
        if (depth == 0) return "";
        return "  for (uint " + loop + " = 0; " + loop + " < u % 4; ++" + loop +
               ") {\n" + Statements(depth - 1, true) + "  if ((u + " + loop +
               ") % 5 == 0) " + (Below(2) == 0 ? "break" : "continue") + ";\n" +
               Statements(depth - 1, true) + "  }\n";
      default:
        if (depth == 0) return "";
        return "  switch (u % 4) {\n  case 0: " + Block(depth, true) +
               (Below(2) == 0 ? "  break;\n" : "") +
               "  case 2: " + Block(depth, true) +
               "  break;\n  default: " + Block(depth, true) + "  }\n";
    }
  }

  std::mt19937 random_;
  int loops_ = 0, left_ = 0;
};

uint32_t FromEnvironment(const char* name, uint32_t otherwise) {
  const char* const given = std::getenv(name);
  return given == nullptr
             ? otherwise
             : static_cast<uint32_t>(std::strtoul(given, nullptr, 10));
}

// The environment variable SWITCHYARD_REGIONS_SEED selects other kernels, and
// SWITCHYARD_REGIONS_KERNELS sets their number.
TEST(Regions, AreRightInRandomKernels) {
  SWITCHYARD_NEEDS_CLANG();
  const uint32_t first = FromEnvironment("SWITCHYARD_REGIONS_SEED", 1);
  const uint32_t count = FromEnvironment("SWITCHYARD_REGIONS_KERNELS", 8);
  // The number of kernels in one text.
  const uint32_t each = std::min<uint32_t>(count, 32);
  size_t compared = 0, cuts = 0;
  for (uint32_t seed = first; compared < count; ++seed) {
    Writer writer(seed);
    std::string text = Writer::Head();
    for (uint32_t k = 0; k < each; ++k) {
      text += writer.Kernel("k" + std::to_string(k));
    }
    const TempFolder cache;
    metal::CompileRequest request;
    request.source = text;
    request.cache = cache.path();
    cuts += metal::Compile(request).kernels_cut;
    Runner cut(false, text, cache.path()), uncut(true, text, cache.path());
    for (uint32_t k = 0; k < each; ++k, ++compared) {
      const std::string name = "k" + std::to_string(k);
      // EXPECT_EQ would print thousands of words.
      EXPECT_TRUE(cut(name, {32, 8, 1}, {8, 8, 1}) ==
                  uncut(name, {32, 8, 1}, {8, 8, 1}))
          << "seed " << seed << ", " << name << " of\n"
          << text;
    }
  }
  // Some kernels cannot be cut, because Clang may merge paths across
  // branches.
  EXPECT_GE(cuts, compared * 3 / 4);
  std::printf("%zu kernels from seed %u, %zu cut\n", compared, first, cuts);
}

}  // namespace
}  // namespace switchyard::testing_support
