// The search of the book finds each spelling of a name. Usage: node book.mjs SCRIPT
import { readFileSync } from "node:fs";
import vm from "node:vm";

const asked = [];
class Index { search(query) { asked.push(query); return []; } }
vm.runInNewContext(readFileSync(process.argv[2], "utf8"), { window: { elasticlunr: { Index } } });
const index = new Index();
for (const name of ["page_size", "page-size", "PageSize"]) {
  index.search(name, {});
  const words = asked.at(-1).toLowerCase().split(" ");
  if (!["pagesize", "page_size", "page", "size"].every((word) => words.includes(word))) {
    console.log(`FAIL the book searches only ${words} for ${name}`);
    process.exit(1);
  }
}
index.search("hooks", {});
if (asked.at(-1) !== "hooks") { console.log(`FAIL a plain word became ${asked.at(-1)}`); process.exit(1); }
console.log("ok   the book finds each spelling of a name");
