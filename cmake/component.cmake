# Installs a component of the library: the kernels (core), the C ABI (c), or
# the device layer, which may be built alone.
include(GNUInstallDirs)
set(SWITCHYARD_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/switchyard)

# Makes the .pc files compute the prefix from their own place, because
# `cmake --install --prefix` may change the prefix. If a folder of GNUInstallDirs
# is absolute, the .pc files contain the folder's path instead.
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

# switchyard_pkg_config(FILE COMPONENT): configures FILE.in and installs it as
# FILE.
function(switchyard_pkg_config file component)
  get_filename_component(name ${file} NAME_WLE)
  configure_file(${file} ${PROJECT_BINARY_DIR}/${name} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
endfunction()

# switchyard_install(COMPONENT TARGET PC): installs the library TARGET, the CMake
# file that defines it for find_package(switchyard), and the pkg-config file PC.
function(switchyard_install component target pc)
  install(TARGETS ${target} EXPORT switchyard-${component}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT switchyard-${component} NAMESPACE switchyard::
    DESTINATION ${SWITCHYARD_CMAKE_DIR} COMPONENT ${component})
  switchyard_pkg_config(${pc} ${component})
endfunction()
