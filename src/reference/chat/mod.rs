//! The chat part of the reference.

use super::{Answer, Call, Control, Core, Refusal};
use crate::clock::Timestamp;
use serde_json::Value;

/// State of the chat part.
#[derive(Debug)]
pub struct Chat {}

impl Chat {
    pub(super) fn new(_core: &mut Core, _now: Timestamp) -> Self {
        Self {}
    }

    pub(super) fn handle(&mut self, _core: &mut Core, _call: &Call<'_>) -> Answer {
        Err(Refusal::not_found())
    }

    pub(super) fn handle_media(&mut self, _core: &mut Core, _call: &Call<'_>) -> Answer {
        Err(Refusal::not_found())
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
