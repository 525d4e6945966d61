//! The events part of the reference.

use super::{Control, Core};
use crate::clock::Timestamp;
use serde_json::Value;

/// State of the events part.
#[derive(Debug)]
pub struct Events {}

impl Events {
    pub(super) fn new(_core: &mut Core, _now: Timestamp) -> Self {
        Self {}
    }

    pub(super) fn control(
        &mut self,
        _core: &mut Core,
        _hook: &str,
        _args: &Value,
        _now: Timestamp,
    ) -> Control {
        None
    }
}
