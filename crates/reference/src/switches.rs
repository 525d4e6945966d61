//! Switches: faults, which are deliberate defects of the reference, one per way to break a statement, and allowed variations,
//! with each of which every rule must pass.
//!
//! - `faults.json` and `variants.json` list them. The build script makes the enums from these files.
//! - A switch that only changes what a request says or an answer shows is data: see `effects`. So is one that mixes two
//!   accounts: see `second_account`.
//! - Any other has a text only. Its behavior is next to the usual one, behind `if core.fails(Fault::…)` or
//!   `if core.varies(Variant::…)`.
//!
//! The kill matrix records which rules must catch a fault.

use super::Switch;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The switches that have this key in their file, each with its value, in their order.
pub(super) fn data<T: DeserializeOwned>(key: &str) -> impl Iterator<Item = (Switch, T)> + '_ {
    let files = [
        include_str!("../faults.json"),
        include_str!("../variants.json"),
    ];
    let groups = files.into_iter().flat_map(|file| {
        serde_json::from_str::<Map<String, Value>>(file).expect("the build script has read it")
    });
    let rows = groups.flat_map(|(group, rows)| {
        serde_json::from_value::<Map<String, Value>>(rows)
            .unwrap_or_else(|error| panic!("`{group}`: {error}"))
    });
    rows.filter_map(move |(id, row)| {
        let value = T::deserialize(row.get(key)?);
        let value = value.unwrap_or_else(|error| panic!("`{id}`: {error}"));
        Some((Switch::from_id(&id)?, value))
    })
}

macro_rules! switches {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $id:literal: $says:literal,)* }) => {
        $(#[$doc])*
        #[expect(clippy::doc_markdown, reason = "the texts are printed as they stand, without markup")]
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

include!(concat!(env!("OUT_DIR"), "/switches.rs"));
