# Warnings and sanitizers, on our own targets only (PRIVATE, never exported).
add_library(switchyard_warnings INTERFACE)
target_compile_options(switchyard_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${SWITCHYARD_WERROR}>:-Werror>)
if(SWITCHYARD_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SWITCHYARD_FUZZ needs Clang, whose libFuzzer it uses, not "
      "${CMAKE_CXX_COMPILER_ID}: -DCMAKE_CXX_COMPILER=clang++. Other compilers build "
      "the same targets as tests that replay fuzz/corpus.")
  endif()
  # What the fuzzer steers by is counted in the library, too. Its main() is
  # linked into the targets of fuzz/ alone.
  target_compile_options(switchyard_warnings INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(SWITCHYARD_SANITIZE)
  target_compile_options(switchyard_warnings INTERFACE
    -fsanitize=${SWITCHYARD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(switchyard_warnings INTERFACE -fsanitize=${SWITCHYARD_SANITIZE})
endif()
