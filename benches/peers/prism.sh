job='serve'
unit='requests/s'
what='one list of flows for eight connections; `conformant` serves the stateful reference, the other tool an example from the exported OpenAPI document'

install() {
  command -v wrk >/dev/null && npm_has @stoplight/prism-cli@5 || return 1
  peer="Prism $(npm_version @stoplight/prism-cli)"
  "$conformant" fixtures export --format openapi "$work/openapi" >/dev/null 2>&1
  begin 's/.*Prism is listening on (http:[^ ]*).*/\1/p' "$tools/node_modules/.bin/prism" mock --port 0 --errors "$work/openapi/flow.openapi.json"
  mocked=$url
  serve
}
ours() { load "$url/flow/v1/Flows"; }
theirs() { load "$mocked/v1/Flows"; }
