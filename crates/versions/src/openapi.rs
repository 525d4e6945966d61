//! Compares two OpenAPI documents: operations, parameters, bodies and responses.
//!
//! Operations are the same by method and path, whatever their path parameters are called, or else by id.

use super::Comparison;
use super::coordinates::{Action, Direction, What};
use super::ledger::{Ledger, Note, Subject};
use super::schemas;
use conformant_openapi::{Surface, SurfaceOperation, SurfaceParameter};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the request body among the parameters.
const BODY: &str = "body";

/// Compares two documents.
pub fn openapi(old: (&str, &Surface), new: (&str, &Surface)) -> Comparison {
    let mut ledger = Ledger::default();
    let service = new.1.service.as_str();
    for (before, after) in pairs(&old.1.operations, &new.1.operations) {
        let Some(some) = after.or(before) else {
            continue;
        };
        let mut pair = Pair {
            ledger: &mut ledger,
            service,
            id: &some.id,
        };
        match (before, after) {
            (Some(before), Some(after)) => pair.compare(before, after),
            (before, after) => {
                let note = Note::appears(What::Operation, after.is_some(), Direction::Request);
                pair.note(note.between(before.map(shown), after.map(shown)));
            }
        }
    }
    Comparison::of(old.0, new.0, ledger)
}

type Found<'a> = (Option<&'a SurfaceOperation>, Option<&'a SurfaceOperation>);

/// The operations of both sides, matched.
fn pairs<'a>(old: &'a [SurfaceOperation], new: &'a [SurfaceOperation]) -> Vec<Found<'a>> {
    let mut left: Vec<&SurfaceOperation> = new.iter().collect();
    let mut take = |is_same: &dyn Fn(&SurfaceOperation) -> bool| {
        let at = left.iter().position(|operation| is_same(operation))?;
        Some(left.remove(at))
    };
    let by_address = old.iter().map(|before| {
        (
            Some(before),
            take(&|after| after.address() == before.address()),
        )
    });
    let mut all: Vec<Found<'_>> = by_address.collect();
    for (before, after) in &mut all {
        let by_id = || take(&|after| before.is_some_and(|before| before.id == after.id));
        *after = after.or_else(by_id);
    }
    all.extend(left.into_iter().map(|after| (None, Some(after))));
    all
}

fn shown(operation: &SurfaceOperation) -> String {
    format!("{} {}", operation.method.to_uppercase(), operation.path)
}

/// One operation of both documents.
struct Pair<'a> {
    ledger: &'a mut Ledger,
    service: &'a str,
    id: &'a str,
}

