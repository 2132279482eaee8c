#!/bin/bash
# From a fresh Debian 12 machine to a running example or a finished test run.
#
#   scripts/setup.sh run  [moe_layer's arguments]   build Release, run moe_layer
#   scripts/setup.sh test [cmake's arguments]       build everything, run all tests
#   scripts/setup.sh bench [--with-ggml] [--rounds N] [benchmark's arguments]
#                                                   build the benchmarks, run them N (7) times,
#                                                   report in build/bench.md;
#                                                   with ggml beside them, which takes minutes to build once
#   scripts/setup.sh soak MINUTES [seed]            build, run everything at random for so long
#   scripts/setup.sh aarch64                        cross-compile, compare the digests under QEMU
#   scripts/setup.sh fuzz [SECONDS [TARGET...]]     run each target of fuzz/ that long (30), or those named
#   scripts/setup.sh parity [parity.py's arguments] compare the presets with transformers' own routers,
#                                                   moe_layer with its layers;
#                                                   installs PyTorch in build/, gigabytes
#   scripts/setup.sh rust [cargo test's arguments]  install the library in build/rust, test the Rust crate with it
#   scripts/setup.sh engines [pytest's arguments]   build the Python package, run its tests with transformers;
#                                                   installs PyTorch in build/, gigabytes
#   scripts/setup.sh engines-ggml                   build the llama.cpp plug-in of integrations/ggml, run its
#                                                   tests; builds llama.cpp once, ten minutes
#   scripts/setup.sh packages [more packages]       only install what is missing
#
# Works from any folder. Missing packages are installed with apt, which needs
# root; with all of them there, nothing does. Everything made is in build/.
set -euo pipefail

readonly library_packages=(g++ cmake ninja-build libhwy-dev libtbb-dev)
# OpenCL: what Debian's CMake package of oneDNN insists on finding.
readonly example_packages=(libdnnl-dev ocl-icd-opencl-dev nlohmann-json3-dev libcli11-dev)
readonly bench_packages=(libbenchmark-dev python3)
readonly aarch64_packages=(g++-aarch64-linux-gnu libhwy-dev:arm64 libtbb-dev:arm64 qemu-user)
# libomp: what Clang's -fopenmp links. lld: 270 programs, each in a third of the time.
readonly fuzz_packages=(clang libclang-rt-dev libomp-dev lld)
readonly test_packages=(libgtest-dev pkg-config python3-venv)
readonly rust_packages=(rustc cargo pkg-config)
# Write the small checkpoints that the tests of moe_layer read.
readonly python_packages=('numpy>=1.24,<3' 'safetensors>=0.4,<1')
# What presets are compared with, and cite by line.
readonly parity_packages=('transformers==5.23.*' 'torch>=2.10,<3' 'numpy>=1.24,<3')
# What builds the Python package and tests it, beside those: accelerate is what
# transformers loads the parts of a model by.
readonly engines_packages=('scikit-build-core>=0.10,<2' 'pytest>=8,<10' 'accelerate>=1.10,<2')
# Its source package builds ggml for this machine, with headers and a CMake package.
readonly ggml_package='llama-cpp-python>=0.3.36,<0.4'
# Write the models that the plug-in is tested on, and run them.
readonly plugin_packages=('gguf>=0.17,<1' 'numpy>=1.24,<3' typing_extensions diskcache jinja2)

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/release
log=$root/build/setup.log
jobs=$(nproc)

die() {
  echo "setup.sh: $*" >&2
  exit 1
}

# step WHAT COMMAND...: a line with a dot every three seconds and the time it
# took. The output goes to the log, and to the terminal only if it fails.
ticker=
trap '[[ -z $ticker ]] || kill "$ticker" 2>/dev/null' EXIT
step() {
  local what=$1 started=$SECONDS status=0 lines
  shift
  lines=$(wc -l <"$log")
  printf '%s ' "$what"
  while sleep 3; do printf '.'; done &
  ticker=$!
  printf '\n== %s\n' "$what" >>"$log"
  "$@" >>"$log" 2>&1 </dev/null || status=$?
  kill "$ticker"
  wait "$ticker" 2>/dev/null || true
  ticker=
  if ((status != 0)); then
    printf ' failed\n'
    tail -n "+$((lines + 1))" "$log" | tail -n 25 >&2
    die "failed: $what (see $log)"
  fi
  printf ' %d s\n' $((SECONDS - started))
}

