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

// @ts-expect-error A message has no such field: its document lists all.
void message.bdy;
const event: Kinds["events/MessageSent/4"] = documents("events/MessageSent/4")[0];
// @ts-expect-error Nor has the payload of an event.
void event.from?.name;
// @ts-expect-error Overrides are fields of the schema, for the compiler and at run time.
assert.throws(() => new Factory("chat/message").make({ bdy: "hi" }), /chat\/message has no field bdy/);
// @ts-expect-error So are those of a kind whose document is open.
assert.throws(() => new Factory("auth/user-status").make({ bdy: "hi" }), /has no field bdy/);
// @ts-expect-error So are those of objects within it.
assert.throws(() => new Factory("chat/service").make({ limits: { channel_members: 1, user_channels: 2, nope: 3 } }), /has no field limits\.nope/);

const factory = new Factory("chat/message", Number(process.argv[2]));
const made = Array.from({ length: 20 }, () => factory.make({ body: "hi" }));
assert.equal(new Set(made.map((one) => one.sid)).size, 20);
for (const one of made) assert.ok(one.url.includes(one.sid));
console.log(JSON.stringify(made));
console.error(`   typescript: ${kinds().length} kinds, typed`);
