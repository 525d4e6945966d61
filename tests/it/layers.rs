//! Holds the layer table of ARCHITECTURE.md: reads every `crate::` path under `src/` and says why
//! one that points the wrong way does.
//!
//! It reads text and resolves nothing: a re-export under another name is not followed.

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// One module and what it may use.
struct Layer {
    module: &'static str,
    may_use: &'static [&'static str],
    why: &'static str,
}

const fn layer(module: &'static str, may_use: &'static [&'static str], why: &'static str) -> Layer {
    Layer {
        module,
        may_use,
        why,
    }
}

/// From the bottom to the top. A module may use itself and what is listed, nothing else.
const LAYERS: &[Layer] = &[
    // 0: values and texts.
    layer("ids", &[], "values know nothing of what is done with them"),
    layer(
        "clock",
        &[],
        "time is asked for here and nowhere else, by whomever",
    ),
    layer(
        "instant",
        &[],
        "what names an instant is the same for everyone",
    ),
    layer(
        "failpoint",
        &[],
        "what fails by script knows nothing of who fails",
    ),
    layer(
        "files",
        &["text"],
        "what may be read, and how much of it, is the same for everyone",
    ),
    layer("source", &[], "a place in a file is a value"),
    layer(
        "parallel",
        &[],
        "several threads do the same, whatever it is",
    ),
    layer(
        "json",
        &[],
        "pointers and printing are the same for everyone",
    ),
    layer(
        "text",
        &[],
        "escaping and comparing texts is the same for everyone",
    ),
    layer(
        "http",
        &["text"],
        "requests and responses are values that no socket has touched",
    ),
    layer(
        "redact",
        &["http", "text"],
        "secrets are taken out of texts, whoever writes them",
    ),
    // 1: the rulebook and the types of what is concluded.
    layer(
        "verdict",
        &["source"],
        "a stored run must be readable without the rulebook it was judged by",
    ),
    layer(
        "rulebook",
        &["json", "source", "verdict"],
        "the model must load without anything that runs",
    ),
    layer(
        "schema",
        &["instant", "json", "rulebook", "verdict"],
        "schemas are compiled from the model and from nothing else",
    ),
    layer(
        "xml",
        &["json", "rulebook"],
        "XML texts get the types that a schema names",
    ),
    layer(
        "waivers",
        &["source", "text", "verdict"],
        "a waiver changes a record and sees no evidence",
    ),
    layer(
        "trace",
        &["rulebook", "source", "verdict"],
        "documents are compared with citations, offline",
    ),
    // 2: the judge and the reference, which must not know each other.
    layer(
        "judge",
        &[
            "clock", "http", "instant", "json", "redact", "rulebook", "schema", "source", "text",
            "verdict",
        ],
        "a verdict is a pure function of evidence and rulebook: the judge sends nothing and knows no reference",
    ),
    layer(
        "prove",
        &["json", "judge", "rulebook", "schema", "verdict"],
        "what would be noticed is asked of the judge alone: nothing is sent",
    ),
    layer(
        "reference",
        &["clock", "http", "ids"],
        "behaviour is written twice, as rules and as code: a reference that reads the rules proves nothing",
    ),
    // 3: the wire.
    layer(
        "transport",
        &["failpoint", "clock", "http", "text"],
        "bytes go to and fro without anyone judging them",
    ),
    layer(
        "server",
        &["clock", "http", "redact", "reference", "text", "transport"],
        "it serves the reference and judges nothing",
    ),
    layer(
        "clients",
        &[
            // The engine only in its tests, which read requests back.
            "engine", "http", "json", "judge", "rulebook", "schema", "verdict",
        ],
        "what clients send is judged as it came, whoever saw it pass",
    ),
    // 4: what makes runs, fixtures and comparisons, and what reports them.
    layer(
        "engine",
        &[
            "failpoint",
            "clients",
            "clock",
            "files",
            "http",
            "json",
            "judge",
            "parallel",
            "prove",
            "redact",
            "reference",
            "rulebook",
            "schema",
            "server",
            "text",
            "transport",
            "verdict",
            "xml",
        ],
        "the engine emits events and never sees who consumes them",
    ),
    layer(
        "check",
        &[
            // Fixtures and the reference only in its tests, which hold it against both.
            "clients",
            "clock",
            "engine",
            "fixtures",
            "http",
            "json",
            "judge",
            "reference",
            "rulebook",
            "schema",
            "text",
            "verdict",
            "xml",
        ],
        "files are judged offline, as the judge judges everything",
    ),
    layer(
        "explore",
        &[
            "clock", "engine", "judge", "rulebook", "schema", "text", "verdict",
        ],
        "sequences are drawn, played by the engine and judged by the judge",
    ),
    layer(
        "selftest",
        &[
            "engine",
            "explore",
            "files",
            "fixtures",
            "http",
            "json",
            "judge",
            "parallel",
            "prove",
            "reference",
            "rulebook",
            "schema",
            "text",
            "transport",
            "verdict",
        ],
        "the self-test plays what a run plays, against the reference alone",
    ),
    layer(
        "fixtures",
        &[
            "failpoint",
            "check",
            "clients",
            "clock",
            "engine",
            "files",
            "http",
            "ids",
            "json",
            "judge",
            "parallel",
            "redact",
            "rulebook",
            "schema",
            "text",
            "verdict",
            "xml",
        ],
        "fixtures come from the rulebook, never from the reference",
    ),
    layer(
        "compare",
        &[
            "json", "rulebook", "schema", "source", "text", "trace", "verdict",
        ],
        "rulebooks and records are compared without running anything",
    ),
    // 5: who asks, beside the command line.
    layer(
        "api",
        &[
            "check",
            "clock",
            "compare",
            "engine",
            "fixtures",
            "judge",
            "prove",
            "redact",
            "reference",
            "report",
            "rulebook",
            "schema",
            "selftest",
            "server",
            "text",
            "transport",
            "verdict",
        ],
        "what programs use calls what the command line calls, and decides nothing",
    ),
    layer(
        "report",
        &["failpoint", "http", "redact", "source", "text", "verdict"],
        "a report renders a stored run of last year: it may know the record, never the engine or the rulebook",
    ),
];

/// Everything above: it may use all.
const TOP: [&str; 3] = ["cli", "lib", "main"];

/// One use of another module.
struct Use {
    place: String,
    from: String,
    to: String,
    /// Whether only tests see it.
    is_test: bool,
}

#[test]
fn every_module_uses_only_what_its_layer_may_use() {
    let layers: BTreeMap<&str, &Layer> = LAYERS.iter().map(|l| (l.module, l)).collect();
    let mut problems = String::new();
    for used in uses() {
        if TOP.contains(&used.from.as_str()) || used.from == used.to {
            continue;
        }
        let (from, to) = (used.from.as_str(), used.to.as_str());
        let Some(layer) = layers.get(from) else {
            let _ = writeln!(
                problems,
                "{}: the module `{from}` has no layer: give it one in tests/it/layers.rs",
                used.place
            );
            continue;
        };
        if !layer.may_use.contains(&to) {
            let _ = writeln!(
                problems,
                "{}: `{from}` uses `{to}`, and may use only {}: {}",
                used.place,
                layer.may_use.join(", "),
                layer.why
            );
        }
    }
    assert!(problems.is_empty(), "layers (ARCHITECTURE.md):\n{problems}");
}

#[test]
fn every_permission_is_used_and_none_leads_back() {
    let uses = uses();
    let mut problems = String::new();
    for layer in LAYERS {
        for to in layer.may_use {
            let is_used = |used: &Use| used.from == layer.module && used.to == *to;
            if !uses.iter().any(is_used) {
                let _ = writeln!(
                    problems,
                    "`{}` may use `{to}` and does not: take it out",
                    layer.module
                );
            }
        }
    }
    let edges = uses
        .iter()
        .filter(|used| !used.is_test && used.from != used.to);
    let edges = edges.map(|used| (used.from.clone(), used.to.clone()));
    for (from, to) in circle(edges.collect()) {
        let _ = writeln!(problems, "`{from}` uses `{to}`, which leads back to it");
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn no_file_of_the_engine_leads_back_to_itself() {
    let root = crate::program::root().join("src/engine");
    let path = Regex::new(r"(?:crate::engine|use super)::([a-z_]+)").expect("well-formed");
    let mut uses: BTreeSet<(String, String)> = BTreeSet::new();
    for file in crate::program::files(&root, &["rs"]) {
        let below = file.strip_prefix(&root).expect("it is below");
        let Some(first) = below.iter().next().and_then(|name| name.to_str()) else {
            continue;
        };
        let from = first.trim_end_matches(".rs");
        let is_nested = below.iter().count() > 1;
        let text = std::fs::read_to_string(&file).expect("sources are readable");
        let text = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        for found in path.captures_iter(text) {
            let own = is_nested && found[0].starts_with("use super");
            if !own && from != "mod" && from != "tests" && found[1] != *from {
                uses.insert((from.to_owned(), found[1].to_owned()));
            }
        }
    }
    let left = circle(uses);
    assert!(
        left.is_empty(),
        "these lead back to where they are used: {left:?}"
    );
}

/// What is left of uses once all is taken away that leads to nothing more: a circle, or nothing.
fn circle(mut uses: BTreeSet<(String, String)>) -> BTreeSet<(String, String)> {
    loop {
        let from: BTreeSet<String> = uses.iter().map(|(from, _)| from.clone()).collect();
        let before = uses.len();
        uses.retain(|(_, to)| from.contains(to));
        if uses.len() == before {
            return uses;
        }
    }
}

#[test]
fn architecture_has_every_module_in_a_layer_that_uses_none_above() {
    let page = std::fs::read_to_string(crate::program::root().join("ARCHITECTURE.md"))
        .expect("it is readable");
    let row = Regex::new(r"(?m)^\| (\d) \| (.*?) \|").expect("the pattern is well-formed");
    let name = Regex::new("`([a-z]+)`").expect("the pattern is well-formed");
    let mut stands: BTreeMap<String, u8> = BTreeMap::new();
    for found in row.captures_iter(&page) {
        let number = found[1].parse().expect("it is a digit");
        let names = name.captures_iter(&found[2]);
        stands.extend(names.map(|found| (found[1].to_owned(), number)));
    }
    let mut problems = String::new();
    for layer in LAYERS.iter().filter(|l| !stands.contains_key(l.module)) {
        let _ = writeln!(problems, "`{}` is in no row of the table", layer.module);
    }
    for module in stands.keys().filter(|module| *module != "cli") {
        if !LAYERS.iter().any(|layer| layer.module == module) {
            let _ = writeln!(problems, "`{module}` has a row there and no line here");
        }
    }
    for used in uses().iter().filter(|used| !used.is_test) {
        if let (Some(from), Some(to)) = (stands.get(&used.from), stands.get(&used.to))
            && to > from
        {
            let _ = writeln!(
                problems,
                "{}: `{}` stands in layer {from} and uses `{}` of layer {to}",
                used.place, used.from, used.to
            );
        }
    }
    assert!(problems.is_empty(), "ARCHITECTURE.md, Layers:\n{problems}");
}

#[test]
fn the_table_lists_what_is_there_and_allows_what_is_used() {
    let uses = uses();
    let mut problems = String::new();
    for layer in LAYERS {
        let module = layer.module;
        let folder = crate::program::root().join("src").join(module);
        if !folder.is_dir() && !folder.with_extension("rs").is_file() {
            let _ = writeln!(problems, "`{module}` is no module: take its line out");
        }
        for to in layer.may_use {
            assert!(
                LAYERS.iter().any(|l| l.module == *to),
                "`{module}` may use `{to}`, which has no line"
            );
        }
    }
    // The two walls that the whole project rests on have something to hold back.
    for module in ["judge", "reference", "report", "engine"] {
        assert!(
            uses.iter().any(|u| u.from == module),
            "no file of `{module}` was read: the scan sees nothing"
        );
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn an_upward_use_is_seen_in_every_spelling() {
    for line in [
        "use crate::engine::Target;",
        "use crate::{clock, engine::Target};",
        "    let x = crate::engine::run();",
        "pub(crate) use crate::{text, json::{self, Limits}, engine};",
        "use crate::{\n    clock,\n    engine,\n};",
    ] {
        assert!(
            modules_in(line)
                .iter()
                .any(|(_, module)| module == "engine"),
            "{line}"
        );
    }
    assert!(modules_in("// crate::engine in a comment").is_empty());
}

fn uses() -> Vec<Use> {
    let root = crate::program::root();
    let mut uses = Vec::new();
    for path in crate::program::files(&root.join("src"), &["rs"]) {
        let shown = path
            .strip_prefix(&root)
            .expect("it is under the root")
            .to_owned();
        let from = module_of(&shown);
        let text = std::fs::read_to_string(&path).expect("sources are readable");
        let own = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        let own = text[..own].lines().count();
        let tests = shown.file_stem().is_some_and(|stem| stem == "tests");
        for (line, to) in modules_in(&text) {
            uses.push(Use {
                place: format!("{}:{line}", shown.display()),
                from: from.clone(),
                to,
                is_test: tests || line > own,
            });
        }
    }
    uses
}

/// `src/judge/mod.rs` and `src/judge.rs` are `judge`.
fn module_of(path: &Path) -> String {
    let first = path.components().nth(1).expect("it lies in src");
    first
        .as_os_str()
        .to_string_lossy()
        .trim_end_matches(".rs")
        .to_owned()
}

/// The line and the first segment of every `crate::` path, comments left out.
fn modules_in(text: &str) -> Vec<(usize, String)> {
    let comment = Regex::new(r"(?m)//.*$").expect("the pattern is well-formed");
    let path = Regex::new(
        r"\bcrate::(?:(?<name>[a-z_0-9]+)|\{(?<list>(?:[^{};]|\{(?:[^{}]|\{[^{}]*\})*\})*)\})",
    )
    .expect("the pattern is well-formed");
    let inner = Regex::new(r"\{(?:[^{}]|\{[^{}]*\})*\}").expect("the pattern is well-formed");
    let text = comment.replace_all(text, "");
    let mut found = Vec::new();
    for captures in path.captures_iter(&text) {
        let at = captures.get(0).expect("a match is whole").start();
        let line = text[..at].matches('\n').count() + 1;
        if let Some(name) = captures.name("name") {
            found.push((line, name.as_str().to_owned()));
        } else if let Some(list) = captures.name("list") {
            let flat = inner.replace_all(list.as_str(), "");
            for item in flat.split(',') {
                let name = item.trim().split("::").next().unwrap_or_default().trim();
                if !name.is_empty() {
                    found.push((line, name.to_owned()));
                }
            }
        }
    }
    found
}
