//! Plan: selects, orders and partitions the scenarios of a run.

use super::derive;
use super::template::wait_of;
use conformant_base::sorted::SortedMap;
use conformant_base::text::glob;
use conformant_record::PartOf;
use conformant_rulebook::scenario::Scenario;
use conformant_rulebook::step::{Step, Verb};
use conformant_rulebook::{ParameterLocation, Rulebook, Service};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::Duration;

/// The selected scenarios.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Services; empty for all.
    pub services: Vec<String>,
    /// Globs over scenario ids, `*` for any text; empty for all.
    pub filters: Vec<String>,
    /// Exact scenario ids; empty for all.
    pub only: Vec<String>,
    /// A part of the selection, for one of several machines.
    pub partition: Option<Partition>,
}

/// One part of a selection, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partition {
    /// By the hash of the id, which is stable when other scenarios are added or removed.
    Hash {
        /// Which part.
        part: u64,
        /// Of how many.
        of: u64,
    },
    /// Every N-th of the sorted ids: parts of equal size.
    Slice {
        /// Which part.
        part: u64,
        /// Of how many.
        of: u64,
    },
}

/// A scenario ready to run.
#[derive(Clone, Debug)]
pub struct Planned<'a> {
    /// The service whose operations and groups it uses by their short names.
    pub service: &'a Service,
    /// With its matrix reduced to one combination.
    pub scenario: Scenario,
}

impl Planned<'_> {
    /// Whether any step, including those of groups, satisfies the condition.
    pub fn any_step(&self, is: &dyn Fn(&Step) -> bool) -> bool {
        any_step(self.service, &self.scenario.steps, is, 0)
    }

    /// Whether it sends requests at the same time.
    pub fn is_race(&self) -> bool {
        self.any_step(&|step| step.race().is_some())
    }

    /// Whether it draws phone numbers that the target must not know yet.
    pub fn draws_numbers(&self) -> bool {
        draws_numbers(self.service, &self.scenario)
    }

    /// The first number that an attempt of it draws. All scenarios and attempts of a run draw different ones; those of
    /// other runs (name and seed) begin elsewhere.
    pub(super) fn first_number(&self, rulebook: &Rulebook, run: &str, attempt: usize) -> u64 {
        /// The largest number of numbers that an attempt draws (`place` is 0 or 1).
        const EACH: usize = 2;
        if !self.draws_numbers() {
            return 0;
        }
        let services = rulebook.services.values();
        let written = services.flat_map(|service| {
            let scenarios = service.scenarios.iter();
            scenarios.map(move |(id, (scenario, _))| (id, service, scenario))
        });
        let drawing = written.filter(|(_, service, scenario)| draws_numbers(service, scenario));
        let drawing: Vec<&String> = drawing.map(|(id, ..)| id).collect();
        let id = self.scenario.id.split('[').next();
        let rank = drawing.iter().position(|known| Some(known.as_str()) == id);
        let digest = Sha256::digest(format!("{run}\n$number").as_bytes());
        let start = digest.first_chunk().copied();
        let start = start.map_or(0, u64::from_be_bytes) >> 16;
        // Attempts draw other digits even if there are ten numbers only.
        let of_attempt = (drawing.len() * EACH).next_multiple_of(10) + 3;
        let before = attempt * of_attempt + rank.unwrap_or_default() * EACH;
        start + u64::try_from(before).unwrap_or_default()
    }

    /// Services that its steps call or change. The steps of a group belong to the group's service.
    pub fn touches(&self) -> BTreeSet<String> {
        let touched = RefCell::new(BTreeSet::from([self.service.name.clone()]));
        self.any_step(&|step| {
            if matches!(step.verb, Verb::Call(_) | Verb::Use(_))
                && let Some((service, _)) = step.about().split_once('/')
            {
                touched.borrow_mut().insert(service.to_owned());
            }
            false
        });
        touched.into_inner()
    }

    /// Estimated duration: its stated waits and a constant for each step.
    pub fn length(&self) -> Duration {
        length_of(self.service, &self.scenario.steps, 0)
    }

    /// Whether it walks a list to which other scenarios may add: its path names no resource that this scenario made.
    ///
    /// Pages are counted from the front, so an insertion shifts them and an item appears twice although the list is in
    /// order.
    /// `own` is a setting (service and key) with a separate value for each scenario.
    pub fn walks_a_shared_list(&self, own: Option<(&str, &str)>) -> bool {
        self.any_step(&|step| {
            let walked = step.call().filter(|call| call.walk);
            walked.is_some_and(|walk| {
                let operation = self.service.operations.get(&walk.call);
                operation.is_some_and(|operation| {
                    let path = operation.parameters.iter();
                    let mut path = path.filter(|p| p.place == ParameterLocation::Path);
                    path.all(|p| {
                        let value = walk.with.get(&p.name);
                        value.is_some_and(|value| is_configured(value, own))
                    })
                })
            })
        })
    }
}

