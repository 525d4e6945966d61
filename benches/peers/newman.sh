job='run'
unit='requests/s'
what='the happy path of every operation against `serve`, run by newman from the exported collection; set-ups are requests there and hooks here, which are not counted'

install() {
  npm_has newman@6 || return 1
  peer="newman $(npm_version newman)"
  "$conformant" fixtures export --format postman "$work/postman" >/dev/null 2>&1
  requests=$(grep -c '"request": {' "$work/postman/collection.json")
  serve
}
ours() { stories happy; }
theirs() {
  per_second "$requests" "$tools/node_modules/.bin/newman" run "$work/postman/collection.json" \
    --env-var "baseUrl=$url/_world/theirs$RANDOM$RANDOM" --color off --reporters cli
}
