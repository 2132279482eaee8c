# Sets warnings and sanitizers. They apply only to this project's targets
# (PRIVATE), and are never exported.
add_library(switchyard_warnings INTERFACE)
if(SWITCHYARD_TOP_LEVEL OR SWITCHYARD_WERROR)
  target_compile_options(switchyard_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror=switch
    $<$<BOOL:${SWITCHYARD_WERROR}>:-Werror>)
else()
  # A parent project chooses its warnings, or -Werror, for its own sources only.
  target_compile_options(switchyard_warnings INTERFACE -w)
endif()
if(SWITCHYARD_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SWITCHYARD_FUZZ needs Clang, whose libFuzzer it uses, not "
      "${CMAKE_CXX_COMPILER_ID}: -DCMAKE_CXX_COMPILER=clang++. Other compilers build "
      "the same targets, with SWITCHYARD_SANITIZE, as tests that replay fuzz/corpus.")
  endif()
  # The fuzzer also needs coverage counters in the library. Its main() is only
  # linked into the targets of fuzz/.
  target_compile_options(switchyard_warnings INTERFACE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:SWITCHYARD_TEST>>>:-fsanitize=fuzzer-no-link>)
endif()
if(SWITCHYARD_SANITIZE)
  target_compile_options(switchyard_warnings INTERFACE
    -fsanitize=${SWITCHYARD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Tests have to know that sanitizers are slow, and that they have their own
  # allocator, memory and address space.
  target_compile_definitions(switchyard_warnings INTERFACE SWITCHYARD_SANITIZED)
  if(NOT SWITCHYARD_SANITIZE MATCHES thread)
    # The sanitizers check the library and the heap. The tests themselves are
    # not instrumented. This way Clang takes 4 s per test instead of 14 s. Tests
    # only pass memory to the library that is Guarded or on the heap.
    target_compile_options(switchyard_warnings INTERFACE
      $<$<BOOL:$<TARGET_PROPERTY:SWITCHYARD_TEST>>:-O0;-fno-sanitize=all>)
  endif()
  target_link_options(switchyard_warnings INTERFACE -fsanitize=${SWITCHYARD_SANITIZE})
endif()

# Options for programs/ and tools/, which only time the library. They compile in
# half the time of -O3. With sanitizers they compile in half the time of -O1.
set(SWITCHYARD_PROGRAM_OPTIONS $<$<CONFIG:Release>:-O1>)
if(SWITCHYARD_SANITIZE)
  set(SWITCHYARD_PROGRAM_OPTIONS -O0)
endif()
