//! Tests of `http::cause`.

use conformant_base::http::Cause;
use std::collections::BTreeSet;

#[test]
fn cause_words_are_stable() {
    for (cause, word) in [
        (Cause::Refused, "refused"),
        (Cause::FirstByteTimeout, "timeout(first-byte)"),
        (Cause::HeadersTimeout, "timeout(headers)"),
        (
            Cause::BodyTimeout {
                got: 3,
                expected: Some(10),
            },
            "timeout(body, 3/10)",
        ),
        (
            Cause::BodyTimeout {
                got: 3,
                expected: None,
            },
            "timeout(body, 3/unknown)",
        ),
        (
            Cause::WriteTimeout { sent: 1, total: 2 },
            "timeout(write, 1/2)",
        ),
        (Cause::BodyOverLimit(4 << 20), "body-over-limit(4 MiB)"),
        (Cause::BodyOverLimit(64 << 10), "body-over-limit(64 KiB)"),
        (Cause::BodyOverLimit(1000), "body-over-limit(1000 B)"),
    ] {
        assert_eq!(cause.to_string(), word);
        assert_eq!(word.parse(), Ok(cause));
    }
}

#[test]
fn each_is_read_as_it_was_written() {
    for cause in Cause::examples() {
        let kept = serde_json::to_string(&cause).expect("a word is JSON");
        assert_eq!(kept, format!("\"{cause}\""));
        assert_eq!(serde_json::from_str::<Cause>(&kept).ok(), Some(cause));
    }
}

#[test]
fn what_is_not_ours_stays_the_word_it_is() {
    for word in [
        "",
        "Refused",
        "timeout",
        "timeout(connect)",
        "timeout(body, 03/10)",
        "timeout(body, 3/none)",
        "timeout(write, 1/unknown)",
        "body-over-limit(1024 KiB)",
        "body-over-limit(99999999999999999999 MiB)",
        "evidence-over-limit(10MiB)",
        "redirect()",
    ] {
        let Ok(read) = word.parse::<Cause>();
        assert!(matches!(read, Cause::Unknown(_)), "{word}: {read:?}");
        assert_eq!(read.to_string(), word);
    }
}

#[test]
fn the_examples_leave_none_out() {
    let source = include_str!("../../../src/http/cause.rs").lines();
    let body = source.skip_while(|line| !line.starts_with("pub enum Cause"));
    let body = body.skip(1).take_while(|line| *line != "}");
    let name = |text: &str| {
        text.split(|c: char| !c.is_alphanumeric())
            .next()
            .map(str::to_owned)
    };
    let variants = body.filter_map(|line| line.strip_prefix("    "));
    let variants = variants.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    let declared: BTreeSet<_> = variants.filter_map(name).collect();
    let shown = Cause::examples()
        .into_iter()
        .map(|cause| format!("{cause:?}"));
    let shown = shown.chain(["Unknown".to_owned()]);
    assert_eq!(
        shown
            .filter_map(|text| name(&text))
            .collect::<BTreeSet<_>>(),
        declared
    );
}
