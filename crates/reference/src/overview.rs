//! Overview of all resources for the page, newest first.
//!
//! Shows the state itself, without faults and variants.

use super::Reference;
use conformant_base::clock::{self, Timestamp};
use serde_json::{Value, json};

/// Newest items listed per kind and parent; all are counted.
const NAMED_MAX: usize = 50;

impl Reference {
    /// Resources of all services with their states at `now`.
    pub fn overview(&self, now: Timestamp) -> Value {
        json!({
            "now": clock::iso_seconds(now),
            "auth": self.auth.overview(now),
            "chat": self.chat.overview(),
            "flow": self.flow.overview(),
        })
    }
}

/// The count and the newest items; `things` is oldest first.
pub(super) fn newest<T>(
    things: impl DoubleEndedIterator<Item = T>,
    mut shown: impl FnMut(T) -> Value,
) -> Value {
    let mut count = 0_usize;
    let mut named = Vec::new();
    for thing in things.rev() {
        count += 1;
        if named.len() < NAMED_MAX {
            named.push(shown(thing));
        }
    }
    json!({ "count": count, "newest": named })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use conformant_base::http::Request;

    #[test]
    fn resources_are_counted_and_the_newest_are_listed() {
        let seen = newest(0..60, |n| json!(n));
        assert_eq!(seen["count"], 60);
        assert_eq!(seen["newest"][0], 59);
        assert_eq!(seen["newest"].as_array().unwrap().len(), NAMED_MAX);
    }

    #[test]
    fn what_was_made_is_there_with_its_state() {
        let at = Timestamp::UNIX_EPOCH;
        let mut reference = Reference::new(Settings::default(), at);
        let mut hook = |name: &str, arguments: Value| {
            let mut request = Request::new("POST", format!("/_control/{name}"));
            request.body = arguments.to_string().into_bytes();
            reference.handle(&request, at)
        };
        hook("create_flow", json!({"friendly_name": "Orders"}));
        hook(
            "announce_registration",
            json!({"custom_user_id": "u1", "qr": "x://y"}),
        );
        let seen = reference.overview(at);
        assert_eq!(seen["flow"]["newest"][0]["name"], "Orders");
        assert_eq!(
            seen["auth"]["registrations"]["newest"][0]["state"],
            "pending"
        );
        assert_eq!(seen["auth"]["registrations"]["newest"][0]["qr"], "x://y");
        let later = Timestamp::from_second(3600).unwrap();
        let seen = reference.overview(later);
        assert_eq!(
            seen["auth"]["registrations"]["newest"][0]["state"],
            "expired"
        );
    }
}
