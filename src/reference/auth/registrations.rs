//! Registration without personal data: pending, expired or completed per custom user id (D1, States
//! and transitions).
//!
//! Judges no token (`token`) and writes no webhook (`webhooks`).

use super::answer::{Done, Failure};
use super::token::LIFETIME_MAX_SECONDS;
use crate::clock::Timestamp;
use crate::reference::{Call, Core, Fault, Variant};
use jiff::SignedDuration;
use serde_json::json;
use std::collections::BTreeMap;

/// Where a registration stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// A QR code was shown then; its token lives for fifteen minutes at most.
    Pending {
        since: Timestamp,
    },
    Expired,
    Completed {
        auth_id: u64,
    },
}

/// All registrations by custom user id.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    by_custom_user_id: BTreeMap<String, Standing>,
}

impl Registrations {
    /// A QR code is shown to the person; what is completed stays so.
    pub(super) fn announce(&mut self, custom_user_id: &str, now: Timestamp) {
        let standing = self
            .by_custom_user_id
            .entry(custom_user_id.to_owned())
            .or_insert(Standing::Expired);
        match standing {
            Standing::Completed { .. } => {}
            Standing::Pending { .. } | Standing::Expired => {
                *standing = Standing::Pending { since: now };
            }
        }
    }

    /// The person scanned a token of this id too late.
    pub(super) fn expire(&mut self, custom_user_id: String) {
        let standing = self
            .by_custom_user_id
            .entry(custom_user_id)
            .or_insert(Standing::Expired);
        if let Standing::Pending { .. } = standing {
            *standing = Standing::Expired;
        }
    }

    /// The person scanned the token in time.
    pub(super) fn complete(&mut self, core: &Core, custom_user_id: &str, auth_id: u64) {
        if core.fails(Fault::AuthScanStaysPending) {
            return;
        }
        self.by_custom_user_id
            .insert(custom_user_id.to_owned(), Standing::Completed { auth_id });
    }

    /// `GET …/registrations/status?custom_user_id=…`
    pub(super) fn status(&self, core: &Core, call: &Call<'_>) -> Result<Done, Failure> {
        let Some(custom_user_id) = call.query.get("custom_user_id") else {
            if core.fails(Fault::AuthCustomUserIdNotRequired) {
                return Ok(Done {
                    is_new: false,
                    body: json!({"registration": {"status": "pending"}, "success": true}),
                });
            }
            return Err(Failure::new(400, "custom_user_id is missing"));
        };
        let registration = match self.standing(core, custom_user_id, call.now) {
            Some(Standing::Pending { .. }) if core.fails(Fault::AuthCompletedWithoutScan) => {
                json!({"status": "completed", "auth_id": 1})
            }
            Some(Standing::Pending { .. }) if core.varies(Variant::AuthNullsForNothing) => {
                json!({"status": "pending", "auth_id": null})
            }
            Some(Standing::Pending { .. }) => json!({"status": "pending"}),
            Some(Standing::Expired) => json!({"status": "expired"}),
            Some(Standing::Completed { auth_id }) => {
                let other = u64::from(core.fails(Fault::AuthRegistrationOtherAuthId));
                json!({"status": "completed", "auth_id": auth_id + other})
            }
            None => return Err(Failure::not_found()),
        };
        Ok(Done {
            is_new: false,
            body: json!({"registration": registration, "success": true}),
        })
    }

    /// What polling sees; nobody says what it is for an id that was never shown nor scanned.
    fn standing(&self, core: &Core, custom_user_id: &str, now: Timestamp) -> Option<Standing> {
        let unknown = if core.varies(Variant::AuthUnknownRegistrationPending) {
            Some(Standing::Pending { since: now })
        } else if core.varies(Variant::AuthUnknownRegistrationExpired) {
            Some(Standing::Expired)
        } else {
            None
        };
        let standing = self
            .by_custom_user_id
            .get(custom_user_id)
            .copied()
            .or(unknown)?;
        let lifetime_max = SignedDuration::from_secs(LIFETIME_MAX_SECONDS.into());
        Some(match standing {
            Standing::Pending { since }
                if now.duration_since(since) >= lifetime_max
                    && !core.fails(Fault::AuthRegistrationNeverExpires) =>
            {
                Standing::Expired
            }
            Standing::Pending { .. } | Standing::Expired | Standing::Completed { .. } => standing,
        })
    }
}
