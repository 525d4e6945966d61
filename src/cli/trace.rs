//! stub
use super::args::TraceArgs; use super::Done;
pub(super) fn trace(_a: &TraceArgs) -> Done { unimplemented!() }
