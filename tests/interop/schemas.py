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

taken, refused = 0, 0
for entry in json.loads((fixtures / "manifest.json").read_text())["fixtures"]:
    # Tokens and QR strings are texts; what they hold has a schema, and they have none.
    if not entry["valid"] or not entry["file"].endswith(".json"):
        continue
    document = json.loads((fixtures / entry["file"]).read_text())
    for error in validators[entry["file"].rsplit("/", 1)[0]].iter_errors(document):
        refused += 1
        print(f"{entry['file']}: {error.message}", file=sys.stderr)
    taken += 1
print(f"{len(validators)} schemas, {taken} fixtures, {refused} refusals")
sys.exit(1 if refused or not taken else 0)