/// Whether a value only comes from the configuration, which all scenarios share.
fn is_configured(value: &Value, own: Option<(&str, &str)>) -> bool {
    let names = value.as_str().map(conformant_rulebook::interpolations);
    let is_shared = |path: &[String]| {
        let is_own = |(service, key): (&str, &str)| path[1..] == [service, key];
        path[0] == "target" && !own.is_some_and(is_own)
    };
    names.is_some_and(|names| names.is_ok_and(|names| names.iter().all(|n| is_shared(&n.path))))
}

/// Maximum nesting of groups.
const DEPTH_MAX: usize = 16;

fn length_of(service: &Service, steps: &[Step], depth: usize) -> Duration {
    const STEP: Duration = Duration::from_millis(20);
    let length = |step: &Step| {
        let stated = |text: Option<&str>| text.and_then(wait_of).unwrap_or_default();
        let once = match &step.verb {
            Verb::Wait(wait) => STEP + stated(Some(&wait.wait)),
            Verb::Await(come) => STEP + stated(come.quiet.as_deref()),
            Verb::Listen(listen) => {
                let answers = listen.answers.iter();
                STEP + answers
                    .map(|a| stated(a.after.as_deref()))
                    .sum::<Duration>()
            }
            Verb::Use(group) => {
                let group = service.groups.get(&group.r#use);
                let group = group.filter(|_| depth < DEPTH_MAX);
                group.map_or(STEP, |g| length_of(service, &g.steps, depth + 1))
            }
            Verb::Call(_)
            | Verb::Get(_)
            | Verb::Hook(_)
            | Verb::Token(_)
            | Verb::Concurrently(_) => STEP,
        };
        let times = u32::try_from(step.repeat.unwrap_or(1)).unwrap_or(u32::MAX);
        once.saturating_mul(times)
    };
    steps
        .iter()
        .map(length)
        .fold(Duration::ZERO, Duration::saturating_add)
}

fn draws_numbers(service: &Service, scenario: &Scenario) -> bool {
    let draws = |step: &Step| {
        let values = step.with().into_iter().flat_map(|with| with.values());
        values
            .filter_map(Value::as_object)
            .any(|object| object.contains_key("$number"))
    };
    any_step(service, &scenario.steps, &draws, 0)
}

fn any_step(service: &Service, steps: &[Step], is: &dyn Fn(&Step) -> bool, depth: usize) -> bool {
    steps.iter().any(|step| {
        let group = step.group().and_then(|g| service.groups.get(&g.r#use));
        is(step)
            || any_step(service, step.nested(), is, depth)
            || group
                .is_some_and(|g| depth < DEPTH_MAX && any_step(service, &g.steps, is, depth + 1))
    })
}

/// All scenarios of the rulebook, written and derived, in each combination, by id.
pub fn all(rulebook: &Rulebook) -> Vec<Planned<'_>> {
    gather(rulebook, &|_| true, &|_| true)
}

/// All scenarios that may concern an id: all written ones and the derived ones of its service. For an id without a
/// service, all scenarios.
pub fn about<'a>(rulebook: &'a Rulebook, id: &str) -> Vec<Planned<'a>> {
    let service = id.split('/').next().unwrap_or_default();
    let is_of_one = rulebook.services.contains_key(service);
    gather(rulebook, &|_| true, &|name| !is_of_one || name == service)
}

/// The written scenarios of some services and the derived scenarios of others, by id.
fn gather<'a>(
    rulebook: &'a Rulebook,
    is_written: &dyn Fn(&str) -> bool,
    is_derived: &dyn Fn(&str) -> bool,
) -> Vec<Planned<'a>> {
    let mut planned = Vec::new();
    for (name, service) in &rulebook.services {
        let mut scenarios = Vec::new();
        if is_written(name) {
            let written = service.scenarios.values();
            scenarios.extend(written.map(|(scenario, _)| scenario.clone()));
        }
        if is_derived(name) {
            scenarios.extend(derive::derive(rulebook, service));
        }
        for scenario in scenarios {
            planned.append(&mut combined(service, scenario));
        }
    }
    planned.sort_by(|a, b| a.scenario.id.cmp(&b.scenario.id));
    planned
}

