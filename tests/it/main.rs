//! Integration tests: rules of the source tree, and the program as a user runs it.
//!
//! Unit tests are next to the code, scenarios are trials of `tests/conformance`.

mod api;
mod bad_hooks;
mod book;
mod bumps;
mod cli;
mod clients;
mod configuration;
mod detection;
mod docs;
mod dying;
mod evidence;
mod explore;
mod failpoints;
mod files;
mod fixtures;
mod folders;
mod fuzzed;
mod guards;
mod hostile;
mod live;
mod offline;
mod program;
mod prove;
mod proxy;
mod reach;
mod readme;
mod repeat;
mod reports;
mod reproduce;
mod results;
mod same_verdicts;
mod scripts;
mod selftest;
mod services;
mod serving;
mod sessions;
mod setup;
mod simulation;
mod unattended;
mod version_bump;
mod words;
