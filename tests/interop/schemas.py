"""Checks exported JSON Schemas by another implementation: each is a schema, and takes our valid fixtures."""

import json
import sys
from pathlib import Path

from jsonschema import Draft202012Validator

schemas, fixtures = Path(sys.argv[1]), Path(sys.argv[2])
validators = {}
for path in sorted(schemas.rglob("*.schema.json")):
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    validators[str(path.relative_to(schemas)).removesuffix(".schema.json")] = Draft202012Validator(schema)

# The manifest asserts formats, which a validator may leave alone: those of dates.
DATES = ("date_created", "date_updated", "DateCreated", "DateUpdated", "Timestamp", "timestamp")
taken, refused, broken, unrefused = 0, 0, 0, 0
lines = {}
for entry in json.loads((fixtures / "manifest.json").read_text())["fixtures"]:
    # Tokens and QR strings are texts; what they hold has a schema, and they have none.
    if not entry["name"].endswith(".json"):
        continue
    file = entry["file"]
    if file not in lines:
        lines[file] = (fixtures / file).read_text().split("\n")
    document = json.loads(lines[file][entry["line"] - 1])
    errors = list(validators[entry["name"].rsplit("/", 1)[0]].iter_errors(document))
    if entry.get("breaks_schema"):
        broken += 1
        if not errors and not entry["pointer"].endswith(DATES):
            unrefused += 1
            print(f"{entry['name']}: breaks_schema, and is taken", file=sys.stderr)
        continue
    for error in errors:
        refused += 1
        print(f"{entry['name']}: {error.message}", file=sys.stderr)
    taken += 1
print(f"{len(validators)} schemas; {taken} fixtures, {refused} refusals; {broken} that break a schema, {unrefused} taken")
sys.exit(1 if refused or unrefused or not taken or not broken else 0)
