#!/usr/bin/env bash
# The examples for client teams (docs/examples): green with a client that waits when it is told to, red with one that does not.
# Usage: tests/interop/examples.sh CONFORMANT. Skips, and says so, what cannot be had.
set -euo pipefail
CONFORMANT=$(realpath "$1"); export CONFORMANT
examples=$(cd "$(dirname "$0")/../../docs/examples" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip() { printf '   skipped: %s\n' "$*"; }
die() { printf 'FAIL %s\n' "$*"; exit 1; }
cp -r "$examples"/. "$work"

both() { # NAME COMMAND…
  local name=$1; shift
  "$@" >"$work/$name.log" 2>&1 || { tail -n 40 "$work/$name.log"; die "$name: the patient client fails"; }
  if IMPATIENT=1 "$@" >"$work/$name.log" 2>&1; then die "$name: the impatient client passes"; fi
  grep -qE '429' "$work/$name.log" || { tail -n 40 "$work/$name.log"; die "$name: red for another reason"; }
  printf '   %s: green when it waits, red when it does not\n' "$name"
}

if command -v python3 >/dev/null && python3 -m venv "$work/venv" >/dev/null 2>&1 && "$work/venv/bin/pip" -q install pytest >/dev/null 2>&1; then
  cd "$work/pytest" && both pytest "$work/venv/bin/python" -m pytest -q
else
  skip 'pytest cannot be installed by pip'
fi
if command -v npm >/dev/null && (cd "$work/vitest" && npm install --silent --no-audit --no-fund) >/dev/null 2>&1; then
  cd "$work/vitest" && both vitest npx vitest run
else
  skip 'vitest cannot be installed by npm'
fi
