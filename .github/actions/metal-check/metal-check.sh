#!/bin/bash
# Runs a step of action.yml. The action's inputs are environment variables. `get` puts swy into
# GITHUB_PATH, and `check` runs it. Outside GitHub:
# RUN='row_max.metal --kernel row_max ...' metal-check.sh check
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# install PACKAGE...: installs Debian packages, with sudo unless it runs as root.
install() {
  local as_root=()
  [[ $EUID == 0 ]] || as_root=(sudo)
  "${as_root[@]}" apt-get -qq update
  "${as_root[@]}" apt-get -qq install -y --no-install-recommends "$@" >/dev/null
}
# need COMMAND PACKAGE...: installs the packages unless the command exists.
need() { command -v "$1" >/dev/null || install "${@:2}"; }

# unpack FILE FOLDER: copies swy from an archive or a wheel to FOLDER/bin.
unpack() {
  local found
  case $1 in
    *.whl) python3 -m zipfile -e "$1" "$2" ;;
    *) tar -C "$2" -xzf "$1" ;;
  esac
  found=$(find "$2" -type f -name swy -print -quit)
  [[ -n $found ]] || { echo "::error::$1: has no swy" && return 1; }
  mkdir -p "$2/bin"
  [[ $found -ef $2/bin/swy ]] || mv "$found" "$2/bin/swy"
  chmod +x "$2/bin/swy"
}

compile() {
  install g++ cmake ninja-build libhwy-dev libcli11-dev nlohmann-json3-dev
  cmake -S "$here/../../.." -B "$1/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSWITCHYARD_TBB=OFF \
    -DSWITCHYARD_BUILD_TOOLS=ON -DSWITCHYARD_DEVICE=ON
  cmake --build "$1/build" --target swy
  mkdir -p "$1/bin"
  mv "$1/build/tools/swy" "$1/bin/swy"
}

get() {
  local folder=${RUNNER_TEMP:-/tmp}/switchyard program=${PROGRAM:-}
  need clang++ clang
  need python3 python3
  if [[ -z $program ]] && command -v swy >/dev/null; then return; fi
  mkdir -p "$folder"
  [[ -n $program || -z ${TAG:-} ]] || program=$RELEASE/switchyard-${TAG#v}-linux-$(uname -m).tar.gz
  if [[ $program == *://* ]]; then
    need curl curl ca-certificates
    if curl -fsSL --retry 3 -o "$folder/${program##*/}" "$program"; then
      program=$folder/${program##*/}
    elif [[ -n ${PROGRAM:-} ]]; then
      echo "::error::$program: could not be fetched" && return 1
    else
      echo "::warning::$program: could not be fetched, so swy is compiled" && program=
    fi
  fi
  if [[ -n $program ]]; then unpack "$program" "$folder"; else compile "$folder"; fi
  echo "$folder/bin" >>"$GITHUB_PATH"
}

# annotate JSON: prints the findings as commands that make GitHub show them beside the code.
annotate() {
  python3 - "$1" <<'PYTHON'
import json
import os
import sys

def escaped(text):
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

for finding in json.load(open(sys.argv[1], encoding="utf-8"))["findings"]:
    place = finding["where"]
    where = ""
    if place:
        file = os.path.relpath(place["file"]) if os.path.isabs(place["file"]) else place["file"]
        file = escaped(file).replace(":", "%3A").replace(",", "%2C")
        where = f" file={file},line={place['line']},col={place['column']}"
    text = "\n".join(filter(None, [finding["text"], finding["help"]]))
    print(f"::error{where}::{escaped(text)}")
PYTHON
}

check() {
  local line words status=0 code count=0 sarif=${SARIF:-metal-check}
  mkdir -p "$sarif"
  if [[ -n ${SHADERS:-} ]]; then swy metal "$SHADERS" --json "$sarif/shaders.json" || status=1; fi
  while IFS= read -r line; do
    [[ $line =~ [^[:space:]] ]] || continue
    # Splits the line into words. Quotes work as in a shell, but variables are not expanded.
    mapfile -t words < <(xargs -n1 printf '%s\n' <<<"$line")
    count=$((count + 1)) code=0
    swy metal run "${words[@]}" --checked --seeds "${SEEDS:-5}" \
      --sarif "$sarif/$count.sarif" --json "$sarif/$count.json" || code=$?
    ((code != 1)) || annotate "$sarif/$count.json"
    ((code < 2)) || echo "::error::cannot be run: swy metal run $line"
    ((code == 0)) || status=1
  done <<<"${RUN:-}"
  return "$status"
}

case ${1:-} in
  get | check) "$1" ;;
  *) echo "usage: metal-check.sh get|check" >&2 && exit 2 ;;
esac
