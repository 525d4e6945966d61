//! Judges single documents of a file.

use super::Surroundings;
use conformant_base::json::{self, Limits, Parsed};
use conformant_judge::evidence::{Evidence, Payload};
use conformant_judge::{Judgment, judge};
use conformant_record::Finding;
use conformant_rulebook::service::ServiceFile;
use conformant_rulebook::{Rule, Rulebook, xml};
use conformant_schema::{Schemas, rule_of_whole};
use serde_json::Value;
use std::sync::Arc;

/// Kind of the finding about a line that is not a document.
pub(super) const UNREADABLE: &str = "unreadable";

/// Judges the documents of one file.
#[derive(Clone, Copy, Debug)]
pub(super) struct DocumentJudge<'a> {
    pub(super) rulebook: &'a Rulebook,
    pub(super) schemas: &'a Schemas,
    pub(super) surroundings: &'a Surroundings,
    pub(super) name: &'a str,
}

impl DocumentJudge<'_> {
    /// Judges one document in JSON, or in XML for the service that responds in both; `line` is 0 if the file has no other.
    pub(super) fn document(&self, kind: &str, line: usize, bytes: &[u8]) -> Judgment {
        let service = kind.split('/').next();
        let service = service.and_then(|name| self.rulebook.index.get(name));
        if service.is_some_and(ServiceFile::has_xml) && bytes.trim_ascii_start().starts_with(b"<") {
            let schema = self.rulebook.kinds.get(kind).map(|known| &known.schema);
            return match xml::to_value(bytes, schema) {
                Ok(value) => self.payload(line, kind, made_of(value)),
                Err(fault) => self.unreadable(kind, line, &format!("XML: {fault}")),
            };
        }
        match json::parse(bytes, Limits::default()) {
            Ok(parsed) => self.payload(line, kind, parsed),
            Err(fault) => self.unreadable(kind, line, &fault.to_string()),
        }
    }

    /// Judges one readable document.
    pub(super) fn payload(&self, line: usize, kind: &str, parsed: Parsed) -> Judgment {
        let payload = Payload {
            kind: kind.to_owned(),
            value: Arc::new(parsed.value),
            notes: parsed.notes,
            step: line,
        };
        let evidence = Evidence {
            scenario: self.name.to_owned(),
            payloads: vec![payload],
            configured: self.surroundings.configured.clone(),
            now: self.surroundings.now,
            ..Evidence::default()
        };
        let mut judgment = judge(self.rulebook, self.schemas, &evidence);
        for finding in &mut judgment.findings {
            finding.step = line;
            finding.exchange = line;
            finding.line = line;
        }
        judgment
    }

    /// An unreadable document breaks the root rule of its type, like a document of another type.
    pub(super) fn unreadable(&self, kind: &str, line: usize, why: &str) -> Judgment {
        // The parser sees one line, which is not the first of the file.
        let of_line = why.replacen(" at line 1, column ", " at column ", 1);
        let why = if line > 0 { of_line.as_str() } else { why };
        let mut judgment = Judgment::default();
        let rule = rule_of_whole(self.rulebook, kind).and_then(|id| self.rulebook.rules.get(&id));
        let Some(rule) = rule else { return judgment };
        let finding = Finding {
            kind: UNREADABLE.to_owned(),
            expected: format!("a document of {kind}"),
            actual: why.to_owned(),
            message: format!("not a readable document: {why}"),
            ..self.found(rule, line)
        };
        judgment.conclude(&rule.id, Some(finding));
        judgment
    }

    /// A finding of this rule in this file, without details.
    pub(super) fn found(&self, rule: &Rule, line: usize) -> Finding {
        Finding {
            rule: rule.id.clone(),
            level: rule.level.of_finding(),
            service: rule.service.clone(),
            scenario: self.name.to_owned(),
            step: line,
            exchange: line,
            line,
            ..Finding::default()
        }
    }
}

/// A document that was not JSON.
pub(super) fn made_of(value: Value) -> Parsed {
    Parsed {
        value,
        notes: Vec::new(),
    }
}
