// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Wheels load with glibc 2.28 and the C++ library of GCC 8, as torch's wheels
// do. They are compiled with newer headers, which use symbols that these
// libraries lack. This file defines them.

#include <exception>
#include <new>
#include <sstream>

// glibc 2.32: true if the process has one thread, so that shared_ptr counts
// without atomics. Always false here, so shared_ptr always counts with atomics.
extern "C" __attribute__((visibility("hidden"))) char __libc_single_threaded;
char __libc_single_threaded = 0;

// GCC 9 declares these constructors `extern template`.
template std::basic_stringstream<char>::basic_stringstream();
template std::basic_ostringstream<char>::basic_ostringstream();

// GCC 11: functions that count references to an exception. The constructor and
// destructor of exception_ptr are inline now and call these functions. They are
// defined here by the constructor and destructor that libraries have exported
// since GCC 4.4.
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

// GCC 11: a new[] of too many elements calls this.
namespace std {
void __throw_bad_array_new_length() { throw bad_array_new_length(); }
}  // namespace std
