//! Tests of the authentication service through its requests and hooks alone.

use super::application;
use crate::clock::{Timestamp, VirtualClock};
use crate::http::{Request, Response};
use crate::reference::{Callback, Fault, Reference, Settings, Variant};
use serde_json::{Value, json};
use std::time::Duration;

/// A reference with its clock, and one-line requests.
struct World {
    reference: Reference,
    clock: VirtualClock,
}

impl World {
    fn new(faults: &[Fault], variants: &[Variant]) -> Self {
        let clock = VirtualClock::default();
        let settings = Settings {
            faults: faults.iter().copied().collect(),
            variants: variants.iter().copied().collect(),
            ..Settings::default()
        };
        Self {
            reference: Reference::new(settings, clock.now()),
            clock,
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn wait(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn send(&mut self, method: &str, target: &str, body: Option<&Value>) -> Response {
        let mut request = Request::new(method, format!("/auth/{target}"));
        request
            .headers
            .set(application::API_KEY_HEADER, application::API_KEY);
        if let Some(body) = body {
            request.headers.set("Content-Type", "application/json");
            request.body = body.to_string().into_bytes();
        }
        let now = self.now();
        self.reference.handle(&request, now)
    }

    fn get(&mut self, target: &str) -> Value {
        parsed(&self.send("GET", target, None))
    }

    fn post(&mut self, target: &str, body: &Value) -> Response {
        self.send("POST", target, Some(body))
    }

    fn hook(&mut self, name: &str, args: &Value) -> Value {
        let mut request = Request::new("POST", format!("/_control/{name}"));
        request.body = args.to_string().into_bytes();
        let now = self.now();
        let response = self.reference.handle(&request, now);
        assert_eq!(response.status, 200, "{name} {args}: {:?}", response.body);
        parsed(&response)
    }

    fn callbacks(&mut self) -> Vec<Callback> {
        self.reference.take_callbacks()
    }

    fn user(&mut self, email: &str, cellphone: &str) -> u64 {
        let response = self.post(
            "protected/json/users/new",
            &user(email, cellphone, json!("1")),
        );
        assert!(response.is_success(), "{email} {cellphone}");
        parsed(&response)["user"]["id"]
            .as_u64()
            .expect("an integer")
    }

    fn approval(&mut self, parameters: &Value) -> Result<String, Response> {
        let auth_id = self.user("a@b.example", "555-010-0001");
        let target = format!("onetouch/json/users/{auth_id}/approval_requests");
        let response = self.post(&target, parameters);
        if !response.is_success() || parsed(&response)["success"] != json!(true) {
            return Err(response);
        }
        let uuid = &parsed(&response)["approval_request"]["uuid"];
        Ok(uuid.as_str().expect("a uuid").to_owned())
    }

    fn fetch(&mut self, uuid: &str) -> Value {
        self.get(&format!("onetouch/json/approval_requests/{uuid}"))["approval_request"].clone()
    }
}

fn user(email: &str, cellphone: &str, country_code: Value) -> Value {
    let mut user = json!({"email": email, "cellphone": cellphone});
    user["country_code"] = country_code;
    json!({ "user": user })
}

fn parsed(response: &Response) -> Value {
    serde_json::from_slice(&response.body).expect("a JSON body")
}

fn keyed(length: usize) -> Value {
    json!({"k".repeat(length): "v"})
}

#[test]
fn one_device_is_one_user_however_its_phone_is_spelled() {
    let mut world = World::new(&[], &[]);
    let first = world.user("a@b.example", "555-010-0001");
    for spelling in [
        "5550100001",
        "555.010.0001",
        "555 010 0001",
        "555-010.00 01",
    ] {
        assert_eq!(world.user("other@b.example", spelling), first, "{spelling}");
    }
    assert_ne!(world.user("a@b.example", "555-010-0002"), first);
    let elsewhere = user("a@b.example", "555-010-0001", json!(44));
    let elsewhere = parsed(&world.post("protected/json/users/new", &elsewhere));
    assert_ne!(elsewhere["user"]["id"], json!(first));
}

#[test]
fn each_user_fault_shows() {
    for (fault, spelling) in [
        (Fault::AuthOtherIdForSameDevice, "5550100001"),
        (Fault::AuthDashesChangeUser, "555-010-0001"),
        (Fault::AuthPeriodsChangeUser, "555.010.0001"),
        (Fault::AuthSpacesChangeUser, "555 010 0001"),
    ] {
        let mut world = World::new(&[fault], &[]);
        let first = world.user("a@b.example", "5550100001");
        assert_ne!(world.user("a@b.example", spelling), first, "{fault:?}");
    }
    let mut world = World::new(&[Fault::AuthIdSharedByPhones], &[]);
    let first = world.user("a@b.example", "5550100001");
    assert_eq!(world.user("a@b.example", "5550100002"), first);
}

#[test]
fn forms_json_and_either_country_code_are_read_alike() {
    let mut world = World::new(&[], &[]);
    let mut request = Request::new(
        "POST",
        "/auth/protected/json/users/new?api_key=reference-production-api-key",
    );
    request
        .headers
        .set("Content-Type", "application/x-www-form-urlencoded");
    request.body =
        b"user[email]=a%40b.example&user[cellphone]=5550100001&user[country_code]=1".into();
    let now = world.now();
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
        let mut world = World::new(&[], &[]);
        let response = world.post(
            "protected/json/users/new",
            &user(email, "5550100001", json!(1)),
        );
        assert_eq!(
            (response.status, parsed(&response)),
            (400, bad_email.clone()),
            "{email}"
        );
        let mut world = World::new(&[], &[Variant::AuthFailureIs200, Variant::OtherErrorBody]);
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
        let mut world = World::new(&[], &[]);
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
fn required_parameters_are_required_but_under_their_faults() {
    for (fault, field) in [
        (Fault::AuthEmailNotRequired, "email"),
        (Fault::AuthCellphoneNotRequired, "cellphone"),
        (Fault::AuthCountryCodeNotRequired, "country_code"),
    ] {
        let mut body = user("a@b.example", "5550100001", json!("1"));
        body["user"]
            .as_object_mut()
            .expect("an object")
            .remove(field);
        for (faults, is_accepted) in [(&[][..], false), (&[fault][..], true)] {
            let response = World::new(faults, &[]).post("protected/json/users/new", &body);
            assert_eq!(response.is_success(), is_accepted, "{field} {faults:?}");
        }
    }
}

#[test]
fn requests_need_the_api_key() {
    let mut world = World::new(&[], &[]);
    let auth_id = world.user("a@b.example", "5550100001");
    let path = format!("/auth/protected/json/users/{auth_id}/status");
    let now = world.now();
    for (query, status) in [
        ("", 401),
        ("?api_key=wrong", 401),
        ("?api_key=reference-production-api-key", 200),
    ] {
        let request = Request::new("GET", format!("{path}{query}"));
        assert_eq!(
            world.reference.handle(&request, now).status,
            status,
            "{query}"
        );
    }
    let mut open = World::new(&[], &[Variant::AuthWithoutKey]);
    let request = Request::new("GET", "/auth/protected/json/users/1/status");
    assert_eq!(open.reference.handle(&request, now).status, 404);
}

#[test]
fn a_user_status_masks_the_phone_and_follows_the_app() {
    let mut world = World::new(&[], &[]);
    let auth_id = world.user("a@b.example", "555-010-4321");
    let path = format!("protected/json/users/{auth_id}/status");
    let mut expected = json!({
        "auth_id": auth_id, "confirmed": false, "registered": false, "country_code": 1,
        "phone_number": "XXX-XXX-4321", "email": "a@b.example", "devices": [],
    });
    assert_eq!(world.get(&path)["status"], expected);
    world.hook(
        "install_app",
        &json!({"cellphone": "555.010.4321", "country_code": "1"}),
    );
    expected["confirmed"] = json!(true);
    expected["registered"] = json!(true);
    expected["devices"] = json!(["iphone"]);
    assert_eq!(world.get(&path)["status"], expected);
}

#[test]
fn enrolling_a_phone_with_the_app_adds_the_application() {
    for (faults, registered) in [
        (&[][..], true),
        (&[Fault::AuthInstalledAppIgnored][..], false),
    ] {
        let mut world = World::new(faults, &[]);
        world.hook(
            "install_app",
            &json!({"cellphone": "5550104321", "country_code": 1}),
        );
        let auth_id = world.user("a@b.example", "555-010-4321");
        let status = world.get(&format!("protected/json/users/{auth_id}/status"));
        assert_eq!(status["status"]["registered"], json!(registered));
    }
}

#[test]
fn approval_requests_end_as_the_user_or_time_decides() {
    for (hook, seconds, status, device) in [
        (Some("approve_request"), 0, "approved", true),
        (Some("deny_request"), 0, "denied", true),
        (None, 59, "pending", false),
        (None, 60, "expired", false),
    ] {
        let mut world = World::new(&[], &[]);
        let parameters =
            json!({"message": "m", "seconds_to_expire": 60, "details": null, "logos": []});
        let uuid = world.approval(&parameters).expect("accepted");
        assert_eq!(world.fetch(&uuid)["status"], json!("pending"));
        world.wait(seconds);
        if let Some(hook) = hook {
            world.hook(hook, &json!({ "uuid": uuid }));
        }
        for late in ["", "approve_request", "deny_request"] {
            if !late.is_empty() && status != "pending" {
                world.hook(late, &json!({ "uuid": uuid }));
            }
            let shown = world.fetch(&uuid);
            assert_eq!(shown["status"], json!(status), "{late}");
            assert_eq!(shown.get("device").is_some(), device, "{late}");
            assert_eq!(shown["seconds_to_expire"], json!(60));
        }
    }
}

#[test]
fn the_default_expiry_is_a_day_and_zero_is_never() {
    for (parameters, seconds, status) in [
        (json!({"message": "m"}), 86_399, "pending"),
        (json!({"message": "m"}), 86_400, "expired"),
        (
            json!({"message": "m", "seconds_to_expire": 0}),
            86_400_000,
            "pending",
        ),
        (
            json!({"message": "m", "seconds_to_expire": "0"}),
            86_400_000,
            "pending",
        ),
        (
            json!({"message": "m", "seconds_to_expire": u64::MAX}),
            86_400_000,
            "pending",
        ),
    ] {
        let mut world = World::new(&[], &[]);
        let uuid = world.approval(&parameters).expect("accepted");
        world.wait(seconds);
        assert_eq!(
            world.fetch(&uuid)["status"],
            json!(status),
            "{parameters} {seconds}"
        );
    }
}

#[test]
fn parameters_of_approval_requests_have_their_bounds() {
    let logo = |res: &str, url: &str| json!({"message": "m", "logos": [{"res": res, "url": url}]});
    for (fault, refused) in [
        (Some(Fault::AuthMessageNotRequired), json!({})),
        (Some(Fault::AuthMessageNotRequired), json!({"message": ""})),
        (
            Some(Fault::AuthDetailsKey21Kept),
            json!({"message": "m", "details": keyed(21)}),
        ),
        (
            Some(Fault::AuthHiddenDetailsKey21Kept),
            json!({"message": "m", "hidden_details": keyed(21)}),
        ),
        (
            Some(Fault::AuthLogosWithoutDefaultAccepted),
            logo("low", "https://l.example"),
        ),
        (
            Some(Fault::AuthLogoHttpAccepted),
            logo("default", "http://l.example"),
        ),
        (
            Some(Fault::AuthLogoForeignResAccepted),
            json!({"message": "m", "logos": [
                {"res": "default", "url": "https://l.example"}, {"res": "tiny", "url": "https://l.example"},
            ]}),
        ),
        (None, json!({"message": "m", "details": 1})),
        (None, json!({"message": "m", "logos": "x"})),
        (None, json!({"message": "m", "seconds_to_expire": -1})),
        (None, json!({"message": "m", "seconds_to_expire": "soon"})),
    ] {
        assert!(
            World::new(&[], &[]).approval(&refused).is_err(),
            "{refused}"
        );
        if let Some(fault) = fault {
            assert!(
                World::new(&[fault], &[]).approval(&refused).is_ok(),
                "{fault:?}"
            );
        }
    }
    for (fault, accepted) in [
        (
            Fault::AuthDetailsKey20Refused,
            json!({"message": "m", "details": keyed(20)}),
        ),
        (
            Fault::AuthHiddenDetailsKey20Refused,
            json!({"message": "m", "hidden_details": keyed(20)}),
        ),
    ] {
        assert!(
            World::new(&[], &[]).approval(&accepted).is_ok(),
            "{accepted}"
        );
        assert!(
            World::new(&[fault], &[]).approval(&accepted).is_err(),
            "{fault:?}"
        );
    }
    assert!(
        World::new(&[], &[])
            .approval(&logo("default", "https://l.example"))
            .is_ok()
    );
}

#[test]
fn each_approval_fault_shows() {
    for (fault, seconds, hooks, pointer, right, wrong) in [
        (
            Fault::AuthApprovalNeverExpires,
            60,
            &[][..],
            "/status",
            json!("expired"),
            json!("pending"),
        ),
        (
            Fault::AuthApprovalExpiresEarly,
            30,
            &[],
            "/status",
            json!("pending"),
            json!("expired"),
        ),
        (
            Fault::AuthApprovalNotTaken,
            0,
            &["approve_request"],
            "/status",
            json!("approved"),
            json!("pending"),
        ),
        (
            Fault::AuthDenialNotTaken,
            0,
            &["deny_request"],
            "/status",
            json!("denied"),
            json!("pending"),
        ),
        (
            Fault::AuthDenialApproves,
            0,
            &["deny_request"],
            "/status",
            json!("denied"),
            json!("approved"),
        ),
        (
            Fault::AuthFinalStatusChanges,
            0,
            &["deny_request", "approve_request"],
            "/status",
            json!("denied"),
            json!("approved"),
        ),
        (
            Fault::AuthExpiredCanBeApproved,
            60,
            &["approve_request"],
            "/status",
            json!("expired"),
            json!("approved"),
        ),
        (
            Fault::AuthSecondsToExpireNotKept,
            0,
            &[],
            "/seconds_to_expire",
            json!(60),
            json!(120),
        ),
        (
            Fault::AuthHiddenDetailsLost,
            0,
            &[],
            "/hidden_details",
            json!({"ip": "h"}),
            json!({}),
        ),
        (
            Fault::AuthHiddenDetailsShown,
            0,
            &[],
            "/details/ip",
            Value::Null,
            json!("h"),
        ),
        (
            Fault::AuthDetailsTimestampMissing,
            0,
            &[],
            "/details/timestamp",
            json!("2026-01-01T00:00:00Z"),
            Value::Null,
        ),
        (
            Fault::AuthDeviceWhilePending,
            0,
            &[],
            "/device/id",
            Value::Null,
            json!(71_001),
        ),
        (
            Fault::AuthDeviceAfterExpiry,
            60,
            &[],
            "/device/id",
            Value::Null,
            json!(71_001),
        ),
        (
            Fault::AuthDeviceMissingWhenApproved,
            0,
            &["approve_request"],
            "/device/id",
            json!(71_001),
            Value::Null,
        ),
        (
            Fault::AuthDeviceMissingWhenDenied,
            0,
            &["deny_request"],
            "/device/id",
            json!(71_001),
            Value::Null,
        ),
        (
            Fault::AuthApprovalOtherAuthId,
            0,
            &[],
            "/_auth_id",
            json!(1001),
            json!(1002),
        ),
    ] {
        let seen = |faults: &[Fault]| {
            let mut world = World::new(faults, &[]);
            let parameters =
                json!({"message": "m", "seconds_to_expire": 60, "hidden_details": {"ip": "h"}});
            let uuid = world.approval(&parameters).expect("accepted");
            world.wait(seconds);
            for hook in hooks {
                world.hook(hook, &json!({ "uuid": uuid }));
            }
            world
                .fetch(&uuid)
                .pointer(pointer)
                .cloned()
                .unwrap_or_default()
        };
        assert_eq!((seen(&[]), seen(&[fault])), (right, wrong), "{fault:?}");
    }
}

#[test]
fn a_reaction_is_called_back_once_and_expiry_is_not() {
    for (faults, variants, hook, count) in [
        (&[][..], &[][..], Some("approve_request"), 1),
        (&[], &[], Some("deny_request"), 1),
        (&[], &[], None, 0),
        (&[], &[Variant::AuthExpiryCallback], None, 1),
        (&[], &[Variant::AuthCallbackTwice], Some("deny_request"), 2),
        (
            &[Fault::AuthApproveCallbackMissing],
            &[],
            Some("approve_request"),
            0,
        ),
        (
            &[Fault::AuthDenyCallbackMissing],
            &[],
            Some("deny_request"),
            0,
        ),
        (
            &[Fault::AuthDenyCallbackMissing],
            &[],
            Some("approve_request"),
            1,
        ),
    ] {
        let mut world = World::new(faults, variants);
        world.hook(
            "set_callback",
            &json!({"kind": "approval", "url": "http://127.0.0.1:9/x?y=1"}),
        );
        let uuid = world
            .approval(&json!({"message": "m", "seconds_to_expire": 60}))
            .expect("accepted");
        if let Some(hook) = hook {
            world.hook(hook, &json!({ "uuid": uuid }));
        }
        world.wait(60);
        world.fetch(&uuid);
        world.fetch(&uuid);
        let callbacks = world.callbacks();
        assert_eq!(callbacks.len(), count, "{faults:?} {variants:?} {hook:?}");
        for callback in callbacks {
            assert_eq!(
                (
                    callback.request.method.as_str(),
                    callback.request.target.as_str()
                ),
                ("POST", "/x?y=1")
            );
            let body: Value = serde_json::from_slice(&callback.request.body).expect("JSON");
            assert_eq!(body["uuid"], json!(uuid));
        }
    }
}

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

/// A QR string of a right token, `seconds` from its issue to its expiry.
fn qr(world: &World, custom_user_id: &str, seconds: i64) -> String {
    let claims = json!({
        "iss": application::NAME,
        "iat": world.now().as_second(),
        "exp": world.now().as_second() + seconds,
        "context": {"custom_user_id": custom_user_id, "auth_app_id": application::ID},
    });
    let key = jsonwebtoken::EncodingKey::from_secret(application::API_KEY.as_bytes());
    let token = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key);
    format!(
        "{}://account?token={}",
        application::SCHEME,
        token.expect("a token")
    )
}

fn registration(world: &mut World, custom_user_id: &str) -> Value {
    world.get(&format!(
        "protected/json/registrations/status?custom_user_id={custom_user_id}"
    ))
}

#[test]
fn registrations_are_pending_until_scanned_or_expired() {
    for (faults, seconds, scans, status) in [
        (&[][..], 0, false, "pending"),
        (&[], 899, false, "pending"),
        (&[], 900, false, "expired"),
        (&[], 899, true, "completed"),
        (&[], 900, true, "expired"),
        (
            &[Fault::AuthRegistrationNeverExpires],
            900,
            false,
            "pending",
        ),
        (&[Fault::AuthScanStaysPending], 0, true, "pending"),
        (&[Fault::AuthCompletedWithoutScan], 0, false, "completed"),
        (&[Fault::AuthTokenExpiredAccepted], 900, true, "completed"),
    ] {
        let mut world = World::new(faults, &[]);
        let qr = qr(&world, "u-1", 900);
        world.hook("announce_registration", &json!({"custom_user_id": "u-1"}));
        world.wait(seconds);
        if scans {
            let is_late = status == "expired";
            let scanned = world.hook("scan_registration", &json!({ "qr": qr }));
            assert_eq!(scanned, json!({"registered": !is_late}), "{faults:?}");
        }
        let seen = registration(&mut world, "u-1");
        assert_eq!(
            seen["registration"]["status"],
            json!(status),
            "{faults:?} {seconds} {scans}"
        );
        let has_id = seen["registration"]["auth_id"].is_u64();
        assert_eq!(
            has_id,
            status == "completed",
            "{faults:?} {seconds} {scans}"
        );
    }
}

#[test]
fn an_id_that_nobody_showed_may_be_anything_but_completed() {
    for (variants, status) in [
        (&[][..], Value::Null),
        (&[Variant::AuthUnknownRegistrationPending], json!("pending")),
        (&[Variant::AuthUnknownRegistrationExpired], json!("expired")),
    ] {
        let seen = registration(&mut World::new(&[], variants), "u-9");
        assert_eq!(seen["registration"]["status"], status, "{variants:?}");
    }
}

#[test]
fn whoever_scans_is_the_user_of_that_phone() {
    for (faults, is_same) in [
        (&[][..], true),
        (&[Fault::AuthRegistrationOtherAuthId][..], false),
    ] {
        let mut world = World::new(faults, &[]);
        let auth_id = world.user("a@b.example", "555-010-0001");
        let (known, unknown) = (qr(&world, "u-1", 60), qr(&world, "u-2", 60));
        world.hook(
            "scan_registration",
            &json!({"qr": known, "cellphone": "5550100001", "country_code": "1"}),
        );
        world.hook("scan_registration", &json!({"qr": unknown}));
        assert_eq!(
            registration(&mut world, "u-1")["registration"]["auth_id"] == json!(auth_id),
            is_same
        );
        assert_ne!(
            registration(&mut world, "u-2")["registration"]["auth_id"],
            json!(auth_id)
        );
    }
}

/// The bodies of the webhooks for one completed and one failed scan.
fn webhooks(faults: &[Fault], variants: &[Variant]) -> Vec<(String, Value)> {
    let mut world = World::new(faults, variants);
    world.hook(
        "set_callback",
        &json!({"kind": "registration", "url": "http://127.0.0.1:9/hook"}),
    );
    let (right, late) = (qr(&world, "u-1", 60), qr(&world, "u-2", 0));
    world.hook(
        "scan_registration",
        &json!({"qr": right, "cellphone": "5550100001"}),
    );
    world.hook("scan_registration", &json!({ "qr": late }));
    let read = |callback: Callback| {
        let body = serde_json::from_slice(&callback.request.body).unwrap_or_default();
        (callback.request.method, body)
    };
    world.callbacks().into_iter().map(read).collect()
}

#[test]
fn webhooks_have_the_documented_shape() {
    let webhooks = webhooks(&[], &[]);
    let [(method, completed), (_, failed)] = webhooks.as_slice() else {
        panic!("two webhooks: {webhooks:?}");
    };
    assert_eq!(method, "POST");
    let event = &completed["params"]["events"][0];
    let keys = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(keys(completed), ["method", "url", "params"]);
    assert_eq!(keys(&completed["params"]), ["webhook_id", "events"]);
    assert_eq!(
        keys(event),
        ["event", "time", "objects", "request", "public"]
    );
    assert_eq!(event["event"], json!("user_registration_completed"));
    assert_eq!(event["time"], json!("2026-01-01T00:00:00Z"));
    assert_eq!(keys(&event["objects"]), ["app", "registration", "user"]);
    assert_eq!(
        event["objects"]["registration"],
        json!({"s_app_id": application::ID, "s_auth_id": 1001, "s_custom_id": "u-1"})
    );
    assert_eq!(event["objects"]["user"]["as_auth_ids"], json!(["1001"]));
    assert!(
        !completed.to_string().contains("5550100001"),
        "the phone is hashed"
    );
    let event = &failed["params"]["events"][0];
    assert_eq!(event["event"], json!("user_registration_failed"));
    assert_eq!(keys(&event["objects"]), ["app", "error"]);
    assert_eq!(event["objects"]["error"], json!({"s_code": "60000"}));
}

#[test]
fn each_webhook_fault_and_variant_changes_what_is_sent() {
    let clean = webhooks(&[], &[]);
    for fault in Fault::ALL {
        let id = fault.id();
        let is_ours = id.contains("webhook")
            || id.ends_with("-with-error")
            || id.ends_with("-with-registration");
        if is_ours {
            assert_ne!(webhooks(&[*fault], &[]), clean, "{id}");
        }
    }
    for variant in [
        Variant::AuthWebhookExtraKeys,
        Variant::AuthWebhookNullablesSet,
        Variant::AuthCallbackTwice,
    ] {
        assert_ne!(webhooks(&[], &[variant]), clean, "{variant:?}");
    }
}

/// Everything that one long story shows: each answer and each callback.
fn story(faults: &[Fault], variants: &[Variant]) -> Vec<String> {
    let mut world = World::new(faults, variants);
    let mut seen = Vec::new();
    for kind in ["approval", "registration"] {
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
    ] {
        for reactions in [
            &[][..],
            &["approve_request", "deny_request"],
            &["deny_request"],
            &["late"],
        ] {
            seen.extend(approval_story(&mut world, &parameters, reactions));
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
    for callback in world.callbacks() {
        let body = String::from_utf8_lossy(&callback.request.body);
        seen.push(format!(
            "{} {} {body}",
            callback.request.method, callback.url
        ));
    }
    seen
}

/// One approval request with what the person does; `late` is an approval after its expiry.
fn approval_story(world: &mut World, parameters: &Value, reactions: &[&str]) -> Vec<String> {
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
        "{} {}",
        response.status,
        String::from_utf8_lossy(&response.body)
    )
}

#[test]
fn no_fault_and_no_variant_is_dead() {
    // What a token is worth under each fault stands in `token`.
    let is_told = |id: &str| id.starts_with("auth/") && !id.starts_with("auth/token-");
    let clean = story(&[], &[]);
    assert_eq!(clean, story(&[], &[]), "the story is reproducible");
    for fault in Fault::ALL.iter().filter(|fault| is_told(fault.id())) {
        assert_ne!(story(&[*fault], &[]), clean, "{fault:?}");
    }
    for variant in Variant::ALL.iter().filter(|variant| is_told(variant.id())) {
        assert_ne!(story(&[], &[*variant]), clean, "{variant:?}");
    }
}
