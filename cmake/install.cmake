# `cmake --install` puts in place headers, the libraries, a CMake package and
# pkg-config files, a component of each library. Every destination is relative
# to the prefix given at install time, and nothing in the files names the build
# tree.
include(CMakePackageConfigHelpers)
include(${CMAKE_CURRENT_LIST_DIR}/component.cmake)

# The installed files ask for Highway and TBB by package: they have to be
# packages, not targets that a parent project builds next to this one.
set(_dependencies "")
set(_needs_highway OFF)
if(NOT SWITCHYARD_HIGHWAY_DIR)
  set(_needs_highway ON)
  list(APPEND _dependencies hwy::hwy)
endif()
if(SWITCHYARD_TBB)
  list(APPEND _dependencies TBB::tbb)
endif()
foreach(_dependency IN LISTS _dependencies)
  get_target_property(_imported ${_dependency} IMPORTED)
  if(NOT _imported)
    message(FATAL_ERROR "SWITCHYARD_INSTALL=ON needs an installed ${_dependency}, "
      "but a parent project builds it: set SWITCHYARD_INSTALL to OFF")
  endif()
endforeach()

# Whoever links a static library also links what it uses, so that a plain
# `pkg-config --libs` has to name that, too.
set(_pc_requires "")
if(NOT SWITCHYARD_SHARED)
  if(NOT SWITCHYARD_HIGHWAY_DIR)
    list(APPEND _pc_requires "libhwy >= 1.0.3")
  endif()
  if(SWITCHYARD_TBB)
    list(APPEND _pc_requires "tbb >= 2021")
  endif()
endif()
list(JOIN _pc_requires ", " _pc_requires)

# A C compiler links switchyard-c; its shared library brings what it needs. The
# run time of C++ is a package of its own, required last: what a package itself
# lists stands before all that it requires, so that a linker which looks at
# libraries as they come would drop -lm before the archive that calls sqrtf.
set(_pc_runtime "")
if(TARGET switchyard_c AND NOT SWITCHYARD_SHARED)
  set(_pc_runtime ", switchyard-c-runtime = ${PROJECT_VERSION}")
  switchyard_pkg_config(${CMAKE_CURRENT_LIST_DIR}/switchyard-c-runtime.pc.in c)
endif()
switchyard_install(core switchyard ${CMAKE_CURRENT_LIST_DIR}/switchyard.pc.in)
if(TARGET switchyard_c)
  switchyard_install(c switchyard_c ${CMAKE_CURRENT_LIST_DIR}/switchyard-c.pc.in)
endif()

set(_include ${PROJECT_SOURCE_DIR}/include/switchyard)
install(DIRECTORY ${_include} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT core
  FILES_MATCHING PATTERN "*.h"
  PATTERN c EXCLUDE PATTERN switchyard.h EXCLUDE)
if(TARGET switchyard_c)
  install(DIRECTORY ${_include}/c
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/switchyard COMPONENT c
    FILES_MATCHING PATTERN "*.h")
  install(FILES ${_include}/switchyard.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/switchyard COMPONENT c)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT core)

if(SWITCHYARD_HIGHWAY_DIR)
  # Its objects are a part of the library.
  install(FILES ${SWITCHYARD_HIGHWAY_DIR}/LICENSE RENAME LICENSE.highway
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT core)
endif()

# CMake: find_package(switchyard) -> switchyard::switchyard and, where they are
# installed or asked for as COMPONENTS, switchyard::device and switchyard::c.
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/switchyardConfig.cmake.in
  ${PROJECT_BINARY_DIR}/switchyardConfig.cmake
  INSTALL_DESTINATION ${SWITCHYARD_CMAKE_DIR})
# 0.x: a minor version may change the API.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/switchyardConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/switchyardConfig.cmake
  ${PROJECT_BINARY_DIR}/switchyardConfigVersion.cmake
  DESTINATION ${SWITCHYARD_CMAKE_DIR} COMPONENT core)

include(${CMAKE_CURRENT_LIST_DIR}/package.cmake)
