//! The rulebook of `specs/` for unit tests: read once for all of them, as reading it is most of what
//! a small test does.

use super::Rulebook;
use std::path::Path;
use std::sync::LazyLock;

/// The rulebook as the folder has it.
pub(crate) fn of_specs() -> &'static Rulebook {
    static RULEBOOK: LazyLock<Rulebook> = LazyLock::new(|| {
        Rulebook::from_dir(Path::new("specs")).unwrap_or_else(|problems| panic!("{problems}"))
    });
    &RULEBOOK
}
