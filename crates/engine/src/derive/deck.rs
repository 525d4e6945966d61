//! What sequences are drawn from: the cases that the rulebook implies, in an order that the seed decides, each with moves behind it;
//! and between them sequences of moves alone.
//!
//! A sequence depends on seed and number alone, so that any of them can be drawn again.

use super::cases::derive;
use super::heard;
use super::moves::{Draw, sequence};
use super::races;
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
    /// A shuffled one; without cases where nothing may be sent that writes.
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
                let heard = heard::derive(rulebook, service);
                cases.extend(derived.chain(heard).map(|steps| (*service, steps)));
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

    /// The sequence of that number with its service; none where there is nothing to send.
    pub fn draw(&self, number: u64) -> Option<(&'a Service, Vec<Step>)> {
        let mut draw = Draw::new(self.seed, number);
        let turn = usize::try_from(number / 2).unwrap_or_default();
        let case = (number.is_multiple_of(2) && !self.cases.is_empty())
            .then(|| &self.cases[turn % self.cases.len()]);
        let (service, case) = match case {
            Some((service, case)) => (*service, case.as_slice()),
            None => (draw.of(&self.services).copied()?, &[][..]),
        };
        let mut steps = sequence(self.rulebook, service, case, &mut draw, self.only_safe);
        if !self.only_safe {
            // Drawn apart, so that the sequence itself stays the same.
            let mut draw = Draw::new(!self.seed, number);
            races::at_once(&mut steps, &mut draw);
        }
        (!steps.is_empty()).then_some((service, steps))
    }
}
