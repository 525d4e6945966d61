//! Shared state of the loading steps: files as trees, and the rules and problems so far.

use super::model::{Origin, Rule, is_one_event};
use super::problems::{Problem, Problems, suggest};
use super::rules::SourceRef;
use super::service::ServiceIndex;
use super::sources;
use conformant_base::sorted::SortedMap;
use conformant_base::source::Source;
use conformant_record::{Basis, Level};
use conformant_yaml::Fault;
use conformant_yaml::{Content, Member, Node, Span};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Longer patterns are rejected.
const PATTERN_MAX: usize = 4_096;

/// A readable file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: Arc<str>,
    pub(super) node: Node,
}

impl File {
    /// The first segment of its path.
    pub(super) fn service(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }

    /// A problem at a pointer.
    pub(super) fn problem(&self, pointer: &str, message: impl Into<String>) -> Problem {
        self.problem_at(self.node.place(pointer), message)
    }

    /// A problem at a span of the text.
    pub(super) fn problem_at(&self, span: Span, message: impl Into<String>) -> Problem {
        Problem::new(&self.path, &self.text, span, message)
    }

    /// `path:line` of a pointer.
    pub(super) fn place(&self, pointer: &str) -> String {
        let start = self.node.place(pointer).start;
        let before = self.text.as_bytes().get(..start).unwrap_or_default();
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        format!("{}:{line}", self.path)
    }
}

/// The members under a key of a mapping; none without it.
pub(super) fn members_of<'n>(node: &'n Node, key: &str) -> &'n [Member] {
    node.get(key).map(Node::members).unwrap_or_default()
}

/// The items under a key of a mapping; none without it.
pub(super) fn items_of<'n>(node: &'n Node, key: &str) -> &'n [Node] {
    node.get(key).map(Node::items).unwrap_or_default()
}

pub(super) type Files = SortedMap<String, File>;

#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) rules: SortedMap<String, Rule>,
    pub(super) problems: Problems,
    /// Cached result for each pattern.
    pub(super) patterns: SortedMap<String, Option<String>>,
    /// Whether checks are skipped because the files were checked at build time.
    pub(super) is_sound: bool,
    /// The services, after their files were read.
    pub(super) index: Arc<ServiceIndex>,
}

/// `x-rule`: differences of a derived rule from `must` and `stated`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleExtension {
    pub(super) level: Option<Level>,
    pub(super) basis: Option<Basis>,
}

