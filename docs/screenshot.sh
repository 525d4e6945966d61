#!/usr/bin/env bash
# Writes docs/report.png: the report page of a real run against the reference with one fault.
#
# Usage: docs/screenshot.sh [CONFORMANT]. Needs Chromium. Without an argument, `conformant` from PATH is used.
set -euo pipefail
conformant=$(command -v "${1:-conformant}") || { echo "${1:-conformant} not found: give the path of the program" >&2; exit 2; }
conformant=$(realpath "$conformant")
chromium=$(command -v chromium chromium-browser google-chrome 2>/dev/null | head -1) || true
[ -n "$chromium" ] || { echo 'Chromium not found: install the package chromium' >&2; exit 2; }
fault=flow/meta-page-size-wrong
width=1200 height=600
largest=200000
picture=$(cd "$(dirname "$0")" && pwd)/report.png
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

"$conformant" serve --port 0 --fault "$fault" --ready-file address >serve.log 2>&1 &
server=$!
for _ in $(seq 100); do [ -s address ] && break; sleep 0.1; done
[ -s address ] || { cat serve.log >&2; exit 3; }
url=$(cat address)

# A busy machine answers late.
printf 'limits: { timeout: 60s, run: 30m }\n' >conformant.yaml
# Exit code 1 is expected: the fault must be found.
code=0
"$conformant" run --target "all=$url" --hooks "$url/_control" --seed 1 --quiet --report html=report.html || code=$?
[ "$code" = 1 ] || { echo "the run exited $code, expected 1" >&2; exit 3; }

"$chromium" --headless --no-sandbox --disable-gpu --disable-background-networking --hide-scrollbars \
  --user-data-dir="$work/profile" --window-size="$width,$height" --screenshot="$work/report.png" "file://$work/report.html" 2>chromium.log ||
  { cat chromium.log >&2; exit 3; }
size=$(stat -c %s report.png)
[ "$size" -le "$largest" ] || { echo "report.png has $size bytes, expected at most $largest: reduce the window" >&2; exit 1; }
mv report.png "$picture"
echo "$picture: $size bytes"
