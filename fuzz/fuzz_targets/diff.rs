//! See `diff` in `tests/it/fuzzed/entries.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| conformant_fuzz::run("diff", data));
