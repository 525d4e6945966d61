//! Streams of captured events with type, schema address and payload, in any mixture of types and versions.
//!
//! A payload is judged by the schema that its address names. Neither the envelope nor the order of events is judged,
//! because the documents define neither (D1, Events).

use super::document::DocumentJudge;
use super::envelope::{Envelope, EventError, Mapping};
use super::fast_path::{Envelopes, FastPath, LookInside, Part, TypeFastPath};
use super::lines::{Judged, LineJudge, Quick};
use super::payloads;
use super::unknown_types::UnknownTypes;
use conformant_base::json;
use conformant_judge::Judgment;
use conformant_record::Finding;
use conformant_rulebook::Rulebook;

/// The rule about type and schema address.
const SCHEMA_ADDRESS: &str = "events/schema-address";
/// Placeholder for the vendor in type names (D1, introduction).
const VENDOR: &str = "svc";

/// Judge of a stream.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    one: DocumentJudge<'a>,
    mapping: Mapping,
    envelopes: Option<Envelopes>,
    /// The day in the file's path, for events without a time.
    day: &'a str,
}

/// What is documented about the type of an event.
#[derive(Debug, PartialEq, Eq)]
enum TypeOf<'r> {
    /// A payload. Its schema is that of the announced version, or of the current one without an address or with a wrong one.
    Described {
        kind: &'r str,
        /// The end of the expected address, if the announced one is wrong.
        expected_address: Option<String>,
    },
    /// Only the type.
    WithoutPayload,
    Undocumented,
}

impl<'a> Stream<'a> {
    pub(super) fn new(one: DocumentJudge<'a>, mapping: &Mapping) -> Self {
        let paths = [
            (Part::Type, &mapping.type_at),
            (Part::Schema, &mapping.schema_at),
            (Part::Payload, &mapping.payload_at),
        ]
        .map(|(part, pointer)| (part, json::segments(pointer).collect()));
        Self {
            one,
            mapping: mapping.clone(),
            day: payloads::day_of_path(one.name),
            envelopes: fast_paths(one.rulebook).and_then(|types| Envelopes::of(&paths, types)),
        }
    }

    /// Judges the events of a line or a file.
    pub(super) fn text(&self, line: usize, bytes: &[u8]) -> Judged {
        match self.mapping.events(bytes) {
            Err(why) => self.unreadable(line, &why.to_string()),
            Ok(events) => {
                let mut judged = Judged::default();
                for (index, event) in events.iter().enumerate() {
                    // Without a line, the file is a single document: the events of its array are counted.
                    let number = if line == 0 { index + 1 } else { line };
                    judged.merge(self.event(number, event), usize::MAX);
                }
                judged
            }
        }
    }

    fn event(&self, line: usize, event: &Envelope<'_>) -> Judged {
        let mut judged = Judged::default();
        let schema = event.schema.as_deref();
        let Some(name) = event.r#type.as_deref() else {
            let why = EventError::NoType(self.mapping.type_at.clone());
            return Judged::skipped(line, why.to_string());
        };
        let (kind, expected_address) = match type_of(self.one.rulebook, name, schema) {
            TypeOf::Undocumented => {
                judged.foreign = UnknownTypes::one(name, line);
                return judged;
            }
            TypeOf::WithoutPayload => {
                *judged.types.entry(canonical(name)).or_default() += 1;
                judged.sums.add_documents(&canonical(name), 1, 0);
                judged.documents = 1;
                return judged;
            }
            TypeOf::Described {
                kind,
                expected_address,
            } => (kind, expected_address),
        };
        let Some(payload) = &event.payload else {
            let why = EventError::NoPayload(self.mapping.payload_at.clone());
            return Judged::skipped(line, why.to_string());
        };
        let mut judgment = match self.one.read(kind, line, payload) {
            Ok(parsed) => self.one.payload(line, kind, parsed),
            Err(why) => {
                let why = format!("the payload at {}: {why}", self.mapping.payload_at);
                return self.unreadable(line, &why);
            }
        };
        *judged.types.entry(canonical(name)).or_default() += 1;
        if let Some(schema) = schema {
            self.address(line, name, schema, expected_address, &mut judgment);
        }
        let day = event.time.as_deref().and_then(payloads::day);
        judged.merge(
            Judged::one(kind, day.unwrap_or(self.day), judgment),
            usize::MAX,
        );
        judged
    }

    fn address(
        &self,
        line: usize,
        name: &str,
        schema: &str,
        expected_address: Option<String>,
        judgment: &mut Judgment,
    ) {
        let Some(rule) = self.one.rulebook.rules.get(SCHEMA_ADDRESS) else {
            return;
        };
        let finding = expected_address.map(|expected| Finding {
            kind: "schema-address".to_owned(),
            pointer: self.mapping.schema_at.clone(),
            message: format!(
                "{name} announces {schema}, expected an address that ends in {expected}"
            ),
            expected: format!("…{expected}"),
            actual: schema.to_owned(),
            ..self.one.found(rule, line)
        });
        judgment.conclude(&rule.id, finding);
    }
}

