//! The stage: which story begins next, and which may be told beside which.
//!
//! What a target has only one of, as its time or a list that all stories share, belongs to one story at a
//! time; stories that have nothing to do with it go on meanwhile.

use conformant_base::parallel::processors;
use conformant_judge::prove::Priority;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Beside whom a story can be told, in the order in which stories begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Company {
    /// Nobody: it takes what the target has only one of.
    Nobody,
    /// Others whose waits move the target's clock: they let time pass together.
    Movers,
    /// Whoever needs no time or list for himself.
    #[default]
    Anybody,
}

/// What a story takes of a target while it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Services that it asks or changes.
    pub touches: BTreeSet<String>,
    /// Who else may touch the same services meanwhile.
    pub company: Company,
    /// Whether it moves the target's clock, which all services go by.
    pub moves_the_clock: bool,
    /// Whether it needs a person, of whom there may be few.
    pub needs_person: bool,
    /// About how much there is to tell.
    pub length: Duration,
    /// About how long it takes, where time is real: the longest begin first.
    pub lasts: Duration,
}

impl Room {
    /// When it is told. Those that must be alone come first, while what they walk over is short, and before them those
    /// for which the clock stands still; then the longest, so that nobody waits for them in the end; where nobody waits
    /// for time, those with the least to tell.
    pub(super) fn turn(&self) -> Priority {
        let (company, moves) = (self.company as u8, u8::from(self.moves_the_clock));
        (2 * company + moves, Reverse(self.lasts), self.length)
    }

    /// Whether it can be told beside another. While one has a service for itself nobody moves the clock elsewhere, for
    /// it would be told again.
    fn suffers(&self, other: &Self) -> bool {
        use Company::{Anybody, Movers, Nobody};
        match (self.company, other.company) {
            (Movers, Movers) | (Anybody, Anybody) => true,
            (Nobody, _) if other.moves_the_clock => false,
            (_, Nobody) if self.moves_the_clock => false,
            _ => self.touches.is_disjoint(&other.touches),
        }
    }
}

/// Stories side by side unless it is said otherwise: what waits for a target takes no processor, what is played
/// in this process takes one.
pub fn jobs_default(is_in_process: bool) -> usize {
    const MOST: usize = 8;
    if is_in_process {
        MOST.min(processors() + 1)
    } else {
        MOST
    }
}

/// Counts how many stories can have a person at a time.
pub(super) type Persons<'a> = Box<dyn Fn() -> usize + Send + Sync + 'a>;

/// The stories of a run, by their index in the plan.
pub(super) struct Stage<'a> {
    rooms: Vec<Room>,
    /// How many stories can have a person at a time.
    persons: Persons<'a>,
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
pub(super) struct Entered<'a> {
    stage: &'a Stage<'a>,
    /// Which story it is.
    pub(super) index: usize,
}

impl<'a> Stage<'a> {
    /// A stage for these stories, which begin by their turns, or as they lie where they were shuffled.
    pub(super) fn new(rooms: Vec<Room>, are_shuffled: bool, persons: Persons<'a>) -> Self {
        let mut waiting: Vec<usize> = (0..rooms.len()).collect();
        if are_shuffled {
            waiting.sort_by_key(|&index| rooms[index].turn().0);
        } else {
            waiting.sort_by_key(|&index| rooms[index].turn());
        }
        let playing = BTreeSet::new();
        Self {
            rooms,
            persons,
            state: Mutex::new(State { waiting, playing }),
            left: Condvar::new(),
        }
    }

