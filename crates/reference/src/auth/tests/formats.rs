//! Formats and unknown paths.

use super::World;
use crate::Fault;
use serde_json::json;

#[test]
fn xml_states_the_same_facts() {
    let xml = |faults: &[Fault]| {
        let mut world = World::new(faults, &[]);
        let auth_id = world.user("a@b.example", "5550104321");
        let response = world.send(
            "GET",
            &format!("protected/xml/users/{auth_id}/status"),
            None,
        );
        String::from_utf8(response.body).expect("UTF-8")
    };
    assert_eq!(
        xml(&[]),
        concat!(
            r#"<?xml version="1.0" encoding="UTF-8"?><hash><message>User status.</message><status>"#,
            r#"<auth_id type="integer">1001</auth_id><confirmed type="boolean">false</confirmed>"#,
            r#"<registered type="boolean">false</registered><country_code type="integer">1</country_code>"#,
            r#"<phone_number>XXX-XXX-4321</phone_number><email>a@b.example</email>"#,
            r#"<devices type="array"></devices></status><success type="boolean">true</success></hash>"#,
        )
    );
    assert!(!xml(&[Fault::AuthXmlMalformed]).ends_with("</hash>"));
    assert!(xml(&[Fault::AuthXmlDiffers]).contains(">1002</auth_id>"));
    assert!(xml(&[Fault::AuthXmlIsJson]).starts_with('{'));
}

#[test]
fn unknown_places_are_not_found() {
    let mut world = World::new(&[], &[]);
    for target in [
        "protected/yaml/users/new",
        "protected/json",
        "protected/json/users/99/status",
        "protected/json/users/x/status",
        "onetouch/json/approval_requests/none",
    ] {
        assert_eq!(world.send("GET", target, None).status, 404, "{target}");
    }
    let create = world.post(
        "onetouch/json/users/99/approval_requests",
        &json!({"message": "m"}),
    );
    assert_eq!(create.status, 404);
}
