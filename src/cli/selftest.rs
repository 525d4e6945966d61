//! stub
use super::args::SelftestArgs; use super::Done;
pub(super) fn selftest(_a: &SelftestArgs) -> Done { unimplemented!() }
