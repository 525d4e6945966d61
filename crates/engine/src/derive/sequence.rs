//! Random sequences of requests to a service.
//!
//! - Arguments: valid, boundary and boundary-invalid values, names of new, ended and foreign resources.
//! - Requests: repeated requests, walks of lists, and reads after writes.
//! - Expectations: a request may be accepted or rejected, except for happy requests before any change and for paths
//!   that identify nothing.

use super::boundary::{OF_SIDS, is_sid, reads_a_sid};
use super::cases::{Cases, calling, either, only, refused, rename, rename_all, unique, walking};
use super::credentials::{follow, has_url};
use super::repeated_reads::wait;
use super::second_tenant::{SecondTenant, expand};
use crate::boundary::BoundaryChange;
use conformant_rulebook::hooks;
use conformant_rulebook::scenario::{Credentials, HappyPath};
use conformant_rulebook::step::{Call, Demand, Get, Hook, Step, Verb};
use conformant_rulebook::{
    Action, Operation, ParameterLocation, Place, Rulebook, Service, interpolations, types,
};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Minimum and maximum number of draws of a sequence. Each draw adds a request and the steps that belong to it: set-up, reads.
const DRAWS: (usize, usize) = (2, 7);
/// Maximum number of resources of a type in one case.
const MADE_BY_CASES_MAX: usize = 1000;
/// Credentials that must be rejected.
const INVALID_CREDENTIALS: [Credentials; 6] = [
    Credentials::None,
    Credentials::Wrong,
    Credentials::Unknown,
    Credentials::PasswordOtherCase,
    Credentials::PasswordShort,
    Credentials::PasswordSpace,
];
/// Pauses, some shorter and some longer than documented lifetimes.
const TIMES: [&str; 5] = ["1s", "30s", "10m", "1h", "25h"];
/// Values for a JSON text: two invalid ones and two valid ones.
const DOCUMENTS: [&str; 4] = [
    "no json",
    r#"{"open": [1"#,
    r#"{"a": [1, null], "b": {}}"#,
    "{}",
];

/// Random source that depends only on seed and number.
pub struct Draw(ChaCha8Rng);

impl Draw {
    /// The source of one sequence.
    pub fn new(seed: u64, sequence: u64) -> Self {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        chance.set_stream(sequence);
        Self(chance)
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        // 63 bits: what a seed draws depends on it.
        let draw = (self.0.next_u64() >> 1) % (count.max(1) as u64);
        // Below its divisor, so it fits.
        usize::try_from(draw).unwrap_or_default()
    }

    /// True once in `count` times on average.
    fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// One of the items.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> Option<&'i T> {
        items.get(self.below(items.len()))
    }
}

/// The steps of one sequence, after those of a case if there is one. `only_safe` excludes requests that write. Only the
/// case, or nothing, if a service has nothing to send.
pub(super) fn random_sequence(
    rulebook: &Rulebook,
    service: &Service,
    case: &[Step],
    draw: &mut Draw,
    only_safe: bool,
) -> Vec<Step> {
    let known: Vec<(&Operation, &HappyPath)> = service
        .operations
        .values()
        .filter_map(|operation| Some((operation, service.happy.get(&operation.id)?)))
        .filter(|(operation, happy)| {
            !only_safe
                || (!operation.does.writes() && operation.method == "GET" && happy.setup.is_empty())
        })
        .collect();
    let mut sequence = RandomSequence::of(rulebook, service);
    sequence.begin_with(case);
    let (least, most) = DRAWS;
    let beginning = case.iter().find(|step| step.setup);
    let continues_case = |happy: &HappyPath| {
        let both = beginning.zip(happy.setup.first());
        both.is_some_and(|(ours, foreign)| is_same_setup(ours, foreign))
    };
    let after: Vec<(&Operation, &HappyPath)> = known
        .iter()
        .filter(|(_, happy)| continues_case(happy))
        .copied()
        .collect();
    let Some(&first) = draw.pick(if after.is_empty() { &known } else { &after }) else {
        return without_idle_captures(sequence.steps);
    };
    sequence.add_request(first, draw, only_safe);
    // Half of the others concern the same resources as the first one.
    let same_setup: Vec<(&Operation, &HappyPath)> = known
        .iter()
        .filter(
            |(_, happy)| match (happy.setup.first(), first.1.setup.first()) {
                (Some(one), Some(other)) => is_same_setup(one, other),
                (one, other) => one.is_none() && other.is_none(),
            },
        )
        .copied()
        .collect();
    for _ in 1..least + draw.below(most - least + 1) {
        let among = if draw.once_in(4) { &known } else { &same_setup };
        if let Some(&one) = draw.pick(among) {
            sequence.add_request(one, draw, only_safe);
        }
        if only_safe {
            continue;
        }
        if draw.once_in(6) && sequence.add_hook(draw) {
            // The effect of a request, at once or later.
            if draw.once_in(2) {
                sequence.add_wait(draw);
            }
            let reads = same_setup.iter().filter(|(o, _)| !o.does.writes());
            let reads: Vec<_> = reads.copied().collect();
            if let Some(&read) = draw.pick(&reads) {
                sequence.add_request(read, draw, only_safe);
            }
        }
        if draw.once_in(12) {
            sequence.add_wait(draw);
        }
    }
    let mut steps = sequence.setup_steps;
    steps.append(&mut sequence.steps);
    without_idle_captures(steps)
}

