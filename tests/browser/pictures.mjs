// Pictures of the report page for a person to look at: 0, 1, 4 and 45 defects, light, dark and on a phone.
// Usage: node pictures.mjs CHROMIUM DIR OUT, where DIR holds clean.html, one.html, few.html and many.html.
// `PICTURES=OUT tests/browser/run.sh CONFORMANT` makes the pages and calls it.
import { mkdirSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const [chromium, folder, out] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"], protocolTimeout: 600_000, headless: true });
const LOOKS = [["light", 1280, "light"], ["dark", 1280, "dark"], ["phone", 390, "light"]];
/** What is done on the page before the second picture. */
const VIEWS = {
  defects: async (page) => page.evaluate(() => { const hit = document.querySelector(".defect") || document.querySelector("section"); hit.scrollIntoView(); }),
  timeline: async (page) => page.evaluate(() => { const hit = document.querySelector(".timeline"); if (hit) hit.scrollIntoView({ block: "center" }); }),
  search: async (page) => { await page.evaluate(() => scrollTo(0, 0)); await page.type("form.tools input[type=search]", "PageSize"); await new Promise((done) => { setTimeout(done, 250); }); },
};
for (const name of ["clean", "one", "few", "many"]) {
  for (const [look, width, scheme] of LOOKS) {
    const page = await browser.newPage();
    await page.setViewport({ width, height: 900 });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.goto(pathToFileURL(path.resolve(folder, `${name}.html`)).href, { waitUntil: "load" });
    await page.screenshot({ path: path.join(out, `${name}-${look}-top.png`) });
    for (const [view, act] of Object.entries(VIEWS)) {
      await act(page);
      await page.screenshot({ path: path.join(out, `${name}-${look}-${view}.png`) });
    }
    await page.close();
  }
}
await browser.close();
