job='run'
unit='scenarios/s'
what='happy path, credentials, boundary-invalid paths and pages of every operation against `serve`, each scenario judged and mutation-tested; the other tool runs the same scenarios as exported files'
names=(happy path-near all-optional 'credentials-*' 'page-at*' 'page-credentials*' 'page-size*' 'page-under*')
options=()

install() {
  if ! command -v hurl >/dev/null && [ ! -x "$tools/hurl/bin/hurl" ]; then
    timeout 1200 cargo install hurl@8.0.1 --locked --quiet --root "$tools/hurl" >"$work/cargo.log" 2>&1 || return 1
  fi
  PATH=$PATH:$tools/hurl/bin
  peer="hurl $(hurl --version | awk 'NR == 1 { print $2 }')"
  "$conformant" fixtures export --format hurl "$work/hurl" >/dev/null 2>&1
  local others=() name
  for name in "${names[@]}"; do others+=(! -name "$name.hurl"); done
  find "$work/hurl" -name '*.hurl' "${others[@]}" -delete
  # A scenario that no file can express is run by `conformant` alone and not counted.
  scenarios=$(find "$work/hurl" -name '*.hurl' | wc -l)
  serve
}
ours() {
  local world=$url/_world/ours$RANDOM$RANDOM filters=() name
  for name in "${names[@]}"; do filters+=(--filter "*/*/$name"); done
  per_second "$scenarios" "$conformant" run --target "all=$world" --hooks "$world/_control" --jobs 8 "${filters[@]}" "${options[@]}"
}
theirs() {
  per_second "$scenarios" hurl --test --jobs 8 --variables-file "$work/hurl/reference.env" \
    --variable "base_url=$url/_world/theirs$RANDOM$RANDOM" "$work/hurl"
}
