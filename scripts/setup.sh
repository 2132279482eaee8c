#!/bin/bash
# From a fresh Debian 12 machine to a running example or a finished test run.
#
#   scripts/setup.sh run  [moe_layer's arguments]   build Release, moe_layer and swy, and run moe_layer
#   scripts/setup.sh test [--kernels] [cmake's arguments]
#                                                   build everything and run all tests, or only the tests of
#                                                   kernels, the C ABI and swy, without device and examples
#   scripts/setup.sh bench [--with-ggml] [--repeat N] [benchmark's arguments]
#                                                   build the benchmarks, run each in N (7) processes,
#                                                   report in build/bench.md, plots in build/plots;
#                                                   --with-ggml also times ggml, which takes minutes to build once
#   scripts/setup.sh compare [--with-torch] [--with-ggml] [--repeat N]
#                                                   print README's table: our layer beside plain loops, and
#                                                   beside transformers and llama.cpp, which are installed
#                                                   once as by `engines` and `engines-ggml`; the median of
#                                                   N (1) runs; plots in build/plots
#   scripts/setup.sh soak MINUTES [seed]            build, and run random operations for MINUTES
#   scripts/setup.sh aarch64                        cross-compile, compare the digests and grade the router
#                                                   under QEMU
#   scripts/setup.sh fuzz [SECONDS [TARGET...]]     run each TARGET, or all fuzz targets, for SECONDS (30)
#   scripts/setup.sh parity [parity.py's arguments] compare the presets with transformers' own routers
#                                                   and norms, moe_layer with its layers;
#                                                   installs PyTorch in build/, gigabytes
#   scripts/setup.sh rust [cargo test's arguments]  install the library in build/rust, test the Rust crate with it
#   scripts/setup.sh engines [pytest's arguments]   build the Python packages, run their tests with transformers;
#                                                   installs PyTorch in build/, gigabytes
#   scripts/setup.sh engines-ggml                   build the llama.cpp plug-in of integrations/ggml, run its
#                                                   tests; builds llama.cpp once, ten minutes
#   scripts/setup.sh docs                           build the reference and guides as a site in build/docs
#   scripts/setup.sh release                        make archives, wheels, packages and everything else that
#                                                   is published, from the last commit, in build/dist;
#                                                   SWITCHYARD_ADDRESS=https://HOST/OWNER/NAME in the environment
#                                                   is the public repository that the files name, if any
#   scripts/setup.sh release-test                   install and use each file of build/dist where nothing else is installed
#   scripts/setup.sh clean                          remove the files that these commands made in build/
#   scripts/setup.sh packages [--engines] [more packages]
#                                                   only install missing packages, and Python's in build/venv:
#                                                   `cmake --preset release` then finds everything it needs;
#                                                   with --engines also the packages of parity and engines
#   scripts/setup.sh help [command]                 print this text, or its lines about a command
#
# Works from any folder; only one setup.sh runs at a time. Installs missing
# packages with apt, which needs root; without missing packages, nothing needs
# root. Builds in build/, and writes the output of its steps to build/setup.log.
# Needs Highway 1.0.3 or later, which Ubuntu has since 24.04;
# with SWITCHYARD_HIGHWAY_DIR=FOLDER, uses the sources in FOLDER, not the package.
set -euo pipefail

library_packages=(g++ cmake ninja-build libtbb-dev)
[[ -n ${SWITCHYARD_HIGHWAY_DIR:-} ]] || library_packages+=(libhwy-dev)
readonly library_packages
# oneDNN's CMake package in Debian requires OpenCL.
readonly example_packages=(libdnnl-dev ocl-icd-opencl-dev nlohmann-json3-dev libcli11-dev)
readonly bench_packages=(libbenchmark-dev python3)
readonly aarch64_packages=(g++-aarch64-linux-gnu libhwy-dev:arm64 libtbb-dev:arm64 qemu-user)
# Clang links libomp for -fopenmp. lld links each of 270 programs in a third of
# the time of the default linker.
readonly fuzz_packages=(clang libclang-rt-dev libomp-dev lld)
# Open MPI is for examples/expert_parallel. Without it, CTest skips the test of
# that example.
readonly test_packages=(libgtest-dev pkg-config python3-venv libopenmpi-dev openmpi-bin)
readonly rust_packages=(rustc cargo pkg-config)
# numpy and safetensors write the small checkpoints for the tests of moe_layer.
# matplotlib draws the plots of bench and compare.
readonly python_packages=('numpy>=1.24,<3' 'safetensors>=0.4,<1' 'matplotlib>=3.6,<4')
# `parity` compares the presets with these packages. The presets cite lines of
# transformers' code.
readonly parity_packages=('transformers==5.23.*' 'torch>=2.10,<3' 'numpy>=1.24,<3')
# Packages that build and test the Python package, in addition to the packages of
# parity. transformers needs accelerate to load the parts of a model.
readonly engines_packages=('scikit-build-core>=0.10,<2' 'pytest>=8,<10' 'accelerate>=1.10,<2'
  'peft>=0.18,<1')
# Versions of torch for a compile test of the Python package: the oldest supported
# version, and a newer one. Only their headers are needed.
readonly header_versions=(2.10.0 2.11.0)
# A source package that builds ggml for this machine, with headers and a CMake
# package.
readonly ggml_package='llama-cpp-python>=0.3.36,<0.4'
# Packages that write and run the models of the plug-in's tests.
readonly plugin_packages=('gguf>=0.17,<1' 'numpy>=1.24,<3' typing_extensions diskcache jinja2)

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/release
log=$root/build/setup.log
jobs=$(nproc)

