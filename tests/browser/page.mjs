// The report page in a headless browser: it opens, finds, links and copies; nothing of a hostile
// record runs; nothing scrolls sideways; axe-core finds nothing. Usage: node page.mjs CHROMIUM DIR,
// where DIR holds clean.html, few.html, many.html, worst.html and hostile.html.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const [chromium, folder] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"], headless: true });
let failures = 0;
const check = (ok, what) => { if (!ok) { failures += 1; console.log(`FAIL ${what}`); } else { console.log(`ok   ${what}`); } };
const address = (name) => pathToFileURL(path.resolve(folder, `${name}.html`)).href;

const open = async (name, { width = 1280, scheme = "light", hash = "", scripts = true } = {}) => {
  const page = await browser.newPage();
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

for (const name of ["clean", "few", "many", "worst", "hostile"]) {
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

for (const name of ["clean", "few", "many", "hostile"]) {
  for (const width of [320, 360, 768, 1280]) {
    const page = await open(name, { width });
    await openAll(page);
    await settle(page);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    check(over <= 0, `${name}: no sideways scroll at ${width} px (${over})`);
    await page.close();
  }
}

for (const name of ["clean", "few", "many"]) {
  for (const scheme of ["light", "dark"]) {
    for (const folded of [true, false]) {
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
  const all = await page.$eval("form.tools output", (e) => e.textContent);
  check(/^(\d+) of \1$/.test(all), `all rules are read: ${all}`);
  await page.type("form.tools input[type=search]", "page-size");
  await settle(page);
  const some = await page.$eval("form.tools output", (e) => e.textContent);
  check(parseInt(some, 10) > 0 && parseInt(some, 10) < parseInt(all, 10), `a word leaves some rules: ${some}`);
  const hash = await page.evaluate(() => location.hash);
  check(hash === "#?q=page-size", `and goes into the address: ${hash}`);
  const again = await open("few", { hash });
  await settle(again);
  check((await again.$eval("form.tools output", (e) => e.textContent)) === some, "that address restores it");
  await again.close();
  await page.close();

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
  await keys.click(".jump .btn:last-child");
  await settle(keys);
  check((await keys.evaluate(() => location.hash)) !== before, "a button leads to the next broken rule");
  await keys.click(".cmd .btn");
  await settle(keys);
  check((await keys.$eval(".cmd .btn", (e) => e.textContent)) === "Copied", "a command is copied");
  await keys.close();

  const off = await open("few", { scripts: false });
  const text = await (await off.$("main")).evaluate((e) => e.textContent);
  for (const part of ["Not conformant", "expected", "conformant run --", "Unspecified behavior"]) check(text.includes(part), `without scripts: ${part}`);
  await off.close();
}
await browser.close();
console.log(failures === 0 ? "the page holds" : `${failures} checks failed`);
process.exit(failures === 0 ? 0 : 1);
