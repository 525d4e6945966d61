//! Compatibility of two versions: which documents only one of them accepts, and the levels of registries.
//!
//! - The comparison of the schemas decides; a refusal has a document that shows it, where one is found.
//! - Generated documents of both versions check the comparison. What they contradict is an error of this program.

use super::content::Content;
use super::coordinates::{Action, Direction, What};
use super::ledger::{Change, Ledger, Subject};
use super::witness::{SHOWN_BYTES_MAX, Witness, embedded, replaced};
use super::{EventError, schemas};
use conformant_base::json;
use conformant_rulebook::{Compatibility, Rulebook, event_version};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Generated documents of a representation.
pub type Documents<'a> = dyn Fn(&str) -> Vec<Value> + 'a;

/// Which documents only one of two versions accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Name of the older version.
    pub old: String,
    /// Name of the newer version.
    pub new: String,
    /// Changes that make documents of the older version invalid.
    pub lost: Vec<Refusal>,
    /// Changes that make documents valid which the older version rejects.
    pub gained: Vec<Refusal>,
    /// Why the comparison cannot be trusted: generated documents that no change accounts for, or a schema that cannot be
    /// compiled.
    pub contradictions: Vec<String>,
}

/// A change because of which one version does not accept all documents of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Id of the change.
    pub change: String,
    /// The version that accepts the document.
    pub accepted_by: String,
    /// The version that rejects it.
    pub rejected_by: String,
    /// A document that only one of them accepts, if found. It shows this change, unless several changes break.
    pub document: Option<String>,
}

/// Whether a version has a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LevelVerdict {
    pub level: Compatibility,
    /// The version that has the level, or not.
    pub version: String,
    /// The earlier versions that count.
    pub against: Vec<String>,
    pub holds: bool,
    pub refusals: Vec<Refusal>,
    /// Number of changes that are declared, so that their refusals do not count.
    pub declared: usize,
}

impl Refusal {
    /// One line for people.
    pub fn words(&self) -> String {
        let (a, b) = (&self.accepted_by, &self.rejected_by);
        match &self.document {
            Some(document) => format!("{document} is valid in {a} and invalid in {b}"),
            None => format!(
                "undecided, as no document was found that {a} accepts and {b} rejects; counts as breaking"
            ),
        }
    }
}

impl Relation {
    /// Compares two self-contained schemas, and checks the result with generated documents.
    pub fn new(
        old: (&str, &Value),
        new: (&str, &Value),
        content: Option<Content>,
        documents: &[Value],
    ) -> Self {
        let applied = |schema: &Value| {
            content.map_or_else(|| schema.clone(), |content| content.applied(schema))
        };
        let (before, after) = (applied(old.1), applied(new.1));
        let mut ledger = Ledger::default();
        let place = |pointer: &str| Subject::representation(old.0, new.0, pointer);
        // In this direction a required field that is removed counts on its own.
        schemas::alone(&mut ledger, (&before, &after), Direction::Request, &place);
        let changes = ledger.finish();
        let one_way = |from: (&str, &Value), to: (&str, &Value), is_backward| {
            OneWay {
                from,
                to,
                is_backward,
            }
            .compare(&changes, documents)
        };
        let (lost, missed) = one_way((old.0, &before), (new.0, &after), true);
        let (gained, also_missed) = one_way((new.0, &after), (old.0, &before), false);
        Self {
            old: old.0.to_owned(),
            new: new.0.to_owned(),
            lost,
            gained,
            contradictions: missed.into_iter().chain(also_missed).collect(),
        }
    }

    /// Compares two representations of rulebooks.
    pub(super) fn of_kinds(
        rulebook: &Rulebook,
        (old, new): (&str, &str),
        content: Option<Content>,
        documents: &Documents<'_>,
    ) -> Option<Self> {
        let schema = |name: &str| rulebook.kinds.get(name).map(|kind| &kind.schema);
        let mut generated = documents(old);
        generated.extend(documents(new));
        Some(Self::new(
            (old, schema(old)?),
            (new, schema(new)?),
            content,
            &generated,
        ))
    }
}

/// The documents that one version accepts and another rejects.
struct OneWay<'a> {
    from: (&'a str, &'a Value),
    to: (&'a str, &'a Value),
    /// From the older to the newer version.
    is_backward: bool,
}

