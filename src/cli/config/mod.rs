//! Configuration: `conformant.yaml`, then `CONFORMANT_*`, then flags; the last one wins.
//!
//! Secrets come from the environment alone: the file names them as `${NAME}`. `file` is what is written there and `place`
//! where; `reader` goes through it, `targets`, `hooks`, `people`, `limits` and `reach` say what each part means, and
//! `error` what may be wrong with it. `run` makes of it what a run needs, `known` what judging files does.

mod accounts;
mod addresses;
mod environment;
mod error;
mod file;
mod hooks;
mod known;
mod limits;
mod people;
mod place;
mod reach;
mod reader;
mod run;
mod targets;
mod values;

pub(super) use addresses::by_service;
pub(super) use environment::{CONTROL_TOKEN, environment};
pub(super) use error::{path_for, scheme_for};
pub(super) use file::schema;
pub(super) use known::known;
pub(super) use place::{found, places};
pub(super) use reader::documents;
pub(super) use run::{
    Config, Reading, check_hooks, check_target, is_ci, read, targets_of_environment,
};
pub(super) use values::check_values;
