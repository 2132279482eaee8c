// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests that checked modules report every access
// (device/src/metal/accesses.h).

#include <stdexcept>
#include <string>
#include <utility>

#include "device/src/metal/accesses.h"
#include "device/src/metal/compile.h"
#include "device/tests/metal_text.h"
#include "gtest/gtest.h"
#include "tests/run_program.h"

namespace switchyard::device::metal {
namespace {

using testing_support::MetalPath;
using testing_support::TempFolder;

// Returns the text of an LLVM module with two functions: one of the shader,
// which consists of `body`, and one of the shim.
std::string Module(const std::string& body) {
  return "@table = internal constant [2 x i32] [i32 1, i32 2]\n"
         "@sum = internal global i32 0\n"
         "define void @k(i8* %0) #1 {\n" +
         body +
         "  ret void\n}\n"
         "define void @shim(i32* %0) #0 {\n"
         "  store i32 1, i32* %0, align 4\n"
         "  ret void\n}\n"
         "attributes #0 = { nounwind }\n"
         "attributes #1 = { nounwind sanitize_thread uwtable }\n";
}

TEST(MetalAccesses, GetTheCallThatClangHasLeftOut) {
  const std::pair<const char*, const char*> cases[] = {
      {"  %2 = load <4 x i64>, <4 x i64>* %1, align 8, !dbg !7\n",
       "  %swy.access.0 = bitcast <4 x i64>* %1 to i8*, !dbg !7\n"
       "  call void @__tsan_read_range(i8* %swy.access.0, i64 32), !dbg !7\n"},
      {"  store volatile <3 x i64> <i64 1, i64 2, i64 3>, <3 x i64>* %1\n",
       "  %swy.access.0 = bitcast <3 x i64>* %1 to i8*\n"
       "  call void @__tsan_write_range(i8* %swy.access.0, i64 24)\n"},
      {"  store i40 %2, ptr %1, align 4, !tbaa !3\n",
       "  call void @__tsan_write_range(ptr %1, i64 5)\n"},
      {"  %2 = load <4 x i64>, ptr %1, align 4\n",
       "  call void @__tsan_read_range(ptr %1, i64 32)\n"},
      {"  %2 = load { i32, %\"a, b\" }, ptr %1\n",
       "  call void @__tsan_read_range(ptr %1, i64 ptrtoint (ptr "
       "getelementptr ({ i32, %\"a, b\" }, ptr null, i64 1) to i64))\n"},
      {"  store i24 1, i24* bitcast (i32* @sum to i24*)\n",
       "  %swy.access.0 = bitcast i24* bitcast (i32* @sum to i24*) to i8*\n"
       "  call void @__tsan_write_range(i8* %swy.access.0, i64 3)\n"},
      {"  store void (i32)* @f, void (i32)** %1, align 8\n",
       "  %swy.access.0 = bitcast void (i32)** %1 to i8*\n"
       "  call void @__tsan_write_range(i8* %swy.access.0, i64 8)\n"},
      // Clang normally adds the call for an access of 4 bytes. Here it is
      // missing, so InstrumentRest() adds it.
      {"  %2 = load float, float* %1, align 4\n",
       "  %swy.access.0 = bitcast float* %1 to i8*\n"
       "  call void @__tsan_read_range(i8* %swy.access.0, i64 4)\n"},
  };
  for (const auto& [access, call] : cases) {
    std::string text = Module(access);
    EXPECT_THROW(CountAccesses(text), std::runtime_error) << access;
    const Accesses counts = InstrumentRest(text);
    EXPECT_EQ(text, Module(std::string(call) + access));
    EXPECT_EQ(counts.all, 1u) << access;
    EXPECT_EQ(counts.added, 1u) << access;
    const Accesses after = CountAccesses(text);
    EXPECT_EQ(after.by_clang, 1u) << access;
  }
}

TEST(MetalAccesses, StayAsTheyAreIfTheyHaveACallOrNeedNone) {
  const struct {
    const char* text;
    bool has_call;
  } cases[] = {
      {"  %2 = bitcast float* %1 to i8*\n"
       "  call void @__tsan_read4(i8* %2), !dbg !7\n"
       "  call void @llvm.dbg.value(metadata i32 0, metadata !1)\n"
       "  %3 = load float, float* %1, align 4\n",
       true},
      {"  call void @__tsan_unaligned_write16(ptr %1)\n"
       "  store <4 x float> %2, ptr %1, align 4\n",
       true},
      {"  call void @__tsan_write4(i8* bitcast (i32* @sum to i8*))\n"
       "  store i32 1, i32* @sum, align 4\n",
       true},
      {"  %2 = alloca [8 x i40], align 8\n"
       "  %3 = getelementptr inbounds [8 x i40], [8 x i40]* %2, i64 0, i64 1\n"
       "  store i40 1, i40* %3, align 8\n",
       false},
      {"  %2 = load i32, i32* getelementptr inbounds ([2 x i32], [2 x i32]* "
       "@table, i64 0, i64 1), align 4\n",
       false},
  };
  for (const auto& c : cases) {
    std::string text = Module(c.text);
    const Accesses counts = InstrumentRest(text);
    EXPECT_EQ(text, Module(c.text));
    EXPECT_EQ(counts.by_clang, c.has_call ? 1u : 0u) << c.text;
    EXPECT_EQ(counts.need_none, c.has_call ? 0u : 1u) << c.text;
  }
}

// Clang's call before an access implies an alignment: the size of the type,
// but at most 8 bytes. If the access needs a larger alignment, another call
// reports that alignment. InstrumentRest() also lowers the alignment of the
// access to 8 bytes, so that the access cannot fault.
TEST(MetalAccesses, TellWhatTheirTypesAreAlignedTo) {
  const std::string call = "  call void @__tsan_read16(ptr %1)\n",
                    aligned = "  call void @__tsan_aligned(ptr %1, i64 16)\n",
                    load = "  %2 = load <4 x float>, ptr %1, align ",
                    element = "  call void @__tsan_read4(ptr %1)\n",
                    scalar = "  %2 = load float, ptr %1, align ";
  const std::pair<std::string, std::string> cases[] = {
      {call + load + "16, !dbg !3\n",
       call + "  call void @__tsan_aligned(ptr %1, i64 16), !dbg !3\n" + load +
           "8, !dbg !3\n"},
      {call + load + "4\n", call + load + "4\n"},
      {element + scalar + "16\n", element + aligned + scalar + "8\n"},
      {element + scalar + "4\n", element + scalar + "4\n"},
      {"  call void @llvm.memcpy.p0.p0.i64(ptr align 32 %1, ptr nonnull align "
       "16 dereferenceable(16) %2, i64 %3, i1 false), !dbg !3\n",
       "  call void @__tsan_aligned(ptr %2, i64 16), !dbg !3\n"
       "  call void @__tsan_read_range(ptr %2, i64 %3), !dbg !3\n"
       "  call void @__tsan_aligned(ptr %1, i64 32), !dbg !3\n"
       "  call void @__tsan_write_range(ptr %1, i64 %3), !dbg !3\n"
       "  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %1, ptr nonnull align 8 "
       "dereferenceable(16) %2, i64 %3, i1 false), !dbg !3\n"},
      {"  call void @llvm.memset.p0i8.i64(i8* align 4 %1, i8 0, i64 12, i1 "
       "false)\n",
       "  call void @__tsan_aligned(i8* %1, i64 4)\n"
       "  call void @__tsan_write_range(i8* %1, i64 12)\n"
       "  call void @llvm.memset.p0i8.i64(i8* align 4 %1, i8 0, i64 12, i1 "
       "false)\n"},
      // A constant expression contains blanks.
      {"  call void @llvm.memcpy.p0i8.p0i8.i64(i8* align 8 %1, i8* noundef "
       "nonnull align 16 dereferenceable(8) bitcast ([2 x i32]* @table to "
       "i8*), i64 8, i1 false)\n",
       "  call void @__tsan_aligned(i8* %1, i64 8)\n"
       "  call void @__tsan_write_range(i8* %1, i64 8)\n"
       "  call void @llvm.memcpy.p0i8.p0i8.i64(i8* align 8 %1, i8* noundef "
       "nonnull align 8 dereferenceable(8) bitcast ([2 x i32]* @table to "
       "i8*), i64 8, i1 false)\n"},
      {"  call void @llvm.memcpy.p0i8.p0i8.i64(i8* %1, i8* align 4 "
       "bitcast (i32* @sum to i8*), i64 4, i1 false)\n",
       "  call void @__tsan_aligned(i8* bitcast (i32* @sum to i8*), i64 4)\n"
       "  call void @__tsan_read_range(i8* bitcast (i32* @sum to i8*), i64 "
       "4)\n"
       "  call void @__tsan_write_range(i8* %1, i64 4)\n"
       "  call void @llvm.memcpy.p0i8.p0i8.i64(i8* %1, i8* align 4 "
       "bitcast (i32* @sum to i8*), i64 4, i1 false)\n"},
  };
  for (const auto& [before, after] : cases) {
    std::string text = Module(before);
    InstrumentRest(text);
    EXPECT_EQ(text, Module(after));
  }
  // The access also needs a call that reports it; the call for the alignment
  // is not enough.
  EXPECT_THROW(CountAccesses(Module(aligned + scalar + "4\n")),
               std::runtime_error);
  // Code of the shim must not fault either, so its alignments are lowered,
  // too.
  const std::string shim =
      "define void @s(ptr %0) #0 {\n  store i64 1, ptr %0, ";
  std::string text = shim + "align 16\n}\n";
  InstrumentRest(text);
  EXPECT_EQ(text, shim + "align 8\n}\n");
}

TEST(MetalAccesses, HavePlacesInTheShader) {
  const std::string places =
      "!1 = !DIFile(filename: \"/c/shim-0123456789abcdef/metal_types\", "
      "directory: \"\")\n"
      "!2 = !DIFile(filename: \"k.metal\", directory: \"/\")\n"
      "!3 = distinct !DISubprogram(name: \"copy\", scope: !1, file: !1)\n"
      "!4 = distinct !DISubprogram(name: \"k\", scope: !2, file: !2)\n"
      "!5 = distinct !DILexicalBlock(scope: !3, file: !1, line: 1)\n"
      "!6 = !DILocation(line: 1, column: 1, scope: !5, inlinedAt: !7)\n"
      "!7 = distinct !DILocation(line: 2, scope: !3, inlinedAt: !8)\n"
      "!8 = distinct !DILocation(line: 3, scope: !4)\n";
  const std::string access = "  %2 = load i40, ptr %1, !dbg !",
                    call = "  call void @__tsan_read_range(ptr %1, i64 5)";
  std::string text = Module(access + "6\n") + places;
  InstrumentRest(text);
  EXPECT_EQ(text, Module(call + ", !dbg !8\n" + access + "6\n") + places);
  text = Module(call + ", !dbg !6\n" + access + "6\n") + places;
  InstrumentRest(text);
  EXPECT_EQ(text, Module(call + ", !dbg !8\n" + access + "6\n") + places);
}

TEST(MetalAccesses, AreRefusedIfNobodyWouldSeeThem) {
  for (const char* const text : {
           // Here the call has another address, or does not stand directly
           // before the access.
           "  call void @__tsan_read4(ptr %10)\n  %2 = load float, ptr %1\n",
           "  call void @__tsan_read4(ptr %1)\n  %3 = add i32 1, 1\n"
           "  %2 = load float, ptr %1\n",
           // Here a constant is written, and a variable is read.
           "  store i32 1, i32* getelementptr ([2 x i32], [2 x i32]* @table, "
           "i64 0, i64 1)\n",
           "  %2 = load i32, ptr @sum\n",
       }) {
    EXPECT_THROW(CountAccesses(Module(text)), std::runtime_error) << text;
  }
  for (const char* const text : {
           "  %2 = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %1)\n",
           "  %2 = atomicrmw add ptr %1, i32 1 monotonic\n",
       }) {
    std::string module = Module(text);
    EXPECT_THROW(InstrumentRest(module), std::runtime_error) << text;
  }
}

// Compiles modules. A module with an access that is not reported would not
// compile.
TEST(MetalAccesses, AreSeenInAllOfEachModule) {
  SWITCHYARD_NEEDS_CLANG();
  const TempFolder cache;
  for (const char* const name :
       {"races_threadgroup", "vectors", "address_spaces", "atomics"}) {
    CompileRequest request;
    request.path = MetalPath(name);
    request.checked = true;
    request.cache = cache.path();
    const Accesses counts = Compile(request).accesses;
    EXPECT_GT(counts.all, 40u) << name;
    EXPECT_EQ(counts.all, counts.by_clang + counts.added + counts.need_none)
        << name;
    const bool has_wide = name == std::string("races_threadgroup");
    EXPECT_GE(counts.added, has_wide ? 1u : 0u) << name;
  }
}

// Clang copies constant tables to private memory. The instructions that copy
// a table name it in a constant expression.
TEST(MetalAccesses, AreSeenInCopiesOfTables) {
  SWITCHYARD_NEEDS_CLANG();
  const TempFolder cache;
  CompileRequest request;
  request.source =
      "struct Row { float4 at[4]; };\n"
      "constant Row row = {{float4(1), float4(2), float4(3), float4(4)}};\n"
      "kernel void k(device float* out, device Row* rows,\n"
      "              uint i [[thread_position_in_grid]]) {\n"
      "  float table[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};\n"
      "  for (uint k = 0; k < 16; ++k) table[k] += out[k];\n"
      "  out[i] = table[i % 16];\n"
      "  rows[i] = row;\n"
      "}\n";
  request.checked = true;
  request.cache = cache.path();
  const Accesses counts = Compile(request).accesses;
  EXPECT_GE(counts.need_none, 1u);  // the reads of the tables
  EXPECT_EQ(counts.all, counts.by_clang + counts.added + counts.need_none);
}

}  // namespace
}  // namespace switchyard::device::metal
