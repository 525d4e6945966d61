job='generate'
unit='MB/s'
what='one thread, events of one type; the other tool fills a struct with the same fields, serialized by serde_json'

install() {
  local folder=$work/fake
  mkdir -p "$folder/src"
  cat >"$folder/Cargo.toml" <<'TOML'
[package]
name = "fake-events"
version = "0.0.0"
edition = "2024"
[dependencies]
fake = { version = "4", features = ["derive"] }
rand = "0.9"
serde = { version = "1", features = ["derive"] }
serde_json = "1"
TOML
  cat >"$folder/src/main.rs" <<'RS'
use fake::{Fake, Faker, Dummy};
use fake::faker::internet::en::IPv4;
use serde::Serialize;
use std::io::Write;

#[derive(Serialize, Dummy)]
struct Event {
    #[dummy(faker = "32")] account_sid: String,
    #[dummy(faker = "34")] message_sid: String,
    #[dummy(faker = "34")] service_sid: String,
    #[dummy(faker = "12")] from: String,
    #[dummy(faker = "12")] to: String,
    #[dummy(faker = "80..120")] body: String,
    #[dummy(faker = "IPv4()")] source: String,
    num_media: u8,
    num_segments: u8,
    #[dummy(faker = "24")] timestamp: String,
    #[dummy(faker = "34")] user_sid: String,
}

fn main() {
    let count = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let mut out = std::io::BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    for _ in 0..count {
        let event: Event = Faker.fake();
        serde_json::to_writer(&mut out, &event).unwrap();
        out.write_all(b"\n").unwrap();
    }
}
RS
  (cd "$folder" && CARGO_TARGET_DIR=$tools/fake cargo build --release --quiet) >"$work/cargo.log" 2>&1 || return 1
  peer="fake $(sed -n '/^name = "fake"$/{n;s/version = "\(.*\)"/\1/p}' "$folder/Cargo.lock")"
  count=1000000
  megabytes=$("$tools/fake/release/fake-events" "$count" | awk '{ n += length($0) + 1 } END { print n / 1e6 }')
}
ours() { per_second "$(($(wc -c <"$(events 1000000)") / 1000000))" "$conformant" fixtures generate --kind events/MessageSent/4 --count 1000000 --jobs 1; }
theirs() { per_second "$megabytes" "$tools/fake/release/fake-events" "$count"; }
