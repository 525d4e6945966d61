job='explore'
unit='requests/s'
what='random requests to the flow service of `serve`; `conformant` uses `explore`, the other tool the exported OpenAPI document with its checks of statuses and bodies'

install() {
  pip_has schemathesis 'schemathesis>=4,<5' || return 1
  peer="schemathesis $(pip_version schemathesis schemathesis)"
  "$conformant" fixtures export --format openapi "$work/openapi" >/dev/null 2>&1
  serve
}
ours() {
  local world=$url/_world/ours$RANDOM$RANDOM
  drawn 's/^requests +([0-9]+)$/\1/p' "$conformant" explore --target "flow=$world/flow" --hooks "$world/_control" --budget 200 --jobs 2
}
theirs() {
  cd "$work" # It leaves a folder where it is called.
  drawn 's/^ +([0-9]+) generated.*/\1/p' "$tools/schemathesis/bin/schemathesis" run --url "$url/_world/theirs$RANDOM$RANDOM/flow" \
    --auth reference-api-key:reference-api-secret --checks status_code_conformance,response_schema_conformance --max-examples 50 --seed 7 \
    --workers 2 --generation-database none --no-color "$work/openapi/flow.openapi.json"
}
# The rate of a command that ends with the number of its requests; what it finds is not the matter here.
drawn() { # EXPRESSION COMMAND...
  local line=$1 started ended
  shift
  started=$(date +%s%N)
  "$@" >"$work/out" 2>&1 || true
  ended=$(date +%s%N)
  awk -v n="$(sed -nE "$line" "$work/out")" -v ns="$((ended - started))" 'BEGIN { print n / (ns / 1e9) }'
}
