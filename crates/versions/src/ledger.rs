//! Records changes: place, stable id, class.

use super::coordinates::{Action, Class, Coordinates, Direction, What};
use super::witness::Witness;
use conformant_base::sorted::SortedMap;
use conformant_base::source::Document;
use conformant_base::text;
use conformant_rulebook::kebab;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt;

/// Maximum length of a printed value, in bytes.
const SHOWN_BYTES_MAX: usize = 400;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Id from place and coordinates, without positions, so that it is the same in every comparison.
    pub id: String,
    /// Place for people: `events/MessageSent/5 at /from/channel`.
    pub place: String,
    /// Subject, type and direction.
    #[serde(flatten)]
    pub coordinates: Coordinates,
    /// Old content; JSON for a value.
    pub old: Option<String>,
    /// New content.
    pub new: Option<String>,
    /// Classes; two if it breaks both sides.
    pub class: Vec<Class>,
    /// One sentence with the change and the reason of its class.
    pub message: String,
    /// Values that only one version accepts, if found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<Witness>,
    /// True if it is undecided whether more or less is accepted than before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// Reason of its declaration, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
    /// Its place, in parts.
    #[serde(skip)]
    pub subject: Subject,
    /// The added or removed value, for the search in scenarios and fixtures.
    #[serde(skip)]
    pub value: Option<serde_json::Value>,
}

/// Place of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A place in a representation, with two names if versions are compared.
    Representation {
        /// Name in the older rulebook.
        old: String,
        /// Name in the newer one.
        new: String,
        /// JSON Pointer, `*` for items and members.
        pointer: String,
    },
    Operation {
        service: String,
        operation: String,
    },
    Parameter {
        service: String,
        operation: String,
        /// Spelling of the document.
        parameter: String,
        /// JSON Pointer into its value.
        pointer: String,
    },
    /// A version in a path.
    PathVersion {
        service: String,
        /// Such as `v2`.
        version: String,
    },
    Rule(String),
    /// An unspecified behavior.
    OpenPoint(String),
    /// A subscription event type.
    EventType(String),
    Scenario(String),
    /// A sentence or table row.
    Statement {
        document: Document,
        /// Identifies it in the document.
        unit: String,
    },
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |pointer: &str| match pointer {
            "" => String::new(),
            pointer => format!(" at {pointer}"),
        };
        match self {
            Self::Representation { new, pointer, .. } => write!(f, "{new}{}", at(pointer)),
            Self::Operation { service, operation } => write!(f, "{service}/{operation}"),
            Self::Parameter {
                service,
                operation,
                parameter,
                pointer,
            } => {
                let at = at(pointer);
                write!(f, "{service}/{operation}, parameter {parameter}{at}")
            }
            Self::PathVersion { service, version } => write!(f, "{service}, version {version}"),
            Self::Rule(id) | Self::OpenPoint(id) | Self::EventType(id) | Self::Scenario(id) => {
                f.write_str(id)
            }
            Self::Statement { document, unit } => write!(f, "{document}, {unit}"),
        }
    }
}

impl Subject {
    /// A place in a representation that has these names.
    pub(super) fn representation(old: &str, new: &str, pointer: &str) -> Self {
        Self::Representation {
            old: old.to_owned(),
            new: new.to_owned(),
            pointer: pointer.to_owned(),
        }
    }