impl OneWay<'_> {
    /// The refusals; without any, the first generated document that contradicts that.
    fn compare(&self, changes: &[Change], documents: &[Value]) -> (Vec<Refusal>, Vec<String>) {
        let compiled = |schema: &Value| conformant_schema::compile(schema).ok();
        let (Some(from), Some(to)) = (compiled(self.from.1), compiled(self.to.1)) else {
            let (a, b) = (self.from.0, self.to.0);
            return (
                Vec::new(),
                vec![format!("a schema of {a} or {b} cannot be compiled")],
            );
        };
        let differs = |document: &Value| from.is_valid(document) && !to.is_valid(document);
        let generated = documents.iter().find(|document| differs(document));
        let breaking = changes.iter().filter(|change| self.is_broken_by(change));
        let refusals: Vec<Refusal> = breaking
            .map(|change| {
                let candidates = self.candidates(change, documents);
                let found = candidates.iter().find(|document| differs(document));
                Refusal {
                    change: change.id.clone(),
                    accepted_by: self.from.0.to_owned(),
                    rejected_by: self.to.0.to_owned(),
                    document: found
                        .or(generated)
                        .map(|document| json::excerpt(document, SHOWN_BYTES_MAX)),
                }
            })
            .collect();
        let missed = generated.filter(|_| refusals.is_empty()).map(|document| {
            let (shown, a, b) = (
                json::excerpt(document, SHOWN_BYTES_MAX),
                self.from.0,
                self.to.0,
            );
            format!("{shown} is valid in {a} and invalid in {b}, and no change accounts for it")
        });
        (refusals, missed.into_iter().collect())
    }

    /// Whether a change makes documents of the one version invalid in the other.
    fn is_broken_by(&self, change: &Change) -> bool {
        let has_witness = |witness: &Witness| witness.was_right == self.is_backward;
        if change.witnesses.iter().any(has_witness) {
            return true;
        }
        let less = match (change.coordinates.what, change.coordinates.action) {
            // A field of an open object restricts it only by its schema, which has a witness.
            (What::Property | What::Words | What::Default, _) => return false,
            (_, Action::Changed) => return true,
            (What::Required, Action::Added) | (_, Action::Narrowed) => true,
            (What::Required, Action::Removed) | (_, Action::Widened | Action::Added) => false,
            (_, Action::Removed) => true,
        };
        less == self.is_backward
    }

    /// Documents with the witnesses of a change at its place.
    fn candidates(&self, change: &Change, documents: &[Value]) -> Vec<Value> {
        let Subject::Representation { pointer, .. } = &change.subject else {
            return Vec::new();
        };
        let mut place: Vec<String> = json::segments(pointer).collect();
        // The witness of a field is the object around it.
        if matches!(
            change.coordinates.what,
            What::Property | What::ClosedProperty | What::Required
        ) {
            place.pop();
        }
        let witnesses = change.witnesses.iter();
        let values = witnesses.filter(|witness| witness.was_right == self.is_backward);
        values
            .flat_map(|witness| {
                let value = &witness.whole;
                let made = embedded(self.from.1, self.from.1, &place, value);
                let others = documents.iter();
                let others = others.filter_map(|document| replaced(document, &place, value));
                std::iter::once(made).chain(others).collect::<Vec<_>>()
            })
            .collect()
    }
}

impl LevelVerdict {
    /// Judges a version by its relations to earlier ones, oldest first. Declared changes do not count.
    pub fn new(
        level: Compatibility,
        version: &str,
        relations: &[Relation],
        is_declared: &dyn Fn(&str) -> bool,
    ) -> Self {
        let counting = match (level, level.is_transitive()) {
            (Compatibility::None, _) => &[],
            (_, true) => relations,
            (_, false) => relations
                .last()
                .map(std::slice::from_ref)
                .unwrap_or_default(),
        };
        let all = counting
            .iter()
            .flat_map(|relation| {
                let lost = relation.lost.iter().filter(|_| level.is_backward());
                lost.chain(relation.gained.iter().filter(|_| level.is_forward()))
            })
            .cloned();
        let (declared, refusals): (Vec<Refusal>, Vec<Refusal>) =
            all.partition(|refusal| is_declared(&refusal.change));
        let declared: BTreeSet<&str> = declared.iter().map(|one| one.change.as_str()).collect();
        Self {
            level,
            version: version.to_owned(),
            against: counting
                .iter()
                .map(|relation| relation.old.clone())
                .collect(),
            holds: refusals.is_empty(),
            refusals,
            declared: declared.len(),
        }
    }

