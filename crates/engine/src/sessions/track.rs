//! What passed between a story and a world in process, and the same asked again of a world with something switched on.
//!
//! A story that hears what it heard before goes the way it went before. So where such a world answers all that the
//! clean one was asked, and calls back, as the clean one did, nobody needs to tell the story again; where it does not, the
//! story is told again, and hears what is known already; the world itself is asked from where the story asks for something
//! else. Judges nothing.

use conformant_base::clock::Timestamp;
use conformant_base::http::{Request, Response};
use conformant_net::server::{Deliver, Outcome, World, WorldClock};
use conformant_reference::{Callback, Settings, Switch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What passed, in order.
#[derive(Clone, Debug, Default)]
pub struct Track {
    /// What the world was made with.
    settings: Settings,
    began: Timestamp,
    passages: Vec<Passage>,
    /// Switches by the place where they were asked about first: when the world was made, then in each passage.
    asked: Vec<Vec<Switch>>,
}

#[derive(Clone, Debug)]
struct Passage {
    deed: Deed,
    /// What the clock showed then.
    ended: Timestamp,
}

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are requests")]
enum Deed {
    /// A request or a hook, with the callbacks that came before its answer.
    Asked {
        request: Request,
        response: Response,
        delivered: Vec<(Callback, Outcome)>,
    },
    /// Requests that arrived at the same time.
    Raced {
        requests: Vec<Request>,
        responses: Vec<Response>,
        delivered: Vec<(Callback, Outcome)>,
    },
    Waited(Duration),
}

impl Track {
    /// Of a world that was just made.
    pub(super) fn of(settings: Settings, world: &World) -> Self {
        Self {
            settings,
            began: world.now(),
            passages: Vec::new(),
            asked: vec![world.newly_asked()],
        }
    }

    pub(super) fn asked_for(
        &mut self,
        world: &World,
        request: &Request,
        response: &Response,
        delivered: Vec<(Callback, Outcome)>,
    ) {
        let deed = Deed::Asked {
            request: request.clone(),
            response: response.clone(),
            delivered,
        };
        self.add(world, deed);
    }

    pub(super) fn raced(
        &mut self,
        world: &World,
        requests: &[Request],
        responses: &[Response],
        delivered: Vec<(Callback, Outcome)>,
    ) {
        let deed = Deed::Raced {
            requests: requests.to_vec(),
            responses: responses.to_vec(),
            delivered,
        };
        self.add(world, deed);
    }

    pub(super) fn waited(&mut self, world: &World, time: Duration) {
        self.add(world, Deed::Waited(time));
    }

    fn add(&mut self, world: &World, deed: Deed) {
        let ended = world.now();
        self.passages.push(Passage { deed, ended });
        self.asked.push(world.newly_asked());
    }

    /// Which switches the reference asked about: only those can have changed an answer.
    pub fn consulted(&self) -> impl Iterator<Item = Switch> + '_ {
        self.asked.iter().flatten().copied()
    }

    /// Asks a world anew, from its beginning, with nothing switched on but this.
    pub fn begin(self: &Arc<Self>, switch: Option<Switch>) -> Rerun {
        let echo = Arc::new(Echo::of(self));
        let world = World::new(
            self.settings.clone().with(switch),
            WorldClock::stands_still(),
            Arc::clone(&echo) as Arc<dyn Deliver>,
        );
        let (track, next) = (Arc::clone(self), 0);
        Rerun {
            track,
            world,
            echo,
            next,
        }
    }

    /// Has each switch that was asked about compared with what passed, in the order of their places; `tell` hears whether
    /// anything differs, and from where the story is to be told again if so.
    pub fn compare(
        self: &Arc<Self>,
        mut is_wanted: impl FnMut(Switch) -> bool,
        mut tell: impl FnMut(Switch, Option<(&Rerun, Passed)>),
    ) {
        let mut clean = self.begin(None);
        for (place, asked) in self.asked.iter().enumerate() {
            for &switch in asked.iter().filter(|&&switch| is_wanted(switch)) {
                let begin = if place == 0 {
                    self.begin(Some(switch))
                } else {
                    clean.fork(switch)
                };
                match begin.fork(switch).passed() {
                    None => tell(switch, None),
                    Some(passed) => tell(switch, Some((&begin, passed))),
                }
            }
            if place > 0 {
                clean.step();
            }
        }
    }
}

/// A world that is asked again what another was asked.
#[derive(Debug)]
pub struct Rerun {
    track: Arc<Track>,
    world: World,
    echo: Arc<Echo>,
    /// The next passage.
    next: usize,
}

