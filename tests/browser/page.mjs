// The report page in a headless browser: it opens, finds, links and copies; nothing of a hostile
// record runs; nothing scrolls sideways; axe-core finds nothing. Usage: node page.mjs CHROMIUM DIR,
// where DIR holds clean.html, few.html, many.html, repeated.html, worst.html and hostile.html.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const [chromium, folder] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"], protocolTimeout: 600_000, headless: true });
let failures = 0;
const check = (ok, what) => { if (!ok) { failures += 1; console.log(`FAIL ${what}`); } else { console.log(`ok   ${what}`); } };
const address = (name) => pathToFileURL(path.resolve(folder, `${name}.html`)).href;

const open = async (name, { width = 1280, scheme = "light", hash = "", scripts = true } = {}) => {
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000);
  page.said = [];
  page.on("console", (message) => page.said.push(message.text()));
  page.on("pageerror", (error) => page.said.push(String(error)));
  page.on("dialog", (dialog) => { page.said.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith(address(name))) page.said.push(`request: ${request.url()}`); });
  await page.setJavaScriptEnabled(scripts);
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(address(name) + hash, { waitUntil: "load" });
  return page;
};
const openAll = (page) => page.evaluate(() => { for (const e of document.querySelectorAll("details")) e.open = true; });
const settle = (page) => page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => setTimeout(done, 160)); }));

for (const name of ["clean", "few", "many", "repeated", "worst", "hostile"]) {
  const page = await open(name);
  const load = await page.evaluate(() => { const [entry] = performance.getEntriesByType("navigation"); return entry.loadEventEnd; });
  // The budget is one second on a quiet machine; here is slack for a busy one.
  check(load < 5_000, `${name}: loads (${Math.round(load)} ms)`);
  await openAll(page);
  await settle(page);
  check(page.said.length === 0, `${name}: says and asks for nothing: ${page.said.join("; ")}`);
  const counts = await page.evaluate(() => [document.scripts.length, document.querySelectorAll("style").length, document.querySelectorAll("img, iframe, object, embed, link[href], base").length]);
  check(counts.join() === "1,1,0", `${name}: one script, one style, nothing else: ${counts}`);
  const globals = await page.evaluate(() => ["pwned", "alert1"].filter((name) => name in window).length);
  check(globals === 0, `${name}: nothing of the record ran`);
  await page.close();
}

for (const name of ["clean", "few", "many", "repeated", "hostile"]) {
  const page = await open(name);
  await openAll(page);
  for (const width of [320, 360, 768, 1280]) {
    await page.setViewport({ width, height: 900 });
    await settle(page);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    check(over <= 0, `${name}: no sideways scroll at ${width} px (${over})`);
  }
  await page.close();
}

for (const name of ["clean", "few", "many", "repeated"]) {
  for (const scheme of ["light", "dark"]) {
    for (const folded of [true, false]) {
      // One page in all four forms; axe-core needs seconds for each.
      if (name !== "few" && folded !== (scheme === "light")) continue;
      const page = await open(name, { scheme, width: folded ? 1280 : 360 });
      if (!folded) await openAll(page);
      await settle(page);
      await page.evaluate(axe);
      const found = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }));
      const told = found.violations.map((v) => `${v.id} (${v.nodes.length}: ${v.nodes[0].html.slice(0, 120)})`);
      check(told.length === 0, `${name}, ${scheme}, ${folded ? "folded" : "open"}: axe finds nothing: ${told.join("; ")}`);
      await page.close();
    }
  }
}

