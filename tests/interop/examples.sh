#!/usr/bin/env bash
# The examples for client teams (docs/examples): green with a client that respects Retry-After, red with one that does not.
# Usage: tests/interop/examples.sh CONFORMANT. Skips, and says so, what cannot be had.
set -euo pipefail
CONFORMANT=$(realpath "$1"); export CONFORMANT
examples=$(cd "$(dirname "$0")/../../docs/examples" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip() { printf '   SKIPPED: %s\n' "$*"; }
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
if command -v cargo >/dev/null && (cd "$work/rust" && cargo fetch) >/dev/null 2>&1; then
  # What was built once is kept where the tree's own is.
  target=${CARGO_TARGET_DIR:-$examples/../../target}/examples-for-clients
  cd "$work/rust" && both rust env CARGO_TARGET_DIR="$target" cargo test --quiet
else
  skip 'rust: no cargo, or its crates cannot be had'
fi
# Of Debian, and there in seconds.
debian() { [ "$(id -u)" = 0 ] && timeout 60 apt-get install -y -q --no-install-recommends "$@" >/dev/null 2>&1; }
if command -v go >/dev/null || { debian golang-go && command -v go >/dev/null; }; then
  cd "$work/go" && both go go test ./...
else
  skip 'go is not installed'
fi
jars=/usr/share/java
if command -v javac >/dev/null && { [ -e "$jars/junit-platform-console.jar" ] || debian junit5; }; then
  path=$work/junit/out$(printf ':%s.jar' "$jars"/{junit-jupiter-{api,engine,params},junit-platform-{console,launcher,engine,commons,reporting}} \
    "$jars"/{opentest4j,opentest4j-reporting-{events,schema},apiguardian-api,picocli,univocity-parsers})
  cd "$work/junit" && javac -cp "$path" -d out ./*.java || die 'junit: no Java'
  both junit java -cp "$path" org.junit.platform.console.ConsoleLauncher --scan-class-path out --disable-banner
else
  skip 'junit: no javac, or no JUnit 5 of Debian'
fi