die() {
  echo "setup.sh: $*" >&2
  exit 1
}

# refuse WHY: reports a wrong command line and ends the script. Call it before the
# script changes anything.
refuse() {
  echo "setup.sh: $*" >&2
  exit 2
}

# begin: locks build/ and starts the log of this run. File descriptor 9 holds the
# lock. Commands do not inherit the descriptor, because a command may outlive this
# script.
begin() {
  mkdir -p "$root/build" 2>/dev/null || die "cannot make $root/build"
  [[ -w $root/build ]] || die "cannot write to $root/build"
  if command -v flock >/dev/null; then
    exec 9>"$root/build/setup.lock"
    flock --nonblock 9 ||
      die "another one is at work in $root/build; what it does is in ${log#"$root"/}"
  fi
  { : >"$log"; } 2>/dev/null || die "cannot write to $log"
}
# finish: releases the lock after the build, so that another setup.sh may begin
# while the built programs run.
finish() { exec 9>&-; }

# Messages that apt-get and pip write if they cannot reach the network.
readonly no_network='Temporary failure|Could not resolve|Name or service not known|Network is unreachable'\
'|Could not connect|Connection (refused|timed out)|Failed to establish a new connection|No route to host'
# The line of the log where the current download begins, or empty if nothing is
# downloaded. Messages about the network count only from this line on.
online_since=

# failed WHAT LINE: ends the script, because the step WHAT failed. First prints 25
# lines that show the cause, from the part of the log that begins at LINE.
failed() {
  local what=$1 line=$2 output first
  printf ' failed\n'
  if [[ -n $online_since ]] && grep -qE "$no_network" <<<"$(tail -n "+$online_since" "$log")"; then
    die "no network: $what (see $log)"
  fi
  output=$(tail -n "+$line" "$log")
  # If ninja reported an error, the printed lines begin with it. Otherwise they are
  # the end of the log.
  first=$(grep -nm 1 '^FAILED: ' <<<"$output" | cut -d: -f1 || true)
  if [[ -n $first ]]; then
    tail -n "+$first" <<<"$output" | head -n 25 >&2 || true
  else
    tail -n 25 <<<"$output" >&2
  fi
  die "failed: $what (see $log)"
}

# step WHAT COMMAND...: runs the command. Prints WHAT, a dot every three seconds,
# and the time at the end. The command's output goes to the log. If the command
# fails, prints a part of the output and ends the script.
ticker=
trap '[[ -z $ticker ]] || kill "$ticker" 2>/dev/null' EXIT
step() {
  local what=$1 started=$SECONDS status=0 lines
  shift
  lines=$(wc -l <"$log")
  printf '%s ' "$what"
  # Closes the output of sleep. Otherwise a reader of this script's output would
  # wait for the last sleep.
  while sleep 3 >&- 2>&-; do printf '.'; done 9>&- &
  ticker=$!
  printf '\n== %s\n' "$what" >>"$log"
  "$@" >>"$log" 2>&1 </dev/null 9>&- || status=$?
  kill "$ticker"
  wait "$ticker" 2>/dev/null || true
  ticker=
  ((status == 0)) || failed "$what" $((lines + 1))
  printf ' %d s\n' $((SECONDS - started))
}

missing_packages() {
  local package
  for package in "$@"; do
    # Looks for the word " installed ", because dpkg-query prints a word for each
    # architecture, and a word may be "not-installed".
    [[ " $(dpkg-query -W -f '${db:Status-Status} ' "$package" 2>/dev/null)" == *" installed "* ]] ||
      echo "$package"
  done
}

install_packages() {
  [[ " $* " != *' libhwy-dev '* ]] || check_highway "$(dpkg-query -W -f '${Version}\n' libhwy-dev 2>/dev/null | head -n 1 || true)"
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
  online_since=$(($(wc -l <"$log") + 1))
  # Continues if apt-get cannot read a list of packages, such as a third party's
  # list. If the list matters, the next step fails.
  step "Reading the package lists" env LC_ALL=C.UTF-8 bash -c 'apt-get update || true'
  [[ " ${missing[*]} " != *' libhwy-dev '* ]] ||
    check_highway "$(LC_ALL=C.UTF-8 apt-cache policy libhwy-dev | sed -n 's/^ *Candidate: //p')"
  step "Installing ${missing[*]}" env LC_ALL=C.UTF-8 \
    apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}"
  online_since=
}

# check_highway VERSION: ends the script if the version of the installed Highway,
# or of Highway in the package lists, is older than 1.0.3.
check_highway() {
  [[ $1 == [0-9]* ]] && dpkg --compare-versions "$1" lt 1.0.3 || return 0
  die "Highway here is $1 and has to be 1.0.3 or later: take its sources, by
  git clone --depth 1 --branch 1.4.0 https://github.com/google/highway
  SWITCHYARD_HIGHWAY_DIR=\$PWD/highway $0 $command"
}

# install_python WHERE WHAT PIP_ARGUMENT...: makes a new Python environment in
# build/WHERE, and calls pip install with the arguments. Messages call the packages
# WHAT.
install_python() {
  local venv=$root/build/$1 python=/usr/bin/python3
  [[ -x $python ]] || python=python3
  step "Making a Python environment in build/$1" "$python" -m venv --clear "$venv"
  online_since=$(($(wc -l <"$log") + 1))
  step "Installing $2 in it" \
    "$venv/bin/python3" -m pip install --disable-pip-version-check "${@:3}"
  online_since=
}

