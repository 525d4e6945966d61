// The page of `serve` for people, in a headless browser: what a client does is seen at once, what people and devices do is a
// button, nothing of hostile texts runs, no other page can press a button, axe-core finds nothing. Usage: node people.mjs CHROMIUM CONFORMANT
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const [chromium, conformant] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let failures = 0;
const check = (ok, what) => { if (!ok) { failures += 1; console.log(`FAIL ${what}`); } else { console.log(`ok   ${what}`); } };

const child = spawn(conformant, ["serve", "--answer", "1@flow/read-flows=503:1"], { stdio: ["ignore", "pipe", "ignore"] });
const url = await new Promise((told, failed) => {
  let text = "";
  child.once("exit", () => failed(new Error("serve ended")));
  child.stdout.on("data", (part) => { text += part; const line = /^listening (\S+)$/m.exec(text); if (line) told(line[1]); });
});
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"], protocolTimeout: 600_000 });

// Requests of a client, in addition to the page.
const basic = { Authorization: `Basic ${btoa("reference-api-key:reference-api-secret")}` };
const ask = async (method, path, form, headers = basic) => {
  const answer = await fetch(url + path, { method, headers, body: form && new URLSearchParams(form) });
  return answer.json();
};
const auth = { "X-Auth-API-Key": "reference-production-api-key-0001" };
const hostile = `<img src=x onerror="window.pwned=1"><script>window.pwned=2</script>`;

const open = async ({ width = 1280, scheme = "light", hash = "" } = {}) => {
  const page = await browser.newPage();
  // A busy machine needs longer than the 30 s of the default.
  page.setDefaultTimeout(120_000);
  page.said = [];
  page.on("console", (message) => page.said.push(message.text()));
  page.on("pageerror", (error) => page.said.push(String(error)));
  page.on("dialog", (dialog) => { page.said.push("dialog"); dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith(url)) page.said.push(`request: ${request.url()}`); });
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(`${url}/${hash}`, { waitUntil: "load" });
  await page.waitForFunction(() => document.querySelector("#live").textContent === "live");
  return page;
};
const until = (page, what, body, ...args) => page.waitForFunction(body, { timeout: 60_000, polling: 50 }, ...args).then(() => check(true, what), (error) => check(false, `${what}: ${error.message}`));
const has = (page, what, text) => until(page, what, (text) => document.querySelector("#resources").textContent.includes(text), text);
const line = (page, what, text) => until(page, what, (text) => document.querySelector("#line").textContent.includes(text), text);
const press = async (page, label) => { const found = await page.waitForSelector(`[aria-label="${label}"]`, { timeout: 5_000 }).catch(() => null); check(found, `there is a button: ${label}`); if (found) await found.evaluate((e) => e.click()); };

const bare = await browser.newPage();
await bare.setJavaScriptEnabled(false);
await bare.goto(`${url}/`);
const atOnce = await (await bare.$("main")).evaluate((e) => e.innerText);
for (const part of [`${url}/chat`, "reference-api-key:reference-api-secret", `curl -u reference-api-key:reference-api-secret ${url}/flow/v1/Flows`]) check(atOnce.includes(part), `the first paint has content: ${part}`);
await bare.close();

const page = await open();
await page.click("#start .cmd .btn");
await until(page, "a sample request is copied", () => document.querySelector("#start .cmd .btn").textContent === "Copied");
await has(page, "flows are there from the beginning", "Appointment reminder");

// A client creates resources: seen without a reload.
const service = await ask("POST", "/chat/v2/Services", { FriendlyName: `Support ${hostile}` });
const room = await ask("POST", `/chat/v2/Services/${service.sid}/Channels`, { FriendlyName: "Lobby" });
await ask("POST", `/chat/v2/Services/${service.sid}/Channels/${room.sid}/Members`, { Identity: "alice" });
await ask("POST", `/chat/v2/Services/${service.sid}/Channels/${room.sid}/Messages`, { Body: `${hostile} said`, From: "alice" });
await has(page, "a client's message is seen at once", "</script> said");
const rows = await page.$$eval("#line summary b", (all) => all.map((b) => b.getClientRects().length));
check(rows.length > 0 && rows.every((count) => count === 1), "the method of a request stays on one line");
check(await page.$eval("#faults", (tag) => tag.hidden), "without faults none is named");
const turn = (on) => fetch(`${url}/_control/switch`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ fault: "flow/name-null", on }) });
await turn(true);
await ask("GET", "/flow/v1/Flows");
await until(page, "a fault is named", () => document.querySelector("#faults").title === "flow/name-null");
await turn(false);
await line(page, "its exchange is in the time line", "/Messages 201");
await ask("GET", "/flow/v1/Flows");
await line(page, "a scripted answer says its name", "scripted: ");

