//! Registration without personal data.

use super::{qr, registration};
use crate::testing::Client;
use serde_json::json;

#[test]
fn a_registration_expires_with_the_token_that_was_shown() {
    let mut world = Client::new(&[], &[]);
    let shown = qr(&world, "u-1", 60);
    world.hook(
        "announce_registration",
        &json!({"custom_user_id": "u-1", "qr": shown}),
    );
    world.wait(59);
    assert_eq!(
        registration(&mut world, "u-1")["registration"]["status"],
        json!("pending")
    );
    world.wait(1);
    assert_eq!(
        registration(&mut world, "u-1")["registration"]["status"],
        json!("expired")
    );
}
