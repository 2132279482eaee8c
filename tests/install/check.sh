#!/bin/bash
# check.sh WHAT: installs the library, or adds it to another project, and runs
# a consumer. CMakeLists.txt sets the environment.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${CMAKE:?}" "${CC:?}" "${CXX:?}" "${NM:?}" "${SOURCE:?}" "${BUILD:?}" "${PREFIX:?}" "${PROJECT:?}" \
  "${WORK:?}" "${TBB:?}" "${COMPONENTS:?}"
export CMAKE_GENERATOR CXX CXXFLAGS
VERSION=$(sed -nE 's/^project\(switchyard VERSION ([0-9.]+).*/\1/p' "$SOURCE/CMakeLists.txt")
DEVICE=OFF  # whether the build has the component
[[ " ${COMPONENTS//;/ } " != *" device "* ]] || DEVICE=ON
# Keeps the tools from finding a library that this script does not name.
unset CMAKE_PREFIX_PATH switchyard_DIR PKG_CONFIG_PATH CPATH LIBRARY_PATH LD_LIBRARY_PATH

die() {
  echo "FAILED: $*" >&2
  exit 1
}

# build SOURCE_DIR CACHE_ARGS...: configures and builds in $WORK/build. Does not
# optimise, because the test only checks that the parts fit together.
build() {
  "$CMAKE" -S "$1" -B "$WORK/build" -DCMAKE_BUILD_TYPE=Debug "${@:2}"
  "$CMAKE" --build "$WORK/build"
}

# project CACHE_ARGS...: configures and builds a project that builds the
# library itself, with kernels for one ISA. Several tests share the project's
# build folder. Options that a test does not set have their defaults. (In a
# Debug build, TBB's package adds a definition to all targets that link it.)
project() {
  rm -f "$PROJECT/CMakeCache.txt" "$PROJECT/device_consumer"
  "$CMAKE" -S "$here/subproject" -B "$PROJECT" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
    -DSWITCHYARD_OPTIMIZE_KERNELS=OFF \
    "-DCMAKE_CXX_FLAGS=$CXXFLAGS -DHWY_COMPILE_ONLY_STATIC" \
    "-DSWITCHYARD_SOURCE=$SOURCE" ${HIGHWAY:+"-DSWITCHYARD_HIGHWAY_DIR=$HIGHWAY"} "$@"
  "$CMAKE" --build "$PROJECT"
}

