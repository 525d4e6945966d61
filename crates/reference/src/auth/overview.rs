//! Overview of the authentication service for the page.

use super::Auth;
use crate::overview::newest;
use conformant_base::clock::{self, Timestamp};
use serde_json::{Value, json};

impl Auth {
    pub(crate) fn overview(&self, now: Timestamp) -> Value {
        json!({
            "users": newest(self.users.all(), |user| json!({
                "auth_id": user.auth_id,
                "email": user.emails.first(),
                "phone": format!("+{} {}", user.phone.country_code, user.phone.digits),
                "has_app": user.has_app,
            })),
            "registrations": self.registrations.overview(now),
            "approvals": self.approvals.overview(now),
        })
    }
}

impl super::Registrations {
    fn overview(&self, now: Timestamp) -> Value {
        newest(
            self.in_order(now),
            |(custom_user_id, state, qr)| json!({"custom_user_id": custom_user_id, "state": state, "qr": qr}),
        )
    }
}

impl super::Approvals {
    fn overview(&self, now: Timestamp) -> Value {
        newest(self.in_order().into_iter(), |seen| {
            json!({
                "uuid": seen.uuid,
                "auth_id": seen.user.auth_id,
                "message": seen.asked.message,
                "details": seen.asked.details,
                "state": seen.state_at(now),
                "at": clock::iso_seconds(seen.created_at),
            })
        })
    }
}
