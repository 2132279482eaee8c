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

# runs PROGRAM with|without: it says whether it has TBB's executor. So does the
# same program with device_ in front, which uses the device layer.
runs() {
  local output program
  for program in "$1" "${1%/*}/device_${1##*/}"; do
    output=$("$program") || die "$program fails: $output"
    [[ $output == *", $2 TBB" ]] || die "$program prints '$output', not '$2 TBB'"
    echo "$output"
  done
}

# compile PROGRAM PKG_CONFIG_ARGS...: and device_PROGRAM, by pkg-config alone.
compile() {
  # shellcheck disable=SC2086,SC2046
  "$CXX" $CXXFLAGS -std=c++17 -o "$WORK/$1" "$here/consumer/main.cc" \
    $("$PKG_CONFIG" "${@:2}" --cflags --libs switchyard)
  # shellcheck disable=SC2086,SC2046
  "$CXX" $CXXFLAGS -std=c++17 -o "$WORK/device_$1" "$here/consumer/device.cc" \
    $("$PKG_CONFIG" "${@:2}" --cflags --libs switchyard-device)
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
    # An engine that wants kernels links no Metal.
    archive=$(find "$PREFIX" -name libswitchyard.a)
    symbols=$("$NM" -C "$archive") || die "$NM cannot read $archive"
    if grep "switchyard::device" <<<"$symbols"; then die "$archive has a device"; fi
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
    for static in --print-errors --static; do
      compile consumer $static
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
      compile with_pc --static
      runs "$WORK/with_pc" without
    fi
    ;;
  *) die "unknown check '$1'" ;;
esac
