"use strict";
(() => {
  const one = (selector, inside = document) => inside.querySelector(selector);
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const make = (tag, props, ...children) => { const e = Object.assign(document.createElement(tag), props); e.append(...children); return e; };
  const WORDS = { "+": ["pass", "pass"], "x": ["fail", "broken"], "!": ["warn", "warning"], "*": ["advice", "to clients"], "w": ["waived", "waived"], "?": ["not-judged", "not judged"],
    "n": ["not-applicable", "not applicable"], "o": ["open", "open"], "i": ["inconclusive", "inconclusive"], "e": ["error", "internal error"] };

  // `page_size`, `page-size` and `PageSize` are one word.
  const fold = (text) => text.toLowerCase().replace(/[-_]/g, "");
  const parse = (text) => text.trim().split(/\s+/).filter(Boolean).map((word) => ({ word: fold(word), isJoined: /[a-z0-9][-_]?[A-Z]|[-_]/.test(word) }));
  const fits = (words, text) => words.every(({ word, isJoined }) => text.includes(word) || (isJoined && text.replaceAll(" ", "").includes(word)));

  // Parses the text list: sign, name, number of judgments, sentence.
  const rules = [], sections = new Map();
  for (const sec of all("#list .sec")) {
    const own = []; let prefix = "", said = "";
    for (const line of one("pre", sec).textContent.split("\n")) {
      if (line.endsWith("/") && !line.includes(" ")) { prefix = line; continue; }
      const hit = /^(\S)(\S*) (\d+)(s?) (.*)$/.exec(line);
      if (!hit || !WORDS[hit[1]]) continue;
      if (hit[5] !== "″") said = hit[5];
      const rule = { id: prefix + hit[2], verdict: WORDS[hit[1]][0], word: WORDS[hit[1]][1], judged: hit[3], should: !!hit[4], says: said, sec };
      rule.text = fold(rule.id + " " + said);
      own.push(rule); rules.push(rule);
    }
    sections.set(sec, own);
  }
  const lists = [];
  for (const sec of all("#scenario-list .sec")) {
    let prefix = "";
    for (const line of one("pre", sec).textContent.split("\n")) {
      if (line.endsWith("/") && !line.includes(" ")) { prefix = line; continue; }
      const hit = /^(\S)(.*?) (\d+\.\d) (.*)$/.exec(line);
      if (!hit || !WORDS[hit[1]]) continue;
      const id = prefix + hit[2];
      lists.push({ id, href: "scenario:" + id, verdict: WORDS[hit[1]][0], word: WORDS[hit[1]][1], seconds: hit[3], says: hit[4], text: fold(id + " " + hit[4]), sec });
    }
  }
  const scenarioByHref = new Map(lists.map((one) => [one.href, one]));
  const byId = new Map(rules.map((rule) => [rule.id, rule]));

  // A section's table is built when it is first opened.
  const build = (sec) => {
    const pre = one("pre", sec);
    if (!pre) return;
    const body = make("tbody");
    for (const rule of sections.get(sec)) {
      const link = make("a", { href: "#" + encodeURIComponent(rule.id) }, rule.says, make("code", {}, rule.id));
      rule.row = make("tr", {}, make("td", {}, make("span", { className: "tag " + rule.verdict }, rule.word)), make("td", {}, link),
        make("td", {}, (rule.should ? "should" : "must") + (rule.judged > 0 ? ", judged " + rule.judged + "×" : "")));
      if (!document.getElementById(rule.id)) rule.row.id = rule.id;
      rule.row.hidden = rule.out === true;
      body.append(rule.row);
    }
    pre.replaceWith(make("table", { className: "rules" }, body));
  };
  for (const sec of sections.keys()) sec.addEventListener("toggle", () => { if (sec.open) build(sec); });
  const buildScenarios = (sec) => {
    const pre = one("pre", sec);
    if (!pre) return;
    const body = make("tbody");
    for (const scenario of lists.filter((x) => x.sec === sec)) {
      scenario.row = make("tr", { id: scenario.href, hidden: scenario.out === true }, make("td", {}, make("span", { className: "tag " + scenario.verdict }, scenario.word)),
        make("td", {}, make("code", {}, scenario.id), scenario.says), make("td", {}, scenario.seconds + " s"));
      body.append(scenario.row);
    }
    pre.replaceWith(make("table", { className: "rules" }, body));
  };
  for (const sec of all("#scenario-list .sec")) sec.addEventListener("toggle", () => { if (sec.open) buildScenarios(sec); });

  // Findings are the rules in the cards, exchanges the steps of their timelines.
  const findings = all(".rule").map((e) => ({ e, card: e.closest(".defect"), id: e.id, says: one(".says", e).textContent, text: fold(e.textContent + " " + one("h3", e.closest(".defect")).textContent) }));
  const exchanges = all(".timeline li, .rule .fold").map((e) => ({ e, rule: e.closest(".rule"), says: (one("summary", e) || e).textContent.trim(), text: fold(e.textContent) }));

  // Names between backticks of a title become code.
  for (const e of all(".defect h3, .first a")) e.replaceChildren(...e.textContent.split("`").map((part, at, parts) => at % 2 && at < parts.length - 1 ? make("code", {}, part) : (at === parts.length - 1 && at % 2 ? "`" : "") + part));

  // Search and filter: stored in the URL, so that a view can be shared.
  const form = one("form.tools"), shown = one("#count"), found = one("#found");
  const state = () => { const data = new FormData(form); return { q: data.get("q").trim(), v: data.getAll("v"), s: data.getAll("s") }; };
  const apply = (write) => {
    const { q, v, s } = state(), any = q || v.length || s.length, words = parse(q);
    const isChosen = (rule) => (!v.length || v.includes(rule.verdict)) && (!s.length || s.includes(rule.id.split("/")[0]));
    let count = 0; const per = new Map();
    for (const rule of rules) {
      rule.out = !(isChosen(rule) && fits(words, rule.text));
      if (rule.row) rule.row.hidden = rule.out;
      if (!rule.out) { count += 1; per.set(rule.sec, (per.get(rule.sec) || 0) + 1); }
    }
    for (const sec of sections.keys()) { const n = per.get(sec) || 0; sec.hidden = !n; sec.open = !!any && n > 0 && count <= 250; one("summary .num", sec).textContent = n; }
    for (const doc of all("#list .docs")) { doc.hidden = !one(".sec:not([hidden])", doc); if (any) doc.open = true; }
    shown.textContent = count + " of " + rules.length;
    for (const scenario of lists) { scenario.out = !((!s.length || s.includes(scenario.id.split("/")[0])) && fits(words, scenario.text)); if (scenario.row) scenario.row.hidden = scenario.out; }
    for (const sec of all("#scenario-list .sec")) { const n = lists.filter((x) => x.sec === sec && !x.out).length; sec.hidden = !n && !!any; one("summary .num", sec).textContent = n; }
    for (const finding of findings) { finding.e.hidden = !(isChosen(byId.get(finding.id) || { id: finding.id }) && fits(words, finding.text)); }
    for (const card of all(".defect")) card.hidden = !one(".rule:not([hidden])", card);
    one(".filters").classList.toggle("on", v.length + s.length > 0);
    list(q ? words : null, !write);
    if (write) {
      const query = new URLSearchParams([["q", q], ...v.map((x) => ["v", x]), ...s.map((x) => ["s", x])].filter((p) => p[1]));
      history.replaceState(null, "", any ? "#?" + query : location.pathname + location.search);
    }
  };

  // Results below the header: the first ones of each kind.
  const SHOWN_MAX = 5;
  const open = (e) => { for (let up = e; up; up = up.parentElement) if (up.tagName === "DETAILS") { up.hidden = false; up.open = true; } };
  const list = (words, isLinked) => {
    if (!words) { found.hidden = true; found.replaceChildren(); return; }
    // A hit in the title or id comes before one in the text below it.
    const inTitle = (x) => fits(words, fold(x.says + " " + (x.id || "")));
    const byTitle = (hits) => [...hits.filter(inTitle), ...hits.filter((x) => !inTitle(x))];
    const link = (href, says, code, go) => { const a = make("a", { href: "#" + encodeURIComponent(href) }, says, code ? make("code", {}, code) : ""); a.addEventListener("click", () => { found.hidden = true; if (go) setTimeout(go); }); return make("li", {}, a); };
    const groups = [
      ["Findings", findings.filter((x) => !x.e.hidden), (x) => link(x.id, x.says, x.id)],
      ["Rules", rules.filter((x) => !x.out), (x) => link(x.id, x.says, x.id)],
      ["Scenarios", lists.filter((x) => !x.out), (x) => link(x.href, x.says, x.id)],
      ["Exchanges", exchanges.filter((x) => fits(words, x.text)), (x) => link(x.rule.id, x.says, "", () => { const inner = one("details", x.e); open(inner || x.e); x.e.classList.add("hit"); x.e.scrollIntoView({ block: "center" }); })],
    ];
    const blocks = groups.filter((g) => g[1].length).map(([name, hits, row]) => make("div", {}, make("h2", { className: "small" }, name + " ", make("span", { className: "num soft" }, String(hits.length))), make("ul", {}, ...byTitle(hits).slice(0, SHOWN_MAX).map(row)), hits.length > SHOWN_MAX ? make("p", { className: "soft small" }, (hits.length - SHOWN_MAX) + " more") : ""));
    found.replaceChildren(...(blocks.length ? blocks : [make("p", { className: "soft" }, "Nothing contains all of these words.")]));
    // A shared link with a search shows its results at once; so does a search without any.
    found.hidden = blocks.length > 0 && !isLinked && document.activeElement !== form.elements.q;
  };
  let wait = 0;
  const changed = () => { clearTimeout(wait); wait = setTimeout(apply, 80, true); };
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => { event.preventDefault(); const first = one("a", found); if (first) first.click(); });
  form.elements.q.addEventListener("focus", () => { if (found.firstChild) found.hidden = false; });
  document.addEventListener("pointerdown", (event) => { if (!event.target.closest(".top")) { found.hidden = true; one(".filters").open = false; } });
  form.hidden = false;

  // Deep links: #rule-id opens its parents; #?q=…&v=fail restores a filter.
  const here = () => { try { return decodeURIComponent(location.hash.slice(1)); } catch { return location.hash.slice(1); } };
  const follow = () => {
    for (const e of all(".hit")) e.classList.remove("hit");
    if (location.hash.startsWith("#?")) {
      const query = new URLSearchParams(location.hash.slice(2));
      form.elements.q.value = query.get("q") || "";
      for (const box of all("input[type=checkbox]", form)) box.checked = query.getAll(box.name).includes(box.value);
      apply(false); found.hidden = true; return;
    }
    const hash = here(), rule = byId.get(hash), scenario = scenarioByHref.get(hash);
    if (!hash) return;
    if (rule && !document.getElementById(hash)) build(rule.sec);
    if (scenario) buildScenarios(scenario.sec);
    const target = document.getElementById(hash);
    if (!target) return;
    target.hidden = false;
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") { e.hidden = false; e.open = true; }
    if (target.matches("details, tr")) { target.classList.add("hit"); target.scrollIntoView({ block: target.tagName === "TR" ? "center" : "start" }); }
  };
  addEventListener("hashchange", follow);

  // Map: pointer and arrow keys show the rule of a cell.
  const lens = one(".lens"); let on = null;
  if (lens) {
    lens.hidden = false;
    lens.textContent = "Point at a cell, or use Tab for sections and arrow keys for rules. Enter opens the rule.";
    const secs = [...sections.keys()];
    const of = (cells) => sections.get(secs[Number(cells.dataset.s)]) || [];
    const look = (cells, at) => {
      const rule = of(cells)[at];
      if (!rule) return;
      if (on) on.classList.remove("on");
      on = cells.children[at]; on.classList.add("on"); cells.at = at;
      lens.replaceChildren(make("span", { className: "tag " + rule.verdict }, rule.word), " ", rule.says, " ", make("code", { className: "soft" }, rule.id));
    };
    const go = (cells, at) => { const rule = of(cells)[at]; if (rule) location.hash = "#" + encodeURIComponent(rule.id); };
    for (const cells of all(".cells[data-s]")) {
      const index = (event) => Array.prototype.indexOf.call(cells.children, event.target);
      cells.setAttribute("role", "group"); cells.tabIndex = 0; cells.at = 0;
      cells.addEventListener("pointerover", (event) => { if (event.target !== cells) look(cells, index(event)); });
      cells.addEventListener("click", (event) => { if (event.target !== cells) { if (event.pointerType === "touch" && on !== event.target) look(cells, index(event)); else go(cells, index(event)); } });
      cells.addEventListener("focus", () => look(cells, cells.at));
      cells.addEventListener("keydown", (event) => {
        const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (move) { look(cells, Math.min(Math.max(cells.at + move, 0), cells.children.length - 1)); event.preventDefault(); }
        else if (event.key === "Enter") go(cells, cells.at);
      });
    }
  }

  // Copy buttons and navigation between broken rules.
  const copied = async (button, text, e) => {
    try { await navigator.clipboard.writeText(text); } catch { const area = e || document.body.appendChild(make("pre", {}, text)); getSelection().selectAllChildren(area); document.execCommand("copy"); if (!e) area.remove(); }
    const label = button.textContent; button.textContent = "Copied"; setTimeout(() => { button.textContent = label; }, 1500);
  };
  const said = (selector, e) => { const hit = one(selector, e); return hit ? hit.textContent.trim() : ""; };
  const ticket = (e) => {
    const http = one(".bad .http, .fold .http", e), commands = all(".cmd pre", e).map((pre) => pre.textContent);
    const fence = (text) => "```\n" + text.replaceAll("```", "~~~") + "\n```";
    return [
      "## " + said("h3", e.closest(".defect")), said(".says", e) + " (`" + e.id + "`)", said(".origin", e),
      said(".what", e), "Expected: " + said(".diff .pass code", e) + "\nGot: " + said(".diff .fail code", e),
      http && fence(all("p, pre", http).map((x) => x.tagName === "PRE" ? all("span", x).map((line) => line.textContent).join("\n") : [...x.childNodes].map((n) => n.textContent).join(" ")).join("\n")),
      commands.length && "Reproduce:\n" + fence(commands.join("\n")), linkTo(e.id),
    ].filter(Boolean).join("\n\n") + "\n";
  };
  const linkTo = (id) => location.href.split("#")[0] + "#" + encodeURIComponent(id);
  for (const e of all(".rule")) {
    const body = one(".rule > div", e.parentElement) && e.querySelector(":scope > div");
    if (!body) continue;
    const command = all(".cmd pre", e).at(-1);
    const acts = make("p", { className: "acts" });
    for (const [label, text] of [["ticket", () => ticket(e)], ["command", command && (() => command.textContent)], ["link", () => linkTo(e.id)]]) {
      if (!text) continue;
      const button = make("button", { type: "button", className: "btn", title: "Copy as " + label }, "Copy " + label);
      button.addEventListener("click", () => copied(button, text()));
      acts.append(button);
    }
    body.prepend(acts);
  }
  for (const block of all(".cmd")) {
    const button = make("button", { type: "button", className: "btn" }, "Copy");
    button.addEventListener("click", () => { const pre = one("pre", block); copied(button, pre.textContent, pre); });
    block.classList.add("has"); block.append(button);
  }
  const jump = one(".jump"), keys = one("#keys"), next = () => all(".rule:not([hidden])").filter((e) => !e.closest(".defect").hidden);
  const step = (by) => { const broken = next(); if (!broken.length) return; const at = broken.findIndex((e) => e.id === here()); location.hash = "#" + encodeURIComponent(broken[at < 0 ? 0 : (at + by + broken.length) % broken.length].id); };
  const buttons = [["?", "Keyboard shortcuts", () => keys.showModal()]];
  if (findings.length) buttons.unshift(["↑", "Previous broken rule", () => step(-1)], ["↓", "Next broken rule", () => step(1)]);
  for (const [text, label, act] of buttons) {
    const button = make("button", { type: "button", className: "btn", ariaLabel: label, title: label }, text);
    button.addEventListener("click", act); jump.append(button);
  }
  jump.hidden = false;
  one("button", keys).addEventListener("click", () => keys.close());
  const KEYS = { "/": () => form.elements.q.focus(), j: () => step(1), k: () => step(-1), "?": () => keys.showModal() };
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") { found.hidden = true; one(".filters").open = false; return; }
    if (event.ctrlKey || event.metaKey || event.altKey || keys.open || !one("#keys-on").checked || event.target.closest("input, select, textarea")) return;
    if (Object.hasOwn(KEYS, event.key)) { event.preventDefault(); KEYS[event.key](); }
  });
  apply(false); follow();
})();
