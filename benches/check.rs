//! How fast NDJSON events are judged: beside the `jsonschema` crate over a tree, beside a parser
//! that drops everything, and on two threads beside one.
//!
//! The sides take turns within one process, so that a busy machine slows them alike; what is worth
//! reading is the ratio. Nothing fails here: figures are goals, not tests.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use conformant::check::{Checker, Kind, Surroundings};
use conformant::clock;
use conformant::rulebook::Rulebook;
use conformant::schema;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::hint::black_box;

const KIND: &str = "events/MessageSent/4";
const EVENT_BYTES: usize = 416;
const EVENTS: usize = 40_000;
const ROUNDS: usize = 9;

fn main() {
    let rulebook = Rulebook::embedded().expect("the embedded rulebook is sound");
    let text = events();
    println!("{EVENTS} events of {EVENT_BYTES} bytes, {ROUNDS} rounds");
    let validator =
        schema::compile(&rulebook.kinds[KIND].schema).expect("the schema of a kind compiles");
    let jsonschema = || {
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).expect("an event is JSON");
            assert!(validator.is_valid(black_box(&value)), "an event is valid");
        }
    };
    let ignored = || {
        for line in text.lines() {
            black_box(serde_json::from_str::<IgnoredAny>(line).expect("an event is JSON"));
        }
    };
    let one = || ours(&rulebook, &text, 1);
    let two = || ours(&rulebook, &text, 2);
    let mut rates = vec![Vec::new(); 4];
    for round in 0..=ROUNDS {
        let sides: [&dyn Fn(); 4] = [&one, &jsonschema, &ignored, &two];
        for (rates, side) in rates.iter_mut().zip(sides) {
            let rate = rate(text.len(), side);
            // The first round warms up.
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let named = [
        "ours, one thread",
        "jsonschema over a tree",
        "IgnoredAny",
        "ours, two threads",
    ];
    for (name, rates) in named.iter().zip(&rates) {
        println!("{name:24} {:8.0} MB/s", median(rates));
    }
    for (name, above, below, goal) in [
        ("ours / jsonschema", 0, 1, 5.0),
        ("ours / IgnoredAny", 0, 2, 0.8),
        ("two threads / one", 3, 0, 1.8),
    ] {
        let ratios: Vec<f64> = rates[above]
            .iter()
            .zip(&rates[below])
            .map(|(a, b)| a / b)
            .collect();
        println!("{name:24} {:8.2} (goal {goal})", median(&ratios));
    }
}

fn ours(rulebook: &Rulebook, text: &str, jobs: usize) {
    let kind = Kind::parse(rulebook, KIND).expect("the kind is there");
    let mut checker = Checker::new(
        rulebook,
        kind,
        Surroundings {
            jobs,
            ..Surroundings::default()
        },
    );
    checker
        .file("events.ndjson", &mut text.as_bytes())
        .expect("memory can be read");
    let (record, counts) = checker.finish();
    assert!(
        record.findings.is_empty() && counts.documents == EVENTS,
        "every event is valid"
    );
}

#[expect(clippy::cast_precision_loss, reason = "a rate to read")]
fn rate(bytes: usize, work: &dyn Fn()) -> f64 {
    let started = clock::monotonic();
    work();
    bytes as f64 / started.elapsed().as_secs_f64() / 1e6
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Events that differ, each of the same length.
fn events() -> String {
    let mut text = String::with_capacity(EVENTS * (EVENT_BYTES + 1));
    for n in 0..EVENTS {
        let event = format!(
            "{{\"operation_id\":\"comms_operation_{n:026}\",\"message_id\":\"comms_message_{n:026}\",\"attempt\":\"{}\",\
             \"downstream_id\":\"SM{n:032x}\",\"from\":{{\"id\":\"comms_sender_{n:020}\",\"address\":\"+1500555{:04}\",\"channel\":\"sms\"}},\
             \"to\":{{\"id\":\"comms_recipient_{n:020}\",\"address\":\"+1500556{:04}\",\"channel\":\"sms\"}},\"tags\":{{\"campaign\":\"",
            n % 9 + 1,
            n % 10_000,
            n % 10_000,
        );
        text.push_str(&event);
        text.extend(std::iter::repeat_n(
            'x',
            EVENT_BYTES - event.len() - "\"}}".len(),
        ));
        text.push_str("\"}}\n");
    }
    text
}