{
  const page = await open("few");
  const all = await page.$eval("#count", (e) => e.textContent);
  check(/^(\d+) of \1$/.test(all), `all rules are read: ${all}`);
  await page.type("form.tools input[type=search]", "page-size");
  await settle(page);
  const some = await page.$eval("#count", (e) => e.textContent);
  check(parseInt(some, 10) > 0 && parseInt(some, 10) < parseInt(all, 10), `a word leaves some rules: ${some}`);
  const hash = await page.evaluate(() => location.hash);
  check(hash === "#?q=page-size", `and goes into the address: ${hash}`);
  const again = await open("few", { hash });
  await settle(again);
  check((await again.$eval("#count", (e) => e.textContent)) === some, "that address restores it");
  await again.close();
  await page.close();

  const counts = [];
  for (const word of ["page-size", "page_size", "PageSize"]) {
    const one = await open("few");
    await one.type("form.tools input[type=search]", word);
    await settle(one);
    counts.push(await one.evaluate(() => [document.querySelector("#count").textContent, ...[...document.querySelectorAll("#found h2")].map((e) => e.textContent)].join(", ")));
    await one.close();
  }
  check(new Set(counts).size === 1, `the spelling of a name makes no difference: ${counts.join("; ")}`);
  for (const kind of ["Findings", "Rules", "Scenarios", "Exchanges"]) check(counts[0].includes(kind), `the search finds ${kind.toLowerCase()}`);

  const plain = await open("few");
  const broken = await plain.$$eval(".rule", (rules) => rules.at(-1).id);
  const holding = await plain.evaluate(() => {
    const line = [...document.querySelectorAll("#list pre")].flatMap((pre) => { let folder = ""; return pre.textContent.split("\n").map((l) => { if (l.endsWith("/") && !l.includes(" ")) { folder = l; return ""; } return l.startsWith("+") ? folder + l.slice(1).split(" ")[0] : ""; }); });
    return line.find((id) => id);
  });
  await plain.close();
  for (const id of [broken, holding]) {
    const linked = await open("few", { hash: `#${encodeURIComponent(id)}` });
    await settle(linked);
    const place = await linked.evaluate((id) => {
      const e = document.getElementById(id);
      if (!e) return "gone";
      const top = document.querySelector(".top").getBoundingClientRect().bottom, at = e.getBoundingClientRect();
      return e.checkVisibility() && at.top >= top - 1 && at.top < innerHeight && e.classList.contains("hit");
    }, id);
    check(place === true, `a link to ${id} ends below the bar, open and marked: ${place}`);
    await linked.close();
  }

  const keys = await open("few");
  await keys.focus(".cells");
  await keys.keyboard.press("ArrowRight");
  const told = await keys.$eval(".lens", (e) => e.textContent);
  check(/\S+\/\S+/.test(told), `the map shows a rule by keyboard: ${told.slice(0, 80)}`);
  await keys.keyboard.press("Enter");
  await settle(keys);
  check((await keys.evaluate(() => location.hash.length)) > 1, "and opens it");
  const before = await keys.evaluate(() => location.hash);
  await keys.click(".jump [aria-label='Next broken rule']");
  await settle(keys);
  check((await keys.evaluate(() => location.hash)) !== before, "a button leads to the next broken rule");
  await keys.click(".cmd .btn");
  await settle(keys);
  check((await keys.$eval(".cmd .btn", (e) => e.textContent)) === "Copied", "a command is copied");
  await keys.close();

  const search = await open("few");
  const order = await search.evaluate(() => document.querySelector("#h-defects").compareDocumentPosition(document.querySelector("#h-services")) & Node.DOCUMENT_POSITION_FOLLOWING);
  check(order, "what to fix first stands above the services");
  await search.evaluate(() => { for (const e of document.querySelectorAll(".defect, .rule")) e.open = false; });
  const rows = await search.$$eval(".defect > summary", (all) => all.map((e) => { const hit = e.querySelector(".mismatch"); return hit !== null && hit.checkVisibility() && /expected .+ got .+/.test(hit.textContent); }));
  check(rows.length === 4 && rows.every(Boolean), `each collapsed defect shows its first mismatch: ${rows}`);
  await search.evaluate(() => { for (const e of document.querySelectorAll(".defect")) e.open = true; });
  check((await search.$$eval(".rule > summary", (all) => all.every((e) => e.querySelector(".mismatch").checkVisibility()))), "and each collapsed rule");
  await search.keyboard.press("/");
  check(await search.evaluate(() => document.activeElement.name === "q"), "/ goes to the search");
  await search.keyboard.type("callback");
  await settle(search);
  check(await search.$eval("#found", (e) => e.checkVisibility()), "results are listed below the header");
  check((await search.$$eval(".defect", (all) => all.filter((e) => e.checkVisibility()).length)) < 4, "defects without a hit are hidden");
  await search.evaluate(() => scrollTo(0, document.body.scrollHeight));
  check(await search.$eval("form.tools input", (e) => { const at = e.getBoundingClientRect(); return at.top >= 0 && at.bottom < 120; }), "the search stays in view");
  await search.keyboard.press("Escape");
  check(await search.$eval("#found", (e) => e.hidden), "Escape closes the results");
  await search.close();

  const walk = await open("few");
  await walk.keyboard.press("j");
  await settle(walk);
  const first = await walk.evaluate(() => location.hash);
  await walk.keyboard.press("j");
  await settle(walk);
  const second = await walk.evaluate(() => location.hash);
  await walk.keyboard.press("k");
  await settle(walk);
  check(first.length > 1 && second !== first && (await walk.evaluate(() => location.hash)) === first, `j and k walk through the broken rules: ${first} ${second}`);
  await walk.keyboard.press("?");
  check(await walk.$eval("#keys", (e) => e.open), "? lists the keys");
  await walk.evaluate(axe);
  const dialog = await walk.evaluate(() => window.axe.run("#keys", { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] }));
  check(dialog.violations.length === 0, `axe finds nothing in the list of keys: ${dialog.violations.map((v) => v.id)}`);
  await walk.click("#keys-on");
  await walk.click("#keys .btn");
  await walk.keyboard.press("j");
  await settle(walk);
  check((await walk.evaluate(() => location.hash)) === first, "the keys can be switched off");
  await walk.close();

  const time = await open("few");
  const sides = await time.$$eval(".timeline", (all) => { const open = all[0].closest(".rule"); const steps = [...all[0].children]; return { closed: steps.filter((e) => e.querySelector("details")).length, marked: open.querySelectorAll(".timeline .bad .http .a").length }; });
  check(sides.closed > 0 && sides.marked === 1, `a timeline opens to requests and responses with the difference marked: ${JSON.stringify(sides)}`);
  const kinds = await time.$$eval(".timeline li", (all) => [...new Set(all.filter((e) => e.querySelector(".http")).map((e) => (e.querySelector("summary span:last-child").textContent.trim().split(" ")[0])))]);
  for (const kind of ["call", "hook"]) check(kinds.includes(kind), `a ${kind} has both sides: ${kinds}`);
  await time.evaluate(() => { Object.defineProperty(navigator, "clipboard", { value: { writeText: (text) => { window.copied = text; return Promise.resolve(); } } }); });
  for (const [label, parts] of [["Copy ticket", ["## ", "Expected: ", "Got: ", "Reproduce:", "conformant run", "D3 "]], ["Copy command", ["conformant run "]], ["Copy link", ["few.html#"]]]) {
    await time.evaluate((label) => { [...document.querySelectorAll(".rule[open] .acts .btn")].find((e) => e.textContent === label).click(); }, label);
    const text = await time.evaluate(() => window.copied);
    check(parts.every((part) => text.includes(part)), `${label}: ${JSON.stringify(text).slice(0, 200)}`);
  }
  await time.close();

  const repeated = await open("repeated");
  const drawn = await repeated.$$eval("#repeats tbody tr", (rows) => rows.map((row) => [row.querySelectorAll(".cells > i").length, row.querySelectorAll(".cells > .f").length, row.querySelector(".cells").getAttribute("aria-label")]));
  check(JSON.stringify(drawn) === JSON.stringify([[5, 2, "pass, broken, pass, broken, pass"], [5, 0, "pass, pass, not judged, pass, pass"]]), `a row for each rule that differs, a cell for each run: ${JSON.stringify(drawn)}`);
  await repeated.close();

  const off = await open("few", { scripts: false });
  const text = await (await off.$("main")).evaluate((e) => e.textContent);
  for (const part of ["Not conformant", "expected", "conformant run --", "Unspecified behavior"]) check(text.includes(part), `without scripts: ${part}`);
  await off.close();
}
await browser.close();
console.log(failures === 0 ? "the page holds" : `${failures} checks failed`);
process.exit(failures === 0 ? 0 : 1);
