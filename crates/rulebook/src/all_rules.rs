//! All rules of a rulebook: by id, in the order of judging, and by what they apply to. Each order is computed once.

use super::check::AppliesTo;
use super::model::Rule;
use conformant_base::sorted::SortedMap;
use conformant_record::{Basis, Level};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Index;
use std::sync::OnceLock;

#[derive(Default)]
pub struct Rules {
    all: Vec<Rule>,
    /// Computed on first use.
    order: OnceLock<Order>,
}

impl fmt::Debug for Rules {
    /// Omits the computed order.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_list().entries(&self.all).finish()
    }
}

/// The parts of the evidence that decide which rules apply.
#[derive(Clone, Debug, Default)]
pub struct EvidenceSelection<'c> {
    /// Requested operations, each after its service.
    pub operations: BTreeSet<(&'c str, &'c str)>,
    /// Resource types of representations and of requests.
    pub kinds: BTreeSet<&'c str>,
    /// Rules that statements name.
    pub stated: BTreeSet<&'c str>,
}

/// Rules with a predicate in the order of judging, indexed by what they apply to.
#[derive(Debug, Default)]
struct Order {
    /// Indexes into all rules. All other fields are indexes into this list.
    ranked: Vec<usize>,
    /// By service and operation.
    by_operation: SortedMap<String, SortedMap<String, Vec<usize>>>,
    by_kind: SortedMap<String, Vec<usize>>,
    by_statement: SortedMap<String, usize>,
    /// Rules that may apply to anything.
    anyhow: Vec<usize>,
}

impl Order {
    fn compute(rules: &[Rule]) -> Self {
        let written = rules.iter().enumerate();
        let written = written.filter_map(|(at, rule)| {
            let check = rule.check()?;
            // One finding is reported at a place, so a warning that is only inferred comes last.
            let is_inferred = rule.level == Level::Should && rule.basis == Basis::Inferred;
            let rank = (is_inferred, check.order, at);
            Some((rank, at, check))
        });
        let mut written: Vec<_> = written.collect();
        written.sort_by_key(|(rank, ..)| *rank);
        let mut order = Self::default();
        for (place, (_, at, check)) in written.into_iter().enumerate() {
            let rule = &rules[at];
            order.ranked.push(at);
            match &check.applies_to {
                AppliesTo::Anything => order.anyhow.push(place),
                AppliesTo::Steps => {
                    order.by_statement.insert(rule.id.clone(), place);
                }
                AppliesTo::Kinds(kinds) => {
                    for kind in kinds {
                        let by_kind = order.by_kind.entry(kind.clone());
                        by_kind.or_default().push(place);
                    }
                }
                AppliesTo::Operations(operations) => {
                    let of_service = order.by_operation.entry(rule.service.clone()).or_default();
                    for operation in operations {
                        let by_operation = of_service.entry(operation.clone());
                        by_operation.or_default().push(place);
                    }
                }
            }
        }
        order
    }
}

impl Rules {
    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.find(id).ok().map(|at| &self.all[at])
    }

    pub fn contains_key(&self, id: &str) -> bool {
        self.find(id).is_ok()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &Rule)> {
        self.all.iter().map(|rule| (&rule.id, rule))
    }

    pub fn keys(&self) -> impl Iterator<Item = &String> + Clone {
        self.all.iter().map(|rule| &rule.id)
    }

    pub fn values(&self) -> std::slice::Iter<'_, Rule> {
        self.all.iter()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Rules with a predicate in the order of judging. Later rules do not flag what an earlier one flagged.
    pub fn in_order(&self) -> impl Iterator<Item = &Rule> {
        self.order().ranked.iter().map(|&at| &self.all[at])
    }

    /// The rules that may apply to the evidence, in the same order.
    pub fn applicable_to<'r>(
        &'r self,
        selection: &EvidenceSelection<'_>,
    ) -> impl Iterator<Item = &'r Rule> + use<'r> {
        let order = self.order();
        let mut places = order.anyhow.clone();
        for (service, operation) in &selection.operations {
            let of_service = order.by_operation.get(*service);
            places.extend(
                of_service
                    .and_then(|by| by.get(*operation))
                    .into_iter()
                    .flatten(),
            );
        }
        for kind in &selection.kinds {
            places.extend(order.by_kind.get(*kind).into_iter().flatten());
        }
        for rule in &selection.stated {
            places.extend(order.by_statement.get(*rule));
        }
        places.sort_unstable();
        places.dedup();
        let rules = places.into_iter().map(|place| order.ranked[place]);
        rules.map(|at| &self.all[at])
    }

    fn order(&self) -> &Order {
        self.order.get_or_init(|| Order::compute(&self.all))
    }

    /// Adds a rule, or replaces the one with its id.
    pub fn insert(&mut self, rule: Rule) {
        self.order.take();
        match self.find(&rule.id) {
            Ok(at) => self.all[at] = rule,
            Err(at) => self.all.insert(at, rule),
        }
    }

    /// A rule for changes; its id must stay.
    pub fn get_mut(&mut self, id: &str) -> Option<&mut Rule> {
        self.order.take();
        self.find(id).ok().map(|at| &mut self.all[at])
    }

    pub fn retain(&mut self, keeps: impl Fn(&Rule) -> bool) {
        self.order.take();
        self.all.retain(keeps);
    }

    pub fn remove(&mut self, id: &str) -> Option<Rule> {
        self.order.take();
        self.find(id).ok().map(|at| self.all.remove(at))
    }

    fn find(&self, id: &str) -> Result<usize, usize> {
        self.all.binary_search_by(|rule| rule.id.as_str().cmp(id))
    }
}

impl From<SortedMap<String, Rule>> for Rules {
    fn from(rules: SortedMap<String, Rule>) -> Self {
        Self {
            all: rules.into_values().collect(),
            order: OnceLock::new(),
        }
    }
}

impl FromIterator<Rule> for Rules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        let rules = rules.into_iter().map(|rule| (rule.id.clone(), rule));
        Self::from(rules.collect::<SortedMap<_, _>>())
    }
}

impl Index<&str> for Rules {
    type Output = Rule;

    /// The rule of an existing id.
    fn index(&self, id: &str) -> &Rule {
        self.get(id).expect("a rule of that id is there")
    }
}
