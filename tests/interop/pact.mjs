// Verifies our pacts against a provider with Pact's own verifier. Call: node pact.mjs BASE_URL PACT… ; states.json and reference.env lie beside the pacts.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import core from "@pact-foundation/pact-core";

const [base, ...files] = process.argv.slice(2);
const pacts = files.filter((file) => file.endsWith(".pact.json"));
const states = JSON.parse(readFileSync(join(dirname(pacts[0]), "states.json"), "utf8"));
const credentials = Object.fromEntries(
  readFileSync(join(dirname(pacts[0]), "reference.env"), "utf8").trim().split("\n").map((line) => line.split(/=(.*)/s)),
);

async function play(name) {
  const known = { ...credentials };
  const fill = (text) => text.replace(/\{\{(\w+)\}\}/g, (_, variable) => known[variable] ?? `{{${variable}}}`);
  for (const step of states[name]) {
    const headers = Object.fromEntries(Object.entries(step.headers).map(([key, value]) => [key, fill(value)]));
    if (step.basic) headers.Authorization = `Basic ${Buffer.from(step.basic.map(fill).join(":")).toString("base64")}`;
    let body;
    if (step.form) body = new URLSearchParams(step.form.map(([key, value]) => [key, fill(value)])).toString();
    if (step.text) body = fill(step.text);
    if (step.base64) body = Buffer.from(step.base64, "base64");
    const target = fill(step.target);
    const url = target.startsWith("http") ? target : base + target;
    const answer = await fetch(url, { method: step.method, headers, body });
    if (!answer.ok) throw new Error(`${name}: ${step.name} was refused with ${answer.status}`);
    const text = await answer.text();
    for (const [variable, path] of Object.entries(step.captures)) {
      known[variable] = String(path.reduce((value, key) => value[key], JSON.parse(text)));
    }
  }
  for (const name of Object.keys(credentials)) delete known[name];
  return known;
}

// The verifier asks for a state before each interaction, and fills the interaction's path from what it is answered.
const handler = createServer(async (request, response) => {
  const body = [];
  for await (const piece of request) body.push(piece);
  const { state } = JSON.parse(Buffer.concat(body));
  try {
    response.setHeader("Content-Type", "application/json").end(JSON.stringify(await play(state)));
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
});
await new Promise((listening) => handler.listen(0, "127.0.0.1", listening));

let interactions = 0;
let broken = 0;
for (const file of pacts) {
  const pact = JSON.parse(readFileSync(file, "utf8"));
  interactions += pact.interactions.length;
  await core
    .verifyPacts({
      provider: pact.provider.name,
      providerBaseUrl: base,
      providerStatesSetupUrl: `http://127.0.0.1:${handler.address().port}/`,
      pactUrls: [file],
      logLevel: "error",
    })
    .catch(() => (broken += 1));
}
handler.close();
console.log(`${pacts.length} pacts, ${interactions} interactions, ${broken} pacts broken`);
process.exit(broken ? 1 : 0);
