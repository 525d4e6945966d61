//! Tests of `compat`.

use conformant_rulebook::Compatibility::{self, Backward, Forward, Full};
use conformant_versions::{Content, LevelVerdict, Relation};
use serde_json::{Value, json};

const FIELD: (&str, &str) = (
    r#"{"type":"object"}"#,
    r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
);
const REQUIRED: (&str, &str) = (
    r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
    r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#,
);

fn relation((old, new): (&str, &str), content: Option<Content>) -> Relation {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).expect("it is JSON");
    let (old, new) = (parsed(old), parsed(new));
    let documents = [
        json!({}),
        json!({ "a": "x" }),
        json!({ "a": 1 }),
        json!({ "b": 1 }),
    ];
    Relation::new(("old", &old), ("new", &new), content, &documents)
}

fn verdict(level: Compatibility, relation: &Relation) -> LevelVerdict {
    LevelVerdict::new(level, "new", std::slice::from_ref(relation), &|_| false)
}

/// A changed field by content model, and by whether it is added or removed: whether backward and forward hold.
#[test]
fn each_of_24_combinations_has_its_verdict_and_each_refusal_a_witness() {
    let (open, closed) = (Content::Open, Content::Closed);
    let table = [
        // An optional field: an open object accepted any value there, a closed one no value.
        (FIELD, open, true, (false, true)),
        (FIELD, open, false, (true, false)),
        (FIELD, closed, true, (true, false)),
        (FIELD, closed, false, (false, true)),
        // A requirement: the content model makes no difference.
        (REQUIRED, open, true, (false, true)),
        (REQUIRED, open, false, (true, false)),
        (REQUIRED, closed, true, (false, true)),
        (REQUIRED, closed, false, (true, false)),
    ];
    let levels = table.iter().flat_map(|&(field, content, adds, holds)| {
        [(Backward, holds.0), (Forward, holds.1), (Full, false)]
            .map(|(level, holds)| (level, content, adds, field, holds))
    });
    for (level, content, adds, (less, more), holds) in levels {
        let at = format!("{level:?} {content:?} adds={adds} {more}");
        let relation = relation(
            if adds { (less, more) } else { (more, less) },
            Some(content),
        );
        assert_eq!(relation.contradictions, Vec::<String>::new(), "{at}");
        let verdict = verdict(level, &relation);
        assert_eq!(verdict.holds, holds, "{at}: {verdict:?}");
        assert_eq!(verdict.refusals.is_empty(), holds, "{at}");
        for refusal in &verdict.refusals {
            let document: Value = serde_json::from_str(refusal.document.as_ref().unwrap()).unwrap();
            let accepts = |text: &str| {
                let schema = content.applied(&serde_json::from_str(text).unwrap());
                conformant_schema::compile(&schema)
                    .unwrap()
                    .is_valid(&document)
            };
            let is_backward = refusal.accepted_by == "old";
            let (old, new) = if adds { (less, more) } else { (more, less) };
            assert_eq!(
                (accepts(old), accepts(new)),
                (is_backward, !is_backward),
                "{at}: {document}"
            );
        }
    }
}

#[test]
fn without_a_content_model_the_schema_decides() {
    let closed = r#"{"type":"object","additionalProperties":false}"#;
    let more =
        r#"{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"}}}"#;
    for content in [None, Some(Content::Open), Some(Content::Closed)] {
        assert!(
            verdict(Backward, &relation((closed, more), content)).holds,
            "{content:?}"
        );
        assert!(
            !verdict(Forward, &relation((closed, more), content)).holds,
            "{content:?}"
        );
    }
    assert!(!verdict(Backward, &relation(FIELD, None)).holds);
}

#[test]
fn a_witness_is_a_whole_document() {
    let old = json!({ "type": "object", "required": ["kind", "lines"], "properties": {
        "kind": { "const": "order" },
        "lines": { "type": "array", "items": { "type": "object", "required": ["sku"], "properties": {
            "sku": { "type": "string" }, "unit": { "enum": ["kg", "l"] } } } } } });
    let mut new = old.clone();
    new["properties"]["lines"]["items"]["properties"]["unit"]["enum"] = json!(["kg"]);
    let relation = Relation::new(("old", &old), ("new", &new), None, &[]);
    assert_eq!(relation.gained, []);
    let [refusal] = &relation.lost[..] else {
        panic!("{relation:?}")
    };
    let document: Value = serde_json::from_str(refusal.document.as_ref().unwrap()).unwrap();
    assert_eq!(document["kind"], "order");
    assert_eq!(document["lines"][0]["unit"], "l");
    assert!(
        refusal.change.ends_with("/unit/l/enum-value-removed"),
        "{refusal:?}"
    );
}

#[test]
fn a_transitive_level_counts_every_earlier_version_and_none_counts_nothing() {
    let narrower = relation(REQUIRED, None);
    let same = relation((REQUIRED.1, REQUIRED.1), None);
    let both = [narrower, same];
    let holds = |level| LevelVerdict::new(level, "new", &both, &|_| false).holds;
    assert!(holds(Backward) && holds(Compatibility::None));
    assert!(!holds(Compatibility::BackwardTransitive));
    let declared = LevelVerdict::new(Compatibility::FullTransitive, "new", &both, &|_| true);
    assert!(declared.holds);
}

#[test]
fn generated_documents_that_no_change_accounts_for_are_contradictions() {
    // `minContains` is not compared.
    let of = |count: usize| json!({"type": "array", "contains": {}, "minContains": count});
    let documents = [json!([1]), json!([1, 2])];
    let relation = Relation::new(("old", &of(1)), ("new", &of(2)), None, &documents);
    assert_eq!(
        (&relation.lost[..], &relation.gained[..]),
        (&[][..], &[][..])
    );
    assert_eq!(
        relation.contradictions,
        ["[1] is valid in old and invalid in new, and no change accounts for it"]
    );
}
