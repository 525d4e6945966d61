// Uses the npm package as a test would: documents are typed, wrong uses are refused by the compiler, and a factory never ends.
import { strict as assert } from "node:assert";
import { Factory, documents, invalid, kinds, type Kinds } from "conformant-fixtures";

const message: Kinds["chat/message"] = documents("chat/message")[0];
const index: number = message.index;
assert.equal(typeof index, "number");
// @ts-expect-error A number is not a text.
const wrong: string = message.index;
// @ts-expect-error There is no such kind.
assert.throws(() => documents("chat/nothing"));

assert.ok(kinds().length > 50);
for (const kind of kinds()) assert.ok(documents(kind).length > 0, kind);
assert.ok(invalid("chat/message").some((one) => one.breaks_schema && one.pointer === "/sid"));

const factory = new Factory("chat/message", Number(process.argv[2]));
const made = Array.from({ length: 20 }, () => factory.make({ body: "hi" }));
assert.equal(new Set(made.map((one) => one.sid)).size, 20);
for (const one of made) assert.ok(one.url.includes(one.sid));
console.log(JSON.stringify(made));
console.error(`   typescript: ${kinds().length} kinds, typed`);
