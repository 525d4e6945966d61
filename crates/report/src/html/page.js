"use strict";
(() => {
  const one = (selector, inside = document) => inside.querySelector(selector);
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const make = (tag, props, ...children) => { const e = Object.assign(document.createElement(tag), props); e.append(...children); return e; };
  const WORDS = { "+": ["pass", "pass"], "x": ["fail", "broken"], "!": ["warn", "warning"], "*": ["advice", "to clients"], "w": ["waived", "waived"], "?": ["not-judged", "not judged"],
    "n": ["not-applicable", "not applicable"], "o": ["open", "open"], "i": ["inconclusive", "inconclusive"], "e": ["error", "internal error"] };

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
      rule.text = (rule.id + " " + said).toLowerCase();
      own.push(rule); rules.push(rule);
    }
    sections.set(sec, own);
  }
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

  // Filter: stored in the URL, so that a view can be shared.
  const form = one("form.tools"), shown = one("form.tools output");
  const state = () => { const data = new FormData(form); return { q: data.get("q").trim().toLowerCase(), v: data.getAll("v"), s: data.getAll("s") }; };
  const apply = (write) => {
    const { q, v, s } = state(), any = q || v.length || s.length, words = q.split(/\s+/);
    let count = 0; const per = new Map();
    for (const rule of rules) {
      rule.out = !((!v.length || v.includes(rule.verdict)) && (!s.length || s.includes(rule.id.split("/")[0])) && words.every((w) => rule.text.includes(w)));
      if (rule.row) rule.row.hidden = rule.out;
      if (!rule.out) { count += 1; per.set(rule.sec, (per.get(rule.sec) || 0) + 1); }
    }
    for (const sec of sections.keys()) { const n = per.get(sec) || 0; sec.hidden = !n; sec.open = !!any && n > 0 && count <= 250; one("summary .num", sec).textContent = n; }
    for (const doc of all("#list .docs")) { doc.hidden = !one(".sec:not([hidden])", doc); if (any) doc.open = true; }
    shown.textContent = count + " of " + rules.length;
    if (write) {
      const query = new URLSearchParams([["q", q], ...v.map((x) => ["v", x]), ...s.map((x) => ["s", x])].filter((p) => p[1]));
      history.replaceState(null, "", any ? "#?" + query : "#rules");
    }
  };
  let wait = 0;
  form.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(apply, 80, true); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;

  // Deep links: #rule-id opens its parents; #?q=…&v=fail restores a filter.
  const here = () => { try { return decodeURIComponent(location.hash.slice(1)); } catch { return location.hash.slice(1); } };
  const follow = () => {
    for (const e of all(".hit")) e.classList.remove("hit");
    if (location.hash.startsWith("#?")) {
      const query = new URLSearchParams(location.hash.slice(2));
      form.elements.q.value = query.get("q") || "";
      for (const box of all("input[type=checkbox]", form)) box.checked = query.getAll(box.name).includes(box.value);
      apply(false); one("form.tools").closest("section").scrollIntoView(); return;
    }
    const hash = here(), rule = byId.get(hash);
    if (!hash) return;
    if (rule && !document.getElementById(hash)) build(rule.sec);
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
    for (const cells of all(".cells")) {
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
  for (const block of all(".cmd")) {
    const button = make("button", { type: "button", className: "btn" }, "Copy");
    button.addEventListener("click", async () => {
      const pre = one("pre", block);
      try { await navigator.clipboard.writeText(pre.textContent); } catch { getSelection().selectAllChildren(pre); document.execCommand("copy"); }
      button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.classList.add("has"); block.append(button);
  }
  const broken = all(".rule"), jump = one(".jump");
  if (broken.length) {
    const step = (by) => { const at = broken.findIndex((e) => e.id === here()); location.hash = "#" + encodeURIComponent(broken[at < 0 ? 0 : (at + by + broken.length) % broken.length].id); };
    for (const [text, label, by] of [["↑", "Previous broken rule", -1], ["↓", "Next broken rule", 1]]) {
      const button = make("button", { type: "button", className: "btn", ariaLabel: label, title: label }, text);
      button.addEventListener("click", () => step(by)); jump.append(button);
    }
    jump.hidden = false;
  }
  apply(false); follow();
})();