/// The selected scenarios in order of execution.
pub fn plan<'a>(
    rulebook: &'a Rulebook,
    selection: &Selection,
    shuffle: Option<u64>,
) -> Vec<Planned<'a>> {
    let may_hold = |service: &str| selection.may_want(service);
    let mut planned = gather(rulebook, &may_hold, &may_hold);
    planned.retain(|p| selection.wants(&p.service.name, &p.scenario.id));
    if let Some(partition) = selection.partition {
        let mut index = 0;
        planned.retain(|p| {
            index += 1;
            partition.holds(index - 1, &p.scenario.id)
        });
    }
    if let Some(seed) = shuffle {
        planned.shuffle(&mut rand::rngs::ChaCha8Rng::seed_from_u64(seed));
    }
    planned
}

impl Selection {
    /// Whether scenarios of a service can be selected: all their ids begin with its name.
    fn may_want(&self, service: &str) -> bool {
        listed(&self.services, &|s| s == service)
            && listed(&self.filters, &|f| may_match(f, service))
            && listed(&self.only, &|o| may_match(o, service))
    }

    fn wants(&self, service: &str, id: &str) -> bool {
        listed(&self.services, &|s| s == service)
            && listed(&self.filters, &|f| glob(f, id))
            && listed(&self.only, &|o| o == id)
    }
}

/// Whether an entry of a list, which stands for everything if it is empty, satisfies the condition.
fn listed(list: &[String], holds: &dyn Fn(&String) -> bool) -> bool {
    list.is_empty() || list.iter().any(holds)
}

/// Whether a glob can match ids of a service, judging by its literal prefix.
fn may_match(glob: &str, service: &str) -> bool {
    let (stated, has_wildcard) = match glob.split_once('*') {
        Some((stated, _)) => (stated, true),
        None => (glob, false),
    };
    match stated.split_once('/') {
        Some((of, _)) => of == service,
        None if has_wildcard => service.starts_with(stated),
        None => stated == service,
    }
}

impl From<Partition> for PartOf {
    fn from(partition: Partition) -> Self {
        let (kind, part, of) = match partition {
            Partition::Hash { part, of } => ("hash", part, of),
            Partition::Slice { part, of } => ("slice", part, of),
        };
        let kind = kind.to_owned();
        Self { kind, part, of }
    }
}

/// Why a partition is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// It has another form.
    #[error("invalid partition `{0}`: expected `hash:M/N` or `slice:M/N`, such as `hash:1/4`")]
    Form(String),
    /// There is no such part.
    #[error("`{text}`: the part is counted from 1 to {of}")]
    Part {
        /// What is written.
        text: String,
        /// How many there are.
        of: u64,
    },
}

impl FromStr for Partition {
    type Err = PartitionError;

    /// Reads `hash:M/N` or `slice:M/N`.
    fn from_str(text: &str) -> Result<Self, PartitionError> {
        let wrong = || PartitionError::Form(text.to_owned());
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (part, of) = rest.split_once('/').ok_or_else(wrong)?;
        let (part, of): (u64, u64) = (
            part.parse().map_err(|_| wrong())?,
            of.parse().map_err(|_| wrong())?,
        );
        if of == 0 {
            return Err(wrong());
        }
        if part == 0 || part > of {
            return Err(PartitionError::Part {
                text: text.to_owned(),
                of,
            });
        }
        match kind {
            "hash" => Ok(Self::Hash { part, of }),
            "slice" => Ok(Self::Slice { part, of }),
            _ => Err(wrong()),
        }
    }
}

impl Partition {
    fn holds(self, index: u64, id: &str) -> bool {
        match self {
            Self::Slice { part, of } => index % of == part - 1,
            Self::Hash { part, of } => {
                let digest = Sha256::digest(id.as_bytes());
                let word = digest.first_chunk().copied();
                word.map_or(0, u64::from_be_bytes) % of == part - 1
            }
        }
    }
}

