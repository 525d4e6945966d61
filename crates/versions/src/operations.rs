//! Compares operations: address, parameters and response.

use super::coordinates::{Action, Direction, What};
use super::ledger::{Ledger, Note, Subject};
use super::schemas;
use conformant_base::sorted::SortedMap;
use conformant_record::Level;
use conformant_rulebook::{Operation, Parameter, ParameterLocation, Rulebook};
use std::collections::BTreeSet;

/// Compares every operation of either rulebook, and the versions in their paths.
pub(super) fn compare(ledger: &mut Ledger, old: &Rulebook, new: &Rulebook) {
    for name in union(&old.services, &new.services) {
        let of = |rulebook: &Rulebook| {
            let service = rulebook.services.get(&name);
            service.map_or_else(SortedMap::new, |service| service.operations.clone())
        };
        let (before, after) = (of(old), of(new));
        versions(ledger, &name, &before, &after);
        for id in union(&before, &after) {
            let subject = Subject::Operation {
                service: name.clone(),
                operation: id.clone(),
            };
            match (before.get(&id), after.get(&id)) {
                (Some(a), Some(b)) => Pair {
                    ledger,
                    old: (old, a),
                    new: (new, b),
                    subject,
                }
                .compare(),
                (before, after) => {
                    let note = Note::appears(What::Operation, after.is_some(), Direction::Request);
                    let note = note.between(before.map(address), after.map(address));
                    ledger.note(&subject, note);
                }
            }
        }
    }
}

/// Names of either, sorted.
pub(super) fn union<V>(a: &SortedMap<String, V>, b: &SortedMap<String, V>) -> BTreeSet<String> {
    a.keys().chain(b.keys()).cloned().collect()
}

/// Versions in paths that were added or removed with all their operations.
fn versions(
    ledger: &mut Ledger,
    service: &str,
    old: &SortedMap<String, Operation>,
    new: &SortedMap<String, Operation>,
) {
    let of = |operations: &SortedMap<String, Operation>| -> BTreeSet<String> {
        operations
            .values()
            .filter_map(|o| version(&o.path))
            .map(|(v, _)| v.to_owned())
            .collect()
    };
    let (before, after) = (of(old), of(new));
    for (found, action) in [
        (after.difference(&before), Action::Added),
        (before.difference(&after), Action::Removed),
    ] {
        for version in found {
            let subject = Subject::PathVersion {
                service: service.to_owned(),
                version: version.clone(),
            };
            let note = Note::new(What::PathVersion, action, Direction::Request);
            ledger.note(&subject, note);
        }
    }
}

/// Splits the version from a path: `/v3/Services` -> `v3`, `/Services`.
fn version(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix('/')?;
    let (first, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let digits = first.strip_prefix('v')?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some((first, behind))
}

/// `POST /v2/Services`.
fn address(operation: &Operation) -> String {
    match &operation.path_from {
        Some(key) => format!("{} <{key} of the configuration>", operation.method),
        None => format!("{} {}", operation.method, operation.path),
    }
}

/// One operation in both rulebooks.
struct Pair<'a> {
    ledger: &'a mut Ledger,
    old: (&'a Rulebook, &'a Operation),
    new: (&'a Rulebook, &'a Operation),
    subject: Subject,
}

