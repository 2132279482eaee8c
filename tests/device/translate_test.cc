// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Translation of Metal's text before Clang sees it: words, attributes, methods
// and conditional expressions. No Clang is needed for any of that.

#include "src/device/metal/translate.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "tests/device/translate_text.h"

namespace switchyard::device::metal {
namespace {

TEST(Translate, ErasesAddressSpaces) {
  EXPECT_EQ(Translate("device int* f(thread int& a, threadgroup int* b);")
                .code.substr(0, 54),
            "       int* f(       int& a,             int* b);\n# 1 ");
  EXPECT_EQ(Translated("void f(volatile coherent(system) device int* a,\n"
                       "  device coherent int* b, int coherent);"),
            "void f(volatile int* a,\nint* b, int coherent);");
  EXPECT_EQ(Translated("auto p = (device float *) q;"),
            "auto p = ( float *) q;");
  EXPECT_EQ(Translated("auto p = reinterpret_cast<threadgroup T*>(q);"),
            "auto p = reinterpret_cast< T*>(q);");
}

TEST(Translate, MakesConstantConst) {
  EXPECT_EQ(Translated("constant float pi = 3.14f;"),
            "const float pi = 3.14f;");
  EXPECT_EQ(Translated("static constexpr constant int n = 3;"),
            "static constexpr int n = 3;");
  EXPECT_EQ(Translated("constant constexpr int n = 3;"),
            "constexpr int n = 3;");
  EXPECT_EQ(Translated("void f(constant T& a, const constant T* b);"),
            "void f(const T& a, const T* b);");
  EXPECT_EQ(Translated("void f(constant const T* b);"), "void f( const T* b);");
}

TEST(Translate, LeavesOtherWordsAlone) {
  for (const char* text :
       {"int device_count = thread_id + my_constant;", "int kernels, kernel;",
        "auto s = memory_scope_device;", "auto s = a.device + b->thread;",
        "auto s = \"device [[kernel]] constant\";",
        "// device constant\nint a; /* kernel\n thread */ int b;",
        "auto s = R\"x(device\n\"constant)x\";",
        "auto s = R\"(a\" device \")\";", "char c = 'd', d = '\\'';",
        "int a[b[0]]; int c = a[b[d[1]]];", "int x = 1'000 + 0x1p-3;"}) {
    EXPECT_EQ(Shader(Translate(text)), text);
  }
}

TEST(Translate, LeavesPragmasAndLineMarkersAlone) {
  const char kText[] =
      "# 1 \"a.metal\"\n#pragma METAL internals : enable\n"
      "#pragma METAL device constant \\\n thread\nint a;\n# 7 \"b.h\" 1\nint "
      "b;";
  EXPECT_EQ(Shader(Translate(kText)), kText);
}

TEST(Translate, ErasesUnrollCountsThatAreNoNumbers) {
  // A macro in a pragma is there after the preprocessor, and its #define not.
  EXPECT_EQ(Translated("#pragma unroll(MIN(4, N))\n#pragma unroll (8)\n"
                       "#pragma clang loop unroll_count(N)\n"
                       "#pragma clang loop unroll(full)\n#pragma unroll\n"),
            "#pragma unroll\n#pragma unroll (8)\n\n"
            "#pragma clang loop unroll(full)\n#pragma unroll\n");
}

TEST(Translate, LeavesTheShimAlone) {
  const char kText[] =
      "# 1 \"shim\" 1 3\n#define x\nint constant; kernel void f() { {\n"
      "# 2 \"a.metal\" 2\nint a;";
  const Translation translation = Translate(kText);
  EXPECT_EQ(Shader(translation), kText);
  EXPECT_TRUE(translation.kernels.empty());
}

TEST(Translate, ErasesMetalsAttributesAndNotClangs) {
  EXPECT_EQ(Translated("[[stitchable]] [[visible]] float f(float x);"),
            "float f(float x);");
  EXPECT_EQ(Translated("visible float f(float x);"), "float f(float x);");
  EXPECT_EQ(Translated("struct A { int x [[ id(0) ]]; };"),
            "struct A { int x ; };");
  for (const char* text :
       {"[[maybe_unused]] int a;", "[[clang::always_inline]] void f();"}) {
    EXPECT_EQ(Shader(Translate(text)), text);
  }
}

// Methods ---------------------------------------------------------------------

TEST(Translate, TakesMethodsOnceForAllAddressSpaces) {
  EXPECT_EQ(Translated("struct A {\n"
                       "  A(int x) thread : x_(x) {}\n"
                       "  A(int x) constant : x_(x) {}\n"
                       "  A(int x) threadgroup : x_(x) {}\n"
                       "  int Get() const thread { return x_; }\n"
                       "  int Get() const device { return x_; }\n"
                       "  int Get() constant { return x_; }\n"
                       "  operator bool() const threadgroup { return true; }\n"
                       "  int operator()(int y) thread { return y; }\n"
                       "  int operator()(int z) device { return z; }\n"
                       "};"),
            "struct A {\n"
            "A(int x) : x_(x) {}\n"
            "\n"
            "\n"
            "int Get() const { return x_; }\n"
            "\n"
            "\n"
            "operator bool() const { return true; }\n"
            "int operator()(int y) { return y; }\n"
            "\n"
            "};");
  // The method is const if the object is constant.
  EXPECT_EQ(Translated("struct A { int Get() constant; };"),
            "struct A { int Get() const ; };");
}

TEST(Translate, TakesFunctionsOnceForAllAddressSpaces) {
  EXPECT_EQ(
      Translated("template <typename T> T f(device T* x, int n = 2) {\n"
                 "  return x[n]; }\n"
                 "template <typename U> U f(threadgroup U* y, int m = 2) {\n"
                 "  return y[m]; }\n"
                 "int f(int n) { return n; }"),
      "template <typename T> T f( T* x, int n = 2) {\n"
      "return x[n]; }\n"
      "\n"
      "\n"
      "int f(int n) { return n; }");
  // A method that constant makes const is another function.
  const char kOverloads[] =
      "int f(device int* x) { return 1; }\nint f(constant int* x) { return 2; "
      "}";
  EXPECT_TRUE(Translate(kOverloads).error.empty());
  EXPECT_TRUE(
      Contains(Translated(kOverloads), "f(const int* x) { return 2; }"));
}

TEST(Translate, TakesSpecializationsOnceForAllAddressSpaces) {
  EXPECT_EQ(
      Translated("template <class T> struct P<device T*> { using type = T; };\n"
                 "template <class U> struct P<thread U*> { using type = U; };\n"
                 "template <> struct P<device int*> {};\n"
                 "template <> struct P<thread int*> {};"),
      "template <class T> struct P< T*> { using type = T; };\n\n"
      "template <> struct P< int*> {};\n");
}

// The thread's is taken, or the first: there is a note of it.
TEST(Translate, TakesOneOfFunctionsThatOnlyAddressSpacesTellApart) {
  const auto translate = [](const std::string& first,
                            const std::string& second) {
    const Translation translation = Translate(
        "# 1 \"a.metal\"\nint f(" + first + " int* x) { return 1; }\n  int f(" +
        second + " int* x) { return 2; }\n");
    EXPECT_TRUE(translation.error.empty()) << translation.error;
    EXPECT_EQ(translation.unsupported.size(), 1u);
    for (const Unsupported& u : translation.unsupported) {
      EXPECT_EQ(u.kernel, "");
      EXPECT_EQ(u.line, 2u);
      EXPECT_NE(u.what.find("'f' and an earlier one differ by address space, "
                            "and do different things: th"),
                std::string::npos)
          << u.what;
    }
    return Squeeze(Shader(translation));
  };
  const std::string head = "# 1 \"a.metal\"\n",
                    first = head + "int f( int* x) { return 1; }\n\n",
                    second = head + "\nint f( int* x) { return 2; }\n";
  EXPECT_EQ(translate("device", "threadgroup"), first);
  EXPECT_EQ(translate("device", "thread"), second);
  EXPECT_EQ(translate("thread", "device"), first);
}

TEST(Translate, TakesVectorsOfHalfByAttribute) {
  EXPECT_EQ(Translated("typedef half half8 __attribute__((ext_vector_type(8)));"
                       "typedef __attribute__((__ext_vector_type__(N + 1))) "
                       "bfloat b;"
                       "using h2 __attribute__((ext_vector_type(2))) = half;"
                       "typedef float f8 __attribute__((ext_vector_type(8)));"),
            "typedef ::metal::vec<half, (8)> half8 ;"
            "typedef ::metal::vec<bfloat, (N + 1)> b;"
            "using h2 = ::metal::vec<half, (2)>;"
            "typedef float f8 __attribute__((ext_vector_type(8)));");
}

TEST(Translate, LeavesOutKernelsThatNobodyHasAskedFor) {
  const std::string text =
      "# 1 \"a.metal\"\n"
      "template <class T> kernel void k(device T* x [[buffer(0)]]) {}\n"
      "template [[host_name(\"kf\")]] kernel void k<float>(device float*);\n"
      "template [[host_name(\"ki\")]] kernel void k<int>(device int*);\n"
      "kernel void a(device int* x [[buffer(0)]]) {}\n"
      "kernel void b(device int* x [[buffer(0)]]) {}\n";
  const Translation some = Translate(text, {"ki", "b"});
  ASSERT_EQ(some.kernels.size(), 2u);
  EXPECT_EQ(some.kernels[0].name, "ki");
  EXPECT_EQ(some.kernels[1].name, "b");
  EXPECT_EQ(some.not_asked_for, (std::vector<std::string>{"kf", "a"}));
  EXPECT_EQ(some.code.find("k<float>"), std::string::npos);
  EXPECT_NE(some.code.find("k<int>"), std::string::npos);
  EXPECT_EQ(Translate(text).kernels.size(), 4u);
}

TEST(Translate, LeavesWrongRedefinitionsToClang) {
  for (const char* text : {"int f(device int* x) { return 1; }\n"
                           "int f(device int* x) { return 2; }",
                           "struct A {}; struct A {};"}) {
    const Translation translation = Translate(text);
    EXPECT_TRUE(translation.error.empty()) << translation.error;
    EXPECT_EQ(Squeeze(Shader(translation)).size(),
              Squeeze(text).size() - (text[0] == 'i' ? 12 : 0));
  }
}

// Conditional expressions -----------------------------------------------------

// The translated text, with E for Either and A for Arm().
std::string Marked(std::string_view text) {
  std::string code = Translated("half h;\n" + std::string(text));
  code.erase(0, code.find('\n') + 1);
  for (const auto& [word, letter] :
       {std::pair<const char*, const char*>("switchyard_metal::Either", "E"),
        {"switchyard_metal::Arm()", "A"}}) {
    for (size_t at; (at = code.find(word)) != code.npos;) {
      code.replace(at, std::string_view(word).size(), letter);
    }
  }
  return code;
}

TEST(Translate, ResolvesSwizzles) {
  EXPECT_EQ(Translated("void f() { v.xyz.xy = p->wzyx.yz.yx; v.zw.yyxx = b; }"),
            "void f() { v.xy = p->yz ; v. wwzz = b; }");
  EXPECT_EQ(Translated("void f() { s = v.rgb.x + a[v.xy.y].zyx .z; }"),
            "void f() { s = v.r + a[v.y ].x ; }");
  EXPECT_EQ(Translated("template <class T> T g(T a, T b) thread { return a; }\n"
                       "auto h = g(p->v[i].xy, (q).wz.xx) + g<U>(u(1).xy, 1);"),
            "template <class T> T g(T a, T b) { return a; }\n"
            "auto h = g(+p->v[i].xy, +(q).ww ) + g<U>(+u(1).xy, 1);");
  EXPECT_EQ(Translated("void f() { const auto a = v.xy; auto b = v.xy.y; }"),
            "void f() { const auto a = +v.xy; auto b = v.y ; }");
  for (const char* text :
       {"void f() { a = v.xy.z; b = v.xyz.length(); c = s.xr.x; }",
        "void f() { float4 a = v.xyzw; auto b = u + v.xy; auto& c = v.xy; }",
        "struct S { P xy; }; void f(S s) { s.xy.x = s.xy.xx; f(s.xy); }",
        "void f(int a) { if (v.xy) g(v.xy, float2(v.xy)); f(-v.xy); }"}) {
    EXPECT_EQ(Translated(text), text);
  }
}

TEST(Translate, MarksConditionalsForTheirType) {
  const char* const kCases[][2] = {
      {"x = a < b ? c : d + 1;", "x = E(a < b ? (c, A) : (d + 1, A));"},
      {"x += a ? c : 0;", "x += E(a ? (c, A) : 0);"},
      {"x <<= a ? 0x1bf : c;", "x <<= E(a ? 0x1bf : (c, A));"},
      {"x = a ? b = 1 : c;", "x = E(a ? (b = 1, A) : (c, A));"},
      {"x = a ? nullptr : c;", "x = E(a ? nullptr : (c, A));"},
      {"x = a ? 1.0h : 0;", "x = E(a ? (1.0h, A) : 0);"},
      {"return a == b ? c : d;", "return E(a == b ? (c, A) : (d, A));"},
      {"f(1, a ? b : c, d);", "f(1, E(a ? (b, A) : (c, A)), d);"},
      {"x = (a ? b : c) + d;", "x = (E(a ? (b, A) : (c, A))) + d;"},
      {"x = a ? b : c ? d : e;",
       "x = E(a ? (b, A) : (E(c ? (d, A) : (e, A)), A));"},
      {"x = a ? b ? c : d : e;",
       "x = E(a ? (E(b ? (c, A) : (d, A)), A) : (e, A));"},
      {"x = a ? b : f(c ? d : e);",
       "x = E(a ? (b, A) : (f(E(c ? (d, A) : (e, A))), A));"},
      {"T x = {a ? b : c, d ? e : f};",
       "T x = {E(a ? (b, A) : (c, A)), E(d ? (e, A) : (f, A))};"},
      {"x = a ? f<int>(b) : vec<T, 2>::c;",
       "x = E(a ? (f<int>(b), A) : (vec<T, 2>::c, A));"},
      {"for (int i = a ? b : c; i < (d ? e : f); ++i) {}",
       "for (int i = E(a ? (b, A) : (c, A)); i < (E(d ? (e, A) : (f, A))); "
       "++i) {}"},
  };
  for (const auto& c : kCases) EXPECT_EQ(Marked(c[0]), c[1]);
}

TEST(Translate, LeavesOtherConditionalsAlone) {
  for (const char* text :
       {"x = a ? 1 : 2;", "int x[a ? b : c];", "x[(a ? b : c) * 2] = 1;",
        "a ? f() : g();", "switch (a) { case b ? 1 : c: default: x: f(); }",
        "for (auto x : y) {}", "struct A : B { int x : 3; A() : x(1) {} };",
        "f<(a ? b : c)> x;", "template <int N = a ? b : c> struct A {};",
        "x = a < b, c > d ? e : f;", "x = a ? [&] { return b; }() : c;"}) {
    EXPECT_EQ(Marked(text), text);
  }
  // Nothing has two meanings if there is no half.
  EXPECT_EQ(Translated("x = a ? b : c;"), "x = a ? b : c;");
}

}  // namespace
}  // namespace switchyard::device::metal