impl Draft {
    /// Adds a problem, so that nothing is loaded.
    pub(super) fn refuse(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Adds a rule, unless its id is taken.
    pub(super) fn add(&mut self, file: &File, pointer: &str, rule: Rule) {
        if let Some(other) = self.rules.get(&rule.id) {
            // The current version of an event is read first and represents the others.
            if let (Some(known), Some(kind)) = (other.kind(), rule.kind())
                && known != kind
                && is_one_event(known, kind)
            {
                return;
            }
            let message = format!("the rule id `{}` is taken by {}", rule.id, other.place);
            self.problems.push(
                file.problem(pointer, message)
                    .help("ids are unique over the whole rulebook; rename one of the two"),
            );
            return;
        }
        self.rules.insert(rule.id.clone(), rule);
    }

    /// Whether a file is a mapping. A list would be read as one without fields.
    pub(super) fn is_mapping(&mut self, file: &File) -> bool {
        let is_list = matches!(file.node.content, Content::List(_));
        if is_list {
            let message = "expected fields by name, got a list";
            let problem = Problem::new(&file.path, &file.text, file.node.span, message);
            self.problems.push(problem);
        }
        !is_list
    }

    /// Deserializes a part of a file. Every unknown key is a problem; of other errors, the first.
    pub(super) fn deserialize<T: DeserializeOwned>(
        &mut self,
        file: &File,
        node: &Node,
    ) -> Option<T> {
        self.deserialize_with(file, node, |node| conformant_yaml::from_node(node))
    }

    /// As `typed`, with a reader of the type.
    pub(super) fn deserialize_with<T>(
        &mut self,
        file: &File,
        node: &Node,
        read: impl Fn(&Node) -> Result<T, Fault>,
    ) -> Option<T> {
        match read(node) {
            Ok(value) => return Some(value),
            Err(fault) => {
                if !fault.is_of_key {
                    self.report(file, node, fault);
                    return None;
                }
            }
        }
        // Unknown keys hide later errors: remove the key and read again.
        let mut rest = node.clone();
        loop {
            let Err(fault) = read(&rest) else {
                return None;
            };
            let is_of_key = fault.is_of_key;
            let span = fault.span.unwrap_or(node.span);
            self.report(file, node, fault);
            if !is_of_key || !rest.remove_key_at(span) {
                return None;
            }
        }
    }

    fn report(&mut self, file: &File, node: &Node, fault: Fault) {
        let problem = file.problem_at(fault.span.unwrap_or(node.span), fault.message);
        let help = fault
            .unknown
            .and_then(|(word, known)| suggest(&word, known.iter().copied()));
        self.problems.push(problem.maybe_help(help));
    }

    /// The resolved `x-source` of a part of a file. If it is `needed`, its absence is a problem.
    pub(super) fn source(
        &mut self,
        file: &File,
        pointer: &str,
        node: &Node,
        needed: bool,
    ) -> Option<Source> {
        let Some(written) = node.get("x-source") else {
            if needed {
                self.problems.push(
                    file.problem(pointer, "`x-source` is missing")
                        .help("add `x-source: { section: HEADING, lines: [LINE] }`"),
                );
            }
            return None;
        };
        let source = self.deserialize::<SourceRef>(file, written)?;
        self.resolve(file, &format!("{pointer}/x-source"), &source)
    }

    /// A source with its document. A source without lines is a problem.
    pub(super) fn resolve(
        &mut self,
        file: &File,
        pointer: &str,
        source: &SourceRef,
    ) -> Option<Source> {
        // A pointer into a document needs no lines.
        let needs_lines = !source.section.starts_with("#/");
        if source.lines.is_empty() && needs_lines || source.lines.contains(&0) {
            self.problems.push(
                file.problem(pointer, "a source names lines, counted from 1")
                    .help("cite the lines of the document that state it"),
            );
            return None;
        }
        let index = Arc::clone(&self.index);
        let default = index.document_of(file.service());
        let document = source.document.or(default)?;
        if !self.is_sound && !index.documents().contains_key(&document) {
            let known: Vec<String> = index.documents().keys().map(ToString::to_string).collect();
            let known = known.iter().map(String::as_str);
            let span = file.node.place(&format!("{pointer}/document"));
            self.unknown(file, span, "document", document.as_str(), known);
        }
        Some(Source {
            document,
            section: source.section.clone(),
            lines: source.lines.clone(),
        })
    }

    /// `description` or `summary`. Its absence is a problem.
    pub(super) fn says(&mut self, file: &File, pointer: &str, node: &Node, key: &str) -> String {
        match node.get(key).and_then(Node::text) {
            Some(text) if !text.trim().is_empty() => text.to_owned(),
            Some(_) | None => {
                self.problems.push(
                    file.problem(pointer, format!("`{key}` is missing"))
                        .help("describe it in one line, in your own words"),
                );
                String::new()
            }
        }
    }

    pub(super) fn extension(&mut self, file: &File, node: &Node) -> RuleExtension {
        node.get("x-rule")
            .and_then(|written| self.deserialize(file, written))
            .unwrap_or_default()
    }

    /// The reason why the linear regex engine cannot use a pattern.
    pub(super) fn pattern_fault(&mut self, pattern: &str) -> Option<String> {
        if self.is_sound {
            return None;
        }
        if let Some(known) = self.patterns.get(pattern) {
            return known.clone();
        }
        let fault = if pattern.len() > PATTERN_MAX {
            Some(format!("the pattern is longer than {PATTERN_MAX} bytes"))
        } else {
            jsonschema::options()
                .with_pattern_options(jsonschema::PatternOptions::regex())
                .build(&serde_json::json!({ "pattern": pattern }))
                .err()
                .map(|_| format!("`{pattern}` is not a regular expression of the linear engine"))
        };
        self.patterns.insert(pattern.to_owned(), fault.clone());
        fault
    }

    /// A misspelled name with the known ones.
    pub(super) fn unknown<'a>(
        &mut self,
        file: &File,
        span: Span,
        what: &str,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) {
        let problem = file.problem_at(span, format!("there is no {what} `{word}`"));
        self.problems.push(problem.maybe_help(suggest(word, known)));
    }
}

