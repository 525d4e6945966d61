//! Handles requests that arrive at the same time.
//!
//! - In process a scheduler chooses the interleaving from the seed: first the check turns of all requests, then their write turns.
//! - Over sockets the threads of the clients interleave. Where a fault or a variation needs it, a request waits between its turns,
//!   without a lock.

use super::develop::Answered;
use super::gate::is_control;
use super::world::World;
use conformant_base::http::{Request, Response};
use conformant_base::parallel::lock;
use sha2::{Digest, Sha256};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time between the turns of a request over sockets.
const WINDOW: Duration = Duration::from_millis(40);
/// The same for a deletion and for a request that no fault concerns, so that those with a fault write after it.
const WINDOW_SHORT: Duration = Duration::from_millis(15);

impl World {
    /// Handles requests that arrive at the same time; `responses[i]` answers `requests[i]`.
    ///
    /// - The orders of turns follow from the sandbox's seed and the bytes of the requests: a fork of the sandbox draws the same.
    /// - A request in which no fault has a window is handled whole, in its write turn.
    /// - All callbacks are delivered before it returns.
    pub fn handle_concurrently(&self, requests: &[Request]) -> Vec<Response> {
        let mut answers: Vec<_> = requests.iter().map(|_| None).collect();
        let seed = self.state().settings.seed;
        let is_serial = self.state().reference.is_serial();
        let arrivals = if is_serial {
            (0..requests.len()).collect()
        } else {
            order(seed, "check", requests)
        };
        let mut stale: Vec<_> = requests.iter().map(|_| None).collect();
        let mut is_busy = false;
        for &index in &arrivals {
            let request = &requests[index];
            let now = self.now();
            let mut state = self.state();
            if is_busy && can_contend(request) {
                answers[index] = state.reference.contention_refusal().map(Answered::from);
            }
            is_busy |= can_contend(request);
            if answers[index].is_none() {
                stale[index] = state.reference.read_early(request, now);
            }
        }
        let mut writes = arrivals;
        if stale.iter().any(Option::is_some) {
            writes = order(seed, "write", requests);
            writes.sort_by_key(|index| requests[*index].method != "DELETE");
        }
        for index in writes {
            if answers[index].is_none() {
                let stale = stale[index].take();
                answers[index] = Some(self.answer_with_stale_reads(&requests[index], stale));
            }
        }
        let answered = answers.into_iter().flatten();
        answered.map(|one| self.settle(one).response).collect()
    }

    /// Handles a request that may overlap with others of other threads.
    pub(super) fn answer_overlapping(&self, request: &Request) -> Answered {
        #[expect(
            clippy::disallowed_methods,
            reason = "the window is the reference's response time"
        )]
        self.answer_with_pause(request, &std::thread::sleep)
    }

    /// Handles a request with a pause between its turns or, if requests are served one after the other, behind them.
    fn answer_with_pause(&self, request: &Request, pause: &dyn Fn(Duration)) -> Answered {
        let can_contend = can_contend(request);
        let (is_serial, can_race) = {
            let state = self.state();
            (state.reference.is_serial(), state.reference.can_race())
        };
        if is_serial && can_contend {
            let _turn = lock(&self.turn);
            let answered = self.answer(request);
            pause(WINDOW);
            return answered;
        }
        if !can_race {
            return self.answer(request);
        }
        let under_way = usize::from(can_contend);
        let others = self.under_way.fetch_add(under_way, Ordering::SeqCst);
        let refusal =
            (can_contend && others > 0).then(|| self.state().reference.contention_refusal());
        let answered = match refusal.flatten() {
            Some(refusal) => refusal.into(),
            None => {
                let now = self.now();
                let stale = self.state().reference.read_early(request, now);
                let is_short = stale.is_none() || request.method == "DELETE";
                if can_contend || stale.is_some() {
                    pause(if is_short { WINDOW_SHORT } else { WINDOW });
                }
                self.answer_with_stale_reads(request, stale)
            }
        };
        self.under_way.fetch_sub(under_way, Ordering::SeqCst);
        answered
    }
}

/// True for a request to a service that changes something.
fn can_contend(request: &Request) -> bool {
    !matches!(request.method.as_str(), "GET" | "HEAD") && !is_control(&request.target)
}

