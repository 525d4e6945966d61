//! The fast path and the full validator agree on fixtures, mutations and random documents.

use super::validate::{Scratch, Tokens};
use super::*;
use conformant_fixtures::{Plan, subjects};
use conformant_judge::evidence::{Evidence, Payload};
use conformant_judge::judge;
use conformant_judge::load::shared as of_specs;
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

struct World {
    rulebook: &'static Rulebook,
    schemas: Schemas,
    /// Types with a fast path, with some documents.
    kinds: Vec<(String, FastPath, Vec<String>)>,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let rulebook = of_specs();
        let mut kinds = Vec::new();
        for subject in subjects(rulebook) {
            let Some(fast_path) = FastPath::of(rulebook, &subject.name) else {
                continue;
            };
            let Ok(plan) = Plan::new(&subject) else {
                continue;
            };
            let mut documents = plan.documents(1);
            let texts = (0..20)
                .map(|n| documents.value(n).unwrap().to_string())
                .collect();
            kinds.push((subject.name.clone(), fast_path, texts));
        }
        World {
            rulebook,
            schemas: Schemas::default(),
            kinds,
        }
    })
}

/// Result of the full validator: none for a finding, otherwise the number of judgments by rule.
fn full(kind: &str, text: &str) -> Option<BTreeMap<String, usize>> {
    let world = world();
    let parsed =
        conformant_base::json::parse(text.as_bytes(), conformant_base::json::Limits::default())
            .ok()?;
    let payloads = vec![Payload {
        kind: kind.to_owned(),
        value: Arc::new(parsed.value),
        notes: parsed.notes,
        step: 0,
    }];
    let judgment = judge(
        world.rulebook,
        &world.schemas,
        &Evidence {
            payloads,
            ..Evidence::default()
        },
    );
    let judged = judgment
        .tallies
        .into_iter()
        .filter(|(_, tally)| tally.judged() > 0);
    judgment
        .findings
        .is_empty()
        .then(|| judged.map(|(rule, tally)| (rule, tally.judged())).collect())
}

/// Whether it passes the fast path; then both agree.
fn agrees(kind: &str, fast_path: &FastPath, text: &str) -> bool {
    let mut validator = FastValidator::new(fast_path);
    let passes = validator.line(text.as_bytes()) == Some(text.len());
    if passes {
        let (_, judgment) = validator.finish();
        let counted = judgment
            .tallies
            .into_iter()
            .map(|(rule, tally)| (rule, tally.judged()))
            .collect();
        assert_eq!(full(kind, text), Some(counted), "{kind}: {text}");
    }
    passes
}

#[test]
fn every_event_has_a_fast_path_that_passes_valid_documents() {
    let events = world()
        .kinds
        .iter()
        .filter(|(kind, ..)| kind.starts_with("events/"));
    assert_eq!(
        events.clone().count(),
        world()
            .rulebook
            .kinds
            .keys()
            .filter(|k| k.starts_with("events/"))
            .count()
    );
    for (kind, fast_path, texts) in events {
        let passed = texts
            .iter()
            .filter(|text| agrees(kind, fast_path, text))
            .count();
        assert!(
            passed > texts.len() / 2,
            "{kind}: {passed} of {}",
            texts.len()
        );
    }
}

#[test]
fn both_paths_agree_on_fixtures_of_every_type() {
    for (kind, fast_path, texts) in &world().kinds {
        for text in texts {
            agrees(kind, fast_path, text);
            let spread = text.replace(':', " : ").replace(',', " ,\r\t ");
            agrees(kind, fast_path, &spread);
        }
    }
}

