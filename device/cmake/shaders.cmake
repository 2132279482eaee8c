# switchyard_add_shaders(TARGET FILE.metal... [OPTIONS -DNAME=VALUE -IFOLDER...]): compiles each
# file to FILE.metallib in this build folder when TARGET is built. In TARGET's sources, the macro
# SWITCHYARD_SHADERS is the path of that folder. Only the build needs Clang; the machine that runs
# the program does not.
function(switchyard_add_shaders target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OPTIONS")
  foreach(file IN LISTS arg_UNPARSED_ARGUMENTS)
    get_filename_component(file ${file} ABSOLUTE)
    get_filename_component(name ${file} NAME_WLE)
    set(library ${CMAKE_CURRENT_BINARY_DIR}/${name}.metallib)
    add_custom_command(OUTPUT ${library}
      COMMAND switchyard::metal_compiler ${arg_OPTIONS} -o ${library} -d ${library}.d
        -c ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/switchyard_shaders ${file}
      DEPENDS ${file} switchyard::metal_compiler DEPFILE ${library}.d
      COMMENT "Compiling ${name}.metal" VERBATIM)
    target_sources(${target} PRIVATE ${library})
  endforeach()
  target_compile_definitions(${target} PRIVATE SWITCHYARD_SHADERS="${CMAKE_CURRENT_BINARY_DIR}")
endfunction()
