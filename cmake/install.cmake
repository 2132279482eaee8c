# What `cmake --install` puts in place: headers, the libraries, a CMake package
# and pkg-config files. Every destination is relative to the prefix given at
# install time, and nothing in the files names the build tree.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# The installed files ask for Highway and TBB by package: they have to be
# packages, not targets that a parent project builds next to this one.
set(_dependencies hwy::hwy)
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

install(TARGETS switchyard switchyard_device EXPORT switchyardTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/switchyard
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# CMake: find_package(switchyard) -> switchyard::switchyard, switchyard::device
set(_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/switchyard)
install(EXPORT switchyardTargets NAMESPACE switchyard:: DESTINATION ${_cmake_dir})
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
  DESTINATION ${_cmake_dir})

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
set(_pc_requires "libhwy >= 1.0.3")
if(SWITCHYARD_TBB)
  string(APPEND _pc_requires ", tbb >= 2021")
endif()
foreach(_pc IN ITEMS switchyard switchyard-device)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${_pc}.pc.in
    ${PROJECT_BINARY_DIR}/${_pc}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${_pc}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
