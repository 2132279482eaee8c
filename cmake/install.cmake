# Rules for `cmake --install`. They install headers, libraries, a CMake package
# and pkg-config files, with a component for each library. Every destination is
# relative to the prefix that the user gives at install time. No installed file
# contains the path of the build folder.
include(CMakePackageConfigHelpers)
include(${CMAKE_CURRENT_LIST_DIR}/component.cmake)

# Stops if a parent project builds Highway or TBB, because the installed files look
# for Highway and TBB as packages.
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

# Makes `pkg-config --libs` list the dependencies even without --static, because a
# program that links the static library also has to link its dependencies.
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

# A C compiler links switchyard-c. The shared library brings its own dependencies.
# The archive needs the C++ run time, which must come after the archive: some
# linkers drop a library that no earlier file needs, and would drop -lm before they
# read the archive, which calls sqrtf. So the run time is a pkg-config package of
# its own, because pkg-config puts required packages last.
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
  # Installs Highway's licence, because the library contains Highway's objects.
  install(FILES ${SWITCHYARD_HIGHWAY_DIR}/LICENSE RENAME LICENSE.highway
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT core)
endif()

# For CMake: find_package(switchyard) defines switchyard::switchyard. It also
# defines switchyard::device and switchyard::c if they are installed or
# requested as COMPONENTS.
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/switchyardConfig.cmake.in
  ${PROJECT_BINARY_DIR}/switchyardConfig.cmake
  INSTALL_DESTINATION ${SWITCHYARD_CMAKE_DIR})
# Accepts only the same minor version, because a minor version of 0.x may change
# the API.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/switchyardConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/switchyardConfig.cmake
  ${PROJECT_BINARY_DIR}/switchyardConfigVersion.cmake
  DESTINATION ${SWITCHYARD_CMAKE_DIR} COMPONENT core)

include(${CMAKE_CURRENT_LIST_DIR}/package.cmake)
