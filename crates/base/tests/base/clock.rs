//! Tests of `clock`.

use conformant_base::clock::{VirtualClock, iso_seconds};
use std::time::Duration;

#[test]
fn a_virtual_clock_moves_only_when_advanced() {
    let clock = VirtualClock::default();
    assert_eq!(iso_seconds(clock.now()), "2026-01-01T00:00:00Z");
    clock.advance(Duration::from_secs(86_400));
    assert_eq!(iso_seconds(clock.now()), "2026-01-02T00:00:00Z");
}
