//! Rebuilds when the rulebook changes: it is embedded in the binary.

fn main() {
    println!("cargo::rerun-if-changed=specs");
}
