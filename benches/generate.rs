//! Speed of generating events, relative to serializers of prebuilt documents, to hand-written code for this schema, to
//! one thread instead of two, and to ten times as many events.
//!
//! The variants alternate in short slices of one process, so that a busy machine slows all of them; read the ratios.
//! Nothing fails here: figures are goals, not tests.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use conformant_base::clock;
use conformant_fixtures::stream::{self, Layout};
use conformant_fixtures::{Plan, subjects};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{self, Write};

const KIND: &str = "events/MessageSent/4";
const SEED: u64 = 1;
const EVENTS: u64 = 20_000;
const ROUNDS: usize = 21;
/// Buffer size of the serializers and the hand-written code.
const BUFFER_BYTES: usize = 1 << 20;

fn main() {
    let rulebook = conformant_judge::load::embedded().expect("the embedded rulebook is sound");
    let all = subjects(&rulebook);
    let plan_of = |kind: &str| {
        let subject = all.iter().find(|s| s.name == kind);
        Plan::new(subject.expect("the kind is there")).expect("it has a plan")
    };
    let plan = plan_of(KIND);
    let mut text = Vec::new();
    generated(&plan, EVENTS, 1, &mut text);
    let prebuilt = Prebuilt::new(&text);
    println!("{EVENTS} of {KIND}, {} bytes, {ROUNDS} rounds", text.len());
    let sides: [(&str, &dyn Fn() -> u64); 5] = [
        ("ours, one thread", &|| ours(&plan, EVENTS, 1)),
        ("straight byte writer", &straight),
        ("typed structs, prebuilt", &|| prebuilt.typed()),
        ("serde_json trees, prebuilt", &|| prebuilt.trees()),
        ("ours, two threads", &|| ours(&plan, EVENTS, 2)),
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
        ("ours / straight byte writer", 0, 1, 0.6),
        ("ours / typed structs", 0, 2, 3.0),
        ("ours / trees", 0, 3, 5.0),
        ("two threads / one", 4, 0, 1.85),
    ] {
        let pairs = rates[above].iter().zip(&rates[below]);
        let ratios: Vec<f64> = pairs.map(|(a, b)| a / b).collect();
        println!("{name:28} {:8.2} (goal {goal})", median(&ratios));
    }
    for kind in [KIND, "chat/message", "flow/execution[]"] {
        slope(kind, &plan_of(kind));
    }
}

/// Rates at 1, 10 and 100 times the size, equal if the cost is linear.
fn slope(kind: &str, plan: &Plan) {
    let mut line = format!("{kind:28}");
    for times in [1, 10, 100] {
        let rates: Vec<f64> = (0..3)
            .map(|_| rate(&|| ours(plan, times * 10_000, 1)))
            .collect();
        line.push_str(&format!(" {:6.0} MB/s at {times:3} x", median(&rates)));
    }
    println!("{line}");
}

/// A writer that counts and drops bytes.
#[derive(Default)]
struct Sink(u64);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += black_box(bytes).len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn ours(plan: &Plan, count: u64, threads: usize) -> u64 {
    let mut sink = Sink::default();
    generated(plan, count, threads, &mut sink);
    sink.0
}

fn generated(plan: &Plan, count: u64, threads: usize, out: &mut dyn Write) {
    let on_document = &mut |_| Ok(());
    stream::write(plan, SEED, count, threads, Layout::Ndjson, out, on_document)
        .expect("memory takes all that is written");
}

/// The same documents, prebuilt.
struct Prebuilt {
    typed: Vec<MessageSent>,
    trees: Vec<Value>,
}

#[derive(Serialize, Deserialize)]
struct MessageSent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    downstream_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Party>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<Party>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tags: Option<BTreeMap<String, Option<String>>>,
}

#[derive(Serialize, Deserialize)]
struct Party {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
}

impl Prebuilt {
    fn new(text: &[u8]) -> Self {
        let lines = || text.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        let typed = |line| serde_json::from_slice(line).expect("an event has these fields");
        let tree = |line| serde_json::from_slice(line).expect("an event is JSON");
        Self {
            typed: lines().map(typed).collect(),
            trees: lines().map(tree).collect(),
        }
    }

    fn typed(&self) -> u64 {
        serialized(&self.typed)
    }

    fn trees(&self) -> u64 {
        serialized(&self.trees)
    }
}

fn serialized<T: Serialize>(documents: &[T]) -> u64 {
    let mut sink = Sink::default();
    let mut out = Vec::with_capacity(2 * BUFFER_BYTES);
    for document in documents {
        serde_json::to_writer(&mut out, document).expect("memory takes all that is written");
        out.push(b'\n');
        hand_on(&mut out, &mut sink);
    }
    sink.0 + out.len() as u64
}

fn hand_on(out: &mut Vec<u8>, sink: &mut Sink) {
    if out.len() > BUFFER_BYTES {
        sink.write_all(out).expect("a sink takes everything");
        out.clear();
    }
}

/// Hand-written code for this schema: constant bytes, and ids from a small generator. No optional fields, no limits.
fn straight() -> u64 {
    let mut sink = Sink::default();
    let mut out = Vec::with_capacity(2 * BUFFER_BYTES);
    let mut random = SplitMix(SEED);
    for number in 0..EVENTS {
        let channel: &[u8] = [&b"sms"[..], b"whatsapp", b"rcs"][(number % 3) as usize];
        out.extend_from_slice(b"{\"operation_id\":\"");
        random.id(&mut out);
        out.extend_from_slice(b"\",\"message_id\":\"");
        random.id(&mut out);
        out.extend_from_slice(b"\",\"attempt\":\"");
        out.push(b'1' + (number % 9) as u8);
        out.extend_from_slice(b"\",\"downstream_id\":\"");
        random.id(&mut out);
        for end in [&b"\",\"from\":{\"id\":\""[..], b",\"to\":{\"id\":\""] {
            out.extend_from_slice(end);
            random.id(&mut out);
            out.extend_from_slice(b"\",\"address\":\"+1");
            random.digits(&mut out);
            out.extend_from_slice(b"\",\"channel\":\"");
            out.extend_from_slice(channel);
            out.extend_from_slice(b"\"}");
        }
        out.extend_from_slice(b",\"tags\":{\"campaign\":\"spring-sale\",\"order_id\":\"42\"}}\n");
        hand_on(&mut out, &mut sink);
    }
    sink.0 + out.len() as u64
}

struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// 26 characters of base 32.
    fn id(&mut self, out: &mut Vec<u8>) {
        const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let mut text = [0; 26];
        for chunk in text.chunks_mut(12) {
            let mut word = self.next();
            for byte in chunk {
                *byte = DIGITS[(word & 31) as usize];
                word >>= 5;
            }
        }
        out.extend_from_slice(&text);
    }

    /// Ten decimal digits.
    fn digits(&mut self, out: &mut Vec<u8>) {
        let mut word = self.next();
        let mut text = [0; 10];
        for byte in &mut text {
            *byte = b'0' + (word % 10) as u8;
            word /= 10;
        }
        out.extend_from_slice(&text);
    }
}

/// Megabytes a second.
#[expect(clippy::cast_precision_loss, reason = "a rate to read")]
fn rate(work: &dyn Fn() -> u64) -> f64 {
    let started = clock::monotonic();
    let bytes = work();
    bytes as f64 / started.elapsed().as_secs_f64() / 1e6
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
