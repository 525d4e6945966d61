//! Cases of public test suites of JSON and YAML, by class, written for this project: what must be accepted, what must be
//! rejected, and what must do no harm.
//!
//! The files are in `tests/corpus/json` and `tests/corpus/yaml`; the first letter of a name is the class: `y` accepted,
//! `n` rejected, `i` implementation-defined.

use crate::program::{files, root};
use conformant_base::json::{self, Limits};
use conformant_rulebook::parse_file;
use serde_json::Value;

fn each(folder: &str, takes: impl Fn(&[u8]) -> bool) -> usize {
    let all = files(&root().join("tests/corpus").join(folder), &[]);
    let mut wrong = Vec::new();
    for path in &all {
        let bytes = std::fs::read(path).expect("a file of the corpus");
        let name = path.file_name().expect("a file").to_string_lossy();
        let is_due = match name.as_bytes()[0] {
            b'y' => Some(true),
            b'n' => Some(false),
            _ => None,
        };
        let taken = takes(&bytes);
        if is_due.is_some_and(|due| due != taken) {
            wrong.push(format!("{name} is accepted: {taken}"));
        }
    }
    assert!(wrong.is_empty(), "{folder}: {wrong:#?}");
    all.len()
}

#[test]
fn json_of_every_class_is_accepted_or_rejected_as_expected() {
    let tried = each("json", |bytes| {
        json::parse(bytes, Limits::default()).is_ok()
    });
    assert!(tried > 100, "{tried}");
}

#[test]
fn yaml_of_every_class_is_accepted_or_rejected_as_expected() {
    let tried = each("yaml", |bytes| parse_file::<Value>("x.yaml", bytes).is_ok());
    assert!(tried > 50, "{tried}");
}
