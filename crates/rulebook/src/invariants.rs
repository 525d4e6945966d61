//! `laws.yaml`: invariants, and what they apply to. Each row cites its lines and is a rule.
//!
//! An invariant has a row, or a reason for an exception, for every operation or resource type that it applies to. A new
//! one therefore needs a row for each invariant. The registry defines what an invariant means.

use super::check::{Model, Parameters, PredicateRegistry};
use super::draft::{Derived, Draft, File, members_of};
use super::model::{Kind, Origin, Service};
use super::problems::Problem;
use super::rule_files::{check_id, list};
use super::rules::SourceRef;
use conformant_base::sorted::SortedMap;
use conformant_base::source::Document;
use conformant_record::{Basis, Level};
use conformant_yaml::{Content, Member, Node, Span};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeSet;

/// The parameter with the subject of a row.
const OF: &str = "of";

/// One invariant of a service.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Invariant {
    #[serde(rename = "law")]
    predicate: String,
    /// What the ids of rows end in; the predicate if omitted.
    name: Option<String>,
    says: String,
    level: Option<Level>,
    basis: Option<Basis>,
    #[serde(default, rename = "with")]
    _with: Option<IgnoredAny>,
    #[serde(default)]
    rows: SortedMap<String, Row>,
    #[serde(default)]
    except: SortedMap<String, String>,
}

/// One subject of the invariant, and its source.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    document: Option<Document>,
    section: String,
    lines: Vec<u32>,
    id: Option<String>,
    says: Option<String>,
    level: Option<Level>,
    basis: Option<Basis>,
    #[serde(default, rename = "with")]
    _with: Option<IgnoredAny>,
}

/// All rows and exceptions by invariant.
#[derive(Debug, Default)]
pub(super) struct Coverage(SortedMap<String, BTreeSet<String>>);

/// Reads the invariants of one file as rules.
pub(super) fn read(
    draft: &mut Draft,
    file: &File,
    registry: &dyn PredicateRegistry,
    covered: &mut Coverage,
) {
    let items: Vec<_> = list(draft, file, "laws").collect();
    for (at, node) in items {
        let Some(mut invariant) = draft.deserialize::<Invariant>(file, node) else {
            continue;
        };
        let former = registry.renamed(&invariant.predicate, &Value::Null);
        if let Some((predicate, _)) = former {
            let former = std::mem::replace(&mut invariant.predicate, predicate.to_owned());
            invariant.name.get_or_insert(former);
        }
        if !registry.names().contains(&invariant.predicate.as_str()) {
            let span = file.node.place(&format!("{at}/law"));
            let known = registry.names().iter().copied();
            draft.unknown(file, span, "law", &invariant.predicate, known);
            continue;
        }
        let subjects = invariant.rows.keys().chain(invariant.except.keys());
        let subjects = subjects.map(|subject| full(file, subject));
        covered
            .0
            .entry(invariant.predicate.clone())
            .or_default()
            .extend(subjects);
        for (subject, reason) in &invariant.except {
            if reason.trim().is_empty() || invariant.rows.contains_key(subject) {
                let at = conformant_base::json::join(&format!("{at}/except"), subject);
                let message = "expected a reason for the exception, and no row for it";
                draft.refuse(file.problem(&at, message));
            }
        }
        for (subject, row) in &invariant.rows {
            let at = conformant_base::json::join(&format!("{at}/rows"), subject);
            read_row(draft, file, registry, &at, node, (&invariant, subject, row));
        }
    }
}

fn read_row(
    draft: &mut Draft,
    file: &File,
    registry: &dyn PredicateRegistry,
    at: &str,
    node: &Node,
    (invariant, subject, row): (&Invariant, &str, &Row),
) {
    let id = row.id.clone();
    let id = id.unwrap_or_else(|| {
        let name = invariant.name.as_ref().unwrap_or(&invariant.predicate);
        format!("{}/{name}", full(file, subject))
    });
    check_id(draft, file, at, &id);
    let source = SourceRef {
        document: row.document,
        section: row.section.clone(),
        lines: row.lines.clone(),
    };
    let Some(source) = draft.resolve(file, at, &source) else {
        return;
    };
    let of_row = node.get("rows").and_then(|rows| rows.get(subject));
    let parameters = parameters(&full(file, subject), [Some(node), of_row]);
    let check = draft.deserialize_with(file, &parameters, |node| {
        let read = registry.read(&invariant.predicate, &Parameters(node));
        read.map_err(|unread| unread.0)
    });
    let Some(check) = check else { return };
    let rule = Derived {
        id,
        says: row.says.clone().unwrap_or_else(|| invariant.says.clone()),
        source,
        level: row.level.or(invariant.level).unwrap_or(Level::Must),
        basis: row.basis.or(invariant.basis).unwrap_or(Basis::Stated),
        origin: Origin::Written(check),
    };
    let rule = rule.rule(file, at);
    draft.add(file, at, rule);
}

/// The parameters of the invariant and of the row, and the subject of the row.
fn parameters(subject: &str, withs: [Option<&Node>; 2]) -> Node {
    let mut members: Vec<Member> = Vec::new();
    let mut span = Span::default();
    for node in withs.into_iter().flatten() {
        span = node.span;
        for member in members_of(node, "with") {
            members.retain(|known| known.key != member.key);
            members.push(member.clone());
        }
    }
    members.push(Member {
        key: OF.into(),
        key_span: span,
        value: Node {
            content: Content::Text(subject.to_owned().into()),
            span,
        },
    });
    Node {
        content: Content::Map(members),
        span,
    }
}

/// A subject with its service.
fn full(file: &File, subject: &str) -> String {
    if subject.contains('/') {
        subject.to_owned()
    } else {
        format!("{}/{subject}", file.service())
    }
}

/// Each invariant has a row or an exception for everything that it applies to, and for nothing else.
pub(super) fn check(
    draft: &mut Draft,
    files: &SortedMap<String, File>,
    registry: &dyn PredicateRegistry,
    (services, kinds): (&SortedMap<String, Service>, &SortedMap<String, Kind>),
    covered: &Coverage,
) {
    let model = Model { services, kinds };
    let nothing = BTreeSet::new();
    for invariant in registry.names() {
        let rows = covered.0.get(*invariant).unwrap_or(&nothing);
        let Some(fits) = registry.applicable_subjects(invariant, &model) else {
            continue;
        };
        let fits: BTreeSet<String> = fits.into_iter().collect();
        for subject in fits.difference(rows) {
            let (service, name) = subject.split_once('/').unwrap_or((subject, ""));
            let path = format!("{service}/laws.yaml");
            let message = format!("`{invariant}` applies to {subject}, but has no row for it");
            let problem = match files.get(&path) {
                Some(file) => file.problem("/laws", message),
                None => Problem::of_file(&path, message),
            };
            draft.refuse(problem.help(format!(
                "under `law: {invariant}` add to `rows`: `{name}: {{ section: HEADING, lines: [LINE] }}`, or to `except` a reason"
            )));
        }
        for subject in rows.difference(&fits) {
            let (service, _) = subject.split_once('/').unwrap_or((subject, ""));
            let path = format!("{service}/laws.yaml");
            let message = format!("`{invariant}` does not apply to {subject}");
            draft.refuse(match files.get(&path) {
                Some(file) => file.problem("/laws", message),
                None => Problem::of_file(&path, message),
            });
        }
    }
}
