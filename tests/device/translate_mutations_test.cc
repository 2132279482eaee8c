// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Any text is translated, in time.

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "src/device/metal/translate.h"
#include "testing/inputs.h"
#include "tests/device/translate_text.h"

namespace switchyard::device::metal {
namespace {

using testing_support::Random;

TEST(Translate, PassesUnbalancedTextToClang) {
  EXPECT_EQ(Translate("kernel void f(device int* x) {\n  if (x {\n}\n").code,
            "       void f(       int* x) {\n  if (x {\n}\n");
  EXPECT_TRUE(Translate("void f() }").kernels.empty());
}

// A bit of everything.
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

// Each token of the shader is on its line, or has become blank there.
void CheckLines(const std::string& text, const std::string& code) {
  const auto lines = std::count(text.begin(), text.end(), '\n');
  ASSERT_EQ(std::count(code.begin(), code.end(), '\n'), lines);
}

// So many looks at tokens are enough for each byte.
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
        // Balanced or not.
        for (const char* end : {"", "}"}) {
          const Translation translation = Translate(text + end);
          EXPECT_LE(translation.looks, kLooksPerByte * (text.size() + 10))
              << piece << " " << times << " times";
        }
      }
    }
  }
  // Brackets within brackets, all closed.
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
