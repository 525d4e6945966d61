job='generate'
unit='MB/s'
what='one thread, events of one type from the same schema: 1,000,000 by `conformant`; 3,000 by the other tool, without its start'

install() {
  npm_has 'json-schema-faker@0.5' || return 1
  peer="json-schema-faker $(npm_version json-schema-faker)"
  "$conformant" fixtures export --format jsonschema "$work/schemas" >/dev/null 2>&1
  cat >"$tools/fake-events.cjs" <<'JS'
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
}
ours() { per_second "$(($(wc -c <"$(events 1000000)") / 1000000))" "$conformant" fixtures generate --kind events/MessageSent/4 --count 1000000 --jobs 1; }
theirs() { node "$tools/fake-events.cjs" "$work/schemas/events/MessageSent/4.schema.json" 3000; }