// A person writes, and a webhook is called.
const heard = [];
const listener = http.createServer((request, answer) => { heard.push(request.url); request.resume(); answer.end(); });
await new Promise((done) => listener.listen(0, "127.0.0.1", done));
await ask("POST", `/chat/v2/Services/${service.sid}/Channels/${room.sid}/Webhooks`, { Type: "webhook", "Configuration.Url": `http://127.0.0.1:${listener.address().port}/heard`, "Configuration.Filters": "onMessageSent" });
await has(page, "the webhook is seen", "1 webhook");
await page.type(`#say-${room.sid}`, "hello from a person");
await page.select(`#from-${room.sid}`, "alice");
await page.click(`#say-${room.sid} + button`);
await has(page, "what a person sends is seen", "hello from a person");
await line(page, "the callback is in the time line", "callback");
const { messages } = await ask("GET", `/chat/v2/Services/${service.sid}/Channels/${room.sid}/Messages`);
check(messages.some((message) => message.body === "hello from a person" && message.from === "alice"), "a client sees what the person sent");
check(heard.length === 1, `its webhook was called once: ${heard}`);

// Typed text and the focus survive what happens meanwhile.
await page.type(`#say-${room.sid}`, "half a sent");
await ask("POST", `/chat/v2/Services/${service.sid}/Channels/${room.sid}/Messages`, { Body: "in between" });
await has(page, "the page is redrawn", "in between");
check(await page.evaluate((id) => document.activeElement.id === id && document.activeElement.value === "half a sent", `say-${room.sid}`), "typed text and focus survive");

// Approvals.
const user = await ask("POST", "/auth/protected/json/users/new", { "user[email]": "a@example.com", "user[cellphone]": "555-123-4567", "user[country_code]": "1" }, auth);
const requested = async (message) => (await ask("POST", `/auth/onetouch/json/users/${user.user.id}/approval_requests`, { message }, auth)).approval_request.uuid;
const status = async (uuid) => (await ask("GET", `/auth/onetouch/json/approval_requests/${uuid}`, undefined, auth)).approval_request.status;
const [first, second, third] = [await requested("Log in"), await requested("Pay 5"), await requested("Too late")];
await press(page, "Approve: Log in");
await press(page, "Deny: Pay 5");
await has(page, "the denial is seen", "denied");
await has(page, "the approval is seen", "approved");
check((await status(first)) === "approved" && (await status(second)) === "denied", "the service says the same");

// The clock.
const before = await page.$eval("#now", (e) => e.textContent);
await page.click("[data-ahead='86400']");
await until(page, "a day passes", (before) => document.querySelector("#now").textContent.slice(0, 10) > before.slice(0, 10), before);
check((await status(third)) === "expired", "what is late expires");
await has(page, "the expiry is seen", "expired");

// A registration: the QR code is shown, and scanned.
await page.type("#offer", "person-1");
await page.keyboard.press("Enter");
await page.waitForSelector(".qr svg path", { timeout: 5_000 });
const modules = await page.$eval(".qr svg path", (e) => e.getAttribute("d").length);
check(modules > 5_000, "the QR code is drawn");
await press(page, "Scan the code of person-1");
await has(page, "the registration is completed", "completed");
const registration = await ask("GET", "/auth/protected/json/registrations/status?custom_user_id=person-1", undefined, auth);
check(registration.registration.status === "completed", "the service says so");

// An execution is answered and ended.
const { flows } = await ask("GET", "/flow/v1/Flows");
const flow = flows.find((one) => one.friendly_name === "Appointment reminder");
const execution = await ask("POST", `/flow/v1/Flows/${flow.sid}/Executions`, { To: "+15551234567", From: "+15557654321" });
await press(page, "Answer the step of +15551234567");
await press(page, "Start a subflow at the step of +15551234567");
await line(page, "a subflow begins", "start_subflow 200");
await press(page, "End the execution of +15551234567");
await has(page, "the end is seen", "ended");
check((await ask("GET", `/flow/v1/Flows/${flow.sid}/Executions/${execution.sid}`)).status === "ended", "the service says it ended");