impl Rerun {
    /// The same from here on, with nothing switched on but this.
    fn fork(&self, switch: Switch) -> Self {
        let echo = Arc::new(Echo::of(&self.track));
        Self {
            track: Arc::clone(&self.track),
            world: self
                .world
                .fork(Some(switch), Arc::clone(&echo) as Arc<dyn Deliver>),
            echo,
            next: self.next,
        }
    }

    /// Whether everything that is left passes as it did before.
    pub fn goes_the_same_way(mut self) -> bool {
        (self.next..self.track.passages.len()).all(|_| self.step() == Step::Same)
    }

    /// What is left, as far as it is told by asking what was asked before; nothing where it all passes as before.
    fn passed(mut self) -> Option<Passed> {
        let mut passed = Passed {
            from: self.next,
            steps: Vec::new(),
        };
        let mut is_same = true;
        for _ in self.next..self.track.passages.len() {
            let step = self.step();
            is_same &= step == Step::Same;
            if step == Step::Astray {
                break;
            }
            passed.steps.push(step);
        }
        (!is_same).then_some(passed)
    }

    /// Has the next passage happen.
    fn step(&mut self) -> Step {
        let Some(passage) = self.track.passages.get(self.next) else {
            return Step::Astray;
        };
        self.echo.expect(self.next);
        self.next += 1;
        let step = match &passage.deed {
            Deed::Waited(time) => {
                self.world.advance(*time);
                Step::Same
            }
            Deed::Asked {
                request, response, ..
            } => {
                let answer = self.world.handle(request);
                if answer == *response {
                    Step::Same
                } else {
                    Step::Other(answer)
                }
            }
            Deed::Raced {
                requests,
                responses,
                ..
            } => {
                let answers = self.world.handle_concurrently(requests);
                if answers == *responses {
                    Step::Same
                } else {
                    Step::OtherRace(answers)
                }
            }
        };
        if self.echo.heard_all() && self.world.now() == passage.ended {
            step
        } else {
            Step::Astray
        }
    }

    /// A world for a story that is told again from its beginning, until here as it was told before.
    pub(super) fn take_up(
        &self,
        switch: Switch,
        passed: Passed,
        onward: Arc<dyn Deliver>,
    ) -> TakenUp {
        let echo = Arc::new(Echo::of(&self.track));
        let turn = Arc::new(Turn {
            is_over: AtomicBool::new(false),
            echo,
            onward,
        });
        let world = self
            .world
            .fork(Some(switch), Arc::clone(&turn) as Arc<dyn Deliver>);
        TakenUp {
            track: Arc::clone(&self.track),
            passed,
            next: 0,
            behind: self.next,
            is_astray: false,
            world,
            turn,
        }
    }
}

/// How a passage went when it was asked for again.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// As before.
    Same,
    /// With another answer, and the same callbacks in the same time.
    Other(Response),
    /// With other answers to requests at the same time, and the same callbacks in the same time.
    OtherRace(Vec<Response>),
    /// With other callbacks, or in another time: nothing is known from here on.
    Astray,
}

/// What is known of a world from some passage on, as long as it is asked what was asked before.
#[derive(Debug)]
pub struct Passed {
    from: usize,
    steps: Vec<Step>,
}

impl Passed {
    fn step(&self, passage: usize) -> &Step {
        match passage.checked_sub(self.from) {
            None => &Step::Same,
            Some(index) => self.steps.get(index).unwrap_or(&Step::Astray),
        }
    }
}

/// A world of which is known what it says as long as it is asked what was asked before. Beyond that it is asked.
pub(super) struct TakenUp {
    track: Arc<Track>,
    passed: Passed,
    /// The passage that is due.
    next: usize,
    /// The first passage that the world itself has not seen.
    behind: usize,
    /// Whether something else happens than before.
    is_astray: bool,
    world: World,
    turn: Arc<Turn>,
}

impl TakenUp {
    pub(super) fn handle(&mut self, request: &Request) -> Response {
        if let Some(response) = self.known(request) {
            self.next += 1;
            return response;
        }
        self.catch_up();
        self.world.handle(request)
    }

