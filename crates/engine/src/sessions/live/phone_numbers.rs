//! Phone-number pool: assigns the numbers of exclusive settings to scenarios.
//!
//! Scenarios share numbers until the target shows that a number can be in use only once. From then on each number
//! belongs to one scenario at a time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The phone numbers of a run.
#[derive(Debug)]
pub(super) struct PhoneNumbers {
    /// Each number with the number of scenarios that use it.
    users: Mutex<Vec<(String, usize)>>,
    freed: Condvar,
    are_exclusive: AtomicBool,
    /// The executions that scenarios of this run made.
    made: Mutex<BTreeSet<String>>,
}

/// The number of a scenario; released on drop.
#[derive(Debug)]
pub(super) struct AssignedNumber<'a> {
    phone_numbers: &'a PhoneNumbers,
    pub(super) number: String,
    /// Whether other scenarios may use the same number at the same time.
    pub(super) is_shared: bool,
}

impl PhoneNumbers {
    pub(super) fn new(numbers: Vec<String>) -> Self {
        Self {
            users: Mutex::new(numbers.into_iter().map(|number| (number, 0)).collect()),
            freed: Condvar::new(),
            are_exclusive: AtomicBool::new(false),
            made: Mutex::default(),
        }
    }

    /// How many scenarios can use a number at the same time.
    pub(super) fn limit(&self) -> usize {
        if self.are_exclusive() {
            self.users().len()
        } else {
            usize::MAX
        }
    }

    /// Whether each number belongs to one scenario at a time.
    pub(super) fn are_exclusive(&self) -> bool {
        self.are_exclusive.load(Ordering::SeqCst)
    }

    /// Makes each number exclusive from now on.
    pub(super) fn make_exclusive(&self) {
        self.are_exclusive.store(true, Ordering::SeqCst);
    }

    /// The number with the fewest users. Waits for an unused one if numbers are exclusive.
    pub(super) fn take(&self) -> AssignedNumber<'_> {
        let mut users = self.users();
        loop {
            let are_exclusive = self.are_exclusive();
            let fewest = users.iter_mut().min_by_key(|(_, stories)| *stories);
            if let Some((number, stories)) = fewest
                && !(are_exclusive && *stories > 0)
            {
                *stories += 1;
                return AssignedNumber {
                    phone_numbers: self,
                    number: number.clone(),
                    is_shared: !are_exclusive,
                };
            }
            users = self
                .freed
                .wait(users)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records that a scenario of this run made an execution.
    pub(super) fn note_made(&self, execution_sid: &str) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.insert(execution_sid.to_owned());
    }

    /// Whether a scenario of this run made the execution.
    pub(super) fn has_made(&self, execution_sid: &str) -> bool {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.contains(execution_sid)
    }

    fn users(&self) -> MutexGuard<'_, Vec<(String, usize)>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AssignedNumber<'_> {
    fn drop(&mut self) {
        let mut users = self.phone_numbers.users();
        let own = users.iter_mut().find(|(number, _)| *number == self.number);
        if let Some((_, stories)) = own {
            *stories -= 1;
        }
        self.phone_numbers.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::PhoneNumbers;

    #[test]
    fn numbers_are_shared_until_they_are_exclusive() {
        let phone_numbers = PhoneNumbers::new(vec!["a".to_owned(), "b".to_owned()]);
        let three = [
            phone_numbers.take(),
            phone_numbers.take(),
            phone_numbers.take(),
        ];
        assert!(three.iter().all(|phone_number| phone_number.is_shared));
        assert_eq!(phone_numbers.limit(), usize::MAX);
        phone_numbers.make_exclusive();
        assert_eq!(phone_numbers.limit(), 2);
        let [first, second, third] = three;
        assert_ne!(first.number, second.number);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let phone_number = phone_numbers.take();
                (phone_number.number.clone(), phone_number.is_shared)
            });
            let number = second.number.clone();
            drop(second);
            let taken = waiting.join().expect("it gets the unused one");
            assert_eq!(taken, (number, false));
        });
        assert_eq!(first.number, third.number, "two scenarios still use it");
    }
}
