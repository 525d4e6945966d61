//! Tests of `paging`.

use conformant_judge::load::predicates;
use conformant_rulebook::Rulebook;
use conformant_rulebook::paging::Paging;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const DESCRIBED: &str = "flow/openapi.yaml";

/// The operations of a service, where the page of `read-flows` has this `x-paging`.
fn described(written: &Value) -> String {
    let before = "x-list-key: flows\n";
    let text = conformant_specs::text(DESCRIBED);
    assert_eq!(text.matches(before).count(), 1);
    let indent = " ".repeat(16);
    text.replace(before, &format!("{before}{indent}x-paging: {written}\n"))
}

fn paging(written: &Value) -> Paging {
    let files = conformant_specs::FILES.iter();
    let files = files.filter(|file| file.path == "common.yaml" || file.path.starts_with("flow/"));
    let files = files.map(|file| match file.path {
        DESCRIBED => (DESCRIBED.to_owned(), described(written).into_bytes()),
        path => (path.to_owned(), file.bytes.to_vec()),
    });
    let rulebook = Rulebook::sound_of_files_by(predicates(), files)
        .unwrap_or_else(|problems| panic!("{problems}"));
    let operation = rulebook.operation("flow", "read-flows");
    operation.expect("it is described").paging.clone()
}

#[test]
fn each_style_leads_to_the_next_page_and_ends() {
    let none = BTreeMap::new();
    let page = json!({"next": "abc", "items": [1, 2]});
    let token = paging(&json!({"token": "/next", "parameter": "cursor"}));
    assert_eq!(token.following(&page, 2, &none).unwrap()["cursor"], "abc");
    assert!(token.following(&json!({"next": null}), 2, &none).is_none());
    let offset = paging(&json!({"offset": "skip", "size": "limit"}));
    let sent = BTreeMap::from([("skip".to_owned(), json!("4"))]);
    assert_eq!(offset.following(&page, 2, &sent).unwrap()["skip"], 6);
    assert!(offset.following(&page, 0, &sent).is_none());
    let number = paging(&json!({"page": "page", "first": 0}));
    assert_eq!(number.following(&page, 2, &none).unwrap()["page"], 1);
    assert!(number.is_last(None, 1, Some(2)) && !number.is_last(None, 2, Some(2)));
    assert!(paging(&json!({})).is_last(None, 7, None));
    assert!(!paging(&json!({"size": "limit"})).is_last(None, 7, None));
    assert!(Paging::default().is_last(Some(&json!({"meta": {"next_page_url": null}})), 1, None));
}

#[test]
fn two_ways_at_once_are_refused() {
    let refused = |written: Value| {
        let file = described(&written);
        let loaded = Rulebook::load_with_file(predicates(), DESCRIBED, file.as_bytes());
        let problems = loaded.err().map(|problems| problems.to_string());
        problems.is_some_and(|text| {
            text.contains("expected one of `link`, `token`, `offset` and `page`")
        })
    };
    assert!(refused(json!({"offset": "skip", "page": "page"})));
    assert!(!refused(json!({"offset": "skip"})));
}
