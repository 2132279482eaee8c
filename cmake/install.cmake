# `cmake --install` puts in place headers, the libraries, a CMake package and
# pkg-config files, a component of each library. Every destination is relative
# to the prefix given at install time, and nothing in the files names the build
# tree.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

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

# pkg-config: the prefix is found from where the file lies, since `cmake
# --install --prefix` may move it; GNUInstallDirs may also be absolute.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(_pc_prefix ${CMAKE_INSTALL_PREFIX})
  set(_pc_libdir ${CMAKE_INSTALL_LIBDIR})
else()
  file(RELATIVE_PATH _up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" _up "${_up}")
  set(_pc_prefix "\${pcfiledir}/${_up}")
  set(_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(_pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
else()
  set(_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
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
  configure_file(${CMAKE_CURRENT_LIST_DIR}/switchyard-c-runtime.pc.in
    ${PROJECT_BINARY_DIR}/switchyard-c-runtime.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/switchyard-c-runtime.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT c)
endif()

set(_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/switchyard)
foreach(_component IN LISTS SWITCHYARD_COMPONENTS)
  set(_target switchyard_${_component})
  set(_pc switchyard-${_component})
  if(_component STREQUAL core)
    set(_target switchyard)
    set(_pc switchyard)
  endif()
  # The file by which the CMake package knows that the component is there.
  install(TARGETS ${_target} EXPORT switchyard-${_component}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${_component}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${_component}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT switchyard-${_component} NAMESPACE switchyard::
    DESTINATION ${_cmake_dir} COMPONENT ${_component})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${_pc}.pc.in
    ${PROJECT_BINARY_DIR}/${_pc}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${_pc}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${_component})
endforeach()

set(_include ${PROJECT_SOURCE_DIR}/include/switchyard)
install(DIRECTORY ${_include} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT core
  FILES_MATCHING PATTERN "*.h"
  PATTERN device EXCLUDE PATTERN c EXCLUDE PATTERN switchyard.h EXCLUDE)
if(SWITCHYARD_DEVICE)
  set(_libexec ${CMAKE_INSTALL_LIBEXECDIR}/switchyard)
  if(SWITCHYARD_SHARED AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" AND NOT IS_ABSOLUTE "${_libexec}")
    file(RELATIVE_PATH _up /${_libexec} /${CMAKE_INSTALL_LIBDIR})
    set_target_properties(switchyard_metal_compiler PROPERTIES INSTALL_RPATH "$ORIGIN/${_up}")
  endif()
  install(TARGETS switchyard_metal_compiler EXPORT switchyard-device
    RUNTIME DESTINATION ${_libexec} COMPONENT device)
  install(FILES ${CMAKE_CURRENT_LIST_DIR}/shaders.cmake
    DESTINATION ${_cmake_dir} COMPONENT device)
  install(DIRECTORY ${_include}/device
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/switchyard COMPONENT device
    FILES_MATCHING PATTERN "*.h")
endif()
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
  INSTALL_DESTINATION ${_cmake_dir})
# 0.x: a minor version may change the API.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/switchyardConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/switchyardConfig.cmake
  ${PROJECT_BINARY_DIR}/switchyardConfigVersion.cmake
  DESTINATION ${_cmake_dir} COMPONENT core)

include(${CMAKE_CURRENT_LIST_DIR}/package.cmake)
