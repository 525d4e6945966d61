//! Replay log of a scenario against the in-process reference, and its replay with one switch on.
//!
//! - Scenarios are deterministic: identical responses lead to identical requests.
//! - If the changed instance answers all logged requests alike, the scenario need not be rerun.
//! - Otherwise it is rerun. Known answers come from the log, and the instance is used from the first new request on.

use conformant_base::clock::Timestamp;
use conformant_base::http::{Request, Response};
use conformant_base::parallel::lock;
use conformant_net::server::{Deliver, Outcome, World, WorldClock};
use conformant_reference::{Callback, Settings, Switch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The log of one scenario, in order.
#[derive(Clone, Debug, Default)]
pub struct ReplayLog {
    /// The settings of the instance.
    settings: Settings,
    began: Timestamp,
    entries: Vec<Entry>,
    /// The switches that were first consulted when the instance was created, then in each entry.
    consulted: Vec<Vec<Switch>>,
}

#[derive(Clone, Debug)]
struct Entry {
    action: Action,
    /// The clock after the entry.
    ended: Timestamp,
}

#[derive(Clone, Debug)]
enum Action {
    /// A request or a hook, or several that arrived at the same time, with the callbacks before the answers.
    Asked {
        requests: Vec<Request>,
        responses: Vec<Response>,
        delivered: Vec<(Callback, Outcome)>,
    },
    Waited(Duration),
}

/// The answers of an instance to a request, or to several that arrive at the same time.
pub(super) fn answers(world: &World, requests: &[Request]) -> Vec<Response> {
    match requests {
        [request] => vec![world.handle(request)],
        several => world.handle_concurrently(several),
    }
}

impl ReplayLog {
    /// The log of a new instance.
    pub(super) fn of(settings: Settings, world: &World) -> Self {
        Self {
            settings,
            began: world.now(),
            entries: Vec::new(),
            consulted: vec![world.newly_asked()],
        }
    }

    pub(super) fn asked_for(
        &mut self,
        world: &World,
        requests: &[Request],
        responses: &[Response],
        delivered: Vec<(Callback, Outcome)>,
    ) {
        let action = Action::Asked {
            requests: requests.to_vec(),
            responses: responses.to_vec(),
            delivered,
        };
        self.add(world, action);
    }

    pub(super) fn waited(&mut self, world: &World, time: Duration) {
        self.add(world, Action::Waited(time));
    }

    fn add(&mut self, world: &World, action: Action) {
        let ended = world.now();
        self.entries.push(Entry { action, ended });
        // The second account consults switches that the first one has consulted.
        let mut asked = world.newly_asked();
        asked.retain(|switch| !self.consulted().any(|known| known == *switch));
        self.consulted.push(asked);
    }

    /// The switches that the reference consulted. Only these can change an answer.
    pub fn consulted(&self) -> impl Iterator<Item = Switch> + '_ {
        self.consulted.iter().flatten().copied()
    }

    /// A replay from the beginning, with at most this switch on.
    pub fn begin(self: &Arc<Self>, switch: Option<Switch>) -> Replay {
        let logged_receiver = Arc::new(LoggedReceiver::of(self));
        let world = World::new(
            self.settings.clone().with(switch),
            WorldClock::stands_still(),
            Arc::clone(&logged_receiver) as Arc<dyn Deliver>,
        );
        let (log, next) = (Arc::clone(self), 0);
        Replay {
            log,
            world,
            logged_receiver,
            next,
        }
    }

    /// Replays the log for each consulted switch, in the order of consultation. `report` receives the first
    /// difference, if any, and the replay at that entry.
    pub fn compare(
        self: &Arc<Self>,
        mut is_wanted: impl FnMut(Switch) -> bool,
        mut report: impl FnMut(Switch, Option<(&Replay, KnownOutcomes)>),
    ) {
        let mut clean = self.begin(None);
        for (place, consulted) in self.consulted.iter().enumerate() {
            for &switch in consulted.iter().filter(|&&switch| is_wanted(switch)) {
                let begin = if place == 0 {
                    self.begin(Some(switch))
                } else {
                    clean.fork(switch)
                };
                match begin.fork(switch).known() {
                    None => report(switch, None),
                    Some(known) => report(switch, Some((&begin, known))),
                }
            }
            if place > 0 {
                clean.step();
            }
        }
    }
}

/// A replay of the log on another instance.
#[derive(Debug)]
pub struct Replay {
    log: Arc<ReplayLog>,
    world: World,
    logged_receiver: Arc<LoggedReceiver>,
    /// Index of the next entry.
    next: usize,
}

