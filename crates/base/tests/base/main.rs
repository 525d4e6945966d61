//! The values shared by all crates, through their public interface.

mod clock;
mod diff;
mod files;
mod http;
mod ids;
mod instant;
mod json;
mod parallel;
mod picture;
mod redact;
mod size;
mod sorted;
mod text;
