"""An archive of events judged by PySpark: rdd.pipe over the program, records added up by merge.

Usage: spark-submit spark_job.py CONFORMANT KIND ARCHIVE OUT.json [PARTS]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from pyspark import SparkContext

conformant, kind, archive, out = sys.argv[1:5]
parts = int(sys.argv[5]) if len(sys.argv) > 5 else 8
spark = SparkContext(appName="conformant")
# Each part is one program that reads lines and prints one record; findings are not a failure.
check = f"sh -c '\"{conformant}\" check - --as {kind} --quiet --report json=- || [ $? -eq 1 ]'"
records = spark.textFile(archive, parts).pipe(check, checkCode=True).glom().collect()
with tempfile.TemporaryDirectory() as folder:
    paths = [pathlib.Path(folder, f"{n}.json") for n, lines in enumerate(records) if lines]
    for path, lines in zip(paths, (lines for lines in records if lines)):
        path.write_text("\n".join(lines))
    merged = subprocess.run([conformant, "merge", *paths, "--quiet", "--report", f"json={out}"])
print(json.dumps(json.loads(pathlib.Path(out).read_text())["summary"]["rules"]))
spark.stop()
sys.exit(merged.returncode)
