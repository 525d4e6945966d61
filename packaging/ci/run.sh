#!/usr/bin/env bash
# One run in CI, told what to do by INPUT_*: what the composite action and the component both do.
set -uo pipefail
input() { local name="INPUT_$1"; printf '%s' "${!name:-}"; }
binary=$(input BINARY); binary=${binary:-conformant}
reports=$(input REPORTS); reports=${reports:-reports}
arguments=(run)
for target in $(input TARGETS); do arguments+=(--target "$target"); done
# A glob is handed on as it stands, and is no pattern for files.
set -f
for filter in $(input FILTER); do arguments+=(--filter "$filter"); done
set +f
for name in hooks config waivers partition; do
  value=$(input "${name^^}")
  [ -z "$value" ] || arguments+=("--$name" "$value")
done
[ "$(input STRICT)" != true ] || arguments+=(--strict)
mkdir -p "$reports"
for report in json=run.json junit=junit.xml html=run.html markdown=run.md sarif=run.sarif badge=badge.json statement=statement.json; do
  arguments+=(--report "${report%%=*}=$reports/${report#*=}")
done
[ -z "${GITHUB_ACTIONS:-}" ] || arguments+=(--report "github=$reports/annotations.txt")
"$binary" "${arguments[@]}"
code=$?
# Annotations are commands on standard output; the summary is a file that the forge names.
[ ! -s "$reports/annotations.txt" ] || cat "$reports/annotations.txt"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || [ ! -s "$reports/run.md" ] || cat "$reports/run.md" >>"$GITHUB_STEP_SUMMARY"
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  { echo "record=$reports/run.json"; echo "exit=$code"; } >>"$GITHUB_OUTPUT"
fi
exit "$code"
