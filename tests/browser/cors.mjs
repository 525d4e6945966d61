// A page of another origin sends a message and sees it with `serve --cors`; it cannot use the control plane.
// Usage: node cors.mjs CHROMIUM CONFORMANT
import { spawn } from "node:child_process";
import http from "node:http";
import puppeteer from "puppeteer-core";

const [chromium, conformant] = process.argv.slice(2);
const failures = [];
const check = (what, is) => { if (!is) failures.push(what); };

const pages = http.createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end("<!doctype html><title>app</title>"));
await new Promise((done) => pages.listen(0, "127.0.0.1", done));
const origin = `http://127.0.0.1:${pages.address().port}`;

async function served(...words) {
  const child = spawn(conformant, ["serve", ...words], { stdio: ["ignore", "pipe", "ignore"] });
  const url = await new Promise((shown, failed) => {
    let text = "";
    child.once("exit", () => failed(new Error("serve ended")));
    child.stdout.on("data", (part) => {
      text += part;
      const line = /^listening (\S+)$/m.exec(text);
      if (line) shown(line[1]);
    });
  });
  return { child, url };
}

const open = await served("--cors", origin, "--answer", "1@chat/create-message=429:1");
const shut = await served();
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-dev-shm-usage"], protocolTimeout: 600_000 });
const page = await browser.newPage();
await page.goto(origin);

const shown = await page.evaluate(async (base) => {
  const headers = { Authorization: `Basic ${btoa("reference-api-key:reference-api-secret")}` };
  const ask = (method, path, form) => fetch(base + path, { method, headers, body: form && new URLSearchParams(form) });
  const made = async (path, form) => (await ask("POST", path, form)).json();
  const service = `/chat/v2/Services/${(await made("/chat/v2/Services", { FriendlyName: "page" })).sid}`;
  const channel = `${service}/Channels/${(await made(`${service}/Channels`, { FriendlyName: "room" })).sid}`;
  const busy = await ask("POST", `${channel}/Messages`, { Body: "hello" });
  const retryAfter = busy.headers.get("Retry-After");
  await made(`${channel}/Messages`, { Body: "hello" });
  const { messages } = await (await ask("GET", `${channel}/Messages`)).json();
  return { busy: busy.status, retryAfter, bodies: messages.map((message) => message.body) };
}, open.url);
check(`the scripted answer is seen: ${JSON.stringify(shown)}`, shown.busy === 429 && shown.retryAfter === "1");
check(`the message is seen: ${JSON.stringify(shown)}`, shown.bodies.join() === "hello");

const asked = (url, method) => page.evaluate(
  (url, method) => fetch(url, { method }).then((answer) => answer.status, () => "refused"), url, method);
check("the control plane is closed to the page", (await asked(`${open.url}/_control/reset`, "POST")) === "refused");
check("services are closed to pages by default", (await asked(`${shut.url}/chat/v2/Services`, "GET")) === "refused");

await browser.close();
for (const { child } of [open, shut]) child.kill();
pages.close();
if (failures.length > 0) {
  console.error(failures.map((failure) => `FAIL ${failure}`).join("\n"));
  process.exit(1);
}
console.log("   a page of another origin sends a message and sees it");
