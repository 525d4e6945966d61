//! Statements of steps about their results, and the rules that remain unjudged where a scenario ended early.

use super::Runner;
use crate::stop::{ENDED_BEFORE, Stop};
use crate::template::{Origin, TemplateError};
use conformant_judge::evidence::{Expectation, SkippedRule, Statement};
use conformant_rulebook::expect::{Comparison, Expect};
use conformant_rulebook::step::Step;
use serde_json::Value;
use std::sync::Arc;

impl Runner<'_> {
    /// Stores the result under its name and records the statements about it.
    pub(super) fn finish(
        &mut self,
        (capture, expect): (Option<&String>, &[Expect]),
        value: impl Into<Arc<Value>>,
        origin: Option<Origin>,
        exchange: Option<usize>,
    ) -> Result<(), Stop> {
        // A wait that was cut short says nothing about later events.
        if self.is_interrupted() {
            return Err(Stop::Interrupted);
        }
        let result: Arc<Value> = value.into();
        if let Some(name) = capture {
            self.scope.capture(name, Arc::clone(&result), origin);
            match exchange {
                Some(exchange) => self.captured_at.insert(name.clone(), exchange),
                None => self.captured_at.remove(name),
            };
        }
        for expect in expect {
            let filled = self.fill_expect(expect);
            // No statement compares with a broken value.
            let filled = match (self.scope.take_taint(), filled) {
                (Some(rule), Ok(_)) => {
                    let name = expect.rule.clone();
                    Err(TemplateError::Masked { name, rule })
                }
                (_, filled) => filled,
            };
            match filled {
                Err(TemplateError::Masked { rule, .. }) => {
                    self.evidence
                        .missed
                        .push(SkippedRule::behind(&expect.rule, &rule));
                }
                Ok(expect) => self.evidence.statements.push(Statement {
                    expect,
                    result: Arc::clone(&result),
                    step: self.step,
                    exchange,
                }),
                Err(error) => {
                    let missed = SkippedRule::because(&expect.rule, error.to_string());
                    self.evidence.missed.push(missed);
                    self.soft_stop.get_or_insert(Stop::from(error));
                }
            }
        }
        Ok(())
    }

    pub(super) fn fill_expect(&self, expect: &Expect) -> Result<Expect, TemplateError> {
        let mut filled = expect.clone();
        for value in filled.among.iter_mut().flat_map(|among| &mut among.one_of) {
            *value = self.scope.fill(value)?;
        }
        match &mut filled.is {
            Comparison::Equals(value)
            | Comparison::Differs(value)
            | Comparison::Includes(value)
            | Comparison::Excludes(value)
            | Comparison::SameJson(value)
            | Comparison::AtLeast(value)
            | Comparison::NotBefore(value) => *value = self.scope.fill(value)?,
            Comparison::OneOf(values) => {
                for value in values {
                    *value = self.scope.fill(value)?;
                }
            }
            Comparison::Matches(pattern) | Comparison::Unlike(pattern) => {
                // An interpolated value is matched literally.
                let value = self.scope.fill_text(pattern)?;
                let value = value.as_str().unwrap_or_default();
                if value != pattern {
                    *pattern = regex::escape(value);
                }
            }
            Comparison::Absent(_) | Comparison::AtMost(_) => {}
        }
        Ok(filled)
    }

    /// Records the rules that the remaining steps would have judged.
    pub(super) fn record_missed(&mut self, rest: &[Step], why: &Stop) {
        let accused = self.evidence.exchanges.last().map(|e| &e.expectation);
        let missed: Box<dyn Fn(&String) -> SkippedRule> = match (why, accused) {
            (Stop::Unexpected, Some(Expectation::Accepted(rule))) => {
                let rule = rule.clone();
                Box::new(move |named| SkippedRule::behind(named, &rule))
            }
            (Stop::Unexpected, _) => {
                Box::new(|named| SkippedRule::because(named, "an earlier step went wrong"))
            }
            (Stop::Interrupted, _) => Box::new(|named| SkippedRule::because(named, ENDED_BEFORE)),
            (Stop::Masked(rule), _) => Box::new(move |named| SkippedRule::behind(named, rule)),
            (
                Stop::NotApplicable(why)
                | Stop::Inconclusive(why)
                | Stop::Unreachable(why)
                | Stop::HookFailed(why)
                | Stop::Misconfigured(why)
                | Stop::Error(why),
                _,
            ) => Box::new(move |named| SkippedRule::because(named, why)),
        };
        for (offset, step) in rest.iter().enumerate() {
            // The step that failed has already been judged.
            if offset > 0 || *why != Stop::Unexpected {
                let rules = step.rules().map(&missed);
                self.evidence.missed.extend(rules);
            }
        }
    }

    /// Skips a step because of a broken rule: its capture is masked and its rules are not judged.
    pub(super) fn mask(&mut self, step: &Step, rule: &str) {
        for named in step.rules() {
            self.evidence.missed.push(SkippedRule::behind(named, rule));
        }
        let group = step.group().filter(|group| group.r#as.is_none());
        let inner = group.and_then(|group| self.group(&group.r#use).ok());
        let inner = inner.into_iter().flat_map(|(_, group)| &group.steps);
        for name in step
            .names()
            .into_iter()
            .chain(inner.filter_map(Step::capture))
        {
            self.scope.mask(name, rule);
        }
    }
}
