//! Tests of `http`.

use conformant_base::http::{Headers, Request, percent_decode, percent_encode};

mod cause;

#[test]
fn targets_split_into_decoded_parts() {
    let request = Request::new(
        "GET",
        "/v2/Services/a%20b/Users?Identity=x%2By&Identity=z+w",
    );
    assert_eq!(request.segments(), ["v2", "Services", "a b", "Users"]);
    assert_eq!(
        request.query_pairs(),
        [
            ("Identity".into(), "x+y".into()),
            ("Identity".into(), "z w".into())
        ]
    );
    assert_eq!(percent_encode("a/b-c+ü%~"), "a%2Fb-c%2B%C3%BC%25~");
    assert_eq!(percent_decode(&percent_encode("a/b c+ü%")), "a/b c+ü%");
    assert_eq!(
        percent_decode("%2e%2E%%41%4%+%ff%zz"),
        "..%A%4%+\u{fffd}%zz"
    );
}

#[test]
fn header_names_compare_without_case_and_keep_order() {
    let mut headers = Headers::default();
    headers.add("Content-Type", "application/JSON; charset=utf-8");
    headers.add("X-A", "1");
    headers.add("x-a", "2");
    assert_eq!(headers.get("X-a"), Some("1"));
    assert_eq!(headers.media_type().as_deref(), Some("application/json"));
    headers.set("x-A", "3");
    assert_eq!(headers.iter().collect::<Vec<_>>()[1..], [("x-A", "3")]);
}
