# The symbols that each component's library exports.
set(SWITCHYARD_COMPONENTS "")
foreach(component IN ITEMS core device c)
  set(target switchyard_${component})
  if(component STREQUAL core)
    set(target switchyard)
  endif()
  if(NOT TARGET ${target})
    continue()
  endif()
  list(APPEND SWITCHYARD_COMPONENTS ${component})
  # Hidden in the archive itself: a shared object that links it exports none of
  # it, and two of those in a process each have their own.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(NOT SWITCHYARD_SHARED)
    continue()
  endif()

  # The list in exports/ is the one version of symbols: a 0.x minor version may
  # change the API. Kernels are compiled as for an archive; the other sources
  # have that list instead of an attribute on each declaration.
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  list(FILTER sources EXCLUDE REGEX "^src/simd/|TARGET_OBJECTS")
  if(component STREQUAL core)
    list(APPEND sources src/simd/targets.cc)
  endif()
  list(TRANSFORM sources PREPEND ${folder}/ REGEX "^[^/]")
  set_source_files_properties(${sources} TARGET_DIRECTORY ${target}
    PROPERTIES COMPILE_OPTIONS -fvisibility=default)
  if(component STREQUAL core)
    # Declared at the beginning of a line, with the result in front.
    file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/switchyard/*.h)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
    set(names "")
    foreach(header IN LISTS headers)
      file(STRINGS ${header} lines REGEX "^[A-Za-z][A-Za-z_:<>&* ]* [A-Z][A-Za-z]+[(]")
      foreach(line IN LISTS lines)
        if(NOT line MATCHES "^(inline|constexpr) " AND line MATCHES " ([A-Z][A-Za-z]+)[(]")
          list(APPEND names ${CMAKE_MATCH_1})
        endif()
      endforeach()
    endforeach()
    list(REMOVE_DUPLICATES names)
    set(functions "")
    foreach(name IN LISTS names)
      string(APPEND functions "      switchyard::${name}*;\n")
    endforeach()
  endif()
  set(exports ${PROJECT_BINARY_DIR}/exports/${component}.map)
  set(version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  configure_file(cmake/exports/${component}.map.in ${exports} @ONLY)
  set_target_properties(${target} PROPERTIES DEFINE_SYMBOL ""
    VERSION ${PROJECT_VERSION} SOVERSION ${version} LINK_DEPENDS ${exports})
  target_link_options(${target} PRIVATE "LINKER:--version-script=${exports}")
endforeach()
