//! Reduces a finding of a run to a chain of requests that starts with an empty account.
//!
//! The chain consists of steps of the scenario and has no data of the target's responses. Of the steps before the failed
//! one, only reads without effect on the rule are left out; a write may be the cause and stays, unless the rule is about
//! the response of another write alone.

use super::scenario;
use conformant_base::text;
use conformant_engine::derive::sequence::without_idle_captures;
use conformant_engine::plan::{self, Planned};
use conformant_engine::{ScenarioRun, Sessions, run_scenario};
use conformant_judge::{DocumentCache, Need, Sites, judge_with_cache, predicate_of};
use conformant_record::{Finding, RunRecord};
use conformant_rulebook::scenario::Scenario;
use conformant_rulebook::step::{Demand, Step, Verb};
use conformant_rulebook::{Origin, Rulebook, Service, interpolations};
use conformant_schema::Schemas;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

/// Why there is no chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReproduceError {
    /// A record without findings.
    #[error("that run has no findings")]
    Nothing,
    /// A number beyond the last defect.
    #[error("defect {number} does not exist: that run has {}", text::count(*.count, "defect"))]
    Beyond { number: usize, count: usize },
    /// No finding of that rule.
    #[error("that run has no finding of rule {rule}{}", .near.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default())]
    Unknown {
        rule: String,
        /// A similar broken rule.
        near: Option<String>,
    },
    /// A finding in traffic or files.
    #[error(
        "{rule} was found outside a scenario: judge the same file or traffic again, or send the finding's `request` again"
    )]
    NoStory { rule: String },
    /// The scenario is not in this rulebook.
    #[error(
        "unknown scenario {scenario}: give the rulebook or the scenarios of the run (--specs DIR, --scenarios DIR)"
    )]
    Gone { scenario: String },
}

/// A chain of requests; the last one fails.
#[derive(Debug)]
pub struct Chain<'a> {
    /// The service of its names.
    pub service: &'a Service,
    /// The steps; the rules judge them.
    pub scenario: Scenario,
    /// Number of omitted steps.
    pub left_out: usize,
    /// The services of the scenario of the finding.
    pub services: BTreeSet<String>,
    /// Later calls of hooks that the steps call, too: they may restore what these changed.
    restoring: Vec<Step>,
}

impl<'a> Chain<'a> {
    /// The scenario file with its path, for `run --scenarios DIR`.
    pub fn file(&self, rulebook: &Rulebook, finding: &Finding) -> (String, String) {
        let rule = rulebook.rules.get(&finding.rule);
        let says = rule.map_or(finding.rule.as_str(), |rule| rule.says.as_str());
        let says = format!("Broke {}: {says}", finding.rule);
        let steps = [self.scenario.steps.as_slice(), &self.restoring].concat();
        let restored = Scenario {
            steps,
            ..self.scenario.clone()
        };
        let steps = match scenario::is_sound(rulebook, self.service, &restored) {
            true => restored.steps,
            false => self.scenario.steps.clone(),
        };
        let scenario = Scenario {
            steps: scenario::with_twins(rulebook, self.service, steps),
            ..self.scenario.clone()
        };
        scenario::file(
            &scenario,
            "A finding of a run, from an empty account.",
            &says,
        )
    }

