# Finds Highway and TBB. Each may be an installed package or a sub-project of the
# parent project. A sub-project only has the plain target name (hwy, tbb). Highway
# may also be a folder with its sources.
find_package(Threads REQUIRED)

if(SWITCHYARD_HIGHWAY_DIR)
  if(TARGET hwy OR TARGET hwy::hwy)
    message(FATAL_ERROR "SWITCHYARD_HIGHWAY_DIR is given, and a parent project has "
      "a Highway of its own: leave it empty")
  endif()
  if(NOT EXISTS ${SWITCHYARD_HIGHWAY_DIR}/hwy/highway.h)
    message(FATAL_ERROR "SWITCHYARD_HIGHWAY_DIR: no hwy/highway.h in "
      "'${SWITCHYARD_HIGHWAY_DIR}'")
  endif()
  foreach(part IN ITEMS CONTRIB EXAMPLES TESTS)
    set(HWY_ENABLE_${part} OFF CACHE INTERNAL "")
  endforeach()
  # Highway 1.0.3 cannot be configured without its install rules. EXCLUDE_FROM_ALL
  # below keeps these rules from running.
  set(HWY_ENABLE_INSTALL ON CACHE INTERNAL "")
  set(HWY_FORCE_STATIC_LIBS ON CACHE INTERNAL "")
  add_subdirectory(${SWITCHYARD_HIGHWAY_DIR} highway EXCLUDE_FROM_ALL)
  set_target_properties(hwy PROPERTIES POSITION_INDEPENDENT_CODE ON)
  # Uses Highway only in this build, without installing it, because the library
  # contains Highway's objects.
  set(SWITCHYARD_HIGHWAY $<BUILD_INTERFACE:hwy>)
elseif(TARGET hwy AND NOT TARGET hwy::hwy)
  add_library(hwy::hwy ALIAS hwy)
endif()
if(TARGET hwy)
  # Makes Highway's headers system headers, because we cannot fix their warnings.
  get_target_property(hwy_include hwy INTERFACE_INCLUDE_DIRECTORIES)
  if(hwy_include)
    set_property(TARGET hwy PROPERTY INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${hwy_include})
  endif()
endif()
if(NOT SWITCHYARD_HIGHWAY)
  if(NOT TARGET hwy::hwy)
    find_package(hwy 1.0.3 QUIET)
    if(NOT TARGET hwy::hwy)
      message(FATAL_ERROR "No Highway 1.0.3 or later (found: ${hwy_CONSIDERED_VERSIONS}). "
        "Debian 12 and Ubuntu 24.04 have it as libhwy-dev; where it is older, take its sources:\n"
        "  git clone --depth 1 --branch 1.4.0 https://github.com/google/highway\n"
        "and configure with -DSWITCHYARD_HIGHWAY_DIR=$PWD/highway.")
    endif()
  endif()
  set(SWITCHYARD_HIGHWAY hwy::hwy)
endif()

if(SWITCHYARD_TBB)
  if(TARGET tbb AND NOT TARGET TBB::tbb)
    add_library(TBB::tbb ALIAS tbb)
  endif()
  if(NOT TARGET TBB::tbb)
    find_package(TBB 2021 REQUIRED)
  endif()
endif()

# Finds the packages that only tests and programs need. Reports all missing
# packages at once.
set(_missing "")
# _needs(OPTION PACKAGE DEBIAN): finds PACKAGE if SWITCHYARD_BUILD_OPTION is on.
# If it is missing, remembers the name of its Debian package.
macro(_needs option package debian)
  if(SWITCHYARD_BUILD_${option})
    find_package(${package} QUIET)
    if(NOT ${package}_FOUND)
      list(APPEND _missing ${debian})
    endif()
  endif()
endmacro()
_needs(TESTS GTest libgtest-dev)
_needs(BENCHMARKS benchmark libbenchmark-dev)
foreach(_option IN ITEMS EXAMPLES BENCHMARKS)
  _needs(${_option} dnnl "libdnnl-dev ocl-icd-opencl-dev")
endforeach()
foreach(_option IN ITEMS EXAMPLES TOOLS BENCHMARKS)
  _needs(${_option} nlohmann_json nlohmann-json3-dev)
  _needs(${_option} CLI11 libcli11-dev)
endforeach()
if(_missing)
  list(REMOVE_DUPLICATES _missing)
  list(JOIN _missing " " _missing)
  message(FATAL_ERROR "Missing, by Debian's names: ${_missing}. scripts/setup.sh packages "
    "installs all that the presets need; `cmake -S . -B build` needs Highway and TBB only.")
endif()
# Uses the Python environment that setup.sh makes, because the tests of moe_layer
# write checkpoints with its packages.
if(SWITCHYARD_BUILD_TESTS AND NOT Python3_EXECUTABLE
    AND EXISTS ${PROJECT_SOURCE_DIR}/build/venv/bin/python3)
  set(Python3_EXECUTABLE ${PROJECT_SOURCE_DIR}/build/venv/bin/python3)
endif()
