#!/bin/bash
# expert_parallel_test.sh MPIEXEC PROGRAM
# Runs the program on 1, 2 and 4 processes. The results have to be close to
# those of a plain loop, and to have the same bits for each number of
# processes.
set -euo pipefail
mpiexec=$1 program=$2
command -v "$mpiexec" >/dev/null || { echo "skipped: no $mpiexec: apt-get install openmpi-bin"; exit 77; }

# Open MPI needs flags to run as root and with more processes than cores.
# Without --bind-to none, the processes of several tests would share the first
# cores. Open MPI's direct copies between processes are off, because they need
# a right that containers do not give.
flags=()
if "$mpiexec" --version 2>&1 | grep -qE 'Open ?(MPI|RTE)'; then
  flags=(--oversubscribe --bind-to none)
  ((EUID != 0)) || flags+=(--allow-run-as-root)
  export OMPI_MCA_btl_vader_single_copy_mechanism=none
fi
# Open MPI uses hwloc to describe the machine. Its plug-in for graphics cards
# connects to ten X displays on "localhost" at each start, which takes 200 s
# if the name cannot be resolved. Without /sys, hwloc prints a warning, which
# the test would take for the program's output.
export HWLOC_COMPONENTS=-gl HWLOC_HIDE_ERRORS=2

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# same ARGUMENTS...: checks that the digest does not depend on the number of
# processes.
same() {
  local processes output digest first=
  for processes in 1 2 4; do
    output=$("$mpiexec" "${flags[@]}" -n "$processes" "$program" --rounds 1 --check "$@") ||
      fail "$processes processes, $*: $output"
    digest=$(sed -n 's/^digest //p' <<<"$output")
    echo "$processes processes, $*: $digest"
    [[ $digest =~ ^[0-9a-f]{16}$ ]] || fail "no digest: $output"
    [[ ${first:=$digest} == "$digest" ]] || fail "one process has $first"
  done
}
same --tokens 33 --hidden 256 --intermediate 96
same --tokens 32 --hidden 256 --intermediate 96 --dispatch f8e4m3
same --tokens 32 --hidden 256 --intermediate 96 --dispatch bf16
same --tokens 32 --hidden 256 --intermediate 96 --dispatch f32 --combine f32
# One rank has no tokens, another has no experts.
same --tokens 3 --experts 5 --top-k 2 --hidden 68 --intermediate 7

# refused MESSAGE ARGUMENTS...: expects one line and exit code 2. Runs without
# mpiexec, because mpiexec adds lines of its own.
refused() {
  local wanted="expert_parallel: $1" output status=0
  shift
  output=$("$program" "$@" 2>&1) || status=$?
  [[ $status == 2 && $output == "$wanted" ]] || fail "$*: exit code $status, $output"
}
refused "The following argument was not expected: --token" --token 3
refused "--tokens: 1 required N missing" --tokens
for wrong in 0 -1 1x 65537 99999999999999999999 ''; do
  refused "--tokens: Value $wrong not in range 1 to 65536" --tokens "$wrong"
done
refused "--hidden 6: not a multiple of 4" --hidden 6
refused "--top-k 5: more than --experts" --top-k 5 --experts 4
refused "--dispatch: i4 not in {i8,f8e4m3,bf16,f32}" --dispatch i4
refused "--combine: i8 not in {bf16,f32}" --combine i8
"$program" --help | grep -q -- '--tokens N' || fail "no help"
status=0
output=$("$program" --help 2>&1 >/dev/full) || status=$?
[[ $status == 2 && $output == *"cannot write to standard output: No space left on device" ]] ||
  fail "a full disk: exit code $status, $output"
