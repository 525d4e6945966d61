#!/usr/bin/env bash
# The packages of `fixtures export`, as another team would: built by each language's own generator, installed, and used in a test.
# Usage: tests/interop/packages.sh CONFORMANT. Skips, and says so, what cannot be had.
set -euo pipefail
conformant=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip() { printf '   SKIPPED: %s\n' "$*"; }
die() { printf 'FAIL %s\n' "$*"; exit 1; }

if command -v python3 >/dev/null && python3 -m venv "$work/venv" >/dev/null 2>&1 && "$work/venv/bin/pip" -q install hatchling >/dev/null 2>&1; then
  "$conformant" fixtures export --format python "$work/python" 2>/dev/null
  "$work/venv/bin/pip" -q install "$work/python" >"$work/pip.log" 2>&1 || { tail -n 20 "$work/pip.log"; die 'the Python package is not installed'; }
  (cd "$work" && "$work/venv/bin/python" "$here/package.py" 7 >"$work/python.json") || die 'the Python package in use'
else
  skip 'python: no venv, or nothing can be installed by pip'
fi
if command -v npm >/dev/null && npm view json-schema-to-typescript version >/dev/null 2>&1; then
  "$conformant" fixtures export --format typescript "$work/typescript" 2>/dev/null
  (cd "$work/typescript" && npm install --silent --no-audit --no-fund && npm pack --silent) >"$work/npm.log" 2>&1 || { tail -n 20 "$work/npm.log"; die 'the npm package is not packed'; }
  mkdir "$work/team" && cp "$here/package.ts" "$work/team/"
  (cd "$work/team" && echo '{"type": "module"}' >package.json && npm install --silent --no-audit --no-fund "$work"/typescript/*.tgz typescript@5 @types/node@22) >"$work/npm.log" 2>&1 || { tail -n 20 "$work/npm.log"; die 'the npm package is not installed'; }
  (cd "$work/team" && npx tsc --strict --module nodenext --target es2022 --skipLibCheck false --types node package.ts && node package.js 7 >"$work/typescript.json") || die 'the npm package in use'
else
  skip 'typescript: nothing can be installed by npm'
fi
if command -v cargo >/dev/null && "$conformant" fixtures export --format rust "$work/rust" 2>/dev/null && (cd "$work/rust" && cargo fetch >"$work/cargo.log" 2>&1); then
  mkdir -p "$work/crate/src" && cp "$here/package.rs" "$work/crate/src/main.rs"
  (cd "$work/crate" && cargo init --quiet --name team . && cargo add --quiet --path ../rust && cargo add --quiet serde_json@1) >"$work/cargo.log" 2>&1 || { tail -n 20 "$work/cargo.log"; die 'the crate is not taken in'; }
  # What was built once is kept where the tree's own is: the models are written again nevertheless.
  (cd "$work/crate" && CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/../../target}/packages" cargo run --quiet -- 7 >"$work/rust.json") || die 'the crate in use'
else
  skip 'rust: no cargo, or its crates cannot be had'
fi
# Of Debian, and there in seconds.
command -v go >/dev/null || { [ "$(id -u)" = 0 ] && timeout 60 apt-get install -y -q --no-install-recommends golang-go >"$work/apt.log" 2>&1; } || true
if command -v go >/dev/null && command -v npx >/dev/null && npm view quicktype@23.0.17 version >/dev/null 2>&1; then
  "$conformant" fixtures export --format go "$work/go" 2>/dev/null
  (cd "$work/go" && go generate) >"$work/go.log" 2>&1 || { tail -n 20 "$work/go.log"; die 'quicktype writes no models'; }
  (cd "$work/go" && go vet ./...) || die 'the models are not valid Go'
  mkdir "$work/module" && cp "$here/package.go" "$work/module/"
  (cd "$work/module" && go mod init team && go mod edit -require conformant-fixtures@v0.0.0 -replace conformant-fixtures=../go) >"$work/go.log" 2>&1
  (cd "$work/module" && go run . 7 >"$work/go.json") || die 'the Go module in use'
else
  skip 'go: no go, or quicktype cannot be had by npx'
fi
found=()
for language in python typescript rust go; do
  if [ -s "$work/$language.json" ]; then found+=("$work/$language.json"); fi
done
if [ ${#found[@]} -gt 1 ]; then
  python3 - "${found[@]}" <<'PY' || die 'the same seed gives other documents in another language'
import json, sys
one, *others = (json.load(open(path)) for path in sys.argv[1:])
sys.exit(any(one != other for other in others))
PY
  printf '   the same seed gives the same documents in %s languages\n' "${#found[@]}"
fi