missing_packages() {
  local package
  for package in "$@"; do
    # A word for each architecture; one may be "not-installed".
    [[ " $(dpkg-query -W -f '${db:Status-Status} ' "$package" 2>/dev/null)" == *" installed "* ]] ||
      echo "$package"
  done
}

install_packages() {
  if ! command -v apt-get >/dev/null; then
    echo "No apt here: taking for granted what these Debian packages hold: $*"
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} > 0)) || return 0
  ((EUID == 0)) ||
    die "missing packages; as root: apt-get install --no-install-recommends ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # A third party's broken list is no reason to stop: the next step tells.
  step "Reading Debian's package lists" bash -c 'apt-get update || true'
  step "Installing ${missing[*]}" \
    apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}"
}

# install_python WHERE WHAT PIP_ARGUMENT...: a new Python environment in build/.
install_python() {
  local venv=$root/build/$1 python=/usr/bin/python3
  [[ -x $python ]] || python=python3
  step "Making a Python environment in build/$1" "$python" -m venv --clear "$venv"
  step "Installing $2 in it" \
    "$venv/bin/python3" -m pip install --disable-pip-version-check "${@:3}"
}

# A Python with safetensors and numpy, reused once it is complete.
make_venv() {
  "$root/build/venv/bin/python3" -c 'import numpy, safetensors.numpy' 2>/dev/null ||
    install_python venv "${python_packages[*]}" "${python_packages[@]}"
}

# The folder of ggml's CMake package; fails unless all of it is installed.
find_ggml() {
  "$root/build/ggml-venv/bin/python3" -c '
import importlib.metadata as m
print(next(f.locate().parent for f in m.files("llama-cpp-python") if f.name == "ggml-config.cmake"))' 2>/dev/null
}

make_ggml() {
  find_ggml >/dev/null ||
    install_python ggml-venv "$ggml_package from source" \
      --no-deps --no-binary llama-cpp-python "$ggml_package"
  find_ggml >/dev/null || die "$ggml_package installed no CMake package of ggml"
}

# A Python with llama.cpp and what models are written with, and llama.cpp's
# sources: ggml's internal headers are in no package.
make_plugin_venv() {
  make_ggml
  local venv=$root/build/ggml-test-venv packages version
  packages=$(dirname "$(dirname "$(dirname "$(find_ggml)")")")
  version=$(basename "$packages"/llama_cpp_python-*.dist-info .dist-info)
  ggml_source=$root/build/ggml-source/$version
  "$venv/bin/python3" -c 'import gguf, llama_cpp' 2>/dev/null || {
    install_python ggml-test-venv "${plugin_packages[*]}" "${plugin_packages[@]}"
    echo "$packages" >"$("$venv/bin/python3" -c 'import sysconfig as s; print(s.get_path("purelib"))')/ggml.pth"
  }
  [[ -d $ggml_source ]] || {
    mkdir -p "$root/build/ggml-source"
    step "Fetching the sources of $version" "$venv/bin/python3" -m pip download --no-deps \
      --no-binary llama-cpp-python --dest "$root/build/ggml-source" \
      "llama-cpp-python==${version#llama_cpp_python-}"
    step "Unpacking them" tar -xf "$ggml_source.tar.gz" -C "$root/build/ggml-source"
  }
}

make_parity() {
  "$root/build/parity-venv/bin/python3" -c 'import torch, transformers as t
assert t.__version__.startswith("5.23.")' 2>/dev/null ||
    install_python parity-venv "${parity_packages[*]}" "${parity_packages[@]}"
}

