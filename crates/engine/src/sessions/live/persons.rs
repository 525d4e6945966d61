//! Persons: whom stories of a run speak of. All may speak of the same ones until the target shows that
//! a person can be in a flow once only; from then on each person is in one story at a time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The telephone numbers of a run.
#[derive(Debug)]
pub(super) struct Persons {
    /// Each number, with the stories that speak of it.
    users: Mutex<Vec<(String, usize)>>,
    freed: Condvar,
    is_once: AtomicBool,
    /// The executions that stories of this run made.
    made: Mutex<BTreeSet<String>>,
}

/// A person of a story; given back when dropped.
#[derive(Debug)]
pub(super) struct Person<'a> {
    persons: &'a Persons,
    /// The telephone number.
    pub(super) number: String,
    /// Whether other stories may speak of the same one meanwhile.
    pub(super) is_shared: bool,
}

impl Persons {
    pub(super) fn new(numbers: Vec<String>) -> Self {
        Self {
            users: Mutex::new(numbers.into_iter().map(|number| (number, 0)).collect()),
            freed: Condvar::new(),
            is_once: AtomicBool::new(false),
            made: Mutex::default(),
        }
    }

    /// How many stories can speak of them at a time.
    pub(super) fn most(&self) -> usize {
        if self.is_once() {
            self.users().len()
        } else {
            usize::MAX
        }
    }

    /// Whether each person is in one story at a time.
    pub(super) fn is_once(&self) -> bool {
        self.is_once.load(Ordering::SeqCst)
    }

    /// From now on each person is in one story at a time.
    pub(super) fn once(&self) {
        self.is_once.store(true, Ordering::SeqCst);
    }

    /// The person of fewest stories; waits for one of none where each is in one only.
    pub(super) fn take(&self) -> Person<'_> {
        let mut users = self.users();
        loop {
            let is_once = self.is_once();
            let fewest = users.iter_mut().min_by_key(|(_, stories)| *stories);
            if let Some((number, stories)) = fewest
                && !(is_once && *stories > 0)
            {
                *stories += 1;
                return Person {
                    persons: self,
                    number: number.clone(),
                    is_shared: !is_once,
                };
            }
            users = self
                .freed
                .wait(users)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that a story of this run made an execution.
    pub(super) fn note_made(&self, execution_sid: &str) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.insert(execution_sid.to_owned());
    }

    /// Whether a story of this run made it.
    pub(super) fn have_made(&self, execution_sid: &str) -> bool {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.contains(execution_sid)
    }

    fn users(&self) -> MutexGuard<'_, Vec<(String, usize)>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Person<'_> {
    fn drop(&mut self) {
        let mut users = self.persons.users();
        let own = users.iter_mut().find(|(number, _)| *number == self.number);
        if let Some((_, stories)) = own {
            *stories -= 1;
        }
        self.persons.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::Persons;

    #[test]
    fn all_speak_of_everybody_until_a_person_is_in_one_story_only() {
        let persons = Persons::new(vec!["a".to_owned(), "b".to_owned()]);
        let three = [persons.take(), persons.take(), persons.take()];
        assert!(three.iter().all(|person| person.is_shared));
        assert_eq!(persons.most(), usize::MAX);
        persons.once();
        assert_eq!(persons.most(), 2);
        let [first, second, third] = three;
        assert_ne!(first.number, second.number);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let person = persons.take();
                (person.number.clone(), person.is_shared)
            });
            let number = second.number.clone();
            drop(second);
            let taken = waiting.join().expect("it gets the one that nobody has");
            assert_eq!(taken, (number, false));
        });
        assert_eq!(first.number, third.number, "two still speak of it");
    }
}
