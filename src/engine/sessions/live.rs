//! Live targets: requests over the network, hooks as the adopter supplies them, real time.

use super::hooks;
use crate::clock::{self, Timestamp};
use crate::engine::session::{Callbacks, SendFault, Session};
use crate::engine::settings::Settings;
use crate::engine::template::wait_of;
use crate::engine::{Planned, Sessions};
use crate::http::{Request, Response};
use crate::transport::{BaseUrl, Client, Limits, Listener, Listening};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// How long one wait lasts before the interrupt flag is looked at again.
const WAIT_SLICE: Duration = Duration::from_millis(20);

/// Waits from this length on move the target's clock, where there is a hook for it; shorter ones
/// pass in real time.
const ADVANCE_FROM: Duration = Duration::from_secs(5);

/// Sessions with live targets; they share connections and time, not state.
#[derive(Debug)]
pub struct Live {
    settings: Settings,
    bases: BTreeMap<String, BaseUrl>,
    client: Client,
    listener: Listener,
    interrupted: Arc<AtomicBool>,
    /// How far `advance_clock` has moved the target's clock.
    ahead_ms: AtomicI64,
    /// Held alone by a story under whose feet nothing may move, or that moves things under all others'.
    turns: RwLock<()>,
}

impl Live {
    /// Opens the callback listener and gets ready to connect. `interrupted` ends waits, hooks and
    /// exchanges under way.
    pub fn new(
        settings: Settings,
        limits: Limits,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let mut bases = BTreeMap::new();
        for (service, target) in &settings.targets {
            let (origin, _) = crate::engine::split_url(&target.url);
            let base = BaseUrl::parse(origin).map_err(|e| format!("targets.{service}.url: {e}"))?;
            bases.insert(service.clone(), base);
        }
        let mut listening = Listening::default();
        if let Some(address) = &settings.listen {
            listening.listen = address
                .parse()
                .map_err(|e| format!("callbacks.listen {address}: {e}"))?;
        }
        if let Some(url) = &settings.public_url {
            let base =
                BaseUrl::parse(url).map_err(|e| format!("callbacks.public_url {url}: {e}"))?;
            listening.public_url = Some(base);
        }
        let listener =
            Listener::start(&listening).map_err(|e| format!("failed to receive callbacks: {e}"))?;
        Ok(Self {
            settings,
            bases,
            client: Client::new(limits).interrupted_by(Arc::clone(interrupted)),
            listener,
            interrupted: Arc::clone(interrupted),
            ahead_ms: AtomicI64::new(0),
            turns: RwLock::new(()),
        })
    }

    fn moves_the_clock(&self, planned: &Planned<'_>) -> bool {
        let long = |text: &str| wait_of(text).is_none_or(|wait| wait >= ADVANCE_FROM);
        self.settings.hooks.contains_key("advance_clock")
            && planned.any_step(&|step| step.wait.as_deref().is_some_and(long))
    }
}

impl Sessions for Live {
    fn open(&self, planned: &Planned<'_>) -> Result<Box<dyn Session + '_>, String> {
        let moves_the_clock = self.moves_the_clock(planned);
        let turn = if moves_the_clock || planned.walks_a_shared_list() {
            Turn::Alone(self.turns.write().unwrap_or_else(PoisonError::into_inner))
        } else {
            Turn::Together(self.turns.read().unwrap_or_else(PoisonError::into_inner))
        };
        let prefix = format!("{}-", super::short_name(&planned.scenario.id));
        let callbacks = Callbacks {
            sink: Arc::clone(self.listener.sink()),
            prefix,
        };
        Ok(Box::new(LiveSession {
            live: self,
            callbacks,
            moves_the_clock,
            _turn: turn,
        }))
    }

    fn targets(&self) -> BTreeMap<String, String> {
        self.settings
            .targets
            .iter()
            .map(|(name, target)| (name.clone(), target.url.clone()))
            .collect()
    }
}

/// Who else tells a story meanwhile.
enum Turn<'a> {
    Alone(#[expect(dead_code, reason = "held, not read")] RwLockWriteGuard<'a, ()>),
    Together(#[expect(dead_code, reason = "held, not read")] RwLockReadGuard<'a, ()>),
}

struct LiveSession<'a> {
    live: &'a Live,
    callbacks: Callbacks,
    moves_the_clock: bool,
    _turn: Turn<'a>,
}

impl Session for LiveSession<'_> {
    fn settings(&self) -> &Settings {
        &self.live.settings
    }

    fn send(&self, service: &str, request: &Request) -> Result<Response, SendFault> {
        let client = &self.live.client;
        let base = &self.live.bases[service];
        client
            .send(base, request, client.limits().timeout)
            .map_err(|fault| SendFault::from(&fault))
    }

    fn has_hook(&self, name: &str) -> bool {
        self.live.settings.hooks.contains_key(name)
    }

    fn hook(&self, name: &str, arguments: &Value) -> Result<Value, String> {
        let hook = self
            .live
            .settings
            .hooks
            .get(name)
            .ok_or_else(|| "it is not supplied".to_owned())?;
        hooks::carry_out(hook, arguments, &self.live.client, &self.live.interrupted)
    }

    /// With `advance_clock` the target's time is moved by long waits; others are waited for.
    fn wait(&self, duration: Duration) {
        let arguments = json!({"seconds": duration.as_secs_f64()});
        if self.moves_the_clock
            && duration >= ADVANCE_FROM
            && self.hook("advance_clock", &arguments).is_ok()
        {
            let ms = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
            self.live.ahead_ms.fetch_add(ms, Ordering::SeqCst);
            return;
        }
        let deadline = clock::monotonic() + duration;
        while !self.live.interrupted.load(Ordering::Relaxed) {
            let left = deadline.saturating_duration_since(clock::monotonic());
            if left.is_zero() {
                return;
            }
            clock::sleep(left.min(WAIT_SLICE));
        }
    }

    fn now(&self) -> Timestamp {
        let ahead_ms = self.live.ahead_ms.load(Ordering::SeqCst);
        clock::from_unix_ms(clock::now().as_millisecond().saturating_add(ahead_ms))
    }

    fn callbacks(&self) -> Option<&Callbacks> {
        Some(&self.callbacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plan;
    use crate::engine::settings::Target;
    use crate::rulebook::Rulebook;

    #[test]
    fn nobody_else_plays_while_a_shared_list_is_walked() {
        let rulebook = Rulebook::embedded().unwrap();
        let target = Target::of_reference("flow", "http://127.0.0.1:9/flow");
        let settings = Settings {
            targets: [("flow".to_owned(), target)].into(),
            ..Settings::default()
        };
        let live = Live::new(settings, Limits::default(), &Arc::default()).unwrap();
        let all = plan::all(&rulebook);
        let open = |id: &str| {
            let planned = all.iter().find(|p| p.scenario.id == id).unwrap();
            live.open(planned).map_err(drop).unwrap()
        };
        let walking = open("flow/read-executions/walk");
        assert!(live.turns.try_read().is_err(), "someone else may insert");
        drop(walking);
        let _inserting = open("flow/create-execution/happy");
        assert!(live.turns.try_read().is_ok());
        assert!(live.turns.try_write().is_err());
    }
}
