//! Tests of `junit`.

use conformant_record::junit::{Case, Status, Suite, render};

#[test]
fn only_characters_of_xml_are_written() {
    let text = "a\0\u{1f}\u{7f}\u{fffe}\u{ffff}\u{fffd}\u{10ffff}\t";
    let case = Case {
        name: "b".to_owned(),
        class: "c".to_owned(),
        seconds: None,
        status: Status::Passed,
        failed_before: Vec::new(),
        output: Some(text.to_owned()),
    };
    let suite = Suite {
        cases: vec![case],
        ..Suite::default()
    };
    let document = render(text, None, &[suite]);
    for written in [
        "name=\"a\u{7f}\u{fffd}\u{10ffff}",
        ">a\u{7f}\u{fffd}\u{10ffff}\t<",
    ] {
        assert!(document.contains(written), "{document:?}");
    }
}

#[test]
fn nothing_at_all_is_a_document() {
    let expected = concat!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
        "<testsuites name=\"a\" tests=\"0\" failures=\"0\" errors=\"0\"/>\n",
    );
    assert_eq!(render("a", None, &[]), expected);
}
