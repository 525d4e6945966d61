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

/// Judges the documents of one file.
#[derive(Clone, Copy, Debug)]
pub(super) struct DocumentJudge<'a> {
    pub(super) rulebook: &'a Rulebook,
    pub(super) schemas: &'a Schemas,
    pub(super) surroundings: &'a Surroundings,
    pub(super) name: &'a str,
}

impl DocumentJudge<'_> {
    /// Reads one document in JSON, or in XML for the service that responds in both; `line` is 0 if the file has no other.
    pub(super) fn read(&self, kind: &str, line: usize, bytes: &[u8]) -> Result<Parsed, String> {
        let service = kind.split('/').next();
        let service = service.and_then(|name| self.rulebook.index.get(name));
        if service.is_some_and(ServiceFile::has_xml) && bytes.trim_ascii_start().starts_with(b"<") {
            let schema = self.rulebook.kinds.get(kind).map(|known| &known.schema);
            let value = xml::to_value(bytes, schema);
            return value.map(made_of).map_err(|fault| format!("XML: {fault}"));
        }
        json::parse(bytes, Limits::default()).map_err(|fault| {
            let why = match bytes.trim_ascii_start() {
                [b'<', ..] => "it begins like XML, expected JSON".to_owned(),
                _ => fault.to_string(),
            };
            // The parser sees one line, which is not the first of the file.
            match line {
                0 => why,
                _ => why.replacen(" at line 1, column ", " at column ", 1),
            }
        })
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

    /// An unreadable token or code breaks the root rule of its type.
    pub(super) fn unreadable(&self, kind: &str, line: usize, why: &str) -> Judgment {
        let mut judgment = Judgment::default();
        let rule = rule_of_whole(self.rulebook, kind).and_then(|id| self.rulebook.rules.get(&id));
        let Some(rule) = rule else { return judgment };
        let finding = Finding {
            kind: "unreadable".to_owned(),
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
