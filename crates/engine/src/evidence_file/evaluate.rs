//! Evaluates stored evidence by the current rulebook.

use super::format::EvidenceRecord;
use super::reader::Reader;
use crate::concluded::Concluded;
use crate::plan::{self, Selection};
use crate::record::Recorder;
use crate::summary::summarize;
use crate::{Planned, body};
use conformant_base::redact::{REDACTED, is_secret_header};
use conformant_judge::Judgment;
use conformant_judge::evidence::{BODY_EXCERPT_BYTES, Exchange, Outcome};
use conformant_record::{REFERENCE, RunRecord};
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;

/// Reason for a rule that is not evaluated because an answer contained a secret.
const WITHHELD: &str = "an answer held a secret, which is not kept";

/// A run evaluated from its stored evidence.
#[derive(Clone, Debug)]
pub struct EvaluatedRun {
    /// The new record.
    pub record: RunRecord,
    /// A target or a hook failed during the run.
    pub has_infrastructure_error: bool,
    /// The origin of the first request that went elsewhere than to its target in the header.
    pub elsewhere: Option<String>,
    /// Notes for people, one sentence each.
    pub notes: Vec<String>,
}

/// Evaluates every complete scenario of a file by this rulebook. If the file is truncated, the record is incomplete
/// and a note states it.
pub fn evaluate<R: Read>(reader: &mut Reader<R>, rulebook: &Rulebook) -> EvaluatedRun {
    let schemas = Schemas::default();
    let planned = plan::plan(rulebook, &Selection::default(), None);
    let planned: BTreeMap<&str, &Planned<'_>> = planned
        .iter()
        .map(|p| (p.scenario.id.as_str(), p))
        .collect();
    let head = reader.head.clone();
    let mut recorder = Recorder::new(rulebook, head.targets.clone(), head.seed);
    let mut elsewhere = None;
    let (mut has_infrastructure_error, mut scenarios) = (false, 0);
    for record in reader.by_ref() {
        if elsewhere.is_none() {
            elsewhere = record.elsewhere(&head.targets).map(str::to_owned);
        }
        let planned = planned.get(record.evidence.scenario.as_str()).copied();
        let concluded = record.judge(rulebook, &schemas, planned);
        has_infrastructure_error |= concluded.has_infrastructure_error;
        scenarios += 1;
        recorder.add(concluded);
    }
    let mut notes = Vec::new();
    if let Some(why) = &reader.cut {
        notes.push(format!(
            "the evidence is truncated after {scenarios} of {} scenarios ({why}): only these are judged",
            head.scenarios
        ));
    }
    if head.rulebook != rulebook.digest() {
        notes.push(
            "the run used another rulebook: its requests are evaluated by the current one"
                .to_owned(),
        );
    }
    let tail = reader.tail.take();
    let void = tail.as_ref().map_or(Vec::new(), |tail| tail.void.clone());
    for void in &void {
        has_infrastructure_error = true;
        recorder.void_service(void);
    }
    let complete = tail.is_some_and(|tail| tail.complete && tail.stories == scenarios);
    let mut record = recorder.finish(|rule| head.services.contains(&rule.service), complete);
    record.invocation = head.invocation;
    for void in void {
        void.explain(rulebook, &mut record);
    }
    EvaluatedRun {
        record,
        has_infrastructure_error,
        elsewhere,
        notes,
    }
}

impl EvidenceRecord {
    /// The origin of the first documented request that did not go to its target.
    fn elsewhere(&self, targets: &BTreeMap<String, String>) -> Option<&str> {
        let is_at = |url: &str, origin: &str| {
            let path = url.strip_prefix(origin);
            path.is_some_and(|path| path.is_empty() || path.starts_with('/'))
        };
        let is_home = |service: &str, origin: &str| {
            targets
                .get(service)
                .is_some_and(|url| url == REFERENCE || is_at(url, origin))
        };
        // Links to content may lead to other hosts; they are requests of no operation.
        let mut documented = (self.evidence.exchanges.iter()).filter(|e| !e.operation.is_empty());
        documented
            .find(|exchange| !is_home(&exchange.service, &exchange.base))
            .map(|exchange| exchange.base.as_str())
    }

    /// The result by this rulebook; `planned` is the scenario, if the rulebook still contains it.
    pub fn judge(
        mut self,
        rulebook: &Rulebook,
        schemas: &Schemas,
        planned: Option<&Planned<'_>>,
    ) -> Concluded {
        self.read_answers(rulebook);
        let mut judgment = conformant_judge::judge(rulebook, schemas, &self.evidence);
        if self.is_withheld() {
            withhold(&mut judgment, &self.broken);
        }
        if let Some(why) = &self.void {
            judgment = judgment.void(why);
        }
        let concluded = summarize(
            rulebook,
            planned.map(|planned| &planned.scenario),
            &self.evidence,
            (judgment, self.stop),
            self.seconds,
        );
        Concluded {
            turned_away: self.turned_away,
            ..concluded
        }
    }

    /// Reads the bodies of the answers by this rulebook.
    fn read_answers(&mut self, rulebook: &Rulebook) {
        let evidence = &mut self.evidence;
        for exchange in &mut evidence.exchanges {
            let Some(operation) = rulebook.operation(&exchange.service, &exchange.operation) else {
                continue;
            };
            if let Outcome::Answered { response, body } = &mut exchange.outcome
                && response.body.len() < BODY_EXCERPT_BYTES
            {
                let kind = operation.response.as_ref();
                let kind = kind.and_then(|kind| rulebook.kinds.get(kind));
                *body = body::receive(response, operation, kind);
            }
        }
        for &index in &self.of_answers {
            let Some(statement) = evidence.statements.get_mut(index) else {
                continue;
            };
            let exchange = statement.exchange.and_then(|at| evidence.exchanges.get(at));
            if let Some(document) = exchange.and_then(|exchange| exchange.document()) {
                statement.result = Arc::clone(document);
            }
        }
    }

    /// Whether a message of the target was redacted.
    fn is_withheld(&self) -> bool {
        let holds = |text: &str| text.contains(REDACTED);
        let mut answers = self
            .evidence
            .exchanges
            .iter()
            .filter_map(Exchange::response);
        let mut payloads = self.evidence.payloads.iter();
        let has_redacted_value =
            |(name, value): (&str, &str)| !is_secret_header(name) && holds(value);
        answers.any(|response| {
            response.headers.iter().any(has_redacted_value)
                || memchr::memmem::find(&response.body, REDACTED.as_bytes()).is_some()
        }) || payloads.any(|payload| holds(&payload.value.to_string()))
    }
}

/// Withholds verdicts that differ from the run, because a redacted secret may be the cause.
fn withhold(judgment: &mut Judgment, broken: &BTreeSet<String>) {
    let found: BTreeSet<String> = judgment.findings.iter().map(|f| f.rule.clone()).collect();
    for rule in found.symmetric_difference(broken) {
        judgment.withdraw(rule, WITHHELD);
    }
}
