#!/usr/bin/env bash
# How fast events are generated beside a public generator that reads the same schema: json-schema-faker of npm.
# Call: benches/generate-peers.sh [CONFORMANT]. The sides take turns, so that a busy machine slows them alike; the ratio is what is worth
# reading. Ours is timed as a whole process that writes into a pipe, theirs without its start: the comparison favours theirs.
set -euo pipefail
cd "$(dirname "$0")/.."
conformant=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/release/conformant}")
kind=events/MessageSent/4
rounds=5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for tool in npm node; do
  command -v "$tool" >/dev/null || { printf 'SKIPPED: %s is not installed, so nothing was compared\n' "$tool"; exit 0; }
done
(cd "$work" && npm install --silent --no-audit --no-fund 'json-schema-faker@0.5' >npm.log 2>&1) || {
  printf 'SKIPPED: json-schema-faker could not be installed, so nothing was compared:\n'
  tail -3 "$work/npm.log"
  exit 0
}
"$conformant" fixtures export --format jsonschema "$work/schemas" >/dev/null 2>&1

cat >"$work/theirs.cjs" <<'JS'
const jsf = require('json-schema-faker');
const schema = JSON.parse(require('fs').readFileSync(process.argv[2], 'utf8'));
jsf.option({ alwaysFakeOptionals: true });
let seed = 1;
jsf.option({ random: () => (seed = (seed * 16807) % 2147483647) / 2147483647 });
const make = (count) => {
  let bytes = 0;
  for (let n = 0; n < count; n += 1) bytes += JSON.stringify(jsf.generate(schema)).length + 1;
  return bytes;
};
make(200);
const started = process.hrtime.bigint();
const bytes = make(Number(process.argv[3]));
console.log(bytes / (Number(process.hrtime.bigint() - started) / 1e9) / 1e6);
JS

ours() {
  local count=1000000 started ended bytes
  started=$(date +%s%N)
  bytes=$("$conformant" fixtures generate --kind "$kind" --count "$count" --jobs 1 | wc -c)
  ended=$(date +%s%N)
  awk -v bytes="$bytes" -v ns="$((ended - started))" 'BEGIN { print bytes / (ns / 1e9) / 1e6 }'
}
theirs() { (cd "$work" && node theirs.cjs "$work/schemas/$kind.schema.json" 3000); }

for _ in $(seq "$rounds"); do
  printf '%s %s\n' "$(ours)" "$(theirs)"
done >"$work/rates"
middle=$(((rounds + 1) / 2))
median() { sort -g | sed -n "${middle}p"; }
printf 'ours, one thread             %8.1f MB/s\n' "$(cut -d' ' -f1 "$work/rates" | median)"
printf 'json-schema-faker            %8.1f MB/s\n' "$(cut -d' ' -f2 "$work/rates" | median)"
printf 'ours / json-schema-faker     %8.0f (goal 500)\n' "$(awk '{ print $1 / $2 }' "$work/rates" | median)"
