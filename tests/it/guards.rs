//! Checks of the source tree: properties of every file.
//!
//! Each failure names the file and what to do.

use crate::program::{files, root};
use conformant_engine::plan;
use conformant_reference::{Fault, Variant};
use conformant_rulebook::service::ServiceIndex;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// The project's Rust files with their texts, by path from the root.
fn sources(folders: &[&str]) -> Vec<(String, String)> {
    let root = root();
    let mut sources = Vec::new();
    for folder in folders {
        for path in files(&root.join(folder), &["rs"]) {
            sources.push((
                shown(&path),
                std::fs::read_to_string(&path).expect("sources are UTF-8"),
            ));
        }
    }
    assert!(!sources.is_empty(), "nothing was read under {folders:?}");
    sources
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .expect("it is under the root")
        .display()
        .to_string()
}

/// Matching lines, as `file:line: what`.
fn hits(sources: &[(String, String)], pattern: &str) -> String {
    let pattern = Regex::new(pattern).expect("the pattern is well-formed");
    let mut hits = String::new();
    for (path, text) in sources {
        for (index, line) in text.lines().enumerate() {
            if let Some(hit) = pattern.find(line) {
                let _ = writeln!(hits, "{path}:{}: {}", index + 1, hit.as_str());
            }
        }
    }
    hits
}

#[test]
fn every_file_begins_with_its_purpose() {
    let silent: Vec<String> = sources(&["src", "crates", "specs", "tests", "benches"])
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//! "))
        .map(|(path, _)| path)
        .collect();
    assert!(
        silent.is_empty(),
        "begin with `//!` and one sentence of responsibility: {silent:#?}"
    );
}

#[test]
fn only_the_command_line_prints() {
    let below: Vec<_> = sources(&["src", "crates"])
        .into_iter()
        .filter(|(p, _)| !p.starts_with("src/cli/"))
        .collect();
    let found = hits(&below, r"^[^/]*\b(e?print(ln)?|dbg)!\s*\(");
    assert!(
        found.is_empty(),
        "give the text to the caller; src/cli prints it:\n{found}"
    );
}

/// Every argument is used: each field of an argument struct is read in a file that contains the name of the struct.
#[test]
fn every_flag_is_read() {
    let files = sources(&["src/cli"]);
    let declared =
        Regex::new(r"^pub(?:\([a-z]+\))? struct (\w+)|^    pub(?:\([a-z]+\))? (?:r#)?([a-z_]+): ")
            .expect("the pattern is well-formed");
    let (mut unread, mut flags) = (Vec::new(), 0);
    for (path, text) in files.iter().filter(|(path, _)| path.contains("/args/")) {
        let mut owner = "";
        for found in text.lines().filter_map(|line| declared.captures(line)) {
            let Some(field) = found.get(2) else {
                owner = found.get(1).map_or("", |name| name.as_str());
                continue;
            };
            flags += 1;
            // A method of another type with that name.
            let reads = Regex::new(&format!(r"\.{}\b(?:[^(]|$)", field.as_str()));
            let reads = reads.expect("a field's name is a word");
            let is_read = |text: &String| text.contains(owner) && reads.is_match(text);
            if !files.iter().any(|(_, text)| is_read(text)) {
                unread.push(format!("{path}: {owner}::{}", field.as_str()));
            }
        }
    }
    assert!(flags > 100, "only {flags} flags were found");
    assert!(
        unread.is_empty(),
        "read these where the command is carried out, or take them away: {unread:#?}"
    );
}

/// Scripts that run on machines of users: macOS still has bash 3.2.
#[test]
fn scripts_for_users_need_no_more_than_bash_3_2() {
    let newer = concat!(
        r"\b(mapfile|readarray|coproc)\b|\b(declare|local|typeset) -\w*[Anglu]|&>>|\|&|;;?&(\s|$)|\bwait -n\b|\[\[ -v |",
        r"\$\{[^}]*[\w\]](,,?|\^\^?|@\w)\}|\$\{\w+: -|\$\{\w+:[^}:]*: ?-|printf -v \S+\[|%\([^)]*\)T|\bglobstar\b|\$\{?EPOCH|\$\{?BASHPID",
    );
    let mut scripts: Vec<(String, String)> = [
        "action.yml",
        "docs/screenshot.sh",
        "crates/fixtures/src/export/prelude.sh",
        "crates/fixtures/src/export/sh.rs",
        "tests/browser/run.sh",
    ]
    .iter()
    .map(|path| ((*path).to_owned(), read(path)))
    .collect();
    for folder in [".ci", "packaging", "templates", "src/cli/init"] {
        for path in files(&root().join(folder), &[]) {
            let text = std::fs::read_to_string(&path).expect("scripts are UTF-8");
            scripts.push((shown(&path), text));
        }
    }
    let hits = hits(&scripts, newer);
    assert!(hits.is_empty(), "bash 3.2 does not have this:\n{hits}");
    for newer_line in [
        "mapfile -t x",
        "echo ${x,,}",
        "declare -A x",
        "a &>> b",
        "echo ${x: -1}",
        "echo ${x:0: -1}",
    ] {
        let line = [(String::new(), newer_line.to_owned())];
        assert!(!self::hits(&line, newer).is_empty(), "{newer_line}");
    }
}

