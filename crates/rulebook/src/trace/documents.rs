//! The documents in a folder, recognized by the first lines that `service.yaml` declares: their units, and the heading of each line.

use super::problem::TraceProblem;
use super::unit::{Unit, is_row, is_separator, units};
use crate::service::ServiceIndex;
use conformant_base::json;
use conformant_base::sorted::SortedMap;
use conformant_base::source::Document;
use conformant_yaml::Node;
use std::path::Path;

/// Larger documents are rejected.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Units and headings of the documents.
#[derive(Debug, Default)]
pub(super) struct Documents {
    pub(super) units: Vec<Unit>,
    /// By document, the heading of each line.
    pub(super) headings: SortedMap<Document, Vec<String>>,
    /// OpenAPI documents, whose sources are pointers.
    pub(super) described: SortedMap<Document, Described>,
}

/// An OpenAPI document.
#[derive(Debug)]
pub(super) struct Described {
    root: Node,
    text: String,
}

impl Described {
    /// The document of one of these titles.
    fn read(text: String, titles: &SortedMap<Document, String>) -> Option<(Document, Self)> {
        let root = conformant_yaml::read_large(&text).ok()?;
        root.get("openapi")?;
        let title = root.get("info")?.get("title")?.text()?.lines().next()?;
        let title = format!("# {title}");
        let (document, _) = titles.iter().find(|(_, known)| **known == title)?;
        Some((*document, Self { root, text }))
    }

    /// The line of what a pointer leads to, counted from 1.
    pub(super) fn line_of(&self, pointer: &str) -> Option<u32> {
        let (mut node, mut start) = (&self.root, 0);
        for segment in json::segments(pointer) {
            let member = node.members().iter().find(|member| *member.key == segment);
            let item = || node.items().get(segment.parse::<usize>().ok()?);
            (node, start) = match member {
                Some(member) => (&member.value, member.key_span.start),
                None => item().map(|item| (item, item.span.start))?,
            };
        }
        let before = self.text.as_bytes().get(..start)?;
        u32::try_from(memchr::memchr_iter(b'\n', before).count() + 1).ok()
    }
}

/// The units of one revision of the documents in a folder; a document may be missing.
pub fn revision(documents: &Path, index: &ServiceIndex) -> Result<Vec<Unit>, Vec<TraceProblem>> {
    let mut problems = Vec::new();
    let units = read(documents, index, &mut problems).units;
    let is_missing = |p: &TraceProblem| matches!(p, TraceProblem::DocumentMissing { .. });
    if units.is_empty() || !problems.iter().all(is_missing) {
        return Err(problems);
    }
    Ok(units)
}

pub(super) fn read(
    folder: &Path,
    index: &ServiceIndex,
    problems: &mut Vec<TraceProblem>,
) -> Documents {
    let titles: SortedMap<Document, String> = index
        .documents()
        .into_iter()
        .map(|(document, title)| (document, format!("# {title}")))
        .collect();
    let mut documents = Documents::default();
    let entries = walkdir::WalkDir::new(folder)
        .max_depth(2)
        .sort_by_file_name();
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                problems.push(TraceProblem::Unreadable {
                    path: error.path().unwrap_or(folder).display().to_string(),
                    reason: error
                        .io_error()
                        .map_or_else(|| error.to_string(), ToString::to_string),
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
        let ending = entry.path().extension().and_then(|e| e.to_str());
        if matches!(ending, Some("yaml" | "yml" | "json")) {
            documents.described.extend(Described::read(text, &titles));
            continue;
        }
        if let Some(document) = recognize(&text, &titles)
            && !documents.headings.contains_key(&document)
        {
            documents.headings.insert(document, headings(&text));
            documents.units.extend(units(document, &text));
        }
    }
    for (document, title) in titles {
        let is_described = documents.described.contains_key(&document);
        if !documents.headings.contains_key(&document) && !is_described {
            problems.push(TraceProblem::DocumentMissing { document, title });
        }
    }
    documents.units.sort_by_key(Unit::place);
    documents
}

fn recognize(text: &str, titles: &SortedMap<Document, String>) -> Option<Document> {
    let first = text.lines().next()?.trim();
    let known = titles.iter().find(|(_, title)| first == *title)?;
    Some(*known.0)
}

/// The heading of each line. The line of a heading keeps its hashes; the head of a table
/// counts as a heading, marked with `#>`.
pub(super) fn headings(text: &str) -> Vec<String> {
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
