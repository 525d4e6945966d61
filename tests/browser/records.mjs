// Records that no run makes: every rule broken with 6,500 findings, and hostile texts in every field.
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
