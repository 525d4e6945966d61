#!/usr/bin/env bash
# What people install, installed: the wheel into a fresh venv, the npm package into a fresh project,
# and the steps of the action as a shell runs them. Usage: tests/packaging/run.sh CONFORMANT. What
# cannot be had is skipped, and it says so.
set -euo pipefail
conformant=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
skip() { printf '   skipped: %s\n' "$*"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$("$conformant" --version)

if command -v npm >/dev/null; then
  platform=$(node -p 'process.platform + "-" + process.arch')
  "$root/packaging/npm/pack.sh" "$work/npm" "$platform=$conformant" >/dev/null
  mkdir "$work/project"
  (cd "$work/project" && npm init -y >/dev/null && npm install --silent --offline --no-audit --no-fund "$work"/npm/*.tgz)
  [ "$("$work/project/node_modules/.bin/conformant" --version)" = "$version" ] || { echo 'FAIL the npm package runs something else'; exit 1; }
  set +e
  "$work/project/node_modules/.bin/conformant" explain no/such-rule >/dev/null 2>&1; code=$?
  set -e
  [ "$code" = 2 ] || { echo "FAIL the npm package returns exit code $code, not 2"; exit 1; }
  echo "ok   npm: $version"
else
  skip 'npm is not installed: the npm package was not built'
fi

# The wheel contains the existing program: maturin would build it again.
if command -v python3 >/dev/null && python3 -m venv "$work/build" 2>/dev/null && "$work/build/bin/pip" install --quiet 'maturin>=1.7,<2' wheel 2>/dev/null; then
  profile=release
  case $conformant in */debug/*) profile=dev ;; */quick/*) profile=quick ;; esac
  # What it asks cargo about is the crates of every platform, of which a build has fetched one's.
  (cd "$root" && cargo fetch --quiet --locked && "$work/build/bin/maturin" build --quiet --locked --offline --profile "$profile" --out "$work/wheels")
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet --no-index "$work"/wheels/*.whl
  [ "$("$work/venv/bin/conformant" --version)" = "$version" ] || { echo 'FAIL the wheel runs something else'; exit 1; }
  echo "ok   wheel: $(basename "$work"/wheels/*.whl)"
else
  skip 'maturin could not be installed: the wheel was not built'
fi

# The composite action's one step, green and red.
mkdir "$work/action"
cd "$work/action"
export INPUT_BINARY=$conformant GITHUB_ACTIONS=true GITHUB_OUTPUT=$work/output GITHUB_STEP_SUMMARY=$work/summary
INPUT_FILTER='flow/read-flows/happy' "$root/packaging/ci/run.sh" >"$work/said"
for file in run.json junit.xml run.html run.md run.sarif; do
  [ -s "reports/$file" ] || { echo "FAIL the action wrote no $file"; exit 1; }
done
grep -q '^exit=0$' "$work/output" && grep -q '^## conformant' "$work/summary" || { echo 'FAIL the action does not say how it went'; exit 1; }
set +e
INPUT_TARGETS='flow=http://127.0.0.1:9/flow' INPUT_FILTER='flow/read-flows/happy' "$root/packaging/ci/run.sh" >"$work/said" 2>&1; code=$?
set -e
[ "$code" = 3 ] || { echo "FAIL the action ends with $code where the target cannot be reached"; exit 1; }
echo 'ok   action: its steps run'
