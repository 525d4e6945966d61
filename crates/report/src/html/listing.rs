//! The map of rules by document, and a text list of all rules: sign, name, number of judgments, sentence.
//! The script turns the list into tables.

use super::words::thousands;
use crate::Settings;
use crate::view::{self, Effect};
use conformant_base::source::Document;
use conformant_base::text;
use conformant_record::{Level, RuleResult, RunRecord, Verdict};
use minijinja::{Value, context};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of all sentences; beyond it only names are listed.
const SENTENCES_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one sentence.
const SENTENCE_BYTES_MAX: usize = 160;
/// Repeats the sentence above.
const DITTO: &str = "″";

/// One section of a document with the indexes of its rules.
struct Section<'a> {
    title: &'a str,
    id: String,
    rules: Vec<&'a RuleResult>,
}

/// The documents and their sections in order.
pub(super) fn documents(record: &RunRecord, settings: Settings) -> Vec<Value> {
    let mut index = 0;
    let mut room = SENTENCES_BYTES_MAX;
    let mut ids = BTreeSet::new();
    let mut documents: BTreeMap<Document, BTreeSet<&str>> = BTreeMap::new();
    for rule in &record.rules {
        let services = documents.entry(rule.source.document).or_default();
        services.insert(view::service(&rule.id));
    }
    let listed = documents.into_iter().map(|(document, services)| {
        let says = services.into_iter().collect::<Vec<_>>().join(", ");
        let rules: Vec<&RuleResult> = record
            .rules
            .iter()
            .filter(|rule| rule.source.document == document)
            .collect();
        let parts = parts(&rules, settings);
        let sections: Vec<Value> = sections(document, &rules, &mut ids)
            .iter()
            .map(|section| {
                index += 1;
                self::section(section, index - 1, settings, &mut room)
            })
            .collect();
        context! { name => document.to_string(), says, parts, sections }
    });
    listed.collect()
}

/// Sections by their first cited line.
fn sections<'a>(
    document: Document,
    rules: &[&'a RuleResult],
    ids: &mut BTreeSet<String>,
) -> Vec<Section<'a>> {
    let mut by_title: BTreeMap<&str, Vec<&RuleResult>> = BTreeMap::new();
    for rule in rules {
        by_title.entry(&rule.source.section).or_default().push(rule);
    }
    let line = |rule: &RuleResult| rule.source.lines.iter().min().copied().unwrap_or(u32::MAX);
    let mut sections: Vec<Section> = by_title
        .into_iter()
        .map(|(title, mut rules)| {
            rules.sort_by(|a, b| (line(a), &a.id).cmp(&(line(b), &b.id)));
            let mut id = format!("{document}-{}", slug(title));
            while !ids.insert(id.clone()) {
                id.push('+');
            }
            Section { title, id, rules }
        })
        .collect();
    sections.sort_by_key(|section| section.rules.first().map_or(u32::MAX, |rule| line(rule)));
    sections
}

fn section(section: &Section, index: usize, settings: Settings, room: &mut usize) -> Value {
    let label: Vec<String> = words(&section.rules, settings)
        .into_iter()
        .map(|(_, word, n)| format!("{n} {word}"))
        .collect();
    let cells: Vec<&str> = section
        .rules
        .iter()
        .map(|rule| sign(rule, settings).2)
        .collect();
    context! {
        title => section.title, id => section.id.as_str(), index, cells,
        label => label.join(", "),
        count => section.rules.len(),
        lines => lines(&section.rules, settings, room),
    }
}

/// The rules of a section as text, grouped by folder; equal sentences are not repeated.
fn lines(rules: &[&RuleResult], settings: Settings, room: &mut usize) -> String {
    let mut out = String::new();
    let mut folder = "";
    let mut said = "";
    for rule in rules {
        let (above, name) = match rule.id.rfind('/') {
            Some(at) => rule.id.split_at(at + 1),
            None => ("", rule.id.as_str()),
        };
        if above != folder {
            folder = above;
            out += above;
            out.push('\n');
        }
        let should = if rule.level == Level::Must { "" } else { "s" };
        let sentence = if rule.says == said && !said.is_empty() {
            DITTO.into()
        } else {
            said = &rule.says;
            text::excerpt(&rule.says, SENTENCE_BYTES_MAX.min(*room))
        };
        *room = room.saturating_sub(sentence.len());
        out += &format!(
            "{}{name} {}{should} {sentence}\n",
            sign(rule, settings).0,
            rule.judged
        );
    }
    out
}

/// Sign, word and cell class of a rule.
fn sign(rule: &RuleResult, settings: Settings) -> (char, &'static str, &'static str) {
    if rule.verdict != Verdict::Fail {
        return sign_of(rule.verdict);
    }
    match Effect::of_rule(rule, settings) {
        Effect::Fails => ('x', "broken", "f"),
        Effect::Warns => ('!', "warning", "w"),
        Effect::Advises => ('*', "to clients", "d"),
    }
}

/// Sign, word and cell class of a verdict.
pub(super) fn sign_of(verdict: Verdict) -> (char, &'static str, &'static str) {
    match verdict {
        Verdict::Pass => ('+', "pass", ""),
        Verdict::Fail => ('x', "broken", "f"),
        Verdict::Waived => ('w', "waived", "v"),
        Verdict::NotJudged => ('?', "not judged", "j"),
        Verdict::NotApplicable => ('n', "not applicable", "a"),
        Verdict::Open => ('o', "open", "o"),
        Verdict::Inconclusive => ('i', "inconclusive", "c"),
        Verdict::Error => ('e', "internal error", "e"),
    }
}

fn words(rules: &[&RuleResult], settings: Settings) -> Vec<(char, &'static str, usize)> {
    const ORDER: &str = "+x!*wie?no";
    let mut counts: Vec<(char, &'static str, usize)> = Vec::new();
    for rule in rules {
        let (sign, word, _) = sign(rule, settings);
        match counts.iter_mut().find(|(known, _, _)| *known == sign) {
            Some((_, _, count)) => *count += 1,
            None => counts.push((sign, word, 1)),
        }
    }
    counts.sort_by_key(|(sign, _, _)| ORDER.find(*sign));
    counts
}

fn parts(rules: &[&RuleResult], settings: Settings) -> Vec<Value> {
    let class = |sign| match sign {
        '+' => "pass",
        'x' => "fail",
        '!' => "warn",
        '*' => "advice",
        'w' => "waived",
        'n' => "not-applicable",
        'o' => "open",
        'i' => "inconclusive",
        'e' => "error",
        _ => "not-judged",
    };
    words(rules, settings)
        .into_iter()
        .map(|(sign, word, n)| context! { class => class(sign), word, said => thousands(n) })
        .collect()
}

/// Letters, digits and dashes for a URL fragment.
fn slug(title: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    let mut out = String::new();
    for c in title.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
        if out.len() >= CHARACTERS_MAX {
            break;
        }
    }
    out.trim_end_matches('-').to_owned()
}