impl Pair<'_> {
    fn note(&mut self, note: Note) {
        let subject = Subject::Operation {
            service: self.service.to_owned(),
            operation: self.id.to_owned(),
        };
        self.ledger.note(&subject, note);
    }

    fn parameter_place(&self, parameter: &str) -> impl Fn(&str) -> Subject + use<> {
        let (service, operation) = (self.service.to_owned(), self.id.to_owned());
        let parameter = parameter.to_owned();
        move |pointer| Subject::Parameter {
            service: service.clone(),
            operation: operation.clone(),
            parameter: parameter.clone(),
            pointer: pointer.to_owned(),
        }
    }

    fn compare(&mut self, old: &SurfaceOperation, new: &SurfaceOperation) {
        if old.address() != new.address() {
            let note = Note::new(What::Address, Action::Changed, Direction::Request);
            self.note(note.between(Some(shown(old)), Some(shown(new))));
        }
        if old.is_secured != new.is_secured {
            let is_secured = new.is_secured;
            self.note(Note::appears(
                What::Credentials,
                is_secured,
                Direction::Request,
            ));
        }
        self.parameters(old, new);
        self.body(old, new);
        self.answers(old, new);
    }

    fn parameters(&mut self, old: &SurfaceOperation, new: &SurfaceOperation) {
        let (before, after) = (keyed(old), keyed(new));
        let keys: BTreeSet<&(String, String)> = before.keys().chain(after.keys()).collect();
        for key in keys {
            let (a, b) = (before.get(key).copied(), after.get(key).copied());
            let Some(some) = b.or(a) else { continue };
            let place = self.parameter_place(&some.name);
            let location = |p: Option<&SurfaceParameter>| p.map(|p| format!("in the {}", p.place));
            if a.is_none() || b.is_none() {
                let note = Note::appears(What::Parameter, b.is_some(), Direction::Request);
                self.ledger
                    .note(&place(""), note.between(location(a), location(b)));
            }
            let sides = [a, b].map(|p| p.is_some_and(|p| p.is_required));
            self.required(&place(""), sides);
            if let (Some(a), Some(b)) = (a, b) {
                let both = (&a.schema, &b.schema);
                schemas::alone(self.ledger, both, Direction::Request, &place);
            }
        }
    }

    fn required(&mut self, subject: &Subject, [before, after]: [bool; 2]) {
        if before != after {
            let note = Note::appears(What::Required, after, Direction::Request);
            self.ledger.note(subject, note);
        }
    }

    fn body(&mut self, old: &SurfaceOperation, new: &SurfaceOperation) {
        let place = self.parameter_place(BODY);
        let (old, new) = (old.body.as_ref(), new.body.as_ref());
        if old.is_some() != new.is_some() {
            let note = Note::appears(What::Parameter, new.is_some(), Direction::Request);
            self.ledger.note(&place(""), note);
        }
        let sides = [old, new].map(|body| body.is_some_and(|body| body.is_required));
        self.required(&place(""), sides);
        let (Some(old), Some(new)) = (old, new) else {
            return;
        };
        self.media(&old.media, &new.media, What::Encoding, "", &place);
    }

    fn answers(&mut self, old: &SurfaceOperation, new: &SurfaceOperation) {
        let statuses: BTreeSet<&String> = old.answers.keys().chain(new.answers.keys()).collect();
        for status in statuses {
            let name = format!("{}/{}/{status}", self.service, self.id);
            let place = |pointer: &str| Subject::representation(&name, &name, pointer);
            match (old.answers.get(status), new.answers.get(status)) {
                (Some(old), Some(new)) => self.media(old, new, What::Answer, status, &place),
                (_, after) => {
                    let note = Note::appears(What::Answer, after.is_some(), Direction::Response);
                    self.note(note.detail(status));
                }
            }
        }
    }

    /// Compares the media types of a body or a response, and the schema of each that both have.
    fn media(
        &mut self,
        old: &BTreeMap<String, Value>,
        new: &BTreeMap<String, Value>,
        what: What,
        status: &str,
        place: &dyn Fn(&str) -> Subject,
    ) {
        let direction = match what == What::Answer {
            true => Direction::Response,
            false => Direction::Request,
        };
        let all: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for media in all {
            match (old.get(media), new.get(media)) {
                (Some(a), Some(b)) => schemas::alone(self.ledger, (a, b), direction, place),
                (_, after) => {
                    let detail = format!("{status} {media}");
                    let note = Note::appears(what, after.is_some(), direction);
                    self.note(note.detail(detail.trim()));
                }
            }
        }
    }
}

/// The parameters by place and name; those of the path by their position.
fn keyed(operation: &SurfaceOperation) -> BTreeMap<(String, String), &SurfaceParameter> {
    let names = operation.path_names();
    let parameters = operation.parameters.iter().map(|parameter| {
        let position = names.iter().position(|name| *name == parameter.name);
        let name = match (parameter.place.as_str(), position) {
            ("path", Some(position)) => position.to_string(),
            ("header", _) => parameter.name.to_ascii_lowercase(),
            _ => parameter.name.clone(),
        };
        ((parameter.place.clone(), name), parameter)
    });
    parameters.collect()
}
