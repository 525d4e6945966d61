job='check'
unit='MB/s'
what='one thread, 100,000 events of 416 bytes each, one on each line of a file; each is parsed and validated against the same schema'

install() {
  pip_has fastjsonschema fastjsonschema || return 1
  peer="fastjsonschema $(pip_version fastjsonschema fastjsonschema)"
  "$conformant" fixtures export --format jsonschema "$work/schemas" >/dev/null 2>&1
  file=$(events 100000)
  megabytes=$(($(wc -c <"$file") / 1000000))
  cat >"$work/lines.py" <<'PY'
import json, sys
import fastjsonschema
schema = json.load(open(sys.argv[1]))
# It knows drafts up to 7, and these schemas use nothing newer.
schema["$schema"] = "http://json-schema.org/draft-07/schema#"
validate = fastjsonschema.compile(schema)
for line in open(sys.argv[2], "rb"):
    validate(json.loads(line))
PY
}
ours() { per_second "$megabytes" "$conformant" check "$file" --as events/MessageSent/4 --jobs 1; }
theirs() { per_second "$megabytes" "$tools/fastjsonschema/bin/python" "$work/lines.py" "$work/schemas/events/MessageSent/4.schema.json" "$file"; }
