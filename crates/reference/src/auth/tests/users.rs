//! Who is which user, and what is refused.

use super::{parsed, user};
use crate::testing::Client;
use crate::{Fault, Variant};
use conformant_base::http::Request;
use serde_json::json;

#[test]
fn forms_json_and_either_country_code_are_read_alike() {
    let mut world = Client::new(&[], &[]);
    let mut request = Request::new(
        "POST",
        "/auth/protected/json/users/new?api_key=reference-production-api-key-0001",
    );
    request
        .headers
        .set("Content-Type", "application/x-www-form-urlencoded");
    request.body =
        b"user[email]=a%40b.example&user[cellphone]=5550100001&user[country_code]=1".into();
    let now = world.now;
    let by_form = parsed(&world.reference.handle(&request, now));
    for country_code in [json!(1), json!("1")] {
        let by_json = user("a@b.example", "5550100001", country_code);
        let by_json = parsed(&world.post("protected/json/users/new", &by_json));
        assert_eq!(by_json["user"], by_form["user"]);
    }
}

#[test]
fn invalid_users_are_refused_in_the_documented_shape() {
    let bad_email = json!({
        "message": "User was not valid",
        "success": false,
        "errors": {"email": "is invalid", "message": "User was not valid"},
        "email": "is invalid",
        "error_code": "60027",
    });
    for email in [
        "",
        "plain",
        "a@",
        "@b.example",
        "a@b",
        "a b@c.example",
        "a@b@c.example",
    ] {
        let mut world = Client::new(&[], &[]);
        let response = world.post(
            "protected/json/users/new",
            &user(email, "5550100001", json!(1)),
        );
        assert_eq!(
            (response.status, parsed(&response)),
            (400, bad_email.clone()),
            "{email}"
        );
        let mut world = Client::new(&[], &[Variant::AuthFailureIs200, Variant::OtherErrorBody]);
        let response = world.post(
            "protected/json/users/new",
            &user(email, "5550100001", json!(1)),
        );
        assert_eq!(
            (response.status, parsed(&response)),
            (200, bad_email.clone()),
            "{email}"
        );
    }
    for (cellphone, country_code) in [
        ("", "1"),
        ("abc", "1"),
        ("123", "1"),
        ("5550100001", ""),
        ("5550100001", "US"),
        ("5550100001", "0"),
    ] {
        let mut world = Client::new(&[], &[]);
        let body = user("a@b.example", cellphone, json!(country_code));
        let body = parsed(&world.post("protected/json/users/new", &body));
        assert_eq!(body["success"], json!(false), "{cellphone} {country_code}");
        assert!(
            body["errors"].is_object() && body["error_code"].is_string(),
            "{body}"
        );
    }
}

#[test]
fn a_user_moves_to_another_number_and_the_webhook_says_so() {
    let mut world = Client::new(&[], &[]);
    let (ann, bob) = (
        world.user("a@b.example", "5550100001"),
        world.user("b@b.example", "5550100002"),
    );
    let url = "http://127.0.0.1:9/phone";
    world.hook("set_callback", &json!({"kind": "phone_change", "url": url}));
    world.hook(
        "change_phone",
        &json!({"auth_id": ann, "cellphone": "555-010-0003"}),
    );
    let called = world.callbacks();
    assert_eq!(called.len(), 1);
    assert_eq!(called[0]["auth_id"], json!(ann));
    let status = world.read(&format!("protected/json/users/{ann}/status"));
    assert_eq!(status["status"]["phone_number"], json!("XXX-XXX-0003"));
    assert_eq!(world.user("c@b.example", "5550100003"), ann);
    let newcomer = world.user("d@b.example", "5550100001");
    assert!(![ann, bob].contains(&newcomer), "the old number is free");
    let taken = json!({"auth_id": ann, "cellphone": "5550100002"});
    assert_eq!(world.try_hook("change_phone", &taken).0, 422);
}

#[test]
fn a_number_that_a_user_changes_to_itself_is_not_given_up() {
    let mut world = Client::new(&[], &[Variant::AuthOldNumberHeld]);
    let ann = world.user("a@b.example", "5550100001");
    world.hook(
        "change_phone",
        &json!({"auth_id": ann, "cellphone": "555-010-0001"}),
    );
    assert_eq!(world.user("b@b.example", "5550100001"), ann);
}

#[test]
fn numbers_that_are_not_digits_are_masked_too() {
    let faults = [Fault::AuthBadCellphoneAccepted];
    for (variants, cellphone, masked) in [
        (&[][..], "a", "XXX-XXX-a"),
        (&[Variant::AuthOtherMask][..], "a", "(***) ***-**a"),
        (&[Variant::AuthOtherMask][..], "äöü", "(***) ***-**öü"),
    ] {
        let mut world = Client::new(&faults, variants);
        let auth_id = world.user("a@b.example", cellphone);
        let status = world.read(&format!("protected/json/users/{auth_id}/status"));
        assert_eq!(status["status"]["phone_number"], json!(masked));
    }
}

#[test]
fn requests_need_the_api_key() {
    let mut world = Client::new(&[], &[]);
    let auth_id = world.user("a@b.example", "5550100001");
    let path = format!("/auth/protected/json/users/{auth_id}/status");
    let now = world.now;
    for (query, status) in [
        ("", 401),
        ("?api_key=wrong", 401),
        ("?api_key=reference-production-api-key-0001", 200),
    ] {
        let request = Request::new("GET", format!("{path}{query}"));
        assert_eq!(
            world.reference.handle(&request, now).status,
            status,
            "{query}"
        );
    }
    let mut open = Client::new(&[], &[Variant::AuthWithoutKey]);
    let request = Request::new("GET", "/auth/protected/json/users/1/status");
    assert_eq!(open.reference.handle(&request, open.now).status, 404);
}
