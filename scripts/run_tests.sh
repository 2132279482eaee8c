#!/bin/bash
# run_tests.sh BUILD [ctest's arguments]: runs the ctest tests of a build
# folder.
#
# On a terminal, shows ctest's own progress, then a line for each reason why
# tests were skipped. Otherwise prints a short log, because two lines for each
# of thousands of tests would hide the failures: a line for each hundred tests,
# then the output of the failed tests, a line for each reason why tests were
# skipped, and ctest's summary.
set -euo pipefail

ctest=(ctest --test-dir "$1" --output-on-failure --no-tests=error "${@:2}")
log=$1/Testing/Temporary/LastTest.log

# show_log LAST_LOG: reads ctest's output and prints the short log. It is written
# in bash, because mawk would not process each line at once.
show_log() {
  local line state=start failed=0 failures=() skipped=() summary=() started=$SECONDS
  local ended='^ *([0-9]+)/([0-9]+) Test +#[0-9]+: (.*) \.+(   Passed|\*\*\*([A-Za-z]+))'
  while IFS= read -r line; do
    if [[ $state == summary || $line =~ ^[0-9]+%\ tests\ passed, ]]; then
      state=summary
      summary+=("$line")
    elif [[ $line =~ $ended ]]; then
      state=tests
      if [[ ${BASH_REMATCH[5]} == Skipped ]]; then
        skipped+=("${BASH_REMATCH[3]}")
      elif [[ ${BASH_REMATCH[4]} != '   Passed' && $line != *'(Disabled)'* ]]; then
        state=failure failed=$((failed + 1))
        failures+=("$line")
      fi
      ((BASH_REMATCH[1] % 100 != 0)) || printf '%d of %d tests, %d failed, %d s\n' \
        "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "$failed" $((SECONDS - started))
    elif [[ $line =~ ^\ +Start\ +[0-9]+:\  ]]; then
      state=tests
    elif [[ $state == start ]]; then
      printf '%s\n' "$line"
    elif [[ $state == failure || -n $line ]]; then
      failures+=("$line") # output of a failed test, or ctest's error about a missing program
    fi
  done
  ((${#failures[@]} == 0)) || printf '%s\n' '' "${failures[@]}"
  ((${#skipped[@]} == 0)) || printf '%s\n' "${skipped[@]}" | reasons "$1"
  ((${#summary[@]} == 0)) || printf '%s\n' '' "${summary[@]}"
}

# reasons LAST_LOG: reads the names of the skipped tests from stdin and prints a
# line for each reason, such as "12 tests skipped: no Clang for shaders: apt-get
# install clang (Shader.Runs and 11 more)". Finds the reasons in LAST_LOG:
# GoogleTest prints a reason below a line that ends with ": Skipped", and scripts
# print it after "skipped: ".
reasons() {
  awk '
    NR == FNR { skipped[$0] = 1; next }
    / Testing: / { name = $0; sub(/^.* Testing: /, "", name); is_below = 0 }
    !(name in skipped) { next }
    is_below && $0 != "" { reason[name] = $0; is_below = 0 }
    /: Skipped$/ { is_below = 1 }
    /^skipped: / { reason[name] = substr($0, 10) }
    END {
      for (name in skipped) {
        why = name in reason ? reason[name] : "without a reason"
        if (!(why in count) || name < first[why]) first[why] = name
        ++count[why]
      }
      printf "\n"
      for (why in count) {
        printf "%d test%s skipped: %s (%s", count[why], count[why] == 1 ? "" : "s", why, first[why]
        if (count[why] != 1) printf " and %d more", count[why] - 1
        printf ")\n"
      }
    }' - "$1"
}

# skipped_tests LAST_LOG: prints the names of the skipped tests. Finds them by the
# line that ctest writes below the output of a skipped test.
skipped_tests() {
  awk '/ Testing: / { name = $0; sub(/^.* Testing: /, "", name) }
    /^(Skip regular expression found|skipped: )/ { print name }' "$1"
}

if [[ -t 1 ]]; then
  status=0
  "${ctest[@]}" --progress || status=$?
  skipped=$(skipped_tests "$log")
  [[ -z $skipped ]] || reasons "$log" <<<"$skipped"
  exit "$status"
fi
"${ctest[@]}" 2>&1 | show_log "$log"
