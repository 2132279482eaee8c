#!/bin/bash
# check.sh SOURCE_DIR WORK [MOE_LAYER|--terminal]
# Runs scripts/setup.sh in a separate tree, WORK, with stubs for the programs
# that install and compile. With --terminal, only tests the lines that setup.sh
# prints on a terminal.
set -euo pipefail

source=$1
tree=$2
moe_layer=${3:-}
# Prints the sources of the fuzz targets. Without the device layer, all sources
# are in fuzz/.
fuzz_sources() { (cd "$source" && find . -path './fuzz/*_fuzz.cc' -o -path './device/fuzz/*_fuzz.cc'); }
rm -rf "$tree"
mkdir -p "$tree/bin" "$tree/fuzz"
(cd "$source" && cp --parents scripts/setup.sh scripts/run_tests.sh programs/moe/main.cc programs/arguments.cc \
  tools/parity/parity.py bench/*.py $(fuzz_sources) "$tree")
setup=$tree/scripts/setup.sh
unset SWITCHYARD_HIGHWAY_DIR
export STUB_PACKAGES STUB_APT STUB_BUILD
failures=0

stub() {
  printf '#!/bin/bash\necho "%s $*" >>"%s/calls"\n%s\n' "$1" "$tree" "$2" >"$tree/bin/$1"
  chmod +x "$tree/bin/$1"
}
# $STUB_PACKAGES lists the installed packages and their versions.
# shellcheck disable=SC2016
stub dpkg-query '
format=$3 name=$4 found=$(sed -n "s/^$4=//p" <<<"$STUB_PACKAGES")
[[ $format == *Status* ]] || { [[ -n $found ]] && echo "$found"; exit; }
[[ -n $found || $STUB_PACKAGES == all ]] && printf "installed "'
stub apt-get "$(printf 'echo "$STUB_APT"; [[ -z $STUB_APT || $1 == update ]]')"
# shellcheck disable=SC2016
stub apt-cache 'sed -n "s/^candidate=/  Candidate: /p" <<<"$STUB_PACKAGES"'
# shellcheck disable=SC2016
stub cmake '
[[ $1 == --build ]] || exit 0
echo "[0/1] Re-running CMake"
for ((i = 1; i <= 8; ++i)); do echo "[$i/8] Building CXX object $i.cc.o"; done
[[ $STUB_BUILD != broken ]] || { printf "FAILED: 8.cc.o\n8.cc:1:1: error: no\nninja: build stopped\n"; exit 1; }'

# run ARGUMENT...: runs setup.sh and sets status, out and err.
run() {
  status=0
  out=$(PATH=$tree/bin:$PATH bash "$setup" "$@" 2>"$tree/err") || status=$?
  err=$(cat "$tree/err")
}
expect() {
  local what=$1
  shift
  "$@" && return
  printf 'FAILED: %s\nexit code %s\n--- stdout\n%s\n--- stderr\n%s\n' "$what" "$status" "$out" "$err" >&2
  failures=$((failures + 1))
}
has() { [[ $1 == *"$2"* ]]; }

make_moe_layer() {
  mkdir -p "$tree/build/release/programs/moe"
  printf '#!/bin/bash\necho "moe_layer: $*"\nexit %d\n' "$1" >"$tree/build/release/programs/moe/moe_layer"
  chmod +x "$tree/build/release/programs/moe/moe_layer"
}

build_release=$tree/build/release
make_bench() {
  mkdir -p "$build_release/bench"
  printf '#!/bin/bash\n[[ " $* " != *list_tests* ]] || echo route/a/AVX2\nfor word; do [[ $word != *out=* ]] || : >"${word#*=}"; done\n' \
    >"$build_release/bench/switchyard_bench"
  chmod +x "$build_release/bench/switchyard_bench"
}

if [[ $moe_layer == --terminal ]]; then
  command -v script >/dev/null || { echo "skipped: no program 'script', which makes a pseudo-terminal"; exit 77; }
  script -qec true /dev/null </dev/null >/dev/null 2>&1 ||
    { echo "skipped: no pseudo-terminal, for which /dev/pts is needed"; exit 77; }
  make_moe_layer 0
  STUB_PACKAGES=all
  status=0 err=
  out=$(PATH=$tree/bin:$PATH script -qec "bash '$setup' run" /dev/null </dev/null)
  expect "a terminal's line" has "$out" $'\rCompiling: 8 of 8 files\e[K, '
  echo "$failures failures"
  exit "$failures"
fi

# A wrong argument gives one line and exit code 2, and changes nothing.
refused() {
  local line=$1
  shift
  run "$@"
  expect "setup.sh $*" test "$status $err" == "2 setup.sh: $line"
  expect "setup.sh $* prints" test -z "$out"
}
commands="run test bench compare soak aarch64 fuzz parity rust engines engines-ggml docs release release-test clean packages help"
targets=$(fuzz_sources | sed 's|.*/||; s|_fuzz\.cc$||' | LC_ALL=C sort | xargs)
options="--checkpoint --layer --dtype --tokens --repeat --top-k --input --output --json --compare --threads --isa"
above="not a whole number above 0:"
refused "no command 'rnu'; there are $commands" rnu
refused "help: no command 'rnu'; there are $commands" help rnu
refused "run: no option --token; there are $options" run --token 5
refused "run: no option -t; there are $options" run -t 5
refused "run: --tokens: $above '0'" run --tokens 0
refused "run: --threads: $above '2x'" run --threads=2x
refused "run: --top-k: no value" run --top-k
refused "run: --json: no value" run --json
refused "run: no folder of a checkpoint: /nowhere" run /nowhere
refused "test: no argument of cmake's: Route" test Route
refused "aarch64: no argument of cmake's: 1" aarch64 1
refused "engines-ggml: no argument of cmake's: 1" engines-ggml 1
refused "bench: --repeat: $above '0'" bench --repeat 0
refused "bench: --repeat: $above ''" bench --with-ggml --repeat
refused "bench: route: not --with-ggml and then --repeat N, nor --shape=..., nor --benchmark_..." bench route
refused "bench: --benchmark_out=x: the report reads build/bench/*.json, with all repetitions: no other files here" \
  bench --benchmark_out=x
refused "compare: x: not --with-torch, --with-ggml or --repeat N" compare --with-torch x
refused "compare: --repeat: $above ''" compare --repeat
refused "compare: --repeat: $above '0'" compare --with-ggml --repeat 0
refused "clean: unexpected argument: release" clean release
refused "soak: for how many minutes?" soak
refused "soak: MINUTES: $above '0'" soak 0
refused "soak: seed: not a whole number: 'x'" soak 1 x
refused "soak: unexpected argument: 3" soak 1 2 3
refused "fuzz: SECONDS: $above 'route'" fuzz route
refused "fuzz: no target rote; there are $targets" fuzz 3 rote
refused "parity: no option --olny; there are --only --seed" parity --olny glm
refused "parity: --seed: $above 'x'" parity --seed x
refused "parity: --only: no value" parity --only
refused "parity: unexpected argument: glm" parity glm
refused "packages: not a package's name: A" packages A
refused "packages: not a package's name: --engines" packages cmake --engines
refused "docs: unexpected argument: x" docs x
refused "release: unexpected argument: x" release x
refused "release-test: unexpected argument: x" release-test x
SWITCHYARD_HIGHWAY_DIR=/nowhere refused "SWITCHYARD_HIGHWAY_DIR: no hwy/highway.h in '/nowhere'" run
run
expect "no command" test "$status" -eq 2
expect "no command" has "$err" "scripts/setup.sh run"

# Asks for the help of each command in three forms.
for command in $commands; do
  for way in "help $command" "$command --help" "$command -h"; do
    # shellcheck disable=SC2086
    run $way
    expect "$way" test "$status $err" == "0 "
    expect "$way" has "$out" "scripts/setup.sh $command"
  done
done
run help
expect "help" has "$out" "scripts/setup.sh soak MINUTES [seed]"
[[ ! -e $tree/build && ! -e $tree/calls ]] ||
  { echo "FAILED: help or a refusal touched build/: $(ls "$tree/build" "$tree/calls")" >&2; failures=$((failures + 1)); }
# moe_layer has exactly the options that setup.sh passes on.
if [[ -n $moe_layer ]]; then
  listed=$("$moe_layer" --help | grep -oE -- '^ +(-h,)?--[a-z-]+|, ?--[a-z-]+' | grep -oE -- '--[a-z-]+' | grep -vxF -- --help | sort -u)
  [[ $listed == "$(tr ' ' '\n' <<<"$options" | sort -u)" ]] ||
    { echo "FAILED: moe_layer has $listed" >&2; failures=$((failures + 1)); }
fi

# A run prints one line per step, with the compiler's counts, and also builds
# swy.
make_moe_layer 0
STUB_PACKAGES=all
run run --tokens 5
expect "run" test "$status $err" == "0 "
expect "run configures" has "$out" "Configuring build/release"
expect "run counts" grep -qxE 'Compiling: 2 of 8 files(, about [0-9]+ s left)?; 4 of 8 .*; 6 of 8 .*; 8 of 8 files, [0-9]+ s' <<<"$out"
expect "run runs" has "$out" "moe_layer: --tokens 5"
expect "run builds swy" grep -q -- '--build .* --target moe_layer swy' "$tree/calls"
expect "the log" grep -qF '[8/8] Building CXX object 8.cc.o' "$tree/build/setup.log"
# At its end, a run prints three further commands. It returns moe_layer's exit
# code.
expect "run says what is next" grep -qE '^Next, in .*:$' <<<"$out"
expect "run ends with three commands" test "$(sed '1,/^Next/d' <<<"$out" | grep -c '^  ')" -eq 3
for next in $(sed '1,/^Next/d' <<<"$out" | grep -oE '\b(scripts|docs|examples)/[a-z_/.]*[a-z]'); do
  expect "run names $next" test -e "$source/$next"
done
make_moe_layer 3
run run
expect "moe_layer's exit code" test "$status" -eq 3
expect "a failure has nothing next" test "${out/Next/}" == "$out"
make_moe_layer 0
STUB_BUILD=broken run run
expect "a broken build" test "$status" -eq 1
expect "a broken build" has "$err" $'8.cc:1:1: error: no\n'
expect "a broken build" has "$err" "failed: Compiling (see $tree/build/setup.log)"

# --kernels runs only the kernels' tests. A later `test` runs all tests again,
# with the preset's options.
stub ctest ''
mkdir -p "$tree/build/venv/bin"
printf '#!/bin/bash\n' >"$tree/build/venv/bin/python3"
chmod +x "$tree/build/venv/bin/python3"
run test --kernels -DX=1
expect "test --kernels" test "$status $err" == "0 "
expect "test --kernels" grep -q -- '--preset release .*EXAMPLES=OFF -DSWITCHYARD_DEVICE=OFF .*-DX=1$' "$tree/calls"
run test
expect "test" grep -q -- '--preset release .*EXAMPLES=ON [^ ]*$' "$tree/calls"

# Fuzz targets run in parallel, and each prints a line. The first failure ends
# the run.
for fuzz_source in $(fuzz_sources); do
  target=$tree/build/fuzz/${fuzz_source%.cc}
  mkdir -p "$(dirname "$target")"
  printf '#!/bin/bash\necho "#9 DONE cov: 12 ft: 34 corp: 1"\necho "stat::number_of_executed_units: 56"\n' \
    >"$target"
  chmod +x "$target"
done
run fuzz 1
expect "fuzz" test "$status $err" == "0 "
expect "fuzz has a line for each" test \
  "$(grep -oE '^[a-z_]+ +seed [0-9]+ *56 runs, 12 edges, 34 features$' <<<"$out" | cut -d' ' -f1 | sort | xargs)" == "$(tr " " "\n" <<<"$targets" | sort | xargs)"
printf '#!/bin/bash\necho "Test unit written to /a/crash"\nexit 77\n' >"$tree/build/fuzz/fuzz/activate_fuzz"
run fuzz 1
expect "a failing target" test "$status" -eq 1
expect "a failing target" has "$err" "fuzz: activate failed"
expect "a failing target" has "$err" "its input: /a/crash"
expect "a failing target is the last" test "$(grep -c ' seed ' <<<"$out")" -lt "$(wc -w <<<"$targets")"

# Refuses to run while another run holds the lock.
if command -v flock >/dev/null; then
  before=$(cat "$tree/build/setup.log")
  exec 8>"$tree/build/setup.lock"
  flock 8
  run run
  expect "a second one" test "$status $err" == \
    "1 setup.sh: another one is at work in $tree/build; what it does is in build/setup.log"
  expect "a second one's log" test "$before" == "$(cat "$tree/build/setup.log")"
  exec 8>&-
  run run
  expect "after the first one" test "$status" -eq 0
fi

# compare passes its options on, and draws the plots with any Python that has
# matplotlib.
# shellcheck disable=SC2016
stub python3 '[[ $STUB_PYTHON != bare || $* != "-c import matplotlib" ]]'
: >"$tree/calls"
export STUB_PYTHON=
rm "$tree/build/venv/bin/python3"
run compare --repeat 3
expect "compare" test "$status $err" == "0 "
expect "compare measures" grep -qF -- \
  "compare.py $build_release/programs/moe/moe_layer --json $tree/build/compare.json --command scripts/setup.sh compare --repeat 3 --repeat 3" \
  "$tree/calls"
expect "compare without ggml has no plot" test "$(grep -c plots.py "$tree/calls")" -eq 0
make_bench
run bench --repeat 2 --benchmark_filter=a
expect "bench" test "$status $err" == "0 "
expect "bench repeats" test "$(cd "$tree/build/bench" && echo *)" == "001-route_a.1.json 001-route_a.2.json shapes"
expect "bench reports" grep -q -- "report.py --json .*bench.json --command scripts/setup.sh bench --repeat 2 --benchmark_filter=a .*001-route_a.2.json" "$tree/calls"
expect "bench draws" grep -qF -- "plots.py $tree/build/plots --bench $tree/build/bench.json --swy $build_release/tools/swy" "$tree/calls"
STUB_PYTHON=bare
: >"$tree/calls"
printf '#!/bin/bash\nexit 1\n' >"$tree/build/venv/bin/python3"
run bench --repeat 1
expect "no matplotlib" test "$status $err" == "0 "
expect "no matplotlib" has "$out" "No plots, because Python has no matplotlib here"
expect "no matplotlib" test "$(grep -c plots.py "$tree/calls")" -eq 0
rm "$tree/bin/python3"

# clean removes the folders that setup.sh makes, and no others.
for name in $(cat "$source/scripts/setup.sh" "$source"/scripts/release/*.sh |
  grep -oE '(root\}?/build/|install_python )[a-z][a-z0-9.-]+' | sed -E 's|.*[/ ]||' | sort -u); do
  sed -n '/^readonly outputs=/,/)$/p' "$source/scripts/setup.sh" | tr '() =' '\n' | grep -qxF -- "$name" ||
    { echo "FAILED: clean does not remove build/$name" >&2; failures=$((failures + 1)); }
done
mkdir -p "$tree/build/mine" "$tree/kept"
echo kept >"$tree/kept/file"
ln -s "$tree/kept" "$tree/build/docs"
head -c 3000000 /dev/zero >"$tree/build/release/big"
if command -v flock >/dev/null; then
  exec 8>"$tree/build/setup.lock"
  flock 8
  run clean
  expect "clean beside another run" test "$status" -eq 1
  expect "clean beside another run" has "$err" "another one is at work"
  expect "clean beside another run" test -e "$tree/build/release/big"
  exec 8>&-
fi
run clean
expect "clean" test "$status $err" == "0 "
expect "clean prints sizes" grep -qxE 'build/release +[3-9] MB' <<<"$out"
expect "clean prints the rest" grep -qxE 'Removed [0-9]+ MB; .* stay in build/: mine' <<<"$out"
expect "clean leaves other files" test "$(ls -A "$tree/build") $(cat "$tree/kept/file")" == "mine kept"
rmdir "$tree/build/mine"
run clean
run clean
expect "clean of nothing" test "$status $out$err" == "0 Nothing to remove: no $tree/build"

# Tests a machine without a network, and a machine with a Highway that is too old.
if ((EUID == 0)); then
  STUB_PACKAGES=none STUB_APT="W: Temporary failure resolving the mirror" run run
  expect "no network" test "$status $err" == \
    "1 setup.sh: no network: Installing $(sed -nE 's/^apt-get install .*Timeout=120 //p' "$tree/calls" | tail -n 1) (see $tree/build/setup.log)"
  if command -v dpkg >/dev/null; then
    STUB_PACKAGES=candidate=0.15.0-8 STUB_APT="" run run
    expect "an old Highway to be installed" has "$err" "SWITCHYARD_HIGHWAY_DIR=\$PWD/highway $setup run"
  fi
fi
if command -v dpkg >/dev/null; then
  STUB_PACKAGES=libhwy-dev=0.15.0-8 run run
  expect "an old Highway" has "$err" "Highway here is 0.15.0-8 and has to be 1.0.3 or later"
  STUB_PACKAGES=all
  mkdir -p "$tree/highway/hwy"
  : >"$tree/highway/hwy/highway.h"
  (cd "$tree" && SWITCHYARD_HIGHWAY_DIR=highway && export SWITCHYARD_HIGHWAY_DIR && run run &&
    expect "Highway's sources" grep -qF -- "-DSWITCHYARD_HIGHWAY_DIR=$tree/highway" "$tree/calls" &&
    ((failures == 0))) || failures=$((failures + 1))
fi

echo "$failures failures"
((failures == 0))
