//! One scenario whose result every fault and every variant must change.

use super::{World, keyed, qr, user};
use crate::{Fault, Variant};
use conformant_base::http::{Request, Response};
use serde_json::{Value, json};

/// Every response and callback of one long scenario.
fn scenario(faults: &[Fault], variants: &[Variant]) -> Vec<String> {
    let mut world = World::new(faults, variants);
    let mut seen = Vec::new();
    for kind in ["approval", "registration", "phone_change"] {
        let url = format!("http://127.0.0.1:9/{kind}");
        world.hook("set_callback", &json!({"kind": kind, "url": url}));
    }
    world.hook("install_app", &json!({"cellphone": "5550100002"}));
    for (email, cellphone, country_code) in [
        ("a@b.example", "5550100001", "1"),
        ("c@d.example", "555-010-0001", "1"),
        ("c@d.example", "555.010.0001", "1"),
        ("c@d.example", "555 010 0001", "1"),
        ("a@b.example", "5550100001", "44"),
        ("a@b.example", "5550100002", "1"),
        ("bad", "5550100003", "1"),
        ("", "5550100004", "1"),
        ("a@b.example", "bad", "1"),
        ("a@b.example", "", "1"),
        ("a@b.example", "5550100005", ""),
        ("a@b.example", "5550100005", "US"),
    ] {
        let body = user(email, cellphone, json!(country_code));
        seen.push(written(&world.post("protected/json/users/new", &body)));
    }
    for target in [
        "protected/json/users/1001/status",
        "protected/xml/users/1001/status",
        "protected/json/users/1002/status",
        "protected/json/users/1003/status",
        "protected/json/registrations/status?custom_user_id=never",
        "protected/json/registrations/status",
    ] {
        seen.push(written(&world.send("GET", target, None)));
    }
    let request = Request::new("GET", "/auth/protected/json/users/1001/status");
    let now = world.now();
    seen.push(written(&world.reference.handle(&request, now)));
    for parameters in [
        json!({}),
        json!({"message": "m"}),
        json!({"message": "m", "seconds_to_expire": 0, "hidden_details": {"ip": "h"}}),
        json!({"message": "m", "seconds_to_expire": 60, "details": keyed(20), "hidden_details": keyed(20)}),
        json!({"message": "m", "details": keyed(20)}),
        json!({"message": "m", "hidden_details": keyed(20)}),
        json!({"message": "m", "details": keyed(21)}),
        json!({"message": "m", "hidden_details": keyed(21)}),
        json!({"message": "m", "logos": [{"res": "low", "url": "https://l.example"}]}),
        json!({"message": "m", "logos": [{"res": "default", "url": "http://l.example"}]}),
        json!({"message": "m", "logos": [
            {"res": "default", "url": "https://l.example"}, {"res": "tiny", "url": "https://l.example"},
        ]}),
        json!({"message": "m", "logos": [
            {"res": "default", "url": "https://l.example"}, {"res": "low", "url": "https://l.example"},
        ]}),
    ] {
        for reactions in [
            &[][..],
            &["approve_request", "deny_request"],
            &["deny_request"],
            &["late"],
        ] {
            seen.extend(approval_scenario(&mut world, &parameters, reactions));
        }
    }
    for (custom_user_id, seconds) in [("u-1", 60), ("u-2", 900), ("u-3", 0), ("u-4", 901)] {
        let polled = format!("protected/json/registrations/status?custom_user_id={custom_user_id}");
        world.hook(
            "announce_registration",
            &json!({ "custom_user_id": custom_user_id }),
        );
        seen.push(written(&world.send("GET", &polled, None)));
        let qr = qr(&world, custom_user_id, seconds);
        seen.push(
            world
                .hook("scan_registration", &json!({ "qr": qr }))
                .to_string(),
        );
        seen.push(written(&world.send("GET", &polled, None)));
    }
    world.wait(900);
    let polled = "protected/json/registrations/status?custom_user_id=u-4";
    seen.push(written(&world.send("GET", polled, None)));
    boundary(&mut world, &mut seen);
    for callback in world.callbacks() {
        let body = String::from_utf8_lossy(&callback.request.body);
        seen.push(format!(
            "{} {} {body}",
            callback.request.method, callback.url
        ));
    }
    seen
}