/// Removes captures that no later step reads, because a scenario must not have them.
pub fn without_idle_captures(mut steps: Vec<Step>) -> Vec<Step> {
    let mut read: BTreeSet<String> = BTreeSet::new();
    for step in &steps {
        reads_of(step, &mut read);
    }
    for step in &mut steps {
        drop_idle_capture(step, &read);
    }
    steps
}

fn drop_idle_capture(step: &mut Step, read: &BTreeSet<String>) {
    if let Verb::Concurrently(race) = &mut step.verb {
        let racers = race.concurrently.iter_mut();
        return racers.for_each(|step| drop_idle_capture(step, read));
    }
    if let Some(capture) = step.capture_mut()
        && capture.as_ref().is_some_and(|name| !read.contains(name))
    {
        *capture = None;
    }
}

/// The step without an expectation.
fn without_expectation(mut step: Step) -> Step {
    step.demand_nothing();
    step
}

/// The names that a step reads.
fn reads_of(step: &Step, read: &mut BTreeSet<String>) {
    if let Some(race) = step.race() {
        return race
            .concurrently
            .iter()
            .for_each(|step| reads_of(step, read));
    }
    let mut text = |text: &str| {
        let found = interpolations(text).unwrap_or_default();
        read.extend(found.into_iter().map(|one| one.path[0].clone()));
    };
    for value in step.values() {
        texts_in(value, &mut text);
    }
    text(step.about());
    let is_plain_call = |call: &Call| {
        call.until.is_none() && !call.demand.has_exception() && call.between.is_empty()
    };
    let is_plain = step.expect().is_empty() && step.call().is_none_or(is_plain_call);
    if !is_plain || step.is_token() {
        texts_in(&serde_json::to_value(step).unwrap_or_default(), &mut text);
    }
}

