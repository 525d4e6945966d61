#!/usr/bin/env bash
# Runs conformant once in CI, as the composite action does. INPUT_* variables are the inputs of the action. Bash 3.2 is enough.
set -uo pipefail
input() { local name="INPUT_$1"; printf '%s' "${!name:-}"; }
binary=$(input BINARY); binary=${binary:-conformant}
reports=$(input REPORTS); reports=${reports:-reports}
arguments=(run)
for target in $(input TARGETS); do arguments+=(--target "$target"); done
# Pass globs on without expanding them to file names.
set -f
for filter in $(input FILTER); do arguments+=(--filter "$filter"); done
set +f
for name in hooks config waivers partition min-judged; do
  value=$(input "$(printf '%s' "$name" | tr 'a-z-' 'A-Z_')")
  [ -z "$value" ] || arguments+=("--$name" "$value")
done
for name in strict require-complete; do
  variable=$(printf '%s' "$name" | tr 'a-z-' 'A-Z_')
  case $(input "$variable" | tr 'A-Z' 'a-z') in
    true | yes | on | 1) arguments+=("--$name") ;;
    '' | false | no | off | 0) ;;
    *)
      echo "input $name is $(input "$variable"): expected true or false" >&2
      exit 2
      ;;
  esac
done
mkdir -p "$reports"
for report in json=run.json junit=junit.xml html=run.html markdown=run.md sarif=run.sarif; do
  arguments+=(--report "${report%%=*}=$reports/${report#*=}")
done
[ -z "${GITHUB_ACTIONS:-}" ] || arguments+=(--report "github=$reports/annotations.txt")
# Those of an earlier run in this workspace would be published as the result of this one.
rm -f "$reports/run.md" "$reports/annotations.txt"
"$binary" "${arguments[@]}"
code=$?
# Annotations are commands on standard output. The CI service names the summary file.
[ ! -s "$reports/annotations.txt" ] || cat "$reports/annotations.txt"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || [ ! -s "$reports/run.md" ] || cat "$reports/run.md" >>"$GITHUB_STEP_SUMMARY"
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  { echo "record=$reports/run.json"; echo "exit=$code"; } >>"$GITHUB_OUTPUT"
fi
exit "$code"
