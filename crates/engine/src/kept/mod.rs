//! A run's evidence as a file: written story by story while the run goes on, and judged again by any
//! later rulebook.
//!
//! Lines of JSON (`form`), packed by gzip, each a member of its own, so that a file that was cut holds whole stories: first
//! what the run was ([`Head`]), then a line for each story ([`Played`]), last how it ended ([`Tail`]). `keeper` writes them,
//! and takes secrets out of every text before it is packed (`secrets`); `reader` reads them, and `judged` judges them again.
//! Bodies stand as they came, and are read again by the rulebook of the day.

mod form;
mod judged;
mod keeper;
mod reader;
mod secrets;

pub use form::{Head, Played, Tail};
pub use judged::{JudgedAgain, judge_again};
pub use keeper::Keeper;
pub use reader::{Cut, KeptError, Reader, is_packed};