#[test]
fn the_tree_has_no_unfinished_code() {
    // In two parts, so that this file does not match.
    let words = [["to", "do!"], ["unimpl", "emented!"], ["#[ign", "ore"]];
    let mut pattern: Vec<String> = words.iter().map(|w| regex::escape(&w.concat())).collect();
    pattern.push("//[/!]? *(TODO|FIXME|XXX)".to_owned());
    let sources = sources(&["src", "crates", "specs", "tests", "benches"]);
    let found = hits(&sources, &pattern.join("|"));
    assert!(found.is_empty(), "finish it or take it out:\n{found}");
}

#[test]
fn no_file_names_a_vendor_or_a_machine() {
    let vendors = [["twi", "lio"], ["aut", "hy"]].map(|w| w.concat());
    let folders = [
        ["/wo", "rk/"],
        ["/ro", "ot/"],
        ["/ho", "me/"],
        ["/fa", "rm/"],
        ["/Us", "ers/"],
    ]
    .map(|w| w.concat());
    let mut found = String::new();
    for path in files(&root(), &[]) {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        // Paths of URLs (`/v1/home/x`) follow a letter or digit, those of machines do not.
        for (index, line) in text.lines().enumerate() {
            let lower = line.to_lowercase();
            let vendor = vendors.iter().find(|v| lower.contains(*v));
            let folder = folders.iter().find(|f| {
                line.match_indices(f.as_str()).any(|(at, _)| {
                    !line[..at].ends_with(|c: char| c.is_alphanumeric() || "*}.-_".contains(c))
                })
            });
            if let Some(word) = vendor.or(folder) {
                let _ = writeln!(found, "{}:{}: {word}", shown(&path), index + 1);
            }
        }
    }
    assert!(
        found.is_empty(),
        "say it without a vendor's name or a place on one machine:\n{found}"
    );
}

#[test]
fn faults_and_variations_have_descriptions_and_kebab_case_ids() {
    let faults = Fault::ALL.iter().map(|f| (f.id(), f.says(), true));
    let variants = Variant::ALL.iter().map(|v| (v.id(), v.says(), false));
    let index = ServiceIndex::embedded();
    let form = Regex::new("^[a-z0-9]+(-[a-z0-9]+)*$").expect("the pattern is well-formed");
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (id, says, is_fault) in faults.chain(variants) {
        let (service, name) = id.split_once('/').unwrap_or(("", id));
        assert!(form.is_match(name), "{id}: write it in kebab-case");
        let is_known = index.get(service).is_some();
        assert!(
            is_known || (service.is_empty() && !is_fault),
            "{id}: begin with the service it is in"
        );
        assert!(
            says.ends_with('.') && says.contains(' '),
            "{id}: say in one sentence what it does, not {says:?}"
        );
        if let Some(other) = seen.insert(id, says) {
            panic!("{id} names two items: {other:?} and {says:?}");
        }
    }
}

