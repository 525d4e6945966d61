// Parses an AsyncAPI document and prints what is wrong with it.
import fs from "node:fs";
import { Parser } from "@asyncapi/parser";

const { document, diagnostics } = await new Parser().parse(fs.readFileSync(process.argv[2], "utf8"));
const errors = diagnostics.filter((diagnostic) => diagnostic.severity === 0);
for (const error of errors) console.error(`${error.path.join("/")}: ${error.message}`);
if (!document || errors.length > 0) process.exit(1);
console.log(`${document.messages().length} messages, ${document.channels().length} channels`);