// What has no button of its own can be done, too.
await page.select("#action", "create_flow");
await page.type("#argument-friendly_name", "Made by hand");
await page.keyboard.press("Enter");
await has(page, "an action without a button is done", "Made by hand");

// Long lists have pages.
for (let n = 0; n < 23; n += 1) await ask("POST", "/chat/v2/Services", { FriendlyName: `many ${n}` });
await has(page, "the newest is on the first page", "many 22");
const services = () => page.$$eval("#resources [id^='service-']", (all) => all.length);
check((await services()) === 10, `a page has ten rows: ${await services()}`);
await press(page, "Show 10 more chat services");
await until(page, "the next page follows", () => document.querySelectorAll("#resources [id^='service-']").length === 20);
await press(page, "Show fewer chat services");
await until(page, "and folds again", () => document.querySelectorAll("#resources [id^='service-']").length === 10);
await press(page, "Show 10 more chat services");
await press(page, "Show 4 more chat services");
await has(page, "all can be seen", "Lobby");

// Sandboxes are isolated.
await page.type("#world-name", "other");
await page.keyboard.press("Enter");
await until(page, "a new world begins", () => document.querySelector("#world").value === "other" && document.querySelector("#resources").textContent.includes("No chat services yet"));
await ask("POST", "/_world/other/chat/v2/Services", { FriendlyName: "elsewhere" });
await has(page, "what happens in it is seen", "elsewhere");
check(!(await page.$eval("#line", (e) => e.textContent)).includes("Log in"), "its time line is its own");
const again = await open({ hash: "#world=other" });
await has(again, "an address leads to a sandbox", "elsewhere");
await line(again, "and shows what has happened before", "/chat/v2/Services");
await again.close();

check(page.said.length === 0, `the page prints nothing and contacts no other host: ${page.said.join("; ")}`);
check(!(await page.evaluate(() => "pwned" in window)), "nothing of hostile texts ran");
await page.close();

// Widths, contrast, names.
for (const [width, scheme] of [[320, "light"], [768, "dark"], [1280, "light"], [1280, "dark"]]) {
  const one = await open({ width, scheme });
  await has(one, `opens at ${width}`, "many 22");
  await one.evaluate(() => { for (const e of document.querySelectorAll("details")) e.open = true; });
  const over = await one.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check(over <= 0, `no sideways scroll at ${width} px (${over})`);
  // The page's own policy keeps scripts of others out, axe-core's included, unless the browser disables it.
  const found = await one.evaluate(`${axe}; axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] })`);
  const told = found.violations.map((v) => `${v.id} (${v.nodes.length}: ${v.nodes[0].html.slice(0, 160)})`);
  check(told.length === 0, `axe finds nothing at ${width} px, ${scheme}: ${told.join("; ")}`);
  await one.close();
}

// Pages of others press no button: not by a request, not by a form, not in a frame.
const evil = http.createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end(
  `<!doctype html><title>evil</title><iframe id="f" src="${url}/"></iframe><form method="post" action="${url}/_control/reset" enctype="text/plain" target="g"><input name='{"a":"' value='"}'></form><iframe name="g"></iframe>`));
await new Promise((done) => evil.listen(0, "127.0.0.1", done));
const bad = await browser.newPage();
await bad.goto(`http://127.0.0.1:${evil.address().port}/`);
await bad.evaluate(() => document.forms[0].submit());
const refused = await bad.evaluate((url) => Promise.all(["resources", "events", "reset"].map((name) => fetch(`${url}/_control/${name}`, { method: name === "reset" ? "POST" : "GET" }).then((answer) => answer.status, () => "refused"))), url);
check(refused.every((one) => one === "refused"), `other pages receive nothing: ${refused}`);
const framed = await fetch(`${url}/`);
check(framed.headers.get("content-security-policy").includes("frame-ancestors 'none'"), "it stands in no frame");
await new Promise((done) => { setTimeout(done, 300); });
check((await ask("GET", "/chat/v2/Services")).services.length === 24, "a form of another page resets nothing");

await browser.close();
child.kill();
listener.close();
evil.close();
console.log(failures === 0 ? "   the page for people: seen at once, pressed, drawn, closed to others" : `   ${failures} failed`);
process.exit(failures === 0 ? 0 : 1);
