#!/bin/bash
# quantised_engine_test.sh PROGRAM PROGRAM_IN_C CONFIG_JSON
# Checks that both engines print the same number on any number of threads.
# They have to refuse a configuration that they cannot run, with one line that
# says why.
set -euo pipefail
config=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() {
  echo "FAILED: $*" >&2
  exit 1
}

wanted=
for program in "$1" "$2"; do
  for cores in all one; do
    run=("$program" "$config")
    [[ $cores == all ]] || run=(taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" "${run[@]}")
    found=$("${run[@]}") || die "${run[*]}: exit code $?"
    [[ $found =~ ^-?[0-9]+\.[0-9]+$ ]] || die "${run[*]}: printed $found"
    [[ -n $wanted ]] || wanted=$found
    [[ $found == "$wanted" ]] || die "${run[*]}: printed $found instead of $wanted"
  done

  # refused WHAT SED_COMMAND: edits the configuration and expects an error
  # that names the wrong field.
  refused() {
    local status=0
    sed "$2" "$config" >"$work/config.json"
    "$program" "$work/config.json" >"$work/out" 2>"$work/err" || status=$?
    ((status == 1)) || die "$program, $1: exit code $status"
    [[ ! -s $work/out && $(wc -l <"$work/err") == 1 ]] || die "$program, $1: more than one line"
    grep -qF -- "$1" "$work/err" || die "$program, $1: $(<"$work/err")"
  }
  refused num_experts_per_tok '/num_experts_per_tok/d'
  refused family 's/qwen2_moe/qwen200_moe/'
  refused rms_norm_eps 's/1e-06/-1/'
  refused config.json 's/"hidden_size": 256/"hidden_size": 250/'
done
echo "Both print $wanted"