fn texts_in(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| texts_in(item, visit)),
        Value::Object(members) => members.values().for_each(|member| texts_in(member, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The step with names that no case uses.
fn with_other_names(mut step: Step) -> Step {
    if let Some(with) = step.with_mut() {
        *with = rename_all(with, &unique(|word| format!("other-{word}")));
    }
    step
}

/// Whether two set-up steps do the same under the same name.
fn is_same_setup(a: &Step, b: &Step) -> bool {
    a.verb.word() == b.verb.word()
        && a.about() == b.about()
        && a.names() == b.names()
        && a.with() == b.with()
        && a.repeat == b.repeat
}

/// Two or three values of an array.
fn several(schema: &Value, draw: &mut Draw) -> Option<Value> {
    let words = schema.pointer("/items/enum").and_then(Value::as_array);
    let count = 2 + draw.below(2);
    let one = |n: usize| match words {
        Some(words) => draw.pick(words).cloned(),
        None => Some(json!(format!("conformant-{n}"))),
    };
    (1..=count).map(one).collect()
}

struct RandomSequence<'a> {
    rulebook: &'a Rulebook,
    service: &'a Service,
    /// Set-ups that are already included.
    prepared: Vec<Step>,
    /// Names of captures so far.
    named: BTreeSet<String>,
    /// Set-up steps before all others; empty after a case.
    setup_steps: Vec<Step>,
    /// The case, if there is one, and the random steps.
    steps: Vec<Step>,
    /// Whether any request so far may affect later ones.
    is_changed: bool,
    created_count: usize,
    /// Whether missing set-ups are added at their first use, after the case.
    is_behind_a_case: bool,
    /// Operations that the case calls.
    called: BTreeSet<String>,
}

impl<'a> RandomSequence<'a> {
    const fn of(rulebook: &'a Rulebook, service: &'a Service) -> Self {
        Self {
            rulebook,
            service,
            prepared: Vec::new(),
            named: BTreeSet::new(),
            setup_steps: Vec::new(),
            steps: Vec::new(),
            is_changed: false,
            created_count: 0,
            is_behind_a_case: false,
            called: BTreeSet::new(),
        }
    }

    /// Begins with a case. Its captures exist, and later requests have no expectations.
    fn begin_with(&mut self, case: &[Step]) {
        if case.is_empty() {
            return;
        }
        self.is_behind_a_case = true;
        for step in expand(self.rulebook, self.service, case, &Map::new(), 0) {
            let call = step.operation().and_then(|call| call.rsplit('/').next());
            self.called.extend(call.map(str::to_owned));
            self.named.extend(step.own_name().cloned());
        }
        // Further resources of the case have small numbers.
        self.created_count = MADE_BY_CASES_MAX;
        let prefixes = case.iter().filter_map(|step| step.group()?.r#as.clone());
        self.named.extend(prefixes);
        self.steps.extend(case.iter().cloned());
        self.is_changed = true;
    }

    /// Adds the set-up steps that are missing. False if a different step already has the name of one.
    fn prepare(&mut self, steps: Vec<Step>) -> bool {
        let mut is_same = true;
        for step in steps {
            let is_known = self
                .prepared
                .iter()
                .any(|known| is_same_setup(known, &step));
            let named = step.own_name();
            let is_there = named.is_some_and(|name| !self.named.insert(name.clone()));
            is_same &= is_known || !is_there;
            if !is_known && !is_there {
                self.prepared.push(step.clone());
                if self.is_behind_a_case {
                    self.steps.push(with_other_names(step));
                } else {
                    // An earlier expectation may not hold in the new context.
                    for earlier in &mut self.steps {
                        let is_setup = earlier.setup;
                        if let Verb::Call(call) = &mut earlier.verb
                            && call.demand.is_acceptance()
                            && !is_setup
                        {
                            call.demand = Demand::Either;
                        }
                    }
                    self.setup_steps.push(step);
                }
            }
        }
        is_same
    }

    /// The set-up of a happy path with expanded groups, so that several happy paths share common steps.
    fn setup_of(cases: &Cases<'_>) -> Vec<Step> {
        let is_prefixed = cases.happy.setup.iter().any(|step| {
            let group = step.group();
            group.is_some_and(|group| group.r#as.is_some())
        });
        if is_prefixed {
            return cases.setup();
        }
        let steps = cases.expanded_setup().into_iter();
        steps.map(Step::of_setup).collect()
    }

    fn add_request(
        &mut self,
        (operation, happy): (&Operation, &HappyPath),
        draw: &mut Draw,
        only_safe: bool,
    ) {
        let cases = Cases::new(self.rulebook, self.service, operation, happy);
        let setup = Self::setup_of(&cases);
        let count = setup.len();
        // Existing resources may fill a limited scope.
        let is_own_setup = self.prepare(setup) && self.setup_steps.len() == count;
        let second_tenant =
            (!only_safe && draw.once_in(2)).then(|| SecondTenant::sharing(&cases, []));
        if let Some(second_tenant) = &second_tenant {
            self.prepare(second_tenant.steps.clone());
        }
        let page_size = cases.page_size().filter(|_| draw.once_in(2));
        if let Some(page_size) = page_size {
            if !only_safe {
                // A list may be full already.
                let more = cases.more(2 + draw.below(2)).into_iter();
                self.steps.extend(more.map(without_expectation));
                self.is_changed = true;
            }
            let call = cases.call(walking(either()), &only(&page_size, 1 + draw.below(2)));
            self.steps.push(call);
            return;
        }
        let is_made_already = self.setup_steps.iter().chain(&self.steps).any(|step| {
            let call = step.operation().unwrap_or_default();
            call.rsplit('/').next() == Some(operation.id.as_str())
        });
        let is_made_already = is_made_already || self.called.contains(&operation.id);
        // Each new resource has a separate name, because a repeated name may refer to the first one.
        let number = self.created_count + 1;
        let mut with = cases.again(number);
        let fresh = unique(|word| format!("{word}-{number}"));
        // A resource without a name is created in the same way again.
        let is_same_again = is_made_already && with == happy.with && cases.creates();
        let mut is_plain = true;
        for (name, value) in &happy.optional {
            if draw.once_in(3) && !is_same_again {
                let value = match cases.creates() {
                    true => rename(value, &fresh),
                    false => value.clone(),
                };
                with.insert(name.clone(), value);
                is_plain = false;
            }
        }
        let demanded = is_own_setup && is_plain && !self.is_changed;
        let mut call = match demanded {
            true => Call::default(),
            false => either(),
        };
        let turn = draw.below(12);
        if !is_same_again {
            (call, with) = self.varied((&cases, second_tenant.as_ref()), turn, (call, with), draw);
        }
        let kept = cases.creates().then(|| {
            self.created_count += 1;
            format!("made-{}", self.created_count)
        });
        call.capture.clone_from(&kept);
        let call = Call {
            call: operation.id.clone(),
            with: with.clone(),
            ..call
        };
        self.steps.push(Step::from(call.clone()));
        if !operation.does.writes() {
            return;
        }
        self.is_changed = true;
        if draw.once_in(8) {
            self.steps.push(Step::from(Call {
                demand: Demand::Either,
                capture: None,
                ..call
            }));
        }
        if let Some(kept) = kept {
            self.steps.extend(cases.reread(&kept, &with));
            let kind = cases.shown_by(operation);
            if kind.is_some_and(has_url) && operation.secured {
                let credentials = draw.pick(&INVALID_CREDENTIALS).copied().unwrap_or_default();
                self.steps.push(Step::from(Get {
                    credentials,
                    ..follow(&format!("${{{kept}.url}}"))
                }));
            }
        }
        // Reads what was written, and what was not.
        let foreign = second_tenant.as_ref().map(|n| n.values(&happy.with));
        let read = std::iter::once(&with).chain(&foreign);
        self.steps
            .extend(read.filter_map(|with| cases.look_here(with)));
    }

    /// A happy call, or one with a foreign, out-of-bounds, missing or slightly changed value.
    fn varied(
        &mut self,
        (cases, second_tenant): (&Cases<'_>, Option<&SecondTenant>),
        turn: usize,
        (mut call, mut with): (Call, Map<String, Value>),
        draw: &mut Draw,
    ) -> (Call, Map<String, Value>) {
        match turn {
            0 | 1 if !cases.creates() => {
                if let Some(second_tenant) = second_tenant {
                    with = second_tenant.values(&with);
                    call = either();
                }
            }
            2 => {
                let names: Vec<String> = cases.path().iter().map(|p| p.name.clone()).collect();
                if let (Some(second_tenant), Some(name)) = (second_tenant, draw.pick(&names))
                    && let Some(ours) = with.get(name)
                {
                    let foreign = second_tenant.value(ours);
                    with.insert(name.clone(), foreign);
                    call = either();
                }
            }
            3 => {
                if let Some(wrong_path) = Self::wrong_path(cases, &with, draw) {
                    // Adds a valid request, so that the rejection is significant. It is a set-up: if the target rejects
                    // it, such as after a deletion, the sequence ends without a finding.
                    let valid = calling(cases.operation, with.clone(), Call::default());
                    self.steps.push(valid.of_setup());
                    (call, with) = wrong_path;
                }
            }
            4 | 5 => {
                Self::boundary_value(cases, &mut with, draw);
                call = either();
            }
            6 => {
                let required = cases.operation.parameters.iter();
                let required: Vec<&str> = required
                    .filter(|p| p.required && p.place != ParameterLocation::Path)
                    .map(|p| p.name.as_str())
                    .collect();
                if let Some(name) = draw.pick(&required) {
                    with.insert((*name).to_owned(), Value::Null);
                    call = either();
                }
            }
            7 if cases.operation.secured => {
                let credentials = draw.pick(&INVALID_CREDENTIALS).copied().unwrap_or_default();
                call = Call {
                    credentials,
                    ..either()
                };
            }
            _ => {}
        }
        (call, with)
    }

    /// A path that differs by one character and identifies nothing.
    fn wrong_path(
        cases: &Cases<'_>,
        with: &Map<String, Value>,
        draw: &mut Draw,
    ) -> Option<(Call, Map<String, Value>)> {
        let path = cases.path();
        let named: Vec<_> = path
            .iter()
            .filter(|p| with.get(&p.name).is_some_and(reads_a_sid))
            .collect();
        let parameter = draw.pick(&named)?;
        let by = draw.pick(&OF_SIDS)?;
        let mut wrong = with.clone();
        wrong.insert(
            parameter.name.clone(),
            json!({"$near": with.get(&parameter.name)?, "by": by}),
        );
        let step = match parameter.names_a_resource(cases.operation) {
            true => refused(&parameter.rule),
            false => either(),
        };
        Some((step, wrong))
    }

    /// A value at or beyond its bound, another word of an enumeration, or a boundary-invalid value.
    fn boundary_value(cases: &Cases<'_>, with: &mut Map<String, Value>, draw: &mut Draw) {
        let parameters: Vec<_> = cases
            .operation
            .parameters
            .iter()
            .filter(|p| matches!(p.place, ParameterLocation::Body | ParameterLocation::Query))
            .collect();
        let Some(parameter) = draw.pick(&parameters) else {
            return;
        };
        let schema = &parameter.schema;
        let number = |name: &str| schema.get(name).and_then(Value::as_i64);
        let off = [-1, 0, 1][draw.below(3)];
        let right = cases.value_of(&parameter.name).cloned();
        let right = with.get(&parameter.name).cloned().or(right);
        let value = if let Some(instant) = right.as_ref().filter(|v| v.get("$time").is_some()) {
            let mut moved = instant.clone();
            moved["plus"] = json!(draw.pick(&["-60s", "-1s", "0s", "1s", "60s"]));
            Some(moved)
        } else if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            let is_left_out = |word: &&Value| {
                let word = word.as_str().unwrap_or_default();
                let case = format!("{}={word}", parameter.name);
                cases.happy.except.contains_key(&case)
            };
            let words: Vec<&Value> = words.iter().filter(|word| !is_left_out(word)).collect();
            draw.pick(&words).copied().cloned()
        } else if schema.get("contentMediaType").is_some() {
            draw.pick(&DOCUMENTS).map(|text| json!(text))
        } else if schema.get("type").and_then(Value::as_str) == Some("array") {
            several(schema, draw)
        } else if let Some(max) = number("maxLength") {
            Some(json!({"$text": "x", "length": (max + off).max(0)}))
        } else if let (Some(min), true) = (number("minimum"), draw.once_in(2)) {
            Some(json!(min + off))
        } else if let Some(max) = number("maximum") {
            Some(json!(max + off))
        } else if is_sid(parameter) {
            let by = draw.pick(&OF_SIDS).copied();
            right.map(|right| json!({"$near": right, "by": by}))
        } else {
            let by = draw.pick(&BoundaryChange::ALL).map(|(_, name)| *name);
            let text = right.filter(Value::is_string);
            text.map(|text| json!({"$near": text, "by": by}))
        };
        if let Some(value) = value {
            with.insert(parameter.name.clone(), value);
        }
    }

    /// Adds a wait.
    fn add_wait(&mut self, draw: &mut Draw) {
        self.steps.extend(draw.pick(&TIMES).map(|time| wait(time)));
    }

    /// An action of a person or device on a resource of this sequence; false if there is none.
    fn add_hook(&mut self, draw: &mut Draw) -> bool {
        let captured: Vec<(String, String)> = self
            .setup_steps
            .iter()
            .chain(&self.steps)
            .filter_map(|step| {
                let call = step.call()?;
                let operation = self.rulebook.called(&self.service.name, &call.call)?;
                Some((call.capture.clone()?, operation.response.clone()?))
            })
            .collect();
        let index = &self.rulebook.index;
        let possible: Vec<Step> = index
            .hooks()
            .filter_map(|hook| self.of_captures(hook, &captured))
            .collect();
        let Some(step) = draw.pick(&possible) else {
            return false;
        };
        self.steps.push(step.clone());
        self.is_changed = true;
        true
    }

    /// The hook with its required arguments read from captures, if all are available.
    fn of_captures(&self, hook: &hooks::Hook, captured: &[(String, String)]) -> Option<Step> {
        if hook.required.is_empty() || hook.effects.iter().all(|e| e.does == Action::Makes) {
            return None;
        }
        let mut with = Map::new();
        for argument in &hook.required {
            let value = captured.iter().rev().find_map(|(name, kind)| {
                let shown = self.rulebook.kinds.get(kind)?;
                let properties = shown.schema.get("properties")?;
                let is_key = hook.effects.iter().any(|effect| {
                    let face = shown.annotations.of();
                    effect.key.as_ref() == Some(argument)
                        && (effect.kind == *kind || face == Some(effect.kind.as_str()))
                });
                if is_key && properties.get("sid").is_some() {
                    return Some(format!("${{{name}.sid}}"));
                }
                // A member that may be null cannot stand for a required argument.
                let whole = Place::root(&shown.schema).always();
                let has = |pointer: &str| {
                    let place = whole.clone().at(pointer);
                    !place.is_empty() && place.possible_types() & types::NULL == 0
                };
                if has(&format!("/{argument}")) {
                    return Some(format!("${{{name}.{argument}}}"));
                }
                // D1 wraps each resource in a member.
                let mut members = properties.as_object()?.keys();
                members
                    .find(|member| has(&format!("/{member}/{argument}")))
                    .map(|member| format!("${{{name}.{member}.{argument}}}"))
            })?;
            with.insert(argument.clone(), Value::String(value));
        }
        let hook = Hook {
            hook: hook.name.clone(),
            with,
            ..Hook::default()
        };
        Some(Step::from(hook).of_setup())
    }
}

#[cfg(test)]
mod tests {
    use super::super::deck::Deck;
    use super::*;

    #[test]
    fn hooks_act_on_created_resources_with_and_without_a_case() {
        let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
        let services = rulebook.services.values().collect();
        let deck = Deck::shuffled(&rulebook, services, 0, false);
        // Sequences with even numbers begin with a case.
        let has_hook_on = |start: u64, name: &str| {
            let drawn = (start..600).step_by(2).filter_map(|n| deck.draw(n));
            let mut steps = drawn.flat_map(|(_, steps)| steps);
            steps.any(|step| {
                let hook = step.with().filter(|_| matches!(step.verb, Verb::Hook(_)));
                hook.is_some_and(|with| json!(with).to_string().contains(name))
            })
        };
        assert!(has_hook_on(0, "${made-10"));
        assert!(has_hook_on(1, "${made-1."));
    }

    #[test]
    fn no_hook_needs_a_member_that_may_be_null() {
        let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
        let chat = &rulebook.services["chat"];
        let sequence = RandomSequence::of(&rulebook, chat);
        let publish = rulebook.index.hook("publish_flow").expect("it is a hook");
        let of = |kind: &str| {
            let captured = [("made".to_owned(), kind.to_owned())];
            let step = sequence.of_captures(publish, &captured)?;
            Some(json!(step.with()?))
        };
        assert_eq!(
            of("flow/execution"),
            Some(json!({"flow_sid": "${made.flow_sid}"}))
        );
        assert_eq!(of("chat/webhook"), None);
    }
}
