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

# What CI files install: an archive that is pinned by its checksum.
mkdir "$work/archive"
cp "$conformant" "$work/archive/conformant"
tar -C "$work/archive" -czf "$work/conformant.tar.gz" conformant
export CONFORMANT_URL=file://$work/conformant.tar.gz
sum=$(sha256sum "$work/conformant.tar.gz"); sum=${sum%% *}
(cd "$work" && "$conformant" init --target flow=http://127.0.0.1:9/flow --ci github --out github >/dev/null)
(cd "$work" && "$conformant" init --target flow=http://127.0.0.1:9/flow --ci gitlab --out gitlab >/dev/null)
python3 -m venv "$work/yaml" && "$work/yaml/bin/pip" install --quiet 'PyYAML==6.0.3'
# The steps of a file that install, as the forge runs them.
steps() {
  "$work/yaml/bin/python" - "$1" <<'PY'
import sys, yaml
whole = yaml.safe_load(open(sys.argv[1]))
for job in list(whole.get("jobs", {}).values()) + list(whole.values()):
    if isinstance(job, dict):
        found = [step["run"] for step in job.get("steps", []) if step.get("name") == "Install conformant"]
        found = found or ["\n".join(job["before_script"])] * ("before_script" in job)
        if found:
            print(found[0])
            break
PY
}
for file in "$work/github/.github/workflows/conformant.yml" "$work/gitlab/.gitlab-ci.yml" "$root"/packaging/ci/github-matrix.yml "$root"/packaging/ci/gitlab-matrix.yml; do
  steps "$file" | sed "s#/usr/local/bin#$work/home/bin#; s#/tmp/#$work/home/#" >"$work/install"
  for pinned in "$sum" "${sum%?????}00000"; do
    rm -rf "$work/home"; mkdir -p "$work/home/bin"
    set +e
    HOME=$work/home GITHUB_PATH=$work/path CONFORMANT_SHA256=$pinned bash -e "$work/install" >"$work/said" 2>&1; code=$?
    set -e
    if [ "$pinned" = "$sum" ]; then
      [ "$code" = 0 ] && [ "$("$work/home/bin/conformant" --version)" = "$version" ] || { cat "$work/said"; echo "FAIL $file does not install"; exit 1; }
    else
      [ "$code" != 0 ] && [ ! -e "$work/home/bin/conformant" ] || { echo "FAIL $file installs an archive with another checksum"; exit 1; }
    fi
  done
done
echo 'ok   CI files: they install what their checksum names, and nothing else'
set +e
HOME=$work/home GITHUB_PATH=$work/path INPUT_URL=$CONFORMANT_URL INPUT_SHA256=$sum "$root/packaging/ci/install.sh"; right=$?
HOME=$work/other INPUT_URL=$CONFORMANT_URL INPUT_SHA256=0 "$root/packaging/ci/install.sh" >"$work/said" 2>&1; wrong=$?
set -e
[ "$right" = 0 ] && [ -x "$work/home/bin/conformant" ] && [ "$wrong" = 2 ] && [ ! -e "$work/other/bin/conformant" ] || { echo "FAIL the action installs: $right, $wrong"; exit 1; }

# The composite action's step: green, red and without a target.
coproc SERVED { exec "$conformant" serve --port 0 --exit-with-parent; }
read -r -u "${SERVED[0]}" line
target=all=${line#listening }
mkdir "$work/action"
cd "$work/action"
export INPUT_BINARY=$conformant GITHUB_ACTIONS=true GITHUB_OUTPUT=$work/output GITHUB_STEP_SUMMARY=$work/summary
action() { set +e; "$root/packaging/ci/run.sh" >"$work/said" 2>&1; code=$?; set -e; }
INPUT_TARGETS=$target INPUT_HOOKS=${target#all=}/_control INPUT_FILTER='flow/read-flows/happy' action
[ "$code" = 0 ] || { cat "$work/said"; echo "FAIL the action ends with $code on a clean target"; exit 1; }
for file in run.json junit.xml run.html run.md run.sarif; do
  [ -s "reports/$file" ] || { echo "FAIL the action wrote no $file"; exit 1; }
done
grep -q '^exit=0$' "$work/output" && grep -q '^## passed' "$work/summary" || { echo 'FAIL the action does not say how it went'; exit 1; }
INPUT_TARGETS='flow=http://127.0.0.1:9/flow' INPUT_FILTER='flow/read-flows/happy' action
[ "$code" = 3 ] || { echo "FAIL the action ends with $code where the target cannot be reached"; exit 1; }
INPUT_FILTER='flow/read-flows/happy' action
[ "$code" = 2 ] || { echo "FAIL the action ends with $code without a target"; exit 1; }
INPUT_TARGETS=$target INPUT_FILTER='flow/read-flows/happy' INPUT_REQUIRE_COMPLETE=true INPUT_MIN_JUDGED=101 action
[ "$code" = 2 ] || { echo "FAIL the action does not pass min-judged on"; exit 1; }
INPUT_TARGETS=$target INPUT_HOOKS=${target#all=}/_control INPUT_FILTER='flow/read-flows/happy' INPUT_REQUIRE_COMPLETE=True action
[ "$code" = 4 ] || { echo "FAIL the action ends with $code where True asks for a complete run"; exit 1; }
INPUT_TARGETS=flwo=http://x INPUT_FILTER='flow/read-flows/happy' action
[ "$code" = 2 ] && ! grep -q '::notice' "$work/said" || { echo "FAIL the action publishes the result of an earlier run"; exit 1; }
INPUT_TARGETS=$target INPUT_STRICT=maybe action
[ "$code" = 2 ] || { echo "FAIL the action ends with $code for a strict that is neither true nor false"; exit 1; }
echo 'ok   action: its steps run'