    /// The chain of a finding; `worlds` are reference instances in process.
    pub fn of(
        finding: &Finding,
        rulebook: &'a Rulebook,
        worlds: &dyn Sessions,
    ) -> Result<Self, ReproduceError> {
        // Traffic behind the proxy has the name of the command only.
        if !finding.scenario.contains('/') || finding.step == 0 {
            return Err(ReproduceError::NoStory {
                rule: finding.rule.clone(),
            });
        }
        let mut all = plan::all(rulebook).into_iter();
        let planned = all
            .find(|planned| planned.scenario.id == finding.scenario)
            .ok_or_else(|| ReproduceError::Gone {
                scenario: finding.scenario.clone(),
            })?;
        let services = planned.touches();
        let Planned { service, scenario } = planned;
        let whole: Vec<Step> = scenario
            .steps
            .iter()
            .take(finding.step)
            .map(|step| stating_only(&finding.rule, in_place(step, &scenario)))
            .collect();
        let name = scenario::name(
            &finding.rule,
            &format!("{}/{}", finding.service, finding.operation),
        );
        let id = format!("{}/reproduced/{name}", service.name);
        let chained = |steps: Vec<Step>| {
            let steps = without_idle_captures(steps);
            Scenario {
                id: id.clone(),
                ..scenario::scenario(&service.name, &name, steps)
            }
        };
        let asked = |steps: &[Step]| {
            let scenario = chained(steps.to_vec());
            deciding(finding, rulebook, &Planned { service, scenario }, worlds)
        };
        let deciding = asked(&whole);
        let kept = deciding.as_ref().map(|deciding| {
            let shorter = without_looks(finding, rulebook, service, &whole, deciding);
            if asked(&shorter).is_some() {
                shorter
            } else {
                whole.clone()
            }
        });
        let kept = kept.unwrap_or_else(|| whole.clone());
        let is_called = |hook: &str| kept.iter().any(|step| step.hook() == Some(hook));
        let later = scenario.steps.iter().skip(finding.step);
        let later = later.filter(|step| step.hook().is_some_and(is_called));
        let restoring = later.map(|step| in_place(step, &scenario)).collect();
        Ok(Self {
            service,
            restoring,
            left_out: scenario.steps.len() - kept.len(),
            scenario: chained(kept),
            services,
        })
    }
}

/// The findings of a rule.
pub fn findings_of(record: &RunRecord, wanted: &str) -> Result<Vec<Finding>, ReproduceError> {
    if record.findings.is_empty() {
        return Err(ReproduceError::Nothing);
    }
    let findings = record.findings.iter();
    let of_rule: Vec<Finding> = findings
        .clone()
        .filter(|f| f.rule == wanted)
        .cloned()
        .collect();
    if of_rule.is_empty() {
        let rules: Vec<&str> = findings.map(|finding| finding.rule.as_str()).collect();
        return Err(ReproduceError::Unknown {
            rule: wanted.to_owned(),
            near: text::did_you_mean(wanted, &rules).map(str::to_owned),
        });
    }
    Ok(of_rule)
}

/// The step without expectations of other rules: it may be accepted or refused, unless that is the finding.
fn stating_only(rule: &str, mut step: Step) -> Step {
    if let Some(stated) = step.expect_mut() {
        stated.retain(|expect| expect.rule == rule);
    }
    if step.rejected().is_some_and(|named| named != rule) {
        step.demand_nothing();
    } else if step.accepted().is_some_and(|named| named != rule)
        && let Verb::Call(call) = &mut step.verb
    {
        call.demand = Demand::Own;
    }
    step
}

/// The step with the values of the scenario's combination.
fn in_place(step: &Step, scenario: &Scenario) -> Step {
    let mut whole = serde_json::to_value(step).unwrap_or_default();
    for (name, values) in &scenario.matrix {
        if let Some(value) = values.first() {
            put(&mut whole, &format!("${{matrix.{name}}}"), value);
        }
    }
    serde_json::from_value(whole).unwrap_or_else(|_| step.clone())
}

