# Installs the component `device` of the package switchyard: the library, its headers, and the
# compiler and CMake function for shaders that are compiled at build time.
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/component.cmake)
switchyard_install(device switchyard_device ${CMAKE_CURRENT_LIST_DIR}/switchyard-device.pc.in)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/switchyard/device
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/switchyard COMPONENT device FILES_MATCHING PATTERN "*.h")
set(_libexec ${CMAKE_INSTALL_LIBEXECDIR}/switchyard)
if(SWITCHYARD_SHARED AND NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" AND NOT IS_ABSOLUTE "${_libexec}")
  file(RELATIVE_PATH _up /${_libexec} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(switchyard_metal_compiler PROPERTIES INSTALL_RPATH "$ORIGIN/${_up}")
endif()
install(TARGETS switchyard_metal_compiler EXPORT switchyard-device
  RUNTIME DESTINATION ${_libexec} COMPONENT device)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/shaders.cmake
  DESTINATION ${SWITCHYARD_CMAKE_DIR} COMPONENT device)
