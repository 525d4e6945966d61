//! Entry points for coverage-guided fuzzers; `tests/it/fuzzed.rs` runs them without coverage.

#[path = "../../tests/it/fuzzed/entries.rs"]
mod entries;

/// Tries one input; panics on a violation.
pub fn run(name: &str, data: &[u8]) {
    let (_, entry) = entries::ENTRIES
        .into_iter()
        .find(|(known, _)| *known == name)
        .expect("an entry of that name");
    entry(data);
}
