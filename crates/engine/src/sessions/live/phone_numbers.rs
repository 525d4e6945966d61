//! Phone numbers: which scenario uses which number of the setting that the rulebook marks as exclusive.
//!
//! Scenarios share numbers until the target shows that a number can be in use only once. From then on a scenario begins
//! when all its numbers are free, and each belongs to one scenario at a time.

use conformant_base::parallel::{lock, recovered};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

/// The phone numbers of a run.
#[derive(Debug)]
pub(super) struct PhoneNumbers {
    /// The configured numbers, of which scenarios are assigned one.
    pool: Vec<String>,
    /// How many scenarios use each number.
    use_counts: Mutex<BTreeMap<String, usize>>,
    freed: Condvar,
    is_exclusive: AtomicBool,
}

/// The numbers that a scenario needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Whether it needs one of the configured numbers, whichever that is.
    pub(super) any: bool,
    /// Whether it gets a number of its own even while scenarios share numbers.
    pub(super) is_assigned: bool,
    /// Numbers that it names itself.
    pub(super) named: BTreeSet<String>,
}

/// The numbers of a scenario; released on drop.
#[derive(Debug)]
pub(super) struct UsedNumbers<'a> {
    phone_numbers: &'a PhoneNumbers,
    /// The configured number that is given to it.
    pub(super) assigned: Option<String>,
    /// All its numbers: those that it names, and the configured one that it uses.
    pub(super) numbers: BTreeSet<String>,
    /// Whether other scenarios may use the same numbers at the same time.
    pub(super) is_shared: bool,
}

impl Needs {
    pub(super) fn is_empty(&self) -> bool {
        !self.any && self.named.is_empty()
    }
}

impl UsedNumbers<'_> {
    /// Whether other scenarios may use this number of it at the same time.
    pub(super) fn may_share(&self, number: &str) -> bool {
        self.is_shared && self.numbers.contains(number)
    }
}

impl PhoneNumbers {
    pub(super) fn new(pool: Vec<String>) -> Self {
        Self {
            use_counts: Mutex::new(pool.iter().map(|number| (number.clone(), 0)).collect()),
            pool,
            freed: Condvar::new(),
            is_exclusive: AtomicBool::new(false),
        }
    }

    /// Whether scenarios can be assigned a number.
    pub(super) fn has_pool(&self) -> bool {
        !self.pool.is_empty()
    }

    /// How many scenarios that need numbers can run at the same time.
    pub(super) fn limit(&self) -> usize {
        if self.are_exclusive() {
            lock(&self.use_counts).len()
        } else {
            usize::MAX
        }
    }

    /// Whether each number belongs to one scenario at a time.
    pub(super) fn are_exclusive(&self) -> bool {
        self.is_exclusive.load(Ordering::SeqCst)
    }

    /// Makes each number exclusive from now on.
    pub(super) fn make_exclusive(&self) {
        self.is_exclusive.store(true, Ordering::SeqCst);
    }

    /// Takes all numbers that a scenario needs. Waits for unused ones if numbers are exclusive.
    pub(super) fn take(&self, needs: &Needs) -> UsedNumbers<'_> {
        let mut use_counts = lock(&self.use_counts);
        loop {
            let are_exclusive = self.are_exclusive();
            let count = |number: &String| use_counts.get(number).copied().unwrap_or_default();
            let others = self.pool.iter().filter(|n| !needs.named.contains(*n));
            let is_assigned = needs.is_assigned || are_exclusive;
            let least_used = others.min_by_key(|number| count(number));
            // All scenarios without a number of their own use the first one.
            let number = match least_used.filter(|_| is_assigned) {
                _ if !needs.any => None,
                None => self.pool.first(),
                found => found,
            };
            let mut numbers = needs.named.clone();
            numbers.extend(number.cloned());
            if are_exclusive && numbers.iter().any(|number| count(number) > 0) {
                use_counts = recovered(self.freed.wait(use_counts));
                continue;
            }
            for number in &numbers {
                *use_counts.entry(number.clone()).or_default() += 1;
            }
            return UsedNumbers {
                phone_numbers: self,
                assigned: number.filter(|_| is_assigned).cloned(),
                numbers,
                is_shared: !are_exclusive,
            };
        }
    }
}

impl Drop for UsedNumbers<'_> {
    fn drop(&mut self) {
        let mut use_counts = lock(&self.phone_numbers.use_counts);
        for number in &self.numbers {
            if let Some(scenarios) = use_counts.get_mut(number) {
                *scenarios -= 1;
            }
        }
        drop(use_counts);
        self.phone_numbers.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{Needs, PhoneNumbers};

    fn needs(any: bool, named: &[&str]) -> Needs {
        Needs {
            any,
            is_assigned: true,
            named: named.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn numbers_are_shared_until_they_are_exclusive() {
        let phone_numbers = PhoneNumbers::new(vec!["a".to_owned(), "b".to_owned()]);
        let one = needs(true, &[]);
        let three = [
            phone_numbers.take(&one),
            phone_numbers.take(&one),
            phone_numbers.take(&one),
        ];
        assert!(three.iter().all(|used| used.is_shared));
        assert_eq!(phone_numbers.limit(), usize::MAX);
        phone_numbers.make_exclusive();
        assert_eq!(phone_numbers.limit(), 2);
        let [first, second, third] = three;
        assert_ne!(first.assigned, second.assigned);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let used = phone_numbers.take(&one);
                (used.assigned.clone(), used.is_shared)
            });
            let number = second.assigned.clone();
            drop(second);
            let taken = waiting.join().expect("it gets the unused one");
            assert_eq!(taken, (number, false));
        });
        assert_eq!(first.assigned, third.assigned, "two scenarios still use it");
    }

    #[test]
    fn a_scenario_waits_for_the_numbers_that_it_names() {
        let phone_numbers = PhoneNumbers::new(vec!["a".to_owned(), "b".to_owned()]);
        phone_numbers.make_exclusive();
        let both = phone_numbers.take(&needs(true, &["a", "person"]));
        assert_eq!(both.assigned.as_deref(), Some("b"));
        assert!(!both.may_share("person"));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                phone_numbers
                    .take(&needs(false, &["person"]))
                    .assigned
                    .clone()
            });
            let other = phone_numbers.take(&needs(false, &["another person"]));
            assert_eq!(other.assigned, None);
            drop(both);
            assert_eq!(waiting.join().expect("it gets the number"), None);
        });
        // Without a pool nothing is assigned.
        let none = PhoneNumbers::new(Vec::new());
        assert_eq!(none.take(&needs(true, &[])).assigned, None);
    }
}
