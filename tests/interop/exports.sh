#!/usr/bin/env bash
# Checks the exports with other tools: validators and linters read them, hurl and Schemathesis run them against `serve`.
# Call: tests/interop/exports.sh [CONFORMANT]. Needs bash; a part is skipped, and says so, only where its tool cannot be had.
# What npm and pip install is kept in $CONFORMANT_INTEROP_CACHE where that is set, and goes with everything else where not.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/tests/interop
conformant=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/debug/conformant}")
work=$(mktemp -d)
tools=${CONFORMANT_INTEROP_CACHE:-$work/tools}
mkdir -p "$tools"
children=()

end() {
  for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap end EXIT
trap 'exit 1' INT TERM

part() { printf '\n-- %s (after %s s)\n' "$*" "$SECONDS"; }
skip() { printf '   SKIPPED: %s\n' "$*" >&2; }
die() { printf '   FAILED: %s\n' "$*" >&2; exit 1; }

# Installs packages of npm; what is installed already is taken as it is.
npm_has() {
  command -v npm >/dev/null || return 1
  (cd "$tools" && timeout 120 npm install --silent --no-audit --no-fund --ignore-scripts "$@" >"$work/npm.log" 2>&1)
}

# Waits until a file has a line that the expression finds, and puts what that leaves into $found.
await() {
  for _ in $(seq 300); do
    # The writer may not have begun the file.
    found=$(sed -nE "$2" "$1" 2>/dev/null | head -n 1) || true
    [ -z "$found" ] || return 0
    sleep 0.1
  done
  die "nothing to see in $1: $(tail -n 5 "$1")"
}

# Starts the reference on a free port; its address is in $url. Each use needs its own sandbox: $url/_world/NAME.
serve() {
  local log=$work/serve.${#children[@]}
  "$conformant" serve --port 0 "$@" >"$log" 2>&1 &
  children+=($!)
  await "$log" 's/^listening //p'
  url=$found
}

part 'exports'
for format in openapi asyncapi jsonschema har hurl arazzo; do
  "$conformant" fixtures export --format "$format" "$work/$format"
done
serve
reference=$url
serve --fault flow/execution-not-stored
faulty=$url

part 'openapi-spec-validator'
if [ -x "$tools/python/bin/python" ] || python3 -m venv "$tools/python" >/dev/null 2>&1 \
  && timeout 120 "$tools/python/bin/pip" install --quiet openapi-spec-validator jsonschema >"$work/pip.log" 2>&1; then
  "$tools/python/bin/python" -m openapi_spec_validator "$work"/openapi/*.openapi.json

  part 'jsonschema: every schema is one, and takes our valid fixtures'
  "$tools/python/bin/python" "$here/schemas.py" "$work/jsonschema" fixtures
else
  skip 'openapi-spec-validator and jsonschema cannot be installed by pip'
fi

part 'Spectral and Redocly'
if npm_has @stoplight/spectral-cli@6 @redocly/cli@2; then
  "$tools/node_modules/.bin/spectral" lint --ruleset "$here/spectral.yaml" --fail-severity hint "$work"/openapi/*.openapi.json
  "$tools/node_modules/.bin/redocly" lint --config "$here/redocly.yaml" --format json "$work"/openapi/*.openapi.json >"$work/redocly.log" 2>/dev/null || true
  # It exits 0 over warnings, of which there are to be none either.
  test "$(grep -cE '^ +"(errors|warnings|ignored)": 0' "$work/redocly.log")" = 12 || { head -c 4000 "$work/redocly.log"; die 'Redocly has something to say'; }
  printf '   Redocly says nothing of four documents\n'
else
  skip '@stoplight/spectral-cli and @redocly/cli cannot be installed by npm'
fi

part 'Arazzo: Redocly Respect runs the workflows'
if [ -x "$tools/node_modules/.bin/redocly" ]; then
  passed=0 total=0
  # Runs the workflows of a service; their numbers are added to $passed and $total.
  respect() { # SERVICE URL
    local base=$2/_world/respect-$1 log=$work/respect.$1.log servers=() line
    for document in "$work"/arazzo/*.openapi.json; do
      document=$(basename "$document" .openapi.json)
      servers+=(--server "$document=$base/${document/#control/_control}")
    done
    (cd "$work/arazzo" && timeout 900 "$tools/node_modules/.bin/redocly" respect "$1.arazzo.json" --input "$(cat reference.json)" \
      --severity SCHEMA_CHECK=off,STATUS_CODE_CHECK=off --max-steps 100000 "${servers[@]}" >"$log" 2>&1) || true
    line=$(sed -nE 's/^.*Workflows: (.*) total$/\1/p' "$log" | tail -n 1)
    [ -n "$line" ] || { tail -n 60 "$log"; die "Respect did not run the workflows of $1"; }
    printf '   %s: %s\n' "$1" "$line"
    passed=$((passed + $(grep -oE '[0-9]+ passed' <<<"$line" | grep -oE '[0-9]+' || echo 0)))
    total=$((total + $(grep -oE '[0-9]+$' <<<"$line")))
  }
  for document in "$work"/arazzo/*.arazzo.json; do respect "$(basename "$document" .arazzo.json)" "$reference"; done
  [ $((passed * 100)) -ge $((total * 90)) ] || die "$passed of $total workflows pass against the reference, expected 90 %"
  passed=0 total=0
  respect flow "$faulty"
  [ "$passed" -lt "$total" ] || die 'the workflows pass against a faulty reference'
else
  skip '@redocly/cli cannot be installed by npm'
fi

part 'Schemathesis: no status that the documents leave out'
if [ -x "$tools/schemathesis/bin/schemathesis" ] || python3 -m venv "$tools/schemathesis" >/dev/null 2>&1 \
  && timeout 120 "$tools/schemathesis/bin/pip" install --quiet 'schemathesis>=4,<5' >"$work/pip.log" 2>&1; then
  "$conformant" fixtures generate --world --count 400 --seed 3 --out "$work/world" 2>/dev/null
  "$conformant" fixtures generate --world --count 400 --seed 3 --format seed-data >"$work/world.ndjson"
  schemathesis() { # SERVICE URL
    python3 "$here/schemathesis.py" "$work/openapi" "$work/world" "$1" >"$work/$1.toml"
    (cd "$work" && timeout 120 "$tools/schemathesis/bin/schemathesis" --config-file "$1.toml" run --url "$2/$1" \
      --auth reference-api-key:reference-api-secret --header X-Auth-API-Key:reference-production-api-key-0001 \
      --checks status_code_conformance,not_a_server_error,content_type_conformance,response_schema_conformance \
      --max-examples 5 --seed 7 --generation-database none --no-color "openapi/$1.openapi.json" >"$1.log" 2>&1)
  }
  serve --seed-data "$work/world.ndjson"
  for service in auth chat flow media; do
    schemathesis "$service" "$url" || { tail -n 60 "$work/$service.log"; die "Schemathesis and the $service service disagree"; }
    printf '   %s: %s\n' "$service" "$(sed -nE 's/^ +([0-9]+ generated.*)/\1/p' "$work/$service.log")"
  done
  serve --seed-data "$work/world.ndjson" --answer '1+@flow/read-flows=503'
  schemathesis flow "$url" && die 'Schemathesis takes a status that no document has'
  grep -q 'Undocumented status code' "$work/flow.log" || { tail -n 40 "$work/flow.log"; die 'Schemathesis is red for another reason'; }
else
  skip 'schemathesis cannot be installed by pip'
fi

part 'HAR: our own judge finds nothing in what was recorded'
"$conformant" check "$work/har/run.har" --as har >"$work/check.log" || { tail -n 60 "$work/check.log"; die 'findings in run.har'; }
"$conformant" check "$work/har/wrong-requests.har" --as har --judge responses >"$work/check.log" || { tail -n 60 "$work/check.log"; die 'findings about the reference'; }
"$conformant" check "$work/har/wrong-requests.har" --as har --judge requests >"$work/check.log" && die 'invalid requests are accepted as valid'
tail -n 2 "$work/check.log"

part '@asyncapi/parser'
if npm_has @asyncapi/parser; then
  cp "$here/asyncapi.mjs" "$tools/"
  node "$tools/asyncapi.mjs" "$work/asyncapi/events.asyncapi.json"
else
  skip '@asyncapi/parser cannot be installed by npm'
fi

part 'hurl'
if command -v hurl >/dev/null; then
  play() { timeout 120 hurl --test --jobs 4 --variables-file "$work/hurl/reference.env" --variable base_url="$1/_world/hurl" "$work/hurl" >"$work/hurl.log" 2>&1; }
  play "$reference" || { grep -A12 '^error' "$work/hurl.log" | head -n 60; die 'the files fail against the reference'; }
  grep -E '^(Executed|Succeeded|Failed) ' "$work/hurl.log"
  play "$faulty" && die 'the files pass against a faulty reference'
  grep -E '^Failed ' "$work/hurl.log"
else
  skip 'hurl is not installed (cargo install hurl --locked): its files were written and not run'
fi

part 'done'
