#!/usr/bin/env bash
# A million events judged in parts: by hand, and by PySpark in local mode where a JVM and PySpark can be
# had. Usage: tests/archives/run.sh CONFORMANT [COUNT]
set -euo pipefail
conformant=$1
count=${2:-1000000}
here=$(cd "$(dirname "$0")" && pwd)
kind=events/MessageSent/4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip() { printf '   skipped: %s\n' "$*"; }
verdicts() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(sorted((x["id"], x["verdict"], x["judged"], x["findings"]) for x in r["rules"]))' "$1"; }

mkdir "$work/archive"
"$conformant" fixtures generate --kind "$kind" --count "$count" >"$work/all.ndjson"
# One in a thousand has an attempt that is not a text.
awk 'NR % 1000 == 0 { sub(/"attempt":("[^"]*"|null)/, "\"attempt\":7") } { print }' "$work/all.ndjson" >"$work/events.ndjson"
split -n l/8 --additional-suffix=.ndjson "$work/events.ndjson" "$work/archive/part-"
gzip "$work/archive/part-aa.ndjson"
if command -v zstd >/dev/null; then zstd -q --rm "$work/archive/part-ab.ndjson"; fi

judge() { "$conformant" check "$@" --as "$kind" --quiet >/dev/null 2>&1 || [ $? -eq 1 ]; }
judge "$work/events.ndjson" --report "json=$work/whole.json"
judge "$work/archive" --report "json=$work/folder.json"
[ "$(verdicts "$work/whole.json")" = "$(verdicts "$work/folder.json")" ] || { echo 'FAIL a folder of parts is judged otherwise than the whole'; exit 1; }
for part in "$work"/archive/*; do judge "$part" --report "json=$work/$(basename "$part").part.json"; done
"$conformant" merge "$work"/*.part.json --quiet --report "json=$work/merged.json" >/dev/null || [ $? -eq 1 ]
[ "$(verdicts "$work/whole.json")" = "$(verdicts "$work/merged.json")" ] || { echo 'FAIL merged parts are judged otherwise than the whole'; exit 1; }
echo "ok   $count events: one file, a folder of 8 and 8 merged records agree"

# Other engines read Parquet and Avro and pipe lines; one record at the end. Each uses a sample of the events.
head -n 20000 "$work/events.ndjson" >"$work/sample.ndjson"
recipe() { # PYTHON ENGINE
  mkdir "$work/$2"
  "$1" "$here/recipes.py" "$conformant" "$kind" "$work/sample.ndjson" "$2" "$work/$2" 2>"$work/recipe.log" || { tail -20 "$work/recipe.log"; exit 1; }
}
recipe python3 kafka
python3 -m venv "$work/venv"
if "$work/venv/bin/pip" install --quiet 'duckdb>=1,<2' 'fastavro>=1,<2'; then
  recipe "$work/venv/bin/python" duckdb
else
  skip 'DuckDB and fastavro could not be installed'
fi

# The rejected lines of all parts are those of the whole.
"$conformant" check "$work/events.ndjson" --as "$kind" --quiet --set-aside "$work/aside" >/dev/null 2>&1 || [ $? -eq 1 ]
rejected=$(cat "$work"/aside/rejected-*.ndjson | wc -l)
wrong=$(grep -c '"attempt":7' "$work/events.ndjson")
[ "$rejected" = "$wrong" ] || { echo "FAIL $rejected lines are set aside, expected $wrong"; exit 1; }
echo "ok   $rejected rejected lines are set aside"

if ! java -version >/dev/null 2>&1; then skip 'no JVM: PySpark was not tried'; exit 0; fi
"$work/venv/bin/pip" install --quiet 'pyspark>=3.5,<5' || { skip 'PySpark could not be installed'; exit 0; }
export PYSPARK_PYTHON="$work/venv/bin/python"
recipe "$PYSPARK_PYTHON" pyspark
"$PYSPARK_PYTHON" "$here/spark_job.py" "$conformant" "$kind" "$work/events.ndjson" "$work/spark.json" 8 2>"$work/spark.log" || [ $? -eq 1 ] || { tail -20 "$work/spark.log"; exit 1; }
[ "$(verdicts "$work/whole.json")" = "$(verdicts "$work/spark.json")" ] || { echo 'FAIL Spark judges otherwise'; exit 1; }
echo "ok   $count events in PySpark's local mode agree"
