//! Speed of judging NDJSON events, relative to
//!
//! - the `jsonschema` crate on a tree, and a parser that drops everything,
//! - a file, and envelopes of one type and of all types,
//! - one thread instead of two, and ten times as many events.
//!
//! The variants alternate in short slices of one process, so that a busy machine slows all of them; read the ratios.
//! Nothing fails here: figures are goals, not tests.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use conformant_base::clock;
use conformant_check::{Checker, Kind, Mapping, Surroundings};
use conformant_fixtures::{Plan, subjects};
use conformant_rulebook::Rulebook;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Write as _};

const KIND: &str = "events/MessageSent/4";
const EVENT_BYTES: usize = 416;
const EVENTS: usize = 20_000;
const ROUNDS: usize = 15;

fn main() {
    let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
    let text = events();
    let one_type = Input::new(Kind::Representation(KIND.to_owned()), &text);
    let file = file_of(&text);
    let (alike, mixed) = (enveloped(&rulebook, &[KIND]), enveloped(&rulebook, &[]));
    let alike = Input::new(Kind::Events(Mapping::default()), &alike);
    let mixed = Input::new(Kind::Events(Mapping::default()), &mixed);
    println!("{EVENTS} events of {EVENT_BYTES} bytes, {ROUNDS} rounds");
    let validator = conformant_schema::compile(&rulebook.kinds[KIND].schema)
        .expect("the schema of a kind compiles");
    let jsonschema = || {
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).expect("an event is JSON");
            assert!(validator.is_valid(black_box(&value)), "an event is valid");
        }
        text.len()
    };
    let ignored = || {
        for line in text.lines() {
            black_box(serde_json::from_str::<IgnoredAny>(line).expect("an event is JSON"));
        }
        text.len()
    };
    let sides: [(&str, &dyn Fn() -> usize); 9] = [
        ("ours, one thread", &|| one_type.judged(&rulebook, 1, 1)),
        ("jsonschema over a tree", &jsonschema),
        ("IgnoredAny", &ignored),
        ("ours, two threads", &|| one_type.judged(&rulebook, 1, 2)),
        ("a file, one thread", &|| {
            one_type.of_file(&rulebook, &file, 1)
        }),
        ("a file, two threads", &|| {
            one_type.of_file(&rulebook, &file, 2)
        }),
        ("in envelopes, one type", &|| alike.judged(&rulebook, 1, 1)),
        ("in envelopes, all types", &|| mixed.judged(&rulebook, 1, 1)),
        ("all types, two threads", &|| mixed.judged(&rulebook, 1, 2)),
    ];
    let mut rates = vec![Vec::new(); sides.len()];
    for round in 0..=ROUNDS {
        for (rates, (_, side)) in rates.iter_mut().zip(sides) {
            let rate = rate(side);
            // The first round warms up.
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    for ((name, _), rates) in sides.iter().zip(&rates) {
        println!("{name:28} {:8.0} MB/s", median(rates));
    }
    for (name, above, below, goal) in [
        ("ours / jsonschema", 0, 1, 8.0),
        ("ours / IgnoredAny", 0, 2, 1.0),
        ("two threads / one", 3, 0, 1.8),
        ("a file: two threads / one", 5, 4, 1.8),
        ("all types / one type", 7, 6, 1.0),
        ("all types: two threads / one", 8, 7, 1.8),
    ] {
        let pairs = rates[above].iter().zip(&rates[below]);
        let ratios: Vec<f64> = pairs.map(|(a, b)| a / b).collect();
        println!("{name:28} {:8.2} (goal {goal})", median(&ratios));
    }
    slope("one type", &one_type, &rulebook);
    slope("in envelopes, all types", &mixed, &rulebook);
}

/// Rates at 1, 10 and 100 times the size, equal if the cost is linear.
fn slope(name: &str, input: &Input<'_>, rulebook: &Rulebook) {
    let mut line = format!("{name:28}");
    for times in [1, 10, 100] {
        let rates: Vec<f64> = (0..5)
            .map(|_| rate(&|| input.judged(rulebook, times, 1)))
            .collect();
        line.push_str(&format!(" {:6.0} MB/s at {times:3} x", median(&rates)));
    }
    println!("{line}");
}

/// Valid lines and their type.
struct Input<'a> {
    kind: Kind,
    text: &'a str,
    lines: usize,
}