#[test]
fn the_rulebooks_guide_lists_every_hook_with_its_arguments() {
    let guide =
        std::fs::read_to_string(root().join("specs/README.md")).expect("the guide is there");
    let table = guide
        .split("## Hooks")
        .nth(1)
        .expect("it has a section Hooks");
    let table = table.split("\n## ").next().unwrap_or_default();
    let code = Regex::new("`([^`]+)`").expect("the pattern is well-formed");
    let mut listed: BTreeMap<String, String> = BTreeMap::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for name in code.captures_iter(cells[1]) {
            listed.insert(name[1].to_owned(), cells[2].to_owned());
        }
    }
    let names: BTreeSet<&str> = listed.keys().map(String::as_str).collect();
    let index = ServiceIndex::embedded();
    let known: BTreeSet<&str> = index.hooks().map(|h| h.name.as_str()).collect();
    assert_eq!(
        names, known,
        "the table of hooks in specs/README.md and the hooks of service.yaml differ"
    );
    for hook in ServiceIndex::embedded().hooks() {
        let cell = &listed[&hook.name];
        let words: BTreeSet<&str> = cell
            .split(|c: char| !(c.is_ascii_lowercase() || c == '_' || c == '?'))
            .collect();
        for required in &hook.required {
            assert!(
                words.contains(required.as_str()),
                "specs/README.md: {} takes {required}, not {cell}",
                hook.name
            );
        }
        for optional in &hook.optional {
            let optional = format!("{optional}?");
            assert!(
                words.contains(optional.as_str()),
                "specs/README.md: {} takes {optional}, not {cell}",
                hook.name
            );
        }
    }
}

#[test]
fn every_operation_is_called_by_a_scenario() {
    let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
    let planned = plan::all(&rulebook);
    let ids: BTreeSet<&str> = planned.iter().map(|p| p.scenario.id.as_str()).collect();
    assert_eq!(ids.len(), planned.len(), "two scenarios have the same id");
    let silent: Vec<String> = rulebook
        .services
        .values()
        .flat_map(|service| service.operations.values())
        .map(|operation| format!("{}/{}", operation.service, operation.id))
        .filter(|id| {
            !ids.iter()
                .any(|scenario| scenario.starts_with(&format!("{id}/")))
        })
        .collect();
    assert!(
        silent.is_empty(),
        "write their happy path under `operations`: {silent:#?}"
    );
}

#[test]
fn no_dependency_is_banned_and_all_come_from_one_registry() {
    let (policy, lock) = (read("deny.toml"), read("Cargo.lock"));
    let banned = Regex::new(r#"\{ name = "([^"]+)" \}"#).expect("the pattern is well-formed");
    let banned: Vec<&str> = banned
        .captures_iter(&policy)
        .map(|c| c.get(1).expect("it is in every match").as_str())
        .collect();
    assert!(
        banned.contains(&"serde_yaml"),
        "deny.toml bans nothing: {banned:?}"
    );
    for name in banned {
        assert!(
            !lock.contains(&format!("name = \"{name}\"\n")),
            "{name} is banned: see `cargo tree -i {name}`"
        );
    }
    for line in lock
        .lines()
        .filter_map(|line| line.strip_prefix("source = "))
    {
        assert_eq!(
            line, "\"registry+https://github.com/rust-lang/crates.io-index\"",
            "crates come from crates.io"
        );
    }
}

/// Names of the dependencies in a manifest, in sections that end with `ending`.
fn dependencies(manifest: &str, ending: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut section = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section.ends_with(ending)
            && let Some((name, _)) = line.split_once(" = ")
        {
            names.insert(name.trim_end_matches(".workspace").to_owned());
        }
    }
    names
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("it is in the project")
}

/// The workspace's manifests, without that of the root.
fn manifests() -> Vec<String> {
    let manifests = files(&root().join("crates"), &["toml"]).into_iter();
    let manifests = manifests.map(|path| shown(&path));
    let manifests = manifests.filter(|path| path.ends_with("/Cargo.toml"));
    manifests.chain(["specs/Cargo.toml".to_owned()]).collect()
}

#[test]
fn every_direct_dependency_is_listed_with_why_it_is_there() {
    let (manifest, list) = (read("Cargo.toml"), read("docs/dependencies.md"));
    let declared = dependencies(&manifest, "[workspace.dependencies]");
    let (_, of_root) = manifest.split_once("[package]").expect("it has a package");
    let mut used = dependencies(of_root, "dependencies]");
    for path in manifests() {
        used.extend(dependencies(&read(&path), "dependencies]"));
    }
    assert_eq!(
        used, declared,
        "declare each dependency in [workspace.dependencies], and nothing that no crate uses"
    );
    let direct: BTreeSet<&str> = declared
        .iter()
        .map(String::as_str)
        .filter(|name| !name.starts_with("conformant-"))
        .collect();
    let row =
        Regex::new("(?m)^\\| `([^`]+)` \\||`([^`]+)` \\(").expect("the pattern is well-formed");
    let listed: BTreeSet<&str> = row
        .captures_iter(&list)
        .filter_map(|c| c.get(1).or(c.get(2)))
        .map(|name| name.as_str())
        .collect();
    assert_eq!(listed, direct, "docs/dependencies.md and Cargo.toml differ");
}

