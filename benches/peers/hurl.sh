job='run'
unit='requests/s'
what='happy path, credentials, boundary-invalid paths and pages of every operation against `serve`; the other tool runs the exported files. Its setup is requests; that of `conformant` is hook calls, which are not counted'
names=(happy path-near all-optional 'credentials-*' 'page-*')

install() {
  if ! command -v hurl >/dev/null && [ ! -x "$tools/hurl/bin/hurl" ]; then
    timeout 1200 cargo install hurl@8.0.1 --locked --quiet --root "$tools/hurl" >"$work/cargo.log" 2>&1 || return 1
  fi
  PATH=$PATH:$tools/hurl/bin
  peer="hurl $(hurl --version | awk 'NR == 1 { print $2 }')"
  "$conformant" fixtures export --format hurl "$work/hurl" >/dev/null 2>&1
  local others=() name
  for name in "${names[@]}"; do others+=(! -name "$name.hurl"); done
  # Addresses of pages that time filters differ by the clock that they were recorded by.
  find "$work/hurl" -name '*.hurl' \( "${others[@]}" -o -name 'page-urls-*' \) -delete
  requests=$(find "$work/hurl" -name '*.hurl' -exec grep -hcE '^(GET|POST|PUT|DELETE) ' {} + | awk '{ n += $1 } END { print n }')
  serve
}
ours() { stories "${names[@]}"; }
theirs() {
  per_second "$requests" hurl --test --jobs 8 --variables-file "$work/hurl/reference.env" \
    --variable "base_url=$url/_world/theirs$RANDOM$RANDOM" "$work/hurl"
}
