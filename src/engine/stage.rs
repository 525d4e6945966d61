//! The stage: which story begins next, and which may be told beside which.
//!
//! What a target has only one of, as its time or a list that all stories share, belongs to one story at a
//! time; stories that have nothing to do with it go on meanwhile.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a story takes of a target while it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Services that it asks or changes.
    pub touches: BTreeSet<String>,
    /// Whether no other story may touch the same services meanwhile.
    pub is_alone: bool,
    /// How many stories of this kind can be told at a time, where that is fewer than others.
    pub at_most: Option<usize>,
    /// How long it will do nothing but wait, by its own words: those that wait longest begin first.
    pub waits: Duration,
}

impl Room {
    /// Whether it can be told beside another.
    fn suffers(&self, other: &Self) -> bool {
        !(self.is_alone || other.is_alone) || self.touches.is_disjoint(&other.touches)
    }
}

/// The stories of a run, by their index in the plan.
#[derive(Debug)]
pub(super) struct Stage {
    rooms: Vec<Room>,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug)]
struct State {
    /// In the order in which they begin where nothing is in the way.
    waiting: Vec<usize>,
    playing: BTreeSet<usize>,
}

/// A story's place on the stage, until dropped.
#[derive(Debug)]
pub(super) struct Entered<'a> {
    stage: &'a Stage,
    /// Which story it is.
    pub(super) index: usize,
}

impl Stage {
    /// A stage for these stories. Those that must be alone come first, while what they walk over is
    /// short; then those that wait longest, so that nobody waits for them in the end.
    pub(super) fn new(rooms: Vec<Room>) -> Self {
        let mut waiting: Vec<usize> = (0..rooms.len()).collect();
        waiting.sort_by_key(|&index| {
            let room = &rooms[index];
            (!room.is_alone, Reverse(room.waits), index)
        });
        let playing = BTreeSet::new();
        Self {
            rooms,
            state: Mutex::new(State { waiting, playing }),
            left: Condvar::new(),
        }
    }

    /// The next story that can begin, once there is one; nothing when all have begun.
    pub(super) fn enter(&self) -> Option<Entered<'_>> {
        let mut state = self.state();
        loop {
            if state.waiting.is_empty() {
                return None;
            }
            let fits = |&index: &usize| self.fits(index, &state.playing);
            if let Some(at) = state.waiting.iter().position(fits) {
                let index = state.waiting.remove(at);
                state.playing.insert(index);
                return Some(Entered { stage: self, index });
            }
            state = self
                .left
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn fits(&self, index: usize, playing: &BTreeSet<usize>) -> bool {
        let room = &self.rooms[index];
        let others = || playing.iter().map(|&other| &self.rooms[other]);
        let alike = || others().filter(|other| other.at_most.is_some()).count();
        others().all(|other| room.suffers(other)) && room.at_most.is_none_or(|most| alike() < most)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.stage.state().playing.remove(&self.index);
        self.stage.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(touches: &[&str], is_alone: bool, waits: u64) -> Room {
        Room {
            touches: touches.iter().map(|&t| t.to_owned()).collect(),
            is_alone,
            at_most: None,
            waits: Duration::from_secs(waits),
        }
    }

    #[test]
    fn who_is_alone_comes_first_and_others_elsewhere_go_on() {
        let stage = Stage::new(vec![
            room(&["flow"], false, 0),
            room(&["chat"], false, 0),
            room(&["chat", "media"], false, 5),
            room(&["flow"], true, 0),
            room(&["flow", "auth"], true, 0),
        ]);
        let (walk, longest) = (stage.enter().unwrap(), stage.enter().unwrap());
        assert_eq!((walk.index, longest.index), (3, 2));
        let chat = stage.enter().unwrap();
        assert_eq!(chat.index, 1, "the others wait for the walk");
        drop(walk);
        let second = stage.enter().unwrap();
        assert_eq!(second.index, 4, "it still comes before those beside others");
        drop(second);
        assert_eq!(stage.enter().unwrap().index, 0);
        assert!(stage.enter().is_none());
    }

    #[test]
    fn no_more_are_told_at_a_time_than_there_is_room_for() {
        let few = Room {
            at_most: Some(1),
            ..Room::default()
        };
        let stage = Stage::new(vec![few.clone(), few, Room::default()]);
        let first = stage.enter().unwrap();
        let free = stage.enter().unwrap();
        assert_eq!((first.index, free.index), (0, 2));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| stage.enter().map(|entered| entered.index));
            drop(first);
            assert_eq!(waiting.join().unwrap(), Some(1));
        });
    }
}