    /// The place as a path for an id.
    fn path(&self) -> Vec<String> {
        let mut path: Vec<String> = Vec::new();
        let segments = |text: &str| text.split('/').map(word).collect::<Vec<_>>();
        let inside = |pointer: &str| {
            conformant_base::json::segments(pointer)
                .map(|s| word(&s))
                .collect::<Vec<_>>()
        };
        match self {
            Self::Representation { new, pointer, .. } => {
                path.extend(segments(new));
                path.extend(inside(pointer));
            }
            Self::Operation { service, operation } => path.extend([word(service), word(operation)]),
            Self::Parameter {
                service,
                operation,
                parameter,
                pointer,
            } => {
                path.extend([word(service), word(operation), word(parameter)]);
                path.extend(inside(pointer));
            }
            Self::PathVersion { service, version } => path.extend([word(service), word(version)]),
            Self::Rule(id) | Self::OpenPoint(id) | Self::Scenario(id) => path.extend(segments(id)),
            Self::EventType(name) => path.extend(["events".to_owned(), word(name)]),
            Self::Statement { document, unit } => {
                path.extend([word(&document.to_string()), word(unit)]);
            }
        }
        path
    }
}

/// A word of an id in kebab case, or its bytes if nothing is left.
fn word(text: &str) -> String {
    let kebab = match text {
        "*" => "each".to_owned(),
        _ if text.ends_with("[]") => format!("{}-page", kebab(text)),
        _ => kebab(text),
    };
    if kebab.is_empty() {
        format!("x{}", text::hex(text.bytes()))
    } else {
        kebab
    }
}

/// Changes recorded so far.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    changes: Vec<Change>,
}

/// A change that is being recorded.
#[derive(Debug)]
pub(super) struct Note {
    what: What,
    action: Action,
    direction: Direction,
    detail: String,
    old: Option<String>,
    new: Option<String>,
    value: Option<serde_json::Value>,
    witnesses: Vec<Witness>,
    undecided: bool,
    binding: bool,
}

impl Note {
    /// Begins a change with these coordinates.
    pub(super) fn new(what: What, action: Action, direction: Direction) -> Self {
        Self {
            what,
            action,
            direction,
            detail: String::new(),
            old: None,
            new: None,
            value: None,
            witnesses: Vec::new(),
            undecided: false,
            binding: true,
        }
    }

    /// Begins the change of something that appears or disappears.
    pub(super) fn appears(what: What, is_there: bool, direction: Direction) -> Self {
        Self::new(what, Action::appears(is_there), direction)
    }

    /// Sets the detail: the enumerated value, keyword or media type.
    pub(super) fn detail(mut self, detail: &str) -> Self {
        detail.clone_into(&mut self.detail);
        self
    }

    /// Sets the old and new content.
    pub(super) fn between<T: Into<String>>(mut self, old: Option<T>, new: Option<T>) -> Self {
        (self.old, self.new) = (old.map(Into::into), new.map(Into::into));
        self
    }

    /// Sets old and new content as JSON.
    pub(super) fn values(
        self,
        old: Option<&serde_json::Value>,
        new: Option<&serde_json::Value>,
    ) -> Self {
        let shown = |v: &serde_json::Value| conformant_base::json::excerpt(v, SHOWN_BYTES_MAX);
        self.between(old.map(shown), new.map(shown))
    }

    /// Sets the added or removed value.
    pub(super) fn value(mut self, value: &serde_json::Value) -> Self {
        self.value = Some(value.clone());
        self
    }

    /// Sets values that only one version accepts.
    pub(super) fn witnesses(mut self, witnesses: Vec<Witness>) -> Self {
        self.witnesses = witnesses;
        self
    }

    /// Marks it as undecided.
    pub(super) fn undecided(mut self) -> Self {
        self.undecided = true;
        self
    }

    /// Sets whether the rule is a requirement; consumers must not rely on recommendations.
    pub(super) fn binding(mut self, binding: bool) -> Self {
        self.binding = binding;
        self
    }
}

