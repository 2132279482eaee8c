# Rules for `cmake --install`: headers, libraries, a CMake package and
# pkg-config files, with a component for each library. Every destination is
# relative to the prefix given at install time, and no file names the build
# tree.
include(CMakePackageConfigHelpers)
include(${CMAKE_CURRENT_LIST_DIR}/component.cmake)

# The installed files look for Highway and TBB as packages, so these must not
# be targets that a parent project builds.
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

# A program that links a static library also has to link the library's
# dependencies. So plain `pkg-config --libs` has to name them, too.
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

# A C compiler links switchyard-c. Its shared library brings its dependencies;
# its archive needs the C++ run time. That is a separate package, which comes
# last, because pkg-config puts a package's own libraries before those that it
# requires. A linker that drops libraries which nothing before them needs
# would otherwise drop -lm before the archive that calls sqrtf.
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
  # Highway's objects are part of the library.
  install(FILES ${SWITCHYARD_HIGHWAY_DIR}/LICENSE RENAME LICENSE.highway
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT core)
endif()

# CMake: find_package(switchyard) defines switchyard::switchyard and, where
# installed or requested as COMPONENTS, switchyard::device and switchyard::c.
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