impl Pair<'_> {
    fn compare(mut self) {
        let (old, new) = (self.old.1, self.new.1);
        self.address();
        if old.summary != new.summary {
            let note = Note::new(What::Words, Action::Changed, Direction::Request);
            self.note(note.between(Some(&old.summary), Some(&new.summary)));
        }
        if old.secured != new.secured {
            let is_secured = new.secured;
            self.note(Note::appears(
                What::Credentials,
                is_secured,
                Direction::Request,
            ));
        }
        self.encodings();
        self.answer("accepted", old.response.as_ref(), new.response.as_ref());
        self.answer("refused", old.error.as_ref(), new.error.as_ref());
        if old.list_key != new.list_key && old.response.is_some() && new.response.is_some() {
            let note = Note::new(What::ListKey, Action::Changed, Direction::Response);
            self.note(note.between(old.list_key.as_deref(), new.list_key.as_deref()));
        }
        self.parameters();
    }

    fn note(&mut self, note: Note) {
        self.ledger.note(&self.subject, note);
    }

    fn address(&mut self) {
        let (old, new) = (address(self.old.1), address(self.new.1));
        if old == new {
            return;
        }
        let moved = match (version(&self.old.1.path), version(&self.new.1.path)) {
            (Some((a, behind_a)), Some((b, behind_b))) => a != b && behind_a == behind_b,
            (None, _) | (_, None) => false,
        };
        let same_method = self.old.1.method == self.new.1.method;
        let what = if moved && same_method {
            What::PathVersion
        } else {
            What::Address
        };
        let note = Note::new(what, Action::Changed, Direction::Request);
        self.note(note.between(Some(old), Some(new)));
    }

    fn encodings(&mut self) {
        let (old, new) = (&self.old.1.bodies, &self.new.1.bodies);
        for (have, lack, action) in [(new, old, Action::Added), (old, new, Action::Removed)] {
            for media in have.iter().filter(|media| !lack.contains(media)) {
                let note = Note::new(What::Encoding, action, Direction::Request).detail(media);
                self.ledger.note(&self.subject, note);
            }
        }
    }

    fn answer(&mut self, which: &str, old: Option<&String>, new: Option<&String>) {
        if let Some(action) = Action::of(old, new) {
            let note = Note::new(What::Answer, action, Direction::Response).detail(which);
            self.note(note.between(old, new));
        }
    }

    fn parameters(&mut self) {
        type ByPlace<'a> = SortedMap<(&'a str, ParameterLocation), &'a Parameter>;
        fn by_place(operation: &Operation) -> ByPlace<'_> {
            let parameters = operation.parameters.iter();
            parameters
                .map(|p| ((p.name.as_str(), p.place), p))
                .collect()
        }
        let (before, after) = (by_place(self.old.1), by_place(self.new.1));
        let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        for key in keys {
            self.parameter(before.get(key).copied(), after.get(key).copied());
        }
    }

    fn parameter(&mut self, old: Option<&Parameter>, new: Option<&Parameter>) {
        let Some(some) = new.or(old) else { return };
        let (service, operation) = (&self.new.1.service, &self.new.1.id);
        let place = |pointer: &str| Subject::Parameter {
            service: service.clone(),
            operation: operation.clone(),
            parameter: some.name.clone(),
            pointer: pointer.to_owned(),
        };
        let duty = |rulebook: &Rulebook, parameter: Option<&Parameter>| {
            let rule = parameter.and_then(|p| rulebook.rules.get(&p.rule));
            rule.is_some_and(|r| r.level == Level::Must)
        };
        let binding = duty(self.old.0, old) || duty(self.new.0, new);
        let request = |what, action| Note::new(what, action, Direction::Request).binding(binding);
        let required = |p: Option<&Parameter>| p.is_some_and(|p| p.required);
        let (old_place, new_place) = (old.map(where_), new.map(where_));
        if old.is_none() || new.is_none() {
            let note = request(What::Parameter, Action::appears(new.is_some()))
                .between(old_place, new_place);
            self.ledger.note(&place(""), note);
        }
        if required(old) != required(new) {
            let action = Action::appears(required(new));
            self.ledger
                .note(&place(""), request(What::Required, action));
        }
        let (Some(old), Some(new)) = (old, new) else {
            return;
        };
        if old.description != new.description {
            let note = request(What::Words, Action::Changed);
            let note = note.between(Some(&old.description), Some(&new.description));
            self.ledger.note(&place(""), note);
        }
        let echo = |p: &Parameter| {
            let echo = p.echo.as_ref()?;
            let as_ = format!("{:?}", echo.compare).to_lowercase();
            let mut places = vec![format!("{} as {as_}", echo.at)];
            places.extend(echo.or.iter().map(ToString::to_string));
            Some(places.join(" or "))
        };
        let (before, after) = (echo(old), echo(new));
        if let Some(action) = Action::of(before.as_ref(), after.as_ref()) {
            let note = request(What::Echo, action).between(before, after);
            self.ledger.note(&place(""), note);
        }
        let (a, b) = ((self.old.0, &old.schema), (self.new.0, &new.schema));
        schemas::parameter(self.ledger, a, b, &place, binding);
    }
}

/// The location of a parameter, in a word.
fn where_(parameter: &Parameter) -> String {
    let place = match parameter.place {
        ParameterLocation::Path => "path",
        ParameterLocation::Query => "query",
        ParameterLocation::Header => "header",
        ParameterLocation::Body => "body",
    };
    format!("in the {place}")
}