/// The fast path for every type with its present version; none if it does not support one of them.
fn fast_paths(rulebook: &Rulebook) -> Option<Vec<TypeFastPath>> {
    let mut types = Vec::new();
    for (name, kind) in &rulebook.event_types {
        let payload = match kind {
            Some(kind) => Some(FastPath::of(rulebook, kind)?),
            None => None,
        };
        types.push(TypeFastPath {
            name: behind_the_vendor(name)?.to_owned(),
            schema: kind.as_deref().map(address_end).unwrap_or_default(),
            payload,
        });
    }
    Some(types)
}

/// What is documented about an event of this type with this schema address.
fn type_of<'r>(rulebook: &'r Rulebook, name: &str, schema: Option<&str>) -> TypeOf<'r> {
    let Some(current) = rulebook.event_types.get(&canonical(name)) else {
        return TypeOf::Undocumented;
    };
    let Some(current) = current else {
        return TypeOf::WithoutPayload;
    };
    // Another known version of the same event: both may be in use.
    let announced = schema.and_then(|address| {
        let kind = rulebook.announced_version(current, schema);
        address.ends_with(&address_end(kind)).then_some(kind)
    });
    let is_wrong = schema.is_some() && announced.is_none();
    TypeOf::Described {
        kind: announced.unwrap_or(current),
        expected_address: is_wrong.then(|| address_end(current)),
    }
}

/// The end of a schema address: `/CommsApi.MessageSent/4` (D1, Message and operation events).
fn address_end(kind: &str) -> String {
    kind.replacen("events/", "/CommsApi.", 1)
}

/// The kind for such an end of an address: `events/MessageSent/4`.
fn kind_of(address_end: &str) -> Option<String> {
    let name = address_end.strip_prefix("/CommsApi.")?;
    Some(format!("events/{name}"))
}

/// The type with the vendor's segment as in the documents.
pub(super) fn canonical(name: &str) -> String {
    behind_the_vendor(name).map_or_else(|| name.to_owned(), |rest| format!("com.{VENDOR}.{rest}"))
}

/// The type name after the vendor's segment: `comms-api.message.sent`.
pub(super) fn behind_the_vendor(name: &str) -> Option<&str> {
    name.get(vendor_end(name.as_bytes())?..)
}

/// Where that part begins: behind `com.VENDOR.`.
pub(super) fn vendor_end(name: &[u8]) -> Option<usize> {
    let start = b"com.".len();
    let vendor = memchr::memchr(b'.', name.strip_prefix(b"com.")?)?;
    let end = start + vendor + 1;
    (vendor > 0 && name[end..].starts_with(b"comms-api.")).then_some(end)
}