# make_venv: makes a Python environment with python_packages in build/venv, unless
# it exists and is complete.
make_venv() {
  "$root/build/venv/bin/python3" -c 'import matplotlib, numpy, safetensors.numpy' 2>/dev/null ||
    install_python venv "${python_packages[*]}" "${python_packages[@]}"
}

# find_ggml: prints the folder of ggml's CMake package. Fails if llama-cpp-python
# is not installed, or does not contain the CMake package.
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

# make_plugin_venv: makes a Python environment with llama.cpp and plugin_packages.
# Also fetches llama.cpp's sources to $ggml_source, because no package has ggml's
# internal headers.
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
    online_since=$(($(wc -l <"$log") + 1))
    step "Fetching the sources of $version" "$venv/bin/python3" -m pip download --no-deps \
      --no-binary llama-cpp-python --dest "$root/build/ggml-source" \
      "llama-cpp-python==${version#llama_cpp_python-}"
    online_since=
    step "Unpacking them" tar -xf "$ggml_source.tar.gz" -C "$root/build/ggml-source"
  }
}

make_parity() {
  "$root/build/parity-venv/bin/python3" -c 'import torch, transformers as t
assert t.__version__.startswith("5.23.")' 2>/dev/null ||
    install_python parity-venv "${parity_packages[*]}" "${parity_packages[@]}"
}

# make_engines: makes a Python environment with the packages of parity and with
# engines_packages in build/engines-venv.
make_engines() {
  make_parity
  local venv=$root/build/engines-venv python=/usr/bin/python3 shared
  [[ -x $python ]] || python=python3
  shared=$("$root/build/parity-venv/bin/python3" -c 'import sysconfig as s; print(s.get_path("purelib"))')
  "$venv/bin/python3" -c 'import accelerate, peft, pytest, scikit_build_core, torch, transformers' 2>/dev/null && return
  step "Making a Python environment in build/engines-venv" "$python" -m venv --clear "$venv"
  echo "$shared" >"$("$venv/bin/python3" -c 'import sysconfig as s; print(s.get_path("purelib"))')/parity.pth"
  online_since=$(($(wc -l <"$log") + 1))
  step "Installing ${engines_packages[*]}" \
    "$venv/bin/python3" -m pip install --disable-pip-version-check "${engines_packages[@]}"
  online_since=
}

# make_torch_headers PYTHON VERSION...: puts the headers of these versions of
# torch in build/torch-headers. Takes them from the wheels for macOS, which are
# the smallest: 80 MB instead of 900.
make_torch_headers() {
  local version folder=$root/build/torch-headers python=$1
  for version in "${@:2}"; do
    [[ -e $folder/$version/torch ]] && continue
    mkdir -p "$folder/$version"
    online_since=$(($(wc -l <"$log") + 1))
    step "Fetching torch $version for its headers" "$python" -m pip download --no-deps \
      --disable-pip-version-check --only-binary :all: --python-version 3.12 \
      --platform macosx_11_0_arm64 --dest "$folder/$version" "torch==$version"
    online_since=
    step "Unpacking them" "$python" -c '
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
(wheel,) = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as file:
    file.extractall(folder / "part", [n for n in file.namelist() if n.startswith("torch/include/")])
(folder / "part" / "torch").rename(folder / "torch")
wheel.unlink()' "$folder/$version"
  done
}

# make_python_packages: installs the compiled library, and the Python packages
# that use it, in build/engines-venv.
make_python_packages() {
  step "Installing the library in build/engines" \
    cmake --install "$build" --prefix "$root/build/engines"
  # Needs no package index, because all dependencies of the packages are
  # installed.
  step "Building the Python packages" env CMAKE_PREFIX_PATH="$root/build/engines" \
    "$root/build/engines-venv/bin/python3" -m pip install --disable-pip-version-check --no-deps \
    --no-build-isolation --force-reinstall "$root/bindings/python" "$root/device/python"
}

# make_plugin CMAKE_ARGUMENT...: builds llama.cpp's plug-in in build/ggml.
make_plugin() {
  make_plugin_venv
  build=$root/build/ggml
  step "Configuring build/ggml" cmake -S "$root/integrations/ggml" -B "$build" -G Ninja \
    "-DCMAKE_PREFIX_PATH=$(find_ggml)" "-DGGML_SOURCE_DIR=$ggml_source/vendor/llama.cpp" \
    ${SWITCHYARD_HIGHWAY_DIR:+"-DSWITCHYARD_HIGHWAY_DIR=$SWITCHYARD_HIGHWAY_DIR"} "$@"
  compile
}

# configure CMAKE_ARGUMENT...: configures $build, by default build/release.
configure() {
  step "Configuring ${build#"$root"/}" cmake -S "$root" --preset release -B "$build" \
    "-DSWITCHYARD_HIGHWAY_DIR=${SWITCHYARD_HIGHWAY_DIR:-}" "$@"
}

