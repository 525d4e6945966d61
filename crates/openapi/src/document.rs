//! An OpenAPI document as a tree: places, references and the problems that reading it brings.
//!
//! - Every part is a [`Part`]: a node with its JSON pointer and the line that names it.
//! - References are followed inside the document only.
//! - A problem is recorded once for each place and message.

use conformant_base::json;
use conformant_rulebook::Problem;
use conformant_yaml::{Content, Node, Span};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::Arc;

/// References that lead to references, at most.
const HOPS_MAX: usize = 32;
/// Problems that are reported, at most.
const PROBLEMS_MAX: usize = 200;

/// The document that is read.
pub(crate) struct Document {
    name: String,
    text: Arc<str>,
    root: Node,
    /// Byte offsets at which lines begin; empty where places are not known.
    lines: Vec<usize>,
    problems: RefCell<Vec<Problem>>,
}

/// A part of the document.
#[derive(Clone)]
pub(crate) struct Part<'d> {
    pub(crate) node: &'d Node,
    pub(crate) pointer: String,
    span: Span,
}

impl Document {
    /// Reads YAML or JSON. Places are unknown in JSON that is not YAML.
    pub(crate) fn read(name: &str, text: &str) -> Result<Self, Problem> {
        let shared: Arc<str> = Arc::from(text);
        let (root, has_places) = match conformant_yaml::read_large(text) {
            Ok(root) => (root, true),
            Err(fault) => match serde_json::from_str::<Value>(text) {
                Ok(value) => (Node::from_json(&value), false),
                Err(_) => {
                    let span = fault.span.unwrap_or_default();
                    return Err(Problem::new(name, &shared, span, fault.message));
                }
            },
        };
        let lines = match has_places {
            true => std::iter::once(0)
                .chain(text.match_indices('\n').map(|(at, _)| at + 1))
                .collect(),
            false => Vec::new(),
        };
        Ok(Self {
            name: name.to_owned(),
            text: shared,
            root,
            lines,
            problems: RefCell::default(),
        })
    }

    pub(crate) fn root(&self) -> Part<'_> {
        Part {
            node: &self.root,
            pointer: String::new(),
            span: Span::default(),
        }
    }

    /// A problem at a part, without recording it.
    pub(crate) fn problem_at(&self, part: &Part<'_>, message: impl Into<String>) -> Problem {
        Problem::new(&self.name, &self.text, part.span, message)
    }

    /// Records a problem at a part.
    pub(crate) fn problem(&self, part: &Part<'_>, message: impl Into<String>) {
        if self.problems.borrow().len() >= PROBLEMS_MAX {
            return;
        }
        self.record(self.problem_at(part, message));
    }

    /// Records a problem with advice.
    pub(crate) fn problem_with_help(&self, part: &Part<'_>, message: String, help: &str) {
        self.record(self.problem_at(part, message).help(help));
    }

    fn record(&self, problem: Problem) {
        let mut problems = self.problems.borrow_mut();
        let is_known = problems
            .iter()
            .any(|known| known.line == problem.line && known.message == problem.message);
        if problems.len() < PROBLEMS_MAX && !is_known {
            problems.push(problem);
        }
    }

    /// The problems so far, in the order of their places.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let mut problems = self.problems.take();
        problems.sort_by_key(|problem| problem.line);
        problems
    }

    /// The line of a part, counted from 1.
    pub(crate) fn line(&self, part: &Part<'_>) -> Option<usize> {
        (!self.lines.is_empty()).then(|| {
            self.lines
                .partition_point(|start| *start <= part.span.start)
        })
    }

    /// A part as the source of a rule: its pointer, and its line where it is known.
    pub(crate) fn source(&self, part: &Part<'_>) -> Value {
        let section = format!("#{}", part.pointer);
        match self.line(part) {
            Some(line) => json!({ "section": section, "lines": [line] }),
            None => json!({ "section": section, "lines": [] }),
        }
    }

    /// The part itself, or the one that its reference leads to.
    pub(crate) fn resolve<'d>(&'d self, part: &Part<'d>) -> Option<Part<'d>> {
        let mut current = part.clone();
        for _ in 0..HOPS_MAX {
            let Some(reference) = current.text("$ref") else {
                return Some(current);
            };
            let Some(pointer) = reference.strip_prefix('#') else {
                self.problem_with_help(
                    &current,
                    format!("the reference `{reference}` leads to another document"),
                    "copy what it leads to into this document; only local references are read",
                );
                return None;
            };
            let Some(target) = self.at(pointer) else {
                self.problem(&current, format!("`{reference}` leads to nothing"));
                return None;
            };
            current = target;
        }
        self.problem(part, "the reference leads back to itself");
        None
    }

    /// What a pointer leads to. Percent-encoded braces are common in references to paths.
    fn at(&self, pointer: &str) -> Option<Part<'_>> {
        let decoded = conformant_base::http::percent_decode(pointer);
        let mut part = self.root();
        for segment in json::segments(&decoded) {
            let item = || part.items().nth(segment.parse().ok()?);
            part = part.get(&segment).or_else(item)?;
        }
        Some(part)
    }
}

impl<'d> Part<'d> {
    /// A member of a mapping.
    pub(crate) fn get(&self, key: &str) -> Option<Part<'d>> {
        self.members()
            .find(|(name, _)| *name == key)
            .map(|(_, part)| part)
    }

    /// The text of a member.
    pub(crate) fn text(&self, key: &str) -> Option<&'d str> {
        self.node.get(key)?.text()
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        let Content::Bool(value) = self.node.content else {
            return None;
        };
        Some(value)
    }

    /// Whether a member is `true`.
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.get(key).and_then(|part| part.as_bool()) == Some(true)
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = (&'d str, Part<'d>)> + use<'d> {
        let pointer = self.pointer.clone();
        self.node.members().iter().map(move |member| {
            let part = Part {
                node: &member.value,
                pointer: json::join(&pointer, &member.key),
                span: member.key_span,
            };
            (&*member.key, part)
        })
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = Part<'d>> + use<'d> {
        let pointer = self.pointer.clone();
        let items = self.node.items().iter().enumerate();
        items.map(move |(n, node)| Part {
            node,
            pointer: format!("{pointer}/{n}"),
            span: node.span,
        })
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.node.content, Content::Map(_))
    }

    /// A text as it is, anything else as JSON.
    pub(crate) fn shown(&self) -> String {
        let text = self.node.text().map(str::to_owned);
        text.unwrap_or_else(|| self.to_json().to_string())
    }

    pub(crate) fn to_json(&self) -> Value {
        self.node.to_json()
    }
}
