//! The book under `docs/`: every page is listed, every link leads to one, every command is one.

use crate::program::root;
use clap::CommandFactory;
use regex::Regex;
use std::collections::BTreeSet;
use std::path::PathBuf;

fn page(name: &str) -> PathBuf {
    root().join("docs/src").join(name)
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(page(name)).unwrap_or_else(|e| panic!("docs/src/{name}: {e}"))
}

/// Pages that SUMMARY.md lists, in its order.
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

#[test]
fn every_command_that_is_named_is_one() {
    let known: BTreeSet<String> = conformant::cli::Cli::command()
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect();
    let named = Regex::new(r"conformant ([a-z]+)").expect("the pattern is well-formed");
    let code = Regex::new(r"(?s)```.*?```|`[^`]+`").expect("the pattern is well-formed");
    // "is", "holds" and the like are prose.
    let prose = ["run", "in"];
    let mut wrong = Vec::new();
    for name in pages().iter().filter(|name| *name != "rules.md") {
        let text = text_of(name);
        for span in code.find_iter(&text) {
            for command in named.captures_iter(span.as_str()) {
                if !known.contains(&command[1]) && !prose.contains(&&command[1]) {
                    wrong.push(format!("{name}: conformant {}", &command[1]));
                }
            }
        }
    }
    wrong.retain(|line| !line.contains("pip install"));
    assert!(wrong.is_empty(), "no such command: {wrong:#?}");
}
