// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests line tables, which map code addresses to source lines. Clang compiles
// the objects here; some tests damage them.

#include "device/src/metal/line_table.h"

#include <dlfcn.h>
#include <elf.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "device/tests/needs_clang.h"
#include "gtest/gtest.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

using device::Place;
using device::metal::AllowComments;
using device::metal::LineTable;
using device::metal::ModulePlaces;

// Code after a #line belongs to that line. Each exported function calls
// note(), and returns the return address of this call.
constexpr char kSource[] =
    "#define EXPORT extern \"C\" __attribute__((visibility(\"default\")))\n"
    "static const void* volatile at;\n"
    "__attribute__((noinline)) static void note() {\n"
    "  at = __builtin_return_address(0);\n"
    "\n"
    "}\n"
    "extern \"C\" __attribute__((visibility(\"hidden\")))\n"
    "const void* left_out() { note(); return 0; }\n"
    "# 12 \"shaders/first.metal\"\n"
    "EXPORT const void* first() {\n"
    "  note();\n"
    "  return at;\n"
    "}\n"
    "# 100000 \"/abs/second.metal\"\n"
    "template <class T> __attribute__((noinline)) T Twice(T x) {\n"
    "  x = x * 2; note();\n"
    "  return x;\n"
    "}\n"
    "EXPORT const void* second() { Twice(1.0f); return at; }\n"
    "EXPORT const void* third() {\n"
    "  note(); const void* const a = at;         note();\n"
    "  return (char*)at > (char*)a ? at : 0;\n"
    "}\n";

struct Object {
  TempFolder folder;
  std::string path = folder.File("module.so");
  std::vector<unsigned char> bytes;

  // Compiles kSource with Clang and these options. Returns false on failure.
  bool Make(const std::string& options) {
    std::ofstream(folder.File("source.cc")) << kSource;
    const std::string command =
        "cd '" + folder.File("") + "' && " + FindClang() +
        " -x c++ -std=c++17 -O2 " + options +
        " -fPIC -w -ffunction-sections -c source.cc -o module.o && " +
        FindClang() + " -shared -Wl,--gc-sections module.o -o module.so";
    if (std::system(command.c_str()) != 0) return false;
    const std::string text = ReadFile(path);
    bytes.assign(text.begin(), text.end());
    return true;
  }
};

// Calls the function in the loaded module. Returns the source line at which
// it calls note().
std::string PlaceIn(const Object& object, const char* function) {
  void* const module = dlopen(object.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return dlerror();
  using Function = const void* (*)();
  const Function f = reinterpret_cast<Function>(dlsym(module, function));
  Dl_info info = {};
  dladdr(reinterpret_cast<const void*>(f), &info);
  const ModulePlaces places(object.path, info.dli_fbase,
                            std::make_shared<AllowComments>());
  const std::string place = places.PlaceOf(f()).text();
  EXPECT_EQ(places.PlaceOf(nullptr).text(), "");
  dlclose(module);
  return place;
}

TEST(DeviceLineTable, FindsWhatClangHasCompiled) {
  SWITCHYARD_NEEDS_CLANG();
  for (const char* const options :
       {"-g1 -gdwarf-4", "-g -gdwarf-4", "-g1 -gdwarf-3", "-g1 -gdwarf-2"}) {
    SCOPED_TRACE(options);
    Object object;
    ASSERT_TRUE(object.Make(options));
    EXPECT_EQ(PlaceIn(object, "first"), "shaders/first.metal:13:3");
    EXPECT_EQ(PlaceIn(object, "second"), "/abs/second.metal:100001:14");
    EXPECT_EQ(PlaceIn(object, "third"), "/abs/second.metal:100006:45");
    LineTable table;
    EXPECT_EQ(table.ReadFile(object.path), "");
    EXPECT_FALSE(table.empty());
    // Addresses below 16 contain no code.
    for (uint64_t address = 0; address < 16; ++address) {
      EXPECT_EQ(table.Find(address).text(), "");
    }
    EXPECT_EQ(table.Find(UINT64_MAX).text(), "");
  }
}

TEST(DeviceLineTable, SaysWhyThereIsNone) {
  LineTable table;
  EXPECT_EQ(table.ReadFile("/does/not/exist"), "cannot be read");
  EXPECT_EQ(table.Read(nullptr, 0), "too short for an ELF file");
  std::vector<unsigned char> zeros(4096);
  EXPECT_EQ(table.Read(zeros.data(), zeros.size()),
            "no 64-bit little-endian ELF file");
}

TEST(DeviceLineTable, SaysWhichVersionItDoesNotRead) {
  SWITCHYARD_NEEDS_CLANG();
  LineTable table;
  Object object;
  ASSERT_TRUE(object.Make("-g1 -gdwarf-5"));
  EXPECT_EQ(table.ReadFile(object.path), "its .debug_line has version 5");
  EXPECT_TRUE(table.empty());
  ASSERT_TRUE(object.Make("-g0"));
  EXPECT_EQ(PlaceIn(object, "first"), "");
}

// Truncates the file at many positions, and changes each byte of its headers
// and of .debug_line. Reading must give an error or a table, without accesses
// out of bounds.
TEST(DeviceLineTable, SurvivesBrokenFiles) {
  SWITCHYARD_NEEDS_CLANG();
  Object object;
  ASSERT_TRUE(object.Make("-g1 -gdwarf-4"));
  const std::vector<unsigned char>& whole = object.bytes;
  ASSERT_GT(whole.size(), sizeof(Elf64_Ehdr));
  const auto look = [](const std::vector<unsigned char>& bytes) {
    // A copy of exactly the needed size, so that sanitizers notice accesses
    // beyond it.
    const std::vector<unsigned char> exact(bytes);
    LineTable table;
    const std::string error = table.Read(exact.data(), exact.size());
    EXPECT_TRUE(error.empty() || table.empty());
    for (uint64_t address = 0; address < 0x5000; address += 0x33) {
      EXPECT_LE(table.Find(address).text().size(), exact.size() + 32);
    }
    return error;
  };
  EXPECT_EQ(look(whole), "");
  // The section headers are at the end of the file, so a truncated file
  // cannot be read.
  for (size_t size = 0; size < whole.size(); size += size < 128 ? 1 : 17) {
    EXPECT_NE(look({whole.begin(), whole.begin() + static_cast<long>(size)}),
              "")
        << size;
  }
  Elf64_Ehdr header;
  std::memcpy(&header, whole.data(), sizeof(header));
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), whole.data() + header.e_shoff,
              sections.size() * sizeof(Elf64_Shdr));
  const char* const names = reinterpret_cast<const char*>(whole.data()) +
                            sections[header.e_shstrndx].sh_offset;
  size_t errors = 0;
  const auto flip = [&](size_t begin, size_t length) {
    for (size_t at = begin; at < begin + length; ++at) {
      for (const unsigned bits : {0x01u, 0x80u, 0xFFu}) {
        std::vector<unsigned char> broken = whole;
        broken[at] = static_cast<unsigned char>(broken[at] ^ bits);
        errors += look(broken).empty() ? 0 : 1;
      }
    }
  };
  flip(0, sizeof(header));
  flip(header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : sections) {
    if (std::strcmp(names + section.sh_name, ".debug_line") == 0) {
      flip(section.sh_offset, section.sh_size);
    }
  }
  EXPECT_GT(errors, 50u);
}

}  // namespace
}  // namespace switchyard::testing_support
