//! Console output: progress during a run and a summary of defects at its end.
//!
//! Does not inspect its environment: the caller sets writer, width, color and progress.

mod defect;
mod follow;
mod in_a_line;
mod leftover;
mod look;
mod summary;

pub use follow::ALIVE_SECONDS;
pub use follow::Console;
pub use look::{Look, Progress, Verbosity, wrapped};
