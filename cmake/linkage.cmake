# Hides the symbols of the libraries. Shared libraries export versioned symbols.

# switchyard_linkage(COMPONENT TARGET MAP): hides and versions the symbols of a
# target of the calling folder. MAP is the template of a linker version script,
# which lists the symbols that a shared library exports.
function(switchyard_linkage component target map)
  # Hides the symbols even in a static library, so that a shared object that links
  # it does not export them. If a process has two such shared objects, each uses
  # its own copy of the library.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(NOT SWITCHYARD_SHARED)
    return()
  endif()
  # Gives all symbols the version MAJOR.MINOR, because a minor version of 0.x may
  # change the API. Makes the symbols of all sources except the kernels visible. MAP
  # then chooses the exports, so that no declaration needs an attribute. The kernels
  # stay hidden, as in a static library.
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

# switchyard_exports(OUT HEADER...): lists the functions in the headers as lines
# of a version script. It finds a declaration only if its return type is at the
# beginning of a line.
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
  set(functions "")
  foreach(name IN LISTS names)
    string(APPEND functions "      switchyard::${name}*;\n")
  endforeach()
  set(${out} "${functions}" PARENT_SCOPE)
endfunction()
