//! Reads the rulebook that is embedded in the binary, so that the binary need not: YAML takes longer to
//! read than most commands take for all else.
//!
//! Judges nothing: a file that cannot be read, or that YAML readers understand differently, is left for the
//! program, which tells of it.

use std::error::Error;
use std::path::Path;
use tree::{Content, Node, Span, Tag};

#[path = "src/rulebook/tree.rs"]
mod tree;
#[expect(dead_code, reason = "what is asked of faults is asked by the program")]
#[path = "src/rulebook/yaml.rs"]
mod yaml;

#[expect(
    clippy::disallowed_methods,
    reason = "by the environment cargo tells where to write"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=specs");
    println!("cargo::rerun-if-changed=src/rulebook/tree.rs");
    println!("cargo::rerun-if-changed=src/rulebook/yaml.rs");
    let mut built = Vec::new();
    for entry in walkdir::WalkDir::new("specs").sort_by_file_name() {
        let entry = entry?;
        let path = entry.path().strip_prefix("specs")?;
        if path.extension().is_none_or(|e| e != "yaml") || !entry.file_type().is_file() {
            continue;
        }
        let text = std::fs::read_to_string(entry.path())?;
        let Ok(node) = yaml::read(&text) else {
            continue;
        };
        let mut ambiguous = Vec::new();
        yaml::ambiguous(&node, &text, &mut ambiguous);
        if ambiguous.is_empty() {
            let mut form = Vec::new();
            write(&node, &mut form);
            let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
            write_text(&names.join("/"), &mut built);
            write_number(form.len(), &mut built);
            built.extend(form);
        }
    }
    let out = std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    Ok(std::fs::write(Path::new(&out).join("rulebook"), built)?)
}

/// Appends a tree, as `src/rulebook/built.rs` reads it.
fn write(node: &Node, into: &mut Vec<u8>) {
    write_span(node.span, into);
    let tag = |tag: Tag, into: &mut Vec<u8>| into.push(tag as u8);
    match &node.content {
        Content::Null => tag(Tag::Null, into),
        Content::Bool(false) => tag(Tag::False, into),
        Content::Bool(true) => tag(Tag::True, into),
        Content::Number(number) => {
            tag(Tag::Number, into);
            write_text(&number.to_string(), into);
        }
        Content::Text(text) => {
            tag(Tag::Text, into);
            write_text(text, into);
        }
        Content::List(items) => {
            tag(Tag::List, into);
            write_number(items.len(), into);
            for item in items {
                write(item, into);
            }
        }
        Content::Map(members) => {
            tag(Tag::Map, into);
            write_number(members.len(), into);
            for member in members {
                write_text(&member.key, into);
                write_span(member.key_span, into);
                write(&member.value, into);
            }
        }
    }
}

fn write_span(span: Span, into: &mut Vec<u8>) {
    write_number(span.start, into);
    write_number(span.length, into);
}

/// Appends a text with its length.
fn write_text(text: &str, into: &mut Vec<u8>) {
    write_number(text.len(), into);
    into.extend_from_slice(text.as_bytes());
}

/// Appends a number.
fn write_number(mut number: usize, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    into.push(number.to_le_bytes()[0]);
}