# configured SOURCE_DIR CACHE_ARGS...: only configures. Sets `command` to the
# commands that compile the kernel src/simd/gather.cc. Each configuration has
# one command, on a line of its own.
configured() {
  rm -rf "$WORK/build"
  "$CMAKE" -S "$1" -B "$WORK/build" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
    "-DSWITCHYARD_SOURCE=$SOURCE" ${HIGHWAY:+"-DSWITCHYARD_HIGHWAY_DIR=$HIGHWAY"} \
    -DSWITCHYARD_TBB="$([[ $TBB == with ]] && echo ON || echo OFF)" "${@:2}" >"$WORK/log" 2>&1 ||
    die "$* does not configure: $(cat "$WORK/log")"
  command=$(sed -nE 's/^ *"command": "(.*src\/simd\/gather\.cc)",$/\1/p' "$WORK/build/compile_commands.json" |
    sed 's/\\"/"/g')
  [[ -n $command ]] || die "no command that compiles gather.cc"
}
# last_is FLAG WHAT: checks that the last -O of each line of `command` is FLAG.
# (Compilers use the last -O.)
last_is() {
  local line last
  while read -r line; do
    last=$(grep -oE -- ' -O[^ ]*' <<<"$line" | tail -n 1 || true)
    [[ ${last# } == "$1" ]] || die "$2: not $1 but '${last# }': $line"
  done <<<"$command"
}
# inlines: runs `command`, which has to be a single line. Succeeds if the
# compiler optimises: then the object has no copy of a small inline function.
inlines() {
  (cd "$WORK/build" && mkdir -p "$(sed -E 's/.* -o ([^ ]+)\/[^ ]+ .*/\1/' <<<"$command")" && bash -c "$command")
  local symbols
  symbols=$("$NM" -C "$(find "$WORK/build" -name 'gather.cc.o')") || die "no object"
  [[ $symbols == *GatherRows* ]] || die "no kernel in the object: $symbols"
  [[ $symbols != *RecordTarget\(* ]]
}

# packages FOLDER: makes pkg-config find the packages in FOLDER.
packages() {
  PKG_CONFIG_PATH=$(dirname "$(find "$1" -name switchyard.pc)")
  export PKG_CONFIG_PATH
}

# exports LIBRARY COMPONENT: checks that the library exports exactly the names
# in the component's list. The list of core is generated from the headers.
exports() {
  local found listed
  found=$("$NM" -DC --defined-only "$1" | sed -E 's/^[0-9a-f]+ . //; s/\(.*//; s/@@.*//; s/\[abi:cxx11\]//' |
    grep -v '^SWITCHYARD' | sort -u)
  listed=$(sed -nE 's/^ +(global: )?((switchyard::|swy_)[^;]*);.*/\2/p' \
    "$(find "$PROJECT" -path "*/exports/$2.map")")
  [[ -n $found && -n $listed ]] || die "$1 exports nothing"
  local name pattern
  for name in $listed; do
    pattern=${name//\*/.*}
    [[ $name == *::\* || $name == swy_\* ]] || pattern=${name%\*}
    grep -qE "^$pattern$" <<<"$found" || die "$1 does not export $name"
    found=$(grep -vE "^$pattern$" <<<"$found" || true)
  done
  [[ -z $found ]] || die "$1 exports $found"
}

# no_device: checks that the project compiled no file of the device layer and
# cannot link it.
no_device() {
  grep -q 'src/simd/gather\.cc' "$PROJECT/compile_commands.json" || die "no list of what is compiled"
  if grep -E '"file": .*/device/src/' "$PROJECT/compile_commands.json"; then die "a sub-project compiles the device"; fi
  [[ ! -e $PROJECT/device_consumer ]] || die "a sub-project has switchyard::device"
}

# runs PROGRAM with|without: checks that PROGRAM prints "with TBB" or "without
# TBB". If the build has the device layer, also checks device_PROGRAM, which
# uses that layer.
runs() {
  local output program
  for program in "$1" "${1%/*}/device_${1##*/}"; do
    [[ $program == "$1" || $DEVICE == ON ]] || continue
    output=$("$program") || die "$program fails: $output"
    [[ $output == *", $2 TBB" ]] || die "$program prints '$output', not '$2 TBB'"
    echo "$output"
  done
}

# program FILE SOURCE PACKAGE PKG_CONFIG_ARGS...: compiles with pkg-config's
# flags alone.
program() {
  # shellcheck disable=SC2086,SC2046
  "$CXX" $CXXFLAGS -std=c++17 -o "$1" "$2" $("$PKG_CONFIG" "${@:4}" --cflags --libs "$3")
}
# compile PROGRAM PKG_CONFIG_ARGS...: compiles PROGRAM and device_PROGRAM.
compile() {
  program "$WORK/$1" "$here/consumer/main.cc" switchyard "${@:2}"
  [[ $DEVICE == OFF ]] || program "$WORK/device_$1" "$here/consumer/device.cc" switchyard-device "${@:2}"
}

# runs_readme PKG_CONFIG_ARGS...: runs the C++ examples of the README and of
# docs/functions.md, each in a function. The last status `s` of each example
# has to be ok. readme_layer.inc has the variables of the README's layer,
# which is the first example.
runs_readme() {
  cat "$SOURCE/README.md" "$SOURCE/docs/functions.md" | sed -n '/^```cpp$/,/^```$/p' |
    awk -v layer="$here/readme_layer.inc" '
    /^```cpp$/ { if (++n == 1) body[n] = "#include \"" layer "\"\n"; next }
    /^```$/ { body[n] = body[n] "  return s.ok() ? 0 : 1;\n"; next }
    /^(#include|using)/ { head = head $0 "\n"; next }
    { body[n] = body[n] "  " $0 "\n" }
    END {
      print "#include <algorithm>\n#include <cstdio>\n#include \"switchyard/expert_weights.h\""
      printf "#include \"switchyard/presets.h\"\n%s", head
      for (i = 1; i <= n; ++i) printf "int Example%d() {\n%s}\n", i, body[i]
      printf "int main() {\n  int failed = 0;\n"
      for (i = 1; i <= n; ++i) printf "  failed += Example%d();\n", i
      printf "  return failed;\n}\n"
    }' >"$WORK/readme.cc"
  grep -q 'RunExperts(' "$WORK/readme.cc" || die "no layer in the README"
  program "$WORK/readme" "$WORK/readme.cc" switchyard "$@"
  "$WORK/readme" || die "an example of the README or of docs/functions.md fails with exit code $?"
}

# compile_c PKG_CONFIG_ARGS...: links the C program with the C compiler. Also
# links with a flag that drops unneeded libraries, and with a flag that keeps
# them.
# (With sanitizers, Clang links its C++ run time only in its C++ compiler.)
compile_c() {
  [[ $CXXFLAGS != *-fsanitize* ]] || return 0
  local link output
  for link in -g -Wl,--as-needed -Wl,--no-as-needed; do
    # shellcheck disable=SC2046
    "$CC" -std=c99 -pedantic-errors -Wall -Werror -o "$WORK/consumer_c" "$here/consumer/main.c" \
      "$link" $("$PKG_CONFIG" --cflags --libs "$@" switchyard-c) || die "$CC $link does not link"
    output=$("$WORK/consumer_c") || die "the program of C fails: $output"
    [[ $output == *", in C" ]] || die "the program of C prints $output"
  done
}

# runs_engines LINK PKG_CONFIG_ARGS...: builds the C++ and the C engine of
# docs/engines.md with the linker flag LINK, and runs them. Both have to
# succeed and print the same text.
runs_engines() {
  local language output wanted=
  for language in cpp c; do
    sed -n "/^\`\`\`$language\$/,/^\`\`\`\$/{/^\`\`\`/!p}" "$SOURCE/docs/engines.md" >"$WORK/engine.$language"
    grep -qiE 'run_?experts\(' "$WORK/engine.$language" || die "no engine in $language in docs/engines.md"
  done
  CXXFLAGS+=" $1" program "$WORK/engine" "$WORK/engine.cpp" switchyard "${@:2}"
  wanted=$("$WORK/engine") || die "the engine in C++ fails: $wanted"
  [[ $wanted =~ ^[0-9]+\.[0-9]+$ ]] || die "the engine in C++ prints $wanted"
  [[ $CXXFLAGS != *-fsanitize* ]] || return 0  # see compile_c
  # shellcheck disable=SC2046
  "$CC" -std=c99 -pedantic-errors -Wall -Werror -o "$WORK/engine_c" "$WORK/engine.c" "$1" -pthread \
    $("$PKG_CONFIG" --cflags --libs "${@:2}" switchyard-c) || die "$CC $1 does not link the engine"
  output=$("$WORK/engine_c") || die "the engine in C fails: $output"
  [[ $output == "$wanted" ]] || die "the engine in C prints $output, that in C++ $wanted"
}

# runs_recipe FILE: runs the program of a recipe, which has to print the output
# that docs/cookbook.md shows.
runs_recipe() {
  [[ -f $WORK/$1.out ]] || die "docs/cookbook.md shows no output of $1"
  (cd "$WORK" && "build/${1%.*}") >"$WORK/output" || die "the cookbook's $1 fails with exit code $?"
  diff "$WORK/$1.out" "$WORK/output" || die "$1: < output in docs/cookbook.md, > output of the program"
  echo "$1: $(cat "$WORK/output")"
}

# needs PROGRAM LIBRARY: succeeds if the program needs the shared library.
needs() {
  local dynamic
  dynamic=$(readelf -d "$1") || die "readelf cannot read $1"
  [[ $dynamic == *"[lib$2.so"* ]]
}

rm -rf "$WORK"
mkdir -p "$WORK"
case $1 in
  install)
    rm -rf "$PREFIX"
    "$CMAKE" --install "$BUILD" ${CONFIG:+--config "$CONFIG"} --prefix "$PREFIX"
    # Includes every header of all components.
    mkdir "$WORK/include"
    cp -r "$SOURCE"/include/* "$WORK/include"
    [[ $DEVICE == OFF ]] || cp -r "$SOURCE"/device/include/* "$WORK/include"
    diff -r "$WORK/include" "$PREFIX/include"
    [[ $DEVICE == ON || -z $(cd "$PREFIX" && find . -path '*device*') ]] || die "a device is installed without one"
    # Engines that only want kernels must not link Metal.
    archive=$(find "$PREFIX" -name libswitchyard.a)
    symbols=$("$NM" -C "$archive") || die "$NM cannot read $archive"
    if grep "switchyard::device" <<<"$symbols"; then die "$archive has a device"; fi
    # Installed files must not name this source tree or the build tree.
    if grep -rIlF -e "$SOURCE/" -e "$BUILD" "$PREFIX"; then
      die "installed files name the source or build tree"
    fi
    ;;
  plain)
    # Configures a fresh clone on a machine with only Highway and TBB.
    absent=()
    for package in $(cat "$SOURCE"/{tests,examples,programs,tools,bench,fuzz}{,/*}/CMakeLists.txt |
      grep -oE 'find_package\(\w+' | sed 's/.*(//' | sort -u); do
      absent+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON")
    done
    ((${#absent[@]} >= 3)) || die "packages to hide: ${absent[*]}"
    "$CMAKE" -S "$SOURCE" -B "$WORK/build" ${HIGHWAY:+"-DSWITCHYARD_HIGHWAY_DIR=$HIGHWAY"} \
      -DSWITCHYARD_TBB="$([[ $TBB == with ]] && echo ON || echo OFF)" "${absent[@]}"
    grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=Release$' "$WORK/build/CMakeCache.txt" || die "not Release"
    # says TEXT CACHE_ARGS...: checks that configuring fails and that the
    # message names the missing packages and the remedy.
    says() {
      local log
      log=$("$CMAKE" -S "$SOURCE" -B "$WORK/missing" "${@:2}" 2>&1) && die "configures with ${*:2}"
      [[ $(tr -s ' \n' ' ' <<<"$log") == *"$1"* ]] || die "not '$1' but: $log"
      rm -rf "$WORK/missing"
    }
    says "Missing, by Debian's names: libgtest-dev nlohmann-json3-dev libcli11-dev. scripts/setup.sh packages" \
      ${HIGHWAY:+"-DSWITCHYARD_HIGHWAY_DIR=$HIGHWAY"} -DSWITCHYARD_TBB=OFF \
      -DSWITCHYARD_BUILD_TESTS=ON -DSWITCHYARD_BUILD_TOOLS=ON "${absent[@]}"
    says "configure with -DSWITCHYARD_HIGHWAY_DIR=" -DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON
    ;;
  optimized)
    # Kernels are optimised wherever the build sets no -O itself. The test
    # compiles a single kernel.
    CXXFLAGS=$(sed -E 's/(^| )-(O|fsanitize)[^ ]*//g' <<<"$CXXFLAGS")
    one_isa="-DCMAKE_CXX_FLAGS=$CXXFLAGS -DHWY_COMPILE_ONLY_STATIC"
    project=$here/subproject
    for way in FETCH_CONTENT=OFF FETCH_CONTENT=ON; do
      configured "$project" "-D$way" "$one_isa"
      last_is -O3 "$way, no build type"
    done
    inlines || die "without a build type the code is not optimised"
    configured "$project" "$one_isa" -DSWITCHYARD_OPTIMIZE_KERNELS=OFF
    last_is "" "switched off"
    ! inlines || die "switched off, the code is optimised: the test finds nothing"
    configured "$project" "$one_isa" -DCMAKE_BUILD_TYPE=Debug
    last_is -O3 Debug
    inlines || die "in Debug the code is not optimised"
    configured "$project" "$one_isa" -DCMAKE_BUILD_TYPE=Debug -DSWITCHYARD_OPTIMIZE_KERNELS=OFF
    last_is "" "Debug, switched off"
    ! inlines || die "in Debug, switched off, the code is optimised"
    configured "$project" -DCMAKE_BUILD_TYPE=Debug '-DCMAKE_CXX_FLAGS_DEBUG=-g -O0'
    last_is -O3 "Debug as -g -O0"
    configured "$project" "-DCMAKE_CXX_FLAGS=-fsanitize=address"
    last_is -O1 "with a sanitizer"
    configured "$SOURCE" -DCMAKE_BUILD_TYPE=Debug
    last_is -O3 "Debug, not a sub-project"
    [[ $command == *" -Wall "* ]] || die "no warnings: $command"
    # An -O that the user or the parent project sets is kept.
    configured "$project" "-DCMAKE_CXX_FLAGS=$CXXFLAGS -O0"
    last_is -O0 "CMAKE_CXX_FLAGS"
    configured "$project" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-Og
    last_is -Og "CMAKE_CXX_FLAGS_DEBUG"
    configured "$project" "-DPARENT_OPTIONS=-O1"
    last_is -O1 "the parent's add_compile_options"
    configured "$project" -DCMAKE_BUILD_TYPE=RelWithDebInfo
    last_is -O2 RelWithDebInfo
    if command -v ninja >/dev/null; then
      configured "$project" -G "Ninja Multi-Config" "-DCMAKE_CONFIGURATION_TYPES=Debug;RelWithDebInfo;MinSizeRel"
      all=$command
      for pair in Debug:-O3 RelWithDebInfo:-O2 MinSizeRel:-Os; do
        command=$(grep -F "CMAKE_INTDIR=\"${pair%:*}\"" <<<"${all//\\\"/\"}" || grep -F "/${pair%:*}/" <<<"$all") ||
          die "no ${pair%:*} in $all"
        last_is "${pair#*:}" "Ninja Multi-Config, ${pair%:*}"
      done
    fi
    # A project's build log shows the project's warnings only.
    configured "$project"
    [[ $command == *" -w "* && $command != *" -Wall "* ]] || die "warnings: $command"
    grep -q -- "-isystem $SOURCE/include .*consumer/main.cc" "$WORK/build/compile_commands.json" ||
      die "headers' warnings: $(grep consumer/main.cc "$WORK/build/compile_commands.json")"
    configured "$project" -DSWITCHYARD_WERROR=ON
    [[ $command == *" -Wall "*" -Werror "* && $command != *" -w "* ]] || die "no warnings: $command"
    ;;
  components)
    # Together the components install every file exactly once, and the first
    # component works alone.
    for component in ${COMPONENTS//;/ }; do
      "$CMAKE" --install "$BUILD" ${CONFIG:+--config "$CONFIG"} --component "$component" \
        --prefix "$WORK/$component"
    done
    diff <(cd "$WORK" && for component in ${COMPONENTS//;/ }; do
      (cd "$component" && find . -type f); done | sort) \
      <(cd "$PREFIX" && find . -type f ! -path './bin/*' | sort)
    [[ -z $(cd "$WORK/core" && find . -path '*device*') ]] || die "the core has files of a device"
    if [[ -x $PKG_CONFIG ]]; then
      packages "$WORK/core"
      program "$WORK/core_consumer" "$here/consumer/main.cc" switchyard
      "$WORK/core_consumer"
    fi
    cat >"$WORK/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(parts LANGUAGES CXX)
find_package(switchyard 0.2 REQUIRED COMPONENTS core OPTIONAL_COMPONENTS device)
if(switchyard_device_FOUND OR TARGET switchyard::device OR NOT TARGET switchyard::switchyard)
  message(FATAL_ERROR "not what is installed")
endif()
find_package(switchyard 0.2 QUIET COMPONENTS device)
if(switchyard_FOUND)
  message(FATAL_ERROR "found without the component that is asked for")
endif()
if(NOT switchyard_NOT_FOUND_MESSAGE MATCHES "No component 'device' .* there are core[.]")
  message(FATAL_ERROR "does not say why: ${switchyard_NOT_FOUND_MESSAGE}")
endif()
END
    "$CMAKE" -S "$WORK" -B "$WORK/build" "-DCMAKE_PREFIX_PATH=$WORK/core"
    ;;
  find_package)
    build "$here/consumer" "-DCMAKE_PREFIX_PATH=$PREFIX"
    runs "$WORK/build/consumer" "$TBB"
    if [[ $TBB == with ]]; then
      needs "$WORK/build/consumer" tbb || die "the consumer does not link TBB"
    fi
    ;;
  pkg_config)
    [[ -x $PKG_CONFIG ]] || die "pkg-config is not installed"
    packages "$PREFIX"
    # An installed tree may be moved, because its files use relative paths.
    [[ $("$PKG_CONFIG" --variable=prefix switchyard | xargs realpath) == "$(realpath "$PREFIX")" ]] ||
      die "switchyard.pc has a wrong prefix"
    for static in --print-errors --static; do
      compile consumer $static
      runs "$WORK/consumer" "$TBB"
      compile_c $static
    done
    runs_readme
    runs_engines -g
    ;;
  cookbook)
    # Leaves out the recipes in Rust and in Python, because the tests of the
    # crate and of the Python package run them.
    awk -v to="$WORK" -f "$here/blocks.awk" "$SOURCE/docs/cookbook.md"
    build "$WORK" "-DCMAKE_PREFIX_PATH=$PREFIX"  # by the page's CMakeLists.txt
    runs_recipe layer.cc
    packages "$PREFIX"
    for recipe in $(cd "$WORK" && ls -- *.cc *.c); do
      flags="-Wall -Wextra -Werror"
      if grep -q '<omp\.h>' "$WORK/$recipe"; then
        flags+=" -fopenmp"
        "$CXX" -fopenmp -x c++ -o /dev/null - <<<'int main() {}' ||
          { echo "No OpenMP: $recipe is not tested"; continue; }
      fi
      case $recipe in
        layer.cc) continue ;;
        *.cc) CXXFLAGS+=" $flags" program "$WORK/build/${recipe%.*}" "$WORK/$recipe" switchyard ;;
        *.c)
          [[ $CXXFLAGS != *-fsanitize* ]] || continue  # see compile_c
          # shellcheck disable=SC2046,SC2086
          "$CC" -std=c99 -pedantic-errors $flags -o "$WORK/build/${recipe%.*}" "$WORK/$recipe" \
            $("$PKG_CONFIG" --cflags --libs switchyard-c) || die "$CC does not link $recipe"
          ;;
      esac
      runs_recipe "$recipe"
    done
    ;;
  add_subdirectory)
    DEVICE=OFF
    project
    runs "$PROJECT/consumer" with
    no_device
    # As part of another project, the library installs nothing and adds no
    # tests.
    "$CMAKE" --install "$PROJECT" --prefix "$WORK/prefix"
    [[ -z $(find "$WORK/prefix" -type f 2>/dev/null) ]] || die "a sub-project installs files"
    ;;
  fetch_content)
    DEVICE=OFF
    project -DFETCH_CONTENT=ON
    runs "$PROJECT/consumer" with
    no_device
    ;;
  parent_dependencies)
    project -DPARENT_DEPENDENCIES=ON "-DSWITCHYARD_DEVICE=$DEVICE"
    runs "$PROJECT/consumer" with
    if "$CMAKE" "$PROJECT" -DSWITCHYARD_INSTALL=ON >"$WORK/log" 2>&1; then
      die "installing with a parent's Highway should not configure"
    fi
    grep -q "SWITCHYARD_INSTALL" "$WORK/log" || die "$(cat "$WORK/log")"
    ;;
  without_tbb)
    # Installs to folders with other names, as distributions do.
    project -DSWITCHYARD_TBB=OFF -DCMAKE_DISABLE_FIND_PACKAGE_TBB=ON -DSWITCHYARD_INSTALL=ON \
      "-DSWITCHYARD_DEVICE=$DEVICE" -DCMAKE_INSTALL_LIBDIR=lib/triple -DCMAKE_INSTALL_INCLUDEDIR=headers
    "$CMAKE" --install "$PROJECT" --prefix "$WORK/prefix"
    archive=$WORK/prefix/lib/triple/libswitchyard.a
    symbols=$("$NM" -C "$archive") || die "$NM cannot read $archive"
    grep -q MakeTbbExecutor <<<"$symbols" || die "MakeTbbExecutor is missing"
    if grep "tbb::" <<<"$symbols"; then die "$archive needs TBB"; fi
    [[ -f $WORK/prefix/headers/switchyard/activate.h ]] || die "headers are elsewhere"

    "$CMAKE" -S "$here/consumer" -B "$WORK/consumer" -DCMAKE_BUILD_TYPE=Debug \
      "-Dswitchyard_DIR=$WORK/prefix/lib/triple/cmake/switchyard" \
      -DCMAKE_DISABLE_FIND_PACKAGE_TBB=ON
    "$CMAKE" --build "$WORK/consumer"
    runs "$WORK/consumer/consumer" without
    if needs "$WORK/consumer/consumer" tbb; then die "the consumer links TBB"; fi
    if [[ -x $PKG_CONFIG ]]; then
      packages "$WORK/prefix"
      libs=$("$PKG_CONFIG" --static --cflags --libs switchyard)
      [[ $libs != *-ltbb* ]] || die "switchyard.pc needs TBB: $libs"
      compile with_pc --static
      runs "$WORK/with_pc" without
      compile_c
      runs_readme
      runs_engines -g
    fi
    ;;
  shared)
    # Configures a shared library, as distributions do.
    project -DBUILD_SHARED_LIBS=ON -DSWITCHYARD_INSTALL=ON "-DSWITCHYARD_DEVICE=$DEVICE" "-DSWITCHYARD_TBB=$([[ $TBB == with ]] && echo ON || echo OFF)"
    runs "$PROJECT/consumer" "$TBB"
    needs "$PROJECT/consumer" switchyard || die "the consumer links an archive"
    "$CMAKE" --install "$PROJECT" --prefix "$WORK/prefix"
    for component in ${COMPONENTS//;/ }; do
      library=libswitchyard_$component.so
      [[ $component != core ]] || library=libswitchyard.so
      library=$(find "$WORK/prefix" -name "$library")
      [[ -n $library ]] || die "no shared library of $component"
      [[ $(readelf -d "$library") == *"soname: [${library##*/}.${VERSION%.*}]"* ]] ||
        die "$library has another SONAME"
      exports "$library" "$component"
      [[ $component != c ]] ||
        bash "$SOURCE/tests/c/check_symbols.sh" "$NM" "$SOURCE/tests/c/layout.txt" "$library"
    done
    # The export list must not lack a kernel: it has all functions that the
    # archive offers to other files.
    public() { sed -nE 's/^[0-9a-f]+ T (switchyard::\w+)\(.*/\1/p' | sort -u; }
    diff <("$NM" -C "$BUILD/libswitchyard.a" | public) \
      <("$NM" -DC "$(find "$WORK/prefix" -name libswitchyard.so)" | sed 's/@@SWITCHYARD.*//' | public) ||
      die "functions: < of the archive, > that libswitchyard.so exports"
    # A shared library's dependencies are private.
    if [[ -x $PKG_CONFIG ]]; then
      packages "$WORK/prefix"
      [[ $("$PKG_CONFIG" --libs switchyard) != *-lhwy* ]] || die "switchyard.pc names Highway"
      LD_LIBRARY_PATH=$(dirname "$library")
      export LD_LIBRARY_PATH
      compile with_pc
      runs "$WORK/with_pc" "$TBB"
      compile_c
    fi
    ;;
  deb)
    # Unpacks the package that users get. Its files have to work from the
    # unpacked folder.
    (cd "$WORK" && cpack --config "$BUILD/CPackConfig.cmake" ${CONFIG:+-C "$CONFIG"} -B "$WORK")
    package=$(find "$WORK" -maxdepth 1 -name 'libswitchyard-dev_*.deb')
    [[ -n $package ]] || die "no package"
    dpkg-deb -f "$package" Depends | grep -qE 'libhwy-dev' || die "it does not depend on Highway"
    [[ $TBB == without || $(dpkg-deb -f "$package" Depends) == *libtbb-dev* ]] ||
      die "it does not depend on TBB"
    dpkg-deb -x "$package" "$WORK/root"
    [[ -f $WORK/root/usr/share/doc/libswitchyard-dev/copyright ]] || die "no copyright file"
    if [[ -x $BUILD/tools/swy ]]; then
      version=$("$WORK/root/usr/bin/swy" --version) || die "the package's swy does not run"
      [[ $version == *"$VERSION"* ]] || die "swy --version prints $version"
      if command -v dpkg-shlibdeps >/dev/null; then
        [[ $(dpkg-deb -f "$package" Depends) == *libstdc++6* ]] ||
          die "it does not depend on what swy is linked with"
      fi
    fi
    packages "$WORK/root"
    compile consumer
    runs "$WORK/consumer" "$TBB"
    compile_c
    ;;
  static)
    packages "$PREFIX"
    CXXFLAGS+=" -static" program "$WORK/consumer" "$here/consumer/main.cc" switchyard --static
    file=$(ldd "$WORK/consumer" 2>&1) && die "not static: $file"
    "$WORK/consumer"
    runs_engines -static --static
    for file in engine engine_c; do
      ! ldd "$WORK/$file" >/dev/null 2>&1 || die "$file is not static"
    done
    ;;
  *) die "unknown check '$1'" ;;
esac
