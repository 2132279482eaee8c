# Warnings and sanitizers, on our own targets only (PRIVATE, never exported).
add_library(switchyard_warnings INTERFACE)
if(SWITCHYARD_TOP_LEVEL OR SWITCHYARD_WERROR)
  target_compile_options(switchyard_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror=switch
    $<$<BOOL:${SWITCHYARD_WERROR}>:-Werror>)
else()
  # A parent's own warnings, or its -Werror, are for its own sources.
  target_compile_options(switchyard_warnings INTERFACE -w)
endif()
if(SWITCHYARD_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SWITCHYARD_FUZZ needs Clang, whose libFuzzer it uses, not "
      "${CMAKE_CXX_COMPILER_ID}: -DCMAKE_CXX_COMPILER=clang++. Other compilers build "
      "the same targets, with SWITCHYARD_SANITIZE, as tests that replay fuzz/corpus.")
  endif()
  # The library counts, too, what the fuzzer steers by. The fuzzer's main() is
  # linked into the targets of fuzz/ alone.
  target_compile_options(switchyard_warnings INTERFACE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:SWITCHYARD_TEST>>>:-fsanitize=fuzzer-no-link>)
endif()
if(SWITCHYARD_SANITIZE)
  target_compile_options(switchyard_warnings INTERFACE
    -fsanitize=${SWITCHYARD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Slow, with an allocator, memory and address space of their own.
  target_compile_definitions(switchyard_warnings INTERFACE SWITCHYARD_SANITIZED)
  if(NOT SWITCHYARD_SANITIZE MATCHES thread)
    # It is the library that is checked, and the heap: Clang takes 14 s for a test,
    # 4 s so. Tests keep what they hand over in Guarded memory or on the heap.
    target_compile_options(switchyard_warnings INTERFACE
      $<$<BOOL:$<TARGET_PROPERTY:SWITCHYARD_TEST>>:-O0;-fno-sanitize=all>)
  endif()
  target_link_options(switchyard_warnings INTERFACE -fsanitize=${SWITCHYARD_SANITIZE})
endif()

# Options for programs/ and tools/, which time only the library: compiling takes
# half as long as with -O3, and with sanitizers half as long as with -O1.
set(SWITCHYARD_PROGRAM_OPTIONS $<$<CONFIG:Release>:-O1>)
if(SWITCHYARD_SANITIZE)
  set(SWITCHYARD_PROGRAM_OPTIONS -O0)
endif()
