#!/bin/bash
# check.sh WHAT, with the settings of CMakeLists.txt in the environment.
# Installs the library, or takes it into another project, and runs a consumer.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${CMAKE:?}" "${CXX:?}" "${NM:?}" "${SOURCE:?}" "${BUILD:?}" "${PREFIX:?}" "${WORK:?}" "${TBB:?}"
export CMAKE_GENERATOR CXX CXXFLAGS
# Only what this script names may be found.
unset CMAKE_PREFIX_PATH switchyard_DIR PKG_CONFIG_PATH CPATH LIBRARY_PATH

die() {
  echo "FAILED: $*" >&2
  exit 1
}

# build SOURCE_DIR CACHE_ARGS...: configures and builds in $WORK/build. Without
# optimization: what is tested is how things fit together.
build() {
  "$CMAKE" -S "$1" -B "$WORK/build" -DCMAKE_BUILD_TYPE=Debug "${@:2}"
  "$CMAKE" --build "$WORK/build"
}

# runs PROGRAM with|without: it says whether it has TBB's executor.
runs() {
  local output
  output=$("$1") || die "$1 fails: $output"
  [[ $output == *", $2 TBB" ]] || die "$1 prints '$output', not '$2 TBB'"
  echo "$output"
}

# needs PROGRAM LIBRARY: the dynamic linker looks for it.
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
    diff -r "$SOURCE/include" "$PREFIX/include"
    # Neither this source tree nor the build tree in what is installed.
    if grep -rIlF -e "$SOURCE/" -e "$BUILD" "$PREFIX"; then
      die "installed files name the source or build tree"
    fi
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
    PKG_CONFIG_PATH=$(dirname "$(find "$PREFIX" -name switchyard.pc)")
    export PKG_CONFIG_PATH
    # An installed tree may be moved: the files find themselves.
    [[ $("$PKG_CONFIG" --variable=prefix switchyard | xargs realpath) == "$(realpath "$PREFIX")" ]] ||
      die "switchyard.pc has a wrong prefix"
    for static in "" --static; do
      # shellcheck disable=SC2086,SC2046
      "$CXX" $CXXFLAGS -std=c++17 -o "$WORK/consumer" "$here/consumer/main.cc" \
        $("$PKG_CONFIG" $static --cflags --libs switchyard)
      runs "$WORK/consumer" "$TBB"
    done
    ;;
  add_subdirectory)
    build "$here/subproject" "-DSWITCHYARD_SOURCE=$SOURCE"
    runs "$WORK/build/consumer" with
    # A part of another project, it installs nothing and brings no tests.
    "$CMAKE" --install "$WORK/build" --prefix "$WORK/prefix"
    [[ -z $(find "$WORK/prefix" -type f 2>/dev/null) ]] || die "a sub-project installs files"
    ;;
  parent_dependencies)
    build "$here/subproject" "-DSWITCHYARD_SOURCE=$SOURCE" -DPARENT_DEPENDENCIES=ON
    runs "$WORK/build/consumer" with
    if "$CMAKE" "$WORK/build" -DSWITCHYARD_INSTALL=ON >"$WORK/log" 2>&1; then
      die "installing with a parent's Highway should not configure"
    fi
    grep -q "SWITCHYARD_INSTALL" "$WORK/log" || die "$(cat "$WORK/log")"
    ;;
  without_tbb)
    # With folders of its own, as distributions have them.
    build "$SOURCE" -DSWITCHYARD_TBB=OFF -DCMAKE_DISABLE_FIND_PACKAGE_TBB=ON \
      -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=OFF \
      -DCMAKE_INSTALL_LIBDIR=lib/triple -DCMAKE_INSTALL_INCLUDEDIR=headers
    "$CMAKE" --install "$WORK/build" --prefix "$WORK/prefix"
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
      PKG_CONFIG_PATH=$WORK/prefix/lib/triple/pkgconfig
      export PKG_CONFIG_PATH
      libs=$("$PKG_CONFIG" --static --cflags --libs switchyard)
      [[ $libs != *-ltbb* ]] || die "switchyard.pc needs TBB: $libs"
      # shellcheck disable=SC2086
      "$CXX" $CXXFLAGS -std=c++17 -o "$WORK/with_pc" "$here/consumer/main.cc" $libs
      runs "$WORK/with_pc" without
    fi
    ;;
  *) die "unknown check '$1'" ;;
esac
