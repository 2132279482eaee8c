#!/bin/bash
# check.sh SOURCE_DIR VERSION
# Checks that each file that repeats the version has VERSION. `names FILE
# COUNT PATTERN` checks that FILE matches PATTERN COUNT times. The pattern's
# parentheses enclose the version or its beginning.
set -euo pipefail
cd "$1"
failures=0
names() {
  local found version count=0
  found=$(sed -nE "s/.*$3.*/\1/p" "$1")
  for version in $found; do
    count=$((count + 1))
    [[ $version == "$VERSION" || $version == "${VERSION%.*}" ]] && continue
    echo "FAILED: $1 says $version, CMakeLists.txt $VERSION" >&2
    failures=$((failures + 1))
  done
  ((count == $2)) && return
  echo "FAILED: $1 says its version $count times, not $2" >&2
  failures=$((failures + 1))
}
VERSION=$2
names bindings/rust/Cargo.toml 1 '^version = "([0-9.]+)"'
names CITATION.cff 1 '^version: ([0-9.]+)'
names docs/linking.md 1 'find_package\(switchyard ([0-9.]+)'
names docs/linking.md 1 'libswitchyard\.so\.([0-9.]+[0-9])'
names docs/linking.md 1 'SWITCHYARD_([0-9.]+[0-9])'
names docs/linking.md 1 'libswitchyard([0-9.]+)_'
names docs/linking.md 1 '_([0-9.]+)_amd64'
if [[ -d device ]]; then
  names device/docs/metal.md 1 'metal-check@v([0-9.]+[0-9])'
  names device/docs/metal.md 1 'switchyard_metal-([0-9.]+)-'
fi
names packaging/debian/libswitchyard.symbols 3 '^libswitchyard.*\.so\.([0-9.]+) '
names tests/install/consumer/CMakeLists.txt 1 'find_package\(switchyard ([0-9.]+)'
names tests/install/check.sh 2 'find_package\(switchyard ([0-9.]+)'
# The changelog has unreleased changes first, then this version with its date.
# The citation has the same date.
parts=$(sed -nE 's/^## +//p' CHANGELOG.md | head -n 2 | xargs)
day=$(sed -n 's/^date-released: //p' CITATION.cff)
[[ $parts == "[Unreleased] [$VERSION] - $day" && $day =~ ^20[0-9]{2}-[0-9]{2}-[0-9]{2}$ ]] ||
  { echo "FAILED: CHANGELOG.md begins with $parts; $VERSION, CITATION.cff says, is of '$day'" >&2; failures=$((failures + 1)); }
echo "$failures failures"
((failures == 0))
