job='serve'
unit='requests/s'
what='one list of flows for eight connections; `conformant` serves the stateful reference, the other tool one stub with a fixed response'

install() {
  command -v wrk >/dev/null && command -v java >/dev/null && npm_has wiremock || return 1
  [ -n "$(find "$tools/node_modules/wiremock" -name '*.jar' | head -n 1)" ] || return 1
  peer="WireMock $(npm_version wiremock)"
  local stubs=$work/wiremock/mappings
  mkdir -p "$stubs"
  printf '{"request": {"method": "GET", "urlPath": "/v1/Flows"}, "response": {"status": 200, "jsonBody": {"flows": []}}}' >"$stubs/flows.json"
  begin 's/^port: *([0-9]+).*/http:\/\/127.0.0.1:\1/p' "$tools/node_modules/.bin/wiremock" --port 0 --root-dir "$work/wiremock"
  mocked=$url
  serve
}
ours() { load "$url/flow/v1/Flows"; }
theirs() { load "$mocked/v1/Flows"; }