/// An order of the requests, as indexes.
fn order(seed: u64, turn: &str, requests: &[Request]) -> Vec<usize> {
    let mut all = Sha256::new()
        .chain_update(seed.to_be_bytes())
        .chain_update(turn);
    for request in requests {
        all.update(&request.method);
        all.update(&request.target);
        all.update(&request.body);
    }
    let place = |index: &usize| {
        let digest = all.clone().chain_update(index.to_be_bytes()).finalize();
        <[u8; 32]>::from(digest)
    };
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_cached_key(place);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Outcome, WorldClock};
    use conformant_reference::{Callback, Fault, Settings, Variant};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn world(faults: &[Fault], variants: &[Variant], seed: u64) -> World {
        let settings = Settings {
            seed,
            faults: faults.iter().copied().collect(),
            variants: variants.iter().copied().collect(),
            ..Settings::default()
        };
        let nowhere = |_: &Callback| Outcome::Unreachable;
        World::new(settings, WorldClock::stands_still(), Arc::new(nowhere))
    }

    fn requests(name: &str) -> Vec<Request> {
        let request = |n: usize| Request::new("POST", format!("/{name}/{n}"));
        (0..3).map(request).collect()
    }

    /// Two users with one phone.
    fn enrolments() -> Vec<Request> {
        let key = conformant_reference::TargetSettings::of("auth").headers;
        let enrolment = |name: &str| {
            let mut request = Request::new("POST", "/auth/protected/json/users/new");
            for (name, value) in &key {
                request.headers.set(name, value.clone());
            }
            request
                .headers
                .set("Content-Type", "application/x-www-form-urlencoded");
            let user = format!(
                "user[email]={name}@x.example&user[cellphone]=5550100&user[country_code]=1"
            );
            request.body = user.into_bytes();
            request
        };
        vec![enrolment("a"), enrolment("b")]
    }

    fn statuses(answers: &[Response]) -> Vec<u16> {
        let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        statuses
    }

    #[test]
    fn the_order_follows_from_seed_and_requests() {
        let draw = |seed, name: &str| order(seed, "check", &requests(name));
        assert_eq!(draw(1, "a"), draw(1, "a"));
        let of_seeds: BTreeSet<_> = (0..20).map(|seed| draw(seed, "a")).collect();
        assert!(of_seeds.len() > 2, "{of_seeds:?}");
        let names = (0..20).map(|n| draw(1, &n.to_string()));
        assert!(names.collect::<BTreeSet<_>>().len() > 2);
    }

    #[test]
    fn a_window_is_open_only_under_its_fault() {
        for seed in 0..10 {
            let clean = world(&[], &[], seed).handle_concurrently(&enrolments());
            assert_eq!(clean[0].body, clean[1].body);
            let broken = world(&[Fault::AuthRacePhone], &[], seed);
            let broken = broken.handle_concurrently(&enrolments());
            assert_ne!(broken[0].body, broken[1].body);
        }
    }

    #[test]
    fn all_but_one_change_are_refused_under_contention() {
        for (variant, refused) in [
            (Variant::Contended409, 409),
            (Variant::Contended429, 429),
            (Variant::Contended503, 503),
            (Variant::Serial, 200),
        ] {
            let answers = world(&[], &[variant], 1).handle_concurrently(&enrolments());
            assert_eq!(statuses(&answers), [200, refused]);
        }
    }

    /// Handles one request during the pause of another.
    fn nested(world: &World) -> [Response; 2] {
        let requests = enrolments();
        let inner = std::cell::RefCell::new(None);
        let outer = world.answer_with_pause(&requests[0], &|_| {
            let answered = world.answer_with_pause(&requests[1], &|_| ());
            inner.replace(Some(answered.response));
        });
        let inner = inner
            .take()
            .unwrap_or_else(|| world.answer(&requests[1]).response);
        [outer.response, inner]
    }

    #[test]
    fn requests_over_sockets_overlap_in_their_windows() {
        let [outer, inner] = nested(&world(&[Fault::AuthRacePhone], &[], 1));
        assert_ne!(outer.body, inner.body);
        let [outer, inner] = nested(&world(&[], &[], 1));
        assert_eq!(outer.body, inner.body);
        let answers = nested(&world(&[], &[Variant::Contended503], 1));
        assert_eq!(statuses(&answers), [200, 503]);
    }

    #[test]
    fn real_threads_leave_a_clean_world_correct() {
        for variants in [&[][..], &[Variant::Serial]] {
            let world = world(&[], variants, 1);
            let requests: Vec<Request> = enrolments().into_iter().cycle().take(8).collect();
            let bodies: BTreeSet<Vec<u8>> = std::thread::scope(|scope| {
                let world = &world;
                let answer =
                    |request| scope.spawn(move || world.answer_with_pause(request, &|_| ()));
                let running: Vec<_> = requests.iter().map(answer).collect();
                let joined = running.into_iter().map(|one| one.join().expect("no panic"));
                joined.map(|answered| answered.response.body).collect()
            });
            assert_eq!(bodies.len(), 1);
        }
    }
}
