//! Small documents with locks that agree with them and that do not, and the rulebook's own lock.

use conformant_base::source::Source;
use conformant_record::{Basis, Level};
use conformant_rulebook::service::ServiceIndex;
use conformant_rulebook::trace::{CitedDocuments, Quote, check, propose, units};
use conformant_rulebook::{Origin, Rule, Rulebook};
use proptest::prelude::*;

const FLOW: &str = "# Flow Service Specification\n\nIt flows. It ends (see below. Really) at last.\n\n\
    ### Limits\n- Size: `a. b` only.\n1. One item\n\n| Item | Value |\n|---|---|\n| Size | 50 |\n";

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("the disk is writable");
    let write = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("the disk is writable");
    };
    write("3.txt", FLOW);
    for (document, title) in ServiceIndex::embedded().documents() {
        if document.as_str() != "D3" {
            write(&format!("{document}.txt"), &format!("# {title}\n"));
        }
    }
    write("notes.txt", "# Something else\nNot a document.\n");
    dir
}

fn rulebook(rules: &[(&str, &str, &[u32])]) -> Rulebook {
    let rules = rules.iter().map(|(id, section, lines)| Rule {
        id: (*id).to_owned(),
        service: "flow".to_owned(),
        level: Level::Must,
        basis: Basis::Stated,
        source: Source {
            document: "D3".parse().expect("it is a document"),
            section: (*section).to_owned(),
            lines: lines.to_vec(),
        },
        says: String::new(),
        place: String::new(),
        origin: Origin::Either,
    });
    Rulebook {
        rules: rules.collect(),
        index: ServiceIndex::embedded().clone(),
        ..Rulebook::default()
    }
}

/// The hash of a text that is one unit.
fn hash(text: &str) -> String {
    let document = "D3".parse().expect("it is a document");
    let [unit] = &units(document, text)[..] else {
        panic!("{text:?} is not one unit");
    };
    unit.hash.clone()
}

#[test]
fn sentences_items_and_rows_are_units() {
    let places: Vec<String> = units("D3".parse().unwrap(), FLOW)
        .iter()
        .map(|u| format!("{} {}.{}", u.document, u.line, u.index))
        .collect();
    assert_eq!(places, ["D3 3.1", "D3 3.2", "D3 6.1", "D3 7.1", "D3 11.1"]);
}

#[test]
fn white_space_does_not_count() {
    assert_eq!(hash("a  b\n"), hash("a b"));
    assert_ne!(hash("a b"), hash("a c"));
    assert_eq!(hash("a").len(), 12);
}

#[test]
fn a_proposal_checks_clean_once_the_rest_is_classified() {
    let dir = folder();
    let rulebook = rulebook(&[("flow/x/size", "Limits", &[11])]);
    let lock = propose(dir.path(), &rulebook, "").unwrap();
    assert_eq!(lock.lines().count(), 5);
    assert_eq!(lock.matches("unclassified").count(), 4);
    assert!(lock.lines().last().unwrap().ends_with(" rules flow/x/size"));
    assert_eq!(check(dir.path(), &rulebook, &lock).len(), 4);
    let lock = lock
        .replacen("unclassified", "narrative", 2)
        .replace("unclassified", "definition");
    assert_eq!(check(dir.path(), &rulebook, &lock), []);
    assert_eq!(propose(dir.path(), &rulebook, &lock).unwrap(), lock);
}

#[test]
fn cited_sentences_are_quoted_if_the_lock_knows_them() {
    let dir = folder();
    let rulebook = rulebook(&[("flow/x/size", "Limits", &[11])]);
    let lock = propose(dir.path(), &rulebook, "").unwrap();
    let quoted = |lock: &str| {
        let rule = rulebook.rules.get("flow/x/size").unwrap();
        let documents = CitedDocuments::read(dir.path(), &rulebook.index, lock);
        documents.quotes(&rule.id, &rule.source).unwrap()
    };
    let line = FLOW.lines().nth(10).unwrap();
    assert_eq!(quoted(&lock)[0].text.as_deref(), Some(line));
    let other = lock.replace(&hash(line), &hash("other"));
    assert_eq!(
        quoted(&other),
        [Quote {
            line: 11,
            text: None
        }]
    );
    assert_eq!(quoted("")[0].text, None);
}

#[test]
fn every_disagreement_is_reported() {
    let dir = folder();
    let good = rulebook(&[("flow/x/size", "Limits", &[11])]);
    let lock = propose(dir.path(), &good, "")
        .unwrap()
        .replace("unclassified", "narrative");
    let has = |rulebook: &Rulebook, lock: &str, wanted: &str| {
        let problems: Vec<String> = check(dir.path(), rulebook, lock)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(
            problems.iter().any(|t| t.contains(wanted)),
            "{wanted}: {problems:?}"
        );
    };
    let without_first: Vec<&str> = lock.lines().skip(1).collect();
    has(&good, &without_first.join("\n"), "D3 3.1 is not classified");
    let first = &units("D3".parse().unwrap(), FLOW)[0].hash;
    let changed = lock.replacen(first, "000000000000", 1);
    has(&good, &changed, "D3 3.1 has changed");
    for gone in ["D3 99.1", "D4 1.1"] {
        let more = format!("{lock}{gone} 000000000000 narrative\n");
        has(&good, &more, &format!("{gone} is gone"));
    }
    has(&rulebook(&[]), &lock, "which is not in the rulebook");
    let more = rulebook(&[("flow/x/size", "Limits", &[7, 11])]);
    has(&more, &lock, "names D3 line 7, but no unit there cites it");
    let rules: [(&str, &str, &[u32]); 2] = [
        ("flow/x/size", "Limits", &[11]),
        ("flow/x/y", "Limits", &[6]),
    ];
    has(&rulebook(&rules), &lock, "no unit cites flow/x/y");
    let sizes = rulebook(&[("flow/x/size", "Sizes", &[11])]);
    has(&sizes, &lock, "stand under \"Limits\"");
    let shared = rulebook(&[("flow/x/ends", "Flow Service Specification", &[3])]);
    let lock = propose(dir.path(), &shared, "").unwrap();
    let both = "flow/x/ends is cited by D3 3.1 and by D3 3.2";
    has(&shared, &lock, both);
    let elsewhere = lock.replacen("unclassified", "rules flow/x/ends", 1);
    has(&shared, &elsewhere, "whose source does not name that line");
    let lock = propose(dir.path(), &good, "").unwrap();
    std::fs::remove_file(dir.path().join("D1.txt")).unwrap();
    has(&good, &lock, "D1 is missing");
}

#[test]
fn a_source_may_name_a_heading() {
    let dir = folder();
    let rulebook = rulebook(&[
        ("flow/x/limits", "Limits", &[5]),
        ("flow/x/items", "Limits", &[9]),
    ]);
    let lock = propose(dir.path(), &rulebook, "")
        .unwrap()
        .replace("unclassified", "narrative");
    assert_eq!(check(dir.path(), &rulebook, &lock), []);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[#|\\-. `(a)?!0-9\\n\u{e9}]{0,120}") {
        let _ = units("D1".parse().unwrap(), &text);
        let dir = folder();
        std::fs::write(dir.path().join("3.txt"), format!("# Flow Service Specification\n{text}")).unwrap();
        let _ = check(dir.path(), &rulebook(&[("flow/x/size", "Limits", &[11])]), &text);
    }
}