# The packages of parity, and those of the tests beside them.
make_engines() {
  make_parity
  local venv=$root/build/engines-venv python=/usr/bin/python3 shared
  [[ -x $python ]] || python=python3
  shared=$("$root/build/parity-venv/bin/python3" -c 'import sysconfig as s; print(s.get_path("purelib"))')
  "$venv/bin/python3" -c 'import accelerate, pytest, scikit_build_core, torch, transformers' 2>/dev/null && return
  step "Making a Python environment in build/engines-venv" "$python" -m venv --clear "$venv"
  echo "$shared" >"$("$venv/bin/python3" -c 'import sysconfig as s; print(s.get_path("purelib"))')/parity.pth"
  step "Installing ${engines_packages[*]}" \
    "$venv/bin/python3" -m pip install --disable-pip-version-check "${engines_packages[@]}"
}

configure() {
  step "Configuring build/release" cmake -S "$root" --preset release "$@"
}

compile() {
  echo "Compiling with $jobs jobs"
  cmake --build "$build" --parallel "$jobs" "$@"
}

# swy verify under QEMU: each ISA at vector lengths it has, or one for each of
# these if SWITCHYARD_SAMPLE is set. One thread, since threads have nothing to do
# with the ISA, and several ISAs at a time.
verify_aarch64() {
  local -A isas=([sve=off]=NEON [sve-max-vq=1]='SVE SVE2 SVE2_128'
    [sve-max-vq=2]='SVE SVE_256' [sve-max-vq=4]='SVE SVE2')
  local cpu isa
  for cpu in "${!isas[@]}"; do
    [[ -z ${SWITCHYARD_SAMPLE:-} ]] || isas[$cpu]=${isas[$cpu]##* }
    for isa in ${isas[$cpu]}; do printf '%s\0%s\0' "$cpu" "$isa"; done
  done | xargs -0 -n 2 -P "$jobs" bash -c '
    result=$(qemu-aarch64 -cpu "max,$1" "$0" verify --threads 1 --isa "$2") || exit
    printf "%-12s %s\n" "$1" "$result"' "$build/tools/swy" ||
    die "the digests differ on aarch64"
}

# fuzz_target NAME SECONDS: from the seeds in fuzz/corpus/ and what earlier runs
# have found. Prints a line, or the crash and the file with its input.
fuzz_target() {
  local name=$1 seconds=$2 found=$build/corpus/$1 out=$build/$1.log
  local seed=${SWITCHYARD_FUZZ_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
  mkdir -p "$found" "$build/crashes"
  printf '%-16s seed %-10s ' "$name" "$seed"
  if ! "$build/fuzz/${name}_fuzz" -seed="$seed" -max_total_time="$seconds" -timeout=30 \
    -len_control=0 -max_len=2048 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$build/crashes/$name-" \
    "$found" "$root/fuzz/corpus/$name" >"$out" 2>&1 </dev/null; then
    echo 'failed'
    grep -vE '^#|NEW_FUNC' "$out" | tail -n 60 >&2
    die "fuzz: $name failed (all of it in $out); its input: $(
      sed -n 's/.*Test unit written to //p' "$out" | tail -n 1)
  again: $build/fuzz/${name}_fuzz FILE"
  fi
  sed -nE "s/.*cov: ([0-9]+) ft: ([0-9]+) .*/\1 edges, \2 features/p" "$out" | tail -n 1 |
    sed "s/^/$(sed -nE 's/^stat::number_of_executed_units: *//p' "$out") runs, /"
}

# run_benchmarks [--rounds N] [benchmark's arguments]: a process for each kernel
# and shape, in the order that the program lists, then all of them again. Only a
# shape's contenders run between each other's samples, on the same data; and what
# a process is dealt for its life, such as pages, is dealt anew each round.
run_benchmarks() {
  local program=$build/bench/switchyard_bench out=$root/build/bench rounds=7 list round kernel
  if [[ ${1:-} == --rounds ]]; then
    [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "bench: --rounds: not a number above 0: ${2:-}"
    rounds=$2
    shift 2
  fi
  case " $*" in *' --help'* | *' -h'* | *' --benchmark_list_tests'*) exec "$program" "$@" ;; esac
  case " $*" in
    *' --benchmark_out'* | *aggregates_only*)
      die "bench: the report reads build/bench/*.json, with all repetitions: no other files here" ;;
  esac
  list=$("$program" "$@" --benchmark_list_tests) || exit
  rm -rf "$out"
  mkdir -p "$out"
  # Lines of kernel, shape and a pattern of its contenders' names.
  awk '{ shape = $0; gsub(/\/(iterations:[0-9]+|[a-z]+_time)/, "", shape)
         sub(/\/[^\/]*$/, "", shape)
         # Shapes that are held against each other.
         if (shape ~ /^route_(experts|rows)\//) sub(/\/[^\/]*$/, "", shape)
         if (!(shape in names)) order[++n] = shape
         names[shape] = names[shape] (shape in names ? "|" : "") $0 }
       END { for (i = 1; i <= n; ++i) { shape = kernel = order[i]; sub(/\/.*/, "", kernel)
               print kernel, shape, "^(" names[shape] ")$" } }' <<<"$list" >"$out/shapes"
  for ((round = 1; round <= rounds; ++round)); do
    for kernel in $(awk '!seen[$1]++ { print $1 }' "$out/shapes"); do
      step "Round $round of $rounds, $kernel" run_kernel "$kernel" "$round" "$@"
    done
  done
  python3 "$root/bench/report.py" "$out"/*.json >"$root/build/bench.md"
  sed -n '/^## Targets/,$p' "$root/build/bench.md"
  echo "The matrix: build/bench.md; in build/bench/ what each process timed"
}
run_kernel() {
  local kernel shape names number=0
  while read -r kernel shape names; do
    number=$((number + 1))
    [[ $kernel == "$1" ]] || continue
    "$build/bench/switchyard_bench" "${@:3}" "--benchmark_filter=$names" \
      "--benchmark_out=$root/build/bench/$(printf '%03d' "$number")-${shape//\//_}.$2.json" || return
  done <"$root/build/bench/shapes"
}

usage() {
  sed -nE '2,/^[^#]/s/^# ?//p' "${BASH_SOURCE[0]}"
}

command=${1:-}
(($# == 0)) || shift
{ mkdir -p "$root/build" && : >"$log"; } 2>/dev/null || die "cannot write to $root/build"
case $command in
  run)
    install_packages "${library_packages[@]}" "${example_packages[@]}"
    configure -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=ON
    compile --target moe_layer
    exec "$build/examples/moe_layer/moe_layer" "$@"
    ;;
  test)
    install_packages "${library_packages[@]}" "${example_packages[@]}" "${test_packages[@]}"
    make_venv
    configure -DSWITCHYARD_BUILD_TESTS=ON -DSWITCHYARD_BUILD_EXAMPLES=ON \
      "-DPython3_EXECUTABLE=$root/build/venv/bin/python3" "$@"
    compile
    ctest --test-dir "$build" --parallel "$jobs" --output-on-failure --progress --no-tests=error
    ;;
  bench)
    install_packages "${library_packages[@]}" "${example_packages[@]}" "${bench_packages[@]}"
    ggml=-Uggml_DIR # not that of an earlier run
    if [[ ${1:-} == --with-ggml ]]; then
      shift
      install_packages python3-venv
      make_ggml
      ggml=-Dggml_DIR=$(find_ggml)
    fi
    configure -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=OFF \
      -DSWITCHYARD_BUILD_BENCHMARKS=ON "$ggml"
    compile --target switchyard_bench
    run_benchmarks "$@"
    ;;
  soak)
    [[ ${1:-} =~ ^[0-9]+$ && $1 -gt 0 ]] || die "soak: for how many minutes?"
    install_packages "${library_packages[@]}" "${example_packages[@]}" "${test_packages[@]}"
    configure -DSWITCHYARD_BUILD_TESTS=ON -DSWITCHYARD_BUILD_EXAMPLES=OFF
    compile --target switchyard_soak
    exec "$build/tests/faults/switchyard_soak" $(($1 * 60)) "${@:2}"
    ;;
  aarch64)
    if ((EUID == 0)) && ! dpkg --print-foreign-architectures | grep -qx arm64; then
      step "Adding the arm64 architecture" dpkg --add-architecture arm64
    fi
    install_packages "${library_packages[@]}" libcli11-dev nlohmann-json3-dev "${aarch64_packages[@]}"
    build=$root/build/aarch64
    step "Configuring build/aarch64" cmake -S "$root" --preset release -B "$build" \
      "-DCMAKE_TOOLCHAIN_FILE=$root/cmake/aarch64-linux-gnu.cmake" \
      -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=OFF "$@"
    compile
    verify_aarch64
    ;;
  fuzz)
    seconds=${1:-30}
    [[ $seconds =~ ^[1-9][0-9]*$ ]] || die "fuzz: not a number of seconds: $seconds"
    targets=("${@:2}")
    if ((${#targets[@]} == 0)); then
      for source in "$root"/fuzz/*_fuzz.cc; do targets+=("$(basename "$source" _fuzz.cc)"); done
    fi
    install_packages "${library_packages[@]}" "${example_packages[@]}" "${fuzz_packages[@]}"
    build=$root/build/fuzz
    step "Configuring build/fuzz" cmake -S "$root" --preset fuzz
    compile --target "${targets[@]/%/_fuzz}"
    for target in "${targets[@]}"; do fuzz_target "$target" "$seconds"; done
    ;;
  parity)
    install_packages "${library_packages[@]}" "${example_packages[@]}" python3-venv
    make_parity
    configure -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=ON
    compile --target switchyard_parity moe_layer
    # Routers and layers are made, none is downloaded.
    export HF_HUB_OFFLINE=1
    status=0
    for compared in "parity.py $build/tools/libswitchyard_parity.so" \
      "layers.py $build/examples/moe_layer/moe_layer"; do
      "$root/build/parity-venv/bin/python3" "$root/tools/parity/${compared%% *}" "${compared#* }" "$@" || status=$?
    done
    exit "$status"
    ;;
  rust)
    install_packages "${library_packages[@]}" libcli11-dev nlohmann-json3-dev "${rust_packages[@]}"
    configure -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=OFF
    compile
    export SWITCHYARD_PREFIX=$root/build/rust/prefix CARGO_TARGET_DIR=$root/build/rust/target
    step "Installing the library in build/rust/prefix" \
      cmake --install "$build" --prefix "$SWITCHYARD_PREFIX"
    # Debian's, whatever else is on the path.
    [[ ! -x /usr/bin/cargo ]] ||
      export PATH=/usr/bin:$PATH RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc
    cd "$root/bindings/rust"
    cargo test --offline "$@"
    cargo run --offline --example engine_step -- 8
    ;;
  engines)
    install_packages "${library_packages[@]}" libcli11-dev nlohmann-json3-dev python3-venv
    make_engines
    configure -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=OFF
    compile
    step "Installing the library in build/engines" \
      cmake --install "$build" --prefix "$root/build/engines"
    python=$root/build/engines-venv/bin/python3
    # Not from an index: all that it needs is there.
    step "Building the Python package" env CMAKE_PREFIX_PATH="$root/build/engines" \
      "$python" -m pip install --disable-pip-version-check --no-deps --no-build-isolation \
      --force-reinstall "$root/bindings/python"
    PYTHONDONTWRITEBYTECODE=1 exec "$python" -m pytest -q -p no:cacheprovider \
      "$root/bindings/python/tests" "$@"
    ;;
  engines-ggml)
    install_packages "${library_packages[@]}" "${example_packages[@]}" python3-venv
    make_plugin_venv
    build=$root/build/ggml
    step "Configuring build/ggml" cmake -S "$root/integrations/ggml" -B "$build" -G Ninja \
      "-DCMAKE_PREFIX_PATH=$(find_ggml)" "-DGGML_SOURCE_DIR=$ggml_source/vendor/llama.cpp" \
      -DSWITCHYARD_GGML_TESTS=ON "$@"
    compile
    SWITCHYARD_GGML_BUILD=$build "$root/build/ggml-test-venv/bin/python3" -m unittest \
      discover --start-directory "$root/integrations/ggml/tests" --verbose
    ;;
  packages)
    install_packages "${library_packages[@]}" "${example_packages[@]}" "${test_packages[@]}" "$@"
    ;;
  help | -h | --help) usage ;;
  *)
    usage >&2
    exit 2
    ;;
esac
