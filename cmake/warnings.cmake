# Warnings and sanitizers, on our own targets only (PRIVATE, never exported).
add_library(switchyard_warnings INTERFACE)
target_compile_options(switchyard_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${SWITCHYARD_WERROR}>:-Werror>)
if(SWITCHYARD_SANITIZE)
  target_compile_options(switchyard_warnings INTERFACE
    -fsanitize=${SWITCHYARD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(switchyard_warnings INTERFACE -fsanitize=${SWITCHYARD_SANITIZE})
endif()
