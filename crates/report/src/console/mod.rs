//! The console: progress while a run goes on, and at its end what is broken, by defect.
//!
//! Asks nothing of its surroundings: writer, width, colour and progress are handed in.

mod defect;
mod follow;
mod leftover;
mod look;
mod summary;

pub use follow::ALIVE_SECONDS;
pub use follow::Console;
pub use look::{Look, Verbosity};
pub use summary::render;
