//! What fuzzers that go by coverage call; `tests/it/fuzzed.rs` drives the same entries without them.

#[path = "../../tests/it/fuzzed/entries.rs"]
mod entries;

/// Tries one input; it panics where something does not hold.
pub fn run(name: &str, data: &[u8]) {
    let (_, entry) = entries::ENTRIES
        .into_iter()
        .find(|(known, _)| *known == name)
        .expect("an entry of that name");
    entry(data);
}
