// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Wheels load with glibc 2.28 and the C++ library of GCC 8, as torch's wheels
// do. They are compiled with newer headers, which use symbols that these
// libraries lack. This file defines them.

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <new>
#include <sstream>

// A symbol of glibc 2.32: true if the process has one thread, so that
// shared_ptr counts without atomics. Here it is always false, so shared_ptr
// always counts with atomics.
extern "C" __attribute__((visibility("hidden"))) char __libc_single_threaded;
char __libc_single_threaded = 0;

// Symbols of GCC 9, whose headers declare these constructors `extern
// template`.
template std::basic_stringstream<char>::basic_stringstream();
template std::basic_ostringstream<char>::basic_ostringstream();

// Symbols of GCC 11: functions that count the references to an exception. In
// GCC 11's headers, the inline constructor and destructor of exception_ptr call
// these functions. The definitions below call the constructor and destructor
// that every C++ library since GCC 4.4 exports.
namespace older {
void CopyPointer(void* to, const void* from) noexcept
    __asm__("_ZNSt15__exception_ptr13exception_ptrC1ERKS0_");
void DropPointer(void* pointer) noexcept
    __asm__("_ZNSt15__exception_ptr13exception_ptrD1Ev");
}  // namespace older
void std::__exception_ptr::exception_ptr::_M_addref() noexcept {
  void* copy;
  older::CopyPointer(&copy, this);
}
void std::__exception_ptr::exception_ptr::_M_release() noexcept {
  older::DropPointer(this);
}

// A symbol of GCC 11: the function that new[] calls if it is asked for too
// many elements.
namespace std {
void __throw_bad_array_new_length() { throw bad_array_new_length(); }
}  // namespace std

// A symbol of glibc 2.29: exp() without the checks of older versions. The
// definition below calls the older exp().
extern "C" {
double OlderExp(double x);
#if defined(__x86_64__)
__asm__(".symver OlderExp, exp@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver OlderExp, exp@GLIBC_2.17");
#endif
double exp(double x) noexcept { return OlderExp(x); }
}

// Symbols of GCC 11: from_chars() and to_chars() for floats, in the locale
// "C".
namespace older {
namespace {

locale_t PlainLocale() {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  return plain;
}
template <class Float>
std::from_chars_result Read(const char* begin, const char* end, Float& value,
                            Float (*read)(const char*, char**, locale_t)) {
  char text[128];  // a copy, because no zero follows the text
  const size_t size = std::min<size_t>(end - begin, sizeof(text) - 1);
  std::copy(begin, begin + size, text);
  text[size] = '\0';
  // from_chars() refuses leading blanks and a plus sign, which strtof() would
  // skip.
  const bool starts = size != 0 && *text > ' ' && *text != '+';
  char* stop = text;
  errno = 0;
  const Float number = starts ? read(text, &stop, PlainLocale()) : Float{0};
  if (stop == text) return {begin, std::errc::invalid_argument};
  const bool is_too_large = errno == ERANGE && (number > 1 || number < -1);
  if (is_too_large)
    return {begin + (stop - text), std::errc::result_out_of_range};
  value = number;
  return {begin + (stop - text), std::errc()};
}

}  // namespace
}  // namespace older
std::from_chars_result std::from_chars(const char* begin, const char* end,
                                       float& value, chars_format) noexcept {
  return older::Read(begin, end, value, &strtof_l);
}
std::from_chars_result std::from_chars(const char* begin, const char* end,
                                       double& value, chars_format) noexcept {
  return older::Read(begin, end, value, &strtod_l);
}
// Writes the shortest text that reads back as the same float.
std::to_chars_result std::to_chars(char* begin, char* end,
                                   float value) noexcept {
  char text[32];
  int size = 0;
  const locale_t before = uselocale(older::PlainLocale());
  for (int digits = 1; digits <= 9; ++digits) {
    size = snprintf(text, sizeof(text), "%.*g", digits,
                    static_cast<double>(value));
    if (strtof(text, nullptr) == value) break;
  }
  uselocale(before);
  if (size > end - begin) return {end, std::errc::value_too_large};
  return {std::copy(text, text + size, begin), std::errc()};
}