impl Replay {
    /// A copy at the same entry with only this switch on.
    fn fork(&self, switch: Switch) -> Self {
        let logged_receiver = Arc::new(LoggedReceiver::of(&self.log));
        Self {
            log: Arc::clone(&self.log),
            world: self.world.fork(
                Some(switch),
                Arc::clone(&logged_receiver) as Arc<dyn Deliver>,
            ),
            logged_receiver,
            next: self.next,
        }
    }

    /// Whether the rest of the log is replayed without a difference.
    pub fn is_unchanged(mut self) -> bool {
        (self.next..self.log.entries.len()).all(|_| self.step() == Step::Same)
    }

    /// The remaining answers as far as the log determines them; `None` if they are all equal.
    fn known(mut self) -> Option<KnownOutcomes> {
        let mut known = KnownOutcomes {
            from: self.next,
            steps: Vec::new(),
        };
        let mut is_same = true;
        for _ in self.next..self.log.entries.len() {
            let step = self.step();
            is_same &= step == Step::Same;
            if step == Step::Diverged {
                break;
            }
            known.steps.push(step);
        }
        (!is_same).then_some(known)
    }

    /// Replays the next entry.
    fn step(&mut self) -> Step {
        let Some(entry) = self.log.entries.get(self.next) else {
            return Step::Diverged;
        };
        self.logged_receiver.expect(self.next);
        self.next += 1;
        let step = match &entry.action {
            Action::Waited(time) => {
                self.world.advance(*time);
                Step::Same
            }
            Action::Asked {
                requests,
                responses,
                ..
            } => {
                let answers = answers(&self.world, requests);
                if answers == *responses {
                    Step::Same
                } else {
                    Step::Other(answers)
                }
            }
        };
        if self.logged_receiver.received_all() && self.world.now() == entry.ended {
            step
        } else {
            Step::Diverged
        }
    }

    /// An instance for a rerun of the scenario, with the answers up to this entry from the log.
    pub(super) fn resume(
        &self,
        switch: Switch,
        known: KnownOutcomes,
        onward: Arc<dyn Deliver>,
    ) -> ReplayedInstance {
        let logged_receiver = Arc::new(LoggedReceiver::of(&self.log));
        let filter = Arc::new(CatchUpFilter {
            is_over: AtomicBool::new(false),
            logged_receiver,
            onward,
        });
        let world = self
            .world
            .fork(Some(switch), Arc::clone(&filter) as Arc<dyn Deliver>);
        ReplayedInstance {
            log: Arc::clone(&self.log),
            known,
            next: 0,
            behind: self.next,
            has_diverged: false,
            world,
            filter,
        }
    }
}

/// The outcome of a replayed entry.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// As logged.
    Same,
    /// With other answers, and the same callbacks at the same time.
    Other(Vec<Response>),
    /// With other callbacks or at another time; later entries are unknown.
    Diverged,
}

/// Known outcomes from some entry on, valid as long as the logged requests are sent.
#[derive(Debug)]
pub struct KnownOutcomes {
    from: usize,
    steps: Vec<Step>,
}

impl KnownOutcomes {
    fn step(&self, entry: usize) -> &Step {
        match entry.checked_sub(self.from) {
            None => &Step::Same,
            Some(index) => self.steps.get(index).unwrap_or(&Step::Diverged),
        }
    }
}

/// A replayed instance. It answers logged requests from the log and uses the real instance for others.
pub(super) struct ReplayedInstance {
    log: Arc<ReplayLog>,
    known: KnownOutcomes,
    /// Index of the next entry.
    next: usize,
    /// The first entry that the real instance has not processed.
    behind: usize,
    /// Whether the rerun has diverged from the log.
    has_diverged: bool,
    world: World,
    filter: Arc<CatchUpFilter>,
}

impl ReplayedInstance {
    /// The answers to a request, or to several that arrive at the same time.
    pub(super) fn handle(&mut self, requests: &[Request]) -> Vec<Response> {
        if let Some(responses) = self.known(requests) {
            self.next += 1;
            return responses;
        }
        self.catch_up();
        answers(&self.world, requests)
    }