    /// The next story that can begin, once there is one; nothing when all have begun.
    pub(super) fn enter(&self) -> Option<Entered<'_>> {
        self.enter_of(|_| true)
    }

    /// This story's place, once it can begin; nothing where it has begun before.
    pub(super) fn enter_as(&self, index: usize) -> Option<Entered<'_>> {
        self.enter_of(|other| other == index)
    }

    /// The first of these stories that can begin, once there is one; nothing when all of them have begun.
    fn enter_of(&self, is_meant: impl Fn(usize) -> bool) -> Option<Entered<'_>> {
        let mut state = self.state();
        loop {
            let meant = state.waiting.iter().enumerate();
            let meant = meant.filter(|(_, index)| is_meant(**index));
            let meant: Vec<(usize, usize)> = meant.map(|(at, &index)| (at, index)).collect();
            if meant.is_empty() {
                return None;
            }
            if let Some((at, index)) = self.first_that_fits(&meant, &state.playing) {
                state.waiting.remove(at);
                state.playing.insert(index);
                return Some(Entered { stage: self, index });
            }
            state = self
                .left
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The first that can begin, and whose place none before it waits for: who cannot be told beside all others would
    /// else wait until there are none left.
    fn first_that_fits(
        &self,
        waiting: &[(usize, usize)],
        playing: &BTreeSet<usize>,
    ) -> Option<(usize, usize)> {
        let mut before: Vec<&Room> = Vec::new();
        for &(at, index) in waiting {
            let room = &self.rooms[index];
            if self.fits(index, playing) && before.iter().all(|other| room.suffers(other)) {
                return Some((at, index));
            }
            if room.company != Company::Anybody && !before.contains(&room) {
                before.push(room);
            }
        }
        None
    }

    /// What each story takes of the target.
    pub(super) fn rooms(&self) -> &[Room] {
        &self.rooms
    }

    fn fits(&self, index: usize, playing: &BTreeSet<usize>) -> bool {
        let room = &self.rooms[index];
        let others = || playing.iter().map(|&other| &self.rooms[other]);
        let with_person = || others().filter(|other| other.needs_person).count();
        others().all(|other| room.suffers(other))
            && (!room.needs_person || with_person() < (self.persons)())
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

    fn room(touches: &[&str], company: Company, length: u64) -> Room {
        Room {
            touches: touches.iter().map(|&t| t.to_owned()).collect(),
            company,
            moves_the_clock: company == Company::Movers,
            lasts: Duration::from_secs(length),
            ..Room::default()
        }
    }

    #[test]
    fn who_is_alone_comes_first_and_others_elsewhere_go_on() {
        let stage = Stage::new(
            vec![
                room(&["flow"], Company::Anybody, 0),
                Room {
                    length: Duration::from_millis(1),
                    ..room(&["chat"], Company::Anybody, 0)
                },
                room(&["chat"], Company::Anybody, 0),
                room(&["chat", "media"], Company::Anybody, 5),
                room(&["flow"], Company::Nobody, 0),
                room(&["flow", "auth"], Company::Nobody, 0),
            ],
            false,
            Box::new(|| 1),
        );
        let (walk, longest) = (stage.enter().unwrap(), stage.enter().unwrap());
        assert_eq!((walk.index, longest.index), (4, 3));
        let chat = stage.enter().unwrap();
        assert_eq!(chat.index, 2, "the others wait for the walk");
        let chat = stage.enter().unwrap();
        assert_eq!(chat.index, 1, "it has more to tell");
        drop(walk);
        let second = stage.enter().unwrap();
        assert_eq!(second.index, 5, "it still comes before those beside others");
        drop(second);
        assert_eq!(stage.enter().unwrap().index, 0);
        assert!(stage.enter().is_none());
    }

    #[test]
    fn those_who_move_the_clock_do_so_together_and_are_not_overtaken_by_who_would_keep_them_waiting()
     {
        let stage = Stage::new(
            vec![
                room(&["chat", "auth"], Company::Movers, 2),
                room(&["flow", "auth"], Company::Movers, 1),
                room(&["flow"], Company::Nobody, 0),
                room(&["flow"], Company::Anybody, 9),
                room(&["events"], Company::Anybody, 0),
            ],
            false,
            Box::new(|| 1),
        );
        let (walk, elsewhere) = (stage.enter().unwrap(), stage.enter().unwrap());
        assert_eq!((walk.index, elsewhere.index), (2, 4));
        drop(walk);
        let mover = stage.enter().unwrap();
        let other = stage.enter().unwrap();
        assert_eq!((mover.index, other.index), (0, 1), "beside each other");
        drop((mover, other));
        assert_eq!(stage.enter().unwrap().index, 3);
        assert!(stage.enter_as(3).is_none());
    }

    #[test]
    fn who_is_asked_for_by_name_waits_for_nobody_who_has_not_begun() {
        let rooms = vec![
            room(&["flow"], Company::Nobody, 0),
            room(&["flow"], Company::Anybody, 0),
        ];
        let stage = Stage::new(rooms, false, Box::new(|| 1));
        assert_eq!(stage.enter_as(1).map(|entered| entered.index), Some(1));
    }

    #[test]
    fn no_more_are_told_at_a_time_than_there_is_room_for() {
        let few = Room {
            needs_person: true,
            ..Room::default()
        };
        let stage = Stage::new(
            vec![few.clone(), few, Room::default()],
            false,
            Box::new(|| 1),
        );
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