/// A scenario for each combination of its matrix, with the label appended to its id.
fn combined(service: &Service, scenario: Scenario) -> Vec<Planned<'_>> {
    if scenario.matrix.is_empty() {
        return vec![Planned { service, scenario }];
    }
    let mut combined: Vec<(String, SortedMap<String, Vec<Value>>)> =
        vec![(String::new(), SortedMap::new())];
    for (name, values) in &scenario.matrix {
        combined = combined
            .into_iter()
            .flat_map(|(label, chosen)| {
                values.iter().map(move |value| {
                    let word = value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned);
                    let mut chosen = chosen.clone();
                    chosen.insert(name.clone(), vec![value.clone()]);
                    let comma = if label.is_empty() { "" } else { "," };
                    (format!("{label}{comma}{name}={word}"), chosen)
                })
            })
            .collect();
    }
    let combined = combined.into_iter();
    let planned = combined.map(|(label, matrix)| Planned {
        service,
        scenario: Scenario {
            id: format!("{}[{label}]", scenario.id),
            matrix,
            ..scenario.clone()
        },
    });
    planned.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_and_attempts_of_a_run_draw_different_numbers() {
        let rulebook = conformant_judge::load::shared();
        let written = all(rulebook);
        let drawing = || written.iter().filter(|planned| planned.draws_numbers());
        let mut firsts: Vec<u64> = (0..5)
            .flat_map(|attempt| drawing().map(move |p| p.first_number(rulebook, "1", attempt)))
            .collect();
        firsts.sort_unstable();
        assert!(firsts.len() > 5, "{firsts:?}");
        // Each draws two.
        assert!(
            firsts.windows(2).all(|two| two[1] - two[0] >= 2),
            "{firsts:?}"
        );
    }

    /// The shortcut for single services selects the same scenarios as a filter over all of them.
    #[test]
    fn skipped_services_contain_no_selected_scenario() {
        let rulebook = conformant_judge::load::shared();
        let ids = |planned: &[Planned<'_>]| -> Vec<String> {
            planned.iter().map(|p| p.scenario.id.clone()).collect()
        };
        let whole = all(rulebook);
        for filter in [
            "flow",
            "flow/",
            "flow/executions",
            "f*",
            "*",
            "*page*",
            "c*/members",
            "chat*",
            "me*a/*",
            "flow/read-*",
            "floww",
            "fl",
            "/flow",
            "",
        ] {
            let selection = Selection {
                filters: vec![filter.to_owned()],
                ..Selection::default()
            };
            let mut wanted = whole.clone();
            wanted.retain(|p| selection.wants(&p.service.name, &p.scenario.id));
            assert_eq!(
                ids(&plan(rulebook, &selection, None)),
                ids(&wanted),
                "{filter}"
            );
        }
        let one = Selection {
            only: vec![whole[whole.len() / 2].scenario.id.clone()],
            ..Selection::default()
        };
        assert_eq!(ids(&plan(rulebook, &one, None)), one.only);
    }

    fn names_any(steps: &[Step], is: &dyn Fn(&str) -> bool) -> bool {
        let named = |step: &Step| step.rules().any(|rule| is(rule)) || names_any(step.nested(), is);
        steps.iter().any(named)
    }

    /// `explain` relies on it: `about` contains every scenario that has or names an id.
    #[test]
    fn about_contains_every_scenario_that_names_a_rule() {
        let rulebook = conformant_judge::load::shared();
        let whole = all(rulebook);
        for service in rulebook.services.keys() {
            let about = about(rulebook, &format!("{service}/anything"));
            let about: BTreeSet<&str> = about.iter().map(|p| p.scenario.id.as_str()).collect();
            for planned in &whole {
                let id = planned.scenario.id.as_str();
                let is_of_it = |id: &str| id.split('/').next() == Some(service);
                let is_about = is_of_it(id) || names_any(&planned.scenario.steps, &is_of_it);
                assert!(!is_about || about.contains(id), "{service}: {id}");
            }
        }
    }

    #[test]
    fn partitions_cover_every_id_once() {
        let ids: Vec<String> = (0..97).map(|n| format!("s/{n}")).collect();
        for kind in ["hash", "slice"] {
            let held: usize = (1..=4)
                .map(|part| {
                    let partition = format!("{kind}:{part}/4").parse::<Partition>().unwrap();
                    ids.iter()
                        .enumerate()
                        .filter(|(i, id)| partition.holds(*i as u64, id))
                        .count()
                })
                .sum();
            assert_eq!(held, ids.len(), "{kind}");
        }
        for wrong in [
            "hash:0/4",
            "hash:1/0",
            "slice:5/4",
            "x:1/2",
            "hash:1",
            "hash:a/b",
        ] {
            assert!(wrong.parse::<Partition>().is_err(), "{wrong}");
        }
    }
}
