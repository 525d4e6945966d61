//! Problematic strings as every argument and in every place of a request: rejected or accepted, harmless, and read back
//! unchanged.

use crate::hostile::command::{conformant, run};
use crate::program::{Folder, one_in, root};
use clap::CommandFactory as _;
use conformant_base::http::Request;
use conformant_net::transport::{Multipart, encode};

fn strings() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("tests/corpus/naughty.json")).expect("a list");
    serde_json::from_str(&text).expect("a list of strings")
}

#[test]
fn every_argument_takes_or_refuses_them() {
    let folder = Folder::with_limits();
    let strings: Vec<String> = strings()
        .into_iter()
        // The system does not accept these as arguments.
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
    for (number, text) in one_in(5, strings.iter().enumerate().collect()) {
        let given = uses[number % uses.len()]
            .iter()
            .map(|word| word.replace("{}", text));
        let given: Vec<String> = given.collect();
        let ended = run(conformant(&folder).args(&given));
        let exit = ended.exit.expect("it ends by itself");
        assert!((0..=4).contains(&exit), "{given:?}: {ended:?}");
        for output in [&ended.stdout, &ended.stderr] {
            assert!(
                !output.contains(conformant_base::text::is_deceptive),
                "{given:?}: {output:?}"
            );
            let mut lines = output.lines();
            let is_command =
                |line: &str| line.trim_start().starts_with("::error") || line.contains("##vso[");
            assert!(!lines.any(is_command), "{given:?}: {output:?}");
        }
    }
}

/// Every option and argument of every command, with the words that lead to it.
fn options(command: &clap::Command, path: &[String]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for arg in command
        .get_arguments()
        .filter(|arg| arg.get_action().takes_values())
    {
        let mut words = path.to_vec();
        words.extend(arg.get_long().map(|long| format!("--{long}={{}}")));
        if arg.is_positional() {
            words.push("{}".to_owned());
        }
        all.push(words);
    }
    for below in command.get_subcommands() {
        let path = [path, &[below.get_name().to_owned()]].concat();
        all.extend(options(below, &path));
    }
    // Instead of a command.
    all.push([path, &["{}".to_owned()]].concat());
    all
}

/// Each string in each place is parsed without a panic; the first one that each place rejects is passed to the program
/// itself, whose message is harmless.
#[test]
fn every_option_of_every_command_refuses_them_harmlessly() {
    let strings: Vec<String> = strings()
        .into_iter()
        .chain(["x\n::error::y\n##vso[task.complete]".to_owned()])
        .filter(|text| !text.contains('\0'))
        .collect();
    let mut refused = Vec::new();
    // Building the definition takes longer than parsing with it.
    let mut cli = conformant::cli::Cli::command();
    let all = options(&cli, &[]);
    assert!(all.len() > 100, "{}", all.len());
    for option in one_in(4, all.iter().collect()) {
        let filled = |text: &str| {
            let words = option.iter().map(|word| word.replace("{}", text));
            std::iter::once("conformant".to_owned())
                .chain(words)
                .collect::<Vec<_>>()
        };
        let is_refused = |text: &&String| {
            let parsed = cli.try_get_matches_from_mut(filled(text));
            parsed.is_err_and(|error| error.use_stderr())
        };
        // The last one first: it is the worst for a log.
        refused.extend(
            strings
                .iter()
                .rev()
                .find(is_refused)
                .map(|text| filled(text)),
        );
    }
    assert!(refused.len() > 5, "{}", refused.len());
    let folder = Folder::with_limits();
    for words in refused {
        let ended = run(conformant(&folder).args(&words[1..]));
        assert_eq!(ended.exit, Some(2), "{words:?}: {ended:?}");
        let stderr = &ended.stderr;
        assert!(
            !stderr.contains(conformant_base::text::is_deceptive),
            "{words:?}: {stderr:?}"
        );
        for command in ["\n::error", "##vso["] {
            assert!(!stderr.contains(command), "{words:?}: {stderr:?}");
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
        let back: Vec<(String, String)> = url::form_urlencoded::parse(form.as_bytes())
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
