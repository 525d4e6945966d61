//! Persons: whom stories of a run speak of, each of one story at a time. A flow that all stories share
//! may take a person in once only.

use std::sync::{Condvar, Mutex, PoisonError};

/// The telephone numbers of a run.
#[derive(Debug)]
pub(super) struct Persons {
    count: usize,
    free: Mutex<Vec<String>>,
    freed: Condvar,
}

/// A person of one story alone; given back when dropped.
#[derive(Debug)]
pub(super) struct Person<'a> {
    persons: &'a Persons,
    /// The telephone number.
    pub(super) number: String,
}

impl Persons {
    pub(super) fn new(numbers: Vec<String>) -> Self {
        Self {
            count: numbers.len(),
            free: Mutex::new(numbers),
            freed: Condvar::new(),
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Waits for a person.
    pub(super) fn take(&self) -> Person<'_> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(number) = free.pop() {
                return Person {
                    persons: self,
                    number,
                };
            }
            free = self
                .freed
                .wait(free)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Person<'_> {
    fn drop(&mut self) {
        let mut free = self
            .persons
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        free.push(std::mem::take(&mut self.number));
        self.persons.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::Persons;

    #[test]
    fn nobody_is_in_two_stories() {
        let persons = Persons::new(vec!["a".to_owned(), "b".to_owned()]);
        let (first, second) = (persons.take(), persons.take());
        assert_ne!(first.number, second.number);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| persons.take().number.clone());
            let number = first.number.clone();
            drop(first);
            assert_eq!(waiting.join().expect("it gets the one given back"), number);
        });
    }
}
