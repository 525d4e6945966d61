//! Requests and hooks that reach a live target at the same time.
//!
//! - The rate limits of the run and of the target count each request.
//! - A rejected request is not sent again: its next try would be alone. The scenario then waits once as the target requests,
//!   and the rate of later requests stays.
//! - A hook runs on a thread of its own, which starts when the last bytes of the requests are sent.

use super::scenario::{LiveScenario, response_of, shape_of};
use crate::session::race::{Acted, Action, ActionResult};
use crate::session::{HookFault, SendFault};
use conformant_base::clock;
use conformant_base::http::Cause;
use conformant_net::transport::{Arrival, Departure};
use std::sync::mpsc;
use std::time::{Duration, Instant};

impl LiveScenario<'_> {
    pub(super) fn race(&self, actions: &[Action<'_>]) -> Result<Vec<Acted>, SendFault> {
        let departures: Vec<Departure<'_>> =
            actions.iter().filter_map(|a| self.departure(a)).collect();
        for action in actions {
            if let Action::Request { service, request } = action {
                let slot = self.live.schedule.reserve(&shape_of(service, request));
                self.idle(slot.at, |s| &mut s.held_back);
            }
        }
        let live = self.live;
        let count = departures.len();
        let sent = self.spending(
            |s| &mut s.turn,
            || live.in_flight.register(count, || live.is_over()),
        );
        let in_flight: Vec<_> = services_of(actions).map(|s| live.health.begin(s)).collect();
        let acted = self.spending(
            |s| &mut s.answers,
            || self.act_at_once(actions, &departures),
        )?;
        drop(sent);
        let answers = acted.iter().filter_map(|acted| match &acted.result {
            ActionResult::Response(answer) => Some(answer),
            ActionResult::Hook(_) => None,
        });
        let sent = services_of(actions).zip(&departures).zip(answers);
        for (in_flight, ((service, departure), answer)) in in_flight.into_iter().zip(sent) {
            let request = departure.request;
            in_flight.note(
                request,
                answer,
                live.has_fixed_credentials(service, request),
            );
        }
        self.wait_as_requested(actions, &acted);
        Ok(acted)
    }

    /// Waits once for the longest time that responses request, unless it is longer than the run.
    fn wait_as_requested(&self, actions: &[Action<'_>], acted: &[Acted]) {
        let schedule = &self.live.schedule;
        let mut longest: Option<(&str, u16, Duration)> = None;
        for (action, acted) in actions.iter().zip(acted) {
            if let (Action::Request { service, .. }, ActionResult::Response(Ok(response))) =
                (action, &acted.result)
                && let Some(wait) = schedule.learn_in_race(response)
                && longest.is_none_or(|(_, _, known)| wait > known)
            {
                longest = Some((service, response.status, wait));
            }
        }
        let Some((service, status, wait)) = longest else {
            return;
        };
        let until = clock::monotonic().checked_add(wait);
        if let Some(until) = until.filter(|until| *until < self.live.deadline) {
            self.live.waits.store_rate_limit(service, status, wait);
            self.idle(until, |s| &mut s.held_back);
        }
    }

    fn departure<'a>(&'a self, action: &Action<'a>) -> Option<Departure<'a>> {
        match action {
            Action::Request { service, request } => Some(Departure {
                base: &self.live.bases[*service],
                request,
            }),
            Action::Hook { .. } => None,
        }
    }

    fn act_at_once(
        &self,
        actions: &[Action<'_>],
        departures: &[Departure<'_>],
    ) -> Result<Vec<Acted>, SendFault> {
        let live = self.live;
        let timeout = live.client.limits().timeout;
        let (arrived, hooked) = std::thread::scope(|scope| {
            let mut starts = Vec::new();
            let mut threads = Vec::new();
            for action in actions {
                let Action::Hook { name, arguments } = *action else {
                    continue;
                };
                let (start, started) = mpsc::channel();
                starts.push(start);
                let hook = live.settings.hooks.get(name);
                threads.push(scope.spawn(move || {
                    // The sender is dropped if no request was completed.
                    started.recv().ok()?;
                    let sent = clock::monotonic();
                    let result = hook
                        .ok_or(HookFault::Unsupported)
                        .and_then(|hook| live.call(hook, arguments));
                    Some((result, sent, clock::monotonic()))
                }));
            }
            let release = || {
                for start in starts {
                    // A thread that ended early has a result of its own.
                    let _ = start.send(());
                }
            };
            let arrived = live
                .client
                .send_concurrently(&self.share, departures, timeout, release);
            let joined = threads
                .into_iter()
                .map(|thread| thread.join().ok().flatten());
            let hooked: Vec<_> = joined.collect();
            (arrived, hooked)
        });
        let arrived = arrived?;
        let sent = arrived.iter().map(|one| one.sent);
        let sent = sent.chain(hooked.iter().flatten().map(|(_, sent, _)| *sent));
        let began = sent.min().unwrap_or_else(clock::monotonic);
        let (mut arrived, mut hooked) = (arrived.into_iter(), hooked.into_iter());
        let acted = actions.iter().filter_map(|action| match action {
            Action::Request { .. } => Some(answered_at(began, arrived.next()?)),
            Action::Hook { .. } => {
                let (result, sent, received) = hooked.next()??;
                Some(acted(began, ActionResult::Hook(result), (sent, received)))
            }
        });
        let acted: Vec<Acted> = acted.collect();
        if acted.len() == actions.len() {
            return Ok(acted);
        }
        Err(SendFault::new(Cause::Interrupted, "a hook did not run"))
    }
}

/// The service of each request.
fn services_of<'a>(actions: &[Action<'a>]) -> impl Iterator<Item = &'a str> {
    actions.iter().filter_map(|action| match action {
        Action::Request { service, .. } => Some(*service),
        Action::Hook { .. } => None,
    })
}

fn answered_at(began: Instant, arrival: Arrival) -> Acted {
    let answer = arrival.answer.map(response_of).map_err(SendFault::from);
    let times = (arrival.sent, arrival.received);
    acted(began, ActionResult::Response(answer), times)
}

fn acted(began: Instant, result: ActionResult, (sent, received): (Instant, Instant)) -> Acted {
    let since = |instant: Instant| instant.saturating_duration_since(began);
    Acted {
        result,
        sent: since(sent),
        received: since(received).max(Duration::from_nanos(1)),
    }
}
