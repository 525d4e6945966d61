"""Compares a run against WireMock's stubs with one against the reference: the stubs break what stateless.txt excuses, no more, no less."""

import json
import sys
from pathlib import Path


def verdicts(path):
    return {rule["id"]: rule["verdict"] for rule in json.loads(Path(path).read_text())["rules"]}


reference, stubs = verdicts(sys.argv[1]), verdicts(sys.argv[2])
lines = Path(sys.argv[3]).read_text().splitlines()
excused = [line for line in lines if line and line[0] not in "#["]

kept = {rule for rule, verdict in reference.items() if verdict == "pass"}
broken = {rule for rule in kept if stubs.get(rule) != "pass"}
accused = {rule for rule, verdict in stubs.items() if verdict == "fail" and rule not in kept}
problems = [f"{rule}: {stubs.get(rule)}, and not excused" for rule in sorted((broken | accused) - set(excused))]
problems += [f"{rule}: excused, and yet the stubs keep it" for rule in excused if stubs.get(rule) == "pass"]
problems += [f"{rule}: excused, and no such rule" for rule in excused if rule not in stubs]
problems += [f"{rule}: excused twice" for rule in set(excused) if excused.count(rule) > 1]
print(f"{len(kept - broken)} of {len(kept)} rules that the reference keeps are kept by the stubs, {len(excused)} are excused")
for problem in problems[:40]:
    print(problem, file=sys.stderr)
sys.exit(1 if problems or len(kept) < 500 else 0)
