# Sets warnings and sanitizers. Only this project's targets use them (PRIVATE);
# they are never exported.
add_library(switchyard_warnings INTERFACE)
if(SWITCHYARD_TOP_LEVEL OR SWITCHYARD_WERROR)
  target_compile_options(switchyard_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror=switch
    $<$<BOOL:${SWITCHYARD_WERROR}>:-Werror>)
else()
  # Turns warnings off, because a parent project chooses its warnings and -Werror
  # for its own sources only.
  target_compile_options(switchyard_warnings INTERFACE -w)
endif()
if(SWITCHYARD_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SWITCHYARD_FUZZ needs Clang, whose libFuzzer it uses, not "
      "${CMAKE_CXX_COMPILER_ID}: -DCMAKE_CXX_COMPILER=clang++. Other compilers build "
      "the same targets, with SWITCHYARD_SANITIZE, as tests that replay fuzz/corpus.")
  endif()
  # Adds the coverage counters that the fuzzer needs in the library. Only the
  # targets of fuzz/ link the fuzzer's main().
  target_compile_options(switchyard_warnings INTERFACE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:SWITCHYARD_TEST>>>:-fsanitize=fuzzer-no-link>)
endif()
if(SWITCHYARD_SANITIZE)
  target_compile_options(switchyard_warnings INTERFACE
    -fsanitize=${SWITCHYARD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Tells tests about the sanitizers, which are slow and have their own allocator,
  # memory and address space.
  target_compile_definitions(switchyard_warnings INTERFACE SWITCHYARD_SANITIZED)
  if(NOT SWITCHYARD_SANITIZE MATCHES thread)
    # Compiles the tests without sanitizers, because Clang then takes 4 s per test
    # instead of 14 s. The sanitizers still check the library and the heap. This is
    # enough, because all memory that tests pass to the library is Guarded or on the
    # heap.
    target_compile_options(switchyard_warnings INTERFACE
      $<$<BOOL:$<TARGET_PROPERTY:SWITCHYARD_TEST>>:-O0;-fno-sanitize=all>)
  endif()
  target_link_options(switchyard_warnings INTERFACE -fsanitize=${SWITCHYARD_SANITIZE})
endif()

# Options for programs/ and tools/, which only call the library: -O1, or -O0 with
# sanitizers. -O1 halves the compile time of -O3, and -O0 halves that of -O1.
set(SWITCHYARD_PROGRAM_OPTIONS $<$<CONFIG:Release>:-O1>)
if(SWITCHYARD_SANITIZE)
  set(SWITCHYARD_PROGRAM_OPTIONS -O0)
endif()
