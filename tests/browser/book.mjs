// The search of the book finds each spelling of a name. With a built book, also its pages in a headless browser: current
// chapter, anchors, search, a menu that folds on a phone, no dead links, nothing scrolls sideways.
// Usage: node book.mjs SCRIPT [CHROMIUM BOOK], where BOOK is the folder that `mdbook build docs` writes.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
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

const [, , , chromium, book] = process.argv;
if (!book) process.exit(0);
const { default: puppeteer } = await import("puppeteer-core");
let failures = 0;
const check = (ok, what) => { if (!ok) failures += 1; console.log(`${ok ? "ok  " : "FAIL"} book: ${what}`); };

const read = (name) => readFileSync(path.join(book, name), "utf8");
const pages = readdirSync(book).filter((name) => name.endsWith(".html") && !["print.html", "404.html", "toc.html"].includes(name));
const dead = pages.flatMap((name) => {
  const text = read(name);
  const main = text.slice(text.indexOf("<main>"), text.indexOf("</main>"));
  return [...main.matchAll(/href="([^"]+)"/g)].map(([, href]) => href).filter((href) => {
    if (/^[a-z]+:/.test(href)) return false;
    const [file, anchor] = href.split("#");
    const target = file || name;
    if (!existsSync(path.join(book, target))) return true;
    return Boolean(anchor) && target.endsWith(".html") && !read(target).includes(`id="${anchor}"`);
  }).map((href) => `${name}: ${href}`);
});
check(pages.length > 20 && dead.length === 0, `no dead links in ${pages.length} pages: ${dead.join(", ")}`);

const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"], headless: true, protocolTimeout: 600_000 });
const open = async (name, width) => {
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000);
  await page.setViewport({ width, height: 800 });
  await page.goto(pathToFileURL(path.resolve(book, name)).href, { waitUntil: "load" });
  return page;
};
const page = await open("gate.html", 1280);
await page.waitForSelector("nav a.active");
check((await page.$$eval("nav a.active", (all) => all.map((e) => new URL(e.href).pathname.split("/").at(-1)))).includes("gate.html"), "the menu marks the current chapter");
check((await page.$$eval("main h2", (all) => all.every((e) => e.id && e.querySelector(`a[href="#${e.id}"]`)))), "each heading is a link to itself");
const found = [];
for (const word of ["page_size", "PageSize"]) {
  const other = await open("gate.html", 1280);
  await other.keyboard.press("s");
  await other.waitForFunction(() => document.activeElement.type === "search");
  await other.keyboard.type(word);
  await other.waitForFunction((word) => [...document.querySelectorAll("[id$=searchresults-header]")].some((e) => e.textContent.includes(word)), {}, word);
  found.push(await other.$$eval("[id$=searchresults] li", (all) => all.length));
  await other.close();
}
check(found[0] > 0 && found[0] === found[1], `the search finds a name in each spelling: ${found}`);
const phone = await open("gate.html", 390);
const left = () => phone.$eval("nav[id$=sidebar]", (e) => Math.round(e.getBoundingClientRect().right));
check((await left()) <= 0, "on a phone the menu is folded");
check((await phone.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, "nothing scrolls sideways on a phone");
await phone.click("label[id$=sidebar-toggle]");
await phone.waitForFunction(() => document.querySelector("nav[id$=sidebar]").getBoundingClientRect().left >= 0);
check((await left()) > 100, "a button opens it");
await browser.close();
process.exit(failures === 0 ? 0 : 1);
