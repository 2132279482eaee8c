# What tests of the kernels and of the device layer are made of.
find_package(GTest REQUIRED)
include(GoogleTest)

add_library(switchyard_fixtures STATIC ${CMAKE_CURRENT_LIST_DIR}/target_test.cc)
target_include_directories(switchyard_fixtures PUBLIC ${CMAKE_CURRENT_LIST_DIR}/..)
target_link_libraries(switchyard_fixtures
  PUBLIC switchyard_testing GTest::gtest GTest::gtest_main Threads::Threads switchyard_warnings)
# What links it is a test, and compiled like one.
set_target_properties(switchyard_fixtures PROPERTIES
  SWITCHYARD_TEST ON INTERFACE_SWITCHYARD_TEST ON COMPATIBLE_INTERFACE_BOOL SWITCHYARD_TEST)
# Tests compile in half the time of -O3, and run no longer.
target_compile_options(switchyard_fixtures PUBLIC $<$<CONFIG:Release>:-O1>)
# 0.7 of 2 s of each test. (ccache can't cache what uses it:
# CMAKE_DISABLE_PRECOMPILE_HEADERS=ON.)
target_precompile_headers(switchyard_fixtures PRIVATE
  <functional> <memory> <string> <vector> <gtest/gtest.h>)
if(SWITCHYARD_TBB)
  target_compile_definitions(switchyard_fixtures PUBLIC SWITCHYARD_WITH_TBB)
  target_link_libraries(switchyard_fixtures PRIVATE TBB::tbb)
endif()

# Those that start threads: what ThreadSanitizer has to do with.
add_custom_target(threaded_tests)

# A program for each *_test.cc of a folder, named PREFIX and the file. Each
# gtest case, with its ISA in the name, is a ctest of its own.
function(switchyard_tests prefix)
  file(GLOB sources CONFIGURE_DEPENDS *_test.cc)
  # Built beside their programs, in examples/, tools/ and bench/.
  list(FILTER sources EXCLUDE REGEX
    "/(engine_loop|metal_chain|moe_layer|switchyard_bench|swy)_[a-z_]*test.cc$")
  # Has no switchyard_fixtures.
  list(FILTER sources EXCLUDE REGEX "/plugin_test.cc$")
  if(SWITCHYARD_SANITIZE)  # one has a malloc of its own, one no memory at all
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

# switchyard_compiler_test(NAME SCRIPT ARGUMENT...): the script with each compiler there is as its
# first argument: the one of this build, and g++ and clang++ where they are installed.
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
