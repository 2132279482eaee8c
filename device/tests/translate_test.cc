// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the translation of Metal's text: words, attributes, methods and
// conditional expressions. The tests look at the text before Clang sees it,
// so they need no Clang.

#include "device/src/metal/translate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "testing/inputs.h"

namespace switchyard::device::metal {
namespace {

// The next functions help to compare translated texts.
//
// Returns the text of the shader, without the table that the translation adds
// after it.
std::string Shader(const Translation& translation) {
  const size_t table = translation.code.find("\n# 1 \"<switchyard>\"\n");
  return translation.code.substr(0, table);
}

// Replaces each run of blanks by one blank, and removes blanks at the ends of
// lines.
std::string Squeeze(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == ' ' &&
        (result.empty() || result.back() == ' ' || result.back() == '\n')) {
      continue;
    }
    if (c == '\n' && !result.empty() && result.back() == ' ') result.pop_back();
    result += c;
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

std::string Translated(std::string_view text) {
  return Squeeze(Shader(Translate(text)));
}

bool Contains(std::string_view text, std::string_view what) {
  return text.find(what) != text.npos;
}

TEST(Translate, MakesLiteralsOfBfloat) {
  EXPECT_EQ(Translated("a = 1.5bf + 2BF - 0x1bf + .5h - 1e-3bf;"),
            "a = bfloat(1.5f ) + bfloat(2.f) - 0x1bf + .5h - bfloat(1e-3f );");
}

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
  // A preprocessed text still has macros in pragmas, but no longer their
  // #define, so the translation drops the macros.
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
  // The object is in constant memory, so the method becomes const.
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
  // `constant` becomes const, so these functions remain two overloads.
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

// If functions differ only in address spaces, the translation keeps the
// function for the thread address space, or else the first one, and adds a
// note.
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

// Returns the translated text, but with E for switchyard_metal::Either and A
// for switchyard_metal::Arm().
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
  // Without a half in the text, no expression is ambiguous.
  EXPECT_EQ(Translated("x = a ? b : c;"), "x = a ? b : c;");
}

// The next tests check how Translate() finds and describes kernels. They do
// not run Clang.

using switchyard_metal::Input;

TEST(Translate, DescribesKernels) {
  const Translation translation = Translate(
      "# 4 \"a.metal\"\n"
      "kernel void f(device const float * x [[buffer(1)]],\n"
      "    constant A& a, device int* y [[buffer(1 + 2)]], device int* z,\n"
      "    threadgroup half *t [[threadgroup(0)]], threadgroup int* u,\n"
      "    uint3 i [[thread_position_in_grid]],\n"
      "    ushort w [[ thread_execution_width ]]) {\n"
      "}\n");
  ASSERT_EQ(translation.kernels.size(), 1u);
  const TranslatedKernel& kernel = translation.kernels[0];
  EXPECT_EQ(kernel.name, "f");
  EXPECT_EQ(kernel.file, "a.metal");
  EXPECT_EQ(kernel.line, 4u);
  const struct {
    const char* name;
    Input input;
    uint32_t index;
    const char* text;
  } kExpected[] = {
      {"x", Input::kBuffer, 1, "device const float * x"},
      {"a", Input::kBuffer, 0, "constant A& a"},
      {"y", Input::kBuffer, 3, "device int* y"},
      {"z", Input::kBuffer, 2, "device int* z"},
      {"t", Input::kThreadgroup, 0, "threadgroup half *t"},
      {"u", Input::kThreadgroup, 1, "threadgroup int* u"},
      {"i", Input::kThreadPositionInGrid, 0, "uint3 i"},
      {"w", Input::kThreadsPerSimdgroup, 0, "ushort w"},
  };
  ASSERT_EQ(kernel.parameters.size(), std::size(kExpected));
  for (size_t i = 0; i < std::size(kExpected); ++i) {
    EXPECT_EQ(kernel.parameters[i].name, kExpected[i].name);
    EXPECT_EQ(kernel.parameters[i].input, kExpected[i].input) << i;
    EXPECT_EQ(kernel.parameters[i].index, kExpected[i].index) << i;
    EXPECT_EQ(kernel.parameters[i].text, kExpected[i].text);
  }
  const std::string& code = translation.code;
  EXPECT_TRUE(Contains(code, "} static constexpr auto swy_kernel_0 = &::f;\n"));
  EXPECT_TRUE(Contains(code,
                       "Describe<decltype(swy_kernel_0), 2>(\"y\", "
                       "switchyard_metal::Input::kBuffer, 3, \"device int* "
                       "y\"),\n"));
  EXPECT_TRUE(Contains(code,
                       "switchyard_metal::In<switchyard_metal::Input::"
                       "kThreadgroup, 1>, switchyard_metal::In<"
                       "switchyard_metal::Input::kThreadPositionInGrid, "
                       "0>"));
  EXPECT_TRUE(Contains(code, ">(swy_kernel_0, thread);\n"));
  EXPECT_TRUE(Contains(code,
                       "{\"f\", \"a.metal\", 4, swy_run_0, swy_parameters_0, "
                       "8, 0, &swy_cuts_0},"));
  EXPECT_TRUE(Contains(code, "&switchyard_metal::runtime, swy_kernels, 1, "));
}

TEST(Translate, KnowsTheIndicesThatShadersName) {
  const Translation translation = Translate(
      "enum Index { kA = 2, kB, kC = kB + 0x4, kD = unknown, kE };\n"
      "namespace n { enum class M : int { kF = 1 << 3 }; }\n"
      "constant constexpr int kG = (kC - 1) * 2;\n"
      "struct A { enum { kH = 5 }; }; struct B { enum { kI = 1 }; };\n"
      "struct C { enum { kI = 2 }; };\n"
      "kernel void f(device int* b [[buffer(kB)]], device int* c "
      "[[buffer(kC)]],\n"
      "    device int* m [[buffer(n::M::kF)]], device int* g [[buffer(kG)]],\n"
      "    device int* h [[buffer(A::kH)]]) {}\n"
      "constant bool x [[function_constant(kB)]];\n");
  ASSERT_EQ(translation.kernels.size(), 1u);
  std::string indices;
  for (const TranslatedParameter& p : translation.kernels[0].parameters) {
    indices += std::to_string(p.index) + " ";
  }
  EXPECT_EQ(indices, "3 7 8 12 5 ");
  EXPECT_TRUE(Contains(translation.code, "{\"x\", 3, \"bool\", &x"));
  for (const char* name : {"kD", "kE", "kI", "kUnknown", "kA - 3", "kA / 0"}) {
    EXPECT_TRUE(Translate("enum { kA = 2, kD = unknown, kE };\n"
                          "struct B { enum { kI = 1 }; };\n"
                          "struct C { enum { kI = 2 }; };\n"
                          "kernel void f(device int* b [[buffer(" +
                          std::string(name) + ")]]) {}")
                    .kernels.empty())
        << name;
  }
}

TEST(Translate, FindsEveryFormOfKernel) {
  const struct {
    const char* text;
    const char* name;
    const char* code;
  } kCases[] = {
      {"[[kernel]] void f() {}", "f", "swy_kernel_0 = &::f;"},
      {"kernel [[host_name(\"g\")]] void f() {}", "g", "swy_kernel_0 = &::f;"},
      {"[[host_name(\"g\" \"h\")]]\nkernel void f() {}", "gh", "= &::f;"},
      {"namespace a { namespace b::c { kernel void f() {} } }", "a::b::c::f",
       "a::b::c::swy_kernel_0"},
      {"namespace { kernel void f() {} }", "f", ">(swy_kernel_0, thread)"},
      {"inline namespace a { kernel void f() {} }", "a::f", "(a::swy_kernel_0"},
      {"extern \"C\" { kernel void f() {} }", "f", ">(swy_kernel_0, thread)"},
      {"extern \"C\" kernel void f() {}", "f", ">(swy_kernel_0, thread)"},
      {"kernel void f();\nkernel void f() {}", "f", "= &::f;"},
      {"kernel __attribute__((noinline)) void f(void) {}", "f", "= &::f;"},
      {"template <class T> void g() {}\n"
       "template <> kernel void g<int>() {}",
       "g<int>", "= &::g<int>;"},
      {"template <class T> kernel void f() {}\n"
       "template [[host_name(\"g\")]] kernel decltype(f<int>) f<int>;",
       "g", "= static_cast<decltype(f<int>)*>(&f<int>)"},
      {"template <class T> [[kernel]] void f() {}\n"
       "typedef decltype(f<int>) f_t;\n"
       "template [[host_name(\"g\")]] [[kernel]] f_t f<int>;",
       "g", "= static_cast<f_t*>(&f<int>)"},
      {"template <class T, int N> kernel void f(device T* x) {}\n"
       "template [[host_name(\"g\")]] kernel void f<vec<int, 2>, (3 > 2)>(\n"
       "  device vec<int, 2>* x [[buffer(0)]]);",
       "g",
       "= static_cast<void(*)( vec<int, 2>* x )>(&f<vec<int, 2>, (3 > 2)>)"},
      {"template <class T> kernel void f() {}\n"
       "template kernel void f<int>();",
       "f<int>", "= static_cast<void(*)()>(&f<int>)"},
      {"namespace a { template <class T> kernel void f() {} }\n"
       "template [[host_name(\"g\")]] kernel void a::f<int>();",
       "g", "(&a::f<int>)"},
  };
  for (const auto& c : kCases) {
    const Translation translation = Translate(c.text);
    ASSERT_EQ(translation.kernels.size(), 1u) << c.text;
    EXPECT_EQ(translation.kernels[0].name, c.name) << c.text;
    EXPECT_TRUE(Contains(Squeeze(translation.code), c.code))
        << c.text << "\n"
        << translation.code;
    EXPECT_TRUE(translation.error.empty()) << translation.error;
    EXPECT_FALSE(Contains(Shader(translation), "kernel ")) << c.text;
  }
}

TEST(Translate, TakesSeveralNamesOfOneInstantiation) {
  const Translation translation = Translate(
      "template <class T> kernel void f(device T* x) {}\n"
      "template [[host_name(\"a\")]] kernel void f<int>(device int*);\n"
      "template [[host_name(\"b\")]] kernel void f<int>(device int*);");
  ASSERT_EQ(translation.kernels.size(), 2u);
  EXPECT_EQ(translation.kernels[1].name, "b");
  EXPECT_EQ(translation.kernels[1].line, 3u);
  EXPECT_EQ(translation.kernels[1].parameters.size(), 1u);
  for (const char* pointer : {"swy_kernel_1", "swy_kernel_2"}) {
    EXPECT_TRUE(Contains(Squeeze(translation.code),
                         "\nstatic constexpr auto " + std::string(pointer) +
                             " = static_cast<void(*)( int*)>(&f<int>)"));
  }
  EXPECT_FALSE(Contains(translation.code, "template void"));
  EXPECT_EQ(Translate("# 1 \"a\"\nkernel void f() {}\n"
                      "[[host_name(\"f\")]] kernel void g() {}")
                .error,
            "a:2:32: error: a second kernel of the name 'f'");
}

TEST(Translate, TellsKernelTemplatesOfOneNameApart) {
  const char kTemplates[] =
      "template <class T, class U, int N> kernel void f(device T* a) {}\n"
      "template <class T, int N, bool B = false>\n"
      "kernel void f(device T* b) {}\n"
      "template <class T, int N, bool B = false>\n"
      "kernel void f(device T* c, device T* d) {}\n";
  const struct {
    const char* instantiation;
    const char* parameter;
  } kCases[] = {
      {"template kernel decltype(f<float, half, 3>) f<float, half, 3>;", "a"},
      {"template kernel void f<float, 3>(device float*);", "b"},
      {"template kernel void f<X, 3, true>(device X*);", "b"},
      {"template kernel void f<float, 3>(device float*, device float*);", "c"},
  };
  for (const auto& c : kCases) {
    const Translation translation =
        Translate(kTemplates + std::string(c.instantiation));
    ASSERT_EQ(translation.kernels.size(), 1u) << c.instantiation;
    EXPECT_EQ(translation.kernels[0].parameters[0].name, c.parameter);
  }
  const Translation unclear =
      Translate(kTemplates + std::string("template kernel f_t f<float, 3>;"));
  EXPECT_TRUE(unclear.kernels.empty());
  ASSERT_EQ(unclear.unsupported.size(), 1u);
  EXPECT_EQ(unclear.unsupported[0].line, 6u);
}

TEST(Translate, KeepsTheColumnOfInstantiations) {
  const std::string text =
      "template [[host_name(\"a_kernel_of_a_long_name_and_of_int\")]] kernel "
      "f_t "
      "f<int>;";
  const std::string code =
      Shader(Translate("template <class T> kernel void f() {}\n" + text));
  EXPECT_EQ(code.substr(code.find('\n') + 1),
            "                static constexpr auto swy_kernel_1 = "
            "static_cast<f_t*>(&f<int>);");
  EXPECT_EQ(text.find("f<int>"), code.find("f<int>") - code.find('\n') - 1);
}

TEST(Translate, PassesOnTheMostThreadsOfAThreadgroup) {
  const Translation translation = Translate(
      "template <int N> [[kernel, max_total_threads_per_threadgroup(N * 32)]]\n"
      "void f() {}\n"
      "namespace n { kernel void g() [[max_total_threads_per_threadgroup(64)]] "
      "{} }\n"
      "template [[host_name(\"h\")]] kernel void f<4>();");
  const std::string code = Squeeze(translation.code);
  EXPECT_TRUE(Contains(code,
                       "void f() {} template <int N> struct "
                       "swy_max_threads_0 { static constexpr unsigned "
                       "value = N * 32 ; };\n"))
      << code;
  EXPECT_TRUE(
      Contains(code, "static constexpr unsigned swy_max_threads_1 = 64 ;"));
  EXPECT_TRUE(Contains(code, "= swy_max_threads_0<4>::value;"));
  EXPECT_TRUE(
      Contains(code,
               "0, static_cast<switchyard_metal::u32>(n::swy_max_threads_1), "
               "&swy_cuts_"));
}

TEST(Translate, LeavesOutWhatIsNotSupported) {
  const struct {
    const char* text;
    const char* what;
  } kCases[] = {
      {"kernel void f(texture2d<float> t [[texture(0)]]) {\n  g(t); }",
       "textures"},
      {"kernel void f(sampler s [[sampler(0)]]) {}", "samplers"},
      {"kernel void f() { mpp::tensor_ops::matmul2d<d> m; }",
       "mpp::tensor_ops"},
      {"kernel void f(raytracing::instance_acceleration_structure s) {}",
       "ray tracing"},
      {"vertex float4 f(uint i [[vertex_id]]) {\n  return 0; }",
       "vertex functions"},
      {"[[fragment]] float4 f() { return 0; }", "fragment functions"},
      {"[[mesh]] void f() {}", "mesh shaders"},
      {"kernel void f(A a [[stage_in]]) {}", "[[stage_in]]"},
      {"kernel void f(uint i) {}",
       "parameter 'i', which no attribute says the input of"},
      {"kernel void f(device int* a [[buffer(N)]]) {}",
       "[[buffer]] with another index than a number below 31"},
      {"kernel void f(device int* a [[buffer(31)]]) {}",
       "[[buffer]] with another index than a number below 31"},
  };
  for (const auto& c : kCases) {
    const Translation translation =
        Translate("# 1 \"a.metal\"\nint a;\n" + std::string(c.text) +
                  "\nkernel void g() {}");
    EXPECT_EQ(translation.kernels.size(), 1u) << c.text;
    ASSERT_EQ(translation.unsupported.size(), 1u) << c.text;
    EXPECT_EQ(translation.unsupported[0].what, c.what);
    EXPECT_EQ(translation.unsupported[0].kernel, "f");
    EXPECT_EQ(translation.unsupported[0].file, "a.metal");
    EXPECT_EQ(translation.unsupported[0].line, 2u);
    const std::string lines = c.text;
    const auto newlines = std::count(lines.begin(), lines.end(), '\n');
    EXPECT_EQ(
        Squeeze(Shader(translation)),
        "# 1 \"a.metal\"\nint a;\n" +
            std::string(static_cast<size_t>(newlines) + 1, '\n') +
            "inline void g() {} static constexpr auto swy_kernel_" +
            (Contains(c.what, "functions") || Contains(c.what, "mesh") ? "0"
                                                                       : "1") +
            " = &::g;");
  }
}

TEST(Translate, LeavesOutWhatNeedsWhatIsLeftOut) {
  const Translation translation = Translate(
      "float g(texture2d<float> t) {\n"
      "#pragma unroll\n"
      "  for (half h = t ? 1 : 2 * t;;) {} }\n"
      "struct A { texture2d<float> t; };\n"
      "using B = A;\n"
      "float h(device int* x) { return 1; }\n"
      "float h(texture3d<float> x) { return 1; }\n"
      "template <class T> kernel void k(device T* a) { g(0); }\n"
      "template [[host_name(\"k1\")]] kernel void k<int>(device int*);\n"
      "kernel void k2(constant B& b) {}\n"
      "kernel void k3(device int* x) { h(x); x.g = x->mpp; }\n");
  ASSERT_EQ(translation.kernels.size(), 1u);
  EXPECT_EQ(translation.kernels[0].name, "k3");
  ASSERT_EQ(translation.unsupported.size(), 2u);
  EXPECT_EQ(translation.unsupported[0].kernel, "k1");
  EXPECT_EQ(translation.unsupported[0].line, 8u);
  EXPECT_EQ(translation.unsupported[1].kernel, "k2");
  EXPECT_FALSE(Contains(translation.code, "pragma"));
  EXPECT_FALSE(Contains(translation.code, "texture"));
  EXPECT_FALSE(Contains(translation.code, "Either"));
}

// The next tests check how Translate() rewrites threadgroup memory and
// program-scope constants. They compare text and do not run Clang.

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

// The next tests show that any text is translated in bounded time.

using testing_support::Random;

TEST(Translate, PassesUnbalancedTextToClang) {
  EXPECT_EQ(Translate("kernel void f(device int* x) {\n  if (x {\n}\n").code,
            "       void f(       int* x) {\n  if (x {\n}\n");
  EXPECT_TRUE(Translate("void f() }").kernels.empty());
}

// A sample that contains all kinds of constructs.
constexpr char kSample[] = R"(# 1 "a.metal"
# 1 "shim" 1 3
struct device; {
# 2 "a.metal" 2
using namespace metal;
constant bool a [[function_constant(3)]];
constant int b = a ? 1 : 2;
template <typename T> struct P<device T*> { using type = T; };
struct A { A() thread {} A() device : x(1) {} int Get() constant { return x; }
  static constant float pi = 3.0f; int x [[id(0)]]; operator int() const; };
template <typename T, int N> T f(threadgroup T* x, T y = N < 4) {
  threadgroup T a[N][2], b; threadgroup T* c = &b;
  half h = a[0][0] ? b : c ? 0 : *x;
#pragma unroll
  for (threadgroup T* p = x; p != c; ++p) { x: threadgroup vec<T, 4> d; }
  return is_function_constant_defined(a) ? (device T*)0 : "a\"[[x]]";
}
namespace n { namespace { kernel void g(device float* x [[buffer(0)]],
    constant A& y, uint i [[thread_position_in_grid]]) { x[i] = y.x; } } }
template <typename T> [[kernel, max_total_threads_per_threadgroup(4 * 8)]]
void k(device T* x [[buffer(2)]], texture2d<T> t) {}
template <typename T> kernel void m(device T* x) {}
template [[host_name("k1")]] kernel void k<float>(device float*, texture2d<T>);
template [[host_name("m1")]] [[kernel]] decltype(m<int>) m<int>;
typedef decltype(m<half>) m_t;
template [[host_name("m2")]] kernel m_t m<half>;
vertex float4 v() { return R"x()"
                           "\""
                           R"(}})x"; }
)";

// Checks that the translation keeps the number of lines, so that each token
// keeps its line.
void CheckLines(const std::string& text, const std::string& code) {
  const auto lines = std::count(text.begin(), text.end(), '\n');
  ASSERT_EQ(std::count(code.begin(), code.end(), '\n'), lines);
}

// For each byte of the text, the translation may look at tokens at most this
// many times.
constexpr uint64_t kLooksPerByte = 60;

TEST(Translate, SurvivesMutations) {
  constexpr const char* kWords[] = {"threadgroup ",
                                    "constant ",
                                    "device ",
                                    "kernel ",
                                    "template ",
                                    "template <> ",
                                    "<",
                                    ">",
                                    "(",
                                    ")",
                                    "{",
                                    "}",
                                    "[[",
                                    "]]",
                                    ";",
                                    ",",
                                    ":",
                                    "::",
                                    "=",
                                    "operator ",
                                    "struct A ",
                                    "\"",
                                    "'",
                                    "/*",
                                    "\\\n",
                                    "namespace ",
                                    "host_name(",
                                    "*",
                                    "&",
                                    "R\"(",
                                    "\n# 1 "};
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    std::string text = kSample;
    for (size_t edits = 1 + random.Below(6); edits > 0; --edits) {
      const size_t at = random.Below(text.size() + 1);
      const size_t size = std::min(random.Below(40), text.size() - at);
      switch (random.Below(4)) {
        case 0:
          text.erase(at, size);
          break;
        case 1:
          text.insert(at, kWords[random.Below(std::size(kWords))]);
          break;
        case 2:
          text.insert(random.Below(text.size() + 1), text.substr(at, size));
          break;
        default:
          if (at < text.size()) text[at] = static_cast<char>(random.Below(256));
      }
    }
    const Translation translation = Translate(text);
    CheckLines(text, Shader(translation));
    ASSERT_LE(translation.looks, kLooksPerByte * (text.size() + 10));
  }
}

