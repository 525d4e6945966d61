//! Uses the Rust package in a test: each model accepts every valid document and rejects most invalid ones.

use conformant_fixtures::models::{ChatMessage, ChatService};
use conformant_fixtures::{Factory, accepts, documents, invalid, kinds, load, schema};
use serde_json::{Value, json};

fn main() {
    assert!(kinds().len() > 50, "{:?}", kinds());
    assert!(schema("chat/message").is_object());
    let (mut due, mut refused) = (0, 0);
    for kind in kinds() {
        for document in documents(kind) {
            accepts(kind, &document).expect(kind);
        }
        let wrong: Vec<_> = invalid(kind)
            .into_iter()
            .filter(|one| one.breaks_schema)
            .collect();
        due += wrong.len();
        refused += wrong
            .iter()
            .filter(|one| accepts(kind, &one.document).is_err())
            .count();
    }
    // The others are constraints that typify does not support: conditions, and fields that are optional and nullable.
    assert!(refused * 10 > due * 8, "{refused} of {due}");
    let messages: Vec<ChatMessage> = load().expect("messages");
    assert!(messages.iter().all(|one| one.sid.starts_with("IM")));

    let seed = std::env::args()
        .nth(1)
        .expect("a seed")
        .parse()
        .expect("a number");
    let mut factory = Factory::<ChatMessage>::new(seed);
    let made: Vec<Value> = (0..20)
        .map(|_| factory.document(json!({ "body": "hi" })))
        .collect();
    let read: ChatMessage = factory.make(json!({ "body": "hi" }));
    assert_eq!(read.body.as_deref(), Some("hi"));
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let unknown = std::panic::catch_unwind(|| {
        Factory::<ChatMessage>::new(seed).make(json!({ "bdy": "hi" }));
    });
    let inner = std::panic::catch_unwind(|| {
        Factory::<ChatService>::new(seed).document(json!({ "limits": { "nope": 3 } }))
    });
    std::panic::set_hook(hook);
    assert!(unknown.is_err(), "an unknown field is refused");
    assert!(
        inner.is_err(),
        "an unknown field of an inner object is refused"
    );
    for one in &made {
        assert!(
            one["url"]
                .as_str()
                .expect("a url")
                .contains(one["sid"].as_str().expect("a sid"))
        );
    }
    println!("{}", Value::from(made));
    eprintln!(
        "   rust: {} kinds, {refused} of {due} documents that break a schema are rejected by a model",
        kinds().len()
    );
}
