//! Compares documents, lock and rulebook, and reports all differences at once.

use super::documents::{Described, Documents, read};
use super::lock::{Class, cited, parse_lock};
use super::problem::TraceProblem;
use super::propose::sources;
use super::unit::UnitPlace;
use crate::Rulebook;
use conformant_base::sorted::SortedMap;
use conformant_base::source::{Document, Source};
use std::collections::BTreeSet;
use std::path::Path;

/// Checks the documents in a folder against rulebook and lock.
pub fn check(documents: &Path, rulebook: &Rulebook, lock: &str) -> Vec<TraceProblem> {
    let mut problems = Vec::new();
    let documents = read(documents, &rulebook.index, &mut problems);
    let entries = parse_lock(lock, &mut problems);
    check_units(rulebook, &documents, &entries, &mut problems);
    check_ids(rulebook, &entries, &mut problems);
    check_sentences(rulebook, &entries, &mut problems);
    check_sources(rulebook, &documents, &entries, &mut problems);
    problems
}

/// Compares rulebook and lock without the documents: every unit is
/// classified and cites existing ids.
pub fn check_lock(rulebook: &Rulebook, lock: &str) -> Vec<TraceProblem> {
    let mut problems = Vec::new();
    let entries = parse_lock(lock, &mut problems);
    for (place, _, class) in &entries {
        if *class == Class::Unclassified {
            problems.push(TraceProblem::Unclassified { place: *place });
        }
    }
    check_ids(rulebook, &entries, &mut problems);
    check_sentences(rulebook, &entries, &mut problems);
    problems
}

fn check_units(
    rulebook: &Rulebook,
    documents: &Documents,
    entries: &[(UnitPlace, String, Class)],
    problems: &mut Vec<TraceProblem>,
) {
    let by_place: SortedMap<UnitPlace, (&str, &Class)> = entries
        .iter()
        .map(|(place, hash, class)| (*place, (hash.as_str(), class)))
        .collect();
    let mut there = BTreeSet::new();
    for unit in &documents.units {
        let place = unit.place();
        there.insert(place);
        match by_place.get(&place) {
            None | Some((_, Class::Unclassified)) => {
                problems.push(TraceProblem::Unclassified { place });
            }
            Some((was, _)) if *was != unit.hash => problems.push(TraceProblem::Changed {
                place,
                was: (*was).to_owned(),
                is: unit.hash.clone(),
            }),
            Some(_) => {}
        }
    }
    let read: BTreeSet<Document> = documents.headings.keys().copied().collect();
    let known = rulebook.index.documents();
    for place in by_place.keys() {
        let is_unknown = !known.contains_key(&place.document);
        if (is_unknown || read.contains(&place.document)) && !there.contains(place) {
            problems.push(TraceProblem::Gone { place: *place });
        }
    }
}

fn check_ids(
    rulebook: &Rulebook,
    entries: &[(UnitPlace, String, Class)],
    problems: &mut Vec<TraceProblem>,
) {
    for (place, _, class) in entries {
        for id in cited(class) {
            if source_of(rulebook, id).is_none() {
                problems.push(TraceProblem::CitesMissing {
                    place: *place,
                    id: id.to_owned(),
                });
            }
        }
    }
}

/// Checks that each sentence has a rule of its own: the cited rule names its line, and no other sentence of
/// the line cites the same.
fn check_sentences(
    rulebook: &Rulebook,
    entries: &[(UnitPlace, String, Class)],
    problems: &mut Vec<TraceProblem>,
) {
    let mut first: SortedMap<(Document, u32, &str), UnitPlace> = SortedMap::new();
    for (place, _, class) in entries {
        for id in cited(class) {
            let source = source_of(rulebook, id);
            let names = |s: &Source| s.document == place.document && s.lines.contains(&place.line);
            if source.is_some_and(|source| !names(source)) {
                problems.push(TraceProblem::CitesElsewhere {
                    place: *place,
                    id: id.to_owned(),
                });
            }
            let known = first
                .entry((place.document, place.line, id))
                .or_insert(*place);
            if *known != *place {
                problems.push(TraceProblem::SharedCitation {
                    id: id.to_owned(),
                    first: *known,
                    second: *place,
                });
            }
        }
    }
}

/// The source of a rule, including rules about clients, or of an open point.
fn source_of<'r>(rulebook: &'r Rulebook, id: &str) -> Option<&'r Source> {
    let point = rulebook.open_points.get(id).map(|point| &point.source);
    point.or_else(|| rulebook.rule(id).map(|rule| &rule.source))
}

fn check_sources(
    rulebook: &Rulebook,
    documents: &Documents,
    entries: &[(UnitPlace, String, Class)],
    problems: &mut Vec<TraceProblem>,
) {
    let mut citing: SortedMap<&str, BTreeSet<(Document, u32)>> = SortedMap::new();
    for (place, _, class) in entries {
        for id in cited(class) {
            citing
                .entry(id)
                .or_default()
                .insert((place.document, place.line));
        }
    }
    for (id, (source, _)) in sources(rulebook) {
        if let Some(described) = documents.described.get(&source.document) {
            check_pointer(id, source, described, problems);
            continue;
        }
        let Some(headings) = documents.headings.get(&source.document) else {
            continue;
        };
        check_section(id, source, headings, problems);
        let cites = citing.get(id);
        let mut only_headings = true;
        for line in &source.lines {
            // A source may name the heading of a whole section or table, which has no unit.
            if is_heading(headings, *line) {
                continue;
            }
            only_headings = false;
            if !cites.is_some_and(|c| c.contains(&(source.document, *line))) {
                problems.push(TraceProblem::LineWithoutUnit {
                    id: id.to_owned(),
                    document: source.document,
                    line: *line,
                });
            }
        }
        if cites.is_none() && !only_headings {
            problems.push(TraceProblem::NeverCited { id: id.to_owned() });
        }
    }
}

/// A source in an OpenAPI document: what its pointer leads to is there, at the line that it names.
fn check_pointer(
    id: &str,
    source: &Source,
    described: &Described,
    problems: &mut Vec<TraceProblem>,
) {
    let pointer = source.section.strip_prefix('#');
    let Some(found) = pointer.and_then(|pointer| described.line_of(pointer)) else {
        problems.push(TraceProblem::PointerGone {
            id: id.to_owned(),
            document: source.document,
            pointer: source.section.clone(),
        });
        return;
    };
    let elsewhere = source.lines.iter().find(|line| **line != found);
    problems.extend(elsewhere.map(|line| TraceProblem::PointerElsewhere {
        id: id.to_owned(),
        document: source.document,
        pointer: source.section.clone(),
        line: *line,
        found,
    }));
}

fn check_section(id: &str, source: &Source, headings: &[String], problems: &mut Vec<TraceProblem>) {
    let under: Vec<&str> = source
        .lines
        .iter()
        .filter_map(|line| headings.get(index(*line)?))
        .map(|heading| {
            heading
                .trim_start_matches('#')
                .trim_start_matches('>')
                .trim()
        })
        .collect();
    if !under.contains(&source.section.as_str()) {
        problems.push(TraceProblem::WrongSection {
            id: id.to_owned(),
            document: source.document,
            section: source.section.clone(),
            found: under.first().copied().unwrap_or_default().to_owned(),
        });
    }
}

/// Whether it is the heading line itself, which is stored with its hashes.
fn is_heading(headings: &[String], line: u32) -> bool {
    index(line)
        .and_then(|n| headings.get(n))
        .is_some_and(|heading| heading.starts_with('#'))
}

fn index(line: u32) -> Option<usize> {
    usize::try_from(line).ok()?.checked_sub(1)
}
