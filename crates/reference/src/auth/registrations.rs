//! Registration without personal data: pending, expired or completed per custom user id (D1, States and
//! transitions).
//!
//! `token` validates tokens; `webhooks` builds payloads.

use super::answer::Failure;
use super::token::LIFETIME_MAX_SECONDS;
use crate::{Call, Core, Fault, Variant};
use conformant_base::clock::Timestamp;
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// State of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// A QR code is shown until its token expires.
    Pending {
        until: Timestamp,
    },
    Expired,
    Completed {
        auth_id: u64,
    },
}

/// All registrations by custom user id.
#[derive(Clone, Debug, Default)]
pub(super) struct Registrations {
    by_custom_user_id: BTreeMap<String, Standing>,
    /// User and time of registration.
    completed: Vec<(u64, Timestamp)>,
    /// Display order, and the text of the QR code if known.
    shown: BTreeMap<String, (u64, Option<String>)>,
    /// Number of QR codes shown.
    announced: u64,
    /// Fault: the user of a second completion, and its time.
    moving: BTreeMap<String, (u64, Timestamp)>,
}

impl Registrations {
    /// Shows a QR code. Its token expires at its own time or, if unknown, as late as possible. A completed
    /// registration stays completed.
    pub(super) fn announce(
        &mut self,
        core: &Core,
        custom_user_id: &str,
        qr: Option<(&str, Option<Timestamp>)>,
    ) {
        let until = qr.and_then(|(_, until)| until);
        let text = qr.map(|(text, _)| text.to_owned());
        self.announced += 1;
        let shown = (self.announced, text);
        self.shown.insert(custom_user_id.to_owned(), shown);
        let standing = self
            .by_custom_user_id
            .entry(custom_user_id.to_owned())
            .or_insert(Standing::Expired);
        match standing {
            Standing::Completed { .. } if !core.varies(Variant::AuthCompletedBecomesPending) => {}
            Standing::Completed { .. } | Standing::Pending { .. } | Standing::Expired => {
                let until = until.unwrap_or_else(|| latest_end(core.now));
                *standing = Standing::Pending { until };
            }
        }
    }

    /// A scan of an expired token of this id.
    pub(super) fn expire(&mut self, core: &Core, custom_user_id: String) {
        let standing = self
            .by_custom_user_id
            .entry(custom_user_id)
            .or_insert(Standing::Expired);
        *standing = match *standing {
            Standing::Pending { .. } if core.fails(Fault::AuthRegistrationNeverExpires) => {
                *standing
            }
            Standing::Pending { .. } | Standing::Expired => Standing::Expired,
            Standing::Completed { .. } => *standing,
        };
    }

    /// A scan of an invalid token of this id, which changes nothing.
    pub(super) fn refuse(&mut self, core: &Core, custom_user_id: &str) {
        if let Some(standing @ Standing::Completed { .. }) =
            self.by_custom_user_id.get_mut(custom_user_id)
            && core.fails(Fault::AuthRefusedScanUncompletes)
        {
            let until = latest_end(core.now);
            *standing = Standing::Pending { until };
        }
    }

    /// A scan of a valid token.
    pub(super) fn complete(&mut self, core: &Core, custom_user_id: &str, auth_id: u64) {
        if core.fails(Fault::AuthScanStaysPending) {
            return;
        }
        let moving = (auth_id, core.now);
        match self.by_custom_user_id.get(custom_user_id) {
            Some(Standing::Completed { .. }) if core.fails(Fault::AuthRaceScanMoves) => {
                self.moving.insert(custom_user_id.to_owned(), moving);
                return;
            }
            _ => {}
        }
        self.by_custom_user_id
            .insert(custom_user_id.to_owned(), Standing::Completed { auth_id });
        self.completed.push((auth_id, core.now));
    }

    /// Shown registrations, oldest first: custom user id, state and QR code.
    pub(super) fn in_order(
        &self,
        now: Timestamp,
    ) -> impl DoubleEndedIterator<Item = (&str, &'static str, Option<&str>)> {
        let mut shown: Vec<_> = self.shown.iter().collect();
        shown.sort_unstable_by_key(|(_, (place, _))| *place);
        shown.into_iter().map(move |(custom_user_id, (_, qr))| {
            let state = match self.by_custom_user_id.get(custom_user_id) {
                Some(Standing::Pending { until }) if now < *until => "pending",
                Some(Standing::Completed { .. }) => "completed",
                Some(Standing::Pending { .. } | Standing::Expired) | None => "expired",
            };
            (custom_user_id.as_str(), state, qr.as_deref())
        })
    }