impl<'a> Input<'a> {
    fn new(kind: Kind, text: &'a str) -> Self {
        let lines = text.lines().count();
        Self { kind, text, lines }
    }

    /// Judges the lines that many times, from memory; returns the number of bytes.
    fn judged(&self, rulebook: &Rulebook, times: usize, jobs: usize) -> usize {
        let mut source = Repeated {
            text: self.text.as_bytes(),
            rest: &[],
            times,
        };
        let mut checker = self.checker(rulebook, jobs);
        checker
            .file("events.ndjson", &mut source)
            .expect("memory can be read");
        self.concluded(checker, times)
    }

    fn of_file(&self, rulebook: &Rulebook, file: &File, jobs: usize) -> usize {
        let mut checker = self.checker(rulebook, jobs);
        checker
            .opened("events.ndjson", file)
            .expect("the file can be read");
        self.concluded(checker, 1)
    }

    fn checker<'r>(&self, rulebook: &'r Rulebook, jobs: usize) -> Checker<'r> {
        let surroundings = Surroundings {
            jobs,
            ..Surroundings::default()
        };
        Checker::new(rulebook, self.kind.clone(), surroundings)
    }

    fn concluded(&self, checker: Checker<'_>, times: usize) -> usize {
        let (record, counts) = checker.finish();
        assert!(
            record.findings.is_empty() && counts.documents == times * self.lines,
            "every event is valid"
        );
        times * self.text.len()
    }
}

/// A repeated text, without holding all of it.
struct Repeated<'a> {
    text: &'a [u8],
    rest: &'a [u8],
    times: usize,
}

impl Read for Repeated<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() && self.times > 0 {
            (self.rest, self.times) = (self.text, self.times - 1);
        }
        self.rest.read(buffer)
    }
}

/// A file that is deleted when closed.
fn file_of(text: &str) -> File {
    let mut file = tempfile::tempfile().expect("the file is writable");
    file.write_all(text.as_bytes())
        .expect("the file is writable");
    file
}

/// Generated events in envelopes, of these types in turn or of all documented ones.
fn enveloped(rulebook: &Rulebook, kinds: &[&str]) -> String {
    let all = subjects(rulebook);
    let shown = rulebook.event_types.iter().filter_map(|(name, kind)| {
        let kind = kind.as_deref()?;
        let subject = all.iter().find(|s| s.name == kind)?;
        let is_wanted = kinds.is_empty() || kinds.contains(&kind);
        is_wanted.then(|| (name, kind, Plan::new(subject).expect("it has a plan")))
    });
    let shown: Vec<_> = shown.collect();
    let mut sources: Vec<_> = shown.iter().map(|(.., plan)| plan.documents(1)).collect();
    let mut text = Vec::new();
    for n in 0..EVENTS {
        let (name, kind, _) = &shown[n % shown.len()];
        let address = kind.replace("events/", "https://events.example/CommsApi.");
        let start = format!(
            "{{\"specversion\":\"1.0\",\"type\":\"{name}\",\"source\":\"/x\",\"id\":\"{n:012}\",\"dataschema\":\"{address}\",\"data\":"
        );
        text.extend_from_slice(start.as_bytes());
        sources[n % shown.len()].write(n as u64, &mut text);
        text.extend_from_slice(b"}\n");
    }
    String::from_utf8(text).expect("documents are text")
}

#[expect(clippy::cast_precision_loss, reason = "a rate to read")]
fn rate(work: &dyn Fn() -> usize) -> f64 {
    let started = clock::monotonic();
    let bytes = work();
    bytes as f64 / started.elapsed().as_secs_f64() / 1e6
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Distinct events of the same length.
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
