//! The judge: evidence and rulebook in, findings out. Pure; sends nothing.

pub mod payload;
