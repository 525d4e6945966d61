"""One archive as NDJSON, Avro and Parquet, read by other engines that pipe lines to `check`: the records agree.

Usage: recipes.py CONFORMANT KIND EVENTS.ndjson ENGINE WORK, where ENGINE is duckdb, pyspark or kafka
- duckdb: PyPI duckdb reads Parquet; its Avro extension is downloaded, so that PyPI fastavro reads Avro.
- pyspark: PyPI pyspark and a JVM read Parquet; the package spark-avro is downloaded, so that fastavro reads Avro.
- kafka: no broker; the output of a consumer such as `kcat -C -e -f '%s\\n'` is simulated, with the Confluent wire header.
"""
import json
import pathlib
import subprocess
import sys

conformant, kind, events, engine, work = sys.argv[1:6]
work = pathlib.Path(work)
PARTS = 4


def check(lines, name):
    """Pipes lines to one `check`; returns its record, or none for a part without lines."""
    report = work / f"{name}.json"
    command = [conformant, "check", "-", "--as", kind, "--quiet", "--report", f"json={report}"]
    piped = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    count = 0
    for line in lines:
        piped.stdin.write(line + b"\n")
        count += 1
    _, errors = piped.communicate()
    if count == 0:
        return None
    assert piped.returncode in (0, 1), errors.decode()
    return report


def merged(reports, name):
    """Merges the records of parts; returns what must agree."""
    out = work / f"{name}.json"
    reports = [report for report in reports if report]
    merge = subprocess.run([conformant, "merge", *reports, "--quiet", "--report", f"json={out}"], capture_output=True)
    assert merge.returncode in (0, 1), merge.stderr.decode()
    record = json.loads(out.read_text())
    record["archive"].pop("schema_ids", None)
    rules = [(rule["id"], rule["verdict"], rule["judged"], rule["findings"]) for rule in record["rules"]]
    return rules, record["archive"]


def parts(lines):
    size = -(-len(lines) // PARTS)
    return [lines[at : at + size] for at in range(0, len(lines), size)]


def whole(lines, name):
    return merged([check(part, f"{name}-{n}") for n, part in enumerate(parts(lines))], name)


def avro(lines):
    """Writes and reads Avro: one member a row, with its JSON text."""
    import fastavro

    path = work / "events.avro"
    schema = {"type": "record", "name": "Row", "fields": [{"name": "json", "type": "string"}]}
    with open(path, "wb") as out:
        fastavro.writer(out, schema, ({"json": line.decode()} for line in lines), codec="deflate")
    with open(path, "rb") as source:
        return [row["json"].encode() for row in fastavro.reader(source)]


def duckdb_parquet(source):
    import duckdb

    database = duckdb.connect()
    path = work / "events.parquet"
    database.execute(
        f"copy (select json from read_csv('{source}', header=false, columns={{'json': 'varchar'}}, delim='\\x01', quote='', escape='')) to '{path}' (format parquet)"
    )
    return [row[0].encode() for row in database.execute(f"select json from '{path}'").fetchall()]


def pyspark_parquet(source):
    """Each partition pipes its lines to one program, as on a cluster."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").getOrCreate()
    path = str(work / "events.spark.parquet")
    spark.read.text(source).repartition(PARTS).write.parquet(path)
    # An empty partition has nothing to judge.
    command = f"sh -c 'lines=$(mktemp); cat >$lines; [ -s $lines ] || exit 0; \"{conformant}\" check - --as {kind} --quiet --report json=- <$lines; code=$?; rm $lines; [ $code -le 1 ]'"
    rows = spark.read.parquet(path).rdd.map(lambda row: row.value)
    records = rows.pipe(command, checkCode=True).glom().collect()
    spark.stop()
    reports = []
    for n, record in enumerate(record for record in records if record):
        reports.append(work / f"spark-{n}.json")
        reports[-1].write_text("\n".join(record))
    return merged(reports, "spark")


lines = pathlib.Path(events).read_bytes().splitlines()
plain = whole(lines, "ndjson")
if engine == "duckdb":
    formats = {"Parquet through DuckDB": whole(duckdb_parquet(events), "parquet"), "Avro through fastavro": whole(avro(lines), "avro")}
elif engine == "pyspark":
    formats = {"Parquet through PySpark": pyspark_parquet(events)}
else:
    header = b"\0" + (7).to_bytes(4, "big")
    formats = {"simulated consumer with wire headers": whole([header + line for line in lines], "kafka")}
for name, record in formats.items():
    assert record == plain, f"{name}: the merged record differs from that of NDJSON"
    print(f"ok   {len(lines)} events as {name} and as NDJSON: verdicts and counts agree")
