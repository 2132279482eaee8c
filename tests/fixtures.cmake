# The fixtures that tests of the kernels and of the device layer link.
find_package(GTest REQUIRED)
include(GoogleTest)

add_library(switchyard_fixtures STATIC ${CMAKE_CURRENT_LIST_DIR}/target_test.cc)
target_include_directories(switchyard_fixtures PUBLIC ${CMAKE_CURRENT_LIST_DIR}/..)
target_link_libraries(switchyard_fixtures
  PUBLIC switchyard_testing GTest::gtest GTest::gtest_main Threads::Threads switchyard_warnings)
# Targets that link switchyard_fixtures are tests, and are compiled like
# tests.
set_target_properties(switchyard_fixtures PROPERTIES
  SWITCHYARD_TEST ON INTERFACE_SWITCHYARD_TEST ON COMPATIBLE_INTERFACE_BOOL SWITCHYARD_TEST)
# -O1 compiles tests in half the time of -O3, and they do not run longer.
target_compile_options(switchyard_fixtures PUBLIC $<$<CONFIG:Release>:-O1>)
# Precompiled headers save 0.7 of 2 s per test. (ccache cannot cache files
# that use them; turn them off by CMAKE_DISABLE_PRECOMPILE_HEADERS=ON.)
target_precompile_headers(switchyard_fixtures PRIVATE
  <functional> <memory> <string> <vector> <gtest/gtest.h>)
if(SWITCHYARD_TBB)
  target_compile_definitions(switchyard_fixtures PUBLIC SWITCHYARD_WITH_TBB)
  target_link_libraries(switchyard_fixtures PRIVATE TBB::tbb)
endif()

# The tests that start threads, for builds with ThreadSanitizer.
add_custom_target(threaded_tests)

# Adds a program for each *_test.cc of the folder. The program's name is PREFIX
# followed by the file's name. Each gtest case becomes a ctest with the ISA in
# its name.
function(switchyard_tests prefix)
  file(GLOB sources CONFIGURE_DEPENDS *_test.cc)
  # Leaves out tests that are built next to their programs, in examples/,
  # tools/ and bench/.
  list(FILTER sources EXCLUDE REGEX
    "/(engine_loop|metal_chain|moe_layer|switchyard_bench|swy)_[a-z_]*test.cc$")
  # Leaves out plugin_test.cc, which does not use switchyard_fixtures.
  list(FILTER sources EXCLUDE REGEX "/plugin_test.cc$")
  if(SWITCHYARD_SANITIZE)  # allocation_test replaces malloc, and math_test has no memory accesses to check
    list(FILTER sources EXCLUDE REGEX "/(allocation|math)_test.cc$")
  endif()
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    set(program ${prefix}${name})
    add_executable(${program} ${source})
    target_link_libraries(${program} PRIVATE switchyard_fixtures ${ARGN})
    target_precompile_headers(${program} REUSE_FROM switchyard_fixtures)
    gtest_discover_tests(${program} NO_PRETTY_VALUES PROPERTIES TIMEOUT 300 DISCOVERY_TIMEOUT 60)
    file(STRINGS ${source} threads LIMIT_COUNT 1
      REGEX "FOR_EVERY_ISA_AND_POOL|std::thread|Crew|Concurrency|[^a-z]fork[(]")
    if(threads)
      add_dependencies(threaded_tests ${program})
    endif()
  endforeach()
endfunction()

# switchyard_compiler_test(NAME SCRIPT ARGUMENT...) adds a test for each
# compiler: this build's, and g++ and clang++ if installed. The script gets
# the compiler as its first argument.
function(switchyard_compiler_test name script)
  set(compilers ${CMAKE_CXX_COMPILER})
  foreach(compiler IN ITEMS g++ clang++)
    find_program(SWITCHYARD_${compiler} ${compiler})
    if(SWITCHYARD_${compiler})
      list(APPEND compilers ${SWITCHYARD_${compiler}})
    endif()
  endforeach()
  set(tested "")
  foreach(compiler IN LISTS compilers)
    get_filename_component(program ${compiler} NAME)
    get_filename_component(file ${compiler} REALPATH)
    if(NOT file IN_LIST tested)
      list(APPEND tested ${file})
      add_test(NAME ${name}.${program} COMMAND bash ${script} ${compiler} ${ARGN})
    endif()
  endforeach()
endfunction()
