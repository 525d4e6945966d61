//! Fuzzes every parser of untrusted input with its corpus and random mutations of it, for a few seconds or as long as
//! requested.
//!
//! `FUZZ_SECONDS=600 cargo test --release --test it -- fuzzed::json` continues with one entry; `FUZZ_SEED=N` sets the
//! seed. `fuzz/` runs the same entries by coverage, with a nightly compiler.

mod classes;
mod entries;

use entries::{ENTRIES, Entry};

use crate::program::{files, root, setting};
use conformant_base::clock;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::time::Duration;

/// Maximum size of an input.
const BYTES_MAX: usize = 16 * 1024;
/// Maximum time for an input; builds without optimization are slower.
const SLOWEST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });

/// Tokens with a meaning in some format.
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("fuzzed/words.json")).expect("a list of texts")
});

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = root().join("tests/corpus/fuzz").join(name);
    let files = files(&folder, &[]);
    assert!(!files.is_empty(), "no corpus for {name}");
    let read = |path| std::fs::read(path).expect("a file of the corpus");
    files.into_iter().map(read).collect()
}

/// A corpus entry with a few mutations.
fn changed(chance: &mut ChaCha8Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let any = |chance: &mut ChaCha8Rng| chance.random_range(0..corpus.len());
    let mut bytes = corpus[any(chance)].clone();
    for _ in 0..chance.random_range(1..6_usize) {
        let at = chance.random_range(0..=bytes.len());
        let to = (at + chance.random_range(0..24_usize)).min(bytes.len());
        match chance.random_range(0..8_u8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << chance.random_range(0..8_u8),
            1 => drop(bytes.splice(at..at, [chance.random::<u8>()])),
            2 => drop(bytes.drain(at..to)),
            3 => {
                let piece = bytes[at..to].repeat(chance.random_range(1..40_usize));
                drop(bytes.splice(at..at, piece));
            }
            4 => {
                let other = &corpus[any(chance)];
                let from = chance.random_range(0..=other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            5 => bytes.truncate(at),
            _ => {
                let word = &WORDS[chance.random_range(0..WORDS.len())];
                drop(bytes.splice(at..to.min(at + word.len()), word.bytes()));
            }
        }
    }
    bytes.truncate(BYTES_MAX);
    bytes
}

/// Tries an input; a failure prints it.
fn try_one(name: &str, entry: Entry, bytes: &[u8]) {
    let begun = clock::monotonic();
    let tried = catch_unwind(AssertUnwindSafe(|| entry(bytes)));
    let took = begun.elapsed();
    let shown = bytes.escape_ascii();
    assert!(tried.is_ok(), "{name} fails on b\"{shown}\"");
    assert!(took < SLOWEST, "{name} takes {took:?} for b\"{shown}\"");
}

/// Tries that many inputs, or for the requested time.
#[expect(
    clippy::print_stdout,
    reason = "a requested longer test prints its size"
)]
fn fuzz(name: &str, inputs: u64) {
    let (_, entry) = ENTRIES
        .into_iter()
        .find(|(known, _)| *known == name)
        .expect("an entry of that name");
    let corpus = corpus(name);
    for bytes in &corpus {
        try_one(name, entry, bytes);
    }
    let seconds = setting("FUZZ_SECONDS").map(Duration::from_secs);
    let begun = clock::monotonic();
    let mut chance = ChaCha8Rng::seed_from_u64(setting("FUZZ_SEED").unwrap_or(16));
    let mut tried = 0_u64;
    while seconds.map_or(tried < inputs, |seconds| begun.elapsed() < seconds) {
        try_one(name, entry, &changed(&mut chance, &corpus));
        tried += 1;
    }
    if seconds.is_some() {
        println!("{name}: {tried} inputs in {:?}", begun.elapsed());
    }
}

/// One test for each entry, so that they run in parallel; the number takes about a second.
macro_rules! entries {
    ($($test:ident $name:literal $inputs:literal;)*) => {
        $(#[test]
        fn $test() {
            fuzz($name, $inputs);
        })*

        #[test]
        fn every_entry_is_tried() {
            let tried = [$($name),*];
            assert_eq!(ENTRIES.map(|(name, _)| name), tried);
        }
    };
}

entries! {
    http_answer "http-answer" 400;
    json "json" 2_000;
    ndjson "ndjson" 60;
    har "har" 100;
    xml "xml" 1_000;
    yaml "yaml" 200;
    rulebook "rulebook" 6;
    token "token" 60;
    qr "qr" 60;
    waivers "waivers" 40;
    record "record" 40;
    hook "hook" 200;
    redact "redact" 60;
    template "template" 400;
    multipart "multipart" 2_000;
    diff "diff" 200;
}

#[test]
fn each_entry_has_a_target_for_coverage_fuzzing() {
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("a manifest");
    for (name, _) in ENTRIES {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        let target = root().join(format!("fuzz/fuzz_targets/{name}.rs"));
        let target = std::fs::read_to_string(target).expect("a target");
        assert!(target.contains(&format!("\"{name}\"")), "{name}");
    }
}
