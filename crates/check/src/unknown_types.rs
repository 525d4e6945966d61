//! Events of types that the documents do not describe: the number of each and where it stands first.
//!
//! Other types may exist (`events/open/further-types`), so that they are counted and not judged. A type that is similar to
//! a documented one may be a mistake.

use super::stream::{behind_the_vendor, canonical, vendor_end};
use conformant_rulebook::{Rulebook, distance};
use std::collections::BTreeMap;

/// Maximum number of types that are distinguished; events of further ones are counted together.
const TYPES_MAX: usize = 100;

/// Longer names are not compared.
const NAME_BYTES_MAX: usize = 200;

/// Undocumented types of a file.
#[derive(Debug, Default)]
pub(super) struct UnknownTypes {
    /// All events.
    pub(super) events: usize,
    pub(super) types: BTreeMap<String, FirstSeen>,
}

/// Events of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FirstSeen {
    pub(super) events: usize,
    /// Line of the first one, or its place in an array.
    pub(super) line: usize,
}

/// An event type that the documents do not describe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownType {
    pub name: String,
    pub events: usize,
    /// File and line of the first event.
    pub first: String,
    /// A similar documented type.
    pub similar: Option<String>,
    /// Whether the name has the form of the documented types.
    pub is_of_form: bool,
}

impl UnknownTypes {
    /// One event.
    pub(super) fn one(name: &str, line: usize) -> Self {
        let first = FirstSeen { events: 1, line };
        Self {
            events: 1,
            types: BTreeMap::from([(name.to_owned(), first)]),
        }
    }

    /// Adds the types of later lines.
    pub(super) fn merge(&mut self, later: Self) {
        self.events += later.events;
        for (name, seen) in later.types {
            if let Some(known) = self.types.get_mut(&name) {
                known.events += seen.events;
                known.line = known.line.min(seen.line);
            } else if self.types.len() < TYPES_MAX {
                self.types.insert(name, seen);
            }
        }
    }

    /// Shifts line numbers.
    pub(super) fn shift(&mut self, lines: usize) {
        for seen in self.types.values_mut() {
            seen.line += lines;
        }
    }
}

impl UnknownType {
    pub(super) fn new(rulebook: &Rulebook, file: &str, name: &str, seen: FirstSeen) -> Self {
        Self {
            name: name.to_owned(),
            events: seen.events,
            first: format!("{file}: line {}", seen.line),
            similar: similar(rulebook, name),
            is_of_form: vendor_end(name.as_bytes()).is_some(),
        }
    }
}

/// A documented type that differs in two characters at most, with the vendor of this one.
fn similar(rulebook: &Rulebook, name: &str) -> Option<String> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let canonical = canonical(name);
    let known = rulebook.event_types.keys();
    let alike = known.map(|known| (distance(&canonical, known), known));
    let (_, found) = alike.filter(|(distance, _)| *distance <= 2).min()?;
    let vendor = vendor_end(name.as_bytes()).and_then(|end| name.get(..end));
    Some(match vendor.zip(behind_the_vendor(found)) {
        Some((vendor, rest)) => format!("{vendor}{rest}"),
        None => found.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_judge::load::shared as rulebook;

    #[test]
    fn a_similar_documented_type_is_named_with_the_same_vendor() {
        for (name, wanted, is_of_form) in [
            (
                "com.svc.comms-api.message.sennt",
                Some("com.svc.comms-api.message.sent"),
                true,
            ),
            (
                "com.acme.comms-api.mesage.sent",
                Some("com.acme.comms-api.message.sent"),
                true,
            ),
            (
                "com.svc.comms-apis.message.sent",
                Some("com.svc.comms-api.message.sent"),
                false,
            ),
            ("com.svc.comms-api.message.pinned", None, true),
            ("org.example.order.created", None, false),
        ] {
            let seen = FirstSeen { events: 2, line: 7 };
            let found = UnknownType::new(rulebook(), "a.ndjson", name, seen);
            assert_eq!(
                (found.similar.as_deref(), found.is_of_form),
                (wanted, is_of_form),
                "{name}"
            );
            assert_eq!(found.first, "a.ndjson: line 7");
        }
    }

    #[test]
    fn types_are_counted_from_their_first_line_up_to_a_limit() {
        let mut all = UnknownTypes::default();
        let mut later = UnknownTypes::one("a", 1);
        later.shift(10);
        all.merge(later);
        all.merge(UnknownTypes::one("a", 3));
        for n in 0..2 * TYPES_MAX {
            all.merge(UnknownTypes::one(&format!("t{n}"), 1));
        }
        assert_eq!(all.types["a"], FirstSeen { events: 2, line: 3 });
        assert_eq!((all.events, all.types.len()), (202, TYPES_MAX));
    }
}