/// What is nearly right, comes second, or happens at the very second.
fn boundary(world: &mut World, seen: &mut Vec<String>) {
    let rich = " 😀 <b>\nend ";
    let requests = "onetouch/json/users/1001/approval_requests";
    let logo = |res: &str, url: &str| json!({"res": res, "url": url});
    let good = logo("default", "https://l.example");
    let mut pending = Vec::new();
    for parameters in [
        json!({"message": rich, "seconds_to_expire": 10,
            "details": {"a": " 1 ", "b": "2"}, "hidden_details": {"c": "<3>", "d": "4"}}),
        json!({"message": "other", "seconds_to_expire": 100}),
        json!({"message": "m", "details": {"a": "1", "k".repeat(30): "2"}}),
        json!({"message": "m", "logos": [good, logo("tiny", "https://l.example")]}),
        json!({"message": "m", "logos": [logo("default", "httpsx://l.example")]}),
    ] {
        let created = world.post(requests, &parameters);
        let body: Value = serde_json::from_slice(&created.body).unwrap_or_default();
        seen.push(written(&created));
        pending.extend(body["approval_request"]["uuid"].as_str().map(str::to_owned));
    }
    let mut look = |world: &mut World| {
        for uuid in &pending {
            for format in ["json", "xml"] {
                let target = format!("onetouch/{format}/approval_requests/{uuid}");
                seen.push(written(&world.send("GET", &target, None)));
            }
        }
    };
    for seconds in [9, 1, 1] {
        world.wait(seconds);
        look(world);
    }
    if let Some(second) = pending.get(1) {
        world.hook("deny_request", &json!({"uuid": second}));
    }
    world.wait(5);
    look(world);
    let second = world.post(requests, &json!({"message": "m"}));
    let third = world.post(requests, &json!({"message": "m"}));
    let uuid = |response: &Response| {
        let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        body["approval_request"]["uuid"].clone()
    };
    if uuid(&second).is_string() {
        world.hook("approve_request", &json!({"uuid": uuid(&second)}));
    }
    let target = uuid(&third);
    let target = format!(
        "onetouch/json/approval_requests/{}",
        target.as_str().unwrap_or_default()
    );
    seen.push(written(&world.send("GET", &target, None)));
    let change = json!({"auth_id": 1002, "cellphone": "5550100077"});
    // Under some defects there is no such user.
    let mut request = Request::new("POST", "/_control/change_phone");
    request.body = change.to_string().into_bytes();
    let now = world.now();
    seen.push(written(&world.reference.handle(&request, now)));
    for (id, seconds) in [("U-5", 60), ("U-6", 60), ("U-7", 0), ("U-8", 0)] {
        world.hook("announce_registration", &json!({"custom_user_id": id}));
        let qr = qr(world, id, seconds);
        world.hook("scan_registration", &json!({"qr": qr}));
    }
    let mut poll = |world: &mut World| {
        for id in ["U-5", "u-5", "U-6", "U-9"] {
            let polled = format!("protected/json/registrations/status?custom_user_id={id}");
            seen.push(written(&world.send("GET", &polled, None)));
        }
    };
    poll(world);
    world.hook("announce_registration", &json!({"custom_user_id": "U-6"}));
    world.hook("announce_registration", &json!({"custom_user_id": "U-9"}));
    poll(world);
    world.wait(900);
    poll(world);
    seen.push(written(&world.send(
        "GET",
        "protected/json/users/1002/status",
        None,
    )));
}

/// One approval request with what the person does; `late` is an approval after its expiry.
fn approval_scenario(world: &mut World, parameters: &Value, reactions: &[&str]) -> Vec<String> {
    let created = world.post("onetouch/json/users/1001/approval_requests", parameters);
    let mut seen = vec![written(&created)];
    let Ok(body) = serde_json::from_slice::<Value>(&created.body) else {
        return seen;
    };
    let Some(uuid) = body["approval_request"]["uuid"].as_str() else {
        return seen;
    };
    let target = format!("onetouch/json/approval_requests/{uuid}");
    seen.push(written(&world.send("GET", &target, None)));
    let in_xml = format!("onetouch/xml/approval_requests/{uuid}");
    seen.push(written(&world.send("GET", &in_xml, None)));
    world.wait(30);
    for reaction in reactions {
        let hook = if *reaction == "late" {
            world.wait(60);
            "approve_request"
        } else {
            reaction
        };
        world.hook(hook, &json!({ "uuid": uuid }));
        seen.push(written(&world.send("GET", &target, None)));
    }
    world.wait(60);
    seen.push(written(&world.send("GET", &target, None)));
    seen
}

fn written(response: &Response) -> String {
    format!(
        "{} {} {}",
        response.status,
        response.headers.len(),
        String::from_utf8_lossy(&response.body)
    )
}

/// That each fault shows the self-test proves: a rule must notice it. Of a variant nothing is noticed.
#[test]
fn no_variant_is_dead() {
    // `token` has the tests of tokens.
    let is_told = |id: &str| id.starts_with("auth/") && !id.starts_with("auth/token-");
    let clean = scenario(&[], &[]);
    assert_eq!(clean, scenario(&[], &[]), "the scenario is reproducible");
    let variants = Variant::ALL.iter().filter(|variant| is_told(variant.id()));
    let silent: Vec<_> = variants
        .filter(|variant| scenario(&[], &[**variant]) == clean)
        .collect();
    assert_eq!(silent, [&Variant::AuthWithoutKey; 0]);
}
