// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Wheels load with glibc 2.28 and the C++ library of GCC 8, as torch's own do.
// They are compiled with newer headers, which expect of these libraries what is
// defined here.

#include <exception>
#include <new>
#include <sstream>

// glibc 2.32: whether a process has one thread, so that shared_ptr counts
// without atomics. It always counts with them here.
extern "C" __attribute__((visibility("hidden"))) char __libc_single_threaded;
char __libc_single_threaded = 0;

// GCC 9: constructors that are declared `extern template`.
template std::basic_stringstream<char>::basic_stringstream();
template std::basic_ostringstream<char>::basic_ostringstream();

// GCC 11: a pointer's count of its exception. Constructor and destructor are
// inline now; those that libraries have had since GCC 4.4 count.
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

// GCC 11: what a new[] of too many elements calls.
namespace std {
void __throw_bad_array_new_length() { throw bad_array_new_length(); }
}  // namespace std
