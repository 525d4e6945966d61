//! The book under `docs/`: every page is listed, every link works, and its tables match the program. `book.rs` runs its
//! sessions. `BLESS=1 cargo test --test it docs` writes the tables.

#![expect(
    clippy::disallowed_methods,
    reason = "BLESS is for the tests, not for the program"
)]

use crate::program::{root, run};
use clap::{Arg, Command, CommandFactory};
use conformant_rulebook::service::ServiceIndex;
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

fn page(name: &str) -> PathBuf {
    root().join("docs/src").join(name)
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(page(name)).unwrap_or_else(|e| panic!("docs/src/{name}: {e}"))
}

/// Pages that SUMMARY.md lists, in order.
fn pages() -> Vec<String> {
    let link = Regex::new(r"\]\(([a-z-]+\.md)\)").expect("the pattern is well-formed");
    let summary = text_of("SUMMARY.md");
    link.captures_iter(&summary)
        .map(|c| c[1].to_owned())
        .collect()
}

#[test]
fn every_page_is_listed_and_every_link_leads_to_one() {
    let listed: BTreeSet<String> = pages().into_iter().collect();
    let there: BTreeSet<String> = std::fs::read_dir(page(""))
        .expect("the book is there")
        .map(|entry| {
            entry
                .expect("it can be listed")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name != "SUMMARY.md")
        .collect();
    assert_eq!(listed, there);
    let link = Regex::new(r"\]\(([^)#:]+\.md)").expect("the pattern is well-formed");
    for name in &listed {
        for target in link.captures_iter(&text_of(name)) {
            assert!(
                listed.contains(&target[1]),
                "{name} leads to {}",
                &target[1]
            );
        }
    }
}

/// Output of the program as JSON.
fn printed(arguments: &[&str]) -> Value {
    let (code, out, err) = run(&root(), arguments);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).expect("it is JSON")
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

/// Text of a table cell.
fn cell(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

/// Compares a generated page with the committed one.
fn hold(name: &str, made: &str) {
    if std::env::var_os("BLESS").is_some() && std::env::var_os("CI").is_none() {
        std::fs::write(page(name), made).expect("the disk is writable");
    }
    assert!(
        text_of(name) == made,
        "docs/src/{name} differs from the program; repair: BLESS=1 cargo test --test it docs"
    );
}

#[test]
fn the_table_of_rules_is_the_rulebook() {
    let matrix = std::fs::read(root().join("specs/kill-matrix.yaml")).expect("it is there");
    let matrix: BTreeMap<String, BTreeSet<String>> =
        conformant_rulebook::parse_file("kill-matrix.yaml", &matrix).expect("it can be read");
    let mut catches: BTreeMap<&str, &str> = BTreeMap::new();
    for (row, rules) in &matrix {
        if let Some(fault) = row.strip_prefix("fault ") {
            for rule in rules {
                catches.entry(rule).or_insert(fault);
            }
        }
    }
    let mut made = "# All rules\n\n<!-- Made by `BLESS=1 cargo test --test it docs` from the rulebook. -->\n\n\
        Each rule with its description, its source in the documents, and a fault of the reference that it detects (empty: a \
        generated one). Unspecified behavior is listed at the end.\n"
        .to_owned();
    let documents = ServiceIndex::embedded().documents();
    let documents: Vec<String> = documents
        .iter()
        .map(|(document, title)| format!("{document} is \"{title}\""))
        .collect();
    let _ = writeln!(made, "\nDocuments: {}.", documents.join(", "));
    let mut service = "";
    let rules = printed(&["list", "rules", "--format", "json"]);
    for rule in rules.as_array().expect("rules") {
        let id = text(rule, "id");
        let own = id.split('/').next().unwrap_or_default();
        if own != service {
            service = own;
            let _ = write!(
                made,
                "\n## {service}\n\n| Rule | Level | Source | Detects |\n|---|---|---|---|\n"
            );
        }
        let source = &rule["source"];
        let lines: Vec<String> = source["lines"]
            .as_array()
            .into_iter()
            .flatten()
            .map(ToString::to_string)
            .collect();
        let fault = catches.get(id).map(|f| format!("`{f}`"));
        let _ = writeln!(
            made,
            "| {}<br>`{id}` | {}, {} | {} {} | {} |",
            cell(text(rule, "says")),
            text(rule, "level"),
            text(rule, "basis"),
            text(source, "document"),
            lines.join(", "),
            fault.unwrap_or_default()
        );
    }
    made += "\n## Unspecified behavior\n\n| Question | Treatment |\n|---|---|\n";
    let points = printed(&["list", "open-points", "--format", "json"]);
    for point in points.as_array().expect("open points") {
        let _ = writeln!(
            made,
            "| {}<br>`{}` | {} |",
            cell(text(point, "says")),
            text(point, "id"),
            cell(text(point, "treatment"))
        );
    }
    hold("rules.md", &made);
}

#[test]
fn the_table_of_hooks_is_that_of_the_guide() {
    let guide = std::fs::read_to_string(root().join("specs/README.md")).expect("it is there");
    let hooks = guide.split("## Hooks").nth(1).expect("it has the section");
    let rows = hooks.lines().skip_while(|line| !line.starts_with('|'));
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 20, "{rows:?}");
    let page = text_of("hooks.md");
    let marker = "from specs/README.md. -->\n";
    let (own, _) = page.split_once(marker).expect("the table has a marker");
    hold("hooks.md", &format!("{own}{marker}\n{}\n", rows.join("\n")));
}

/// Keys of a configuration schema with their descriptions.
fn keys(schema: &Value, whole: &Value, path: &str, rows: &mut String) {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => &whole["$defs"][reference.trim_start_matches("#/$defs/")],
        None => schema,
    };
    for choice in schema["anyOf"].as_array().into_iter().flatten() {
        keys(choice, whole, path, rows);
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let path = match path {
            "" => name.clone(),
            above => format!("{above}.{name}"),
        };
        let _ = writeln!(rows, "| `{path}` | {} |", cell(text(member, "description")));
        keys(member, whole, &path, rows);
    }
    let each = &schema["additionalProperties"];
    if each.is_object() {
        keys(each, whole, &format!("{path}.NAME"), rows);
    }
}