impl LineJudge for Stream<'_> {
    type Quick<'q>
        = LookInside<'q>
    where
        Self: 'q;

    fn quick(&self) -> Option<LookInside<'_>> {
        self.envelopes.as_ref().map(LookInside::new)
    }

    fn full(&self, line: usize, bytes: &[u8]) -> Judged {
        self.text(line, bytes)
    }

    fn unreadable(&self, line: usize, why: &str) -> Judged {
        Judged::unreadable(line, why.to_owned())
    }
}

impl Quick for LookInside<'_> {
    fn line(&mut self, text: &[u8]) -> Option<usize> {
        LookInside::line(self, text)
    }

    fn finish(self) -> Judged {
        let (types, judgment) = self.finish();
        let mut judged = Judged {
            judgment,
            ..Judged::default()
        };
        let mut announced = 0;
        for (of_type, passed) in types {
            if passed.events > 0 {
                judged.documents += passed.events;
                announced += passed.announced;
                let name = format!("com.{VENDOR}.{}", of_type.name);
                let kind = kind_of(&of_type.schema).unwrap_or_else(|| name.clone());
                judged.sums.add_documents(&kind, passed.events, 0);
                judged.types.insert(name, passed.events);
            }
        }
        if announced > 0 {
            judged.judgment.count(SCHEMA_ADDRESS, announced);
        }
        judged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Surroundings;
    use crate::blocks::{Blocks, Source};
    use crate::lines;
    use conformant_judge::load::shared as rulebook;
    use conformant_schema::Schemas;
    use std::collections::BTreeMap;

    /// Judges a stream with and without the fast path: both must agree.
    fn judge(mapping: &Mapping, text: &str) -> Judged {
        let (schemas, surroundings) = (Schemas::default(), Surroundings::default());
        let one = DocumentJudge {
            rulebook: rulebook(),
            schemas: &schemas,
            surroundings: &surroundings,
            name: "events.ndjson",
        };
        let stream = Stream::new(one, mapping);
        let mut source = text.as_bytes();
        let blocks = Blocks::of(Source::Stream(&mut source), Vec::new());
        let quick = lines::judge(&stream, blocks, 2, 1_000, None).unwrap();
        let mut full = Judged::default();
        for (index, line) in text.lines().enumerate() {
            if !line.trim().is_empty() {
                full.merge(stream.full(index + 1, line.as_bytes()), 1_000);
            }
        }
        let counts = |judged: &Judged| {
            (
                judged.judgment.tallies.clone(),
                format!("{:?}", judged.judgment.findings),
                judged.types.clone(),
                (judged.documents, judged.foreign.events),
                judged.sums.clone(),
                judged.notes.clone(),
            )
        };
        assert_eq!(counts(&quick), counts(&full));
        quick
    }

    fn found(judged: &Judged) -> Vec<(usize, &str, &str)> {
        let found = judged.judgment.findings.iter();
        found
            .map(|f| (f.exchange, f.rule.as_str(), f.pointer.as_str()))
            .collect()
    }

    fn cloud(kind: &str, schema: &str, data: &str) -> String {
        format!(
            r#"{{"specversion":"1.0","type":"com.acme.comms-api.{kind}","source":"/x","id":"1","dataschema":"https://events.example/{schema}","data":{data}}}"#
        )
    }

    #[test]
    fn types_and_versions_are_mixed_and_each_is_judged_as_what_it_is() {
        let lines = [
            cloud(
                "message.sent",
                "CommsApi.MessageSent/4",
                r#"{"attempt":"1"}"#,
            ),
            cloud(
                "operation.completed",
                "CommsApi.OperationCompleted/2",
                r#"{"operation_id":"a"}"#,
            ),
            // A field of another event.
            cloud(
                "operation.completed",
                "CommsApi.OperationCompleted/2",
                r#"{"attempt":"1"}"#,
            ),
            cloud("message.sent", "CommsApi.MessageSent/4", r#"{"attempt":1}"#),
            // The schema of another event.
            cloud(
                "message.sent",
                "CommsApi.MessageQueued/3",
                r#"{"attempt":"1"}"#,
            ),
            cloud("message.read", "anything", "{}"),
            cloud("message.pinned", "CommsApi.MessagePinned/1", "{}"),
            r#"{"data":{"attempt":"1"},"type":"com.svc.comms-api.message.sent"}"#.to_owned(),
        ];
        let judged = judge(&Mapping::default(), &lines.join("\n"));
        let rules: Vec<(usize, &str)> = found(&judged).iter().map(|f| (f.0, f.2)).collect();
        assert_eq!(
            rules,
            [(3, "/attempt"), (4, "/attempt"), (5, "/dataschema")]
        );
        assert_eq!(found(&judged)[2].1, SCHEMA_ADDRESS);
        assert_eq!((judged.documents, judged.foreign.events), (7, 1));
        assert_eq!(
            judged.foreign.types["com.acme.comms-api.message.pinned"].line,
            7
        );
        let types: BTreeMap<&str, usize> =
            judged.types.iter().map(|(t, n)| (t.as_str(), *n)).collect();
        let wanted = [
            ("com.svc.comms-api.message.read", 1),
            ("com.svc.comms-api.message.sent", 4),
            ("com.svc.comms-api.operation.completed", 2),
        ];
        assert_eq!(types, wanted.into());
        // With a schema address of a documented payload.
        assert_eq!(judged.judgment.tallies[SCHEMA_ADDRESS].judged(), 5);
    }

    #[test]
    fn an_address_ends_in_the_whole_name_and_version() {
        for wrong in [
            "XCommsApi.MessageSent/4",
            "CommsApi.MessageSent/14",
            "CommsApi.MessageSent/04",
            "MessageSent/4",
            "",
        ] {
            let line = cloud("message.sent", wrong, "{}");
            let judged = judge(&Mapping::default(), &line);
            assert_eq!(
                found(&judged),
                [(1, SCHEMA_ADDRESS, "/dataschema")],
                "{wrong}"
            );
        }
    }

    #[test]
    fn places_without_an_event_are_reported_and_later_ones_judged() {
        let text =
            "7\n{broken\n{\"type\":7}\n{\"type\":\"com.svc.comms-api.message.sent\"}\n\n[]\n";
        let judged = judge(&Mapping::default(), text);
        assert_eq!((judged.documents, judged.sums.unreadable), (0, 4));
        assert_eq!(judged.malformed, 2);
        assert_eq!(judged.notes[0].to_string(), "line 1: no object");
        assert_eq!(judged.notes[2].to_string(), "line 3: no type at /type");
        assert_eq!(judged.notes[3].to_string(), "line 4: no payload at /data");
    }

    #[test]
    fn a_line_may_hold_a_batch() {
        let sent = cloud("message.sent", "CommsApi.MessageSent/4", r#"{"attempt":1}"#);
        let judged = judge(&Mapping::default(), &format!("[{sent},{sent}]\n{sent}"));
        assert_eq!(judged.documents, 3);
        let lines: Vec<usize> = found(&judged).iter().map(|f| f.0).collect();
        assert_eq!(lines, [1, 1, 2]);
    }

    #[test]
    fn other_envelopes_have_a_fast_path() {
        let mapping = Mapping {
            type_at: "/meta/kind".to_owned(),
            schema_at: "/meta/schema".to_owned(),
            payload_at: "/body/payload".to_owned(),
        };
        let line = |payload: &str| {
            format!(
                r#"{{"meta":{{"kind":"com.svc.comms-api.message.sent","schema":"s/CommsApi.MessageSent/4"}},"body":{{"payload":{payload}}}}}"#
            )
        };
        let text = format!(
            "{}\n{}\n",
            line(r#"{"attempt":"1"}"#),
            line(r#"{"attempt":1}"#)
        );
        let judged = judge(&mapping, &text);
        assert_eq!((judged.documents, found(&judged)[0].2), (2, "/attempt"));
    }

    #[test]
    fn every_type_has_a_fast_path() {
        assert_eq!(
            fast_paths(rulebook()).unwrap().len(),
            rulebook().event_types.len()
        );
    }
}
