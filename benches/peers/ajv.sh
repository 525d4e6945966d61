job='check'
unit='MB/s'
what='one thread, a million events of 416 bytes each, one on each line of a file; each is parsed and validated against the same schema'

install() {
  npm_has ajv@8 ajv-formats@3 || return 1
  peer="ajv $(npm_version ajv)"
  "$conformant" fixtures export --format jsonschema "$work/schemas" >/dev/null 2>&1
  file=$(events 1000000)
  megabytes=$(($(wc -c <"$file") / 1000000))
  cat >"$tools/ajv-lines.cjs" <<'JS'
const Ajv = require('ajv/dist/2020');
const fs = require('fs');
const ajv = new Ajv({ strict: false });
require('ajv-formats')(ajv);
const validate = ajv.compile(JSON.parse(fs.readFileSync(process.argv[2], 'utf8')));
let wrong = 0;
const lines = require('readline').createInterface({ input: fs.createReadStream(process.argv[3]) });
lines.on('line', (line) => { if (!validate(JSON.parse(line))) wrong += 1; });
lines.on('close', () => process.exit(wrong ? 1 : 0));
JS
}
ours() { per_second "$megabytes" "$conformant" check "$file" --as events/MessageSent/4 --jobs 1; }
theirs() { per_second "$megabytes" node "$tools/ajv-lines.cjs" "$work/schemas/events/MessageSent/4.schema.json" "$file"; }