fn put(into: &mut Value, name: &str, value: &Value) {
    match into {
        Value::String(text) if text == name => *into = value.clone(),
        Value::String(text) => {
            let word = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            *text = text.replace(name, &word);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| put(item, name, value)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| put(member, name, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Steps that decide the broken rule at the last step; none if the rule is not judged there.
fn deciding(
    finding: &Finding,
    rulebook: &Rulebook,
    planned: &Planned<'_>,
    worlds: &dyn Sessions,
) -> Option<BTreeSet<usize>> {
    let session = worlds.open(planned).ok()?;
    let (schemas, calm) = (Schemas::default(), AtomicBool::new(false));
    let scenario_run = ScenarioRun::new(rulebook, &schemas, planned, (0, 0));
    let outcome = run_scenario(scenario_run, session.as_ref(), &calm);
    let evidence = &outcome.evidence;
    let judgment = judge_with_cache(
        rulebook,
        &schemas,
        evidence,
        &DocumentCache::default(),
        usize::MAX,
    );
    let examples = judgment.examples(&finding.rule);
    let sites = examples.iter().flat_map(Sites::iter);
    let exchanges = sites.filter_map(|site| site.exchange(evidence));
    let steps = exchanges.map(|exchange| evidence.exchanges[exchange].step);
    (!examples.is_empty()).then(|| steps.collect())
}

/// The steps that write, decide, or capture for others. Other reads are left out, unless the rule compares responses and they
/// show a resource of the same type as the last step. Where the schema of a write's own response is the rule, other writes are
/// left out as well.
fn without_looks(
    finding: &Finding,
    rulebook: &Rulebook,
    service: &Service,
    steps: &[Step],
    deciding: &BTreeSet<usize>,
) -> Vec<Step> {
    let predicate = rulebook.rules.get(&finding.rule).and_then(predicate_of);
    let is_of_history = predicate.is_some_and(|p| p.needs().contains(&Need::History));
    let called = |step: &Step| rulebook.called(&service.name, step.operation()?);
    let does_write = |step: &Step| called(step).is_some_and(|operation| operation.does.writes());
    // What such a read shows may be what the last response lacks.
    let subject = steps.last().and_then(called);
    let subject = subject.and_then(|operation| operation.resource.as_ref());
    let shows_subject = |step: &Step| {
        is_of_history
            && called(step).is_some_and(|operation| {
                operation.list_key.is_none() && operation.resource.as_ref() == subject
            })
    };
    let is_of_schema = rulebook.rules.get(&finding.rule).is_some_and(|rule| {
        matches!(
            rule.origin,
            Origin::Property { .. } | Origin::NoOtherFields { .. }
        )
    });
    let is_of_last = is_of_schema && steps.last().is_some_and(does_write);
    let mut kept: Vec<&Step> = Vec::new();
    let mut read: BTreeSet<String> = BTreeSet::new();
    for (index, step) in steps.iter().enumerate().rev() {
        let is_last = index + 1 == steps.len();
        let is_read = step.names().is_some_and(|name| read.contains(name));
        let only_looks = step.address().is_some()
            || (step.operation().is_some()
                && (is_of_last || !does_write(step))
                && !shows_subject(step))
            || (step.rejected().is_some() && !is_of_history);
        if !(is_last || is_read || deciding.contains(&(index + 1)) || !only_looks) {
            continue;
        }
        let text = serde_json::to_string(step).unwrap_or_default();
        let found = interpolations(&text).unwrap_or_default();
        read.extend(found.into_iter().map(|one| one.path[0].clone()));
        kept.push(step);
    }
    kept.into_iter().rev().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use conformant_engine::sessions::Offline;

    /// The number moves to another country and back. Without the way back, a second execution would find it taken.
    #[test]
    fn a_chain_ends_with_the_later_calls_of_its_hooks() {
        let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
        let finding = Finding {
            rule: "auth/phone-change/webhook".to_owned(),
            scenario: "auth/users/moved-number".to_owned(),
            service: "auth".to_owned(),
            step: 6,
            ..Finding::default()
        };
        let chain = Chain::of(&finding, &rulebook, &Offline::faultless(0)).expect("a chain");
        let (_, text) = chain.file(&rulebook, &finding);
        assert_eq!(text.matches("\"change_phone\"").count(), 2, "{text}");
        let last = text.lines().last().expect("a step");
        assert!(last.contains("${target.people.country_code}"), "{text}");
    }

    #[test]
    fn every_start_of_a_scenario_is_a_scenario_file_that_loads() {
        /// Scenarios between two that are tried.
        const STRIDE: usize = 5;
        let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut written = 0;
        for planned in plan::all(&rulebook).into_iter().step_by(STRIDE) {
            let Planned { service, scenario } = planned;
            let mut text = "scenarios:\n".to_owned();
            for end in 1..=scenario.steps.len() {
                let steps = scenario.steps.iter().take(end);
                let steps = steps.map(|step| stating_only("none", in_place(step, &scenario)));
                let steps = without_idle_captures(steps.collect());
                let start = Scenario {
                    id: format!("{}/start/{written}", service.name),
                    steps: scenario::with_twins(&rulebook, service, steps),
                    ..scenario.clone()
                };
                let (_, one) = scenario::file(&start, "", "The start of a scenario.");
                let (_, entry) = one.split_once("scenarios:\n").expect("the list");
                text += entry;
                written += 1;
            }
            let path = folder.path().join(&service.name);
            std::fs::create_dir_all(&path).expect("a folder");
            std::fs::write(path.join(format!("s{written}.yaml")), text).expect("a file");
        }
        let loaded = conformant_judge::load::load(None, &[folder.path().to_owned()]);
        if let Err(problems) = loaded {
            panic!("{problems}");
        }
        assert!(written > 300, "{written}");
    }
}
