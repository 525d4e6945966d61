//! From the documents to the rules: every sentence and table row is a unit, and `documents.lock`
//! says what became of each. Holds hashes of the documents, never their words.

use crate::rulebook::{Rulebook, hex};
use crate::source::{Document, Source};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// Documents beyond this size are refused.
const BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Hexadecimal digits of a unit's hash.
const HASH_DIGITS: usize = 12;

/// First lines by which the documents are recognised.
const TITLES: [(Document, &str); 3] = [
    (
        Document::D1,
        "# Message Events and Second-Factor Authentication Service",
    ),
    (Document::D2, "# Chat Service Specification"),
    (Document::D3, "# Flow Service Specification"),
];

/// One sentence or table row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The document.
    pub document: Document,
    /// Its line, counted from 1.
    pub line: u32,
    /// Which of the line's units, counted from 1.
    pub index: usize,
    /// First digits of the SHA-256 of its text, white space normalised.
    pub hash: String,
}

impl Unit {
    fn place(&self) -> Place {
        Place {
            document: self.document,
            line: self.line,
            index: self.index,
        }
    }
}

/// Where a unit stands: `D3 84.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The document.
    pub document: Document,
    /// Its line, counted from 1.
    pub line: u32,
    /// Which of the line's units, counted from 1.
    pub index: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}.{}", self.document, self.line, self.index)
    }
}

/// What became of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// Rules, and open points beside them.
    Cited {
        /// Ids of rules.
        rules: Vec<String>,
        /// Ids of open points.
        open: Vec<String>,
    },
    /// Says what a word means; nothing can be checked.
    Definition,
    /// Tells or explains; nothing can be checked.
    Narrative,
    /// Nobody has decided yet.
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

/// One thing that does not agree between documents, lock and rulebook.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceProblem {
    /// A document is not in the folder.
    #[error("{document} is not there: no file begins with `{title}`")]
    DocumentMissing {
        /// The document.
        document: Document,
        /// Its first line.
        title: &'static str,
    },
    /// A file or folder could not be read.
    #[error("{path} cannot be read: {reason}")]
    Unreadable {
        /// The path.
        path: String,
        /// Why.
        reason: String,
    },
    /// A line of the lock is not one.
    #[error("documents.lock:{line}: {reason}")]
    LockLine {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A unit that the lock does not classify.
    #[error("{place} is not classified")]
    Unclassified {
        /// The unit.
        place: Place,
    },
    /// A unit whose words changed.
    #[error("{place} has changed: {was} became {is}")]
    Changed {
        /// The unit.
        place: Place,
        /// Hash in the lock.
        was: String,
        /// Hash of the document.
        is: String,
    },
    /// A unit of the lock that no document has any more.
    #[error("{place} is gone")]
    Gone {
        /// The unit.
        place: Place,
    },
    /// A unit cites a rule or open point that is not in the rulebook.
    #[error("{place} cites {id}, which is not in the rulebook")]
    CitesMissing {
        /// The unit.
        place: Place,
        /// The id.
        id: String,
    },
    /// A rule names a line whose units do not cite it.
    #[error("{id} names {document} line {line}, where no unit cites it")]
    LineWithoutUnit {
        /// The rule or open point.
        id: String,
        /// The document.
        document: Document,
        /// The line.
        line: u32,
    },
    /// A rule that no unit cites.
    #[error("{id} is cited by no unit")]
    NeverCited {
        /// The rule or open point.
        id: String,
    },
    /// None of the lines stands under the heading that the source names.
    #[error(
        "{id} names the section \"{section}\" of {document}; its lines stand under \"{found}\""
    )]
    WrongSection {
        /// The rule or open point.
        id: String,
        /// The document.
        document: Document,
        /// The heading named.
        section: String,
        /// The heading of its first line.
        found: String,
    },
    /// A unit cites something whose source does not name its line.
    #[error("{place} cites {id}, whose source does not name that line")]
    CitesElsewhere {
        /// The unit.
        place: Place,
        /// The id.
        id: String,
    },
    /// Several sentences of one line share what is cited, so that one may hide beside another.
    #[error(
        "{id} is cited by {first} and by {second}: in documents.lock leave it at the sentence that it rests on"
    )]
    NotToldApart {
        /// The id.
        id: String,
        /// The first sentence.
        first: Place,
        /// Another one of the same line.
        second: Place,
    },
}

