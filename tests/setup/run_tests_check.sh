#!/bin/bash
# run_tests_check.sh SOURCE_DIR CMAKE CTEST WORK
# Checks scripts/run_tests.sh without a terminal, on tests that this script
# defines. Some tests pass, one fails, and some are skipped: GoogleTest prints
# a text for that, and scripts exit with 77.
set -euo pipefail

source=$1 cmake=$2 ctest=$3 work=$4
PATH=$(dirname "$ctest"):$PATH
rm -rf "$work"
mkdir -p "$work"
cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(tests NONE)
enable_testing()
foreach(i RANGE 1 105)
  add_test(NAME passes${i} COMMAND true)
endforeach()
add_test(NAME "Typed<unsigned char>" COMMAND true)
add_test(NAME fails COMMAND bash -c "echo one; echo two >&2; exit 1")
add_test(NAME lacks_mpi COMMAND bash -c "echo skipped: no mpiexec; exit 77")
foreach(i RANGE 1 3)
  add_test(NAME Shader.Runs${i} COMMAND printf "[ RUN ]\\n/a/b.cc:12: Skipped\\nno Clang\\n\\n[  SKIPPED ]\\n")
endforeach()
set_tests_properties(lacks_mpi PROPERTIES SKIP_RETURN_CODE 77)
set_tests_properties(Shader.Runs1 Shader.Runs2 Shader.Runs3 PROPERTIES
  SKIP_REGULAR_EXPRESSION "SKIPPED")
END
"$cmake" -S "$work" -B "$work/build" >/dev/null

failures=0
# log STATUS ARGUMENT...: runs run_tests.sh, checks its exit code and sets
# `log`.
log() {
  local status=0
  log=$(bash "$source/scripts/run_tests.sh" "$work/build" "${@:2}" 2>&1) || status=$?
  ((status == $1)) || { echo "FAILED: exit code $status, not $1" >&2; failures=$((failures + 1)); }
}
expect() {
  grep -qE -- "$1" <<<"$log" && return
  printf 'FAILED: no line %s in\n%s\n' "$1" "$log" >&2
  failures=$((failures + 1))
}
lines() {
  (($(wc -l <<<"$log") <= $1)) && return
  printf 'FAILED: more than %d lines:\n%s\n' "$1" "$log" >&2
  failures=$((failures + 1))
}

log 8
lines 30
expect '^100 of 111 tests, [01] failed, [0-9]+ s$'
! grep -q 'Typed<' <<<"$log" || { echo 'FAILED: a test that passed is printed' >&2; failures=$((failures + 1)); }
expect '^3 tests skipped: no Clang \(Shader\.Runs1 and 2 more\)$'
expect '^1 test skipped: no mpiexec \(lacks_mpi\)$'
# The output of failed tests comes after all counts, and ctest's summary comes
# last.
order=$(grep -nE '^(100 of|one$|two$|3 tests skipped|[0-9]+% tests passed|Errors while running)' <<<"$log" |
  sed -E 's/^[0-9]+:([^ ]*).*/\1/' | xargs)
[[ $order == "100 one two 3 99% Errors" || $order == "100 one two 3 100% Errors" ]] ||
  { printf 'FAILED: in the order %s:\n%s\n' "$order" "$log" >&2; failures=$((failures + 1)); }
log 0 -R passes10
lines 8
expect '^100% tests passed, 0 tests failed out of 7$'
log 8 -R nothing
expect '^No tests were found'

echo "$failures failures"
((failures == 0))
