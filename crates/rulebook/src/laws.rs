//! `laws.yaml`: invariants, and what they apply to. Each row cites its lines and is a rule.
//!
//! An invariant has a row, or a reason for an exception, for every operation or resource type that it applies to. A new
//! one therefore needs a row for each invariant. The catalogue defines what an invariant means.

use super::check::{Catalogue, Model, Parameters};
use super::draft::{Derived, Draft, File};
use super::model::{Kind, Origin, Service};
use super::problems::Problem;
use super::rules::SourceRef;
use super::written::{check_id, list};
use conformant_base::source::Document;
use conformant_record::{Basis, Level};
use conformant_yaml::{Content, Member, Node, Span};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The parameter with the subject of a row.
const OF: &str = "of";

/// One invariant of a service.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Law {
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
    rows: BTreeMap<String, Row>,
    #[serde(default)]
    except: BTreeMap<String, String>,
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
pub(super) struct Covered(BTreeMap<String, BTreeSet<String>>);

/// Reads the invariants of one file as rules.
pub(super) fn read(
    draft: &mut Draft,
    file: &File,
    catalogue: &dyn Catalogue,
    covered: &mut Covered,
) {
    let items: Vec<_> = list(draft, file, "laws").collect();
    for (at, node) in items {
        let Some(mut law) = draft.typed::<Law>(file, node) else {
            continue;
        };
        let former = catalogue.renamed(&law.predicate, &Value::Null);
        if let Some((predicate, _)) = former {
            let former = std::mem::replace(&mut law.predicate, predicate.to_owned());
            law.name.get_or_insert(former);
        }
        if !catalogue.names().contains(&law.predicate.as_str()) {
            let span = file.node.place(&format!("{at}/law"));
            let known = catalogue.names().iter().copied();
            draft.unknown(file, span, "law", &law.predicate, known);
            continue;
        }
        let subjects = law.rows.keys().chain(law.except.keys());
        let subjects = subjects.map(|subject| full(file, subject));
        covered
            .0
            .entry(law.predicate.clone())
            .or_default()
            .extend(subjects);
        for (subject, reason) in &law.except {
            if reason.trim().is_empty() || law.rows.contains_key(subject) {
                let at = conformant_base::json::join(&format!("{at}/except"), subject);
                let message = "expected a reason for the exception, and no row for it";
                draft.problems.push(file.problem(&at, message));
            }
        }
        for (subject, row) in &law.rows {
            let at = conformant_base::json::join(&format!("{at}/rows"), subject);
            read_row(draft, file, catalogue, &at, node, (&law, subject, row));
        }
    }
}

fn read_row(
    draft: &mut Draft,
    file: &File,
    catalogue: &dyn Catalogue,
    at: &str,
    node: &Node,
    (law, subject, row): (&Law, &str, &Row),
) {
    let id = row.id.clone();
    let id = id.unwrap_or_else(|| {
        let name = law.name.as_ref().unwrap_or(&law.predicate);
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
    let check = draft.typed_by(file, &parameters, |node| {
        let read = catalogue.read(&law.predicate, &Parameters(node));
        read.map_err(|unread| unread.0)
    });
    let Some(check) = check else { return };
    let rule = Derived {
        id,
        says: row.says.clone().unwrap_or_else(|| law.says.clone()),
        source,
        level: row.level.or(law.level).unwrap_or(Level::Must),
        basis: row.basis.or(law.basis).unwrap_or(Basis::Stated),
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
        for member in node.get("with").map(Node::members).unwrap_or_default() {
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
    files: &BTreeMap<String, File>,
    catalogue: &dyn Catalogue,
    (services, kinds): (&BTreeMap<String, Service>, &BTreeMap<String, Kind>),
    covered: &Covered,
) {
    let model = Model { services, kinds };
    let nothing = BTreeSet::new();
    for law in catalogue.names() {
        let rows = covered.0.get(*law).unwrap_or(&nothing);
        let Some(fits) = catalogue.fits(law, &model) else {
            continue;
        };
        let fits: BTreeSet<String> = fits.into_iter().collect();
        for subject in fits.difference(rows) {
            let (service, name) = subject.split_once('/').unwrap_or((subject, ""));
            let path = format!("{service}/laws.yaml");
            let message = format!("`{law}` applies to {subject}, but has no row for it");
            let problem = match files.get(&path) {
                Some(file) => file.problem("/laws", message),
                None => Problem::of_file(&path, message),
            };
            draft.problems.push(problem.help(format!(
                "under `law: {law}` add to `rows`: `{name}: {{ section: HEADING, lines: [LINE] }}`, or to `except` a reason"
            )));
        }
        for subject in rows.difference(&fits) {
            let (service, _) = subject.split_once('/').unwrap_or((subject, ""));
            let path = format!("{service}/laws.yaml");
            let message = format!("`{law}` does not apply to {subject}");
            draft.problems.push(match files.get(&path) {
                Some(file) => file.problem("/laws", message),
                None => Problem::of_file(&path, message),
            });
        }
    }
}