/// Units and headings of the documents.
#[derive(Debug, Default)]
struct Documents {
    units: Vec<Unit>,
    /// By document, for each line the heading it stands under.
    headings: BTreeMap<Document, Vec<String>>,
}

/// Checks the documents in a folder against rulebook and lock.
pub fn check(documents: &Path, rulebook: &Rulebook, lock: &str) -> Vec<TraceProblem> {
    let mut problems = Vec::new();
    let documents = read(documents, &mut problems);
    let entries = parse_lock(lock, &mut problems);
    check_units(&documents, &entries, &mut problems);
    check_ids(rulebook, &entries, &mut problems);
    check_sentences(rulebook, &entries, &mut problems);
    check_sources(rulebook, &documents, &entries, &mut problems);
    problems
}

/// Each sentence has what judges it for itself: what it cites names its line, and no other sentence of
/// the line cites the same.
fn check_sentences(
    rulebook: &Rulebook,
    entries: &[(Place, String, Class)],
    problems: &mut Vec<TraceProblem>,
) {
    let mut first: BTreeMap<(Document, u32, &str), Place> = BTreeMap::new();
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
                problems.push(TraceProblem::NotToldApart {
                    id: id.to_owned(),
                    first: *known,
                    second: *place,
                });
            }
        }
    }
}

/// Where a rule, one about clients among them, or an open point is stated.
fn source_of<'r>(rulebook: &'r Rulebook, id: &str) -> Option<&'r Source> {
    let point = rulebook.open_points.get(id).map(|point| &point.source);
    point.or_else(|| rulebook.rule(id).map(|rule| &rule.source))
}

/// What rulebook and lock say of each other, without the documents at hand: every unit is
/// classified and cites what exists.
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

