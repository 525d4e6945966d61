//! The map of rules by document, and a text list of all rules: sign, name, number of judgments, sentence.
//! The script turns the list into tables.

use super::words::thousands;
use crate::Settings;
use crate::tally::{Shown, State, Tally};
use crate::view;
use conformant_base::source::Document;
use conformant_base::text;
use conformant_record::{Level, RuleResult, RunRecord};
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
    let tally = Tally::of(section.rules.iter().copied(), settings);
    let label = tally
        .parts()
        .map(|(state, count)| format!("{count} {}", state.shown().word));
    let label: Vec<String> = label.collect();
    let cells = section
        .rules
        .iter()
        .map(|rule| State::of(rule, settings).shown().cell);
    let cells: Vec<&str> = cells.collect();
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
            State::of(rule, settings).shown().sign,
            rule.judged
        );
    }
    out
}

fn parts(rules: &[&RuleResult], settings: Settings) -> Vec<Value> {
    let tally = Tally::of(rules.iter().copied(), settings);
    let parts = tally.parts().map(|(state, count)| {
        let Shown { class, word, .. } = state.shown();
        context! { class, word, said => thousands(count) }
    });
    parts.collect()
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