/// The common parts of derived rules.
pub(super) struct Derived {
    pub(super) id: String,
    pub(super) says: String,
    pub(super) source: Source,
    pub(super) level: Level,
    pub(super) basis: Basis,
    pub(super) origin: Origin,
}

impl Derived {
    pub(super) fn rule(self, file: &File, pointer: &str) -> Rule {
        Rule {
            id: self.id,
            service: file.service().to_owned(),
            level: self.level,
            basis: self.basis,
            source: self.source,
            says: self.says,
            place: file.place(pointer),
            origin: self.origin,
        }
    }
}

/// Parses one file: JSON as JSON, everything else as YAML.
pub(super) fn read_file(path: &str, bytes: &[u8], problems: &mut Problems) -> Option<File> {
    let text: Arc<str> = match std::str::from_utf8(bytes) {
        Ok(text) => Arc::from(text),
        Err(error) => {
            let message = format!("not valid UTF-8 at byte {}", error.valid_up_to());
            problems.push(Problem::of_file(path, message));
            return None;
        }
    };
    let is_json = std::path::Path::new(path)
        .extension()
        .is_some_and(|e| e == "json");
    let node = match sources::embedded_tree(path, bytes) {
        Some(node) => node,
        None if is_json => read_json(path, &text, problems)?,
        None => read_yaml(path, &text, problems)?,
    };
    if matches!(node.content, Content::Null) {
        problems.push(Problem::new(
            path,
            &text,
            Span::default(),
            "the file is empty",
        ));
        return None;
    }
    Some(File {
        path: path.to_owned(),
        text,
        node,
    })
}

fn read_yaml(path: &str, text: &Arc<str>, problems: &mut Problems) -> Option<Node> {
    let node = match conformant_yaml::read(text) {
        Ok(node) => node,
        Err(fault) => {
            let span = fault.span.unwrap_or_default();
            problems.push(Problem::new(path, text, span, fault.message));
            return None;
        }
    };
    let mut ambiguous = Vec::new();
    conformant_yaml::ambiguous(&node, text, &mut ambiguous);
    for (span, word) in ambiguous {
        let message = format!("`{word}` is read differently by YAML readers");
        problems.push(Problem::new(path, text, span, message).help("ambiguous scalar, quote it"));
    }
    Some(node)
}

fn read_json(path: &str, text: &Arc<str>, problems: &mut Problems) -> Option<Node> {
    use conformant_base::json::{Limits, Note, ParseFault, parse};
    match parse(text.as_bytes(), Limits::default()) {
        Ok(parsed) => {
            for note in &parsed.notes {
                let start = match note {
                    Note::ByteOrderMark => 0,
                    Note::DuplicateKey { second, .. } => second.byte,
                };
                let span = Span { start, length: 1 };
                problems.push(Problem::new(path, text, span, note.to_string()));
            }
            Some(Node::from_json(&parsed.value))
        }
        Err(fault) => {
            let start = match &fault {
                ParseFault::Empty | ParseFault::TooLarge { .. } => 0,
                ParseFault::NotUtf8 { at }
                | ParseFault::TooDeep { at, .. }
                | ParseFault::TooManyNodes { at, .. }
                | ParseFault::ReservedKey { at, .. }
                | ParseFault::Syntax { at, .. } => at.byte,
            };
            let span = Span { start, length: 1 };
            problems.push(Problem::new(path, text, span, fault.to_string()));
            None
        }
    }
}
