#!/bin/bash
# check.sh QEMU ISA_TEST
# Checks that ISA_TEST passes on each of the machines below, and that it prints
# the best ISA that the system supports. AVX2 is supported only if OSXSAVE says
# that the system saves the AVX registers.
set -euo pipefail
export LC_ALL=C
unset SWITCHYARD_ISA

qemu=$1
isa_test=$2

if ! command -v "$qemu" >/dev/null; then
  echo "skipped: no $qemu: apt-get install qemu-user"
  exit 77
fi

check() {
  local cpu=$1 best=$2 output
  # Leaves out the death tests, because each starts a program of its own, which
  # the system runs without the emulator: on a host with AVX-512 it finds AVX3.
  output=$("$qemu" -cpu "$cpu" "$isa_test" "--gtest_filter=-*DeathTest.*" 2>&1) || {
    printf '%s\n' "$output" | grep -v '^qemu-x86_64: warning' >&2
    echo "FAILED: $isa_test on -cpu $cpu" >&2
    exit 1
  }
  grep -qxF "The best ISA is $best." <<<"$output" || {
    grep -F 'The best ISA' <<<"$output" >&2 || true
    echo "FAILED: on -cpu $cpu the best ISA is not $best" >&2
    exit 1
  }
  echo "$cpu: $best"
}

check max AVX2
check Haswell AVX2
# On the next two machines CPUID lists AVX2, but XGETBV and AVX are illegal
# instructions.
check max,-xsave SSE4
check Haswell,-xsave SSE4
check max,-avx SSE4
