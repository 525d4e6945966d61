//! Live targets: requests over the network, hooks as the adopter supplies them, real time.

use super::hooks;
use crate::clock::{self, Timestamp};
use crate::engine::session::{Callbacks, SendFault, Session};
use crate::engine::settings::Settings;
use crate::engine::template::wait_of;
use crate::engine::{Planned, Sessions};
use crate::http::{Request, Response};
use crate::transport::{BaseUrl, Client, Limits, Listener, Listening, Share};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// How long one wait lasts before the interrupt flag is looked at again.
const WAIT_SLICE: Duration = Duration::from_millis(20);

/// Waits from this length on move the target's clock, where there is a hook for it; shorter ones
/// pass in real time.
const ADVANCE_FROM: Duration = Duration::from_secs(5);

/// The hook that moves the target's time.
const ADVANCE_CLOCK: &str = "advance_clock";

/// Sessions with live targets; they share connections and time, not state.
#[derive(Debug)]
pub struct Live {
    settings: Settings,
    bases: BTreeMap<String, BaseUrl>,
    client: Client,
    listener: Listener,
    interrupted: Arc<AtomicBool>,
    /// How far the target's clock is ahead of ours, by what `advance_clock` answers.
    ahead_ms: AtomicI64,
    time_asked: Once,
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
            time_asked: Once::new(),
            turns: RwLock::new(()),
        })
    }

    /// Whether waits of this story move the clock.
    fn moves_the_clock(&self, planned: &Planned<'_>) -> bool {
        let long = |text: &str| wait_of(text).is_none_or(|wait| wait >= ADVANCE_FROM);
        self.settings.hooks.contains_key(ADVANCE_CLOCK)
            && planned.any_step(&|step| step.wait.as_deref().is_some_and(long))
    }

    /// Whether a hook of this story changes what the target has only one of: its time, or the
    /// address to which an application's callbacks go.
    fn changes_what_all_share(planned: &Planned<'_>) -> bool {
        planned.any_step(&|step| {
            let hook = step.hook.as_deref();
            hook.is_some_and(|hook| matches!(hook, ADVANCE_CLOCK | "set_callback"))
        })
    }

    /// Asks once how far the target's clock is ahead already: an earlier run may have moved it.
    fn ask_the_time(&self) {
        self.time_asked.call_once(|| {
            if let Some(hook) = self.settings.hooks.get(ADVANCE_CLOCK) {
                let nothing = json!({"seconds": 0});
                let answer = hooks::carry_out(hook, &nothing, &self.client, &self.interrupted);
                // A hook that fails now says so where a story needs it.
                if let Ok(answer) = answer {
                    self.clock_was_moved(&answer, &nothing);
                }
            }
        });
    }

    /// Notes the target's time by what the hook answered or, where it did not say, was asked.
    fn clock_was_moved(&self, answer: &Value, arguments: &Value) {
        let target = answer.get("now").and_then(Value::as_str);
        if let Some(target) = target.and_then(|now| now.parse::<Timestamp>().ok()) {
            let ahead_ms = target.as_millisecond() - clock::now().as_millisecond();
            self.ahead_ms.store(ahead_ms, Ordering::SeqCst);
        } else if let Some(seconds) = arguments.get("seconds").and_then(Value::as_f64) {
            let by = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
            self.ahead_ms.fetch_add(ms, Ordering::SeqCst);
        }
    }
}

impl Sessions for Live {
    fn open(&self, planned: &Planned<'_>) -> Result<Box<dyn Session + '_>, String> {
        self.ask_the_time();
        let moves_the_clock = self.moves_the_clock(planned);
        let alone = moves_the_clock
            || Self::changes_what_all_share(planned)
            || planned.walks_a_shared_list();
        let turn = if alone {
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
            share: RefCell::new(self.client.share()),
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
    /// Given back once the story is judged: what it holds is its evidence.
    share: RefCell<Share>,
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
            .exchange_in(
                &mut self.share.borrow_mut(),
                base,
                request,
                client.limits().timeout,
            )
            .map(|answer| answer.response)
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
        let answer = hooks::carry_out(hook, arguments, &self.live.client, &self.live.interrupted)?;
        if name == ADVANCE_CLOCK {
            self.live.clock_was_moved(&answer, arguments);
        }
        Ok(answer)
    }

    /// With `advance_clock` the target's time is moved by long waits; others are waited for.
    fn wait(&self, duration: Duration) {
        let arguments = json!({"seconds": duration.as_secs_f64()});
        if self.moves_the_clock
            && duration >= ADVANCE_FROM
            && self.hook(ADVANCE_CLOCK, &arguments).is_ok()
        {
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
