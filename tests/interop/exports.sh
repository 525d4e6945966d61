#!/usr/bin/env bash
# Other tools take our exports at their word: validators read them, newman plays the collection against `serve`.
# Call: tests/interop/exports.sh [CONFORMANT]. Needs bash; a part is skipped, and says so, only where its tool cannot be had.
set -euo pipefail
cd "$(dirname "$0")/../.."
conformant=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/debug/conformant}")
work=$(mktemp -d)
server=
stop_server() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || true; }
  server=
}
trap 'stop_server; rm -rf "$work"' EXIT

part() { printf '\n-- %s\n' "$*"; }
skip() { printf '   skipped: %s\n' "$*"; }
die() { printf '   FAILED: %s\n' "$*" >&2; exit 1; }

# Installs packages of npm beside the exports; what is installed already is taken as it is.
npm_has() {
  command -v npm >/dev/null || return 1
  (cd "$work" && npm install --silent --no-audit --no-fund "$@" >"$work/npm.log" 2>&1)
}

# Starts the reference on a free port; its address is in $url.
serve() {
  stop_server
  "$conformant" serve --port 0 "$@" >"$work/serve.out" 2>"$work/serve.err" &
  server=$!
  for _ in $(seq 100); do
    url=$(sed -n 's/^listening //p' "$work/serve.out")
    [ -z "$url" ] || return 0
    sleep 0.1
  done
  die "serve did not say that it listens: $(cat "$work/serve.err")"
}

part 'exports'
for format in openapi asyncapi jsonschema wiremock postman har; do
  "$conformant" fixtures export --format "$format" "$work/$format"
done

part 'openapi-spec-validator'
if python3 -m venv "$work/python" >/dev/null 2>&1 \
  && "$work/python/bin/pip" install --quiet openapi-spec-validator jsonschema >"$work/pip.log" 2>&1; then
  "$work/python/bin/python" -m openapi_spec_validator "$work"/openapi/*.openapi.json

  part 'jsonschema: every schema is one, and takes our valid fixtures'
  "$work/python/bin/python" tests/interop/schemas.py "$work/jsonschema" fixtures
else
  skip 'openapi-spec-validator and jsonschema cannot be installed by pip'
fi

part '@asyncapi/parser'
if npm_has @asyncapi/parser; then
  cp tests/interop/asyncapi.mjs "$work/"
  node "$work/asyncapi.mjs" "$work/asyncapi/events.asyncapi.json"
else
  skip '@asyncapi/parser cannot be installed by npm'
fi

part 'newman'
if npm_has newman; then
  newman() { "$work/node_modules/.bin/newman" run "$work/postman/collection.json" --env-var "baseUrl=$url" --color off "$@"; }
  serve
  newman --reporters cli >"$work/newman.log" 2>&1 || { tail -n 60 "$work/newman.log"; die 'the collection fails against the reference'; }
  grep -E '│ +(requests|assertions) ' "$work/newman.log"
  # A collection that nothing can fail proves nothing.
  serve --fault flow/execution-not-stored
  newman --reporters cli >"$work/newman.log" 2>&1 && die 'the collection passes against a faulty reference'
  grep -E '│ +assertions ' "$work/newman.log"
else
  skip 'newman cannot be installed by npm'
fi