    pub(super) fn advance(&mut self, by: Duration) {
        let passage = self.track.passages.get(self.next).map(|p| &p.deed);
        let is_known = *self.passed.step(self.next) == Step::Same
            && matches!(passage, Some(Deed::Waited(time)) if *time == by);
        if is_known && !self.is_astray {
            self.next += 1;
        } else {
            self.catch_up();
            self.world.advance(by);
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        if self.is_astray {
            return self.world.now();
        }
        match self.next.checked_sub(1) {
            None => self.track.began,
            Some(last) => self.track.passages[last].ended,
        }
    }

    /// What comes of a request that was made here before; the receivers hear what they heard then.
    fn known(&self, request: &Request) -> Option<Response> {
        let passage = self.track.passages.get(self.next);
        let Deed::Asked {
            request: before,
            response,
            delivered,
        } = &passage.filter(|_| !self.is_astray)?.deed
        else {
            return None;
        };
        if before != request {
            return None;
        }
        let response = match self.passed.step(self.next) {
            Step::Same => response.clone(),
            Step::Other(response) => response.clone(),
            Step::OtherRace(_) | Step::Astray => return None,
        };
        for (callback, _) in delivered {
            self.turn.onward.deliver(callback);
        }
        Some(response)
    }

    /// What comes of requests at the same time.
    pub(super) fn handle_concurrently(&mut self, requests: &[Request]) -> Vec<Response> {
        if let Some(responses) = self.known_race(requests) {
            self.next += 1;
            return responses;
        }
        self.catch_up();
        self.world.handle_concurrently(requests)
    }

    fn known_race(&self, requests: &[Request]) -> Option<Vec<Response>> {
        let passage = self.track.passages.get(self.next);
        let Deed::Raced {
            requests: before,
            responses,
            delivered,
        } = &passage.filter(|_| !self.is_astray)?.deed
        else {
            return None;
        };
        if before != requests {
            return None;
        }
        let responses = match self.passed.step(self.next) {
            Step::Same => responses.clone(),
            Step::OtherRace(responses) => responses.clone(),
            Step::Other(_) | Step::Astray => return None,
        };
        for (callback, _) in delivered {
            self.turn.onward.deliver(callback);
        }
        Some(responses)
    }

    /// Has the world see what passed so far, of which everybody else has heard already.
    fn catch_up(&mut self) {
        if self.is_astray {
            return;
        }
        self.is_astray = true;
        while self.behind < self.next {
            self.turn.echo.expect(self.behind);
            match &self.track.passages[self.behind].deed {
                Deed::Waited(time) => self.world.advance(*time),
                Deed::Asked { request, .. } => drop(self.world.handle(request)),
                Deed::Raced { requests, .. } => drop(self.world.handle_concurrently(requests)),
            }
            self.behind += 1;
        }
        self.turn.is_over.store(true, Ordering::Relaxed);
    }
}

/// Callbacks of a world that catches up were delivered before; later ones are delivered.
struct Turn {
    is_over: AtomicBool,
    echo: Arc<Echo>,
    onward: Arc<dyn Deliver>,
}

impl Deliver for Turn {
    fn deliver(&self, callback: &Callback) -> Outcome {
        if self.is_over.load(Ordering::Relaxed) {
            self.onward.deliver(callback)
        } else {
            self.echo.deliver(callback)
        }
    }
}

/// Notes what is delivered, and how it went.
pub(super) struct Noting {
    onward: Arc<dyn Deliver>,
    noted: Mutex<Vec<(Callback, Outcome)>>,
}

impl Noting {
    pub(super) fn before(onward: Arc<dyn Deliver>) -> Self {
        Self {
            onward,
            noted: Mutex::default(),
        }
    }

    /// What was delivered since this was last asked.
    pub(super) fn take(&self) -> Vec<(Callback, Outcome)> {
        std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Deliver for Noting {
    fn deliver(&self, callback: &Callback) -> Outcome {
        let outcome = self.onward.deliver(callback);
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push((callback.clone(), outcome));
        outcome
    }
}

/// Receives callbacks as they were received before, and notices where they differ.
#[derive(Debug)]
struct Echo {
    track: Arc<Track>,
    heard: Mutex<Heard>,
}

#[derive(Debug, Default)]
struct Heard {
    passage: usize,
    /// How many of its callbacks came.
    came: usize,
    differs: bool,
}

impl Echo {
    fn of(track: &Arc<Track>) -> Self {
        Self {
            track: Arc::clone(track),
            heard: Mutex::default(),
        }
    }

    fn expect(&self, passage: usize) {
        *self.heard() = Heard {
            passage,
            ..Heard::default()
        };
    }

    /// Whether the callbacks of the passage came, and no others.
    fn heard_all(&self) -> bool {
        let heard = self.heard();
        !heard.differs && heard.came == self.delivered(heard.passage).len()
    }

    fn delivered(&self, passage: usize) -> &[(Callback, Outcome)] {
        match self.track.passages.get(passage).map(|p| &p.deed) {
            Some(Deed::Asked { delivered, .. } | Deed::Raced { delivered, .. }) => delivered,
            Some(Deed::Waited(_)) | None => &[],
        }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deliver for Echo {
    fn deliver(&self, callback: &Callback) -> Outcome {
        let mut heard = self.heard();
        let known = self.delivered(heard.passage).get(heard.came);
        heard.came += 1;
        match known {
            Some((before, outcome)) if before == callback && !heard.differs => *outcome,
            Some(_) | None => {
                heard.differs = true;
                Outcome::Unreachable
            }
        }
    }
}
