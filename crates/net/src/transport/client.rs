//! The HTTP client: kept connections per origin, one deadline per exchange, and no unsafe retries.
//!
//! Follows no redirect, keeps no cookie, reads no proxy settings and requests no compression.

use super::budget::{Budget, BudgetShare};
use super::connect_settings::ConnectSettings;
use super::connection::{Connection, Exchange, Terms, resolve};
use super::encode;
use super::fault::Fault;
use super::origin::{BaseUrl, Origin};
use super::rate_limit::RateLimit;
use super::reading::{self, Answer, Note};
use super::writing;
use conformant_base::clock;
use conformant_base::http::{Cause, Request, Response};
use conformant_base::parallel::lock;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

/// Failed connections in a row after which a target is given up.
const GIVE_UP_AFTER: u32 = 3;
/// Idle connections kept per origin.
const KEPT: usize = 64;
/// A request that must not be sent twice uses a kept connection only if that was used within this time:
/// servers close idle connections later.
const RECENT: Duration = Duration::from_secs(1);

/// Limits of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time to connect.
    pub connect: Duration,
    /// Time for a whole exchange with connecting, unless the call sets another.
    pub timeout: Duration,
    /// Bytes of one body.
    pub body: usize,
    /// Exchanges per second over all workers; `None` for no limit.
    pub rate: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
            body: 8 * 1024 * 1024,
            rate: None,
        }
    }
}

/// Sends requests to targets; shared by all workers, each of which blocks until its response is complete.
#[derive(Debug)]
pub struct Client {
    limits: Limits,
    pace: Option<RateLimit>,
    targets: RwLock<Vec<Arc<Target>>>,
    pub(super) interrupted: Arc<AtomicBool>,
    ways: Vec<(Arc<Origin>, Arc<ConnectSettings>)>,
    otherwise: Arc<ConnectSettings>,
    room: Arc<Budget>,
    trusts_kept: bool,
}

/// State of one origin.
#[derive(Debug)]
pub(super) struct Target {
    origin: Arc<Origin>,
    way: Arc<ConnectSettings>,
    addresses: Mutex<Option<Arc<[SocketAddr]>>>,
    /// Idle connections with their last use, in this order.
    idle: Mutex<Vec<(Instant, Connection)>>,
    /// True if the target closed a recently used connection without notice.
    closes: AtomicBool,
    failures: Mutex<Failures>,
}

/// Consecutive failed connections.
#[derive(Debug, Default)]
struct Failures {
    in_a_row: u32,
    last: Option<Cause>,
}

