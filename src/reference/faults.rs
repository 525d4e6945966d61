//! Faults: deliberate defects of the reference, one per way to break a statement.
//!
//! A fault is a switch and nothing more: the broken behaviour stands where the right one does, as
//! `if core.fails(Fault::…)`. What each one must be caught by is recorded in the kill matrix.

macro_rules! switches {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $id:literal: $says:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = $says] $variant,)*
        }

        impl $name {
            /// Every one, in the order they are declared.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the command line and in reports.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            /// What it does, in one sentence.
            pub const fn says(self) -> &'static str {
                match self { $(Self::$variant => $says,)* }
            }

            /// The one with that name.
            pub fn from_id(id: &str) -> Option<Self> {
                match id { $($id => Some(Self::$variant),)* _ => None }
            }
        }
    };
}
pub(super) use switches;

switches! {
    /// A deliberate defect; its id begins with the service it is in.
    Fault {
        // flow
        FlowExecutionStartsEnded = "flow/execution-starts-ended": "A created execution never becomes active: it is ended from the start.",
        // chat
        // media
        // auth
        // events
    }
}
