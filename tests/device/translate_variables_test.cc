// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Threadgroup memory and program-scope constants, before Clang sees them.

#include <gtest/gtest.h>

#include <string>

#include "src/device/metal/translate.h"
#include "tests/device/translate_text.h"

namespace switchyard::device::metal {
namespace {

TEST(Translate, GivesThreadgroupVariablesOneMemory) {
  EXPECT_EQ(Translated("template <class T, int N> void f() {\n"
                       "  threadgroup T a[N][4], b;\n"
                       "  g();\n"
                       "}"),
            "template <class T, int N> void f() {\n"
            "struct SwyVariables0 { T a[N][4], b; }; "
            "auto& a = switchyard_metal::ThreadgroupVariable<"
            "decltype(SwyVariables0::a)>([] {}, \"a\"); "
            "auto& b = switchyard_metal::ThreadgroupVariable<"
            "decltype(SwyVariables0::b)>([] {}, \"b\");\n"
            "g();\n"
            "}");
}

TEST(Translate, FindsEveryFormOfThreadgroupVariable) {
  for (const char* text :
       {"threadgroup float a[4];", "threadgroup metal::array<float, 4> a;",
        "static threadgroup float a;", "float threadgroup a[2];",
        "threadgroup unsigned int a;", "threadgroup struct { int x; } a;",
        "volatile threadgroup int a;", "threadgroup typename T::type a[2];",
        "if (x) { threadgroup vec<T, 4> a[1]; }", "x: threadgroup int a;",
        "{ } threadgroup int a;"}) {
    const std::string code =
        Translated("void f() { " + std::string(text) + " }");
    EXPECT_TRUE(Contains(code, "auto& a = switchyard_metal::")) << code;
  }
}

TEST(Translate, KeepsTheAlignmentOfThreadgroupVariables) {
  for (const char* text :
       {"threadgroup alignas(16) half a[4];",
        "alignas(16) threadgroup half a[4];",
        "threadgroup half a[4] __attribute__((aligned(16)));",
        "threadgroup half a __attribute__((aligned(16)));"}) {
    const std::string code =
        Translated("void f() { " + std::string(text) + " }");
    EXPECT_TRUE(Contains(code, "ThreadgroupVariable<SwyVariables0>([] {}"))
        << code;
    EXPECT_TRUE(Contains(code, "auto& a = swy_variables_0.a;")) << code;
    EXPECT_TRUE(Contains(code, "16")) << code;
  }
}

TEST(Translate, LeavesPointersToThreadgroupMemoryAlone) {
  for (const char* text :
       {"threadgroup float* a = b;", "threadgroup float* a[4];",
        "threadgroup float& a = *b;", "threadgroup const T * a = x, * b = y;",
        "for (threadgroup T* a = b; a != c; ++a) {}",
        "auto a = static_cast<threadgroup T*>(b);", "g((threadgroup T*)a);",
        "typedef threadgroup float* P;", "threadgroup float (&a)[4] = b;",
        "g([](threadgroup T* x) { return x; });"}) {
    const Translation translation =
        Translate("void f() { " + std::string(text) + " }");
    EXPECT_FALSE(Contains(translation.code, "SwyVariables")) << text;
    EXPECT_FALSE(Contains(translation.code, "threadgroup ")) << text;
    EXPECT_TRUE(translation.unsupported.empty()) << text;
  }
}

TEST(Translate, SaysThatThreadgroupMemoryHasNoInitializer) {
  const Translation translation = Translate(
      "# 5 \"a.metal\"\nvoid f() {\n  threadgroup int a[2] = {1, 2};\n}");
  ASSERT_EQ(translation.unsupported.size(), 1u);
  EXPECT_EQ(translation.unsupported[0].line, 6u);
  EXPECT_EQ(translation.unsupported[0].column, 19u);
  EXPECT_TRUE(Contains(Squeeze(translation.code), "{ int a[2] ; };"));
  EXPECT_EQ(Translate("threadgroup int a;").unsupported.size(), 1u);
  EXPECT_TRUE(Translate("threadgroup int* f();").unsupported.empty());
}

// Constants -------------------------------------------------------------------

TEST(Translate, MakesFunctionConstantsVariables) {
  const Translation translation = Translate(
      "constant bool a [[function_constant(3)]];\n"
      "namespace n { constant uint32_t b [[function_constant((1 + 2) * 010)]], "
      "c [[function_constant(0x1f)]]; }\n"
      "int f() { return is_function_constant_defined(a) +\n"
      "  metal::is_function_constant_defined(n::b); }");
  EXPECT_EQ(Squeeze(Shader(translation)),
            "static bool a ; static bool swy_defined_a;\n"
            "namespace n { static uint32_t b , c ; static bool swy_defined_b; "
            "static bool swy_defined_c; }\n"
            "int f() { return swy_defined_a +\n"
            "n::swy_defined_b ; }");
  EXPECT_TRUE(Contains(translation.code,
                       "{\"a\", 3, \"bool\", &a, sizeof(a), &swy_defined_a},"));
  EXPECT_TRUE(Contains(translation.code,
                       "{\"b\", 24, \"uint\", &n::b, sizeof(n::b), "
                       "&n::swy_defined_b},"));
  EXPECT_TRUE(Contains(translation.code, "{\"c\", 31, \"uint\", &n::c"));
}

TEST(Translate, TakesFunctionConstantsOfEveryForm) {
  for (const char* text :
       {"constant int a [[function_constant(1)]];",
        "static constant constexpr const int a [[ function_constant(1) ]];",
        "constant metal::int32_t a [[function_constant(1)]];"}) {
    const Translation translation = Translate(text);
    EXPECT_TRUE(Contains(translation.code, "{\"a\", 1, \"int\", &a")) << text;
    EXPECT_FALSE(Contains(Shader(translation), "const")) << text;
  }
}

TEST(Translate, SetsUpWhatIsMadeOfFunctionConstants) {
  const Translation translation = Translate(
      "constant int a [[function_constant(0)]];\n"
      "constant int b = a * 2 +\n"
      "  1;\n"
      "namespace n { constant int c[2] = {b, 1}; }\n"
      "constant int d = 3;");
  EXPECT_EQ(Squeeze(Shader(translation)),
            "static int a ; static bool swy_defined_a;\n"
            "static int b ; __attribute__((noinline)) static void "
            "swy_set_up_0() { int swy_value = a * 2 "
            "+\n1; __builtin_memcpy(&b, &swy_value, sizeof(b)); }\n"
            "namespace n { static int c[2] ; __attribute__((noinline)) static "
            "void swy_set_up_1() { int "
            "swy_value[2] = {b, 1}; __builtin_memcpy(&c, &swy_value, "
            "sizeof(c)); } }\n"
            "const int d = 3;");
  EXPECT_TRUE(
      Contains(translation.code, "  swy_set_up_0();\n  n::swy_set_up_1();\n"));
  EXPECT_TRUE(Contains(translation.code, ", swy_set_up};"));
  EXPECT_TRUE(Contains(Translate("constant int d = 3;").code, ", nullptr};"));
}

TEST(Translate, SaysWhichConstantsItCannotSetUp) {
  for (const char* text :
       {"constant int b = a, c = 2;", "constant int b[] = {a};",
        "constant int b(a);", "struct S { static constant int b = a; };"}) {
    const Translation translation = Translate(
        "constant int a [[function_constant(0)]];\n" + std::string(text));
    ASSERT_EQ(translation.unsupported.size(), 1u) << text;
    EXPECT_EQ(translation.unsupported[0].line, 2u) << text;
  }
  EXPECT_EQ(
      Translate("constant int a [[function_constant(N)]];").unsupported.size(),
      1u);
}

TEST(Translate, DefinesConstantMembersInTheirClass) {
  EXPECT_EQ(Translated("struct A { static constant float x = 1.0f;\n"
                       "  static constexpr constant float y = 1.0f; };"),
            "struct A { inline static const float x = 1.0f;\n"
            "static constexpr float y = 1.0f; };");
}

}  // namespace
}  // namespace switchyard::device::metal