/// The walls on which verdicts rest: these crates use nothing of the project beyond what is listed.
#[test]
fn the_reference_the_judge_and_the_reports_depend_on_no_more_than_they_may() {
    for (name, allowed) in [
        // A reference that read the rules would agree with them whatever they say.
        ("reference", &["base"] as &[&str]),
        // A verdict is a function of evidence and rulebook.
        ("judge", &["base", "record", "rulebook", "schema"]),
        // Reports render stored records of earlier versions.
        ("report", &["base", "record"]),
    ] {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        let mut used = dependencies(&manifest, "[dependencies]");
        if name == "reference" {
            used.extend(dependencies(&manifest, "dependencies]"));
        }
        let used: Vec<&str> = used
            .iter()
            .filter_map(|name| name.strip_prefix("conformant-"))
            .collect();
        assert_eq!(used, allowed, "crates/{name}/Cargo.toml");
    }
}

/// Modules of the engine use each other in one direction.
#[test]
fn modules_of_the_engine_form_no_cycle() {
    let root = root().join("crates/engine/src");
    let path = Regex::new(r"(?:crate|use super)::([a-z_]+)").expect("the pattern is well-formed");
    let module = |file: &Path| {
        let first = file.strip_prefix(&root).expect("it is below").iter().next();
        let first = first.expect("it has a name").to_string_lossy();
        first.trim_end_matches(".rs").to_owned()
    };
    let files = files(&root, &["rs"]);
    let modules: BTreeSet<String> = files.iter().map(|file| module(file)).collect();
    assert!(modules.contains("runner"), "no module was read");
    let mut uses: BTreeSet<(String, String)> = BTreeSet::new();
    for file in &files {
        let from = module(file);
        let is_nested = file.parent() != Some(&root);
        let text = std::fs::read_to_string(file).expect("sources are UTF-8");
        let text = text.split("#[cfg(test)]\nmod tests {").next();
        for found in path.captures_iter(text.unwrap_or_default()) {
            let is_inner = is_nested && found[0].starts_with("use super");
            if !is_inner && from != "lib" && from != "tests" && found[1] != *from {
                uses.insert((from.clone(), found[1].to_owned()));
            }
        }
    }
    uses.retain(|(_, to)| modules.contains(to));
    // Removes what leads to nothing more, until a cycle is left or nothing.
    loop {
        let from: BTreeSet<String> = uses.iter().map(|(from, _)| from.clone()).collect();
        let before = uses.len();
        uses.retain(|(_, to)| from.contains(to));
        if uses.len() == before {
            break;
        }
    }
    assert!(
        uses.is_empty(),
        "these lead back to where they are used: {uses:?}"
    );
}

/// The files of a module that hold tests: in `tests/it`, in `src`, or in a crate, whose name may come first.
fn files_of(module: &str) -> Vec<String> {
    let path = module.replace("::", "/");
    let mut stems = vec![format!("tests/it/{path}"), format!("src/{path}")];
    for manifest in manifests() {
        let package = manifest.trim_end_matches("/Cargo.toml");
        let name = package.rsplit('/').next().unwrap_or_default();
        let tests = std::fs::read_dir(root().join(package).join("tests"));
        let tests = tests.into_iter().flatten().flatten();
        let tests = tests.map(|folder| shown(&folder.path()));
        for folder in tests.chain([format!("{package}/src")]) {
            stems.push(format!("{folder}/{path}"));
            if path == name {
                stems.push(format!("{folder}/lib"));
            } else if let Some(rest) = path.strip_prefix(&format!("{name}/")) {
                stems.push(format!("{folder}/{rest}"));
            }
        }
    }
    let places = stems.iter().flat_map(|stem| {
        let alongside = stem.strip_suffix("/tests").unwrap_or(stem);
        [
            format!("{stem}.rs"),
            format!("{stem}/mod.rs"),
            format!("{alongside}/tests.rs"),
            format!("{alongside}/mod.rs"),
            format!("{alongside}.rs"),
            format!("{alongside}/lib.rs"),
        ]
    });
    let has_tests = |text: &String| {
        text.contains("#[test]") || text.contains("proptest! {") || text.contains("entries! {")
    };
    places
        .filter_map(|place| std::fs::read_to_string(root().join(place)).ok())
        .filter(has_tests)
        .collect()
}

