# What the libraries hide, and, shared, what they export and by what version.

# switchyard_linkage(COMPONENT TARGET MAP): for a target of the calling folder. MAP, CMake's
# template of a version script, lists the symbols that a shared library exports.
function(switchyard_linkage component target map)
  # Hidden in the archive itself: a shared object that links it exports none of
  # it, and two of those in a process each have their own.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(NOT SWITCHYARD_SHARED)
    return()
  endif()
  # MAP is the one version of symbols, because a 0.x minor version may change the
  # API. Kernels are compiled as for an archive; the other sources have MAP
  # instead of an attribute on each declaration.
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "^src/simd/|TARGET_OBJECTS")
  if(component STREQUAL core)
    list(APPEND sources src/simd/targets.cc)
  endif()
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -fvisibility=default)
  set(exports ${PROJECT_BINARY_DIR}/exports/${component}.map)
  set(version ${switchyard_VERSION_MAJOR}.${switchyard_VERSION_MINOR})
  configure_file(${map} ${exports} @ONLY)
  set_target_properties(${target} PROPERTIES DEFINE_SYMBOL ""
    VERSION ${switchyard_VERSION} SOVERSION ${version} LINK_DEPENDS ${exports})
  target_link_options(${target} PRIVATE "LINKER:--version-script=${exports}")
endfunction()

# switchyard_exports(OUT HEADER...): the functions that headers declare at the beginning of
# a line, with the result in front, as lines of a version script.
function(switchyard_exports out)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  set(names "")
  foreach(header IN LISTS ARGN)
    file(STRINGS ${header} lines REGEX "^[A-Za-z][A-Za-z_:<>&* ]* [A-Z][A-Za-z]+[(]")
    foreach(line IN LISTS lines)
      if(NOT line MATCHES "^(inline|constexpr) " AND line MATCHES " ([A-Z][A-Za-z]+)[(]")
        list(APPEND names ${CMAKE_MATCH_1})
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES names)
  list(TRANSFORM names REPLACE "(.+)" "      switchyard::\\1*;\n")
  string(CONCAT functions ${names})
  set(${out} "${functions}" PARENT_SCOPE)
endfunction()
