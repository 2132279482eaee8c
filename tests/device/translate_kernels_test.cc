// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Kernels and the table of them, before Clang sees them.

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "src/device/metal/translate.h"
#include "tests/device/translate_text.h"

namespace switchyard::device::metal {
namespace {

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
  EXPECT_TRUE(Contains(
      code, "{\"f\", \"a.metal\", 4, swy_run_0, swy_parameters_0, 8, 0},"));
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
  EXPECT_TRUE(Contains(
      code, "0, static_cast<switchyard_metal::u32>(n::swy_max_threads_1)},"));
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

}  // namespace
}  // namespace switchyard::device::metal