impl Client {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            pace: limits.rate.map(RateLimit::new),
            targets: RwLock::default(),
            interrupted: Arc::default(),
            ways: Vec::new(),
            otherwise: Arc::default(),
            room: Arc::default(),
            trusts_kept: false,
        }
    }

    /// Reuses connections for every request. For targets that never close a connection between requests.
    #[must_use]
    pub fn trusting_kept(self) -> Self {
        Self {
            trusts_kept: true,
            ..self
        }
    }

    /// Sets how an origin is reached.
    #[must_use]
    pub fn reaching(mut self, origin: &Arc<Origin>, way: Arc<ConnectSettings>) -> Self {
        self.ways.push((Arc::clone(origin), way));
        self
    }

    /// Sets how all other origins are reached.
    #[must_use]
    pub fn otherwise(self, way: Arc<ConnectSettings>) -> Self {
        Self {
            otherwise: way,
            ..self
        }
    }

    /// Sets an interrupt flag: once raised, exchanges in progress end soon and new ones are refused.
    #[must_use]
    pub fn interrupted_by(self, flag: Arc<AtomicBool>) -> Self {
        Self {
            interrupted: flag,
            ..self
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A new scenario's share of the memory for large responses.
    pub fn share(&self) -> BudgetShare {
        BudgetShare::of(&self.room)
    }

    /// Sends a request and waits for the whole response, at most `within` after the rate limit admits it.
    pub fn send(
        &self,
        base: &BaseUrl,
        request: &Request,
        within: Duration,
    ) -> Result<Response, Fault> {
        self.exchange(base, request, within)
            .map(|answer| answer.response)
    }

    /// Like [`Client::send`], with notes about the response.
    pub fn exchange(
        &self,
        base: &BaseUrl,
        request: &Request,
        within: Duration,
    ) -> Result<Answer, Fault> {
        let share = &BudgetShare::of(&Arc::default());
        self.exchange_on(
            self.trusts_kept.then_some(Duration::MAX),
            share,
            base,
            request,
            within,
        )
    }

    /// Like [`Client::exchange`] within a scenario: while it holds large responses, those of other scenarios
    /// wait. A scenario can be retried, so every request may use a recently used connection, unless the target
    /// closed such a one before. [`Fault::on_kept`] marks a failure there.
    pub fn exchange_in(
        &self,
        share: &BudgetShare,
        base: &BaseUrl,
        request: &Request,
        within: Duration,
    ) -> Result<Answer, Fault> {
        self.exchange_on(Some(RECENT), share, base, request, within)
    }

    /// `trusted` limits the idle time of a connection for requests that must not be sent twice; `None` for never.
    fn exchange_on(
        &self,
        trusted: Option<Duration>,
        share: &BudgetShare,
        base: &BaseUrl,
        request: &Request,
        within: Duration,
    ) -> Result<Answer, Fault> {
        encode::check(request).map_err(|e| Fault::new(Cause::Unsendable, e.to_string()))?;
        self.wait_for_turn()?;
        let deadline = clock::monotonic() + within;
        let target = self.target(base.origin());
        let mut resent = false;
        // A dead connection is detected only after sending. Verdicts must not depend on when a target closes one.
        let kept = target.take_idle().filter(|(used, _)| {
            let is_trusted = || self.trusts_kept || !target.closes();
            let trusted = trusted.filter(|_| is_trusted());
            is_repeatable(request) || trusted.is_some_and(|within| used.elapsed() <= within)
        });
        if let Some((_, connection)) = kept {
            match self.attempt(&target, connection, base, request, deadline, share) {
                Err(fault) if is_unanswered(&fault) => {
                    target.closes.store(true, Ordering::Relaxed);
                    // A repeatable request is sent again. Others may have been executed.
                    if !is_repeatable(request) {
                        return Err(Fault {
                            on_kept: true,
                            ..fault
                        });
                    }
                    resent = true;
                }
                outcome => return outcome,
            }
        }
        let connection = self.connect(&target, deadline)?;
        let mut answer = self.attempt(&target, connection, base, request, deadline, share)?;
        if resent {
            answer.notes.push(Note::Resent);
        }
        Ok(answer)
    }

    /// Waits until the rate limit admits one more exchange.
    pub(super) fn wait_for_turn(&self) -> Result<(), Fault> {
        match &self.pace {
            Some(pace) => pace.wait(&self.interrupted),
            None => Ok(()),
        }
    }

    /// True if the origin was given up.
    pub fn gave_up(&self, origin: &Arc<Origin>) -> bool {
        self.target(origin).given_up().is_some()
    }

    /// Connects to an origin again that was given up.
    pub fn try_again(&self, origin: &Arc<Origin>) {
        self.target(origin).connected();
    }

    /// True if no kept connection to the origin is usable.
    #[cfg(test)]
    pub(super) fn kept_are_spoilt(&self, origin: &Arc<Origin>) -> bool {
        let target = self.target(origin);
        let mut idle = lock(&target.idle);
        idle.iter_mut()
            .all(|(_, connection)| !connection.is_quiet())
    }

    pub(super) fn target(&self, origin: &Arc<Origin>) -> Arc<Target> {
        let find = |targets: &[Arc<Target>]| {
            targets
                .iter()
                .find(|t| Arc::ptr_eq(&t.origin, origin) || t.origin == *origin)
                .cloned()
        };
        let known = find(&self.targets.read().expect("no holder of this lock panics"));
        known.unwrap_or_else(|| {
            let mut targets = self.targets.write().expect("no holder of this lock panics");
            find(&targets).unwrap_or_else(|| {
                let named = self.ways.iter().find(|(named, _)| named == origin);
                let way = named.map_or(&self.otherwise, |(_, way)| way);
                let target = Arc::new(Target::new(origin, way));
                targets.push(Arc::clone(&target));
                target
            })
        })
    }

    /// Opens a new connection.
    pub(super) fn connect(&self, target: &Target, deadline: Instant) -> Result<Connection, Fault> {
        if let Some(cause) = target.given_up() {
            let detail = format!(
                "no connection to {} {GIVE_UP_AFTER} times in a row; not tried again",
                target.origin
            );
            let mut fault = Fault::new(cause, detail);
            fault.fatal = true;
            return Err(fault);
        }
        let outcome = target.addresses(self.limits.connect).and_then(|addresses| {
            let terms = Terms {
                connect: self.limits.connect,
                deadline,
                interrupted: &self.interrupted,
                way: &target.way,
            };
            Connection::open(&target.origin, &addresses, &terms)
        });
        match outcome {
            Ok(connection) => {
                target.connected();
                Ok(connection)
            }
            Err(mut fault) => {
                if fault.cause != Cause::Interrupted {
                    target.failed(fault.cause.clone());
                }
                fault.fatal = target.given_up().is_some();
                Err(fault)
            }
        }
    }

    fn attempt(
        &self,
        target: &Target,
        mut connection: Connection,
        base: &BaseUrl,
        request: &Request,
        deadline: Instant,
        share: &BudgetShare,
    ) -> Result<Answer, Fault> {
        let through = connection.through.as_deref();
        let body = writing::render(&mut connection.output, base, request, through);
        let mut exchange = Exchange::new(&mut connection, body, deadline, &self.interrupted);
        let answer = reading::read(&mut exchange, &request.method, self.limits.body, share)?;
        let asked_to_close = request
            .headers
            .get("Connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if answer.reusable && !asked_to_close {
            target.keep(connection);
        }
        Ok(answer)
    }
}

impl Target {
    fn new(origin: &Arc<Origin>, way: &Arc<ConnectSettings>) -> Self {
        Self {
            origin: Arc::clone(origin),
            way: Arc::clone(way),
            addresses: Mutex::default(),
            idle: Mutex::default(),
            closes: AtomicBool::new(false),
            failures: Mutex::default(),
        }
    }

    /// Why the origin was given up, if so.
    fn given_up(&self) -> Option<Cause> {
        let failures = lock(&self.failures);
        let gives_up = failures.in_a_row >= GIVE_UP_AFTER;
        failures.last.clone().filter(|_| gives_up)
    }

    fn failed(&self, cause: Cause) {
        let mut failures = lock(&self.failures);
        failures.in_a_row += 1;
        failures.last = Some(cause);
    }

    fn connected(&self) {
        *lock(&self.failures) = Failures::default();
    }

    /// The resolved addresses of the host, looked up once.
    fn addresses(&self, within: Duration) -> Result<Arc<[SocketAddr]>, Fault> {
        let mut known = lock(&self.addresses);
        if let Some(addresses) = &*known {
            return Ok(Arc::clone(addresses));
        }
        let proxy = self.way.proxies.to(&self.origin);
        let next = proxy.map_or(&*self.origin, |proxy| proxy.origin());
        let found: Arc<[SocketAddr]> = resolve(next, within)?.into();
        *known = Some(Arc::clone(&found));
        Ok(found)
    }

    /// The most recently used live connection, and the time of that use.
    fn take_idle(&self) -> Option<(Instant, Connection)> {
        loop {
            let mut idle = lock(&self.idle);
            let (used, mut connection) = idle.pop()?;
            drop(idle);
            if connection.is_quiet() {
                return Some((used, connection));
            }
            // A long idle connection may be closed.
            if used.elapsed() <= RECENT {
                self.closes.store(true, Ordering::Relaxed);
            }
        }
    }

    fn keep(&self, connection: Connection) {
        let mut idle = lock(&self.idle);
        if idle.len() < KEPT {
            idle.push((clock::monotonic(), connection));
        }
    }

    /// True if it closed connections in use.
    fn closes(&self) -> bool {
        self.closes.load(Ordering::Relaxed)
    }
}

/// True for requests that change nothing and can be sent twice.
fn is_repeatable(request: &Request) -> bool {
    matches!(request.method.as_str(), "GET" | "HEAD")
}

/// True if no byte of a response came: the kept connection was dead.
fn is_unanswered(fault: &Fault) -> bool {
    matches!(fault.cause, Cause::Reset | Cause::EmptyResponse)
}