# compile CMAKE_ARGUMENT...: compiles $build. Prints the number of compiled files
# and an estimate of the time that is left. The compilers' output goes to the log.
compile() {
  local status=0 started=$SECONDS lines
  lines=$(wc -l <"$log")
  printf '\n== Compiling\n' >>"$log"
  NINJA_STATUS='[%f/%t] ' cmake --build "$build" --parallel "$jobs" "$@" 2>&1 </dev/null 9>&- |
    show_progress 9>&- || status=${PIPESTATUS[0]}
  ((status == 0)) || failed "Compiling" $((lines + 1))
  printf ' %d s\n' $((SECONDS - started))
}
# show_progress: reads ninja's output, and prints a line with the progress. On a
# terminal, rewrites the line after each file and every three seconds. Otherwise
# appends up to four counts to the line.
show_progress() {
  local line partial='' status made=0 total=0 quarter=0 started=$SECONDS
  printf 'Compiling'
  while true; do
    status=0
    IFS= read -r -t 3 line || status=$?
    partial+=$line
    if ((status == 0)); then
      printf '%s\n' "$partial" >>"$log"
      if [[ $partial =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
        made=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
      fi
      partial=''
    elif ((status <= 128)); then
      break # the output has ended; a status above 128 means three seconds without output
    fi
    ((made > 0)) || continue
    if [[ -t 1 ]]; then
      printf '\rCompiling: %d of %d files%s\033[K' "$made" "$total" "$(remaining)"
    elif ((4 * made / total > quarter)); then
      quarter=$((4 * made / total))
      printf '%s %d of %d files%s' "$( ((quarter > 1)) && printf ';' || printf ':')" "$made" "$total" "$(remaining)"
    fi
  done
  [[ -z $partial ]] || printf '%s\n' "$partial" >>"$log"
  ((made > 0)) || printf ': nothing to do'
  printf ','
}
# remaining: prints an estimate of the time that is left, which assumes that all
# files take equally long.
remaining() {
  local seconds=$(((SECONDS - started) * (total - made) / made))
  if ((seconds >= 90)); then
    printf ', about %d min left' $(((seconds + 30) / 60))
  elif ((made < total)); then
    printf ', about %d s left' "$seconds"
  fi
}

# print_next: prints the three commands to try after `run`.
print_next() {
  local here=${build#"$root"/}
  printf '\nNext, in %s:\n' "$root"
  printf '  %-41s %s\n' \
    "$here/tools/swy verify" "compare this machine's bits with the promised ones" \
    "scripts/setup.sh compare" "time this layer beside plain loops" \
    "cmake --build $here --target install" "install the library; docs/linking.md has the rest"
}

# The files and folders in build/ that the commands of this script make. The lock
# comes last, so that `clean` holds it until all other files are removed.
readonly outputs=(release aarch64 fuzz ggml rust engines docs highway dist dist-work dist-test
  venv engines-venv parity-venv ggml-venv ggml-test-venv release-venv recipes-venv ggml-source
  torch-headers bench bench.md bench.json compare compare.md compare.json plots setup.log setup.lock)

# clean: removes the files and folders in `outputs`, and prints their megabytes.
clean() {
  local name size total=0 others
  for name in "${outputs[@]}"; do
    [[ -e $root/build/$name || -L $root/build/$name ]] || continue
    size=$(du -sm "$root/build/$name" | cut -f1)
    rm -rf "${root:?}/build/$name" || die "clean: cannot remove $root/build/$name"
    [[ $name == setup.* ]] || printf 'build/%-16s %6d MB\n' "$name" "$size"
    total=$((total + size))
  done
  others=$(find "$root/build" -mindepth 1 -maxdepth 1 -printf '%f\n' | LC_ALL=C sort | sed 's|^| |' | tr -d '\n')
  [[ -n $others ]] || rmdir "$root/build"
  echo "Removed $total MB${others:+; setup.sh did not make these files, which stay in build/:$others}"
}

# draw_plots ARGUMENT...: draws plots in build/plots, by the first Python that has
# matplotlib. Without matplotlib, only prints a line.
draw_plots() {
  local python
  mkdir -p "$root/build/plots"
  for python in "$root/build/venv/bin/python3" python3; do
    "$python" -c 'import matplotlib' 2>/dev/null || continue
    "$python" -B "$root/bench/plots.py" "$root/build/plots" "$@" || die "no plots"
    return 0
  done
  echo "No plots, because Python has no matplotlib here: scripts/setup.sh packages installs it in build/venv"
}

# verify_aarch64: runs swy verify and swy grade under QEMU, for each ISA at each of
# its vector lengths or, if SWITCHYARD_SAMPLE is set, for one ISA per length. Each
# process has one thread, because the test is about the ISA. Several processes run
# at the same time.
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
  # Grades the router once for each vector length, which takes a second.
  for cpu in "${!isas[@]}"; do
    qemu-aarch64 -cpu "max,$cpu" "$build/tools/swy" grade --own ||
      die "the router differs on aarch64"
  done
}

# check_fibers: tests on aarch64 that the device layer's fibers switch from one
# stack to another.
check_fibers() {
  step "Compiling fiber_check" aarch64-linux-gnu-g++ -std=c++17 -O2 -static "-I$root" \
    "$root/device/tests/fiber_check.cc" "$root/device/src/core/fiber.cc" -o "$build/fiber_check"
  qemu-aarch64 "$build/fiber_check" || die "fibers do not switch on aarch64"
}

# fuzz_names: prints the names of all fuzz targets, including the device
# layer's.
fuzz_names() { find "$root/fuzz" "$root/device/fuzz" -name '*_fuzz.cc' 2>/dev/null |
  sed 's|.*/||; s|_fuzz\.cc$||' | LC_ALL=C sort; }

# fuzz_target NAME SECONDS: runs a target from the seeds in its corpus/ and the
# inputs that earlier runs found. Prints one line or, after a crash, the crash and
# the file with its input. Prints only at the end, because other targets run at the
# same time.
fuzz_target() {
  local name=$1 seconds=$2 found=$build/corpus/$1 out=$build/$1.log head
  local seed=${SWITCHYARD_FUZZ_SEED:-$((RANDOM * 32768 + RANDOM + 1))} folder=fuzz
  [[ ! -f $root/device/fuzz/${name}_fuzz.cc ]] || folder=device/fuzz
  mkdir -p "$found" "$build/crashes"
  head=$(printf '%-16s seed %-10s' "$name" "$seed")
  if ! "$build/$folder/${name}_fuzz" -seed="$seed" -max_total_time="$seconds" -timeout=30 \
    -len_control=0 -max_len=2048 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$build/crashes/$name-" \
    "$found" "$root/$folder/corpus/$name" >"$out" 2>&1 </dev/null; then
    echo "$head failed"
    grep -vE '^#|NEW_FUNC' "$out" | tail -n 60 >&2
    die "fuzz: $name failed (all of it in $out); its input: $(
      sed -n 's/.*Test unit written to //p' "$out" | tail -n 1)
  again: $build/$folder/${name}_fuzz FILE"
  fi
  echo "$head $(sed -nE 's/^stat::number_of_executed_units: *//p' "$out") runs," \
    "$(sed -nE 's/.*cov: ([0-9]+) ft: ([0-9]+) .*/\1 edges, \2 features/p' "$out" | tail -n 1)"
}

# fuzz_targets SECONDS NAME...: runs one target per core at a time, because a
# target has one thread. After a target has failed, starts no more targets.
fuzz_targets() {
  local seconds=$1 target running=0 status=0
  for target in "${@:2}"; do
    if ((running == jobs)); then
      wait -n || status=1
      running=$((running - 1))
      ((status == 0)) || break
    fi
    fuzz_target "$target" "$seconds" &
    running=$((running + 1))
  done
  while ((running > 0)); do
    wait -n || status=1
    running=$((running - 1))
  done
  return "$status"
}

# run_benchmarks [--repeat N] [benchmark's arguments]: in each of N rounds, starts
# a process for each kernel and shape, so that only the contenders of one shape
# alternate in a process, with the same data. The rounds are new processes, because
# the pages of memory that a process happens to get change all of its times.
run_benchmarks() {
  local program=$build/bench/switchyard_bench out=$root/build/bench rounds=7 list round kernel
  local options=${ggml_option:+ $ggml_option}${*:+ $*}
  if [[ ${1:-} == --repeat ]]; then
    rounds=$2
    shift 2
  fi
  if [[ " $*" == *' --benchmark_list_tests'* ]]; then
    finish
    exec "$program" "$@"
  fi
  # Leaves out the experts of whole layers unless they are requested, because they
  # take an hour, and `compare` also times them.
  [[ " $* " == *' --benchmark_filter='* || " $* " == *' --shape='* ]] ||
    set -- "$@" '--benchmark_filter=-^experts/'
  list=$("$program" "$@" --benchmark_list_tests) || exit
  rm -rf "$out"
  mkdir -p "$out"
  # Writes a line for each shape: the kernel, the shape, and a regular expression
  # that matches the shape's contenders.
  awk '{ shape = $0; gsub(/\/(iterations:[0-9]+|[a-z]+_time)/, "", shape)
         sub(/\/[^\/]*$/, "", shape)
         # Puts these shapes into one process, because they are compared with each other.
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
  python3 -B "$root/bench/report.py" --json "$root/build/bench.json" \
    --command "scripts/setup.sh bench$options" "$out"/*.json | tee "$root/build/bench.md"
  echo "build/bench.md has these tables, and build/bench/ each process's times"
  draw_plots --bench "$root/build/bench.json" --swy "$build/tools/swy"
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

# broken_links SITE: prints the links in the site's pages whose file or anchor is
# missing. Also prints links in Markdown pages if the repository lacks the file.
broken_links() (
  LC_ALL=C comm -13 <(places_of "$1") <(links_of "$1")
  shopt -s globstar
  for page in "$root"/{*.md,docs/*.md,{bindings,device,integrations,packaging}/**/*.md}; do
    while IFS= read -r target; do
      [[ -e $(dirname "$page")/$target ]] || echo "${page#"$root"/}: $target"
    done < <(grep -oE '\]\([^) #:]+[)#]' "$page" | sed -E 's/^..|.$//g')
  done
)
read_version() { sed -nE 's/^project\(switchyard VERSION (\S+).*/\1/p' "$root/CMakeLists.txt"; }
# version_of_site: prints the version and, unless the version's tag is checked out,
# also the commit.
version_of_site() {
  local version commit
  version=$(read_version)
  [[ -e $root/.git ]] && commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null) || commit=
  [[ -z $commit || $(git -C "$root" tag --points-at HEAD 2>/dev/null) == *"v$version"* ]] || version+=" ($commit)"
  echo "$version"
}
places_of() (
  cd "$1"
  { find . -type f -printf '%P\n'
    grep -oE '(id|name)="[^"]+"' ./*.html | sed -E 's/^..([^:]*):[a-z]+="(.*)"$/\1#\2/'; } | LC_ALL=C sort -u
)
# links_of SITE: prints the targets of all links in the site's pages. Leaves out
# links to #nested-classes, because Doxygen also links to private nested classes,
# which have no pages.
links_of() (
  cd "$1"
  grep -oE '(href|src|data)="[^"]+"' ./*.html |
    sed -E 's|^..([^:]*):[a-z]+="#|./:href="\1#|; s/^[^:]*:[a-z]+="(.*)"$/\1/; s/#$//' |
    grep -vE ':|#nested-classes$' | LC_ALL=C sort -u
)

# marked_links SITE: prints the links that show Markdown's backticks, or the file
# name of a page instead of its title. Skips the lists of files, because they have
# to show file names.
marked_links() (
  cd "$1"
  grep -oE '<a [^>]*>[^<]*(`|\.md)[^<]*</a>' ./*.html | grep -vE '^\./(files|dir_[^:]*|[^:]*_8md)\.html:' ||
    true
)

# usage [COMMAND]: prints the head of this file, or the lines about a command.
usage() {
  local head
  head=$(sed -nE '2,/^[^#]/s/^# ?//p' "${BASH_SOURCE[0]}")
  if (($# == 0)); then
    printf '%s\n' "$head"
  else
    awk -v command="$1" '/^  scripts\/setup\.sh/ { ours = $2 == command }
      /^$/ { ours = 0 } ours { sub(/^  /, ""); print }' <<<"$head"
  fi
}
commands() { usage | sed -nE 's/^  scripts\/setup\.sh ([a-z0-9-]+).*/\1/p'; }

# options PATTERN FILE...: prints the names of the options in these source
# files.
options() { grep -ohE "$1\(\"--[a-z-]+" "${@:2}" | grep -oE -- '--[a-z-]+$'; }

run_options() { options 'add_(option|flag)' "$root"/programs/{moe/main,arguments}.cc; }

# known COMMAND OPTION NAMES: refuses an option that is not in NAMES.
known() {
  grep -qxF -- "${2%%=*}" <<<"$3" ||
    refuse "$1: no option ${2%%=*}; there are ${3//$'\n'/ }"
}

# number COMMAND NAME VALUE: refuses a value that is not a whole number above 0.
number() {
  [[ $3 =~ ^[1-9][0-9]{0,8}$ ]] || refuse "$1: $2: not a whole number above 0: '$3'"
}

# check_arguments: checks names and numbers on the command line before anything is
# installed or compiled, because the programs would report errors only minutes
# later. If help is requested, prints it and ends.
check_arguments() {
  local argument names
  for argument in "$@"; do
    if [[ $argument == --help || $argument == -h ]]; then
      usage "$command"
      if [[ $command == run && -x $build/programs/moe/moe_layer ]]; then
        "$build/programs/moe/moe_layer" --help
      elif [[ $command == run ]]; then
        echo "moe_layer has $(run_options | xargs)"
      fi
      exit 0
    fi
  done
  case $command in
    run)
      names=$(run_options)
      while (($# > 0)); do
        case $1 in
          --tokens=* | --repeat=* | --top-k=* | --threads=*) number run "${1%%=*}" "${1#*=}" ;;
          --*=* | --compare) known run "$1" "$names" ;;
          --tokens | --repeat | --top-k | --threads)
            (($# >= 2)) || refuse "run: $1: no value"
            number run "$1" "$2" && shift
            ;;
          -*)
            known run "$1" "$names"
            (($# >= 2)) || refuse "run: $1: no value"
            shift
            ;;
          *) [[ -d $1 ]] || refuse "run: no folder of a checkpoint: $1" ;;
        esac
        shift
      done
      ;;
    test | aarch64 | engines-ggml)
      for argument in "$@"; do
        [[ $argument == -* ]] || refuse "$command: no argument of cmake's: $argument"
      done
      ;;
    bench)
      [[ ${1:-} != --with-ggml ]] || shift
      if [[ ${1:-} == --repeat ]]; then
        number bench --repeat "${2:-}"
        shift 2
      fi
      for argument in "$@"; do
        case $argument in
          --benchmark_out* | *aggregates_only*)
            refuse "bench: $argument: the report reads build/bench/*.json, with all repetitions: no other files here" ;;
          --benchmark_* | --shape=* | --v=*) ;;
          *) refuse "bench: $argument: not --with-ggml and then --repeat N, nor --shape=..., nor --benchmark_..." ;;
        esac
      done
      ;;
    compare)
      while (($# > 0)); do
        case $1 in
          --with-torch | --with-ggml) ;;
          --repeat) number compare --repeat "${2:-}" && shift ;;
          *) refuse "compare: $1: not --with-torch, --with-ggml or --repeat N" ;;
        esac
        shift
      done
      ;;
    soak)
      (($# > 0)) || refuse "soak: for how many minutes?"
      number soak MINUTES "$1"
      [[ ${2:-0} =~ ^[0-9]{1,18}$ ]] || refuse "soak: seed: not a whole number: '$2'"
      (($# <= 2)) || refuse "soak: unexpected argument: $3"
      ;;
    fuzz)
      (($# == 0)) || number fuzz SECONDS "$1"
      for argument in "${@:2}"; do
        grep -qxF -- "$argument" <<<"$(fuzz_names)" ||
          refuse "fuzz: no target $argument; there are" "$(fuzz_names | xargs)"
      done
      ;;
    parity)
      names=$(options add_argument "$root/tools/parity/parity.py")
      while (($# > 0)); do
        [[ $1 == --* ]] || refuse "parity: unexpected argument: $1"
        known parity "$1" "$names"
        if [[ $1 != *=* ]]; then
          (($# >= 2)) || refuse "parity: $1: no value"
          [[ $1 != --seed ]] || number parity --seed "$2"
          shift
        fi
        shift
      done
      ;;
    docs | release | release-test | clean) (($# == 0)) || refuse "$command: unexpected argument: $1" ;;
    packages)
      [[ ${1:-} != --engines ]] || shift
      for argument in "$@"; do
        [[ $argument =~ ^[a-z0-9][a-z0-9+.-]+(:[a-z0-9]+)?$ ]] ||
          refuse "packages: not a package's name: $argument"
      done
      ;;
    rust | engines) ;; # cargo and pytest check their own arguments
  esac
}

command=${1:-}
(($# == 0)) || shift
case $command in
  '')
    usage >&2
    exit 2
    ;;
  help | -h | --help)
    [[ ${1:-} != -h && ${1:-} != --help ]] || set -- help
    [[ -z ${1:-} ]] || grep -qxF -- "$1" <<<"$(commands)" ||
      refuse "help: no command '$1'; there are" "$(commands | xargs)"
    usage ${1:+"$1"}
    exit 0
    ;;
esac
grep -qxF -- "$command" <<<"$(commands)" || refuse "no command '$command'; there are" "$(commands | xargs)"
check_arguments "$@"
if [[ -n ${SWITCHYARD_HIGHWAY_DIR:-} ]]; then
  [[ -f $SWITCHYARD_HIGHWAY_DIR/hwy/highway.h ]] ||
    refuse "SWITCHYARD_HIGHWAY_DIR: no hwy/highway.h in '$SWITCHYARD_HIGHWAY_DIR'"
  SWITCHYARD_HIGHWAY_DIR=$(realpath "$SWITCHYARD_HIGHWAY_DIR")
fi
if [[ $command == clean && ! -d $root/build ]]; then
  echo "Nothing to remove: no $root/build"
  exit 0
fi
begin
case $command in
  clean) clean ;;
  run)
    install_packages "${library_packages[@]}" "${example_packages[@]}"
    configure -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=ON
    compile --target moe_layer swy
    finish
    "$build/programs/moe/moe_layer" "$@"
    print_next
    ;;
  test)
    install_packages "${library_packages[@]}" "${example_packages[@]}" "${test_packages[@]}"
    make_venv
    parts=(-DSWITCHYARD_BUILD_EXAMPLES=ON)
    only=()
    if [[ ${1:-} == --kernels ]]; then
      shift
      parts=(-DSWITCHYARD_BUILD_EXAMPLES=OFF -DSWITCHYARD_DEVICE=OFF)
      # Leaves out the install tests, because they compile the library again.
      only=(--exclude-regex '^install\.')
    fi
    configure -DSWITCHYARD_BUILD_TESTS=ON "${parts[@]}" \
      "-DPython3_EXECUTABLE=$root/build/venv/bin/python3" "$@"
    compile
    "$root/scripts/run_tests.sh" "$build" --parallel "$jobs" "${only[@]}"
    ;;
  bench)
    install_packages "${library_packages[@]}" "${example_packages[@]}" "${bench_packages[@]}"
    ggml=-Uggml_DIR # forgets the folder of an earlier run
    ggml_option=
    if [[ ${1:-} == --with-ggml ]]; then
      ggml_option=$1
      shift
      install_packages python3-venv
      make_ggml
      ggml=-Dggml_DIR=$(find_ggml)
    fi
    configure -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=OFF \
      -DSWITCHYARD_BUILD_BENCHMARKS=ON "$ggml"
    compile --target switchyard_bench swy
    run_benchmarks "$@"
    ;;
  compare)
    install_packages "${library_packages[@]}" "${example_packages[@]}" python3-venv
    moe_layer=$build/programs/moe/moe_layer
    configure -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=ON
    compile --target moe_layer
    python3 -B "$root/bench/compare.py" --load
    others=(--json "$root/build/compare.json" --command "scripts/setup.sh compare${*:+ $*}")
    [[ ! " $* " =~ \ --repeat\ ([0-9]+)\  ]] || others+=(--repeat "${BASH_REMATCH[1]}")
    if [[ " $* " == *' --with-torch '* ]]; then
      compile
      make_engines
      make_python_packages
      others+=(--torch "$root/build/engines-venv/bin/python3")
    fi
    if [[ " $* " == *' --with-ggml '* ]]; then
      install_packages "${bench_packages[@]}"
      make_ggml
      configure -DSWITCHYARD_BUILD_BENCHMARKS=ON "-Dggml_DIR=$(find_ggml)"
      compile --target switchyard_bench
      others+=(--experts "$build/bench/switchyard_bench")
      make_plugin -DSWITCHYARD_GGML_TESTS=OFF
      python=$root/build/ggml-test-venv/bin/python3
      others+=(--ggml "$python" "$build/libggml-switchyard.so")
      mkdir -p "$root/build/compare"
      for type in bf16 q4_0; do
        model=$root/build/compare/$type.gguf
        [[ -e $model ]] || step "Writing a model in $type" bash -c \
          '"$1" "$2" qwen3_30b "$3" "$4.part" && mv "$4.part" "$4"' - "$python" \
          "$root/integrations/ggml/tests/make_model.py" "$type" "$model"
        others+=("$model")
      done
    fi
    step "Measuring" bash -c 'python3 -B "$1" "${@:3}" >"$2"' - "$root/bench/compare.py" \
      "$root/build/compare.md" "$moe_layer" "${others[@]}"
    cat "$root/build/compare.md"
    [[ " $* " != *' --with-ggml '* ]] || draw_plots --compare "$root/build/compare.json"
    ;;
  soak)
    install_packages "${library_packages[@]}" "${example_packages[@]}" "${test_packages[@]}"
    configure -DSWITCHYARD_BUILD_TESTS=ON -DSWITCHYARD_BUILD_EXAMPLES=OFF
    compile --target switchyard_soak
    finish
    exec "$build/tests/faults/switchyard_soak" $(($1 * 60)) "${@:2}"
    ;;
  aarch64)
    if ((EUID == 0)) && ! dpkg --print-foreign-architectures | grep -qx arm64; then
      step "Adding the arm64 architecture" dpkg --add-architecture arm64
    fi
    install_packages "${library_packages[@]}" libcli11-dev nlohmann-json3-dev "${aarch64_packages[@]}"
    build=$root/build/aarch64
    # Compiles the sample without the ISA SVE, because SVE_256 has the same
    # instructions at a fixed length.
    [[ -z ${SWITCHYARD_SAMPLE:-} ]] || set -- -DCMAKE_CXX_FLAGS=-DHWY_DISABLED_TARGETS=HWY_SVE "$@"
    configure "-DCMAKE_TOOLCHAIN_FILE=$root/cmake/aarch64-linux-gnu.cmake" \
      -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=OFF "$@"
    compile
    [[ ! -d $root/device ]] || check_fibers
    verify_aarch64
    ;;
  fuzz)
    seconds=${1:-30}
    targets=("${@:2}")
    if ((${#targets[@]} == 0)); then
      mapfile -t targets < <(fuzz_names)
    fi
    install_packages "${library_packages[@]}" "${example_packages[@]}" "${fuzz_packages[@]}"
    build=$root/build/fuzz
    step "Configuring build/fuzz" cmake -S "$root" --preset fuzz \
      "-DSWITCHYARD_HIGHWAY_DIR=${SWITCHYARD_HIGHWAY_DIR:-}"
    compile --target "${targets[@]/%/_fuzz}"
    fuzz_targets "$seconds" "${targets[@]}"
    ;;
  parity)
    install_packages "${library_packages[@]}" "${example_packages[@]}" python3-venv
    make_parity
    configure -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=ON
    compile --target switchyard_parity moe_layer
    # Forbids downloads, because the scripts make the routers and layers themselves.
    export HF_HUB_OFFLINE=1
    status=0
    library=$build/tools/libswitchyard_parity.so
    python=$root/build/parity-venv/bin/python3
    for compared in parity.py norms.py; do
      "$python" "$root/tools/parity/$compared" "$library" "$@" || status=$?
    done
    "$python" "$root/tools/parity/layers.py" "$library" "$build/programs/moe/moe_layer" "$@" || status=$?
    exit "$status"
    ;;
  rust)
    install_packages "${library_packages[@]}" libcli11-dev nlohmann-json3-dev "${rust_packages[@]}"
    configure -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=OFF
    compile
    export SWITCHYARD_PREFIX=$root/build/rust/prefix CARGO_TARGET_DIR=$root/build/rust/target
    step "Installing the library in build/rust/prefix" \
      cmake --install "$build" --prefix "$SWITCHYARD_PREFIX"
    # Uses Debian's cargo, even if another cargo comes first in PATH.
    [[ ! -x /usr/bin/cargo ]] ||
      export PATH=/usr/bin:$PATH RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc
    cd "$root/bindings/rust"
    cargo test --offline "$@"
    cargo run --offline --example engine_step -- 8
    ;;
  engines)
    install_packages "${library_packages[@]}" libcli11-dev nlohmann-json3-dev python3-venv clang
    make_engines
    make_torch_headers "$root/build/engines-venv/bin/python3" "${header_versions[@]}"
    configure -DSWITCHYARD_BUILD_TESTS=OFF -DSWITCHYARD_BUILD_EXAMPLES=OFF
    compile
    make_python_packages
    SWITCHYARD_TORCH_HEADERS=$root/build/torch-headers PYTHONDONTWRITEBYTECODE=1 \
      SWITCHYARD_PARITY=$build/tools/libswitchyard_parity.so \
      exec "$root/build/engines-venv/bin/python3" -m pytest -q -p no:cacheprovider \
      "$root/bindings/python/tests" "$root/device/python/tests" "$@"
    ;;
  engines-ggml)
    install_packages "${library_packages[@]}" "${example_packages[@]}" python3-venv
    make_plugin -DSWITCHYARD_GGML_TESTS=ON "$@"
    SWITCHYARD_GGML_BUILD=$build "$root/build/ggml-test-venv/bin/python3" -m unittest \
      discover --start-directory "$root/integrations/ggml/tests" --verbose
    ;;
  docs)
    install_packages doxygen doxygen-awesome-css
    site=$root/build/docs
    rm -rf "$site"
    mkdir -p "$site"
    cd "$root"
    SWITCHYARD_SITE_VERSION=$(version_of_site)
    export SWITCHYARD_SITE_VERSION
    step "Building build/docs" doxygen docs/site/Doxyfile
    # Removes namespaces from the tree of pages, because Doxygen's option to hide
    # namespaces does not change the tree.
    sed -i -E 's/^( +\[ ")switchyard::(device::)?/\1/' "$site"/group__*.js
    broken=$(broken_links "$site")
    [[ -z $broken ]] || die "docs: links to what is not there: ${broken//$'\n'/, }"
    marked=$(marked_links "$site")
    [[ -z $marked ]] || die "docs: links show marks or file names: ${marked//$'\n'/, }"
    echo "Open build/docs/index.html: no server is needed"
    ;;
  release)
    source "$root/scripts/release/release.sh"
    make_release
    ;;
  release-test)
    source "$root/scripts/release/release_test.sh"
    test_release
    ;;
  packages)
    engines=
    if [[ ${1:-} == --engines ]]; then
      shift
      engines=yes
    fi
    install_packages "${library_packages[@]}" "${example_packages[@]}" "${test_packages[@]}" "$@"
    make_venv
    [[ -z $engines ]] || make_engines
    [[ -z $engines ]] || make_torch_headers "$root/build/engines-venv/bin/python3" "${header_versions[@]}"
    ;;
esac
