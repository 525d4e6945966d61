//! `conformant`: an offline conformance test harness and fixture generator for message events and
//! second-factor authentication (D1), chat with media (D2) and flow (D3).

pub mod clock;
pub mod failpoint;
pub mod files;
pub mod http;
pub mod ids;
pub mod json;
pub mod redact;
pub mod source;
pub mod text;
pub mod xml;

pub mod rulebook;
pub mod schema;
pub mod verdict;

pub mod fixtures;
pub mod judge;
pub mod prove;
pub mod reference;

pub mod server;
pub mod trace;
pub mod transport;

pub mod check;
pub mod clients;
pub mod compare;
pub mod engine;
pub mod explore;
pub mod report;
pub mod selftest;
pub mod waivers;

pub mod cli;
