//! Naughty strings through every string argument and every place of a request: told or taken, never
//! harmful, and read back as they were.

use crate::hostile::command::{conformant, folder, run};
use crate::program::root;
use conformant::http::Request;
use conformant::transport::{Multipart, encode};

fn strings() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("tests/corpus/naughty.json")).expect("a list");
    serde_json::from_str(&text).expect("a list of strings")
}

#[test]
fn every_argument_takes_or_refuses_them() {
    let folder = folder();
    let strings: Vec<String> = strings()
        .into_iter()
        // The system takes none of these as arguments.
        .filter(|text| !text.contains('\0'))
        .collect();
    let uses: [&[&str]; 8] = [
        &["explain", "{}"],
        &["run", "--dry-run", "--filter", "{}"],
        &["run", "--dry-run", "--service", "{}"],
        &["run", "--dry-run", "--target", "flow={}"],
        &["run", "--dry-run", "--report", "json={}"],
        &["check", "{}", "--as", "flow/flow"],
        &["check", "conformant.yaml", "--as", "{}"],
        &[
            "proxy",
            "--for",
            "{}",
            "--upstream",
            "flow=http://127.0.0.1:9",
        ],
    ];
    // Each string meets one use, and each use many strings.
    for (number, text) in strings.iter().enumerate() {
        let given = uses[number % uses.len()]
            .iter()
            .map(|word| word.replace("{}", text));
        let given: Vec<String> = given.collect();
        let ended = run(conformant(folder.path()).args(&given));
        let exit = ended.exit.expect("it ends by itself");
        assert!((0..=4).contains(&exit), "{given:?}: {ended:?}");
        for output in [&ended.stdout, &ended.stderr] {
            assert!(
                !output.contains(conformant::text::is_deceptive),
                "{given:?}: {output:?}"
            );
            let mut lines = output.lines();
            let is_command =
                |line: &str| line.trim_start().starts_with("::error") || line.contains("##vso[");
            assert!(!lines.any(is_command), "{given:?}: {output:?}");
        }
    }
}

#[test]
fn every_place_of_a_request_gives_them_back() {
    for text in strings() {
        let query = encode::query([("name", text.as_str()), ("last", "1")]);
        let request = Request::new("GET", format!("/x?{query}"));
        assert_eq!(request.query_pairs()[0], ("name".to_owned(), text.clone()));
        let form = encode::form([("name", text.as_str())]);
        let back: Vec<(String, String)> = form_urlencoded::parse(form.as_bytes())
            .into_owned()
            .collect();
        assert_eq!(back, [("name".to_owned(), text.clone())]);
        if let Ok(segment) = encode::path_segment(&text) {
            let request = Request::new("GET", format!("/a/{segment}/b"));
            assert_eq!(request.segments()[1], text, "{segment}");
        }
        let is_refused = encode::header("X-Text", &text).is_err();
        let breaks = text.contains(['\r', '\n', '\0']);
        assert!(is_refused || !breaks, "{text:?}");
        let (_, body) = Multipart::new().text("name", &text).finish();
        let body = String::from_utf8(body).expect("UTF-8 in, UTF-8 out");
        assert!(body.contains(&format!("\r\n\r\n{text}\r\n--")), "{text:?}");
    }
}
