//! `conformant`: an offline conformance test harness and fixture generator for message events and
//! second-factor authentication (D1), chat with media (D2) and flow (D3).

pub mod clock;
pub mod http;
pub mod ids;
pub mod json;
pub mod judge;
pub mod redact;
pub mod rulebook;
pub mod schema;
pub mod source;
pub mod text;
pub mod verdict;
pub mod xml;

pub mod reference;
pub mod report;
pub mod server;
pub mod trace;
pub mod transport;