/// Writes the lock anew: rules and open points from their sources, definitions and narrative as
/// the old lock has them, everything else unclassified.
pub fn propose(
    documents: &Path,
    rulebook: &Rulebook,
    lock: &str,
) -> Result<String, Vec<TraceProblem>> {
    let mut problems = Vec::new();
    let documents = read(documents, &mut problems);
    let old = parse_lock(lock, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let sources = sources(rulebook);
    let mut text = String::new();
    for unit in &documents.units {
        let class = propose_class(unit, &old, &sources, rulebook);
        text.push_str(&format_line(unit, &class));
    }
    Ok(text)
}

/// The units of the documents in a folder, one revision of them; a document may be missing.
pub fn revision(documents: &Path) -> Result<Vec<Unit>, Vec<TraceProblem>> {
    let mut problems = Vec::new();
    let units = read(documents, &mut problems).units;
    let is_missing = |p: &TraceProblem| matches!(p, TraceProblem::DocumentMissing { .. });
    if units.is_empty() || !problems.iter().all(is_missing) {
        return Err(problems);
    }
    Ok(units)
}

/// What a lock says became of each unit, by document and hash; units of the same words agree.
pub fn classes(lock: &str) -> Result<BTreeMap<(Document, String), Class>, Vec<TraceProblem>> {
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

fn format_line(unit: &Unit, class: &Class) -> String {
    format!("{} {} {class}\n", unit.place(), unit.hash)
}

/// Rules and open points by id.
fn sources(rulebook: &Rulebook) -> BTreeMap<&str, (&Source, bool)> {
    let open = rulebook.open_points.iter();
    let open = open.map(|(id, point)| (id.as_str(), (&point.source, true)));
    let rules = rulebook.rules.iter();
    let rules = rules
        .filter(|(id, _)| !rulebook.open_points.contains_key(*id))
        .map(|(id, rule)| (id.as_str(), (&rule.source, false)));
    rules.chain(open).collect()
}

fn propose_class(
    unit: &Unit,
    old: &[(Place, String, Class)],
    sources: &BTreeMap<&str, (&Source, bool)>,
    rulebook: &Rulebook,
) -> Class {
    let same =
        |entry: &&(Place, String, Class)| entry.0.document == unit.document && entry.1 == unit.hash;
    let known = old
        .iter()
        .filter(same)
        .min_by_key(|(place, _, _)| place.line.abs_diff(unit.line));
    if let Some((_, _, class @ (Class::Definition | Class::Narrative))) = known {
        return class.clone();
    }
    let names =
        |source: &Source| source.document == unit.document && source.lines.contains(&unit.line);
    // Of a line with several sentences, the lock may have settled which one a rule rests on.
    let settled: BTreeSet<&str> = old
        .iter()
        .filter(|(place, _, _)| place.document == unit.document && place.line == unit.line)
        .flat_map(|(_, _, class)| cited(class))
        .collect();
    let kept: BTreeSet<&str> = known
        .iter()
        .flat_map(|(_, _, class)| cited(class))
        .collect();
    let (mut rules, mut open) = (Vec::new(), Vec::new());
    // Rules about clients rest on what others rest on, too: they are named where somebody put them.
    let clients = kept.iter().filter_map(|id| rulebook.requests.get(*id));
    rules.extend(clients.filter(|r| names(&r.source)).map(|r| r.id.clone()));
    for (id, (source, is_open)) in sources {
        if names(source) && (kept.contains(id) || !settled.contains(id)) {
            if *is_open {
                open.push((*id).to_owned());
            } else {
                rules.push((*id).to_owned());
            }
        }
    }
    rules.sort();
    if rules.is_empty() && open.is_empty() {
        Class::Unclassified
    } else {
        Class::Cited { rules, open }
    }
}

fn cited(class: &Class) -> impl Iterator<Item = &str> {
    let (rules, open): (&[String], &[String]) = match class {
        Class::Cited { rules, open } => (rules, open),
        Class::Definition | Class::Narrative | Class::Unclassified => (&[], &[]),
    };
    rules.iter().chain(open).map(String::as_str)
}

fn check_units(
    documents: &Documents,
    entries: &[(Place, String, Class)],
    problems: &mut Vec<TraceProblem>,
) {
    let by_place: BTreeMap<Place, (&str, &Class)> = entries
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
    for place in by_place.keys() {
        if read.contains(&place.document) && !there.contains(place) {
            problems.push(TraceProblem::Gone { place: *place });
        }
    }
}

fn check_ids(
    rulebook: &Rulebook,
    entries: &[(Place, String, Class)],
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

fn check_sources(
    rulebook: &Rulebook,
    documents: &Documents,
    entries: &[(Place, String, Class)],
    problems: &mut Vec<TraceProblem>,
) {
    let mut citing: BTreeMap<&str, BTreeSet<(Document, u32)>> = BTreeMap::new();
    for (place, _, class) in entries {
        for id in cited(class) {
            citing
                .entry(id)
                .or_default()
                .insert((place.document, place.line));
        }
    }
    for (id, (source, _)) in sources(rulebook) {
        let Some(headings) = documents.headings.get(&source.document) else {
            continue;
        };
        check_section(id, source, headings, problems);
        let cites = citing.get(id);
        let mut only_headings = true;
        for line in &source.lines {
            // A source may name the heading of a whole section or table: no unit stands there.
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

fn index(line: u32) -> Option<usize> {
    usize::try_from(line).ok()?.checked_sub(1)
}

/// True for the heading line itself, which is kept with its hashes.
fn is_heading(headings: &[String], line: u32) -> bool {
    index(line)
        .and_then(|n| headings.get(n))
        .is_some_and(|heading| heading.starts_with('#'))
}

fn read(folder: &Path, problems: &mut Vec<TraceProblem>) -> Documents {
    let mut documents = Documents::default();
    let entries = walkdir::WalkDir::new(folder)
        .max_depth(2)
        .sort_by_file_name();
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                problems.push(TraceProblem::Unreadable {
                    path: folder.display().to_string(),
                    reason: error.to_string(),
                });
                continue;
            }
        };
        let small = entry.metadata().is_ok_and(|m| m.len() <= BYTES_MAX);
        if !entry.file_type().is_file() || !small {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(entry.path()) else {
            continue;
        };
        if let Some(document) = recognise(&text)
            && !documents.headings.contains_key(&document)
        {
            documents.headings.insert(document, headings(&text));
            documents.units.extend(units(document, &text));
        }
    }
    for (document, title) in TITLES {
        if !documents.headings.contains_key(&document) {
            problems.push(TraceProblem::DocumentMissing { document, title });
        }
    }
    documents.units.sort_by_key(Unit::place);
    documents
}

fn recognise(text: &str) -> Option<Document> {
    let first = text.lines().next()?.trim();
    let known = TITLES.iter().find(|(_, title)| first == *title)?;
    Some(known.0)
}

/// For each line the heading it stands under; a heading's own line keeps its hashes, and a table's
/// head counts as one, marked with `#>`.
fn headings(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut current = String::new();
    let mut found = Vec::with_capacity(lines.len());
    for (n, line) in lines.iter().enumerate() {
        if line.starts_with('#') {
            line.trim_start_matches('#').trim().clone_into(&mut current);
            found.push((*line).to_owned());
        } else if is_row(line) && lines.get(n + 1).is_some_and(|next| is_separator(next)) {
            found.push(format!("#> {current}"));
        } else {
            found.push(current.clone());
        }
    }
    found
}

/// The units of a document in order.
pub fn units(document: Document, text: &str) -> Vec<Unit> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let is_head = lines.get(n + 1).is_some_and(|next| is_separator(next));
        let pieces = if line.trim().is_empty() || line.starts_with('#') || is_separator(line) {
            Vec::new()
        } else if is_row(line) {
            if is_head { Vec::new() } else { vec![*line] }
        } else {
            sentences(item(line))
        };
        for (index, piece) in pieces.into_iter().enumerate() {
            found.push(Unit {
                document,
                line: u32::try_from(n + 1).unwrap_or(u32::MAX),
                index: index + 1,
                hash: hash(piece),
            });
        }
    }
    found
}

fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

fn is_separator(line: &str) -> bool {
    is_row(line) && line.contains('-') && line.trim().chars().all(|c| "|-: ".contains(c))
}

/// A list item without its marker.
fn item(line: &str) -> &str {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return rest;
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    match line[digits..].strip_prefix(". ") {
        Some(rest) if digits > 0 => rest,
        Some(_) | None => line,
    }
}

/// Splits at `.`, `?` and `!` before white space, not inside code or brackets.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let (mut in_code, mut depth) = (false, 0_usize);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '`' => in_code = !in_code,
            '(' | '[' if !in_code => depth += 1,
            ')' | ']' if !in_code => depth = depth.saturating_sub(1),
            '.' | '?' | '!'
                if !in_code
                    && depth == 0
                    && chars.peek().is_none_or(|(_, next)| next.is_whitespace()) =>
            {
                found.push(text[start..=at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let rest = text[start..].trim();
    if !rest.is_empty() {
        found.push(rest);
    }
    found
}

fn hash(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut digits = hex(&Sha256::digest(words.join(" ").as_bytes()));
    digits.truncate(HASH_DIGITS);
    digits
}

fn parse_lock(lock: &str, problems: &mut Vec<TraceProblem>) -> Vec<(Place, String, Class)> {
    let mut entries = Vec::new();
    for (n, line) in lock.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match parse_line(line) {
            Ok(entry) => entries.push(entry),
            Err(reason) => problems.push(TraceProblem::LockLine {
                line: n + 1,
                reason: reason.to_owned(),
            }),
        }
    }
    entries
}

fn parse_line(line: &str) -> Result<(Place, String, Class), &'static str> {
    let mut words = line.split_whitespace();
    let document = match words.next() {
        Some("D1") => Document::D1,
        Some("D2") => Document::D2,
        Some("D3") => Document::D3,
        Some(_) | None => return Err("expected D1, D2 or D3"),
    };
    let (line, index) = words
        .next()
        .and_then(|place| place.split_once('.'))
        .and_then(|(line, index)| Some((line.parse().ok()?, index.parse().ok()?)))
        .ok_or("expected a place such as `84.1`")?;
    let hash = words
        .next()
        .filter(|h| h.len() == HASH_DIGITS && h.bytes().all(|b| b.is_ascii_hexdigit()))
        .ok_or("expected twelve hexadecimal digits")?;
    let place = Place {
        document,
        line,
        index,
    };
    Ok((place, hash.to_owned(), parse_class(&mut words)?))
}

fn parse_class<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<Class, &'static str> {
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
            (_, None) => return Err("expected rules, open, definition, narrative or unclassified"),
        }
    }
    if rules.is_empty() && open.is_empty() {
        return Err("`rules` and `open` are followed by ids");
    }
    Ok(Class::Cited { rules, open })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rulebook::{Edition, Origin, Rule};
    use crate::verdict::{Basis, Level};
    use proptest::prelude::*;

    const FLOW: &str = "# Flow Service Specification\n\nIt flows. It ends (see below. Really) at last.\n\n\
        ### Limits\n- Size: `a. b` only.\n1. One thing\n\n| Item | Value |\n|---|---|\n| Size | 50 |\n";

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("3.txt"), FLOW).unwrap();
        for (document, title) in &TITLES[..2] {
            let path = dir.path().join(format!("{document}.txt"));
            std::fs::write(path, format!("{title}\n")).unwrap();
        }
        std::fs::write(
            dir.path().join("notes.txt"),
            "# Something else\nNot a document.\n",
        )
        .unwrap();
        dir
    }

    fn rulebook(rules: &[(&str, &str, &[u32])]) -> Rulebook {
        let rules = rules.iter().map(|(id, section, lines)| Rule {
            id: (*id).to_owned(),
            service: "flow".to_owned(),
            level: Level::Must,
            basis: Basis::Stated,
            source: Source {
                document: Document::D3,
                section: (*section).to_owned(),
                lines: lines.to_vec(),
            },
            says: String::new(),
            place: String::new(),
            origin: Origin::Either,
        });
        Rulebook {
            edition: Edition::Embedded,
            rules: rules.collect(),
            requests: BTreeMap::new(),
            services: BTreeMap::new(),
            open_points: BTreeMap::new(),
            kinds: BTreeMap::new(),
            event_types: BTreeMap::new(),
        }
    }

    #[test]
    fn sentences_items_and_rows_are_units() {
        let places: Vec<String> = units(Document::D3, FLOW)
            .iter()
            .map(|u| u.place().to_string())
            .collect();
        assert_eq!(places, ["D3 3.1", "D3 3.2", "D3 6.1", "D3 7.1", "D3 11.1"]);
    }

    #[test]
    fn white_space_does_not_count() {
        assert_eq!(hash("a  b\n"), hash("a b"));
        assert_ne!(hash("a b"), hash("a c"));
        assert_eq!(hash("a").len(), HASH_DIGITS);
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
    fn every_disagreement_is_told() {
        let dir = folder();
        let good = rulebook(&[("flow/x/size", "Limits", &[11])]);
        let lock = propose(dir.path(), &good, "")
            .unwrap()
            .replace("unclassified", "narrative");
        let has = |rulebook: &Rulebook, lock: &str, wanted: &str| {
            let told: Vec<String> = check(dir.path(), rulebook, lock)
                .iter()
                .map(ToString::to_string)
                .collect();
            assert!(
                told.iter().any(|t| t.contains(wanted)),
                "{wanted}: {told:?}"
            );
        };
        has(
            &good,
            &lock.lines().skip(1).collect::<Vec<_>>().join("\n"),
            "D3 3.1 is not classified",
        );
        has(
            &good,
            &lock.replacen(&units(Document::D3, FLOW)[0].hash, "000000000000", 1),
            "D3 3.1 has changed",
        );
        has(
            &good,
            &format!("{lock}D3 99.1 000000000000 narrative\n"),
            "D3 99.1 is gone",
        );
        has(
            &good,
            &format!("{lock}D4 1.1 000000000000 narrative\n"),
            "documents.lock:6",
        );
        has(&rulebook(&[]), &lock, "which is not in the rulebook");
        let more = rulebook(&[("flow/x/size", "Limits", &[7, 11])]);
        has(&more, &lock, "names D3 line 7, where no unit cites it");
        let other = rulebook(&[
            ("flow/x/size", "Limits", &[11]),
            ("flow/x/y", "Limits", &[6]),
        ]);
        has(&other, &lock, "flow/x/y is cited by no unit");
        has(
            &rulebook(&[("flow/x/size", "Sizes", &[11])]),
            &lock,
            "stand under \"Limits\"",
        );
        let shared = rulebook(&[("flow/x/ends", "Flow Service Specification", &[3])]);
        let lock = propose(dir.path(), &shared, "").unwrap();
        has(
            &shared,
            &lock,
            "flow/x/ends is cited by D3 3.1 and by D3 3.2",
        );
        let elsewhere = lock.replacen("unclassified", "rules flow/x/ends", 1);
        has(&shared, &elsewhere, "whose source does not name that line");
        let lock = propose(dir.path(), &good, "").unwrap();
        std::fs::remove_file(dir.path().join("D1.txt")).unwrap();
        has(&good, &lock, "D1 is not there");
    }

    #[test]
    fn the_lock_and_the_rulebook_agree() {
        let specs = Path::new("specs");
        let rulebook = Rulebook::from_dir(specs).unwrap_or_else(|problems| panic!("{problems}"));
        let lock = std::fs::read_to_string(specs.join("documents.lock")).unwrap();
        let problems = check_lock(&rulebook, &lock);
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(
            told.is_empty(),
            "write documents.lock anew (trace::propose): {told:#?}"
        );
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
            let _ = units(Document::D1, &text);
            let _ = headings(&text);
            let _ = parse_lock(&text, &mut Vec::new());
        }
    }
}
