//! What the client does when the service is busy. `IMPATIENT=1 cargo test` shows what a worse client would see.

mod serve;

use chat_client::Chat;
use serve::world;

#[test]
fn a_busy_service_is_asked_again() {
    let world = world("busy");
    world.script("chat/create-service", "429:1", "1");
    let service = Chat::new(&world.base).create_service("Support").unwrap();
    assert_eq!(service["friendly_name"], "Support");
    let listed = Chat::new(&world.base).services().unwrap();
    assert_eq!(listed[0]["sid"], service["sid"]);
}

#[test]
fn a_service_that_is_away_is_waited_for() {
    let world = world("away");
    world.script("chat/read-services", "503:1", "1-2");
    let listed = Chat::new(&world.base).services().unwrap();
    assert_eq!(listed, serde_json::json!([]));
}