    pub(super) fn advance(&mut self, by: Duration) {
        let entry = self.log.entries.get(self.next).map(|p| &p.action);
        let is_known = *self.known.step(self.next) == Step::Same
            && matches!(entry, Some(Action::Waited(time)) if *time == by);
        if is_known && !self.has_diverged {
            self.next += 1;
        } else {
            self.catch_up();
            self.world.advance(by);
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        if self.has_diverged {
            return self.world.now();
        }
        match self.next.checked_sub(1) {
            None => self.log.began,
            Some(last) => self.log.entries[last].ended,
        }
    }

    /// The logged outcome of requests. Its callbacks are delivered again.
    fn known(&self, requests: &[Request]) -> Option<Vec<Response>> {
        let entry = self.log.entries.get(self.next);
        let Action::Asked {
            requests: logged,
            responses,
            delivered,
        } = &entry.filter(|_| !self.has_diverged)?.action
        else {
            return None;
        };
        if logged != requests {
            return None;
        }
        let responses = match self.known.step(self.next) {
            Step::Same => responses.clone(),
            Step::Other(responses) => responses.clone(),
            Step::Diverged => return None,
        };
        for (callback, _) in delivered {
            self.filter.onward.deliver(callback);
        }
        Some(responses)
    }

    /// Sends the logged requests to the real instance without delivering their callbacks again.
    fn catch_up(&mut self) {
        if self.has_diverged {
            return;
        }
        self.has_diverged = true;
        while self.behind < self.next {
            self.filter.logged_receiver.expect(self.behind);
            match &self.log.entries[self.behind].action {
                Action::Waited(time) => self.world.advance(*time),
                Action::Asked { requests, .. } => drop(answers(&self.world, requests)),
            }
            self.behind += 1;
        }
        self.filter.is_over.store(true, Ordering::Relaxed);
    }
}

/// Suppresses callbacks while the instance catches up; delivers later ones.
struct CatchUpFilter {
    is_over: AtomicBool,
    logged_receiver: Arc<LoggedReceiver>,
    onward: Arc<dyn Deliver>,
}

impl Deliver for CatchUpFilter {
    fn deliver(&self, callback: &Callback) -> Outcome {
        if self.is_over.load(Ordering::Relaxed) {
            self.onward.deliver(callback)
        } else {
            self.logged_receiver.deliver(callback)
        }
    }
}

/// Records deliveries and their outcomes.
pub(super) struct DeliveryRecorder {
    onward: Arc<dyn Deliver>,
    deliveries: Mutex<Vec<(Callback, Outcome)>>,
}

impl DeliveryRecorder {
    pub(super) fn before(onward: Arc<dyn Deliver>) -> Self {
        Self {
            onward,
            deliveries: Mutex::default(),
        }
    }

    /// The deliveries since the last call.
    pub(super) fn take(&self) -> Vec<(Callback, Outcome)> {
        std::mem::take(&mut lock(&self.deliveries))
    }
}

impl Deliver for DeliveryRecorder {
    fn deliver(&self, callback: &Callback) -> Outcome {
        let outcome = self.onward.deliver(callback);
        let mut deliveries = lock(&self.deliveries);
        deliveries.push((callback.clone(), outcome));
        outcome
    }
}

/// Receives callbacks as logged, and detects differences.
#[derive(Debug)]
struct LoggedReceiver {
    log: Arc<ReplayLog>,
    received: Mutex<ReceivedCount>,
}

#[derive(Debug, Default)]
struct ReceivedCount {
    entry: usize,
    /// Number of callbacks received in this entry.
    count: usize,
    differs: bool,
}

impl LoggedReceiver {
    fn of(log: &Arc<ReplayLog>) -> Self {
        Self {
            log: Arc::clone(log),
            received: Mutex::default(),
        }
    }

    fn expect(&self, entry: usize) {
        *lock(&self.received) = ReceivedCount {
            entry,
            ..ReceivedCount::default()
        };
    }

    /// Whether all logged callbacks of the entry were received, and no others.
    fn received_all(&self) -> bool {
        let received = lock(&self.received);
        !received.differs && received.count == self.delivered(received.entry).len()
    }

    fn delivered(&self, entry: usize) -> &[(Callback, Outcome)] {
        match self.log.entries.get(entry).map(|p| &p.action) {
            Some(Action::Asked { delivered, .. }) => delivered,
            Some(Action::Waited(_)) | None => &[],
        }
    }
}

impl Deliver for LoggedReceiver {
    fn deliver(&self, callback: &Callback) -> Outcome {
        let mut received = lock(&self.received);
        let known = self.delivered(received.entry).get(received.count);
        received.count += 1;
        match known {
            Some((logged, outcome)) if logged == callback && !received.differs => *outcome,
            Some(_) | None => {
                received.differs = true;
                Outcome::Unreachable
            }
        }
    }
}
