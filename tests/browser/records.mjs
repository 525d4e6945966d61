// Records that no short run makes: every rule broken with 6,500 findings, hostile texts in every field, and five runs.
// Usage: node records.mjs DIR, where DIR holds few.json.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const folder = process.argv[2];
const read = () => JSON.parse(readFileSync(path.join(folder, "few.json"), "utf8"));
const write = (name, record) => writeFileSync(path.join(folder, `${name}.json`), JSON.stringify(record));

const worst = read();
const sample = worst.findings[0];
delete worst.defects;
for (const rule of worst.rules) Object.assign(rule, { level: "must", verdict: "fail", judged: 9, findings: 6 });
worst.findings = Array.from({ length: 6_500 }, (_, n) => ({ ...sample, rule: worst.rules[n % worst.rules.length].id, pointer: `/items/${n}/x`, scenario: `flow/story-${n % 40}/part` }));
write("worst", worst);

const repeated = read();
const [flaky, silent] = repeated.rules.map((rule) => rule.id);
const counts = { pass: 9, fail: 2, open: 0, inconclusive: 0, not_applicable: 0, waived: 0, error: 0, not_judged: 0 };
const run = { names: "0c7ce929", complete: true, rules: counts };
const difference = { scenario: "flow/flows/listed", step: 2, operation: "flow/read-flows", place: "/meta/page_size", passed: "50", failed: "51", passed_run: 1, failed_run: 2 };
repeated.repeats = {
  requested: 5,
  runs: Array.from({ length: 5 }, () => run),
  rules: [
    { rule: silent, verdicts: ["pass", "pass", "not-judged", "pass", "pass"], flaky: false },
    { rule: flaky, verdicts: ["pass", "fail", "pass", "fail", "pass"], flaky: true, difference },
  ],
};
write("repeated", repeated);

// Texts alone: what is counted, numbered or enumerated keeps its type.
const TEXTS = ["</script><script>window.pwned=1</script><img src=x onerror=window.alert1=1>", "\" onmouseover=\"window.pwned=1\" x='", "\u202etxt.exe\u2066\u200b", "x".repeat(300)];
const KEEP = new Set(["level", "verdict", "basis", "document", "id", "rule"]);
let n = 0;
const spoil = (value, key) => {
  if (typeof value === "string") return KEEP.has(key) ? value : value + TEXTS[n++ % TEXTS.length];
  if (Array.isArray(value)) return value.map((item) => spoil(item, key));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, name === "digest" ? member : spoil(member, name)]));
  return value;
};
write("hostile", spoil(read(), ""));