impl Ledger {
    /// Records the change.
    pub(super) fn note(&mut self, subject: &Subject, note: Note) {
        let coordinates = Coordinates {
            what: note.what,
            action: note.action,
            direction: note.direction,
        };
        let (class, why) = classify(coordinates, note.binding, note.undecided);
        let mut path = subject.path();
        if !note.detail.is_empty() {
            path.push(word(&note.detail));
        }
        path.push(format!("{}-{}", note.what.word(), note.action.word()));
        let message = format!(
            "{} {}{}: {why}",
            subject_words(note.what, &note.detail),
            note.action.word(),
            show_change(note.action, note.old.as_deref(), note.new.as_deref()),
        );
        self.changes.push(Change {
            id: path.join("/"),
            place: subject.to_string(),
            coordinates,
            old: note.old,
            new: note.new,
            class,
            message,
            witnesses: note.witnesses,
            undecided: note.undecided,
            declared: None,
            subject: subject.clone(),
            value: note.value,
        });
    }

    /// The changes by id. A digest of the place distinguishes places with the same id.
    pub(super) fn finish(mut self) -> Vec<Change> {
        let mut count: SortedMap<String, usize> = SortedMap::new();
        for change in &self.changes {
            *count.entry(change.id.clone()).or_default() += 1;
        }
        for change in &mut self.changes {
            if count[&change.id] > 1 {
                let exact = format!("{}\0{:?}\0{:?}", change.place, change.old, change.new);
                let digest = text::hex(Sha256::digest(exact.as_bytes()));
                change.id = format!("{}-{}", change.id, &digest[..8]);
            }
        }
        self.changes
            .sort_by(|a, b| (&a.id, &a.place).cmp(&(&b.id, &b.place)));
        self.changes
    }
}

/// What changed, in words: ``condition `not` ``, `enum value rcs`.
fn subject_words(what: What, detail: &str) -> String {
    let is_keyword = matches!(what, What::Bound | What::Form | What::Shape | What::Words);
    let named = [
        (What::Form, "text format"),
        (What::Shape, "condition"),
        (What::Words, "text"),
    ];
    let named = named.into_iter().find(|(one, _)| *one == what);
    let words = named.map_or_else(
        || what.word().replace('-', " "),
        |(_, words)| words.to_owned(),
    );
    match detail {
        "" => words,
        keyword if is_keyword => format!("{words} `{keyword}`"),
        detail => format!("{words} {detail}"),
    }
}

fn show_change(action: Action, old: Option<&str>, new: Option<&str>) -> String {
    let is_named = matches!(action, Action::Added | Action::Removed);
    match (old, new) {
        (Some(old), Some(new)) => format!(" from {old} to {new}"),
        (Some(only), None) | (None, Some(only)) if is_named => format!(" ({only})"),
        (Some(old), None) => format!(" (removed: {old})"),
        (None, Some(new)) => format!(" (added: {new})"),
        (None, None) => String::new(),
    }
}

/// Classes of a change with the reason.
fn classify(at: Coordinates, binding: bool, undecided: bool) -> (Vec<Class>, String) {
    let row = at
        .row()
        .expect("the comparing modules note only changes that the table has a row for");
    if let Some((class, why)) = &row.harmless {
        return (vec![*class], why.clone());
    }
    if !binding {
        return (
            vec![Class::Clarified],
            "its rule is a recommendation, on which consumers must not rely".to_owned(),
        );
    }
    let sides = [
        (Class::BreakingForConsumers, &row.consumers),
        (Class::BreakingForProducers, &row.producers),
    ];
    let broken = || {
        sides
            .iter()
            .filter_map(|(class, why)| Some((*class, why.as_ref()?)))
    };
    let class: Vec<Class> = broken().map(|(class, _)| class).collect();
    if undecided {
        let words: Vec<&str> = class.iter().map(|class| class.words()).collect();
        let why = "undecided which version accepts more; counts as breaking";
        return (class, format!("{}: {why}", words.join(", ")));
    }
    let why: Vec<String> = broken()
        .map(|(class, why)| format!("{}: {why}", class.words()))
        .collect();
    (class, why.join("; "))
}

impl Change {
    /// Whether a correct implementation may break.
    pub fn is_breaking(&self) -> bool {
        self.class.iter().any(|class| class.is_breaking())
    }
}