    /// The id of a registered user, if any.
    pub(super) fn any_completed(&self) -> Option<u64> {
        self.completed.first().map(|(auth_id, _)| *auth_id)
    }

    /// The id of the last registered user.
    pub(super) fn last_completed(&self) -> Option<u64> {
        self.completed.last().map(|(auth_id, _)| *auth_id)
    }

    /// `GET …/registrations/status?custom_user_id=…`
    pub(super) fn status(&self, core: &Core, call: &Call<'_>) -> Result<Value, Failure> {
        let Some(custom_user_id) = call.query.get("custom_user_id") else {
            if core.fails(Fault::AuthCustomUserIdNotRequired) {
                return Ok(json!({"registration": {"status": "pending"}, "success": true}));
            }
            return Err(Failure::new(400, "custom_user_id is missing"));
        };
        let custom_user_id = match custom_user_id.trim_end_matches('=') {
            bare if bare != custom_user_id && core.fails(Fault::AuthCustomUserIdPaddingLost) => {
                bare
            }
            _ => custom_user_id,
        };
        let registration = match self.standing(core, custom_user_id) {
            Some(Standing::Pending { .. }) if core.varies(Variant::AuthUnscannedUnknown) => {
                return Err(Failure::not_found());
            }
            Some(Standing::Pending { .. }) if core.varies(Variant::AuthUnscannedExpired) => {
                json!({"status": "expired"})
            }
            Some(Standing::Pending { .. }) => json!({"status": "pending"}),
            Some(Standing::Expired) => json!({"status": "expired"}),
            Some(Standing::Completed { auth_id })
                if self.is_long_ago(auth_id, core.now)
                    && core.fails(Fault::AuthCompletedExpires) =>
            {
                json!({"status": "expired"})
            }
            Some(Standing::Completed { auth_id }) => {
                let moved = self.moving.get(custom_user_id);
                let moved = moved.filter(|(_, at)| core.now.duration_since(*at).as_secs() > 1);
                let auth_id = moved.map_or(auth_id, |(auth_id, _)| *auth_id);
                json!({"status": "completed", "auth_id": auth_id})
            }
            None => return Err(Failure::not_found()),
        };
        Ok(json!({"registration": registration, "success": true}))
    }

    /// True if the scanned token would have expired by now.
    fn is_long_ago(&self, auth_id: u64, now: Timestamp) -> bool {
        let own = self.completed.iter().find(|(id, _)| *id == auth_id);
        own.is_some_and(|(_, at)| now >= latest_end(*at))
    }

    /// The state for polling; undocumented for an id that was never shown or scanned.
    fn standing(&self, core: &Core, custom_user_id: &str) -> Option<Standing> {
        let unknown = if core.varies(Variant::AuthUnknownRegistrationPending) {
            Some(Standing::Pending {
                until: latest_end(core.now),
            })
        } else if core.varies(Variant::AuthUnknownRegistrationExpired) {
            Some(Standing::Expired)
        } else {
            None
        };
        let standing = self
            .by_custom_user_id
            .get(custom_user_id)
            .or_else(|| {
                let fits = |(id, _): &(&String, _)| id.eq_ignore_ascii_case(custom_user_id);
                let (_, other) = self.by_custom_user_id.iter().find(fits)?;
                let is_found = match other {
                    Standing::Completed { .. } => core.fails(Fault::AuthCompletedAnyCase),
                    Standing::Pending { .. } | Standing::Expired => {
                        core.varies(Variant::AuthCustomUserIdAnyCase)
                    }
                };
                is_found.then_some(other)
            })
            .or_else(|| {
                let beginning = |id: &str| id.get(..24).map(str::to_owned);
                let begins = beginning(custom_user_id)?;
                let fits = |(id, _): &(&String, _)| beginning(id).as_ref() == Some(&begins);
                let (_, other) = self.by_custom_user_id.iter().find(fits)?;
                core.fails(Fault::AuthCustomUserIdPrefix).then_some(other)
            })
            .copied()
            .or(unknown)?;
        Some(match standing {
            Standing::Pending { until }
                if core.now >= until
                    && (core.now.duration_since(until).as_secs() > 0
                        || !core.varies(Variant::AuthRegistrationExpiresLate))
                    && !core.varies(Variant::AuthUnscannedStaysPending)
                    && !core.fails(Fault::AuthRegistrationNeverExpires) =>
            {
                Standing::Expired
            }
            Standing::Pending { .. } | Standing::Expired | Standing::Completed { .. } => standing,
        })
    }
}

/// Latest possible expiry of a token in a QR code shown at now.
fn latest_end(now: Timestamp) -> Timestamp {
    now + SignedDuration::from_secs(LIFETIME_MAX_SECONDS.into())
}
