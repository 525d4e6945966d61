job='serve'
unit='requests/s'
what='one list of flows for eight connections; `conformant` serves the stateful reference, the other tool an example from the exported OpenAPI document'

install() {
  command -v wrk >/dev/null && npm_has @mockoon/cli || return 1
  peer="Mockoon $(npm_version @mockoon/cli)"
  "$conformant" fixtures export --format openapi "$work/openapi" >/dev/null 2>&1
  local port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  begin 's/.*Server started on port ([0-9]+).*/http:\/\/127.0.0.1:\1/p' "$tools/node_modules/.bin/mockoon-cli" start --data "$work/openapi/flow.openapi.json" \
    --port "$port" --disable-log-to-file --disable-admin-api
  mocked=$url
  serve
}
ours() { load "$url/flow/v1/Flows"; }
theirs() { load "$mocked/v1/Flows"; }
