//! Measures a run's stories while they are told, and works out how quick any order of them could have been.

use super::plan::Planned;
use super::stage::{Company, Room};
use conformant_base::clock;
use conformant_record::{ScenarioTime, Spent, Timings};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// To the millisecond: what is finer says nothing.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// Notes when stories began and ended.
pub(super) struct Timekeeper {
    began: Instant,
    stories: Mutex<Vec<(usize, ScenarioTime)>>,
}

impl Timekeeper {
    pub(super) fn new() -> Self {
        Self {
            began: clock::monotonic(),
            stories: Mutex::default(),
        }
    }

    /// Notes a story that ended just now; `index` is its place in the plan.
    pub(super) fn told(
        &self,
        (index, planned): (usize, &Planned<'_>),
        lane: usize,
        began: Instant,
        waited: &Spent,
    ) {
        let took = began.elapsed().as_secs_f64();
        let mut spent = Spent {
            own: (took - waited.all()).max(0.0),
            ..*waited
        };
        for (_, part) in Spent::PARTS {
            *part(&mut spent) = rounded(*part(&mut spent));
        }
        let story = ScenarioTime {
            scenario: planned.scenario.id.clone(),
            lane: lane + 1,
            began: rounded(began.saturating_duration_since(self.began).as_secs_f64()),
            seconds: rounded(took),
            spent,
        };
        let mut stories = self.stories.lock().unwrap_or_else(PoisonError::into_inner);
        stories.push((index, story));
    }

    /// What all of it comes to.
    pub(super) fn finish(self, rooms: &[Room], jobs: usize, persons: usize) -> Timings {
        let stories = self.stories.into_inner();
        let mut stories = stories.unwrap_or_else(PoisonError::into_inner);
        stories.sort_by(|(_, a), (_, b)| a.began.total_cmp(&b.began).then(a.lane.cmp(&b.lane)));
        let (lower_bound, because) = bound(&stories, rooms, jobs, persons);
        let mut spent = Spent::default();
        for (_, story) in &stories {
            spent.add(&story.spent);
        }
        Timings {
            jobs,
            spent,
            lower_bound,
            because,
            stories: stories.into_iter().map(|(_, story)| story).collect(),
        }
    }
}

/// A share of it, where so many have equal ones.
fn among(seconds: f64, number: usize) -> f64 {
    seconds / f64::from(u32::try_from(number.max(1)).unwrap_or(u32::MAX))
}

/// The time below which no order of the stories comes, and the reason: the longest of them, what stands in
/// one another's way, or all their work among the jobs.
fn bound(
    stories: &[(usize, ScenarioTime)],
    rooms: &[Room],
    jobs: usize,
    persons: usize,
) -> (f64, String) {
    let lone = Room::default();
    let room = |index: usize| rooms.get(index).unwrap_or(&lone);
    let mut bounds = Vec::new();
    let longest = stories
        .iter()
        .max_by(|(_, a), (_, b)| a.spent.by_itself().total_cmp(&b.spent.by_itself()));
    if let Some((_, story)) = longest {
        let why = format!("{} alone takes that long", story.scenario);
        bounds.push((story.spent.by_itself(), why));
    }
    // Who waits for time or callbacks leaves the job to others.
    let work: f64 = stories
        .iter()
        .map(|(_, story)| story.spent.by_itself() - story.spent.time - story.spent.callbacks)
        .sum();
    let why = format!("the work of all stories among {jobs} jobs");
    bounds.push((among(work, jobs), why));
    let services: BTreeSet<&str> = rooms
        .iter()
        .flat_map(|room| room.touches.iter().map(String::as_str))
        .collect();
    for service in services {
        let there = || {
            let of = |(index, _): &&(usize, ScenarioTime)| room(*index).touches.contains(service);
            stories.iter().filter(of)
        };
        let alone = there().filter(|(index, _)| room(*index).company == Company::Nobody);
        let alone: f64 = alone.map(|(_, story)| story.spent.by_itself()).sum();
        let beside = there().filter(|(index, _)| room(*index).company != Company::Nobody);
        let beside = beside
            .map(|(_, story)| story.spent.by_itself())
            .fold(0.0, f64::max);
        if alone > 0.0 {
            let why =
                format!("stories that must have the {service} service alone, one after the other");
            bounds.push((alone + beside, why));
        }
    }
    let with_person = stories
        .iter()
        .filter(|(index, _)| room(*index).needs_person);
    let with_person: f64 = with_person.map(|(_, story)| story.spent.by_itself()).sum();
    if with_person > 0.0 && persons < usize::MAX {
        let why = format!("stories with a person in a flow, of whom {persons} may be at a time");
        bounds.push((among(with_person, persons), why));
    }
    let most = bounds.into_iter().max_by(|(a, _), (b, _)| a.total_cmp(b));
    let (bound, why) = most.unwrap_or_default();
    (rounded(bound), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story(index: usize, own: f64, callbacks: f64) -> (usize, ScenarioTime) {
        let spent = Spent {
            own,
            callbacks,
            turn: 5.0,
            ..Spent::default()
        };
        let scenario = format!("story-{index}");
        let story = ScenarioTime {
            scenario,
            spent,
            ..ScenarioTime::default()
        };
        (index, story)
    }

    fn room(is_alone: bool, needs_person: bool) -> Room {
        let company = if is_alone {
            Company::Nobody
        } else {
            Company::Anybody
        };
        Room {
            touches: BTreeSet::from(["flow".to_owned()]),
            company,
            needs_person,
            ..Room::default()
        }
    }

    #[test]
    fn what_others_took_and_what_may_overlap_bounds_nothing() {
        let free = [room(false, false), room(false, false)];
        let stories = [story(0, 1.0, 2.0), story(1, 1.5, 0.5)];
        let (bound, why) = bound(&stories, &free, 2, usize::MAX);
        assert!((bound - 3.0).abs() < 1e-9, "{bound}: {why}");
        assert_eq!(why, "story-0 alone takes that long");
    }

    #[test]
    fn the_work_is_shared_among_the_jobs() {
        let stories = [story(0, 1.0, 0.0), story(1, 1.5, 0.0), story(2, 1.1, 9.0)];
        let (all, why) = bound(&stories[..2], &[], 1, usize::MAX);
        assert!((all - 2.5).abs() < 1e-9, "{why}");
        let (two, why) = bound(&stories[..2], &[], 2, usize::MAX);
        assert!((two - 1.5).abs() < 1e-9, "{why}");
        assert!(bound(&stories, &[], 1, usize::MAX).0 > 10.0);
    }

    #[test]
    fn who_must_be_alone_follows_the_others() {
        let rooms = [room(true, false), room(true, false), room(false, false)];
        let stories = [story(0, 1.0, 0.0), story(1, 1.5, 0.0), story(2, 0.5, 0.0)];
        let (bound, why) = bound(&stories, &rooms, 8, usize::MAX);
        assert!((bound - 3.0).abs() < 1e-9, "{bound}");
        assert!(why.contains("the flow service alone"), "{why}");
    }

    #[test]
    fn a_person_is_in_one_flow_at_a_time() {
        let rooms = [room(false, true), room(false, true), room(false, true)];
        let stories = [story(0, 2.0, 0.0), story(1, 2.0, 0.0), story(2, 2.0, 0.0)];
        let (bound, why) = bound(&stories, &rooms, 8, 2);
        assert!((bound - 3.0).abs() < 1e-9, "{bound}");
        assert!(why.contains("of whom 2"), "{why}");
    }

    #[test]
    fn a_run_of_nothing_has_no_bound() {
        let timings = Timekeeper::new().finish(&[], 4, usize::MAX);
        assert!(timings.lower_bound.abs() < 1e-9 && timings.stories.is_empty());
    }
}
