//! Tests of `problems`.

use conformant_rulebook::{Problem, parse_file};
use conformant_yaml::Span;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

#[test]
fn a_problem_knows_line_and_column() {
    let text: Arc<str> = Arc::from("a: 1\nü: zwei\n");
    let span = Span {
        start: text.find("zwei").unwrap(),
        length: 4,
    };
    let problem = Problem::new("x.yaml", &text, span, "wrong");
    assert_eq!((problem.line, problem.column), (2, 4));
    let beyond = Problem::new(
        "x.yaml",
        &text,
        Span {
            start: 99,
            length: 9,
        },
        "wrong",
    );
    assert_eq!(beyond.line, 3);
}

/// The advice about a file with this one key.
fn advice<T: DeserializeOwned>(key: &str) -> Option<String> {
    let Err(problems) = parse_file::<T>("x.yaml", format!("{key}: 1").as_bytes()) else {
        panic!("{key} is accepted");
    };
    assert_eq!(problems.len(), 1, "{problems}");
    problems
        .iter()
        .next()
        .and_then(|problem| problem.help.clone())
}

#[test]
fn a_near_word_is_suggested() {
    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Operation {
        #[serde(rename = "operationId")]
        id: u8,
        parameters: u8,
        responses: u8,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    let help = advice::<Operation>("paramters").unwrap();
    assert_eq!(help, "did you mean `parameters`?");
    assert!(advice::<Operation>("xyz").unwrap().starts_with("known are"));
    assert_eq!(advice::<Nothing>("xyz"), None);
}
