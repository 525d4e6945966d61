//! Deck of random sequences: derived cases in an order that depends on the seed, each with further requests, and
//! sequences of random requests alone.
//!
//! A sequence depends only on seed and number, so it can be drawn again.

use super::cases::derive;
use super::notifications;
use super::races;
use super::sequence::{Draw, random_sequence};
use conformant_rulebook::step::Step;
use conformant_rulebook::{Rulebook, Service};

/// The cases of some services.
#[derive(Debug)]
pub struct Deck<'a> {
    rulebook: &'a Rulebook,
    services: Vec<&'a Service>,
    cases: Vec<(&'a Service, Vec<Step>)>,
    seed: u64,
    only_safe: bool,
}

impl<'a> Deck<'a> {
    /// Shuffles the cases; contains none if no writing requests are allowed.
    pub fn shuffled(
        rulebook: &'a Rulebook,
        services: Vec<&'a Service>,
        seed: u64,
        only_safe: bool,
    ) -> Self {
        let services: Vec<&Service> = services
            .into_iter()
            .filter(|service| !service.happy.is_empty())
            .collect();
        let mut cases: Vec<(&Service, Vec<Step>)> = Vec::new();
        if !only_safe {
            for service in &services {
                let derived = derive(rulebook, service).into_iter();
                let derived = derived.map(|case| case.steps);
                let notified = notifications::derive(rulebook, service);
                cases.extend(derived.chain(notified).map(|steps| (*service, steps)));
            }
        }
        let mut draw = Draw::new(seed, u64::MAX);
        for last in (1..cases.len()).rev() {
            cases.swap(last, draw.below(last + 1));
        }
        Self {
            rulebook,
            services,
            cases,
            seed,
            only_safe,
        }
    }

    /// Whether no service has anything to send.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// The sequence of that number with its service; `None` if there is nothing to send.
    pub fn draw(&self, number: u64) -> Option<(&'a Service, Vec<Step>)> {
        let mut draw = Draw::new(self.seed, number);
        let turn = usize::try_from(number / 2).unwrap_or_default();
        let case = (number.is_multiple_of(2) && !self.cases.is_empty())
            .then(|| &self.cases[turn % self.cases.len()]);
        let (service, case) = match case {
            Some((service, case)) => (*service, case.as_slice()),
            None => (draw.pick(&self.services).copied()?, &[][..]),
        };
        let mut steps = random_sequence(self.rulebook, service, case, &mut draw, self.only_safe);
        if !self.only_safe {
            // Drawn apart, so that the sequence itself stays the same.
            let mut draw = Draw::new(!self.seed, number);
            races::at_once(&mut steps, &mut draw);
        }
        (!steps.is_empty()).then_some((service, steps))
    }
}
