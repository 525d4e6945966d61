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
if [ -s "$work/python.json" ] && [ -s "$work/typescript.json" ]; then
  python3 - "$work/python.json" "$work/typescript.json" <<'PY' || die 'the same seed gives other documents in the other language'
import json, sys
one, two = (json.load(open(path)) for path in sys.argv[1:])
sys.exit(one != two)
PY
  printf '   the same seed gives the same documents in both languages\n'
fi
