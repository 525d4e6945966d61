//! Judges a run's evidence again, by the rulebook of the day.

use super::form::Played;
use super::reader::Reader;
use crate::plan::{self, Selection};
use crate::record::{Concluded, Recorder};
use crate::{Planned, body, concluded_of};
use conformant_base::redact::{REDACTED, is_secret_header};
use conformant_judge::Judgment;
use conformant_judge::evidence::{BODY_EXCERPT_BYTES, Outcome};
use conformant_record::RunRecord;
use conformant_rulebook::Rulebook;
use conformant_schema::Schemas;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;

/// Why a rule is not judged again where a secret stood in an answer.
const WITHHELD: &str = "an answer held a secret, which is not kept";

/// A run judged again from its evidence.
#[derive(Clone, Debug)]
pub struct JudgedAgain {
    /// The record as it stands now.
    pub record: RunRecord,
    /// A target or a hook got in the way of the run.
    pub trouble: bool,
    /// What there is to say beside, a sentence each.
    pub notes: Vec<String>,
}

/// Judges every whole story of a file by this rulebook; where the file was cut, the record is
/// incomplete and a note says so.
pub fn judge_again<R: Read>(reader: &mut Reader<R>, rulebook: &Rulebook) -> JudgedAgain {
    let schemas = Schemas::default();
    let planned = plan::plan(rulebook, &Selection::default(), None);
    let planned: BTreeMap<&str, &Planned<'_>> = planned
        .iter()
        .map(|p| (p.scenario.id.as_str(), p))
        .collect();
    let head = reader.head.clone();
    let mut recorder = Recorder::new(rulebook, head.targets, head.seed);
    let (mut trouble, mut stories) = (false, 0);
    for played in reader.by_ref() {
        let planned = planned.get(played.evidence.scenario.as_str()).copied();
        let concluded = played.judge(rulebook, &schemas, planned);
        trouble |= concluded.trouble;
        stories += 1;
        recorder.add(concluded);
    }
    let mut notes = Vec::new();
    if let Some(why) = &reader.cut {
        notes.push(format!(
            "the evidence is cut behind {stories} of {} stories ({why}): these are judged, the others are not there",
            head.scenarios
        ));
    }
    if head.rulebook != rulebook.digest() {
        notes.push(
            "the run was played by another rulebook: what was sent is as it was then, what is concluded of it is by this one"
                .to_owned(),
        );
    }
    let tail = reader.tail.take();
    if let Some(service) = tail.as_ref().and_then(|tail| tail.denied_by.as_ref()) {
        recorder.turned_away_by(service);
    }
    let complete = tail.is_some_and(|tail| tail.complete && tail.stories == stories);
    let record = recorder.finish(|rule| head.services.contains(&rule.service), complete);
    JudgedAgain {
        record,
        trouble,
        notes,
    }
}

impl Played {
    /// What this rulebook concludes of it; `planned` is the scenario where there is one still.
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
        let concluded = concluded_of(
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

    /// Reads the answers by this rulebook.
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

    /// Whether something was taken out of what the target sent.
    fn is_withheld(&self) -> bool {
        let holds = |text: &str| text.contains(REDACTED);
        let answers = self.evidence.exchanges.iter();
        let answers = answers.filter_map(|exchange| match &exchange.outcome {
            Outcome::Answered { response, .. } => Some(response),
            Outcome::Fault { .. } => None,
        });
        let mut payloads = self.evidence.payloads.iter();
        let told = |(name, value): (&str, &str)| !is_secret_header(name) && holds(value);
        answers.into_iter().any(|response| {
            response.headers.iter().any(told)
                || memchr::memmem::find(&response.body, REDACTED.as_bytes()).is_some()
        }) || payloads.any(|payload| holds(&payload.value.to_string()))
    }
}

/// What differs from the run may differ because a secret is missing: then it accuses and acquits nobody.
fn withhold(judgment: &mut Judgment, broken: &BTreeSet<String>) {
    let found: BTreeSet<String> = judgment.findings.iter().map(|f| f.rule.clone()).collect();
    for rule in found.symmetric_difference(broken) {
        judgment.withdraw(rule, WITHHELD);
    }
}