fn flags(command: &Command, path: &str, made: &mut String, named: &mut BTreeMap<String, String>) {
    let about = command.get_about().map(ToString::to_string);
    let _ = write!(made, "\n## {path}\n\n{}\n", about.unwrap_or_default());
    let shown: Vec<&Arg> = command
        .get_arguments()
        .filter(|a| !a.is_hide_set() && a.get_id() != "help" && a.get_id() != "version")
        .collect();
    if !shown.is_empty() {
        *made += "\n| Flag | What it does |\n|---|---|\n";
    }
    for argument in shown {
        let values: Vec<String> = match argument.get_action().takes_values() {
            true => argument
                .get_value_names()
                .into_iter()
                .flatten()
                .map(ToString::to_string)
                .collect(),
            false => Vec::new(),
        };
        let flag = argument.get_long().map(|long| format!("--{long}"));
        let spelled: Vec<String> = flag.iter().cloned().chain(values).collect();
        let help = argument.get_help().map(ToString::to_string);
        let _ = writeln!(
            made,
            "| `{}` | {} |",
            cell(&spelled.join(" ")),
            cell(&help.unwrap_or_default())
        );
        if let (Some(name), Some(flag)) = (argument.get_env(), flag) {
            named.insert(name.to_string_lossy().into_owned(), flag);
        }
    }
    let shown = command.get_subcommands();
    for below in shown.filter(|c| c.get_name() != "help" && !c.is_hide_set()) {
        flags(below, &format!("{path} {}", below.get_name()), made, named);
    }
}

#[test]
fn the_tables_of_settings_are_what_reads_them() {
    let config = printed(&["schema", "config"]);
    let mut rows = String::new();
    keys(&config, &config, "", &mut rows);
    let (mut commands, mut named) = (String::new(), BTreeMap::new());
    let whole = conformant::cli::Cli::command();
    for command in whole.get_subcommands().filter(|c| !c.is_hide_set()) {
        let path = format!("conformant {}", command.get_name());
        flags(command, &path, &mut commands, &mut named);
    }
    let named: String = named
        .iter()
        .map(|(name, flag)| format!("| `{name}` | `{flag}` |\n"))
        .collect();
    let made = format!(
        "# Every key, flag and environment variable\n\n\
        <!-- Made by `BLESS=1 cargo test --test it docs` from the code that reads them. -->\n\n\
        Flags beat `CONFORMANT_*`, which beat `conformant.yaml`. `${{NAME}}` in the file reads an environment variable; \
        `conformant explain KEY` describes one key.\n\n\
        ## conformant.yaml\n\n| Key | Meaning |\n|---|---|\n{rows}\n\
        ## Environment\n\n| Variable | Sets |\n|---|---|\n{named}\
        | `CONFORMANT_SERVICE_URL` | `targets.SERVICE.url`, such as `CONFORMANT_FLOW_URL`; `USERNAME`, `PASSWORD`, `ACCOUNT_SID`, \
        `AUTH_TOKEN` and, for auth, `API_KEY` in place of `URL` likewise |\n\
        | `CONFORMANT_CONTROL_TOKEN` | the token of the control plane, for `serve` and `run --hooks` |\n\
        | `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`, `TERM`, `COLUMNS`, `FORCE_HYPERLINK` | color, width and links of the console |\n\
        | `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY` | the proxy, with `proxy: environment` |\n\
        | `SSL_CERT_FILE` | additional certificate authorities |\n{commands}"
    );
    hold("settings.md", &made);
}