    /// The verdict, and a line for each refusal.
    pub fn lines(&self) -> Vec<String> {
        let refusals = self.refusals.iter();
        let refusals = refusals.map(|one| format!("  witness: {} ({})", one.words(), one.change));
        std::iter::once(self.words()).chain(refusals).collect()
    }

    /// One line for people.
    pub fn words(&self) -> String {
        let (level, version) = (self.level.word(), &self.version);
        if self.level == Compatibility::None {
            return format!("{level} holds: nothing is demanded of {version}");
        }
        if self.against.is_empty() {
            return format!("{level} holds: {version} is the first version");
        }
        let others = self.against.join(", ");
        let accept = if self.against.len() == 1 {
            "accepts"
        } else {
            "accept"
        };
        if !self.holds {
            return format!("{level} does not hold: {version} against {others}");
        }
        let documents = match (self.level.is_backward(), self.level.is_forward()) {
            (true, false) => format!("{version} accepts every document of {others}"),
            (false, _) => format!("{others} {accept} every document of {version}"),
            (true, true) => format!("{version} and {others} accept the same documents"),
        };
        match self.declared {
            0 => format!("{level} holds: {documents}"),
            1 => format!("{level} holds except for 1 declared change: otherwise {documents}"),
            count => {
                format!("{level} holds except for {count} declared changes: otherwise {documents}")
            }
        }
    }
}

/// The names of all events.
pub(super) fn events_of(rulebook: &Rulebook) -> BTreeSet<&str> {
    let kinds = rulebook.kinds.keys();
    kinds
        .filter_map(|kind| event_version(kind).map(|(event, _)| event))
        .collect()
}

/// Versions of an event in order, as names of representations.
pub fn versions_of(rulebook: &Rulebook, event: &str) -> Vec<String> {
    let mut versions: Vec<(u64, &String)> = rulebook
        .kinds
        .keys()
        .filter_map(|kind| {
            let (name, version) = event_version(kind)?;
            (name == event).then_some((version, kind))
        })
        .collect();
    versions.sort_unstable();
    versions.into_iter().map(|(_, kind)| kind.clone()).collect()
}

/// The relations of a version to all earlier ones of its event, oldest first.
pub fn relations(
    rulebook: &Rulebook,
    version: &str,
    content: Option<Content>,
    documents: &Documents<'_>,
) -> Vec<Relation> {
    let event = event_version(version).map_or("", |(event, _)| event);
    let versions = versions_of(rulebook, event);
    let earlier = versions.iter().take_while(|earlier| *earlier != version);
    earlier
        .filter_map(|earlier| Relation::of_kinds(rulebook, (earlier, version), content, documents))
        .collect()
}

/// The relations between two representations that levels ask for, with that to the given older version last. A transitive
/// level also needs those of all earlier versions of the event, oldest first.
pub fn relations_between(
    rulebook: &Rulebook,
    (old, new): (&str, &str),
    levels: &[Compatibility],
    (content, documents): (Option<Content>, &Documents<'_>),
) -> Result<Vec<Relation>, EventError> {
    let is_transitive = levels.iter().find(|level| level.is_transitive());
    let number =
        |name: &str| event_version(name).map(|(event, version)| (event.to_owned(), version));
    if let Some(level) = is_transitive {
        let is_ordered = match (number(old), number(new)) {
            (Some((a, before)), Some((b, after))) => a == b && before < after,
            (None, _) | (_, None) => false,
        };
        if !is_ordered {
            return Err(EventError::NotOneEvent {
                level: *level,
                old: old.to_owned(),
                new: new.to_owned(),
            });
        }
    }
    let direct = Relation::of_kinds(rulebook, (old, new), content, documents);
    let mut found: Vec<Relation> = match is_transitive {
        Some(_) => relations(rulebook, new, content, documents),
        None => Vec::new(),
    };
    // A level that is not transitive looks at the last relation only: that to the given older version.
    found.retain(|relation| relation.old != old);
    found.extend(direct);
    Ok(found)
}
