//! Live targets: requests over the network, hooks as the adopter supplies them, real time.
//!
//! Others may use the same target meanwhile. What it has only one of is asked for by the hook `lease`; where its clock
//! was moved by somebody else, [`Session::disturbed`](crate::session::Session::disturbed) says so. `target` is what
//! a run shares and `story` what each of its stories has; what they share is kept by `slots`, `persons`, `lease`, `limited`
//! and `admission`, what is known of the target's time by `clock`
//! and `ahead`, which stories let pass `together`.

mod admission;
mod ahead;
mod clock;
mod lease;
mod limited;
mod persons;
mod race;
mod slots;
mod story;
mod target;
#[cfg(test)]
mod tests;
mod together;

pub use target::{Live, LiveError, Manner};
