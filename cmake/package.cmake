# `cpack` in the build folder makes the Debian package libswitchyard-dev. The
# package has all components, and swy if it is built. With
# -DCMAKE_INSTALL_PREFIX=/usr, the libraries go to Debian's folder for libraries.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME libswitchyard-dev)
set(CPACK_PACKAGE_CONTACT "The Switchyard Authors <switchyard@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_COMPONENTS_ALL ${SWITCHYARD_COMPONENTS} debian)
if(SWITCHYARD_BUILD_TOOLS)
  list(APPEND CPACK_COMPONENTS_ALL tools)
endif()
if(SWITCHYARD_BUILD_TOOLS OR SWITCHYARD_DEVICE)
  # Lists the shared libraries that programs need, in the versions with which the
  # programs were linked.
  find_program(SWITCHYARD_SHLIBDEPS dpkg-shlibdeps)
  if(SWITCHYARD_SHLIBDEPS)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  endif()
endif()
set(CPACK_DEBIAN_PACKAGE_NAME libswitchyard-dev)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(_depends "")
if(NOT SWITCHYARD_HIGHWAY_DIR)
  list(APPEND _depends "libhwy-dev (>= 1.0.3)")
endif()
if(SWITCHYARD_TBB)
  list(APPEND _depends "libtbb-dev (>= 2021)")
endif()
list(JOIN _depends ", " CPACK_DEBIAN_PACKAGE_DEPENDS)
# Installs the licence where Debian expects it, only in the Debian package.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright
  DESTINATION share/doc/libswitchyard-dev COMPONENT debian EXCLUDE_FROM_ALL)
if(SWITCHYARD_TOP_LEVEL)
  include(CPack)
endif()
