//! `documents.lock`: a line for each unit with its classification.

use super::problem::{LockFault, TraceProblem};
use super::unit::{HASH_DIGITS, Unit, UnitPlace};
use conformant_base::sorted::SortedMap;
use conformant_base::source::Document;
use std::fmt;

/// The classification of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// Rules and open points.
    Cited {
        /// Ids of rules.
        rules: Vec<String>,
        /// Ids of open points.
        open: Vec<String>,
    },
    /// Defines a word; nothing can be checked.
    Definition,
    /// Narrative or explanation; nothing can be checked.
    Narrative,
    /// Not classified yet.
    Unclassified,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cited { rules, open } => {
                let part = |word: &str, ids: &[String]| {
                    (!ids.is_empty()).then(|| format!("{word} {}", ids.join(" ")))
                };
                let parts: Vec<String> = part("rules", rules)
                    .into_iter()
                    .chain(part("open", open))
                    .collect();
                f.write_str(&parts.join(" "))
            }
            Self::Definition => f.write_str("definition"),
            Self::Narrative => f.write_str("narrative"),
            Self::Unclassified => f.write_str("unclassified"),
        }
    }
}

/// The classification of each unit, by document and hash; units with equal text agree.
pub fn classes(lock: &str) -> Result<SortedMap<(Document, String), Class>, Vec<TraceProblem>> {
    let mut problems = Vec::new();
    let entries = parse_lock(lock, &mut problems);
    if problems.is_empty() {
        Ok(entries
            .into_iter()
            .map(|(place, hash, class)| ((place.document, hash), class))
            .collect())
    } else {
        Err(problems)
    }
}

pub(super) fn cited(class: &Class) -> impl Iterator<Item = &str> {
    let (rules, open): (&[String], &[String]) = match class {
        Class::Cited { rules, open } => (rules, open),
        Class::Definition | Class::Narrative | Class::Unclassified => (&[], &[]),
    };
    rules.iter().chain(open).map(String::as_str)
}

pub(super) fn format_line(unit: &Unit, class: &Class) -> String {
    format!("{} {} {class}\n", unit.place(), unit.hash)
}

pub(super) fn parse_lock(
    lock: &str,
    problems: &mut Vec<TraceProblem>,
) -> Vec<(UnitPlace, String, Class)> {
    let mut entries = Vec::new();
    for (n, line) in lock.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match parse_line(line) {
            Ok(entry) => entries.push(entry),
            Err(source) => problems.push(TraceProblem::LockLine {
                line: n + 1,
                source,
            }),
        }
    }
    entries
}

fn parse_line(line: &str) -> Result<(UnitPlace, String, Class), LockFault> {
    let mut words = line.split_whitespace();
    let document = words.next().and_then(|word| word.parse::<Document>().ok());
    let document = document.ok_or(LockFault::Document)?;
    let (line, index) = words
        .next()
        .and_then(|place| place.split_once('.'))
        .and_then(|(line, index)| Some((line.parse().ok()?, index.parse().ok()?)))
        .ok_or(LockFault::UnitPlace)?;
    let hash = words
        .next()
        .filter(|h| h.len() == HASH_DIGITS && h.bytes().all(|b| b.is_ascii_hexdigit()))
        .ok_or(LockFault::Hash)?;
    let place = UnitPlace {
        document,
        line,
        index,
    };
    Ok((place, hash.to_owned(), parse_class(&mut words)?))
}

fn parse_class<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<Class, LockFault> {
    let rest: Vec<&str> = words.collect();
    match rest[..] {
        ["definition"] => return Ok(Class::Definition),
        ["narrative"] => return Ok(Class::Narrative),
        ["unclassified"] => return Ok(Class::Unclassified),
        _ => {}
    }
    let (mut rules, mut open) = (Vec::new(), Vec::new());
    let mut in_open = None;
    for word in rest {
        match (word, in_open) {
            ("rules", _) => in_open = Some(false),
            ("open", _) => in_open = Some(true),
            (id, Some(true)) => open.push(id.to_owned()),
            (id, Some(false)) => rules.push(id.to_owned()),
            (_, None) => return Err(LockFault::Class),
        }
    }
    if rules.is_empty() && open.is_empty() {
        return Err(LockFault::NoIds);
    }
    Ok(Class::Cited { rules, open })
}