#[test]
fn undecided_documents_go_to_the_full_validator() {
    let (kind, fast_path, _) = world()
        .kinds
        .iter()
        .find(|(kind, ..)| kind == "events/MessageSent/4")
        .unwrap();
    assert!(
        agrees(kind, fast_path, "{}")
            && agrees(kind, fast_path, " {\"tags\": {\"a\": \"\\n\u{e9}\"}} ")
    );
    for text in [
        "",
        "null",
        "[]",
        "{",
        "{}x",
        "{\"x\":1}",
        "{\"attempt\":null}",
        "{\"attempt\":1}",
        "{\"attempt\":\"1\",}",
        "{\"attempt\":\"1\",\"attempt\":\"1\"}",
        "{\"attempt\" \"1\"}",
        "{\"attempt\":\"\\u0031\"}",
        "{\"attempt\":\"\\x\"}",
        "{\"attempt\":\"\t\"}",
        "{\"from\":{\"channel\":\"SMS\"}}",
        "{\"tags\":{\"a\":\"\",\"a\":\"\"}}",
        "{\"tags\":{\"a\":1}}",
        "{\"tags\":{\"$serde_json::private::Number\":\"1\"}}",
        "{\"attempt\":\"1\"",
    ] {
        assert!(!agrees(kind, fast_path, text), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn both_paths_agree_on_mutated_documents(
        kind in any::<prop::sample::Index>(),
        document in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        with in prop::sample::select(vec![
            "", "\"", "\\", "null", "1", "-0", "01", "1.0", "1e5", "true", "{}", "[]", "{", "}", ",", ":", "\"\"", "\"x\":1,", "\u{e9}", "\u{0}", " ",
        ]),
        removed in 0..6_usize,
    ) {
        let (kind, fast_path, texts) = kind.get(&world().kinds);
        let text = document.get(texts);
        let mut changed: Vec<char> = text.chars().collect();
        let at = at.index(changed.len());
        let end = (at + removed).min(changed.len());
        changed.splice(at..end, with.chars());
        agrees(kind, fast_path, &changed.into_iter().collect::<String>());
    }

    #[test]
    fn both_paths_agree_on_random_documents(
        members in prop::collection::vec((
            prop::sample::select(vec!["operation_id", "message_id", "attempt", "downstream_id", "from", "to", "tags", "id", "channel", "x"]),
            prop::sample::select(vec!["\"sms\"", "\"\"", "null", "1", "{}", "{\"id\":\"a\",\"channel\":\"rcs\"}", "{\"a\":\"b\"}", "{\"a\":null}", "[]", "\"\\\\\""]),
        ), 0..6),
    ) {
        let (kind, fast_path, _) = world().kinds.iter().find(|(kind, ..)| kind == "events/MessageSent/4").unwrap();
        let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        agrees(kind, fast_path, &format!("{{{}}}", members.join(",")));
    }

    #[test]
    fn marks_are_found_wherever_they_stand(text in "[ -~\u{e9}\u{4e00}\t]{0,40}") {
        let mut scratch = Scratch::default();
        let tokens = Tokens::new(text.as_bytes(), &mut scratch);
        let found = tokens.next_mark(0).map(|(at, _)| at);
        let is_mark = |b: u8| matches!(b, b'"' | b'\\') || b < b' ' || !b.is_ascii();
        prop_assert_eq!(found, text.bytes().position(is_mark));
    }
}

#[test]
fn simple_patterns_match_like_the_regex_engine() {
    let pattern = "^FN[0-9a-fA-F]{32}$";
    let quick = Pattern::new(pattern).unwrap();
    assert!(matches!(quick, Pattern::Run { .. }));
    let slow = regex::Regex::new(pattern).unwrap();
    for text in [
        format!("FN{}", "0aF".repeat(10)),
        format!("FN{}", "0a".repeat(16)),
        format!("FN{}g", "0a".repeat(15)),
        String::new(),
        format!("FX{}", "0a".repeat(16)),
        format!("FN{}\n", "0a".repeat(16)),
        format!("FN{}\u{e9}", "0a".repeat(15)),
    ] {
        assert_eq!(quick.fits(text.as_bytes()), slow.is_match(&text), "{text}");
    }
}
