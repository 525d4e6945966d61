//! All rules of a rulebook: by id, and in the order in which they judge.
//!
//! Both orders are worked out once; what a rule asks is its own business.

use super::model::{Origin, Rule};
use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::OnceLock;

/// Rules in the order of their ids.
#[derive(Debug, Default)]
pub struct Rules {
    all: Vec<Rule>,
    /// Where those stand that predicates judge, in the order of judging; worked out when first asked for.
    order: OnceLock<Vec<usize>>,
}

impl Rules {
    /// The rule of that id.
    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.find(id).ok().map(|at| &self.all[at])
    }

    /// Whether there is a rule of that id.
    pub fn contains_key(&self, id: &str) -> bool {
        self.find(id).is_ok()
    }

    /// Every rule with its id, by id.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Rule)> {
        self.all.iter().map(|rule| (&rule.id, rule))
    }

    /// Every id in order.
    pub fn keys(&self) -> impl Iterator<Item = &String> + Clone {
        self.all.iter().map(|rule| &rule.id)
    }

    /// Every rule by id.
    pub fn values(&self) -> std::slice::Iter<'_, Rule> {
        self.all.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Written rules in the order of their predicates: what an earlier one accuses is hidden from those
    /// behind it.
    pub fn in_order(&self) -> impl Iterator<Item = &Rule> {
        let order = self.order.get_or_init(|| {
            let rank = |rule: &Rule| match &rule.origin {
                Origin::Written(written) => Some(written.check.rank()),
                Origin::Property { .. }
                | Origin::NoOtherFields { .. }
                | Origin::Operation { .. }
                | Origin::Parameter { .. }
                | Origin::Credentials { .. }
                | Origin::ListKey { .. }
                | Origin::ListWalk { .. }
                | Origin::Either => None,
            };
            let numbered = self.all.iter().enumerate();
            let ranked = numbered.filter_map(|(at, rule)| Some((rank(rule)?, at)));
            let mut ranked: Vec<(usize, usize)> = ranked.collect();
            ranked.sort_unstable();
            ranked.into_iter().map(|(_, at)| at).collect()
        });
        order.iter().map(|&at| &self.all[at])
    }

    /// Adds a rule, or puts it in the place of the one of its id.
    pub fn insert(&mut self, rule: Rule) {
        self.order.take();
        match self.find(&rule.id) {
            Ok(at) => self.all[at] = rule,
            Err(at) => self.all.insert(at, rule),
        }
    }

    /// The rule of that id, to be changed in all but its id.
    pub fn get_mut(&mut self, id: &str) -> Option<&mut Rule> {
        self.order.take();
        self.find(id).ok().map(|at| &mut self.all[at])
    }

    /// Keeps some rules alone.
    pub fn retain(&mut self, keeps: impl Fn(&Rule) -> bool) {
        self.order.take();
        self.all.retain(keeps);
    }

    /// Takes a rule out.
    pub fn remove(&mut self, id: &str) -> Option<Rule> {
        self.order.take();
        self.find(id).ok().map(|at| self.all.remove(at))
    }

    fn find(&self, id: &str) -> Result<usize, usize> {
        self.all.binary_search_by(|rule| rule.id.as_str().cmp(id))
    }
}

impl From<BTreeMap<String, Rule>> for Rules {
    fn from(rules: BTreeMap<String, Rule>) -> Self {
        Self {
            all: rules.into_values().collect(),
            order: OnceLock::new(),
        }
    }
}

impl FromIterator<Rule> for Rules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        let rules = rules.into_iter().map(|rule| (rule.id.clone(), rule));
        Self::from(rules.collect::<BTreeMap<_, _>>())
    }
}

impl Index<&str> for Rules {
    type Output = Rule;

    /// The rule of an id that is known to be there.
    fn index(&self, id: &str) -> &Rule {
        self.get(id).expect("a rule of that id is there")
    }
}