TEST(Translate, SurvivesEveryPrefix) {
  const std::string sample = kSample;
  for (size_t size = 0; size <= sample.size(); ++size) {
    CheckLines(sample.substr(0, size),
               Shader(Translate(std::string_view(sample).substr(0, size))));
  }
}

TEST(Translate, IsLinear) {
  for (const char* piece :
       {kSample,
        "threadgroup A {} ",
        "x: threadgroup y ",
        "a<",
        "a<b>",
        "()",
        "template <",
        "template <> ",
        "struct A { ",
        "namespace a { ",
        "f(device T* x) {} ",
        "[[a]] ",
        "operator ",
        "int f() : a{} ",
        "x = ",
        "struct A ",
        "threadgroup ",
        "constant ",
        "namespace a ",
        "{}",
        "template <class T> kernel void f(device T* x) {} "
        "template kernel void f<int>(device int*); ",
        "constant int a [[function_constant(0)]]; constant int b = a; ",
        "template <> template <class T> void A<int>::f(T* x) {} ",
        "template <class T> template <> kernel void f(T* x) {} ",
        "kernel void f(texture2d<float> t) {} ",
        "{ threadgroup A { } ",
        "\"",
        "R\"",
        "R\"(",
        "/*",
        "#",
        "\\\n",
        "(*",
        "a::",
        "[[host_name("}) {
    for (const size_t times : {20u, 2000u}) {
      for (const char* around : {"", "void f() {"}) {
        std::string text = around;
        for (size_t i = 0; i < times; ++i) text += piece;
        // Each text is translated without and with a closing brace at its
        // end.
        for (const char* end : {"", "}"}) {
          const Translation translation = Translate(text + end);
          EXPECT_LE(translation.looks, kLooksPerByte * (text.size() + 10))
              << piece << " " << times << " times";
        }
      }
    }
  }
  // These brackets are nested, and all are closed.
  for (const std::string pair : {"()", "{}", "[]", "<>"}) {
    for (const char* before : {"", "struct A ", "namespace a ", "a", "(*",
                               "threadgroup A ", "f() : a"}) {
      std::string text;
      constexpr size_t kDepth = 3000;
      for (size_t i = 0; i < kDepth; ++i) text += before + pair.substr(0, 1);
      for (size_t i = 0; i < kDepth; ++i) {
        text += pair.substr(1);
        if (before[0] == '(') text += ')';
      }
      EXPECT_LE(Translate(text).looks, kLooksPerByte * text.size())
          << before << pair;
    }
  }
}

}  // namespace
}  // namespace switchyard::device::metal