#[test]
fn the_threat_model_names_tests_that_there_are() {
    let page = std::fs::read_to_string(root().join("docs/threat-model.md")).expect("it is there");
    let name = Regex::new("`([^`]+)`").expect("the pattern is well-formed");
    let mut tests = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let held_by = row
            .trim_end_matches(" |")
            .rsplit(" | ")
            .next()
            .unwrap_or_default();
        for named in name.captures_iter(held_by).map(|c| c[1].to_owned()) {
            if named.starts_with("tests/") {
                assert!(root().join(&named).exists(), "{named} is not there");
                continue;
            }
            tests += 1;
            let (module, function) = named.rsplit_once("::").unwrap_or((&named, ""));
            let function = format!("fn {function}(");
            let is_test = files_of(module).iter().any(|text| text.contains(&function));
            // A module whose tests are meant, all of them.
            assert!(
                is_test || !files_of(&named).is_empty(),
                "there is no test {named}"
            );
        }
    }
    assert!(tests > 40, "the page names {tests} tests");
}

#[test]
fn every_hook_can_be_had_from_the_page_of_serve() {
    let page = read("crates/net/src/server/page.html");
    let button = Regex::new(r#"\bhook\("([a-z_]+)""#).expect("the pattern is well-formed");
    let mut there: BTreeMap<String, Option<Vec<String>>> = button
        .captures_iter(&page)
        .map(|found| (found[1].to_owned(), None))
        .collect();
    // Controls of the page itself.
    assert!(there.remove("offer_registration").is_some());
    let list = page
        .split("const ACTIONS = {\n")
        .nth(1)
        .and_then(|rest| rest.split("\n};").next());
    for row in list.expect("the page has the list").lines() {
        let (name, arguments) = row.trim().split_once(": ").expect("NAME: [\u{2026}],");
        let arguments = arguments.trim_end_matches(',');
        let arguments = serde_json::from_str(arguments).expect("a list of texts");
        let twice = there.insert(name.to_owned(), Some(arguments));
        assert!(twice.is_none(), "{name} has a button of its own");
    }
    for hook in ServiceIndex::embedded().hooks() {
        let Some(arguments) = there.remove(&hook.name) else {
            panic!(
                "crates/net/src/server/page.html: no button and no row of ACTIONS for `{}`",
                hook.name
            );
        };
        let optional = hook.optional.iter().map(|name| format!("{name}?"));
        let known = hook.required.iter().cloned().chain(optional);
        let known: Vec<String> = known
            .chain(hook.open.then(|| "\u{2026}".to_owned()))
            .collect();
        assert!(
            arguments.is_none_or(|given| given == known),
            "ACTIONS: `{}` takes {known:?}",
            hook.name
        );
    }
    assert!(
        there.is_empty(),
        "crates/net/src/server/page.html: no such hooks: {:?}",
        there.keys()
    );
}

/// The number of lines of a file that match, without its `#[cfg(test)]` items.
fn lines_outside_tests(text: &str, literal: &Regex) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let (mut at, mut found) = (0, 0);
    while at < lines.len() {
        if lines[at].trim_start().starts_with("#[cfg(test)]") {
            let is_attribute = |line: &str| line.trim_start().starts_with(['#', '/']);
            let mut item = at + 1;
            while item < lines.len() && is_attribute(lines[item]) {
                item += 1;
            }
            at = item;
            if let Some(head) = lines
                .get(item)
                .filter(|head| head.trim_end().ends_with('{'))
            {
                let is_end = |line: &&str| line.trim_start() == "}" && indent(line) == indent(head);
                let end = lines[item..].iter().position(is_end);
                at += end.unwrap_or_default();
            }
        } else if !lines[at].trim_start().starts_with("//") && literal.is_match(lines[at]) {
            found += 1;
        }
        at += 1;
    }
    found
}

#[test]
fn no_rust_outside_the_reference_names_a_service() {
    let literal = r#""(auth|chat|flow|media)(/[a-z0-9-]+)*(\[\])?""#;
    let literal = Regex::new(literal).expect("the pattern is well-formed");
    let exempt = r"(^|/)(tests?|benches|examples|sample|bad_files|reference)(\.rs|/|$)";
    let exempt = Regex::new(exempt).expect("the pattern is well-formed");
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in sources(&["src", "crates"]) {
        let count = lines_outside_tests(&text, &literal);
        if count > 0 && !exempt.is_match(&path) {
            found.insert(path, count);
        }
    }
    assert!(
        found.is_empty(),
        "literals name a service: put the fact into specs/SERVICE/service.yaml: {found:#?}"
    );
}
